//! Turns layered entries into meaning: names resolved, expressions typed, defaults filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::load::{Entry, Layers, Meant};
use super::resilience::{DeadLetter, Escalation};
use super::{
    Check, CheckBody, Choice, Consideration, Expression, MessageChoice, Mode, OnError, Place,
    Policy, Preference, Probe, Route, SessionType, Settings, Severity, builtin, records, shapes,
};
use crate::facts::cursor::Key;
use crate::facts::event::{EVENTS, EventKind};
use crate::script::check::{self, Typed};
use crate::script::template::{self, Piece};
use crate::script::types::{Evidence, Names, Type};
use crate::source::node::Node;
use crate::source::{Diagnostic, Span, suggest};
use crate::state::breaker;
use crate::state::failure::Failures;
use crate::time::Timestamp;
use vocabulary::Vocabulary;

mod breakers;
mod failures;
mod questions;
mod resilience;
mod settings;
mod vocabulary;

/// A check is judged before there is an outcome.
const AT_A_CHECK: &[&str] = &["outcome"];
/// A session is classified, and questions are put, before anything is known from outside.
const BEFORE_ASKING: &[&str] = &["prefs", "probes", "state", "rule", "outcome"];
/// Nothing is asked for the sake of a message.
const AT_A_MESSAGE: &[&str] = &["prefs", "probes", "rule"];
const KNOWN_LATER: &str = "session types come first, then preferences and probes, then checks, \
     then messages; each sees what came before it";

/// Everything needed to type expressions and to complain.
pub(super) struct Builder<'a> {
    pub(super) names: Arc<Names>,
    /// Whether anything that was typed asks where breakers stand.
    pub(super) reads_breakers: bool,
    /// Facts read by what was typed since it was last emptied.
    pub(super) uses: BTreeSet<String>,
    /// Facts that are not known where what is typed now will be evaluated.
    pub(super) unknown_here: &'static [&'static str],
    /// Time all probes of one stop may take together, where a pack beside the built-in one says so.
    pub(super) deadline: Option<Duration>,
    pub(super) diagnostics: &'a mut Vec<Diagnostic>,
}

/// What layers mean.
#[derive(Debug)]
pub(super) struct Built {
    settings: Settings,
    vocabulary: Arc<Vocabulary>,
    names: Arc<Names>,
    checkers: BTreeMap<String, Check>,
    considerations: Vec<Consideration>,
    session_types: Vec<SessionType>,
    preferences: Vec<Preference>,
    probes: Vec<Probe>,
    breakers: Vec<(String, breaker::Settings)>,
    dead_letter: DeadLetter,
    escalation: Escalation,
    failures: Failures,
    reads_breakers: bool,
    origins: Vec<(String, BTreeMap<String, Place>)>,
    routes: Vec<Route>,
    messages: BTreeMap<String, Vec<MessageChoice>>,
}

/// What the layers mean; complaints are added to `diagnostics`. Over a base that is built already,
/// only what is not its own is built.
pub(super) fn build(
    layers: &Layers,
    base: Option<&Built>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Built {
    let wanted = |it: &&Entry| base.is_none() || it.is_own();
    let mut settings = settings::settings(&layers.manifests, diagnostics);
    let vocabulary = match base.filter(|_| layers.vocabularies.iter().all(is_builtin)) {
        Some(base) => Arc::clone(&base.vocabulary),
        None => Arc::new(vocabulary::vocabulary(&layers.vocabularies, diagnostics)),
    };
    let names = names(layers, base, &vocabulary);
    let (uses, deadline) = (BTreeSet::new(), settings::own_deadline(&layers.manifests));
    let known = Arc::clone(&names);
    let mut builder = Builder {
        names: known,
        reads_breakers: false,
        uses,
        unknown_here: AT_A_CHECK,
        deadline,
        diagnostics,
    };
    let checkers: BTreeMap<String, Check> = layers
        .checkers
        .iter()
        .filter(wanted)
        .filter_map(|it| Some((it.id.clone(), builder.checker(it)?)))
        .collect();
    let named = Named {
        own: &checkers,
        base: base.map(|it| &it.checkers),
        known: layers.checkers.iter().map(|it| it.id.as_str()).collect(),
    };
    let considerations = layers.considerations.iter().filter(wanted);
    let considerations =
        considerations.filter_map(|it| builder.consideration(it, &named)).collect();
    builder.unknown_here = BEFORE_ASKING;
    let session_types = layers.session_types.iter().filter(wanted);
    let session_types = session_types.filter_map(|it| builder.session_type(it)).collect();
    let preferences = layers.preferences.iter().filter(wanted);
    let preferences = preferences.filter_map(|it| builder.preference(it)).collect();
    let probes = layers.probes.iter().filter(wanted);
    let probes: Vec<Probe> = probes.filter_map(|it| builder.probe(it)).collect();
    if deadline.is_none() {
        // Whoever switches a slow probe on means it to have its time.
        let slowest = probes.iter().filter(|it| it.enabled).map(|it| it.timeout).max();
        settings.deadline = settings.deadline.max(slowest.unwrap_or_default());
    }
    let failures = failures::failures(layers, builder.diagnostics);
    let origins = breakers::origins(&layers.breakers);
    let breakers = breakers::breakers(&layers.breakers);
    let routes = layers.routes.iter().filter(wanted).filter_map(|it| builder.route(it)).collect();
    builder.unknown_here = AT_A_MESSAGE;
    let messages = layers.messages.iter().filter(|it| base.is_none() || !is_builtin(it));
    let messages = builder.messages(messages);
    let reads_breakers = builder.reads_breakers;
    let (dead_letter, escalation) = (builder.dead_letter(layers), builder.escalation(layers));
    Built {
        settings,
        vocabulary,
        names,
        checkers,
        considerations,
        session_types,
        preferences,
        probes,
        breakers,
        dead_letter,
        escalation,
        failures,
        reads_breakers,
        origins,
        routes,
        messages,
    }
}

fn is_builtin(node: &Arc<Node>) -> bool {
    builtin::wrote(&node.span.source)
}

/// The names that expressions may use; those of the base, where nothing is added to them.
fn names(layers: &Layers, base: Option<&Built>, vocabulary: &Arc<Vocabulary>) -> Arc<Names> {
    let lists = [&layers.preferences, &layers.probes, &layers.session_types];
    let base = base.filter(|it| Arc::ptr_eq(&it.vocabulary, vocabulary) && !layers.incomplete);
    if let Some(base) = base.filter(|_| !lists.into_iter().flatten().any(Entry::is_own)) {
        return Arc::clone(&base.names);
    }
    let ids = |entries: &[Entry]| entries.iter().map(|it| it.id.clone()).collect::<BTreeSet<_>>();
    Arc::new(Names {
        command_kinds: vocabulary.lens.commands.iter().map(|it| it.name.clone()).collect(),
        file_kinds: vocabulary.lens.files.iter().map(|it| it.name.clone()).collect(),
        contents: vocabulary.lens.contents.iter().map(|it| it.name.clone()).collect(),
        texts: vocabulary.texts.keys().cloned().collect(),
        preferences: ids(&layers.preferences),
        probes: ids(&layers.probes),
        session_types: ids(&layers.session_types),
        forges: vocabulary.forges.iter().map(|(name, _)| name.clone()).collect(),
        incomplete: layers.incomplete,
        record: None,
    })
}

/// The policy of what was built without a base.
pub(super) fn policy(name: String, built: Built) -> Policy {
    let vocabulary = Arc::unwrap_or_clone(built.vocabulary);
    Policy {
        name,
        settings: built.settings,
        considerations: built.considerations,
        session_types: built.session_types,
        preferences: built.preferences.into(),
        probes: built.probes.into(),
        breakers: built.breakers.into(),
        failures: built.failures.into(),
        reads_breakers: built.reads_breakers,
        breaker_origins: built.origins.into(),
        routes: built.routes.into(),
        messages: built.messages.into(),
        dead_letter: built.dead_letter.into(),
        escalation: built.escalation.into(),
        lens_key: Key::of(&vocabulary.lens),
        lens: vocabulary.lens,
        texts: vocabulary.texts,
        stop_words: vocabulary.stop_words.into(),
        main_branches: vocabulary.main_branches,
        forges: vocabulary.forges.into(),
    }
}

/// What lint looks at, and the names that are defined.
pub(super) fn meant(layers: &Layers, built: Built, base: Option<&Built>) -> (Meant, Arc<Names>) {
    let lens = &built.vocabulary.lens;
    let types = layers.session_types.iter();
    let messages =
        built.messages.values().chain(base.into_iter().flat_map(|it| it.messages.values()));
    let voices = messages.flatten().filter_map(|it| it.voice.clone()).collect();
    let meant = Meant {
        settings: built.settings,
        breakers: built.breakers,
        session_types: types.map(|it| (it.id.clone(), text(it.get("when")))).collect(),
        tools: lens.shell_tools.iter().chain(&lens.edit_tools).cloned().collect(),
        voices,
        considerations: built.considerations,
    };
    (meant, built.names)
}

/// Named checkers: the pack's own, and those of the packs below.
struct Named<'a> {
    own: &'a BTreeMap<String, Check>,
    base: Option<&'a BTreeMap<String, Check>>,
    known: Vec<&'a str>,
}

impl Named<'_> {
    fn get(&self, name: &str) -> Option<&Check> {
        self.own.get(name).or_else(|| self.base?.get(name))
    }
}

/// The value of `on_error` by its name.
pub(super) fn on_error(text: &str) -> Option<OnError> {
    match text {
        "allow" => Some(OnError::Allow),
        "warn" => Some(OnError::Warn),
        "block" => Some(OnError::Block),
        _ => None,
    }
}

/// The text of a node, or nothing.
pub(super) fn text(node: Option<&Node>) -> String {
    node.and_then(Node::text).unwrap_or_default().to_owned()
}

/// The texts of a list node.
pub(super) fn texts(node: Option<&Node>) -> Vec<String> {
    let items = node.and_then(Node::items).unwrap_or_default();
    items.iter().filter_map(Node::text).map(str::to_owned).collect()
}

/// Where a node is written, for people.
pub(super) fn place(span: &Span) -> Place {
    let (line, column) = span.line_column();
    let small = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Place { file: span.source.name.clone(), line: small(line), column: small(column) }
}

impl Builder<'_> {
    /// Types what `work` meets by the names of a record, where there are some.
    fn speaking_of<T>(
        &mut self,
        names: Option<&'static Names>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let Some(names) = names else { return work(self) };
        let facts = std::mem::replace(&mut self.names, Arc::new(names.clone()));
        let unknown_here = std::mem::take(&mut self.unknown_here);
        let made = work(self);
        self.names = facts;
        self.unknown_here = unknown_here;
        made
    }

    /// A typed expression of `wanted` type; anything wrong is complained about.
    fn expression(&mut self, node: Option<&Node>, wanted: Type) -> Option<Expression> {
        let node = node?;
        let text = node.text()?;
        let typed = check::check(text, &self.names);
        self.uses.extend(typed.uses.iter().cloned());
        if !text.trim().is_empty() {
            // That it is empty is said where its shape is checked.
            self.complain(&typed, node, 0);
        }
        if typed.result != wanted && typed.result != Type::Any {
            let message = format!("this must be {wanted}, and is a {}", typed.result);
            let found = Diagnostic::error("not-a-condition", node.sub_span(0..text.len()), message);
            let example = [(Type::Int, "files.count > 0"), (Type::Text, "tools.last == \"Bash\"")];
            let example = example.iter().find(|(it, _)| *it == typed.result);
            self.diagnostics.push(match example {
                Some((_, text)) => found.with_help(format!("compare it, as in `{text}`")),
                None => found,
            });
        }
        Some(Expression {
            text: text.to_owned(),
            place: place(&node.sub_span(0..text.len())),
            uses: typed.uses.into_iter().collect(),
            words_only: typed.evidence == Evidence::Words,
        })
    }

    fn complain(&mut self, typed: &Typed, node: &Node, offset: usize) {
        self.reads_breakers |= typed.uses.iter().any(|it| it.starts_with("breakers"));
        // `probes.pr.ok` reads `probes.pr`, too: one finding is enough.
        let read_by = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'))
        };
        for used in &typed.uses {
            let global = used.split('.').next().unwrap_or_default();
            let told = typed.uses.iter().any(|it| read_by(used, it));
            if !told && self.unknown_here.contains(&global) {
                let text = node.text().unwrap_or_default();
                let start = text.find(used.as_str()).unwrap_or(0);
                let span = node.sub_span(start..start.saturating_add(used.len()));
                let message = format!("`{global}` is not known here");
                let found = Diagnostic::error("unknown-here", span, message);
                self.diagnostics.push(found.with_help(KNOWN_LATER));
            }
        }
        for finding in &typed.findings {
            let range = finding.start.saturating_add(offset)..finding.end.saturating_add(offset);
            self.diagnostics.push(finding.at(node.sub_span(range)));
        }
    }

    /// A template whose holes are typed.
    fn template(&mut self, node: &Node) -> Option<String> {
        let text = node.text()?;
        match template::pieces(text) {
            Err(at) => {
                let span = node.sub_span(at..at.saturating_add(2));
                let message = "this `${` has no closing brace".to_owned();
                let found = Diagnostic::error("open-hole", span, message);
                self.diagnostics
                    .push(found.with_help("write `$${` for the two characters as text"));
            }
            Ok(pieces) => {
                for piece in pieces {
                    if let Piece::Hole { expression, start } = piece {
                        self.hole(expression, start, node);
                    }
                }
            }
        }
        Some(text.to_owned())
    }

    fn hole(&mut self, expression: &str, start: usize, node: &Node) {
        let typed = check::check(expression, &self.names);
        self.uses.extend(typed.uses.iter().cloned());
        self.complain(&typed, node, start);
        let shown =
            matches!(typed.result, Type::Any | Type::Bool | Type::Int | Type::Text | Type::Texts);
        if !shown {
            let span = node.sub_span(start..start.saturating_add(expression.len()));
            let message = format!("a {} cannot be shown as text", typed.result);
            let found = Diagnostic::error("type-mismatch", span, message);
            self.diagnostics.push(found.with_help("name one of its fields"));
        }
    }

    /// A template, or a list of texts with conditions.
    fn choices(&mut self, node: Option<&Node>) -> Vec<Choice> {
        let Some(node) = node else { return Vec::new() };
        match node.items() {
            None => {
                self.template(node).into_iter().map(|text| Choice { when: None, text }).collect()
            }
            Some(items) => items.iter().filter_map(|it| self.choice(it)).collect(),
        }
    }

    fn choice(&mut self, node: &Node) -> Option<Choice> {
        if node.entries().is_none() {
            return self.template(node).map(|text| Choice { when: None, text });
        }
        let when = self.expression(node.get("when"), Type::Bool);
        let text = self.template(node.get("text")?)?;
        Some(Choice { when, text })
    }

    fn checker(&mut self, entry: &Entry) -> Option<Check> {
        let Some(satisfied) = entry.get("satisfied") else {
            self.missing(entry, "satisfied", "a checker says when it is satisfied");
            return None;
        };
        self.uses.clear();
        let satisfied = self.expression(Some(satisfied), Type::Bool)?;
        let when = self.expression(entry.get("when"), Type::Bool);
        let body = CheckBody {
            satisfied,
            blocking: self.expression(entry.get("blocking"), Type::Bool),
            details: self.choices(entry.get("details")),
            evidence: self.choices(entry.get("evidence")),
            error: self.choices(entry.get("error")),
        };
        let uses: Vec<String> = std::mem::take(&mut self.uses).into_iter().collect();
        Some(Check { name: entry.id.clone(), when, body: body.into(), uses: uses.into() })
    }

    fn consideration(&mut self, entry: &Entry, checkers: &Named<'_>) -> Option<Consideration> {
        for key in ["category", "question", "severity"] {
            if entry.get(key).is_none() {
                self.missing(entry, key, "every consideration has it");
            }
        }
        let check = self.check(entry, checkers)?;
        let own_when = self.expression(entry.get("when"), Type::Bool);
        let severity = match text(entry.get("severity")).as_str() {
            "blocker" => Severity::Blocker,
            _ => Severity::Warning,
        };
        let mode = match text(entry.get("mode")).as_str() {
            "warn" => Mode::Warn,
            "shadow" => Mode::Shadow,
            _ => Mode::Enforce,
        };
        let guidance = entry.get("guidance").or_else(|| entry.get("message"));
        Some(Consideration {
            id: entry.id.clone(),
            category: text(entry.get("category")),
            question: text(entry.get("question")),
            guidance: text(guidance).trim().to_owned(),
            severity,
            enabled: entry.get("enabled").and_then(Node::bool).unwrap_or(true),
            session_types: self.session_types(entry),
            on: self.events(entry),
            when: own_when,
            check,
            mode,
            on_error: on_error(&text(entry.get("on_error"))).unwrap_or(OnError::Allow),
            expires_millis: entry.get("expires").and_then(Node::date).map(Timestamp::millis),
            place: entry.span().map(place).unwrap_or_default(),
        })
    }

    /// The check written in place, or the named one.
    fn check(&mut self, entry: &Entry, checkers: &Named<'_>) -> Option<Check> {
        if entry.get("satisfied").is_some() {
            // `when` of the entry is the consideration's own.
            let check = self.checker(entry)?;
            return Some(Check { when: None, ..check });
        }
        let Some(node) = entry.get("checker") else {
            self.missing(entry, "checker", "name a checker, or write `satisfied`");
            return None;
        };
        let name = node.text()?;
        if let Some(check) = checkers.get(name) {
            return Some(self.overlaid(check.clone(), entry));
        }
        if !checkers.known.contains(&name) {
            let message = format!("there is no checker `{name}`");
            let found = Diagnostic::error("unknown-checker", node.span.clone(), message);
            self.diagnostics.push(found.with_help_if(suggest::did_you_mean(name, &checkers.known)));
        }
        None
    }

    /// A named checker with what the consideration says otherwise.
    fn overlaid(&mut self, check: Check, entry: &Entry) -> Check {
        self.uses.clear();
        let (mut body, mut uses) = (check.body.into_inner(), check.uses.into_inner());
        if entry.get("blocking").is_some() {
            body.blocking = self.expression(entry.get("blocking"), Type::Bool);
        }
        let texts = [
            ("details", &mut body.details),
            ("evidence", &mut body.evidence),
            ("error", &mut body.error),
        ];
        for (key, own) in texts {
            if entry.get(key).is_some() {
                *own = self.choices(entry.get(key));
            }
        }
        uses.extend(std::mem::take(&mut self.uses));
        Check { body: body.into(), uses: uses.into(), ..check }
    }

    /// amplihack's default is DEVELOPMENT only.
    fn session_types(&mut self, entry: &Entry) -> Vec<String> {
        let node = entry.get("applicable_session_types");
        let items = node.and_then(Node::items).unwrap_or_default();
        let known: Vec<String> = self.names.session_types.iter().cloned().collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        for item in items {
            let name = item.text().unwrap_or_default();
            if name != "*" && !known.contains(&name) {
                self.unknown("unknown-session-type", "session type", item, &known);
            }
        }
        let types = texts(node);
        if types.is_empty() { vec!["DEVELOPMENT".to_owned()] } else { types }
    }

    fn events(&mut self, entry: &Entry) -> Vec<String> {
        let node = entry.get("on");
        let known: Vec<&str> = EVENTS.iter().map(|it| it.name).collect();
        let mut events = Vec::new();
        for item in node.and_then(Node::items).unwrap_or_default() {
            match item.text().and_then(EventKind::find) {
                Some(kind) if kind.is_stop() => events.push(kind.name().to_owned()),
                Some(kind) => {
                    let message =
                        format!("considerations are judged at stops, not at `{}`", kind.name());
                    let found = Diagnostic::error("event-cannot-block", item.span.clone(), message);
                    self.diagnostics.push(found.with_help("write `stop` or `subagent_stop`"));
                }
                None => self.unknown("unknown-event", "event", item, &known),
            }
        }
        match node {
            None => events.push("stop".to_owned()),
            Some(node) if node.items().is_some_and(<[Node]>::is_empty) => {
                let message = format!("`{}` is judged at no event", entry.id);
                let found = Diagnostic::error("no-event", node.span.clone(), message);
                self.diagnostics.push(found.with_help("leave `on` out, or write `enabled: false`"));
            }
            Some(_) => {}
        }
        events
    }

    fn unknown(&mut self, code: &'static str, what: &str, node: &Node, known: &[&str]) {
        let name = node.text().unwrap_or_default();
        let found =
            Diagnostic::error(code, node.span.clone(), format!("there is no {what} `{name}`"));
        self.diagnostics.push(found.with_help_if(suggest::did_you_mean(name, known)));
    }

    fn session_type(&mut self, entry: &Entry) -> Option<SessionType> {
        let Some(when) = self.expression(entry.get("when"), Type::Bool) else {
            self.missing(entry, "when", "a session type says which sessions are of it");
            return None;
        };
        Some(SessionType { id: entry.id.clone(), when })
    }

    /// Message texts; a pack's own come before the inherited ones.
    fn messages<'n>(
        &mut self,
        nodes: impl Iterator<Item = &'n Arc<Node>>,
    ) -> BTreeMap<String, Vec<MessageChoice>> {
        let mut messages: BTreeMap<String, Vec<MessageChoice>> = BTreeMap::new();
        for (key, choices) in nodes.filter_map(|it| it.entries()).flatten() {
            let id = key.text().unwrap_or_default();
            if !shapes::MESSAGES.contains(&id) {
                self.unknown("unknown-message", "message", key, shapes::MESSAGES);
            }
            let names = records::names("messages.yaml", id);
            for node in choices.items().unwrap_or_default() {
                let voice = node.get("voice").and_then(Node::text).map(str::to_owned);
                if let Some(choice) = self.speaking_of(names, |it| it.choice(node)) {
                    let choice = MessageChoice { voice, choice };
                    messages.entry(id.to_owned()).or_default().push(choice);
                }
            }
        }
        messages
    }

    /// Complains about a key that is not there, unless a merge key may have brought it or another key
    /// is a slip of it: those are findings of their own.
    fn missing(&mut self, entry: &Entry, key: &str, why: &str) {
        let keys = entry.layers.first().and_then(|it| it.entries()).unwrap_or_default();
        let stands_for_it = |it: &Node| match it.text() {
            Some(name) => name != key && suggest::nearest(name, &[key]).is_some(),
            None => true,
        };
        if keys.iter().any(|(it, _)| stands_for_it(it)) {
            return;
        }
        if let Some(span) = entry.span() {
            let message = format!("`{}` has no `{key}`", entry.id);
            let found = Diagnostic::error("missing-key", span.clone(), message);
            self.diagnostics.push(found.with_help(why));
        }
    }
}
