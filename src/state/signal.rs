//! A signal of loki-mode, from its creation to its end. A consumer claims it; a claim expires, so that the signal
//! of a dead consumer is released.
//!
//! `step(signal, event, now) -> (signal, effects)`:
//!
//! | state | claim | consume | release | approve | reject | tick |
//! |---|---|---|---|---|---|---|
//! | pending | claimed until `now + lease` | consumed | refused: not claimed | approved; refused, where the approval is older | rejected | past `expires` or `answer_by`: seen late; expired or timed out, if seen late before; else nothing |
//! | claimed by the same | the lease is renewed | consumed | pending | as pending | rejected | given back when the lease is over, else nothing |
//! | claimed by others | refused: it is taken | refused | refused | as pending | rejected | the same |
//! | ended | refused: how it ended | the same | the same | the same | the same | nothing |
//!
//! Where a lease is over, or a signal is void, that is seen before anything else happens to it. A
//! human's answer counts until policyd acts on the timeout. A clock that went back ends no
//! lease early by more than its own length, and makes none longer.
//!
//! A clock that jumps ahead ends no wait. The first tick past `expires` or `answer_by` only records
//! that it saw the signal late. A later tick ends the signal if the time between the two is plausible:
//! at least a quarter of the wait (at most `SIGNAL_LATE_MIN`) and at most `SIGNAL_LATE_MAX`. A clock that
//! comes back clears the record. policyd cannot distinguish a clock that stays wrong for longer from
//! a break of the user.

use std::time::Duration;

use crate::limits::{SIGNAL_LATE_MAX, SIGNAL_LATE_MIN, SIGNAL_LEASE_MAX};
use crate::time::Timestamp;

/// How a signal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A consumer acts on it.
    Consumed,
    /// A human said yes.
    Approved,
    /// A human said no, or it was an approval of nothing.
    Rejected,
    /// It was not consumed in time.
    Expired,
    /// It was not answered in time.
    TimedOut,
}

impl End {
    /// All ends.
    pub const ALL: [Self; 5] =
        [Self::Consumed, Self::Approved, Self::Rejected, Self::Expired, Self::TimedOut];

    /// Returns the name in the history.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Consumed => "consumed",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::TimedOut => "timed_out",
        }
    }

    /// Returns the end of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.as_str() == name)
    }
}

/// Where a signal stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It waits.
    Pending,
    /// A consumer claimed it.
    Claimed {
        /// Who.
        by: String,
        /// End of the claim.
        until: Timestamp,
    },
    /// It is over.
    Ended(End),
}

/// One signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Where it stands.
    pub phase: Phase,
    /// When it was created.
    pub created: Timestamp,
    /// From when on it is void.
    pub expires: Option<Timestamp>,
    /// Until when it should be answered.
    pub answer_by: Option<Timestamp>,
    /// When a tick first saw the signal late.
    pub late_since: Option<Timestamp>,
}

/// What happens to a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A consumer claims it for a time.
    Claim {
        /// Who.
        by: &'a str,
        /// At most `SIGNAL_LEASE_MAX`.
        lease: Duration,
    },
    /// A consumer consumes it.
    Consume {
        /// Who.
        by: &'a str,
    },
    /// The holder releases it.
    Release {
        /// Who.
        by: &'a str,
    },
    /// A human said yes.
    Approve {
        /// When they did.
        made: Timestamp,
    },
    /// A human said no.
    Reject,
    /// Time passed.
    Tick,
}

/// What is to be done after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It is claimed.
    Held {
        /// Until when.
        until: Timestamp,
    },
    /// It waits again.
    GivenBack,
    /// `late_since` changed: a tick saw the signal late, or the clock came back.
    LateChanged,
    /// It ended: the history gets it, its file goes.
    Closed(End),
    /// Nothing happened.
    Refused(Refusal),
}

/// Why nothing happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Another consumer claimed it.
    Taken {
        /// Who.
        by: String,
        /// Until when.
        until: Timestamp,
    },
    /// It is not claimed.
    NotClaimed,
    /// The approval was made before the request.
    OlderThanRequest,
    /// It is over.
    Over(End),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { by, until } => write!(f, "{by} claimed it until {until}"),
            Self::NotClaimed => f.write_str("nobody claimed it"),
            Self::OlderThanRequest => f.write_str("the approval is older than the request"),
            Self::Over(End::TimedOut) => f.write_str("it timed out"),
            Self::Over(end) => write!(f, "it was {}", end.as_str()),
        }
    }
}

/// The next state of a signal, and what is to be done.
#[must_use]
pub fn step(signal: &Signal, event: Event<'_>, now: Timestamp) -> (Signal, Vec<Effect>) {
    let mut next = signal.clone();
    let mut effects = Vec::new();
    next.pass_time(now, event == Event::Tick, &mut effects);
    if let Some(effect) = next.take(event, now) {
        effects.push(effect);
    }
    (next, effects)
}

impl Signal {
    /// Returns whether it is pending at a time.
    #[must_use]
    pub fn is_pending(&self, now: Timestamp) -> bool {
        let next = step(self, Event::Tick, now).0;
        next.phase == Phase::Pending && !next.is_over(now)
    }

    /// Whether it is void at a moment, or over.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        let claimed = matches!(self.phase, Phase::Claimed { .. });
        let void = self.expires.is_some_and(|at| at <= now) && !claimed;
        void || matches!(self.phase, Phase::Ended(_))
    }

    fn pass_time(&mut self, now: Timestamp, acts: bool, effects: &mut Vec<Effect>) {
        if let Phase::Claimed { until, .. } = &self.phase
            && (*until <= now || until.since(now) > SIGNAL_LEASE_MAX)
        {
            self.phase = Phase::Pending;
            effects.push(Effect::GivenBack);
        }
        if self.phase != Phase::Pending {
            return;
        }
        let past = |at: Option<Timestamp>| at.filter(|at| *at <= now);
        let void = past(self.expires).map(|at| (End::Expired, at));
        let late = void.or_else(|| Some((End::TimedOut, past(self.answer_by).filter(|_| acts)?)));
        let late_since = match late {
            Some((end, at)) if !acts || self.is_late_for_certain(at, now) => {
                effects.push(self.end(end));
                return;
            }
            Some(_) => self.late_since.filter(|at| is_plausible(*at, now)).or(Some(now)),
            None if acts => None,
            None => return,
        };
        if self.late_since != late_since {
            self.late_since = late_since;
            effects.push(Effect::LateChanged);
        }
    }

    /// Whether an earlier tick saw the signal late at `at`, a plausible time before `now`.
    fn is_late_for_certain(&self, at: Timestamp, now: Timestamp) -> bool {
        let between = SIGNAL_LATE_MIN.min(at.since(self.created) / 4);
        self.late_since.is_some_and(|seen| is_plausible(seen, now) && seen.plus(between) <= now)
    }

    fn take(&mut self, event: Event<'_>, now: Timestamp) -> Option<Effect> {
        let claimer = match &self.phase {
            Phase::Ended(_) if event == Event::Tick => return None,
            Phase::Ended(end) => return Some(Effect::Refused(Refusal::Over(*end))),
            Phase::Pending => None,
            Phase::Claimed { by, until } => Some((by.clone(), *until)),
        };
        let taken = |by: &str| match &claimer {
            Some((other, until)) if other != by => {
                Some(Effect::Refused(Refusal::Taken { by: other.clone(), until: *until }))
            }
            Some(_) | None => None,
        };
        let effect = match event {
            Event::Claim { by, lease } => taken(by).unwrap_or_else(|| {
                let until = now.plus(lease.min(SIGNAL_LEASE_MAX));
                self.phase = Phase::Claimed { by: by.to_owned(), until };
                Effect::Held { until }
            }),
            Event::Consume { by } => taken(by).unwrap_or_else(|| self.end(End::Consumed)),
            Event::Release { by } => match (taken(by), &claimer) {
                (Some(refused), _) => refused,
                (None, None) => Effect::Refused(Refusal::NotClaimed),
                (None, Some(_)) => {
                    self.phase = Phase::Pending;
                    Effect::GivenBack
                }
            },
            Event::Approve { made } if made < self.created => {
                Effect::Refused(Refusal::OlderThanRequest)
            }
            Event::Approve { .. } => self.end(End::Approved),
            Event::Reject => self.end(End::Rejected),
            Event::Tick => return None,
        };
        Some(effect)
    }

    fn end(&mut self, end: End) -> Effect {
        self.phase = Phase::Ended(end);
        Effect::Closed(end)
    }
}

/// Whether a clock that showed `earlier` can show `now` without a jump.
fn is_plausible(earlier: Timestamp, now: Timestamp) -> bool {
    earlier <= now && now.since(earlier) <= SIGNAL_LATE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000 + seconds * 1_000)
    }

    const LEASE: Duration = Duration::from_secs(60);

    fn shown(effects: &[Effect]) -> String {
        let one = |it: &Effect| match it {
            Effect::Held { until } => {
                format!("held to {}", (until.millis() - at(0).millis()) / 1_000)
            }
            Effect::GivenBack => "given back".to_owned(),
            Effect::LateChanged => "late".to_owned(),
            Effect::Closed(end) => end.as_str().to_owned(),
            Effect::Refused(Refusal::Taken { by, .. }) => format!("refused: {by} has it"),
            Effect::Refused(why) => format!("refused: {why}"),
        };
        effects.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Every state meets every event: the table of this file, row by row, at second 100 of a signal
    /// that was created at second 10.
    #[test]
    #[expect(clippy::too_many_lines, reason = "the table is the test")]
    fn every_state_meets_every_event() {
        let held = |by: &str, until| Phase::Claimed { by: by.to_owned(), until: at(until) };
        let ended = [End::Consumed, End::Approved, End::Rejected, End::Expired, End::TimedOut];
        let events = [
            Event::Claim { by: "me", lease: LEASE },
            Event::Consume { by: "me" },
            Event::Release { by: "me" },
            Event::Approve { made: at(10) },
            Event::Approve { made: at(9) },
            Event::Reject,
            Event::Tick,
        ];
        let stale = "refused: the approval is older than the request";
        let none = (None, None);
        let mut rows = vec![
            (
                "waits",
                Phase::Pending,
                none,
                [
                    "held to 160",
                    "consumed",
                    "refused: nobody claimed it",
                    "approved",
                    stale,
                    "rejected",
                    "",
                ],
            ),
            (
                "waits, late",
                Phase::Pending,
                (None, Some(100)),
                [
                    "held to 160",
                    "consumed",
                    "refused: nobody claimed it",
                    "approved",
                    stale,
                    "rejected",
                    "late",
                ],
            ),
            (
                "void",
                Phase::Pending,
                (Some(100), Some(90)),
                [
                    "expired, refused: it was expired",
                    "expired, refused: it was expired",
                    "expired, refused: it was expired",
                    "expired, refused: it was expired",
                    "expired, refused: it was expired",
                    "expired, refused: it was expired",
                    "late",
                ],
            ),
            (
                "mine",
                held("me", 101),
                (Some(90), Some(90)),
                ["held to 160", "consumed", "given back", "approved", stale, "rejected", ""],
            ),
            (
                "of others",
                held("you", 101),
                (Some(90), Some(90)),
                [
                    "refused: you has it",
                    "refused: you has it",
                    "refused: you has it",
                    "approved",
                    stale,
                    "rejected",
                    "",
                ],
            ),
            (
                "a lease that is over",
                held("you", 100),
                none,
                [
                    "given back, held to 160",
                    "given back, consumed",
                    "given back, refused: nobody claimed it",
                    "given back, approved",
                    "given back, refused: the approval is older than the request",
                    "given back, rejected",
                    "given back",
                ],
            ),
            (
                "a lease from the future",
                held("you", 100_000),
                none,
                [
                    "given back, held to 160",
                    "given back, consumed",
                    "given back, refused: nobody claimed it",
                    "given back, approved",
                    "given back, refused: the approval is older than the request",
                    "given back, rejected",
                    "given back",
                ],
            ),
        ];
        let over = ended.map(|end| shown(&[Effect::Refused(Refusal::Over(end))]));
        for (end, over) in ended.into_iter().zip(&over) {
            let row = [over.as_str(), over, over, over, over, over, ""];
            rows.push(("ended", Phase::Ended(end), none, row));
        }
        for (what, phase, (expires, answer_by), expected) in rows {
            let signal = Signal {
                phase,
                created: at(10),
                expires: expires.map(at),
                answer_by: answer_by.map(at),
                late_since: None,
            };
            for (event, expected) in events.into_iter().zip(expected) {
                let (next, effects) = step(&signal, event, at(100));
                assert_eq!(shown(&effects), expected, "{what}: {event:?}");
                let closed = effects.iter().find_map(|it| match it {
                    Effect::Closed(end) => Some(*end),
                    Effect::Held { .. }
                    | Effect::GivenBack
                    | Effect::LateChanged
                    | Effect::Refused(_) => None,
                });
                match closed {
                    Some(end) => assert_eq!(next.phase, Phase::Ended(end), "{what}: {event:?}"),
                    None if effects.iter().all(|it| matches!(it, Effect::Refused(_))) => {
                        assert_eq!(next, signal, "{what}: {event:?} changes nothing");
                    }
                    None => assert!(!matches!(next.phase, Phase::Ended(_)), "{what}: {event:?}"),
                }
            }
        }
    }

    fn pending(expires: Option<Timestamp>, answer_by: Option<Timestamp>) -> Signal {
        let created = at(0);
        Signal { phase: Phase::Pending, created, expires, answer_by, late_since: None }
    }

    /// The effects of ticks at these seconds of a signal whose wait ends at second 4,000.
    fn ticks(signal: &Signal, seconds: &[i64]) -> Vec<String> {
        let mut signal = signal.clone();
        let tick = |second: &i64| {
            let (next, effects) = step(&signal, Event::Tick, at(*second));
            signal = next;
            shown(&effects)
        };
        seconds.iter().map(tick).collect()
    }

    #[test]
    fn one_jump_of_the_clock_ends_no_wait() {
        const YEAR: i64 = 365 * 24 * 60 * 60;
        let request = pending(None, Some(at(4_000)));
        let void = pending(Some(at(4_000)), None);
        for (signal, end) in [(&request, "timed_out"), (&void, "expired")] {
            for (seconds, expected) in [
                // Waited for a quarter of its time beyond its end.
                (vec![3_999, 4_000, 4_999, 5_000], vec!["", "late", "", end]),
                // Ahead and back, again and again.
                (vec![73 * YEAR, 100, 74 * YEAR, 200], vec!["late", "late", "late", "late"]),
                (vec![73 * YEAR, 73 * YEAR + 999, 200], vec!["late", "", "late"]),
                // Back, but not before the end of the wait: from then on it counts.
                (vec![73 * YEAR, 4_000, 5_000], vec!["late", "late", end]),
                // A jump after a jump.
                (vec![YEAR, 2 * YEAR, 2 * YEAR + 1_000], vec!["late", "late", end]),
            ] {
                assert_eq!(ticks(signal, &seconds), expected, "{end} {seconds:?}");
            }
        }
        assert!(request.is_pending(at(YEAR)), "a human can still answer");
        assert!(!void.is_pending(at(YEAR)));
    }

    #[test]
    fn a_lease_is_never_longer_than_the_bound() {
        let signal = pending(None, None);
        let (_, effects) = step(&signal, Event::Claim { by: "me", lease: Duration::MAX }, at(0));
        assert_eq!(effects, [Effect::Held { until: at(0).plus(SIGNAL_LEASE_MAX) }]);
    }
}
