//! How a run ended, with names and exit codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The agent claimed to be done, and the stop gate agreed.
    Complete,
    /// The work looks complete, because nothing changed any more and the stop gate agrees, but the agent never claimed
    /// to be done.
    CompleteUnclaimed,
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
pub const STATUSES: [(RunStatus, &str, u8); 15] = [
    (RunStatus::Complete, "complete", 0),
    (RunStatus::CompleteUnclaimed, "complete_unclaimed", 0),
    (RunStatus::Stuck, "stuck", 10),
    (RunStatus::Budget, "budget", 11),
    (RunStatus::MaxIterations, "max_iterations", 11),
    (RunStatus::TimeUp, "time_up", 11),
    (RunStatus::ContextExhaustion, "context_exhaustion", 12),
    (RunStatus::BreakerOpen, "breaker_open", 13),
    (RunStatus::CircuitBreaker, "circuit_breaker", 13),
    (RunStatus::HumanNeeded, "human_needed", 14),
    (RunStatus::Unverified, "unverified", 14),
    (RunStatus::DeadLetter, "dead_letter", 14),
    (RunStatus::CannotRun, "cannot_run", 15),
    (RunStatus::Stopped, "stopped", 130),
    (RunStatus::Interrupted, "interrupted", 130),
];

impl RunStatus {
    fn row(self) -> (&'static str, u8) {
        let found = STATUSES.iter().find(|it| it.0 == self);
        found.map_or(("interrupted", 130), |it| (it.1, it.2))
    }

    /// Returns the status with a stored name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        STATUSES.iter().find(|it| it.1 == name).map(|it| it.0)
    }

    /// Returns whether a human can accept the work: the agent did it, and no check could tell whether it is complete.
    #[must_use]
    pub fn can_be_accepted(self) -> bool {
        matches!(self, Self::Unverified | Self::CompleteUnclaimed)
    }

    /// Returns the option without which a resumed run ends at once for the same reason. `None` if it needs no option.
    #[must_use]
    pub const fn resume_option(self) -> Option<&'static str> {
        match self {
            Self::Budget => Some("--budget-usd N"),
            Self::MaxIterations => Some("--max-iterations N"),
            Self::ContextExhaustion => Some("--max-restarts N"),
            Self::Complete
            | Self::CompleteUnclaimed
            | Self::Stuck
            | Self::TimeUp
            | Self::BreakerOpen
            | Self::CircuitBreaker
            | Self::HumanNeeded
            | Self::Unverified
            | Self::DeadLetter
            | Self::CannotRun
            | Self::Stopped
            | Self::Interrupted => None,
        }
    }

    /// Returns the stored name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the exit code of the program; 0 only if the stop gate agrees that the run is complete.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        self.row().1
    }
}
