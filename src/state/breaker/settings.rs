//! Numbers of a circuit breaker. `breakers.yaml` sets them; the defaults are those of loki-mode.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checksum::checksum;
use crate::state::failure::Effect;

/// How a breaker of one name behaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether it rejects calls.
    pub mode: Mode,
    /// Which calls count.
    pub window: Window,
    /// Failures within the window that open it, where no `failure_rate` is set.
    pub threshold: u32,
    /// Share of failures in the window, in percent, that opens it.
    pub failure_rate: Option<u32>,
    /// A call that takes as long is slow.
    pub slow_call: Duration,
    /// Share of slow calls in the window, in percent, that opens it.
    pub slow_rate: Option<u32>,
    /// Calls in the window before a share of them says anything.
    pub min_calls: u32,
    /// How long it stays open.
    pub cooldown: Duration,
    /// What each further cooldown is of the one before, in percent; 100: they do not grow.
    pub cooldown_growth: u32,
    /// Longest cooldown, where they grow.
    pub cooldown_max: Duration,
    /// Up to how many percent are taken off a cooldown, so that not all come back at once.
    pub cooldown_jitter: u32,
    /// Longest time that a `Retry-After` keeps it open.
    pub retry_after_max: Duration,
    /// Time between two probes, for which a probe also holds its lease.
    pub half_open_interval: Duration,
    /// Successes in a row that close it.
    pub recovery_threshold: u32,
    /// Capacity just after it closed, in percent.
    pub ramp_start: u32,
    /// What is added each `ramp_every`, in percent.
    pub ramp_step: u32,
    /// How long each step lasts.
    pub ramp_every: Duration,
    /// Calls that may run side by side.
    pub parallelism: u32,
    /// The same while it is not closed.
    pub parallelism_reduced: u32,
    /// Classes of errors that do not count.
    pub ignore: Vec<String>,
    /// Classes of errors that do not go away by waiting.
    pub permanent: Vec<String>,
    /// What a permanent error does.
    pub on_permanent: OnPermanent,
    /// Differs from name to name, so that their jitter does.
    pub salt: u64,
}

/// Whether a breaker rejects calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// It does.
    Enforce,
    /// It says which ones it would.
    Observe,
    /// It admits every call and records nothing.
    Off,
}

/// Which calls count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Window {
    /// Those of the last so long, both ends included.
    Time(Duration),
    /// The last so many.
    Calls(u32),
    /// Failures in a row, however old: a success forgets them.
    Consecutive,
}

/// What a permanent error does besides asking for a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnPermanent {
    /// It opens the breaker at once.
    Open,
    /// Nothing.
    Note,
}

impl Default for Settings {
    /// loki-mode: 3 failures in 60 s, 300 s open, a probe each 10 s, 3 successes; then half of the
    /// capacity, a quarter more each 60 s; 5 agents side by side, else 2.
    fn default() -> Self {
        Self {
            mode: Mode::Enforce,
            window: Window::Time(Duration::from_secs(60)),
            threshold: 3,
            failure_rate: None,
            slow_call: Duration::from_secs(60),
            slow_rate: None,
            min_calls: 10,
            cooldown: Duration::from_secs(300),
            cooldown_growth: 100,
            cooldown_max: Duration::from_secs(3_600),
            cooldown_jitter: 0,
            retry_after_max: Duration::from_secs(3_600),
            half_open_interval: Duration::from_secs(10),
            recovery_threshold: 3,
            ramp_start: 50,
            ramp_step: 25,
            ramp_every: Duration::from_secs(60),
            parallelism: 5,
            parallelism_reduced: 2,
            ignore: Vec::new(),
            permanent: Vec::new(),
            on_permanent: OnPermanent::Open,
            salt: 0,
        }
    }
}

impl Settings {
    /// What an error of this class does, where the breaker itself says so.
    #[must_use]
    pub fn effect_of(&self, class: &str) -> Option<Effect> {
        let is_among = |names: &[String]| names.iter().any(|it| it == class);
        if is_among(&self.permanent) {
            return Some(Effect::Permanent);
        }
        is_among(&self.ignore).then_some(Effect::Ignore)
    }

    /// Whether successes must be remembered, too.
    pub(super) const fn counts_successes(&self) -> bool {
        match self.window {
            Window::Calls(_) => true,
            Window::Time(_) => self.failure_rate.is_some() || self.slow_rate.is_some(),
            Window::Consecutive => false,
        }
    }

    /// Whether a call that took so long is slow.
    pub(super) fn is_slow(&self, took: Option<Duration>) -> bool {
        self.slow_rate.is_some() && took.is_some_and(|it| it >= self.slow_call)
    }

    /// Whether each cooldown is longer than the one before.
    #[must_use]
    pub const fn grows(&self) -> bool {
        self.cooldown_growth > 100
    }

    /// The longest cooldown there can be, `Retry-After` left out.
    #[must_use]
    pub fn cooldown_longest(&self) -> Duration {
        if self.grows() { self.cooldown_max.max(self.cooldown) } else { self.cooldown }
    }

    /// How long it stays open the `opening`-th time in a row.
    pub(super) fn cooldown_of(&self, opening: u32, generation: u64) -> Duration {
        let most = millis(self.cooldown_longest());
        let mut length = millis(self.cooldown);
        for _ in 1..opening {
            if !self.grows() || length >= most {
                break;
            }
            length = length.saturating_mul(u64::from(self.cooldown_growth)) / 100;
        }
        length = length.min(most);
        // In thousandths: ten of them are a percent.
        let widest = u64::from(self.cooldown_jitter.min(100)).saturating_mul(10);
        let random = checksum(&[&self.salt.to_le_bytes(), &generation.to_le_bytes()]);
        let off = u64::from_le_bytes(random) % widest.saturating_add(1);
        Duration::from_millis(length.saturating_sub(length.saturating_mul(off) / 1000))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
