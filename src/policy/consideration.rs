//! Considerations: what is asked at a stop, how it is judged, and how much it matters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::record::words;
use super::{Choice, Expression, OnError, Place};
use crate::deferred::Deferred;
use crate::facts::event::EventKind;

/// How much an unsatisfied consideration matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Severity {
    /// It blocks the stop, on structural evidence.
    Blocker,
    /// It is said.
    Warning,
}

/// How far a rule is in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The rule has its full effect.
    #[default]
    Enforce,
    /// Said, never blocks.
    Warn,
    /// Recorded only.
    Shadow,
}

words! {
    Mode { Enforce = "enforce", Warn = "warn", Shadow = "shadow" }
}

/// A check at a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consideration {
    /// Its id.
    pub id: String,
    /// Heading it is shown under.
    pub category: Arc<str>,
    /// What is asked.
    pub question: Arc<str>,
    /// What to do when it is not satisfied.
    pub guidance: Arc<str>,
    /// How much it matters.
    pub severity: Severity,
    /// Whether it is judged at all.
    pub enabled: bool,
    /// Session types it applies to; `*` is all.
    pub session_types: Vec<String>,
    /// Events at which it is evaluated.
    pub on: Vec<EventKind>,
    /// Holds where it applies.
    pub when: Option<Expression>,
    /// How it is judged.
    pub check: Check,
    /// Whether it asks for the words of its question (`rule.keywords_seen`).
    pub asks_for_keywords: bool,
    /// Whether it asks for excuses (`rationalizations.…`).
    pub asks_for_excuses: bool,
    /// The signal that is created where it is not satisfied; empty for none.
    pub emit: String,
    /// How far it is in force.
    pub mode: Mode,
    /// Whether the same warning is reported once per session only.
    pub once: bool,
    /// What an evaluation error means.
    pub on_error: OnError,
    /// From this time on it is not judged, in milliseconds.
    pub expires_millis: Option<i64>,
    /// Where it is written.
    pub place: Arc<Place>,
}

/// How a consideration is judged: a named checker, or written in place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the checker, or the consideration's id.
    pub name: String,
    /// Holds where the check applies.
    pub when: Option<Expression>,
    /// What is asked where it applies.
    pub body: Deferred<CheckBody>,
    /// Facts that any of its expressions and texts read.
    pub uses: Deferred<Vec<String>>,
}

/// What a check asks and says where it applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckBody {
    /// Holds where the consideration is satisfied.
    pub satisfied: Expression,
    /// Where it is not satisfied: whether a blocker blocks.
    pub blocking: Option<Expression>,
    /// One sentence that explains the result.
    pub details: Vec<Choice>,
    /// What decided.
    pub evidence: Vec<Choice>,
    /// What went wrong outside, for people.
    pub error: Vec<Choice>,
}
