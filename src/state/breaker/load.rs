//! How much may be sent through a breaker: nothing while it is open, little just after it closed.

use serde::{Deserialize, Serialize};

use super::{Breaker, Mode, Phase, Settings};
use crate::time::Timestamp;

/// How much load a project may put on what its breakers guard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LoadLevel {
    /// As much as it likes.
    #[default]
    Normal,
    /// Something came back lately, and is not to be overrun.
    Recovering,
    /// A breaker is open: work that is not urgent waits.
    Reduced,
}

impl LoadLevel {
    /// Its name in expressions and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Recovering => "recovering",
            Self::Reduced => "reduced",
        }
    }
}

/// Names of all levels.
pub const LOAD_LEVELS: [&str; 3] =
    [LoadLevel::Normal.as_str(), LoadLevel::Recovering.as_str(), LoadLevel::Reduced.as_str()];

impl Breaker {
    /// Returns the permitted share of the usual load at a time, in percent. Half open only probes
    /// go through.
    #[must_use]
    pub fn capacity_percent(&self, settings: &Settings, now: Timestamp) -> u32 {
        if settings.mode != Mode::Enforce {
            return 100;
        }
        match (self.phase, self.recovered_at) {
            (Phase::Open | Phase::HalfOpen, _) => 0,
            (Phase::Closed, None) => 100,
            (Phase::Closed, Some(recovered)) => ramp(settings, recovered, now),
        }
    }

    /// How many calls may run side by side at a moment.
    #[must_use]
    pub fn parallelism(&self, settings: &Settings, now: Timestamp) -> u32 {
        let share = self.capacity_percent(settings, now);
        let least = settings.parallelism_reduced.min(settings.parallelism);
        (settings.parallelism.saturating_mul(share) / 100).max(least)
    }

    /// How much load it asks for at a moment.
    #[must_use]
    pub fn load_level(&self, settings: &Settings, now: Timestamp) -> LoadLevel {
        match self.capacity_percent(settings, now) {
            0 if self.phase != Phase::Closed => LoadLevel::Reduced,
            100.. => LoadLevel::Normal,
            _ => LoadLevel::Recovering,
        }
    }
}

/// Capacity after a recovery: a share that grows step by step.
fn ramp(settings: &Settings, recovered: Timestamp, now: Timestamp) -> u32 {
    let every = settings.ramp_every.as_millis();
    let missing = 100_u32.saturating_sub(settings.ramp_start);
    let Some(steps) = missing.checked_div(settings.ramp_step).filter(|_| every > 0) else {
        return 100;
    };
    // A clock that went back further than the whole ramp is long has nothing to say about it.
    let length = settings.ramp_every.saturating_mul(steps.saturating_add(1));
    if recovered.since(now) > length {
        return 100;
    }
    let done = now.since(recovered).as_millis().checked_div(every).unwrap_or(0);
    let done = u32::try_from(done).unwrap_or(u32::MAX);
    settings.ramp_start.saturating_add(settings.ramp_step.saturating_mul(done)).min(100)
}
