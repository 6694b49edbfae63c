//! `signals.yaml`: the kinds of signals, when a signal is created, and what a drift leads to.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::builder::{Builder, text};
use super::field_value::words;
use super::fields::{CHOICES, DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS, WHEN};
use super::layers::{LayerEntry, Layers};
use super::record::{Conversion, TEMPLATE, record, words};
use super::records::{self, SEVERITIES};
use super::{Choice, Expression};
use policyd_fact_table::record::Shape;
use policyd_fact_table::types::Names;
use policyd_facts::glob::word_matches;
use policyd_yaml::Diagnostic;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;

const FILE: &str = "signals.yaml";

/// Effects of a signal on a loop that polls signals between two turns.
const INTERRUPTS: &[&str] = &["stop", "pause", "input"];

/// Kinds of signals, triggers, and rules about drifts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    /// Kinds of signals.
    pub kinds: Vec<SignalKind>,
    /// Triggers: each true one creates its signal.
    pub triggers: Vec<SignalTrigger>,
    /// Rules about drifts: the first true one applies.
    pub drift: Vec<DriftRule>,
    /// Steps after every drift, in order.
    pub drift_always: Vec<DriftStep>,
}

/// Storage of a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalStorage {
    /// A file whose content does not matter.
    Presence,
    /// A JSON file.
    #[default]
    Json,
    /// A log of JSON lines, which is not consumed.
    Log,
}

words! {
    SignalStorage { Presence = "presence", Json = "json", Log = "log" }
}

/// Type of a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldType {
    /// Any text.
    #[default]
    Text,
    /// A number.
    Number,
    /// True or false.
    Flag,
    /// A list of texts.
    List,
    /// A point in time.
    Time,
    /// `low` to `critical`.
    Severity,
}

words! {
    FieldType { Text = "text", Number = "number", Flag = "flag", List = "list", Time = "time", Severity = "severity" }
}

/// Effect of a signal that is not answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeoutAction {
    /// The task is dead-lettered.
    DeadLetter,
    /// A human is notified.
    Alert,
    /// The signal is void.
    Discard,
}

words! {
    TimeoutAction { DeadLetter = "dead_letter", Alert = "alert", Discard = "discard" }
}

/// One field of a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalField {
    /// Name of the field.
    pub name: String,
    /// Type of the value.
    pub kind: FieldType,
    /// Whether `policyd signal emit` requires the field.
    pub required: bool,
    /// Description; can be empty.
    pub description: String,
}

/// One kind of signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalKind {
    /// Name, or a glob over names.
    pub id: String,
    /// Storage of the signal.
    pub form: SignalStorage,
    /// Meaning of the signal, in one sentence.
    pub purpose: String,
    /// Who creates it.
    pub created_by: String,
    /// Who acts on it.
    pub consumed_by: String,
    /// Fields of the signal.
    pub fields: Vec<SignalField>,
    /// Timeout of the answer.
    pub answer_within: Option<Duration>,
    /// Effects of the timeout.
    pub on_timeout: Vec<TimeoutAction>,
    /// Lifetime of a signal that is not consumed.
    pub expires: Option<Duration>,
    /// Signal that this one approves. Empty: none.
    pub approves: String,
    /// Whether its consumption resets the count of drifts.
    pub ends_drift: bool,
    /// Effect on a loop between two turns: `stop`, `pause`, `input`, or empty.
    pub interrupts: String,
    /// Whether a pending signal is reported to the agent.
    pub shown: bool,
    /// Texts for the agent, over `signal`.
    pub text: Vec<Choice>,
}

impl SignalKind {
    /// Whether a human answers it.
    #[must_use]
    pub fn awaits_human(&self, all: &Signals) -> bool {
        all.kinds.iter().any(|it| !it.approves.is_empty() && it.approves == self.id)
    }

    /// Whether it has a field of this name.
    #[must_use]
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|it| it.name == name)
    }
}

/// Signal by which an agent tells its supervisor that it reached its goal.
pub const CLAIM: &str = "COMPLETION_REQUESTED";

/// When a signal is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalTrigger {
    pub id: String,
    /// Over `run`.
    pub when: Expression,
    /// The signal that is created.
    pub emit: String,
    /// Why; a template over `run`.
    pub reason: String,
    /// How much it matters.
    pub severity: String,
}

impl Default for SignalTrigger {
    fn default() -> Self {
        let (id, emit, reason) = (String::new(), String::new(), String::new());
        Self { id, when: Expression::default(), emit, reason, severity: "high".to_owned() }
    }
}

/// What a drift leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftRule {
    pub id: String,
    /// Over `drift`.
    pub when: Expression,
    /// Machine-readable name of the response, such as `warn_and_continue`.
    pub action: String,
    /// Message to the agent: a template over `drift`.
    pub message: String,
    /// Signals that are created, unless one is pending.
    pub emit: Vec<String>,
    /// Whether the task stands still.
    pub pause_task: bool,
    /// Whether the author of the task reviews it.
    pub escalate: bool,
    /// Role of the reviewer. Empty: no review.
    pub reviewer: String,
}

/// What any drift leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftStep {
    /// Machine-readable name of the step.
    pub id: String,
    /// Instruction to the agent: templates over `drift`.
    pub text: Vec<Choice>,
}

record! {
    const FIELD: RecordType<SignalField> = {
        type: words::<FieldType>() => kind, "What it holds; `text` by default.";
        required: Kind::Bool => required, "Whether `policyd signal emit` wants it.";
        use DESCRIPTION => description;
    }

    const SIGNAL: RecordType<SignalKind> = {
        id [mandatory()]: Kind::Text => id, "Its name, or a glob over names: `FEATURE_READY_*`.";
        form: words::<SignalStorage>() => form, "How it is kept; `json` by default.";
        purpose: Kind::Text => purpose, "What it says, in one sentence.";
        created_by: Kind::Text => created_by, "Who creates it.";
        consumed_by: Kind::Text => consumed_by, "Who acts on it.";
        fields: Kind::Map(&FIELD.map) => fields by SIGNAL_FIELDS, "What it says beside its name.";
        answer_within: Kind::Duration => answer_within,
            "Time after which it counts as not answered.";
        on_timeout: Kind::List(&words::<TimeoutAction>()) => on_timeout,
            "Actions then: dead-letter its task, notify a human.";
        expires: Kind::Duration => expires, "Time after which an unconsumed one expires.";
        approves: Kind::Text => approves, "The signal that this one is a human's yes to.";
        ends_drift: Kind::Bool => ends_drift,
            "Whether the count of drifts restarts when it is consumed.";
        interrupts: Kind::Choice(INTERRUPTS) => interrupts,
            "What it does to a loop between two turns.";
        shown: Kind::Bool => shown, "Whether the agent sees it while it is pending.";
        text: CHOICES, "Message to the agent.";
        use ENABLED;
        use OVERRIDE;
    }
}

/// Fields of a signal. Invalid names are reported by `report_invalid_fields`.
const SIGNAL_FIELDS: Conversion<Vec<SignalField>> = Conversion::reading(|node, builder| {
    let fields = node.entries().unwrap_or_default().iter();
    let fields = fields.filter(|(key, _)| may_be_field(key)).map(|(key, node)| {
        let field = FIELD.read(&LayeredMap::from_iter([node]), builder);
        SignalField { name: text(Some(key)), ..field }
    });
    Some(fields.collect())
});

record! {
    const TRIGGER: RecordType<SignalTrigger> = {
        use ID => id;
        use WHEN => when;
        emit [needed()]: Kind::Text => emit, "The signal that is created.";
        reason [needed()]: Kind::Template => reason by TEMPLATE, "Why, in one sentence.";
        severity: Kind::Choice(SEVERITIES) => severity, "How much it matters; `high` by default.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }

    const DRIFT: RecordType<DriftRule> = {
        use ID => id;
        use WHEN => when;
        do [needed()]: Kind::Text => action, "Machine-readable name, such as `warn_and_continue`.";
        message [needed()]: Kind::Template => message by TEMPLATE, "Message to the agent.";
        emit: TEXTS => emit, "Signals that are created, unless one is pending.";
        pause_task: Kind::Bool => pause_task, "Whether the task stands still.";
        escalate: Kind::Bool => escalate, "Whether the author of the task reviews it.";
        reviewer: Kind::Text => reviewer, "Role of the reviewer; empty: no review.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }

    const DRIFT_ALWAYS: RecordType<DriftStep> = {
        use ID => id;
        text [mandatory()]: CHOICES => text, "Instruction to the agent.";
        use ENABLED;
        use OVERRIDE;
    }

    pub(super) const SIGNALS: RecordType<Signals> = {
        signals: SIGNAL.list, "The signals there are.";
        triggers: TRIGGER.list, "When one is created; any that holds.";
        drift: DRIFT.list, "What a drift leads to; the first that holds.";
        drift_always: DRIFT_ALWAYS.list, "What any drift leads to, in order.";
    }
}

impl Builder<'_> {
    pub(super) fn signals(&mut self, layers: &Layers) -> Signals {
        // The names below can be those of kinds of the packs below.
        let own_only = std::mem::take(&mut self.own_only);
        let kinds = self.section_with(layers, FILE, "signals", &SIGNAL, |builder, entry, kind| {
            builder.signal_kind(entry, kind)
        });
        self.own_only = own_only;
        let all = Signals { kinds, ..Signals::default() };
        self.report_unknown_approvals(layers, &all);
        let triggers =
            self.section_with(layers, FILE, "triggers", &TRIGGER, |builder, entry, trigger| {
                entry.get("emit").into_iter().for_each(|node| builder.known_signal(node, &all));
                trigger
            });
        let drift = self.section_with(layers, FILE, "drift", &DRIFT, |builder, entry, rule| {
            let emitted = entry.get("emit").and_then(Node::items).unwrap_or_default();
            emitted.iter().for_each(|node| builder.known_signal(node, &all));
            rule
        });
        let drift_always = self.section(layers, FILE, "drift_always", &DRIFT_ALWAYS);
        Signals { triggers, drift, drift_always, ..all }
    }

    fn signal_kind(&mut self, entry: &LayerEntry, kind: SignalKind) -> SignalKind {
        self.report_invalid_name(entry);
        self.report_invalid_fields(entry);
        let names = Names { record: Some(Arc::new(record_of(&kind.fields))), ..Names::default() };
        let text = self.speaking(Arc::new(names), |builder| builder.choices(entry.get("text")));
        if kind.shown && text.is_empty() {
            self.missing(entry, "text", "write the message to the agent");
        }
        SignalKind { text, ..kind }
    }

    /// Reports a name that cannot be the name of a file.
    fn report_invalid_name(&mut self, entry: &LayerEntry) {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
        let stars = entry.id.matches('*').count();
        if entry.id.chars().all(is_valid) && stars <= 1 && entry.id != "*" {
            return;
        }
        if let Some(span) = entry.span() {
            let message = format!("`{}` is not a valid signal name", entry.id);
            let found = Diagnostic::error("bad-name", span.clone(), message);
            self.diagnostics.push(found.with_help(
                "write letters, digits, `_` and `-`, with one `*` at most, as in `FEATURE_READY_*`",
            ));
        }
    }

    fn report_invalid_fields(&mut self, entry: &LayerEntry) {
        let fields = entry.get("fields").and_then(Node::entries).unwrap_or_default();
        for (key, _) in fields.iter().filter(|(key, _)| !may_be_field(key)) {
            let name = key.text().unwrap_or_default();
            let message = format!("`{name}` cannot be a field of a signal");
            let found = Diagnostic::error("bad-name", key.span.clone(), message);
            self.diagnostics.push(found.with_help(
                "take another name, of letters, digits and `_`; every signal has an `id`, a `name` \
                 and the like already",
            ));
        }
    }

    /// Reports signals that a signal approves and that do not exist.
    fn report_unknown_approvals(&mut self, layers: &Layers, all: &Signals) {
        let known: Vec<&str> = all.kinds.iter().map(|kind| kind.id.as_str()).collect();
        let entries = layers.section(FILE, "signals").iter();
        for node in entries.filter_map(|entry| entry.get("approves")) {
            if node.text().is_some_and(|name| !name.is_empty() && !known.contains(&name)) {
                self.unknown("unknown-name", "signal", node, &known);
            }
        }
    }

    /// Reports a signal that does not exist.
    pub(super) fn known_signal(&mut self, node: &Node, signals: &Signals) {
        if signals.kind(node.text().unwrap_or_default()).is_none() {
            let known: Vec<&str> = signals.kinds.iter().map(|kind| kind.id.as_str()).collect();
            self.unknown("unknown-name", "signal", node, &known);
        }
    }
}

fn may_be_field(key: &Node) -> bool {
    let name = key.text().unwrap_or_default();
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain && !name.is_empty() && !records::signals::is_common(name)
}

/// Returns the record that the text of a signal sees.
pub(super) fn text_record(entry: &LayerEntry) -> Shape {
    record_of(&SIGNAL.read_untyped(&entry.map()).fields)
}

/// Returns the record that texts of a kind of signals see, with the fields of the kind.
#[must_use]
pub fn record_of(fields: &[SignalField]) -> Shape {
    let mut own = records::signals::common();
    for field in fields.iter().filter(|field| !records::signals::is_common(&field.name)) {
        let doc = match field.description.as_str() {
            "" => "As `signals.yaml` says.",
            doc => doc,
        };
        own.push(match field.kind {
            FieldType::Text | FieldType::Time => records::fields::text(&field.name, doc),
            FieldType::Severity => records::fields::text(&field.name, doc)
                .of_values(&records::fields::or_none(SEVERITIES)),
            FieldType::Number => records::fields::decimal(&field.name, doc),
            FieldType::Flag => records::fields::flag(&field.name, doc),
            FieldType::List => records::fields::texts(&field.name, doc),
        });
    }
    Shape { name: "signal".to_owned(), fields: own }
}

impl Signals {
    /// The kind of a signal: the one of its name, else of the longest glob that fits.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&SignalKind> {
        let named = self.kinds.iter().find(|it| it.id == name && !it.id.contains('*'));
        named.or_else(|| {
            let globs = self.kinds.iter().filter(|it| fits(&it.id, name));
            globs.max_by_key(|it| it.id.len())
        })
    }

    /// The kind by which a human says yes to a signal of this kind.
    #[must_use]
    pub fn approval_of(&self, kind: &SignalKind) -> Option<&SignalKind> {
        self.kinds.iter().find(|it| it.approves == kind.id)
    }
}

/// Returns whether a name matches a glob whose `*` matches at least one character.
fn fits(glob: &str, name: &str) -> bool {
    let written = glob.chars().filter(|it| *it != '*').count();
    glob.contains('*') && name.chars().count() > written && word_matches(glob, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_is_never_empty() {
        for (glob, name, is_of_it) in [
            ("FEATURE_READY_*", "FEATURE_READY_auth", true),
            ("FEATURE_READY_*", "FEATURE_READY_", false),
            ("FEATURE_READY_*", "FEATURE_READY", false),
            ("MERGE_REQUESTED_*", "MERGE_REQUESTED_feat/login", true),
            ("STOP", "STOP", false),
        ] {
            assert_eq!(fits(glob, name), is_of_it, "{glob} {name}");
        }
    }
}
