//! Failure classes of `failures.yaml`, and other programs' names of errors.
//!
//! Contains: the values. Does not contain: the matching of texts (`policy::failures`).
//!
//! | effect | breaker | retried | a human |
//! |---|---|---|---|
//! | `trip` | counts it | after a wait | if `human` is set |
//! | `ignore` | ignores it | after a wait | if `human` is set |
//! | `permanent` | ignores it | never | if `human` is set |

use serde::{Deserialize, Serialize};

use super::recovery::{EscalationThresholds, RecoveryLimits};
use super::retry::{HeartbeatPolicy, Retry, RetryAfterPolicy, RetryPause};
use super::uncertainty;

/// Names of errors in hooks and dead letters: Claude Code's `StopFailure.error`, then loki-mode's
/// `error_type`. A class can use further names.
pub const ERROR_NAMES: [&str; 14] = [
    "rate_limit",
    "overloaded",
    "authentication_failed",
    "oauth_org_not_allowed",
    "billing_error",
    "invalid_request",
    "model_not_found",
    "server_error",
    "max_output_tokens",
    "unknown",
    "test_failure",
    "timeout",
    "dependency",
    "validation",
];

/// Effect of a failure on the breaker of the failed program or service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureEffect {
    /// Counts as a failure.
    #[default]
    Trip,
    /// Does not count.
    Ignore,
    /// Shows that every retry fails.
    Permanent,
}

impl FailureEffect {
    /// Returns the name in `failures.yaml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trip => "trip",
            Self::Ignore => "ignore",
            Self::Permanent => "permanent",
        }
    }
}

/// A failure class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Id, as in breakers and reports.
    pub id: String,
    /// Names of the error in hooks and programs.
    pub errors: Vec<String>,
    /// Regexes for a line of output, used if the name is unknown.
    pub regexes: Vec<String>,
    /// Regexes of lines that do not belong to the class.
    pub unless: Vec<String>,
    /// Effect on a breaker.
    pub effect: FailureEffect,
    /// Whether it counts as an attempt at the task.
    pub attempt: bool,
    /// Whether a human is needed.
    pub human: bool,
    /// Retry policy.
    pub retry: Retry,
    /// What it means, and what fixes it. Can be empty.
    pub description: String,
}

/// Id of the class of unrecognized failures, if the pack sets none.
pub const UNKNOWN: &str = "unknown";

impl Default for Class {
    /// An unrecognized failure is retried: a wrong guess costs one attempt, never the task.
    fn default() -> Self {
        Self {
            id: UNKNOWN.to_owned(),
            errors: Vec::new(),
            regexes: Vec::new(),
            unless: Vec::new(),
            effect: FailureEffect::Trip,
            attempt: true,
            human: false,
            retry: Retry::default(),
            description: String::new(),
        }
    }
}

/// Another program's name for some classes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    pub name: String,
    /// Ids of these classes.
    pub classes: Vec<String>,
    /// Retry policy of that program. `None`: the policy of the class.
    pub retry: Option<Retry>,
}

/// Content of `failures.yaml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// Classes. The first match wins.
    pub classes: Vec<Class>,
    /// Id of the class of unrecognized failures. Empty if the pack sets none.
    pub unrecognized: String,
    /// Number of lines that are searched, from the end of a text.
    pub lines: usize,
    /// Labels of other programs, by the name of the program. The first label wins.
    pub profiles: Vec<(String, Vec<Label>)>,
    /// Policy for delays that a server requests.
    pub waits: RetryAfterPolicy,
    /// Pause after consecutive failures of one class.
    pub pause: RetryPause,
    /// Limits of the recovery.
    pub recovery: RecoveryLimits,
    /// Thresholds for repeated failures of a quality gate.
    pub ladder: EscalationThresholds,
    /// Thresholds for a lost agent.
    pub uncertainty: uncertainty::UncertaintySettings,
    /// Heartbeat policy of workers.
    pub claims: HeartbeatPolicy,
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            classes: Vec::new(),
            unrecognized: UNKNOWN.to_owned(),
            // shipwright reads the last 200 lines.
            lines: 200,
            profiles: Vec::new(),
            waits: RetryAfterPolicy::default(),
            pause: RetryPause::default(),
            recovery: RecoveryLimits::default(),
            ladder: EscalationThresholds::default(),
            uncertainty: uncertainty::UncertaintySettings::default(),
            claims: HeartbeatPolicy::default(),
        }
    }
}
