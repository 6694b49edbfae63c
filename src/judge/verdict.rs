//! Verdicts: what one consideration came to, status and consequence apart.

use std::sync::Arc;

use crate::policy::{Mode, Place, Severity};
use crate::script::parts::Part;

/// Whether a consideration holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    Satisfied,
    /// It does not hold.
    Unsatisfied,
    /// It was not judged, and why.
    Skipped(&'static str),
    /// It could not be judged, and why.
    Unknown(String),
}

impl Status {
    /// Stable name, as logged.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Satisfied => "satisfied",
            Self::Unsatisfied => "unsatisfied",
            Self::Skipped(_) => "skipped",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// What a status leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// Nothing.
    None,
    /// Recorded only (shadow mode).
    Recorded,
    /// Said.
    Warns,
    /// Stands against the stop.
    Blocks,
}

impl Consequence {
    /// Stable name, as logged.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Recorded => "recorded",
            Self::Warns => "warns",
            Self::Blocks => "blocks",
        }
    }
}

/// What one consideration came to (the seed's `CheckResult`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its id.
    pub id: String,
    /// Heading it is shown under.
    pub category: Arc<str>,
    /// What was asked.
    pub question: Arc<str>,
    /// How much it matters.
    pub severity: Severity,
    /// How far it is in force.
    pub mode: Mode,
    /// Whether it holds.
    pub status: Status,
    /// What that leads to.
    pub consequence: Consequence,
    /// What it would lead to if the rule were enforced.
    pub enforced: Consequence,
    /// Why a blocker only warns, where it does.
    pub softened: Option<&'static str>,
    /// One sentence that explains the result.
    pub details: String,
    /// What decided.
    pub evidence: Vec<String>,
    /// What went wrong outside.
    pub error: Option<String>,
    /// What to do.
    pub guidance: Arc<str>,
    /// Where it is written.
    pub place: Arc<Place>,
    /// Time it took, in microseconds.
    pub micros: u64,
    /// Its conditions with the values of their parts, where it is not satisfied or asked for.
    pub explanation: Vec<Explained>,
}

/// A condition with the value of each of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What it is to the rule: the key it is written under.
    pub key: &'static str,
    /// Where it is written.
    pub place: String,
    /// The expression.
    pub expression: String,
    /// Its parts, innermost first, the whole last.
    pub parts: Vec<Part>,
}
