//! The registry of supervised runs of all hosts. The host of a run alone writes its record.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::action::SharedAction;
use super::mirror::RUNS;
use super::{SharedStore, position};
use crate::document::DocumentError;
use policyd_state::run::{Run, RunPhase};
use policyd_world::WorldError;
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
            started: Timestamp::from_millis(run.started_ms),
            updated: now,
            ..Self::default()
        }
    }
}

impl SharedStore<'_> {
    /// Records a run for all hosts.
    ///
    /// # Errors
    /// The record was not saved.
    pub fn record_run(&self, record: &SharedRun) -> Result<(), WorldError> {
        let client = position::client(self.world, &self.folder)?;
        let id = format!("{client}-{}", record.run);
        self.mirror(RUNS).change(|all| {
            let action = SharedAction::Run { id: id.clone(), record: Box::new(record.clone()) };
            self.push(action, self.world.now())?;
            all.insert(id, json!(record));
            Ok(())
        })
    }

    /// Returns the runs of the local copy, the newest record first.
    ///
    /// # Errors
    /// The local copy cannot be read.
    pub fn runs(&self) -> Result<Vec<SharedRun>, DocumentError> {
        let all = self.mirror(RUNS).all()?.into_values();
        let mut all: Vec<SharedRun> =
            all.filter_map(|it| serde_json::from_value(it).ok()).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.updated));
        Ok(all)
    }
}
