//! A supervised run: an agent's command, turn after turn, until it ends. Contains: the saved state.
//! Does not contain: events (`event`), the step (`step`), the execution of a turn.

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

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::uncertainty::Watch;
use crate::checksum::hex;
use crate::time::Timestamp;
use stuckness::{Mark, Trail};

pub use event::{Admission, Claim, Context, Effect, Event, Failure, Look, Renewal, Turn, Used};
pub use limits::{Limits, Options};
pub use status::{STATUSES, Status};
pub use step::step;
pub use switches::Switched;
pub use unseen::UnseenChanges;

/// Version of the stored format.
pub const VERSION: u32 = 1;

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Phase {
    /// Between two turns.
    #[default]
    Ready,
    /// A breaker is asked whether a turn may begin.
    Asking,
    /// A turn is at work.
    Working,
    /// Nothing is done until then.
    Waiting {
        /// Until when, in milliseconds since 1970.
        until_ms: i64,
        /// Why.
        why: String,
    },
    /// A human said PAUSE.
    Paused,
    /// It is over.
    Over {
        /// How it ended.
        status: Status,
        /// Why, in one sentence.
        why: String,
    },
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spend {
    /// Plain input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that were read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that were written into it.
    pub cache_creation: u64,
    /// Money in USD.
    pub cost_usd: f64,
}

impl Spend {
    /// Returns the sum of two spends.
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

    /// Returns the number of all tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let all = [self.input, self.output, self.cache_read, self.cache_creation];
        all.iter().fold(0, |sum, it| sum.saturating_add(*it))
    }
}

/// A run, as it is remembered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Version of the stored form.
    pub version: u32,
    /// Its id.
    pub id: String,
    /// What is to be reached.
    pub goal: String,
    /// The command of a turn.
    pub command: Vec<String>,
    /// What somebody asked for.
    pub options: Options,
    /// Where it stands.
    pub phase: Phase,
    /// Number of the session, from 1: a restart begins another one.
    pub session: u32,
    /// Restarts so far.
    pub restarts: u32,
    /// Number of the last turn that began, over all sessions.
    pub iteration: u32,
    /// Turns of this session.
    pub session_iteration: u32,
    /// Length of the run's transcript when the turn at work began, in bytes: what follows is the turn's.
    pub heard_from: u64,
    /// Attempts at this turn that failed and are made again.
    pub attempt: u32,
    /// Whether the next turn is the same one again.
    pub again: bool,
    /// Turns that were added to those that are allowed, and how often that was done.
    pub extended_by: u32,
    /// Times it was extended.
    pub extended: u32,
    /// What all sessions used together; never reset.
    pub spend: Spend,
    /// What this session used.
    pub session_spend: Spend,
    /// Turns whose cost nobody told.
    pub unpriced: u32,
    /// Time at work in milliseconds.
    pub worked_ms: u64,
    /// Turns in a row that failed.
    pub failures: u32,
    /// Class of the last failure, and how often it came in a row.
    pub last_class: String,
    /// How often that class came in a row.
    pub same_class: u32,
    /// Turns in a row that changed nothing.
    pub idle: u32,
    /// The last turns.
    pub trail: Trail,
    /// The turns that made it count as stuck before the last fresh session, oldest first.
    pub circle: Vec<Mark>,
    /// The commit or tree that was checked out when it began; empty if git does not know the project.
    pub base: String,
    /// Files that changed in turns without a visible tool call.
    pub unseen: Vec<String>,
    /// Claims in a row that were refused because of them alone.
    pub unverified: u32,
    /// Whether a human was asked about them.
    pub unseen_asked: bool,
    /// Rounds in a row in which it was stuck, and whether that was told.
    pub stuck_rounds: u32,
    /// Whether something was done about it in this episode.
    pub stuck_told: bool,
    /// Why it seems stuck; told to the agent once.
    pub hint: String,
    /// What the gate said to the last claim.
    pub feedback: String,
    /// What humans said and the agent was not told yet.
    pub human: Vec<String>,
    /// What went wrong in the last turn that failed.
    pub last_error: String,
    /// Triggers of signals that held after the last turn, so that each is told once while it holds.
    pub raised: Vec<String>,
    /// How the gate is switched by humans.
    pub switched: Switched,
    /// What was switched off while the run was at work, in words, while that stands.
    pub switched_at_work: Option<String>,
    /// Whether the money was warned of.
    pub warned: bool,
    /// Health after the last turn.
    pub health: Option<u32>,
    /// What that says beside the health before it; empty where there is none.
    pub verdict: String,
    /// Turns in a row after which it said `abort`.
    pub aborts: u32,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it was last moved, in milliseconds since 1970.
    pub updated_ms: i64,
}

impl Run {
    /// Creates a run that has not begun.
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

    /// Returns a digest of the run's permissions: its command, goal and options. A run is resumed
    /// only if the user started one with this digest.
    #[must_use]
    pub fn work_digest(&self) -> String {
        let work = serde_json::json!([self.command, self.goal, self.options]);
        hex(&Sha256::digest(work.to_string()))
    }

    /// Returns how the run ended. `None` if it has not ended.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match &self.phase {
            Phase::Over { status, .. } => Some(*status),
            Phase::Ready
            | Phase::Asking
            | Phase::Working
            | Phase::Waiting { .. }
            | Phase::Paused => None,
        }
    }

    /// Returns the cost in US dollars per hour. During the first hour it is the amount spent,
    /// because a rate over a few minutes is not reliable.
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

    /// Returns the permitted number of turns, extensions included.
    #[must_use]
    pub const fn iterations_max(&self, limits: &Limits) -> u32 {
        limits.iterations.saturating_add(self.extended_by)
    }

    /// Returns whether another turn is permitted now.
    #[must_use]
    pub const fn turns_left(&self, limits: &Limits) -> bool {
        self.extended < limits.extension.times || self.iteration < self.iterations_max(limits)
    }
}

/// Converts the stored rounds of uncertainty.
fn watch(run: &Run) -> Watch {
    Watch { round: None, in_a_row: run.stuck_rounds, told: run.stuck_told }
}
