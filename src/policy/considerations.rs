//! `considerations.yaml`, `checkers.yaml`, and `session_types.yaml`: the checks of a stop, their named conditions, and
//! the classification of sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::builder::{Builder, place};
use super::field_value::words;
use super::fields::{CHOICES, DESCRIPTION, EVIDENCE, FORMERLY, ID, OVERRIDE, TEXTS, enabled};
use super::layers::{Entries, LayerEntry};
use super::record::{EXPIRES, record, words};
use super::{Choice, Expression, OnError, SourceLocation};
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_fact_table::types::{Names, Type};
use policyd_facts::event::{EVENT_NAMES, EventKind};
use policyd_yaml::Diagnostic;
use policyd_yaml::deferred::Lazy;
use policyd_yaml::node::Node;
use policyd_yaml::shape::{Field, Kind, field};

/// Session type of checks that name none; amplihack's default.
pub const DEFAULT_SESSION_TYPE: &str = "DEVELOPMENT";

/// Severity of a check that does not pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Severity {
    /// The check blocks the stop, on structural evidence.
    Blocker,
    /// The check is reported only.
    #[default]
    Warning,
}

words! {
    Severity { Blocker = "blocker", Warning = "warning" }
}

/// Mode of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The rule has its full effect.
    #[default]
    Enforce,
    /// The rule is reported and does not block.
    Warn,
    /// The rule is logged only.
    Shadow,
}

words! {
    Mode { Enforce = "enforce", Warn = "warn", Shadow = "shadow" }
}

/// A check at a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Id, unique in `considerations.yaml`.
    pub id: String,
    /// Earlier ids.
    pub formerly: Vec<String>,
    /// Heading of the check in reports.
    pub category: Arc<str>,
    /// Question with a yes/no answer; yes is good.
    pub question: Arc<str>,
    /// Instruction to the agent if the check does not pass.
    pub guidance: Arc<str>,
    /// Severity of the check.
    pub severity: Severity,
    /// Whether the check is evaluated.
    pub enabled: bool,
    /// Session types to which the check applies; `*` is all.
    pub session_types: Vec<String>,
    /// Events at which the check is evaluated.
    pub on: Vec<EventKind>,
    /// Condition under which the check applies. `None`: always.
    pub when: Option<Expression>,
    /// Conditions and texts of the check.
    pub check: CheckDefinition,
    /// Whether the check reads `rule.keywords_seen`.
    pub asks_for_keywords: bool,
    /// Whether the check reads `rationalizations`.
    pub asks_for_excuses: bool,
    /// Signal that is created if the check does not pass. Empty: none.
    pub emit: String,
    /// Mode of the check.
    pub mode: Mode,
    /// Whether the check is only logged, because policyd observes.
    #[serde(skip)]
    pub observed: bool,
    /// Whether the same warning is reported once per session only.
    pub once: bool,
    /// Whether the check can block on message text alone.
    pub words: bool,
    /// Effect of a failed evaluation.
    pub on_error: OnError,
    /// Time from which the check is not evaluated, in milliseconds since 1970.
    pub expires_millis: Option<i64>,
    /// Location of the check.
    pub place: Arc<SourceLocation>,
}

/// A session type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionType {
    /// Id, unique in `session_types.yaml`.
    pub id: String,
    /// Condition under which a session has the type.
    pub when: Expression,
}

/// Conditions and texts of a check: a named checker, or those of the entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckDefinition {
    /// Name of the checker, or id of the check.
    pub name: String,
    /// Condition of a named checker. `None`: always.
    pub when: Option<Expression>,
    /// Conditions and texts, decoded when the check applies.
    pub body: Lazy<CheckBody>,
    /// Facts that the expressions and texts read.
    pub uses: Lazy<Vec<String>>,
}

/// Conditions and texts of a check that applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckBody {
    /// Condition under which the check passes.
    pub satisfied: Expression,
    /// Condition under which a blocker that does not pass blocks. `None`: always.
    pub blocking: Option<Expression>,
    /// One sentence that explains the result.
    pub details: Vec<Choice>,
    /// Evidence: commands, files, quotes.
    pub evidence: Vec<Choice>,
    /// External problem, such as a missing tool; for the user.
    pub error: Vec<Choice>,
}

const CHECK_WHEN: Field =
    field("when", Kind::Expression, "Holds where it applies; skipped elsewhere.");
const SATISFIED: Field = field("satisfied", Kind::Expression, "The check passes if this is true.");
const BLOCKING: Field = field(
    "blocking",
    Kind::Expression,
    "An unsatisfied blocker blocks only where this holds, and warns elsewhere.",
);
const DETAILS: Field = field("details", CHOICES, "One sentence that explains the result.");
const EVIDENCES: Field = field("evidence", EVIDENCE, "What decided: commands, files, quotes.");
const ERROR: Field = field("error", CHOICES, "What went wrong outside, such as a missing tool.");

/// Keys of a check that need no further checks.
#[derive(Debug, Default)]
pub(super) struct CheckKeys {
    category: String,
    question: String,
    guidance: String,
    message: String,
    severity: Severity,
    when: Option<Expression>,
    emit: String,
    mode: Mode,
    once: bool,
    words: bool,
    on_error: OnError,
    expires_millis: Option<i64>,
}

record! {
    /// An entry of `considerations.yaml`, a superset of amplihack's format.
    pub(super) const CONSIDERATION: RecordType<CheckKeys> = {
        use ID;
        use FORMERLY;
        category [needed()]: Kind::Text => category, "Heading it is shown under.";
        question [needed()]: Kind::Text => question, "What is asked.";
        description: Kind::Text, "Reason for the check, for readers of the pack.";
        guidance: Kind::Text => guidance, "What to do when it is not satisfied.";
        severity [needed()]: words::<Severity>() => severity, "How much it matters.";
        checker: Kind::Text, "A named checker of `checkers.yaml`, or `generic`.";
        use enabled("Whether it is judged at all.");
        applicable_session_types: TEXTS, "Session types it applies to; `*` is all.";
        on: TEXTS, "Events it is judged at; `stop` by default.";
        use CHECK_WHEN => when;
        use SATISFIED;
        use BLOCKING;
        use DETAILS;
        use EVIDENCES;
        use ERROR;
        message: Kind::Text => message, "Same as `guidance`.";
        emit: Kind::Text => emit, "A signal that is created where it is not satisfied.";
        mode: words::<Mode>() => mode, "How far it is in force.";
        once: Kind::Bool => once, "Report the same warning once per session.";
        words: Kind::Bool => words,
            "Lets a check block that reads only messages. Give a `reason`.";
        on_error: words::<OnError>() => on_error,
            "What an evaluation error means; `allow` by default.";
        expires: Kind::Date => expires_millis by EXPIRES, "From this day on it is not judged.";
        reason: Kind::Text, "Why it is an exception.";
        use OVERRIDE;
    }

    /// An entry of `checkers.yaml`.
    pub(super) const CHECKER: RecordType<CheckBody> = {
        use CHECK_WHEN;
        use SATISFIED => satisfied;
        use BLOCKING => blocking;
        use DETAILS => details;
        use EVIDENCES => evidence;
        use ERROR => error;
        use OVERRIDE;
    }

    /// An entry of `session_types.yaml`.
    pub(super) const SESSION_TYPE: RecordType<SessionType> = {
        id [mandatory()]: Kind::Text => id, "Name of the type.";
        when [needed()]: Kind::Expression => when, "Holds where a session is of this type.";
        use DESCRIPTION;
        use OVERRIDE;
    }
}

/// The named checkers of the packs below. Each is built when a check names it.
#[derive(Debug)]
pub(super) struct CheckerCache {
    entries: Entries,
    names: Arc<Names>,
    built: BTreeMap<String, OnceLock<Option<CheckDefinition>>>,
}

impl CheckerCache {
    pub(super) fn new(entries: Entries, names: Arc<Names>) -> Self {
        let built = entries.iter().map(|entry| (entry.id.clone(), OnceLock::new())).collect();
        Self { entries, names, built }
    }

    /// Returns a checker. Its findings are those of the pack that contains it.
    fn get(&self, name: &str) -> Option<&CheckDefinition> {
        let build = || {
            let entry = self.entries.iter().find(|entry| entry.id == name)?;
            let mut findings = Vec::new();
            let mut builder = Builder::new(true, &mut findings);
            builder.names = Arc::clone(&self.names);
            builder.checker(entry)
        };
        self.built.get(name)?.get_or_init(build).as_ref()
    }
}

/// The named checkers that a check can use.
pub(super) struct Checkers<'a> {
    /// Those of the pack itself.
    pub(super) own: &'a BTreeMap<String, CheckDefinition>,
    /// Those of the packs below.
    pub(super) below: Option<&'a CheckerCache>,
    /// The entries of both.
    pub(super) known: &'a Entries,
}

impl Checkers<'_> {
    fn get(&self, name: &str) -> Option<&CheckDefinition> {
        self.own.get(name).or_else(|| self.below?.get(name))
    }
}

/// Returns the session types to which a check applies, by its `applicable_session_types`.
#[must_use]
pub fn applicable_types(said: Option<&Node>) -> Vec<&str> {
    let items = said.and_then(Node::items).unwrap_or_default();
    let types: Vec<&str> = items.iter().filter_map(Node::text).collect();
    if types.is_empty() { vec![DEFAULT_SESSION_TYPE] } else { types }
}

impl Builder<'_> {
    pub(super) fn session_type(&mut self, entry: &LayerEntry) -> Option<SessionType> {
        if entry.get("when").is_none() {
            self.missing(entry, "when", "a session type says which sessions are of it");
            return None;
        }
        Some(SESSION_TYPE.read(&entry.map(), self))
    }

    pub(super) fn checker(&mut self, entry: &LayerEntry) -> Option<CheckDefinition> {
        if entry.get("satisfied").is_none() {
            self.missing(entry, "satisfied", "a checker says when it is satisfied");
            return None;
        }
        self.uses.clear();
        let body = CHECKER.read(&entry.map(), self);
        let when = self.expression(entry.get("when"), Type::Bool);
        let uses: Vec<String> = std::mem::take(&mut self.uses).into_iter().collect();
        Some(CheckDefinition { name: entry.id.clone(), when, body: body.into(), uses: uses.into() })
    }

    pub(super) fn consideration(
        &mut self,
        entry: &LayerEntry,
        checkers: &Checkers<'_>,
    ) -> Option<Check> {
        self.must_have(entry, &CONSIDERATION, "every consideration has it");
        let check = self.check(entry, checkers)?;
        let keys = CONSIDERATION.read(&entry.map(), self);
        let own_uses = keys.when.iter().flat_map(|condition| condition.uses.iter());
        let uses: Vec<&String> = own_uses.chain(check.uses.iter()).collect();
        let asks_for = |fact: &str| uses.iter().any(|used| used.starts_with(fact));
        let asks_for_keywords = asks_for("rule.keywords_seen");
        let sources = FactSources::of_uses(uses.iter().copied());
        let asks_for_excuses = sources.contains(FactSource::Excuses);
        let guidance = if entry.get("guidance").is_some() { &keys.guidance } else { &keys.message };
        Some(Check {
            guidance: guidance.trim().into(),
            id: entry.id.clone(),
            formerly: entry.formerly.clone(),
            category: keys.category.into(),
            question: keys.question.into(),
            severity: keys.severity,
            enabled: entry.is_used(),
            session_types: self.session_types(entry),
            on: self.events(entry),
            when: keys.when,
            check,
            asks_for_keywords,
            asks_for_excuses,
            emit: keys.emit,
            mode: keys.mode,
            observed: false,
            once: keys.once,
            words: keys.words,
            on_error: keys.on_error,
            expires_millis: keys.expires_millis,
            place: Arc::new(entry.span().map(place).unwrap_or_default()),
        })
    }

    /// Returns the check that an entry states, or the named one.
    fn check(&mut self, entry: &LayerEntry, checkers: &Checkers<'_>) -> Option<CheckDefinition> {
        if entry.get("satisfied").is_some() {
            // `when` of the entry is the condition of the consideration.
            let check = self.checker(entry)?;
            return Some(CheckDefinition { when: None, ..check });
        }
        let Some(node) = entry.get("checker") else {
            let keys = ["checker", "satisfied"];
            self.missing_one_of(entry, keys, "name a checker, or write `satisfied`");
            return None;
        };
        let name = node.text()?;
        if let Some(check) = checkers.get(name) {
            return Some(self.overlaid(check.clone(), entry));
        }
        let known: Vec<&str> = checkers.known.iter().map(|entry| entry.id.as_str()).collect();
        if !known.contains(&name) {
            self.unknown("unknown-name", "checker", node, &known);
        }
        None
    }

    /// Returns a named checker with the keys that an entry changes.
    fn overlaid(&mut self, check: CheckDefinition, entry: &LayerEntry) -> CheckDefinition {
        self.uses.clear();
        let (mut body, mut uses) = (check.body.into_inner(), check.uses.into_inner());
        (CHECKER.fill)(&mut body, &entry.map(), self);
        uses.extend(std::mem::take(&mut self.uses));
        CheckDefinition { body: body.into(), uses: uses.into(), ..check }
    }

    fn session_types(&mut self, entry: &LayerEntry) -> Vec<String> {
        let node = entry.get("applicable_session_types");
        let items = node.and_then(Node::items).unwrap_or_default();
        let names = Arc::clone(&self.names);
        for item in items {
            let name = item.text().unwrap_or_default();
            if name != "*" && !names.session_types.contains(name) {
                let known: Vec<&str> = names.session_types.iter().map(String::as_str).collect();
                self.unknown("unknown-name", "session type", item, &known);
            }
        }
        applicable_types(node).into_iter().map(str::to_owned).collect()
    }

    fn events(&mut self, entry: &LayerEntry) -> Vec<EventKind> {
        let node = entry.get("on");
        let mut events = Vec::new();
        for item in node.and_then(Node::items).unwrap_or_default() {
            match item.text().and_then(EventKind::find) {
                Some(kind) if kind.is_stop() => events.push(kind),
                Some(kind) => {
                    let message =
                        format!("considerations are judged at stops, not at `{}`", kind.name());
                    let found = Diagnostic::error("event-cannot-block", item.span.clone(), message);
                    self.diagnostics.push(found.with_help("write `stop` or `subagent_stop`"));
                }
                None => self.unknown("unknown-name", "event", item, EVENT_NAMES),
            }
        }
        match node {
            None => events.push(EventKind::Stop),
            Some(node) if node.items().is_some_and(<[Node]>::is_empty) => {
                let message = format!("`{}` is judged at no event", entry.id);
                let found = Diagnostic::error("event-cannot-block", node.span.clone(), message);
                self.diagnostics.push(found.with_help("leave `on` out, or write `enabled: false`"));
            }
            Some(_) => {}
        }
        events
    }
}
