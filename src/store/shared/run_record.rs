//! The record of a supervised run, as its host writes it for the others.

use serde::{Deserialize, Serialize};

use policyd_state::run::{Run, RunPhase};
use policyd_yaml::time::Timestamp;

/// A supervised run as other hosts see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedRun {
    /// Name of the host.
    pub host: String,
    /// Root of the project on that host.
    pub project: String,
    /// Id of the run in its project.
    pub run: String,
    /// First line of the goal, masked and cut.
    pub goal: String,
    /// `working`, `ready`, `waiting`, `paused`, or how the run ended.
    pub state: String,
    /// Reason of a wait or of the end.
    pub why: String,
    /// Whether the run has ended.
    pub ended: bool,
    /// Turns so far.
    pub turns: u32,
    /// Tokens of all turns.
    pub tokens: u64,
    /// Cost of all turns in USD.
    pub cost_usd: f64,
    /// Turns of unknown cost. `cost_usd` does not contain them.
    pub unpriced_turns: u32,
    /// Start of the run.
    pub started: Timestamp,
    /// Time of this record.
    pub updated: Timestamp,
}

impl SharedRun {
    /// Returns the record of a run; the caller adds where it is, and its goal.
    #[must_use]
    pub fn of(run: &Run, now: Timestamp) -> Self {
        let (state, why) = match &run.phase {
            RunPhase::Ready | RunPhase::Asking => ("ready", ""),
            RunPhase::Working => ("working", ""),
            RunPhase::Waiting { why, .. } => ("waiting", why.as_str()),
            RunPhase::Paused => ("paused", ""),
            RunPhase::Over { status, why } => (status.as_str(), why.as_str()),
        };
        Self {
            run: run.id.clone(),
            state: state.to_owned(),
            why: why.to_owned(),
            ended: run.status().is_some(),
            turns: run.iteration,
            tokens: run.spend.tokens(),
            cost_usd: run.spend.cost_usd,
            unpriced_turns: run.unpriced,
            started: Timestamp::from_millis(run.started_ms),
            updated: now,
            ..Self::default()
        }
    }
}
