//! How a run ended, with names and exit codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The agent claimed to be done, and the stop gate agreed.
    Complete,
    /// The agent made no progress.
    Stuck,
    /// The budget is spent.
    Budget,
    /// The turns are used up.
    MaxIterations,
    /// The maximum duration is reached.
    TimeUp,
    /// The context is full again, and no restart is left.
    ContextExhaustion,
    /// A breaker rejects calls.
    BreakerOpen,
    /// Nothing changed for several turns (shipwright's circuit breaker).
    CircuitBreaker,
    /// A human must decide or fix something.
    HumanNeeded,
    /// The agent claimed to be done, and its changes could not be observed.
    Unverified,
    /// The task was moved to the dead-letter queue.
    DeadLetter,
    /// The command does not exist.
    CannotRun,
    /// A user sent STOP.
    Stopped,
    /// The user interrupted the run.
    Interrupted,
}

/// Every status with its name and exit code.
pub const STATUSES: [(Status, &str, u8); 14] = [
    (Status::Complete, "complete", 0),
    (Status::Stuck, "stuck", 10),
    (Status::Budget, "budget", 11),
    (Status::MaxIterations, "max_iterations", 11),
    (Status::TimeUp, "time_up", 11),
    (Status::ContextExhaustion, "context_exhaustion", 12),
    (Status::BreakerOpen, "breaker_open", 13),
    (Status::CircuitBreaker, "circuit_breaker", 13),
    (Status::HumanNeeded, "human_needed", 14),
    (Status::Unverified, "unverified", 14),
    (Status::DeadLetter, "dead_letter", 14),
    (Status::CannotRun, "cannot_run", 15),
    (Status::Stopped, "stopped", 130),
    (Status::Interrupted, "interrupted", 130),
];

impl Status {
    fn row(self) -> (&'static str, u8) {
        let found = STATUSES.iter().find(|it| it.0 == self);
        found.map_or(("interrupted", 130), |it| (it.1, it.2))
    }

    /// Returns the stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the exit code of the program; 0 only for a complete run.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        self.row().1
    }
}
