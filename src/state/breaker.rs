//! The circuit breaker: what fails again and again is left alone for a while (seed 003).
//!
//! `step(breaker, event, settings, now) -> (breaker, answer)`:
//!
//! | state | request | success | failure |
//! |---|---|---|---|
//! | `CLOSED` | admitted | nothing: failures leave the window by age only | counted; `threshold` of them within `window`, both ends counted: `OPEN` until `now + cooldown` |
//! | `OPEN`, cooling | rejected with the time to wait | late, nothing | late, only its time and error are kept: the cooldown does not grow |
//! | `OPEN`, cooled | `HALF_OPEN`, admitted as a probe | late, nothing | the same |
//! | `HALF_OPEN` | admitted `half_open_interval` after the last probe, else rejected | counted; `recovery_threshold` of them: `CLOSED`, all counters and times cleared | `OPEN` until `now + cooldown` |
//!
//! A probe whose process died blocks nobody: the next one is admitted after the interval. A clock
//! that went back shortens waits, it never lengthens them: what lies in the future by more than its
//! own length counts from now.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Numbers of a breaker; `breakers.yaml` sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Failures within the window that open it.
    pub threshold: u32,
    /// How long a failure counts.
    pub window: Duration,
    /// How long it stays open.
    pub cooldown: Duration,
    /// Time between two probes.
    pub half_open_interval: Duration,
    /// Successes in a row that close it.
    pub recovery_threshold: u32,
}

impl Default for Settings {
    /// Seed 003: 3 failures in 60 s, 300 s open, a probe each 10 s, 3 successes.
    fn default() -> Self {
        Self {
            threshold: 3,
            window: Duration::from_secs(60),
            cooldown: Duration::from_secs(300),
            half_open_interval: Duration::from_secs(10),
            recovery_threshold: 3,
        }
    }
}

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// Memory of one breaker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaker {
    /// Where it stands.
    pub phase: Phase,
    /// The failures of the window, oldest first; at most `threshold`.
    pub failures: Vec<Timestamp>,
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
    /// When the last probe was admitted.
    pub last_probe: Option<Timestamp>,
}

/// What happens to a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Somebody wants to call.
    Request,
    /// An admitted call worked.
    Success,
    /// An admitted call failed, with what it said.
    Failure(&'a str),
}

/// What a breaker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A result was taken in.
    Noted,
    /// The call may be made.
    Admitted,
    /// The call may not be made now.
    Rejected {
        /// Time until one may.
        wait: Duration,
    },
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
    let answer = match event {
        Event::Request => next.request(settings, now),
        Event::Success => {
            next.success(settings, now);
            Answer::Noted
        }
        Event::Failure(error) => {
            next.failure(error, settings, now);
            Answer::Noted
        }
    };
    (next, answer)
}

impl Breaker {
    /// Whether it is as good as none: closed, and nothing failed lately.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Closed && self.failures.is_empty()
    }

    /// Where it stands at a moment: open is over when the cooldown is.
    #[must_use]
    pub fn phase_at(&self, settings: &Settings, now: Timestamp) -> Phase {
        match self.phase {
            Phase::Open if self.wait(settings, now).is_zero() => Phase::HalfOpen,
            Phase::Closed | Phase::Open | Phase::HalfOpen => self.phase,
        }
    }

    /// Time until it stops being open.
    fn wait(&self, settings: &Settings, now: Timestamp) -> Duration {
        self.cooldown_until.map_or(Duration::ZERO, |until| until.since(now).min(settings.cooldown))
    }

    fn request(&mut self, settings: &Settings, now: Timestamp) -> Answer {
        match self.phase {
            Phase::Closed => Answer::Admitted,
            Phase::Open => {
                let wait = self.wait(settings, now);
                if wait.is_zero() {
                    self.turn(Phase::HalfOpen, now);
                    self.failures.clear();
                    self.successes = 0;
                    self.last_probe = Some(now);
                    return Answer::Admitted;
                }
                // Files keep whole seconds; what is further off was written by a clock that went back.
                let sound = now.plus(settings.cooldown).plus(Duration::from_secs(1));
                if self.cooldown_until.is_some_and(|until| until > sound) {
                    self.cooldown_until = Some(now.plus(wait));
                }
                Answer::Rejected { wait }
            }
            Phase::HalfOpen => {
                let interval = settings.half_open_interval;
                let due = self.last_probe.map(|it| it.plus(interval));
                let wait = due.map_or(Duration::ZERO, |due| due.since(now));
                // A probe may lie in the future by what a process waited for the lock, not by more.
                if wait.is_zero() || wait > interval.saturating_mul(2) {
                    self.last_probe = Some(now);
                    return Answer::Admitted;
                }
                Answer::Rejected { wait: wait.min(interval) }
            }
        }
    }

    fn success(&mut self, settings: &Settings, now: Timestamp) {
        if self.phase != Phase::HalfOpen {
            return;
        }
        self.successes = self.successes.saturating_add(1);
        if self.successes >= settings.recovery_threshold {
            *self = Self { last_change: Some(now), ..Self::default() };
        }
    }

    fn failure(&mut self, error: &str, settings: &Settings, now: Timestamp) {
        self.last_failure = Some(now);
        error.clone_into(&mut self.last_error);
        match self.phase {
            Phase::Open => {}
            Phase::HalfOpen => {
                self.failures = vec![now];
                self.open(settings, now);
            }
            Phase::Closed => {
                // A process that waited for the lock comes with a time before that of others.
                let apart = |at: Timestamp| now.since(at).max(at.since(now));
                self.failures.retain(|at| apart(*at) <= settings.window);
                self.failures.push(now);
                self.failures.sort_unstable();
                let threshold = usize::try_from(settings.threshold).unwrap_or(usize::MAX);
                if self.failures.len() >= threshold {
                    self.open(settings, now);
                }
            }
        }
    }

    fn open(&mut self, settings: &Settings, now: Timestamp) {
        self.turn(Phase::Open, now);
        self.cooldown_until = Some(now.plus(settings.cooldown));
    }

    /// Changes the phase; what belongs to the former one is forgotten.
    fn turn(&mut self, phase: Phase, now: Timestamp) {
        self.phase = phase;
        self.last_change = Some(now);
        self.cooldown_until = None;
        self.last_probe = None;
        self.successes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings {
        threshold: 2,
        window: Duration::from_secs(60),
        cooldown: Duration::from_secs(300),
        half_open_interval: Duration::from_secs(10),
        recovery_threshold: 2,
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000 + seconds * 1000)
    }

    /// One breaker in each state: as it is after a second.
    fn states() -> [(&'static str, Breaker); 5] {
        let closed = Breaker { last_change: Some(at(-500)), ..Breaker::default() };
        let failed_once = Breaker {
            failures: vec![at(-9)],
            last_failure: Some(at(-9)),
            last_error: "e".to_owned(),
            ..closed.clone()
        };
        let open = |since: i64| Breaker {
            phase: Phase::Open,
            failures: vec![at(since - 1), at(since)],
            last_failure: Some(at(since)),
            last_error: "e".to_owned(),
            last_change: Some(at(since)),
            cooldown_until: Some(at(since + 300)),
            ..Breaker::default()
        };
        let half_open = Breaker {
            phase: Phase::HalfOpen,
            successes: 1,
            last_change: Some(at(-9)),
            last_probe: Some(at(-9)),
            ..Breaker::default()
        };
        [
            ("CLOSED", closed),
            ("CLOSED, failed once", failed_once),
            ("OPEN, cooling", open(-100)),
            ("OPEN, cooled", open(-300)),
            ("HALF_OPEN", half_open),
        ]
    }

    #[test]
    fn every_state_meets_every_event() {
        let mut table = String::new();
        for (name, breaker) in states() {
            for event in [Event::Request, Event::Success, Event::Failure("x")] {
                let (next, answer) = step(&breaker, event, &SETTINGS, at(0));
                let moved = if next == breaker {
                    "unchanged".to_owned()
                } else {
                    format!(
                        "{} {} failure(s) {} success(es)",
                        next.phase.as_str(),
                        next.failures.len(),
                        next.successes
                    )
                };
                table.push_str(&format!("{name} | {event:?} | {answer:?} | {moved}\n"));
            }
        }
        let expected = "\
CLOSED | Request | Admitted | unchanged
CLOSED | Success | Noted | unchanged
CLOSED | Failure(\"x\") | Noted | CLOSED 1 failure(s) 0 success(es)
CLOSED, failed once | Request | Admitted | unchanged
CLOSED, failed once | Success | Noted | unchanged
CLOSED, failed once | Failure(\"x\") | Noted | OPEN 2 failure(s) 0 success(es)
OPEN, cooling | Request | Rejected { wait: 200s } | unchanged
OPEN, cooling | Success | Noted | unchanged
OPEN, cooling | Failure(\"x\") | Noted | OPEN 2 failure(s) 0 success(es)
OPEN, cooled | Request | Admitted | HALF_OPEN 0 failure(s) 0 success(es)
OPEN, cooled | Success | Noted | unchanged
OPEN, cooled | Failure(\"x\") | Noted | OPEN 2 failure(s) 0 success(es)
HALF_OPEN | Request | Rejected { wait: 1s } | unchanged
HALF_OPEN | Success | Noted | CLOSED 0 failure(s) 0 success(es)
HALF_OPEN | Failure(\"x\") | Noted | OPEN 1 failure(s) 0 success(es)
";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_probe_that_never_answered_blocks_nobody() {
        let [.., (_, half_open)] = states();
        assert_eq!(step(&half_open, Event::Request, &SETTINGS, at(1)).1, Answer::Admitted);
    }

    #[test]
    fn a_clock_that_went_back_never_lengthens_a_wait() {
        let [_, _, (_, open), _, (_, half_open)] = states();
        let hour_ago = at(-3600);
        let (next, answer) = step(&open, Event::Request, &SETTINGS, hour_ago);
        assert_eq!(answer, Answer::Rejected { wait: SETTINGS.cooldown });
        assert_eq!(next.phase_at(&SETTINGS, at(-3300)), Phase::HalfOpen, "and it ends");
        assert_eq!(step(&half_open, Event::Request, &SETTINGS, hour_ago).1, Answer::Admitted);
        let waited = step(&half_open, Event::Request, &SETTINGS, at(-10)).1;
        assert_eq!(waited, Answer::Rejected { wait: SETTINGS.half_open_interval });
        let failing = Breaker { failures: vec![at(0)], ..Breaker::default() };
        let (next, _) = step(&failing, Event::Failure("x"), &SETTINGS, hour_ago);
        assert_eq!(next.failures, [hour_ago], "a failure of the future does not count");
        let (next, _) = step(&failing, Event::Failure("x"), &SETTINGS, at(-1));
        assert_eq!(next.phase, Phase::Open, "one that only waited does");
    }
}
