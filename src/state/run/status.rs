//! How a run ended: every way, with its name and the exit code of the program.

use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The agent claimed to be done, and the gate had nothing against it.
    Complete,
    /// It goes round in circles.
    Stuck,
    /// The money is spent.
    Budget,
    /// The turns are used up.
    MaxIterations,
    /// The time is over.
    TimeUp,
    /// The context is full again, and no restart is left.
    ContextExhaustion,
    /// A breaker lets no call through.
    BreakerOpen,
    /// Nothing changes any more (shipwright's circuit breaker).
    CircuitBreaker,
    /// A human must decide, or mend something.
    HumanNeeded,
    /// The agent claimed to be done, and what it changed could not be observed.
    Unverified,
    /// The task failed so often that it was put aside.
    DeadLetter,
    /// There is no such command.
    CannotRun,
    /// A human said STOP.
    Stopped,
    /// Somebody interrupted it.
    Interrupted,
}

/// All statuses, with their exit codes.
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

    /// Returns the stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the exit code of the program. 0 only for a completed run.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        self.row().1
    }
}
