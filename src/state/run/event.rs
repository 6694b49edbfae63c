//! Events of a run, and their effects.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::stuckness::TurnRecord;
use super::{RunStatus, Spend};

/// Observations between two turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlSignals {
    /// Whether the user sent STOP.
    pub stop: bool,
    /// Sender of STOP. Empty if unknown.
    pub stop_by: String,
    /// Who sent PAUSE, and how it ends. `None` without a PAUSE.
    pub pause: Option<String>,
    /// Decision that a human must make before the run continues.
    pub review: Option<String>,
    /// How a human said no to the continuation of the run.
    pub refused: Option<String>,
    /// Messages of the user to the agent.
    pub input: Vec<String>,
    /// Ids of the requests whose answers are among the messages.
    pub answered: Vec<String>,
}

/// Response of a breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// A turn is permitted.
    Admitted,
    /// No turn is permitted now.
    Rejected {
        /// Time to wait. `None` if unknown.
        wait: Option<Duration>,
        /// Reason, one sentence.
        why: String,
    },
}

/// Failure of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnFailure {
    /// Failure class.
    pub class: String,
    /// Error text, one line.
    pub text: String,
    /// Whether every retry fails, too.
    pub permanent: bool,
    /// Delay and reason of a retry of this turn. `None` if it is not retried.
    pub retry: Option<(Duration, String)>,
    /// Delay before the next turn, and its reason.
    pub wait: Option<(Duration, String)>,
    /// Whether the failure dead-lettered the task.
    pub put_aside: bool,
}

/// The agent's claim that the goal is reached, with the result of its check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Claim {
    /// No claim.
    #[default]
    None,
    /// The stop gate rejected the claim, for this reason.
    Refused(String),
    /// The stop gate accepted the claim, but could not observe the changes.
    Unverified(String),
    /// The stop gate accepted the claim.
    Accepted,
}

/// Whether the context has to be cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextRequest {
    /// The context fits.
    #[default]
    Fits,
    /// The context is full.
    Exhausted,
    /// A clear context was requested.
    ClearRequested,
}

/// Usage of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TurnUsage {
    /// Tokens and cost.
    pub spend: Spend,
    /// Whether the command reported the cost.
    pub priced: bool,
    /// Duration.
    pub took: Duration,
}

/// Result of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnResult {
    /// Failure, if any.
    pub failure: Option<TurnFailure>,
    /// Claim of the agent.
    pub claim: Claim,
    /// Whether the stop gate would accept a claim, although the agent made none.
    pub looks_complete: bool,
    /// Tokens and cost.
    pub spend: Spend,
    /// Whether the command reported the cost.
    pub priced: bool,
    /// Whether the context must be cleared.
    pub context: ContextRequest,
    /// Record of the turn, for the detection of stuck runs.
    pub mark: TurnRecord,
    /// Whether it changed files. `None` if unknown.
    pub moved: Option<bool>,
    /// Changed files. Empty if unknown.
    pub files: Vec<String>,
    /// Whether its output contained a tool call.
    pub tools_seen: bool,
    /// Duration.
    pub took: Duration,
    /// Signal triggers that fire after it.
    pub raised: Vec<String>,
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent<'a> {
    /// The supervisor polled signals.
    Looked(&'a ControlSignals),
    /// The breaker answered.
    Asked(&'a Admission),
    /// A turn ended.
    Ended(&'a TurnResult),
    /// The run was resumed, possibly after its process died. Contains the known usage of an
    /// interrupted turn.
    Resumed(Option<TurnUsage>),
    /// The run was interrupted. Contains the usage of the interrupted turn.
    Interrupted(Option<TurnUsage>),
    /// The command could not be started.
    CannotRun(&'a str),
    /// A human vouches for the work of a run that ended. Contains the words of the decision.
    Accepted(&'a str),
    /// A human does not continue the run.
    Dismissed,
}

/// Reason of a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartReason {
    /// The context is full.
    Exhausted,
    /// A clear context was requested. It uses no restart.
    Cleared,
    /// The agent is stuck.
    Stuck,
}

impl RestartReason {
    /// Returns the stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "context_exhaustion",
            Self::Cleared => "context_clear",
            Self::Stuck => "stuck_restart",
        }
    }
}

/// Effect of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEffect {
    /// Ask the breaker.
    Ask,
    /// Run a turn.
    Begin,
    /// Archive the session, and begin a new one with its summary.
    Renew(RestartReason),
    /// Report that this number of turns was added.
    Extended(u32),
    /// Report that the run seems stuck, for these reasons.
    Stuck(Vec<&'static str>),
    /// Report the percentage of the cost limit that is spent.
    BudgetWarning(u32),
    /// Wait.
    Wait {
        /// Duration.
        wait: Duration,
        /// Reason, as displayed.
        why: String,
    },
    /// Ask a human for a review, for this reason.
    AskHuman(String),
    /// End the run.
    End(RunStatus),
}
