//! The circuit breaker: calls that fail repeatedly are rejected for a while, as in loki-mode.
//!
//! `step(breaker, event, settings, now) -> (breaker, answer)`:
//!
//! | state | request | success | failure that counts |
//! |---|---|---|---|
//! | `CLOSED` | admitted | seed: nothing, failures leave the window by age only; a window of calls, a rate or a count in a row takes it in | counted; `threshold` of them within `window`, both ends counted, or the rate of them: `OPEN` until `now + cooldown` |
//! | `OPEN`, cooling | rejected with the time to wait | late, nothing | late, only its time and error are kept: the cooldown does not grow, a `Retry-After` lengthens it |
//! | `OPEN`, cooled | `HALF_OPEN`, admitted as a probe | late, nothing | the same |
//! | `OPEN`, forced | rejected until the time that was given, or for good | late, nothing | late, only its time and error |
//! | `HALF_OPEN`, a probe holds the lease | rejected with the rest of the lease | counted; `recovery_threshold` of them: `CLOSED`, all counters and times cleared | `OPEN` until `now + cooldown` |
//! | `HALF_OPEN`, the lease expired | admitted as the next probe | counted, as above | `OPEN`, as above |
//! | `CLOSED`, ramping | admitted; the capacity grows with time alone | as `CLOSED` | as `CLOSED` |
//!
//! In every state: a failure to be ignored is noted (its time and error) and moves nothing; a
//! permanent one asks for a human, and outside of `OPEN` opens at once, unless it is only to be
//! noted; a `Retry-After` opens at once, too. A result that carries the generation of another state
//! is late, and only noted. A trip by hand forces `OPEN`, a reset gives a fresh `CLOSED`; both, like
//! each change of the state, begin a new generation. In `observe` a call that would be rejected is
//! admitted, and said to be; `off` admits and records nothing.
//!
//! A trial call whose process died blocks no other call: its lease expires after `half_open_interval`. A clock
//! that went back shortens waits, it never lengthens them: what lies in the future by more than its
//! own length counts from now.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::BREAKER_CALLS_MAX;
use crate::time::Timestamp;

mod event;
pub mod load;
mod settings;

pub use crate::state::failure::Effect;
pub use event::{Answer, Event, Failure, Told};
pub use settings::{Mode, OnPermanent, Settings, Window};

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Phase {
    /// Calls go through.
    #[default]
    Closed,
    /// Calls are rejected.
    Open,
    /// One call at a time tries whether it works again.
    HalfOpen,
}

impl Phase {
    /// The seed's name of it.
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
    [Phase::Closed.as_str(), Phase::Open.as_str(), Phase::HalfOpen.as_str()];

/// Result of a call within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It failed.
    Failed,
    /// It worked, and took too long.
    Slow,
    /// It worked.
    Worked,
}

/// A call that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    /// When its result came.
    pub at: Timestamp,
    /// Result of the call.
    pub outcome: Outcome,
}

/// Memory of one breaker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaker {
    /// Where it stands.
    pub phase: Phase,
    /// Goes up whenever the state changes; a result may say in which one its call was admitted.
    pub generation: u64,
    /// The calls of the window, oldest first; successes only where the settings look at them.
    pub calls: Vec<Counted>,
    /// Successes in a row since it is half open.
    pub successes: u32,
    /// The last failure of all, late ones too.
    pub last_failure: Option<Timestamp>,
    /// What the last failure said.
    pub last_error: String,
    /// When `phase` last changed.
    pub last_change: Option<Timestamp>,
    /// When it stops being open.
    pub cooldown_until: Option<Timestamp>,
    /// End of the delay that the server requested.
    pub open_until: Option<Timestamp>,
    /// When the last probe was admitted.
    pub last_probe: Option<Timestamp>,
    /// Times it opened since it last stayed closed for as long as its longest cooldown.
    pub openings: u32,
    /// When it closed after having been open.
    pub recovered_at: Option<Timestamp>,
    /// Why it was opened by hand, where it was.
    pub forced: Option<String>,
    /// Whether the last failures do not go away by waiting.
    pub needs_human: bool,
}

/// The next state of a breaker, and its answer.
#[must_use]
pub fn step(
    breaker: &Breaker,
    event: Event<'_>,
    settings: &Settings,
    now: Timestamp,
) -> (Breaker, Answer) {
    let mut next = breaker.clone();
    let off = settings.mode == Mode::Off;
    let answer = match event {
        Event::Request if off => Answer::Admitted,
        Event::Success(_) | Event::Failure(_) if off => Answer::Noted,
        Event::Request => match (settings.mode, next.request(settings, now)) {
            (Mode::Observe, Answer::Rejected { wait }) => Answer::Tolerated { wait },
            (Mode::Enforce | Mode::Observe | Mode::Off, answer) => answer,
        },
        Event::Success(told) => {
            next.success(told, settings, now);
            Answer::Noted
        }
        Event::Failure(failure) => {
            next.failure(&failure, settings, now);
            Answer::Noted
        }
        Event::Trip { length, reason } => {
            next.turn(Phase::Open, now);
            next.forced = Some(reason.to_owned());
            next.cooldown_until = length.map(|it| now.plus(it));
            Answer::Noted
        }
        Event::Reset => {
            let generation = next.generation.saturating_add(1);
            next = Breaker { generation, last_change: Some(now), ..Breaker::default() };
            Answer::Noted
        }
    };
    (next, answer)
}

impl Breaker {
    /// Whether it is as good as none: closed, and nothing failed lately.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Closed && self.calls.is_empty() && !self.needs_human
    }

    /// The failures that count, oldest first.
    pub fn failures(&self) -> impl Iterator<Item = Timestamp> {
        self.of(Outcome::Failed)
    }

    /// When the calls that count came to this, oldest first.
    pub fn of(&self, outcome: Outcome) -> impl Iterator<Item = Timestamp> {
        self.calls.iter().filter(move |it| it.outcome == outcome).map(|it| it.at)
    }

    /// The failures that still count at a moment.
    #[must_use]
    pub fn failures_at(&self, settings: &Settings, now: Timestamp) -> usize {
        let counts = |at: Timestamp| match settings.window {
            Window::Time(length) if self.phase == Phase::Closed => apart(at, now) <= length,
            Window::Time(_) | Window::Calls(_) | Window::Consecutive => true,
        };
        self.failures().filter(|at| counts(*at)).count()
    }

    /// Returns the state at a time: the open state ends with the cooldown.
    #[must_use]
    pub fn phase_at(&self, settings: &Settings, now: Timestamp) -> Phase {
        match self.phase {
            Phase::Open if self.wait(settings, now) == Some(Duration::ZERO) => Phase::HalfOpen,
            Phase::Closed | Phase::Open | Phase::HalfOpen => self.phase,
        }
    }

    /// Whether it rejects every call at a moment.
    #[must_use]
    pub fn is_open(&self, settings: &Settings, now: Timestamp) -> bool {
        settings.mode == Mode::Enforce && self.phase_at(settings, now) == Phase::Open
    }

    /// Time until a call may be made at a moment; none where it was opened by hand for good.
    #[must_use]
    pub fn wait(&self, settings: &Settings, now: Timestamp) -> Option<Duration> {
        match self.phase {
            Phase::Closed => Some(Duration::ZERO),
            Phase::Open if self.forced.is_some() && self.cooldown_until.is_none() => None,
            Phase::Open => {
                let rest = self.cooldown_until.map_or(Duration::ZERO, |until| until.since(now));
                Some(rest.min(self.longest(settings)))
            }
            Phase::HalfOpen => Some(self.lease(settings, now)),
        }
    }

    /// The longest that it can be open from now on.
    fn longest(&self, settings: &Settings) -> Duration {
        if self.forced.is_some() {
            let begin = self.last_change.unwrap_or_default();
            return self.cooldown_until.map_or(Duration::ZERO, |until| until.since(begin));
        }
        let asked = self.open_until.map_or(Duration::ZERO, |_| settings.retry_after_max);
        settings.cooldown_longest().max(asked)
    }

    /// The rest of the lease of the last probe.
    fn lease(&self, settings: &Settings, now: Timestamp) -> Duration {
        let interval = settings.half_open_interval;
        let rest = self.last_probe.map_or(Duration::ZERO, |it| it.plus(interval).since(now));
        // A probe may lie in the future by what a process waited for the lock, not by more.
        if rest > interval.saturating_mul(2) { Duration::ZERO } else { rest.min(interval) }
    }

    fn request(&mut self, settings: &Settings, now: Timestamp) -> Answer {
        let wait = self.wait(settings, now);
        let free = wait == Some(Duration::ZERO);
        match self.phase {
            Phase::Closed => Answer::Admitted,
            Phase::Open if free => {
                self.turn(Phase::HalfOpen, now);
                self.calls.clear();
                self.last_probe = Some(now);
                Answer::Admitted
            }
            Phase::Open => {
                self.mend_clock(settings, now);
                Answer::Rejected { wait }
            }
            Phase::HalfOpen if free => {
                self.last_probe = Some(now);
                Answer::Admitted
            }
            Phase::HalfOpen => Answer::Rejected { wait },
        }
    }

    /// Files keep whole seconds; an end that is further off was written by a clock that went back.
    fn mend_clock(&mut self, settings: &Settings, now: Timestamp) {
        let longest = self.longest(settings);
        let sound = now.plus(longest).plus(Duration::from_secs(1));
        if self.cooldown_until.is_some_and(|until| until > sound) {
            self.cooldown_until = Some(now.plus(longest));
            if self.forced.is_some() {
                // Its length is what lies between the two.
                self.last_change = Some(now);
            }
        }
    }

    /// Whether a result belongs to another state than this one.
    fn is_late(&self, told: Told) -> bool {
        told.generation.is_some_and(|it| it != self.generation)
    }

    fn success(&mut self, told: Told, settings: &Settings, now: Timestamp) {
        if self.is_late(told) {
            return;
        }
        let slow = settings.is_slow(told.took);
        match (self.phase, settings.window) {
            (Phase::Open, _) => {}
            (Phase::HalfOpen, _) if slow => self.open(None, settings, now),
            (Phase::HalfOpen, _) => {
                self.successes = self.successes.saturating_add(1);
                if self.successes >= settings.recovery_threshold {
                    self.close(now);
                }
            }
            (Phase::Closed, Window::Consecutive) => self.calls.clear(),
            (Phase::Closed, Window::Time(_) | Window::Calls(_)) => {
                if settings.counts_successes() {
                    let outcome = if slow { Outcome::Slow } else { Outcome::Worked };
                    self.count(outcome, settings, now);
                }
            }
        }
    }

    fn failure(&mut self, failure: &Failure<'_>, settings: &Settings, now: Timestamp) {
        self.last_failure = Some(now);
        failure.error.clone_into(&mut self.last_error);
        if self.is_late(failure.told) || failure.effect == Effect::Ignore {
            return;
        }
        let asked = failure.retry_after.map(|it| it.min(settings.retry_after_max));
        let asked = asked.filter(|it| !it.is_zero());
        let permanent = failure.effect == Effect::Permanent;
        self.needs_human |= permanent;
        if permanent && settings.on_permanent == OnPermanent::Note {
            return;
        }
        match self.phase {
            Phase::Open => self.leave_alone(asked, now),
            Phase::HalfOpen => {
                self.open(asked, settings, now);
                if !permanent {
                    self.calls = vec![Counted { at: now, outcome: Outcome::Failed }];
                }
            }
            Phase::Closed if permanent => self.open(asked, settings, now),
            Phase::Closed => {
                self.count(Outcome::Failed, settings, now);
                if self.phase == Phase::Closed && asked.is_some() {
                    self.open(asked, settings, now);
                } else {
                    self.leave_alone(asked, now);
                }
            }
        }
    }

    /// Counts a call in, and opens where that is one too many.
    fn count(&mut self, outcome: Outcome, settings: &Settings, now: Timestamp) {
        let kept = match settings.window {
            Window::Time(length) => {
                // A process that waited for the lock comes with a time before that of others.
                self.calls.retain(|it| apart(it.at, now) <= length);
                BREAKER_CALLS_MAX
            }
            Window::Calls(count) => {
                // They are in the order in which they came, whatever the clock did.
                self.calls.iter_mut().for_each(|it| it.at = it.at.min(now));
                usize::try_from(count).unwrap_or(BREAKER_CALLS_MAX)
            }
            Window::Consecutive => BREAKER_CALLS_MAX,
        };
        self.calls.push(Counted { at: now, outcome });
        self.calls.sort_by_key(|it| it.at);
        let surplus = self.calls.len().saturating_sub(kept);
        self.calls.drain(..surplus);
        if self.is_due(settings) {
            self.open(None, settings, now);
        }
    }

    /// Whether the calls of the window open it.
    fn is_due(&self, settings: &Settings) -> bool {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let (all, failed) = (number(self.calls.len()), number(self.failures().count()));
        let telling = all >= u64::from(settings.min_calls);
        let reaches = |count: u64, rate: u32| {
            telling && count.saturating_mul(100) >= all.saturating_mul(u64::from(rate))
        };
        let slow = || number(self.of(Outcome::Slow).count());
        let failing = match settings.failure_rate {
            Some(rate) => reaches(failed, rate),
            None => failed >= u64::from(settings.threshold),
        };
        failing || settings.slow_rate.is_some_and(|rate| reaches(slow(), rate))
    }

    /// Opens it for its cooldown, or for as long as it was asked to if that is longer.
    fn open(&mut self, asked: Option<Duration>, settings: &Settings, now: Timestamp) {
        let stayed_closed = |since: Timestamp| now.since(since) >= settings.cooldown_longest();
        if self.phase == Phase::Closed && self.last_change.is_none_or(stayed_closed) {
            self.openings = 0;
        }
        self.openings = self.openings.saturating_add(1);
        self.turn(Phase::Open, now);
        let cooldown = settings.cooldown_of(self.openings, self.generation);
        self.cooldown_until = Some(now.plus(cooldown));
        self.leave_alone(asked, now);
    }

    /// Stays open for at least as long as it was asked to.
    fn leave_alone(&mut self, asked: Option<Duration>, now: Timestamp) {
        let Some(asked) = asked.map(|it| now.plus(it)) else { return };
        if self.forced.is_none() && self.cooldown_until.is_some_and(|until| until < asked) {
            self.open_until = Some(asked);
            self.cooldown_until = Some(asked);
        }
    }

    /// Closes it after it has proved to work.
    fn close(&mut self, now: Timestamp) {
        let (generation, openings) = (self.generation.saturating_add(1), self.openings);
        let now = Some(now);
        *self =
            Self { generation, openings, last_change: now, recovered_at: now, ..Self::default() };
    }

    /// Changes the phase; what belongs to the former one is forgotten.
    fn turn(&mut self, phase: Phase, now: Timestamp) {
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

/// Time between two moments, whichever comes first.
fn apart(one: Timestamp, other: Timestamp) -> Duration {
    one.since(other).max(other.since(one))
}
