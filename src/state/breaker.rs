//! The circuit breaker: rejects calls for a while after repeated failures.
//!
//! `step(breaker, event, settings, now) -> (breaker, answer)`:
//!
//! | state | request | success | failure that counts |
//! |---|---|---|---|
//! | `CLOSED` | admitted | no effect with a time window and a threshold, whose failures leave by age only; recorded with a window of calls, a rate or consecutive failures | recorded; at `threshold` within `window` (both ends included), or at the failure rate: `OPEN` until `now + cooldown` |
//! | `OPEN`, cooling down | rejected with the time to wait | late, no effect | late, only its time and error are recorded: the cooldown does not grow, a `Retry-After` lengthens it |
//! | `OPEN`, cooled down | `HALF_OPEN`, admitted as a trial call | late, no effect | late, as above |
//! | `OPEN`, forced | rejected until the given time, or until a reset | late, no effect | late, only its time and error are recorded |
//! | `HALF_OPEN`, a trial call holds the lease | rejected with the rest of the lease | counted; at `recovery_threshold`: `CLOSED`, all counters and times cleared | `OPEN` until `now + cooldown` |
//! | `HALF_OPEN`, the lease expired | admitted as the next trial call | counted, as above | `OPEN`, as above |
//! | `CLOSED`, ramping | admitted; the capacity grows with time alone | as `CLOSED` | as `CLOSED` |
//!
//! In every state, an ignored failure records its time and error only. A permanent failure needs a
//! human; outside of `OPEN` it opens the breaker at once, unless it is only recorded. A
//! `Retry-After` opens the breaker at once, too. A result with the generation of another state is
//! late and only recorded. A manual trip forces `OPEN`, and a reset gives a new `CLOSED`. Both
//! begin a new generation, as each change of the state does. In `observe` mode, a call that would
//! be rejected is admitted and reported. In `off` mode, calls are admitted and nothing is recorded.
//!
//! A trial call whose process died blocks no other call for long: its lease expires after
//! `half_open_interval`. A clock that goes back shortens waits and never lengthens them: an end
//! that is further away than its own length counts from now.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use policyd_base::limits::BREAKER_CALLS_MAX;
use policyd_yaml::time::{Timestamp, short_text};

mod event;
pub mod load;
mod settings;

pub use crate::failure::FailureEffect;
pub use event::{BreakerEvent, BreakerFailure, BreakerResponse, CallMetadata};
pub use settings::{BreakerMode, BreakerSettings, OnPermanent, Window};

/// State of a breaker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerPhase {
    /// Calls are permitted.
    #[default]
    Closed,
    /// Calls are rejected.
    Open,
    /// One trial call at a time is permitted.
    HalfOpen,
}

impl BreakerPhase {
    /// Returns the name, as in loki-mode's files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Open => "OPEN",
            Self::HalfOpen => "HALF_OPEN",
        }
    }
}

/// Names of all states.
pub const PHASES: [&str; 3] =
    [BreakerPhase::Closed.as_str(), BreakerPhase::Open.as_str(), BreakerPhase::HalfOpen.as_str()];

/// Outcome of a call that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallOutcome {
    /// The call failed.
    Failed,
    /// The call succeeded and was slow.
    Slow,
    /// The call succeeded.
    Worked,
}

/// A recorded call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedCall {
    /// Time of the result.
    pub at: Timestamp,
    pub outcome: CallOutcome,
}

/// Saved state of one breaker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaker {
    /// State at the last change.
    pub phase: BreakerPhase,
    /// Number that grows with each change of the state. A result can carry the generation in which
    /// its call was admitted.
    pub generation: u64,
    /// Calls of the window, oldest first. Successes are recorded only if the settings need them.
    pub calls: Vec<CountedCall>,
    /// Consecutive successes in the half-open state.
    pub successes: u32,
    /// Time of the last failure, late failures included.
    pub last_failure: Option<Timestamp>,
    /// Error text of the last failure.
    pub last_error: String,
    /// Time of the last change of the state.
    pub last_change: Option<Timestamp>,
    /// End of the open state.
    pub cooldown_until: Option<Timestamp>,
    /// End of the delay that the server requested.
    pub open_until: Option<Timestamp>,
    /// Time at which the last trial call was admitted.
    pub last_probe: Option<Timestamp>,
    /// Number of openings since the breaker last stayed closed for its maximum cooldown.
    pub openings: u32,
    /// Time at which it closed after it was open.
    pub recovered_at: Option<Timestamp>,
    /// Reason of a manual trip.
    pub forced: Option<String>,
    /// Whether the last failures are permanent.
    pub needs_human: bool,
}

/// Returns the next state of a breaker, and its response.
#[must_use]
pub fn step(
    breaker: &Breaker,
    event: BreakerEvent<'_>,
    settings: &BreakerSettings,
    now: Timestamp,
) -> (Breaker, BreakerResponse) {
    let mut next = breaker.clone();
    let off = settings.mode == BreakerMode::Off;
    let answer = match event {
        BreakerEvent::Request if off => BreakerResponse::Permitted,
        BreakerEvent::Success(_) | BreakerEvent::Failure(_) if off => BreakerResponse::Recorded,
        BreakerEvent::Request => match (settings.mode, next.request(settings, now)) {
            (BreakerMode::Observe, BreakerResponse::Rejected { wait }) => {
                BreakerResponse::WouldReject { wait }
            }
            (BreakerMode::Enforce | BreakerMode::Observe | BreakerMode::Off, answer) => answer,
        },
        BreakerEvent::Success(told) => {
            next.success(told, settings, now);
            BreakerResponse::Recorded
        }
        BreakerEvent::Failure(failure) => {
            next.failure(&failure, settings, now);
            BreakerResponse::Recorded
        }
        BreakerEvent::Trip { length, reason } => {
            next.turn(BreakerPhase::Open, now);
            next.forced = Some(reason.to_owned());
            next.cooldown_until = length.map(|it| now.plus(it));
            BreakerResponse::Recorded
        }
        BreakerEvent::Reset => {
            let generation = next.generation.saturating_add(1);
            next = Breaker { generation, last_change: Some(now), ..Breaker::default() };
            BreakerResponse::Recorded
        }
    };
    (next, answer)
}

impl Breaker {
    /// Returns whether the breaker has no relevant state: closed, and no recent failure.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.phase == BreakerPhase::Closed && self.calls.is_empty() && !self.needs_human
    }

    /// Returns the times of failures that count, oldest first.
    pub fn failures(&self) -> impl Iterator<Item = Timestamp> {
        self.of(CallOutcome::Failed)
    }

    /// Returns the times of calls with this outcome, oldest first.
    pub fn of(&self, outcome: CallOutcome) -> impl Iterator<Item = Timestamp> {
        self.calls.iter().filter(move |it| it.outcome == outcome).map(|it| it.at)
    }

    /// Returns the number of failures in the window at a point in time.
    #[must_use]
    pub fn failures_at(&self, settings: &BreakerSettings, now: Timestamp) -> usize {
        let counts = |at: Timestamp| match settings.window {
            Window::Time(length) if self.phase == BreakerPhase::Closed => apart(at, now) <= length,
            Window::Time(_) | Window::Calls(_) | Window::Consecutive => true,
        };
        self.failures().filter(|at| counts(*at)).count()
    }

    /// Returns the state at a point in time. `Open` ends with the cooldown.
    #[must_use]
    pub fn phase_at(&self, settings: &BreakerSettings, now: Timestamp) -> BreakerPhase {
        match self.phase {
            BreakerPhase::Open if self.wait(settings, now) == Some(Duration::ZERO) => {
                BreakerPhase::HalfOpen
            }
            BreakerPhase::Closed | BreakerPhase::Open | BreakerPhase::HalfOpen => self.phase,
        }
    }

    /// Returns whether the breaker rejects every call at a point in time.
    #[must_use]
    pub fn is_open(&self, settings: &BreakerSettings, now: Timestamp) -> bool {
        settings.mode == BreakerMode::Enforce && self.phase_at(settings, now) == BreakerPhase::Open
    }

    /// Returns the time until a call is permitted. `None` if a manual trip has no end.
    #[must_use]
    pub fn wait(&self, settings: &BreakerSettings, now: Timestamp) -> Option<Duration> {
        match self.phase {
            BreakerPhase::Closed => Some(Duration::ZERO),
            BreakerPhase::Open if self.forced.is_some() && self.cooldown_until.is_none() => None,
            BreakerPhase::Open => {
                let rest = self.cooldown_until.map_or(Duration::ZERO, |until| until.since(now));
                Some(rest.min(self.longest(settings)))
            }
            BreakerPhase::HalfOpen => Some(self.lease(settings, now)),
        }
    }

    /// Returns the maximum remaining time in the open state.
    fn longest(&self, settings: &BreakerSettings) -> Duration {
        if self.forced.is_some() {
            let begin = self.last_change.unwrap_or_default();
            return self.cooldown_until.map_or(Duration::ZERO, |until| until.since(begin));
        }
        let asked = self.open_until.map_or(Duration::ZERO, |_| settings.retry_after_max);
        settings.cooldown_longest().max(asked)
    }

    /// Returns the rest of the trial call's lease.
    fn lease(&self, settings: &BreakerSettings, now: Timestamp) -> Duration {
        let interval = settings.half_open_interval;
        let rest = self.last_probe.map_or(Duration::ZERO, |it| it.plus(interval).since(now));
        // A trial call can be in the future by the time that another process waited for the lock,
        // not by more.
        if rest > interval.saturating_mul(2) { Duration::ZERO } else { rest.min(interval) }
    }

    fn request(&mut self, settings: &BreakerSettings, now: Timestamp) -> BreakerResponse {
        let wait = self.wait(settings, now);
        let free = wait == Some(Duration::ZERO);
        match self.phase {
            BreakerPhase::Closed => BreakerResponse::Permitted,
            BreakerPhase::Open if free => {
                self.turn(BreakerPhase::HalfOpen, now);
                self.calls.clear();
                self.last_probe = Some(now);
                BreakerResponse::Permitted
            }
            BreakerPhase::Open => {
                self.mend_clock(settings, now);
                BreakerResponse::Rejected { wait }
            }
            BreakerPhase::HalfOpen if free => {
                self.last_probe = Some(now);
                BreakerResponse::Permitted
            }
            BreakerPhase::HalfOpen => BreakerResponse::Rejected { wait },
        }
    }

    /// Corrects times that a clock wrote before it went back. Files store whole seconds.
    fn mend_clock(&mut self, settings: &BreakerSettings, now: Timestamp) {
        let longest = self.longest(settings);
        let sound = now.plus(longest).plus(Duration::from_secs(1));
        if self.cooldown_until.is_some_and(|until| until > sound) {
            self.cooldown_until = Some(now.plus(longest));
            if self.forced.is_some() {
                // The length is the time between the two.
                self.last_change = Some(now);
            }
        }
    }

    /// Returns whether a result belongs to another generation.
    fn is_late(&self, told: CallMetadata) -> bool {
        told.generation.is_some_and(|it| it != self.generation)
    }

    fn success(&mut self, told: CallMetadata, settings: &BreakerSettings, now: Timestamp) {
        if self.is_late(told) {
            return;
        }
        let slow = settings.is_slow(told.took);
        match (self.phase, settings.window) {
            (BreakerPhase::Open, _) => {}
            (BreakerPhase::HalfOpen, _) if slow => self.open(None, settings, now),
            (BreakerPhase::HalfOpen, _) => {
                self.successes = self.successes.saturating_add(1);
                if self.successes >= settings.recovery_threshold {
                    self.close(now);
                }
            }
            (BreakerPhase::Closed, Window::Consecutive) => self.calls.clear(),
            (BreakerPhase::Closed, Window::Time(_) | Window::Calls(_)) => {
                if settings.counts_successes() {
                    let outcome = if slow { CallOutcome::Slow } else { CallOutcome::Worked };
                    self.count(outcome, settings, now);
                }
            }
        }
    }

    fn failure(
        &mut self,
        failure: &BreakerFailure<'_>,
        settings: &BreakerSettings,
        now: Timestamp,
    ) {
        self.last_failure = Some(now);
        failure.error.clone_into(&mut self.last_error);
        if self.is_late(failure.told) || failure.effect == FailureEffect::Ignore {
            return;
        }
        let asked = failure.retry_after.map(|it| it.min(settings.retry_after_max));
        let asked = asked.filter(|it| !it.is_zero());
        let permanent = failure.effect == FailureEffect::Permanent;
        self.needs_human |= permanent;
        if permanent && settings.on_permanent == OnPermanent::Note {
            return;
        }
        match self.phase {
            BreakerPhase::Open => self.leave_alone(asked, now),
            BreakerPhase::HalfOpen => {
                self.open(asked, settings, now);
                if !permanent {
                    self.calls = vec![CountedCall { at: now, outcome: CallOutcome::Failed }];
                }
            }
            BreakerPhase::Closed if permanent => self.open(asked, settings, now),
            BreakerPhase::Closed => {
                self.count(CallOutcome::Failed, settings, now);
                if self.phase == BreakerPhase::Closed && asked.is_some() {
                    self.open(asked, settings, now);
                } else {
                    self.leave_alone(asked, now);
                }
            }
        }
    }

    /// Records a call, and opens the breaker if a threshold is reached.
    fn count(&mut self, outcome: CallOutcome, settings: &BreakerSettings, now: Timestamp) {
        let kept = match settings.window {
            Window::Time(length) => {
                // A process that waited for the lock has an earlier time than others.
                self.calls.retain(|it| apart(it.at, now) <= length);
                BREAKER_CALLS_MAX
            }
            Window::Calls(count) => {
                // Clamp to `now`: after a clock step back, an older call must not sort behind the
                // new one.
                self.calls.iter_mut().for_each(|it| it.at = it.at.min(now));
                usize::try_from(count).unwrap_or(BREAKER_CALLS_MAX)
            }
            Window::Consecutive => BREAKER_CALLS_MAX,
        };
        self.calls.push(CountedCall { at: now, outcome });
        self.calls.sort_by_key(|it| it.at);
        let surplus = self.calls.len().saturating_sub(kept);
        self.calls.drain(..surplus);
        if self.is_due(settings) {
            self.open(None, settings, now);
        }
    }

    /// Returns whether the calls of the window open the breaker.
    fn is_due(&self, settings: &BreakerSettings) -> bool {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let (all, failed) = (number(self.calls.len()), number(self.failures().count()));
        let telling = all >= u64::from(settings.minimum_calls);
        let reaches = |count: u64, rate: u32| {
            telling && count.saturating_mul(100) >= all.saturating_mul(u64::from(rate))
        };
        let slow = || number(self.of(CallOutcome::Slow).count());
        let failing = match settings.failure_rate {
            Some(rate) => reaches(failed, rate),
            None => failed >= u64::from(settings.threshold),
        };
        failing || settings.slow_call_rate.is_some_and(|rate| reaches(slow(), rate))
    }

    /// Opens the breaker for its cooldown, or for the requested time if that is longer.
    fn open(&mut self, asked: Option<Duration>, settings: &BreakerSettings, now: Timestamp) {
        let stayed_closed = |since: Timestamp| now.since(since) >= settings.cooldown_longest();
        if self.phase == BreakerPhase::Closed && self.last_change.is_none_or(stayed_closed) {
            self.openings = 0;
        }
        self.openings = self.openings.saturating_add(1);
        self.turn(BreakerPhase::Open, now);
        let cooldown = settings.cooldown_of(self.openings, self.generation);
        self.cooldown_until = Some(now.plus(cooldown));
        self.open_until = asked.map(|it| now.plus(it));
        self.leave_alone(asked, now);
    }

    /// Extends the open state to at least the requested time.
    fn leave_alone(&mut self, asked: Option<Duration>, now: Timestamp) {
        let Some(asked) = asked.map(|it| now.plus(it)) else { return };
        if self.forced.is_none() && self.cooldown_until.is_some_and(|until| until < asked) {
            self.open_until = Some(asked);
            self.cooldown_until = Some(asked);
        }
    }

    /// Closes the breaker after a recovery.
    fn close(&mut self, now: Timestamp) {
        let (generation, openings) = (self.generation.saturating_add(1), self.openings);
        let now = Some(now);
        *self =
            Self { generation, openings, last_change: now, recovered_at: now, ..Self::default() };
    }

    /// Changes the state, and clears the data of the previous state.
    fn turn(&mut self, phase: BreakerPhase, now: Timestamp) {
        self.phase = phase;
        self.generation = self.generation.saturating_add(1);
        self.last_change = Some(now);
        self.cooldown_until = None;
        self.open_until = None;
        self.last_probe = None;
        self.recovered_at = None;
        self.forced = None;
        self.successes = 0;
    }
}

/// Returns the time between two points, in either order.
fn apart(one: Timestamp, other: Timestamp) -> Duration {
    one.since(other).max(other.since(one))
}

/// Formats a wait that can last until the user ends it.
#[must_use]
pub fn until(wait: Option<Duration>) -> String {
    wait.map_or_else(|| "until it is reset".to_owned(), |it| format!("for {}", short_text(it)))
}
