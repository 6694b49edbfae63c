//! What a failure is: the classes of `failures.yaml`, and other programs' names for them. Lives here:
//! the values. Texts are held against them in `policy::failures`.
//!
//! | effect | breaker | tried again | a person |
//! |---|---|---|---|
//! | `trip` | counts it | after a wait | where `human` says so |
//! | `ignore` | takes no notice | after a wait | where `human` says so |
//! | `permanent` | takes no notice | never | where `human` says so |

use serde::{Deserialize, Serialize};

use super::recovery::{Ladder, Limits};
use super::retry::{Claims, Pause, Retry, Waits};
use super::uncertainty;

/// Names that hooks and dead letters give errors: Claude Code's `StopFailure.error`, then the
/// `error_type` of loki-mode. A class can have others, too.
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

/// What a failure of a class does to the breaker of what failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// It counts towards opening it.
    #[default]
    Trip,
    /// It says nothing about what was called.
    Ignore,
    /// The same call fails again, whenever it is made.
    Permanent,
}

impl Effect {
    /// Its name in `failures.yaml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trip => "trip",
            Self::Ignore => "ignore",
            Self::Permanent => "permanent",
        }
    }
}

/// One class of failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Id of the class.
    pub id: String,
    /// Names by which hooks and programs tell it.
    pub errors: Vec<String>,
    /// Regexes for a line of output, tried where no name is known.
    pub regexes: Vec<String>,
    /// Regexes that excuse the line.
    pub unless: Vec<String>,
    /// What it does to a breaker.
    pub effect: Effect,
    /// Whether it counts as an attempt at the task.
    pub attempt: bool,
    /// Whether a person is needed.
    pub human: bool,
    /// When to try again.
    pub retry: Retry,
}

/// Id of the class of unrecognized failures if the pack names none.
pub const UNKNOWN: &str = "unknown";

impl Default for Class {
    /// An unrecognized failure is retried: a wrong guess costs one attempt, never the task.
    fn default() -> Self {
        Self {
            id: UNKNOWN.to_owned(),
            errors: Vec::new(),
            regexes: Vec::new(),
            unless: Vec::new(),
            effect: Effect::Trip,
            attempt: true,
            human: false,
            retry: Retry::default(),
        }
    }
}

/// Another program's name for some classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// The name.
    pub name: String,
    /// Ids of the classes that it represents.
    pub classes: Vec<String>,
    /// When that program tries again; as the class says, where absent.
    pub retry: Option<Retry>,
}

/// All that `failures.yaml` says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// Classes, the first match wins.
    pub classes: Vec<Class>,
    /// Id of the class of unrecognized failures; empty if the pack names none.
    pub unrecognized: String,
    /// Lines of a text that are looked at, counted from its end.
    pub lines: usize,
    /// Vocabularies of other programs by name; of each, the first label wins.
    pub profiles: Vec<(String, Vec<Label>)>,
    /// How delays are derived from the message of a server.
    pub waits: Waits,
    /// The pause after failures of one class in a row.
    pub pause: Pause,
    /// When recovering is given up.
    pub recovery: Limits,
    /// What gates do that fail again and again.
    pub ladder: Ladder,
    /// When signs of being lost are passed on.
    pub uncertainty: uncertainty::Settings,
    /// When a worker is taken for dead.
    pub claims: Claims,
}
