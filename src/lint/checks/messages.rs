//! Checks of what is said: texts that never come, or that say nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::entries::guards;
use super::rules::{RankedEntry, nothing_left};
use super::terms::asked;
use crate::pairs::KnownPairs;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_base::limits::SPOKEN_CHARS_MAX;
use policyd_fact_table::paths;
use policyd_fact_table::types::Names;
use policyd_facts::covers;
use policyd_policy::records;
use policyd_yaml::Suggestion;
use policyd_yaml::memo::hash_of;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;

/// A list of which the first fitting text is said.
struct Choices<'s> {
    /// The entry it belongs to; messages have none.
    entry: Option<&'s PackEntry<'s>>,
    items: &'s [Node],
}

fn choices<'s>(subject: &'s Subject<'s>) -> Vec<Choices<'s>> {
    let of_entry = |entry: &'s PackEntry<'s>| {
        let items = |key| entry.node.get(key).and_then(Node::items);
        let listed = ["details", "error", "message"].into_iter();
        listed.filter_map(move |key| Some(Choices { entry: Some(entry), items: items(key)? }))
    };
    let mut found: Vec<_> = subject.entries.iter().flat_map(of_entry).collect();
    let messages = subject.file("messages.yaml").and_then(Node::entries).unwrap_or_default();
    let lists = messages.iter().filter_map(|(_, list)| list.items());
    found.extend(lists.map(|items| Choices { entry: None, items }));
    found
}

pub(crate) fn unreachable_text(subject: &Subject<'_>, out: &mut Findings) {
    for Choices { entry, items } in choices(subject) {
        let texts = items.iter().filter_map(|choice| {
            let when = match choice.get("when") {
                Some(when) => Some(subject.site_of(entry, when)?.term.clone()?),
                None => None,
            };
            let message = "this text is never used".to_owned();
            let place = Some(choice.get("text").unwrap_or(choice).span.clone());
            let group = choice.get("voice").and_then(Node::text);
            Some(RankedEntry { message, place, group, when })
        });
        nothing_left(subject, &texts.collect::<Vec<_>>(), subject.names(), out);
    }
}

pub(crate) fn no_guidance(subject: &Subject<'_>, out: &mut Findings) {
    if !out.is_strict() {
        return;
    }
    for entry in subject.of("considerations.yaml") {
        let inherited = subject.inherited(entry);
        let said = |key: &str| {
            entry.text(key).is_some() || inherited.is_some_and(|it| it.get(key).is_some())
        };
        let blocks = entry.text("severity") == Some("blocker");
        if blocks && !said("guidance") && !said("message") {
            let message = format!("the blocker `{}` has no guidance", entry.name());
            let help = "add `guidance: …` with one sentence for the agent";
            out.help(entry.id.span.clone(), message, help);
        }
    }
}

pub(crate) fn message_and_guidance(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("considerations.yaml") {
        if let (Some(guidance), Some(message)) =
            (entry.node.get("guidance"), entry.node.get("message"))
        {
            out.add(message.span.clone(), "`message` is never used", |it| {
                it.with_related(guidance.span.clone(), "`guidance` is used")
                    .with_help("both have the same meaning: keep one")
            });
        }
    }
}

pub(crate) fn text_too_long(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in &subject.leaves {
        let said = matches!(leaf.kind, Kind::Template) && leaf.key != "stdin"
            || matches!(leaf.key, "guidance" | "message");
        let length = leaf.node.text().map_or(0, |it| it.chars().count());
        if said && length > SPOKEN_CHARS_MAX {
            let message = format!("this text has {length} characters");
            out.add(leaf.node.span.clone(), message, |it| {
                it.with_note(format!("text after {SPOKEN_CHARS_MAX} characters is cut"))
                    .with_help("shorten the text, or refer to a document")
            });
        }
    }
}

/// Whether a text begins with what would be a hole: the path of a fact, or of a field of a record that expressions
/// of this file speak of, of any file if none is given; a name alone is not a path.
fn begins_hole(text: &str, file: Option<&str>) -> bool {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_.".contains(c));
    let (path, rest) = text.split_at_checked(end.unwrap_or(text.len())).unwrap_or_default();
    let is_field = |names: &'static Names| records::shape(names).at(path).is_some();
    let seen = |of: &str| file.is_none_or(|file| file == of);
    let of_record = || records::PLACES.iter().any(|(of, _, it)| seen(of) && is_field(it));
    let own = [("given.", "tables.yaml"), ("signal.", "signals.yaml")];
    let of_own = || own.iter().any(|(it, of)| seen(of) && path.starts_with(it));
    (path.contains('.') || (path == "breakers" && rest.starts_with("[\"")))
        && rest.starts_with(['}', '(', '[', ' '])
        && (of_own() || paths::member_of_names(path).is_some() || of_record())
}

/// Where a text of a file has a hole that nothing fills, and what to write; of a template the file says which
/// records there are.
fn foreign(text: &str, template: Option<&str>) -> Option<(std::ops::Range<usize>, &'static str)> {
    let names_fact = |text: &str| begins_hole(text, template);
    let template = template.is_some();
    let cure = if template {
        "write `${…}`"
    } else {
        "this text has no placeholders: remove it, or use `details`"
    };
    for (at, _) in text.match_indices('{') {
        let (before, rest) = (text.get(..at)?, text.get(at + 1..)?);
        let end = |close: &str| rest.find(close).map_or(text.len(), |it| at + 1 + it + close.len());
        if before.ends_with('$') {
            if !template && names_fact(rest) {
                return Some((at - 1..end("}"), cure));
            }
        } else if let Some(inner) = rest.strip_prefix('{') {
            if names_fact(inner) {
                return Some((at..end("}}"), cure));
            }
        } else if names_fact(rest) && !before.ends_with('{') {
            return Some((at..end("}"), cure));
        }
    }
    for (at, _) in text.match_indices('$') {
        // Text in backticks can be code of another language.
        if !template && text.get(..at)?.matches('`').count() % 2 == 1 {
            continue;
        }
        let rest = text.get(at + 1..)?;
        let (inner, opened) = rest.strip_prefix('(').map_or((rest, 0), |it| (it, 1));
        let length = inner.find(|c: char| !c.is_ascii_alphanumeric() && !"_.".contains(c));
        let path = inner.get(..length.unwrap_or(inner.len()))?.trim_end_matches('.');
        // A path that ends where a sentence does.
        if path.contains('.') && names_fact(&format!("{path}}}")) {
            return Some((at..at + 1 + opened + path.len(), cure));
        }
    }
    if template { bare_fact(text).map(|it| (it, cure)) } else { None }
}

/// The first name of a fact in a template that is neither in a placeholder nor in backticks.
fn bare_fact(text: &str) -> Option<std::ops::Range<usize>> {
    if text.contains('`') {
        return None;
    }
    let (mut at, mut depth) = (0, 0_usize);
    for word in text.split_inclusive(|c: char| c.is_whitespace() || "{}(),;:\"'".contains(c)) {
        let start = at;
        at += word.len();
        let path = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
        let is_fact = path.contains('.') && path.chars().all(is_name);
        // A call or a longer name is not a fact.
        let rest = word.get(path.len()..).unwrap_or_default();
        if depth == 0 && is_fact && !rest.starts_with('(') && paths::member_of_names(path).is_some()
        {
            return Some(start..start + path.len());
        }
        match word.chars().next_back() {
            Some('{') => depth += 1,
            Some('}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Keys of texts without placeholders.
#[rustfmt::skip]
const SAID_AS_IT_STANDS: [&str; 12] = [
    "guidance", "message", "question", "category", "wrong", "action", "missing", "reason",
    "purpose", "answer", "created_by", "consumed_by",
];

pub(crate) fn foreign_placeholder(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in &subject.leaves {
        let template = matches!(leaf.kind, Kind::Template);
        if !template && !SAID_AS_IT_STANDS.contains(&leaf.key) {
            continue;
        }
        let text = leaf.node.text().unwrap_or_default();
        if let Some((range, help)) = foreign(text, template.then_some(leaf.file)) {
            let hole = text.get(range.clone()).unwrap_or_default();
            let message = format!("`{hole}` is printed literally");
            let inside = hole.trim_matches(['{', '}', '$', ' ']);
            let fix = match template && !inside.contains(['{', '}', '(']) {
                true => {
                    Suggestion::write(range.clone(), format!("${{{inside}}}")).within(leaf.node, 0)
                }
                false => help.into(),
            };
            out.help(leaf.node.sub_span(range), message, fix);
        }
    }
}

/// The command patterns of a guard that blocks, and the options that its condition requires.
type BlockedCommands<'s> = (Vec<&'s str>, Vec<&'s str>);

/// The commands that a guard blocks.
fn blocked_by<'s>(
    subject: &'s Subject<'_>,
    entry: &'s PackEntry<'s>,
) -> Option<BlockedCommands<'s>> {
    let text = |key: &str| subject.said(entry, key).and_then(Node::text);
    let blocks = text("decision").is_some_and(|it| matches!(it, "deny" | "block"));
    let soft = text("mode").is_some_and(|it| it != "enforce") || entry.is("enabled", false);
    if !blocks || soft || text("unless").is_some() {
        return None;
    }
    let commands = subject.said(entry, "commands")?.one_or_items();
    let commands = commands.iter().filter_map(Node::text).collect();
    let options = match (entry.node.get("when"), text("when")) {
        (None, None) => Vec::new(),
        (Some(node), _) => {
            let term = subject.site_of(Some(entry), node)?.term.as_deref()?;
            let (_, names) = asked(term).filter(|(fact, _)| fact.is("program.has"))?;
            names.into_iter().map(|(it, _)| it).collect()
        }
        (None, Some(_)) => return None,
    };
    Some((commands, options))
}

pub(crate) fn blocked_guidance(subject: &Subject<'_>, out: &mut Findings) {
    let all = guards(subject).filter(|it| !subject.is_broken(it));
    let blocking: Vec<_> = all.filter_map(|it| Some((it, blocked_by(subject, it)?))).collect();
    if blocking.is_empty() {
        return;
    }
    let written: Vec<_> = quoted_commands(subject).collect();
    let distinct: BTreeSet<&str> = written.iter().map(|it| it.command).collect();
    let distinct: Vec<_> = distinct.into_iter().map(|it| (hash_of(&it), it)).collect();
    let blocking: Vec<_> = blocking.into_iter().map(|it| (hash_of(&it.1), it)).collect();
    let is_blocked =
        |command: &&str, (_, (patterns, options)): &(&PackEntry<'_>, BlockedCommands<'_>)| {
            let has = |it: &&str| command.split_whitespace().any(|word| word == *it);
            patterns.iter().any(|it| covers::command(it, command))
                && (options.is_empty() || options.iter().any(has))
        };
    let known = subject.memo().of_text("blocked commands", 0, "", Mutex::<KnownPairs>::default);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let hits = known.first_related(&distinct, &blocking, is_blocked);
    let commands = distinct.iter().map(|(_, it)| *it);
    let hits: BTreeMap<&str, _> =
        commands.zip(hits).filter_map(|(it, hit)| Some((it, hit?.0))).collect();
    for QuotedCommand { node, command, is_warning } in written {
        let Some(guard) = hits.get(command).filter(|_| !is_warning) else { continue };
        let message = format!("the guard `{}` blocks `{command}`", guard.name());
        out.add(node.span.clone(), message, |it| {
            it.with_related(guard.id.span.clone(), "the guard")
                .with_help("write a command that the agent may run")
        });
    }
}

/// A command in the text of a check.
struct QuotedCommand<'s> {
    node: &'s Node,
    command: &'s str,
    /// Whether the text warns against it.
    is_warning: bool,
}

/// Words before a command that the agent must not run.
const WARNINGS: [&str; 6] = ["not", "never", "avoid", "without", "instead of", "n't"];

/// Returns the texts between backticks in the texts of checks.
fn quoted_commands<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = QuotedCommand<'s>> {
    let nodes = subject.of("considerations.yaml").flat_map(|entry| {
        ["guidance", "message"].into_iter().filter_map(move |key| entry.node.get(key))
    });
    nodes.flat_map(|node| {
        let mut before = "";
        let parts = node.text().unwrap_or_default().split('`').enumerate();
        parts.filter_map(move |(at, part)| {
            let before = std::mem::replace(&mut before, part);
            let is_warning = || {
                let before = before.to_lowercase();
                WARNINGS.iter().any(|it| before.contains(it))
            };
            (at % 2 == 1).then(|| QuotedCommand { node, command: part, is_warning: is_warning() })
        })
    })
}
