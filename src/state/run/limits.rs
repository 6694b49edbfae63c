//! Limits of a run: from the pack, and from the options of the user who started it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::iterations::Extension;
use super::{UnseenChanges, stuckness};
use crate::limits::RESTARTS_MAX;
use crate::state::retry::Pause;

/// What may not be exceeded, and when something is done about a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Turns at most.
    pub iterations: u32,
    /// How a run is extended that has used them up.
    pub extension: Extension,
    /// Restarts at most, those of a full context and of a stuck agent together.
    pub restarts: u32,
    /// Money at most, in USD.
    pub budget_usd: Option<f64>,
    /// Share of the money that is worth a warning, in percent.
    pub warn_percent: u32,
    /// Time at work at most.
    pub time: Option<Duration>,
    /// Turns in a row without any change after which nothing is expected any more.
    pub idle: u32,
    /// Turns in a row whose health says `abort` after which nothing is expected any more; 0 for never.
    pub aborts: u32,
    /// Longest wait for a breaker; one that is open for longer ends the run.
    pub breaker_wait: Duration,
    /// When it counts as stuck.
    pub stuckness: stuckness::Settings,
    /// Whether a fresh session is tried where it is stuck.
    pub restart_when_stuck: bool,
    /// Whether a human who is asked is waited for; the run ends, else.
    pub wait_for_human: bool,
    /// What follows if changes without a visible tool call are all that stands against a claim.
    pub unseen_changes: UnseenChanges,
    /// The pause after failures of one class in a row.
    pub pause: Pause,
}

/// What somebody asked for who began the run; it comes before what the pack says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Turns at most.
    pub max_iterations: Option<u32>,
    /// Restarts at most.
    pub max_restarts: Option<u32>,
    /// Money at most, in USD.
    pub budget_usd: Option<f64>,
    /// Longest time of one turn, in milliseconds.
    pub turn_deadline_ms: Option<u64>,
    /// How the agent says that it is done; as the pack says, where empty.
    pub claims: Vec<String>,
}

impl Options {
    /// Returns these options. Unset options are taken from `before`.
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

    /// Returns the limits of a pack with these options applied.
    #[must_use]
    pub fn limit(&self, pack: &Limits) -> Limits {
        Limits {
            iterations: self.max_iterations.unwrap_or(pack.iterations),
            restarts: self.max_restarts.unwrap_or(pack.restarts).min(RESTARTS_MAX),
            budget_usd: self.budget_usd.or(pack.budget_usd),
            ..pack.clone()
        }
    }
}
