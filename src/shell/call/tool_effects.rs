//! What a tool that no list names does to something that is not a local file: `tool_effects` of the vocabulary, by the name
//! and the input of the tool. The same rows apply to the names of operations of GraphQL, to steps of the path of a
//! request (`requests`), and to the command lines of services: `apps destroy`.
//!
//! Contains: the comparison of names, words, and inputs with the rows.
//! Does not contain: what a tool runs and which local files it touches (`shape`).

use serde_json::{Map, Value as Json};

use super::analysis_context::AnalysisContext;
use super::file_access::Access;
use super::invocation::Invocation;
use super::requests::ServiceKnowledge;
use super::shape::{InputFields, is_word, normal, words};
use super::tool_call::Call;
use crate::glob::word_matches;
use crate::tool_vocabulary::{ToolEffect, ToolWords};

/// Words that join two names: `find_one_and_delete`.
const JOINS: [&str; 2] = ["and", "then"];
/// Words of a command: `compute os-login ssh-keys remove`.
const COMMAND_WORDS: usize = 4;

/// Returns the effects of a tool, each once, in the order of the rows.
pub(super) fn effects_of_tool(
    call: &Call,
    input: &Json,
    fields: &InputFields<'_>,
    context: AnalysisContext<'_>,
) -> Vec<String> {
    let (known, rows) = (context.lens.tool_words(), context.lens.tool_effects());
    let has = |keys: &[String]| fields.of(keys).next().is_some();
    let is_preview = fields.of(&known.preview_keys).any(|(_, it)| it.as_bool() == Some(true));
    let touches_files = call.files.iter().any(|it| it.does != Access::Read);
    let is_local = touches_files && !has(&known.remote_keys);
    if is_preview || is_local || has(&known.own_keys) {
        return Vec::new();
    }
    let whole = words(&call.tool);
    let own = words(call.tool.rsplit("__").next().unwrap_or_default());
    // What a request changes says its equivalent command (`requests`).
    let is_request = has(&known.address_keys) && has(&known.method_keys);
    let actions = fields.texts(&known.action_keys).filter(|it| is_word(it) && !is_request);
    let actions: Vec<Vec<String>> = actions.map(words).collect();
    let mut all = whole.clone();
    all.extend(actions.iter().flatten().cloned());
    let name =
        NamedAction { own: &own, whole: &whole, all: &all, behind: &[], input: input.as_object() };
    let mut found = name.effects(rows.iter(), known);
    if !name.only_looks(known) {
        for action in &actions {
            found.extend(NamedAction { own: action, ..name }.effects(rows.iter(), known));
        }
    }
    let mut effects: Vec<String> = Vec::new();
    for row in rows {
        let is_new = found.contains(&row.effect.as_str()) && !effects.contains(&row.effect);
        effects.extend(is_new.then(|| row.effect.clone()));
    }
    effects
}

/// Returns the effects of a request, by the name of what it asks for, what is before this name in its path, and its fields.
/// `verb` is what the method does.
pub(super) fn effects_of_request(
    verb: &str,
    name: &str,
    before: &[&str],
    fields: &Map<String, Json>,
    known: ServiceKnowledge<'_>,
) -> Vec<String> {
    let (own, mut all) = (words(name), words(verb));
    let made: Vec<String> = all.iter().chain(&own).cloned().collect();
    all.extend(before.iter().chain([&name]).flat_map(|it| words(it)));
    let mut found: Vec<String> = Vec::new();
    for own in [&own, &made] {
        let name = NamedAction { own, whole: &all, all: &all, behind: &[], input: Some(fields) };
        // A request that shows something changes nothing.
        for effect in name.effects(known.effects.iter().filter(|it| !it.looks), known.words) {
            found.extend((!found.iter().any(|it| it == effect)).then(|| effect.to_owned()));
        }
    }
    found
}

impl Invocation {
    /// Returns what the command line of a service does, by the words of its command: `deletes` for `apps destroy`,
    /// `iam delete-user`, and `pg:purge`. The command ends at its first verb.
    #[must_use]
    pub fn service_effects(&self, known: ServiceKnowledge<'_>) -> Vec<String> {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-:_.".contains(c);
        // A kind of things can have the name of one of them behind it: `secret/api`.
        let kinds = self.command_words(known.values).filter_map(|it| it.split(['/', ',']).next());
        let command = kinds.filter(|it| !it.is_empty() && it.chars().all(is_part));
        let command: Vec<Vec<String>> = command.take(COMMAND_WORDS).map(words).collect();
        let has_verb = |it: &Vec<String>| it.iter().any(|it| known.is_verb(it));
        // Before another verb, `release` and `deploy-key` are nouns.
        let is_noun = |it: &Vec<String>| {
            let looks = it.iter().any(|it| known.words.look_verbs.contains(it));
            (it.len() > 1 && !looks) || it.iter().all(|it| known.is_noun(it))
        };
        let verb = command.iter().enumerate().position(|(at, it)| {
            let is_followed = command.get(at + 1).is_some_and(has_verb);
            has_verb(it) && !(is_followed && is_noun(it))
        });
        let Some((nouns, [own, rest @ ..])) = verb.and_then(|it| command.split_at_checked(it))
        else {
            return Vec::new();
        };
        let own: Vec<String> = own.iter().chain(nouns.iter().flatten()).cloned().collect();
        self.effects_of_command(&own, rest.first().map_or(&[], Vec::as_slice), known)
    }

    fn effects_of_command(
        &self,
        own: &[String],
        behind: &[String],
        known: ServiceKnowledge<'_>,
    ) -> Vec<String> {
        let mut whole = words(&self.name);
        whole.extend(own.iter().cloned());
        let options = self.args.iter().filter_map(|it| it.text.strip_prefix("--"));
        let input = options.map(|it| match it.split_once('=') {
            Some((name, value)) => (name.to_owned(), Json::from(value)),
            None => (it.to_owned(), Json::from(true)),
        });
        let input: Map<String, Json> = input.collect();
        let name = NamedAction { own, whole: &whole, all: &whole, behind, input: Some(&input) };
        let found = name.effects(known.effects.iter(), known.words);
        found.into_iter().map(str::to_owned).collect()
    }
}

impl ServiceKnowledge<'_> {
    /// Returns whether a word can be a noun behind a verb.
    fn is_noun(&self, word: &String) -> bool {
        self.effects.iter().any(|it| it.nouns.contains(word))
    }

    /// Returns whether a word is a verb that looks at something, changes it, or runs something.
    fn is_verb(&self, word: &String) -> bool {
        let known = self.words;
        let verbs = [&known.look_verbs, &known.make_verbs, &known.runner_words, &known.shell_words];
        verbs.iter().any(|it| it.contains(word))
            || self.effects.iter().any(|it| it.verbs.contains(word))
    }
}

/// The words of a name, and what belongs to it.
#[derive(Debug, Clone, Copy)]
struct NamedAction<'a> {
    /// The words of the name alone.
    own: &'a [String],
    /// The words of the server and the tool.
    whole: &'a [String],
    /// All words of the call.
    all: &'a [String],
    /// The words of the word behind the verb of a command line.
    behind: &'a [String],
    input: Option<&'a Map<String, Json>>,
}

impl NamedAction<'_> {
    /// Returns whether the first verb only looks at something.
    fn only_looks(&self, known: &ToolWords) -> bool {
        let mut parts = self.own.split(|it| JOINS.contains(&it.as_str()));
        parts.all(|it| {
            it.iter().any(|it| known.look_verbs.contains(it)) && split(it, known).0.is_empty()
        })
    }

    /// Returns the effects of the name, which can contain an effect twice.
    fn effects<'r>(
        &self,
        rows: impl Iterator<Item = &'r ToolEffect>,
        known: &ToolWords,
    ) -> Vec<&'r str> {
        let only_looks = self.only_looks(known);
        let (own, whole) = (self.own.join("_"), self.whole.join("_"));
        let fits = |it: &String| word_matches(it, &own) || word_matches(it, &whole);
        let is_of = |row: &&ToolEffect| self.has_words(row, known) && !row.except.iter().any(fits);
        let is_asked = |row: &&ToolEffect| !only_looks || row.looks || row.effect.is_empty();
        let found = rows.filter(is_asked).filter(|row| {
            let is_named = row.names.is_empty() || row.names.iter().any(fits);
            is_named && self.has_input(row) && is_of(row)
        });
        let found: Vec<&str> = found.map(|it| it.effect.as_str()).collect();
        if found.contains(&"") { Vec::new() } else { found }
    }

    /// Returns whether the words of a row are in the name.
    fn has_words(&self, row: &ToolEffect, known: &ToolWords) -> bool {
        let behind = self.behind.iter().filter(|_| row.looks);
        let has_object = row.objects.is_empty()
            || self.all.iter().chain(behind).any(|it| row.objects.contains(it));
        if row.looks {
            return has_object && self.own.iter().any(|it| row.verbs.contains(it));
        }
        let is_free = row.verbs.is_empty() && row.nouns.is_empty();
        has_object
            && (is_free
                || self.own.split(|it| JOINS.contains(&it.as_str())).any(|part| {
                    let (verbs, nouns) = split(part, known);
                    verbs.iter().any(|it| row.verbs.contains(it))
                        || nouns.iter().any(|it| row.nouns.contains(it))
                }))
    }

    /// Returns whether the input has one of the values of a row: `visibility=public`.
    fn has_input(&self, row: &ToolEffect) -> bool {
        let is_given = |wanted: &String| {
            let Some((key, value)) = wanted.split_once('=') else { return false };
            let fields = self.input.into_iter().flatten();
            fields.filter(|it| normal(it.0) == key).any(|(_, given)| match given {
                Json::String(text) => text.eq_ignore_ascii_case(value),
                Json::Bool(flag) => flag.to_string() == value,
                Json::Null | Json::Number(_) | Json::Array(_) | Json::Object(_) => false,
            })
        };
        row.inputs.is_empty() || row.inputs.iter().any(is_given)
    }
}

/// Splits a name into the words that can be verbs, and the nouns behind a verb such as `create`. What follows a verb that only
/// looks at something is neither.
fn split<'n>(name: &'n [String], known: &ToolWords) -> (&'n [String], &'n [String]) {
    let position = |verbs: &[String]| name.iter().position(|it| verbs.contains(it));
    let end = position(&known.look_verbs).unwrap_or(name.len());
    let made = position(&known.make_verbs).filter(|it| *it < end);
    let verbs = name.get(..made.map_or(end, |it| it + 1)).unwrap_or_default();
    let nouns = made.and_then(|it| name.get(it + 1..end)).unwrap_or_default();
    (verbs, nouns)
}
