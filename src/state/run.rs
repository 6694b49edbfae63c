//! A supervised run: the command of an agent, turn after turn, until the run ends. Contains: the stored state.
//! `event` has the events and effects, `step` the step function, and the other modules its decisions. Does
//! not contain: how a turn is made.

mod after;
pub mod budget;
mod event;
pub mod health;
pub mod iterations;
mod limits;
mod status;
mod step;
pub mod stuckness;
mod switches;
pub mod unseen;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::uncertainty::UncertaintyTracker;
use budget::TurnCost;
use policyd_yaml::checksum::hex;
use policyd_yaml::time::Timestamp;
use stuckness::{TurnHistory, TurnRecord};

pub use event::{
    Admission, Claim, ContextRequest, ControlSignals, RestartReason, RunEffect, RunEvent,
    TurnFailure, TurnResult, TurnUsage,
};
pub use limits::{Options, RunLimits};
pub use status::{RunStatus, STATUSES};
pub use step::step;
pub use switches::StopGateSwitches;
pub use unseen::UnseenChanges;

/// Version of the stored format.
pub const VERSION: u32 = 1;

/// State of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum RunPhase {
    /// Between two turns.
    #[default]
    Ready,
    /// Waits for the answer of a breaker before a turn begins.
    Asking,
    /// A turn is in progress.
    Working,
    /// Waits for a time.
    Waiting {
        /// End of the wait, in milliseconds since 1970.
        until_ms: i64,
        /// Reason for the wait.
        why: String,
    },
    /// A user sent PAUSE.
    Paused,
    /// The run has ended.
    Over {
        /// How the run ended.
        status: RunStatus,
        /// Reason, in one sentence.
        why: String,
    },
}

/// Tokens and cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spend {
    /// Plain input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_creation: u64,
    /// Cost in USD.
    #[schemars(range(min = -1e9, max = 1e9))]
    pub cost_usd: f64,
}

impl Spend {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_creation: self.cache_creation.saturating_add(more.cache_creation),
            cost_usd: self.cost_usd + more.cost_usd,
        }
    }

    /// Returns the sum of all kinds of tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let all = [self.input, self.output, self.cache_read, self.cache_creation];
        all.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// What a run used up to a point in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunTotals {
    /// Tokens and cost of all sessions.
    pub spend: Spend,
    /// Duration of all turns in milliseconds.
    pub worked_ms: u64,
    /// Turns of unknown cost.
    pub unpriced: u32,
}

/// Beginning of the ids under which runs report events.
pub const EVENT_SESSION_PREFIX: &str = "run-";

/// State of a run: `runs/<id>/state.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["version", "id", "goal", "command", "phase"]))]
pub struct Run {
    /// Version of the format.
    pub version: u32,
    /// Id of the run.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Goal of the run.
    #[schemars(length(min = 1))]
    pub goal: String,
    /// Command of a turn.
    pub command: Vec<String>,
    /// Options of the command line.
    pub options: Options,
    /// State of the run.
    pub phase: RunPhase,
    /// Number of the session, from 1: a restart begins another session.
    pub session: u32,
    /// Restarts so far.
    pub restarts: u32,
    /// Number of the last turn that began, over all sessions.
    pub iteration: u32,
    /// Turns of this session.
    pub session_iteration: u32,
    /// Length of the run's transcript in bytes when the current turn began.
    pub heard_from: u64,
    /// Failed attempts at this turn that are repeated.
    pub attempt: u32,
    /// Whether the next turn repeats the last one.
    pub again: bool,
    /// Turns added by extensions.
    pub extended_by: u32,
    /// Number of extensions.
    pub extended: u32,
    /// Tokens and cost of all sessions; never reset.
    pub spend: Spend,
    /// Tokens and cost of this session.
    pub session_spend: Spend,
    /// Tokens, cost, and duration at the last end, if the run was resumed since.
    pub at_last_end: RunTotals,
    /// How often the run was resumed after it had ended.
    pub resumes: u32,
    /// Time of the last resume, in milliseconds since 1970.
    pub resumed_ms: Option<i64>,
    /// Whether a human dismissed the run. It waits for no human until it is resumed.
    pub dismissed: bool,
    /// Turns of unknown cost.
    pub unpriced: u32,
    /// Duration of all turns in milliseconds.
    pub worked_ms: u64,
    /// Consecutive turns that failed.
    pub failures: u32,
    /// Class of the last failure; empty for none.
    pub last_class: String,
    /// Consecutive failures of that class.
    pub same_class: u32,
    /// Consecutive turns without a change.
    pub idle: u32,
    /// Whether a turn changed something.
    pub worked: bool,
    /// The last turns, oldest first.
    pub trail: TurnHistory,
    /// Turns because of which the last fresh session began, oldest first.
    pub circle: Vec<TurnRecord>,
    /// Commit or tree that was checked out when the run began; empty if git does not know the project.
    pub base: String,
    /// Files that changed in turns without a visible tool call.
    pub unseen: Vec<String>,
    /// Consecutive claims that were refused only because of such files.
    pub unverified: u32,
    /// Whether a human was asked about such files.
    pub unseen_asked: bool,
    /// Consecutive rounds in which the run was stuck.
    pub stuck_rounds: u32,
    /// Whether policyd reacted to this episode of being stuck.
    pub stuck_told: bool,
    /// Why the run seems stuck; reported to the agent once.
    pub hint: String,
    /// Answer of the stop gate to the last claim.
    pub feedback: String,
    /// Messages of humans that the agent has not received yet.
    pub human: Vec<String>,
    /// Error of the last turn that failed.
    pub last_error: String,
    /// Triggers of signals that were true after the last turn. Each is reported once while it is true.
    pub raised: Vec<String>,
    /// Features that users disabled when the run began.
    pub switched: StopGateSwitches,
    /// Description of a switch that a user turned off during the run, while it is off.
    pub switched_at_work: Option<String>,
    /// Whether the budget warning was sent.
    pub warned: bool,
    /// Health after the last turn, from 0 to 100.
    #[schemars(range(max = 100))]
    pub health: Option<u32>,
    /// Verdict on that health; empty for none.
    pub verdict: String,
    /// Consecutive turns with the verdict `abort`.
    pub aborts: u32,
    /// Start of the run, in milliseconds since 1970.
    pub started_ms: i64,
    /// Last step of the run, in milliseconds since 1970.
    pub updated_ms: i64,
}

impl Run {
    /// Returns a run before its first turn.
    #[must_use]
    pub fn new(id: &str, goal: &str, command: &[String], now: Timestamp) -> Self {
        Self {
            version: VERSION,
            id: id.to_owned(),
            goal: goal.to_owned(),
            command: command.to_vec(),
            session: 1,
            started_ms: now.millis(),
            updated_ms: now.millis(),
            ..Self::default()
        }
    }

    /// Returns a digest of the command, goal, and options. A run is resumed only if the user started one with
    /// this digest.
    #[must_use]
    pub fn work_digest(&self) -> String {
        let work = serde_json::json!([self.command, self.goal, self.options]);
        hex(&Sha256::digest(work.to_string()))
    }

    /// Returns how the run ended; `None` while it has not.
    #[must_use]
    pub fn status(&self) -> Option<RunStatus> {
        match &self.phase {
            RunPhase::Over { status, .. } => Some(*status),
            RunPhase::Ready
            | RunPhase::Asking
            | RunPhase::Working
            | RunPhase::Waiting { .. }
            | RunPhase::Paused => None,
        }
    }

    /// Returns the cost in USD per hour of work. During the first hour this is the total cost, because a rate
    /// over a few minutes would mislead.
    #[must_use]
    pub fn usd_per_hour(&self) -> f64 {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        let worked = Duration::from_millis(self.worked_ms).max(HOUR);
        self.spend.cost_usd / worked.div_duration_f64(HOUR)
    }

    /// Returns how often the error of the last turn occurred in this session.
    #[must_use]
    pub fn same_error_of_session(&self) -> u32 {
        self.trail.same_error().min(self.session_iteration)
    }

    /// Returns the id under which the run itself reports events. Sessions of its agents have ids of their own.
    #[must_use]
    pub fn event_session(&self) -> String {
        format!("{EVENT_SESSION_PREFIX}{}", self.id)
    }

    /// Returns what the run used so far.
    #[must_use]
    pub const fn totals(&self) -> RunTotals {
        RunTotals { spend: self.spend, worked_ms: self.worked_ms, unpriced: self.unpriced }
    }

    /// Returns the cost of all turns that ended.
    #[must_use]
    pub const fn cost(&self) -> TurnCost {
        TurnCost { known_usd: self.spend.cost_usd, unpriced: self.unpriced }
    }

    /// Returns the cost of all turns that began. The cost of a turn that did not end is unknown: it is at work, or the
    /// process of the run died.
    #[must_use]
    pub fn cost_of_begun(&self) -> TurnCost {
        let unfinished = u32::from(self.phase == RunPhase::Working);
        self.cost().plus(TurnCost { known_usd: 0.0, unpriced: unfinished })
    }

    /// Returns the maximum number of turns, extensions included.
    #[must_use]
    pub const fn iterations_max(&self, limits: &RunLimits) -> u32 {
        limits.iterations.saturating_add(self.extended_by)
    }

    /// Returns whether another turn or extension is left.
    #[must_use]
    pub const fn turns_left(&self, limits: &RunLimits) -> bool {
        self.extended < limits.extension.times || self.iteration < self.iterations_max(limits)
    }
}

/// Returns the stuck rounds as the state of `uncertainty`.
fn watch(run: &Run) -> UncertaintyTracker {
    UncertaintyTracker { round: None, in_a_row: run.stuck_rounds, told: run.stuck_told }
}
