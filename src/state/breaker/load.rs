//! Permitted load of a circuit breaker: none while it is open, a growing share after it closed.

use serde::{Deserialize, Serialize};

use super::{Breaker, BreakerMode, BreakerPhase, BreakerSettings};
use policyd_yaml::time::Timestamp;

/// Recommended load on what the breakers of a project protect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LoadLevel {
    /// Any load.
    #[default]
    Normal,
    /// Reduced load, because a breaker closed recently.
    Recovering,
    /// Urgent work only, because a breaker is open.
    Reduced,
}

impl LoadLevel {
    /// Returns the name in expressions and lists.
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
    /// Returns the permitted share of the usual load, in percent. A half-open breaker admits trial
    /// calls only.
    #[must_use]
    pub fn capacity_percent(&self, settings: &BreakerSettings, now: Timestamp) -> u32 {
        if settings.mode != BreakerMode::Enforce {
            return 100;
        }
        match (self.phase, self.recovered_at) {
            (BreakerPhase::Open | BreakerPhase::HalfOpen, _) => 0,
            (BreakerPhase::Closed, None) => 100,
            (BreakerPhase::Closed, Some(recovered)) => ramp(settings, recovered, now),
        }
    }

    /// Returns the maximum number of concurrent calls.
    #[must_use]
    pub fn parallelism(&self, settings: &BreakerSettings, now: Timestamp) -> u32 {
        let share = self.capacity_percent(settings, now);
        let least = settings.max_concurrent_calls_reduced.min(settings.max_concurrent_calls);
        (settings.max_concurrent_calls.saturating_mul(share) / 100).max(least)
    }

    /// Returns the recommended load level.
    #[must_use]
    pub fn load_level(&self, settings: &BreakerSettings, now: Timestamp) -> LoadLevel {
        match self.capacity_percent(settings, now) {
            0 if self.phase != BreakerPhase::Closed => LoadLevel::Reduced,
            100.. => LoadLevel::Normal,
            _ => LoadLevel::Recovering,
        }
    }
}

/// Returns the capacity after a recovery, which grows in steps.
fn ramp(settings: &BreakerSettings, recovered: Timestamp, now: Timestamp) -> u32 {
    let every = settings.recovery_ramp_every.as_millis();
    let missing = 100_u32.saturating_sub(settings.recovery_ramp_start);
    let Some(steps) = missing.checked_div(settings.recovery_ramp_step).filter(|_| every > 0) else {
        return 100;
    };
    // If the clock went back by more than the length of the ramp, the recovery time has no meaning.
    let length = settings.recovery_ramp_every.saturating_mul(steps.saturating_add(1));
    if recovered.since(now) > length {
        return 100;
    }
    let done = now.since(recovered).as_millis().checked_div(every).unwrap_or(0);
    let done = u32::try_from(done).unwrap_or(u32::MAX);
    settings
        .recovery_ramp_start
        .saturating_add(settings.recovery_ramp_step.saturating_mul(done))
        .min(100)
}
