//! Limits of a run: those of the pack, and the options of the command line.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::iterations::Extension;
use super::{UnseenChanges, stuckness};
use crate::retry::RetryPause;
use policyd_base::limits::RESTARTS_MAX;

/// Limits of a run, and when policyd reacts to its state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Maximum number of turns.
    pub iterations: u32,
    /// How a run is extended that used all its turns.
    pub extension: Extension,
    /// Maximum number of restarts because of a full context or a stuck agent.
    pub restarts: u32,
    /// Maximum cost in USD.
    pub budget_usd: Option<f64>,
    /// Share of the budget at which policyd warns, in percent.
    pub warn_percent: u32,
    /// Maximum duration of all turns.
    pub time: Option<Duration>,
    /// Consecutive turns without a change that end the run.
    pub idle: u32,
    /// Consecutive turns with the verdict `abort` that end the run; 0 for never.
    pub aborts: u32,
    /// Longest wait for a breaker; the run ends if a breaker is open for longer.
    pub breaker_wait: Duration,
    /// When the run counts as stuck.
    pub stuckness: stuckness::StuckSettings,
    /// Whether a stuck run begins a fresh session.
    pub restart_when_stuck: bool,
    /// Whether the run waits for the answer of a human; otherwise it ends.
    pub wait_for_human: bool,
    /// Reaction if changes without a visible tool call are the only reason against a claim.
    pub unseen_changes: UnseenChanges,
    /// Pause after consecutive failures of one class.
    pub pause: RetryPause,
}

/// Options of the command line; they replace the limits of the pack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Maximum number of turns.
    pub max_iterations: Option<u32>,
    /// Maximum number of restarts.
    pub max_restarts: Option<u32>,
    /// Maximum cost in USD.
    #[schemars(range(min = -1e9, max = 1e9))]
    pub budget_usd: Option<f64>,
    /// Maximum duration of one turn in milliseconds.
    pub turn_deadline_ms: Option<u64>,
    /// Kinds of completion claims; if empty, those of the pack.
    pub claims: Vec<String>,
}

impl Options {
    /// Fills unset options from `before`.
    #[must_use]
    pub fn over(self, before: &Self) -> Self {
        Self {
            max_iterations: self.max_iterations.or(before.max_iterations),
            max_restarts: self.max_restarts.or(before.max_restarts),
            budget_usd: self.budget_usd.or(before.budget_usd),
            turn_deadline_ms: self.turn_deadline_ms.or(before.turn_deadline_ms),
            claims: if self.claims.is_empty() { before.claims.clone() } else { self.claims },
        }
    }

    /// Applies the options to the limits of a pack.
    #[must_use]
    pub fn limit(&self, pack: &RunLimits) -> RunLimits {
        RunLimits {
            iterations: self.max_iterations.unwrap_or(pack.iterations),
            restarts: self.max_restarts.unwrap_or(pack.restarts).min(RESTARTS_MAX),
            budget_usd: self.budget_usd.or(pack.budget_usd),
            ..pack.clone()
        }
    }
}
