//! What `signals.yaml` means: the kinds of signals, when one is created, what a drift leads to.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Choice, Expression};
use crate::facts::glob::word_matches;

/// `signals.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    /// The signals there are.
    pub kinds: Vec<SignalKind>,
    /// When one is created; any that holds.
    pub triggers: Vec<SignalTrigger>,
    /// What a drift leads to; the first that holds.
    pub drift: Vec<DriftRule>,
    /// What any drift leads to, in order.
    pub drift_always: Vec<DriftStep>,
}

/// How a signal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// A file that need only be there.
    Presence,
    /// A file that holds JSON.
    Json,
    /// A log of JSON lines, which nobody consumes.
    Log,
}

impl Form {
    /// Its name in `signals.yaml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Presence => "presence",
            Self::Json => "json",
            Self::Log => "log",
        }
    }

    /// The form of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        [Self::Presence, Self::Json, Self::Log].into_iter().find(|it| it.as_str() == name)
    }
}

/// What a field of a signal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldType {
    /// Any text.
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

impl FieldType {
    /// Its name in `signals.yaml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Flag => "flag",
            Self::List => "list",
            Self::Time => "time",
            Self::Severity => "severity",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        [Self::Text, Self::Number, Self::Flag, Self::List, Self::Time, Self::Severity]
            .into_iter()
            .find(|it| it.as_str() == name)
    }
}

/// What becomes of a signal that nobody answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeoutAction {
    /// Its task goes to the dead letters.
    DeadLetter,
    /// A human is told.
    Alert,
    /// Nothing more: it is void.
    Discard,
}

impl TimeoutAction {
    /// Its name in `signals.yaml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeadLetter => "dead_letter",
            Self::Alert => "alert",
            Self::Discard => "discard",
        }
    }

    /// The action of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        [Self::DeadLetter, Self::Alert, Self::Discard].into_iter().find(|it| it.as_str() == name)
    }
}

/// One field of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalField {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: FieldType,
    /// Whether `policyd signal emit` wants it.
    pub required: bool,
    /// For people; may be empty.
    pub description: String,
}

/// One kind of signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalKind {
    /// Its name, or a glob over names.
    pub id: String,
    /// How it is kept.
    pub form: Form,
    /// What it says.
    pub purpose: String,
    /// Who creates it.
    pub created_by: String,
    /// Who acts on it.
    pub consumed_by: String,
    /// What it says beside its name.
    pub fields: Vec<SignalField>,
    /// Time after which it counts as not answered.
    pub answer_within: Option<Duration>,
    /// What becomes of it then.
    pub on_timeout: Vec<TimeoutAction>,
    /// Time after which one that nobody consumed is void.
    pub expires: Option<Duration>,
    /// The signal that this one is a human's yes to; empty for none.
    pub approves: String,
    /// Whether drifts are counted anew once it was consumed.
    pub ends_drift: bool,
    /// What it does to a loop between two turns: `stop`, `pause`, `input`, or nothing.
    pub interrupts: String,
    /// Whether the agent is told of it while it is pending.
    pub shown: bool,
    /// What the agent is told, over `signal`.
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

/// When a signal is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalTrigger {
    /// Its id.
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

/// What a drift leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftRule {
    /// Its id.
    pub id: String,
    /// Over `drift`.
    pub when: Expression,
    /// Its name for programs.
    pub action: String,
    /// What the agent is told; a template over `drift`.
    pub message: String,
    /// Signals that are created, unless one is pending.
    pub emit: Vec<String>,
    /// Whether the task stands still.
    pub pause_task: bool,
    /// Whether the task is looked at by whoever gave it.
    pub escalate: bool,
    /// Who looks at it; empty for nobody.
    pub reviewer: String,
}

/// What any drift leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftStep {
    /// Its name for programs.
    pub id: String,
    /// What the agent is told to do, over `drift`.
    pub text: Vec<Choice>,
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

/// Whether a name is of a glob, with something in the place of the `*`.
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
