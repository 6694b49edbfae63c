//! Settings of a circuit breaker, from `breakers.yaml`. The defaults are those of loki-mode.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::FailureEffect;
use policyd_yaml::checksum::checksum;

/// Settings of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerSettings {
    pub mode: BreakerMode,
    /// Calls that count.
    pub window: Window,
    /// Failures in the window that open the breaker, if `failure_rate` is not set.
    pub threshold: u32,
    /// Share of failures in the window, in percent, that opens the breaker.
    pub failure_rate: Option<u32>,
    /// Duration from which a call is slow.
    pub slow_call_duration: Duration,
    /// Share of slow calls in the window, in percent, that opens the breaker.
    pub slow_call_rate: Option<u32>,
    /// Minimum number of calls in the window for a rate.
    pub minimum_calls: u32,
    /// Duration of the open state.
    pub cooldown: Duration,
    /// Backoff multiplier of consecutive cooldowns, in percent. 100 = constant, 200 = doubles.
    /// YAML: `cooldown_factor`.
    pub cooldown_multiplier: u32,
    /// Maximum cooldown, if cooldowns grow.
    pub cooldown_max: Duration,
    /// Maximum percentage that is subtracted from a cooldown at random, so that not all breakers
    /// close at once.
    pub cooldown_jitter: u32,
    /// Maximum `Retry-After` that is honored.
    pub retry_after_max: Duration,
    /// Interval between two trial calls, and lease of a trial call.
    pub half_open_interval: Duration,
    /// Consecutive successes that close the breaker.
    pub recovery_threshold: u32,
    /// Capacity just after it closed, in percent.
    pub recovery_ramp_start: u32,
    /// Increase of the capacity each `ramp_every`, in percent.
    pub recovery_ramp_step: u32,
    /// Duration of each step.
    pub recovery_ramp_every: Duration,
    /// Maximum number of concurrent calls.
    pub max_concurrent_calls: u32,
    /// Maximum number of concurrent calls while the breaker is not closed.
    pub max_concurrent_calls_reduced: u32,
    /// Error classes that do not count.
    pub ignore: Vec<String>,
    /// Error classes that are permanent.
    pub permanent: Vec<String>,
    /// Effect of a permanent error.
    pub on_permanent: OnPermanent,
    /// Seed of the jitter, different for each breaker.
    pub salt: u64,
}

/// Mode of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BreakerMode {
    /// Rejects calls.
    Enforce,
    /// Reports calls that would be rejected, and admits them.
    Observe,
    /// Admits every call and records nothing.
    Off,
}

/// Calls that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Window {
    /// Calls within this time, both ends included.
    Time(Duration),
    /// The last calls, this many.
    Calls(u32),
    /// Consecutive failures of any age. A success clears them.
    Consecutive,
}

/// Effect of a permanent error, besides asking for a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnPermanent {
    /// Opens the breaker at once.
    Open,
    /// Has no further effect.
    Note,
}

impl Default for BreakerSettings {
    /// loki-mode's defaults: opens at 3 failures in 60 s, for 300 s; a trial call each 10 s; closes
    /// after 3 successes with half of the capacity, and a quarter more each 60 s; 5 concurrent
    /// agents, otherwise 2.
    fn default() -> Self {
        Self {
            mode: BreakerMode::Enforce,
            window: Window::Time(Duration::from_secs(60)),
            threshold: 3,
            failure_rate: None,
            slow_call_duration: Duration::from_secs(60),
            slow_call_rate: None,
            minimum_calls: 10,
            cooldown: Duration::from_secs(300),
            cooldown_multiplier: 100,
            cooldown_max: Duration::from_secs(3_600),
            cooldown_jitter: 0,
            retry_after_max: Duration::from_secs(3_600),
            half_open_interval: Duration::from_secs(10),
            recovery_threshold: 3,
            recovery_ramp_start: 50,
            recovery_ramp_step: 25,
            recovery_ramp_every: Duration::from_secs(60),
            max_concurrent_calls: 5,
            max_concurrent_calls_reduced: 2,
            ignore: Vec::new(),
            permanent: Vec::new(),
            on_permanent: OnPermanent::Open,
            salt: 0,
        }
    }
}

impl BreakerSettings {
    /// Returns the effect of an error class, if the breaker overrides it.
    #[must_use]
    pub fn effect_of(&self, class: &str) -> Option<FailureEffect> {
        let is_among = |names: &[String]| names.iter().any(|it| it == class);
        if is_among(&self.permanent) {
            return Some(FailureEffect::Permanent);
        }
        is_among(&self.ignore).then_some(FailureEffect::Ignore)
    }

    /// Returns whether successes must be recorded, too.
    pub(super) const fn counts_successes(&self) -> bool {
        match self.window {
            Window::Calls(_) => true,
            Window::Time(_) => self.failure_rate.is_some() || self.slow_call_rate.is_some(),
            Window::Consecutive => false,
        }
    }

    /// Returns whether a call of this duration is slow.
    pub(super) fn is_slow(&self, took: Option<Duration>) -> bool {
        self.slow_call_rate.is_some() && took.is_some_and(|it| it >= self.slow_call_duration)
    }

    /// Returns whether consecutive cooldowns grow.
    #[must_use]
    pub const fn grows(&self) -> bool {
        self.cooldown_multiplier > 100
    }

    /// Returns the maximum cooldown, without `Retry-After`.
    #[must_use]
    pub fn cooldown_longest(&self) -> Duration {
        if self.grows() { self.cooldown_max.max(self.cooldown) } else { self.cooldown }
    }

    /// Returns the cooldown of the `opening`-th consecutive opening.
    pub(super) fn cooldown_of(&self, opening: u32, generation: u64) -> Duration {
        let most = millis(self.cooldown_longest());
        let mut length = millis(self.cooldown);
        for _ in 1..opening {
            if !self.grows() || length >= most {
                break;
            }
            length = length.saturating_mul(u64::from(self.cooldown_multiplier)) / 100;
        }
        length = length.min(most);
        // In thousandths: ten of them are one percent.
        let widest = u64::from(self.cooldown_jitter.min(100)).saturating_mul(10);
        let random = checksum(&[&self.salt.to_le_bytes(), &generation.to_le_bytes()]);
        let off = u64::from_le_bytes(random) % widest.saturating_add(1);
        Duration::from_millis(length.saturating_sub(length.saturating_mul(off) / 1000))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
