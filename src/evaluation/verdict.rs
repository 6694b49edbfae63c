//! Verdicts: status and effect of one check.

use std::sync::Arc;

use policyd_fact_table::parts::Part;
use policyd_policy::{Mode, Severity, SourceLocation};

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckStatus {
    /// The check passed.
    Satisfied,
    /// The check did not pass.
    Unsatisfied,
    /// The check was not evaluated, for this reason.
    Skipped(&'static str),
    /// The check could not be evaluated, for this reason.
    Unknown(String),
}

impl CheckStatus {
    /// Returns the stable name, as in the log.
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

/// Effect of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// No effect.
    None,
    /// Log entry only (shadow mode).
    Recorded,
    /// A warning.
    Warns,
    /// The stop is blocked.
    Blocks,
}

impl Consequence {
    /// Returns the stable name, as in the log.
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

/// Result of one check, with everything that reports display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckVerdict {
    pub id: String,
    /// Heading in reports.
    pub category: Arc<str>,
    /// Question of the check.
    pub question: Arc<str>,
    pub severity: Severity,
    pub mode: Mode,
    /// Whether the check is only logged, because policyd observes.
    pub observed: bool,
    pub status: CheckStatus,
    pub consequence: Consequence,
    /// Effect in `enforce` mode.
    pub enforced: Consequence,
    /// Allowance of the user, or exemption of the pack, by which the check does not block.
    pub allowed: Option<String>,
    /// Whether an exemption keeps the check from blocking. The work is not complete then.
    pub exempted: bool,
    /// Reason why a blocker only warns.
    pub softened: Option<&'static str>,
    /// One sentence that explains the result.
    pub details: String,
    /// Evidence of the result.
    pub evidence: Vec<String>,
    /// Error of a probe or of another external input.
    pub error: Option<String>,
    /// Guidance for the agent.
    pub guidance: Arc<str>,
    /// Source location of the check.
    pub place: Arc<SourceLocation>,
    /// Evaluation time in microseconds.
    pub micros: u64,
    /// Conditions with the values of their parts, if the check did not pass or they were requested.
    pub explanation: Vec<ConditionExplanation>,
}

/// A condition with the value of each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionExplanation {
    /// Key of the condition in the rule.
    pub key: &'static str,
    /// Source location of the condition.
    pub place: String,
    /// Source text of the expression.
    pub expression: String,
    /// Parts, innermost first, the whole expression last.
    pub parts: Vec<Part>,
}

impl CheckVerdict {
    /// Returns whether the check would block the stop if it were enforced, and only its mode, or that policyd
    /// observes, prevents it.
    #[must_use]
    pub fn would_block(&self) -> bool {
        self.consequence == Consequence::Recorded
            && self.enforced == Consequence::Blocks
            && self.mode != Mode::Warn
            && self.allowed.is_none()
    }
}

/// Level of detail of verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Texts of checks that did not pass: all that a hook needs.
    Findings,
    /// Texts of all evaluated checks.
    Everything,
    /// Also the values of the parts of each condition.
    Values,
}
