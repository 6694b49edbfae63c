//! What happens to a run, and what is to be done because of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::stuckness::Mark;
use super::{Spend, Status};

/// What is seen between two turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// A human said STOP.
    pub stop: bool,
    /// Who emitted it; empty if that is unknown.
    pub stop_by: String,
    /// A human said PAUSE.
    pub pause: bool,
    /// What a human must decide before anything goes on.
    pub review: Option<String>,
    /// What humans say to the agent.
    pub input: Vec<String>,
}

/// What a breaker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// A turn may begin.
    Admitted,
    /// Not now.
    Rejected {
        /// Duration of the wait; `None` if unknown.
        wait: Option<Duration>,
        /// Why, in one sentence.
        why: String,
    },
}

/// What went wrong with a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: String,
    /// What it said, in one line.
    pub text: String,
    /// Whether the same call fails again, whenever it is made.
    pub permanent: bool,
    /// When this turn is made again and why; nothing where it is given up.
    pub retry: Option<(Duration, String)>,
    /// How long to wait before the next turn, and why.
    pub wait: Option<(Duration, String)>,
    /// Whether the task was moved to the dead-letter queue.
    pub put_aside: bool,
}

/// What an agent says of being done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Claim {
    /// Nothing.
    #[default]
    None,
    /// That it is done; the gate says this against it.
    Refused(String),
    /// That it is done; the gate has nothing against it, but could not see what was done.
    Unverified(String),
    /// That it is done; the gate has nothing against it.
    Accepted,
}

/// Whether the context has to be cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// No.
    #[default]
    Fits,
    /// It is full.
    Exhausted,
    /// A signal requested it.
    ClearRequested,
}

/// What a turn used, whatever became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Tokens and money.
    pub spend: Spend,
    /// Whether the cost is known.
    pub priced: bool,
    /// How long it took.
    pub took: Duration,
}

/// What a turn came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// Why it failed, where it did.
    pub failure: Option<Failure>,
    /// What the agent says of being done.
    pub claim: Claim,
    /// What it used.
    pub spend: Spend,
    /// Whether the cost is known.
    pub priced: bool,
    /// Whether the context has to be cleared.
    pub context: Context,
    /// What is remembered of it.
    pub mark: Mark,
    /// Whether it changed something, where that is known.
    pub moved: Option<bool>,
    /// Files that it changed, where that is known.
    pub files: Vec<String>,
    /// Whether its output showed a tool call.
    pub tools_seen: bool,
    /// How long it took.
    pub took: Duration,
    /// Triggers of signals that hold after it.
    pub raised: Vec<String>,
}

/// What happens to a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// The supervisor polled signals.
    Looked(&'a Look),
    /// A breaker answered.
    Asked(&'a Admission),
    /// A turn ended.
    Ended(&'a Turn),
    /// The user resumes it, perhaps after its process died; what the turn that broke off is known to
    /// have used, where one was at work.
    Resumed(Option<Used>),
    /// The user interrupted it; what the turn that broke off used, where one was at work.
    Interrupted(Option<Used>),
    /// The command could not be started.
    CannotRun(&'a str),
}

/// Why another session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The context is full.
    Exhausted,
    /// A signal requested a clear context; this does not count as a restart.
    Cleared,
    /// The agent goes round in circles.
    Stuck,
}

impl Renewal {
    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "context_exhaustion",
            Self::Cleared => "context_clear",
            Self::Stuck => "stuck_restart",
        }
    }
}

/// What is to be done after a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A breaker is to be asked.
    Ask,
    /// A turn is to be made.
    Begin,
    /// The session ends, and another one begins with its results.
    Renew(Renewal),
    /// That many turns more are allowed.
    Extended(u32),
    /// It seems stuck, for these reasons.
    Stuck(Vec<&'static str>),
    /// That share of the money is spent, in percent.
    BudgetWarning(u32),
    /// Nothing is to be done for a while.
    Wait {
        /// How long.
        wait: Duration,
        /// Reason of the wait.
        why: String,
    },
    /// A human is to be asked for a review, for this reason.
    AskHuman(String),
    /// It is over.
    End(Status),
}
