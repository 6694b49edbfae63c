//! A signal from its creation to its end. A consumer claims it. A claim expires, so that the signal
//! returns if its consumer dies.
//!
//! `step(signal, event, now) -> (signal, effects)`:
//!
//! | state | claim | consume | release | approve | reject | tick |
//! |---|---|---|---|---|---|---|
//! | pending | claimed until `now + lease` | consumed | refused: not claimed | approved; refused if the approval is older | rejected | past `expires` or `answer_by`: seen late; expired or timed out, if seen late before; otherwise no change |
//! | claimed by the same consumer | the lease restarts | consumed | pending | as pending | rejected | released when the lease is over, otherwise no change |
//! | claimed by another consumer | refused: claimed | refused | refused | as pending | rejected | as above |
//! | ended | refused: how it ended | refused | refused | refused | refused | no change |
//!
//! Expired leases and signals are handled before any other event. An answer of a human counts until
//! a later process ends the signal as late. A clock that goes back ends no lease early by more than
//! its own length, and lengthens none.
//!
//! A clock that jumps forward ends no wait. The first tick past `expires` or `answer_by` only
//! records that the signal is late. A later tick ends the signal if the time between the two is
//! plausible: at least a quarter of the wait (at most `SIGNAL_LATE_MIN`) and at most
//! `SIGNAL_LATE_MAX`. A clock that comes back clears the record. policyd cannot distinguish a clock
//! that stays wrong for longer from a break of the user.

use std::time::Duration;

use policyd_base::limits::{SIGNAL_LATE_MAX, SIGNAL_LATE_MIN, SIGNAL_LEASE_MAX};
use policyd_yaml::time::Timestamp;

/// How a signal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A consumer took it and acts on it.
    Consumed,
    /// A human approved the request.
    Approved,
    /// A human rejected the request, or it was an approval without a request.
    Rejected,
    /// It was not consumed before its expiry.
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

/// State of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalPhase {
    /// It waits for a consumer.
    Pending,
    /// A consumer has claimed it.
    Claimed {
        /// Name of the consumer.
        by: String,
        /// End of the lease.
        until: Timestamp,
    },
    /// It has ended.
    Ended(End),
}

/// Saved state of one signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    pub phase: SignalPhase,
    /// Time of its creation.
    pub created: Timestamp,
    /// Expiry, after which it is void.
    pub expires: Option<Timestamp>,
    /// Deadline of the answer.
    pub answer_by: Option<Timestamp>,
    /// Time at which a tick first saw the signal late.
    pub late_since: Option<Timestamp>,
}

/// Event of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent<'a> {
    /// A consumer claims the signal.
    Claim {
        /// Name of the consumer.
        by: &'a str,
        /// Duration of the claim, at most `SIGNAL_LEASE_MAX`.
        lease: Duration,
    },
    /// A consumer consumes the signal.
    Consume {
        /// Name of the consumer.
        by: &'a str,
    },
    /// A consumer releases its claim.
    Release {
        /// Name of the consumer.
        by: &'a str,
    },
    /// A human approved the request.
    Approve {
        /// Time of the approval.
        made: Timestamp,
    },
    /// A human rejected the request.
    Reject,
    /// Time passed.
    Tick,
}

/// Effect of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalEffect {
    /// The signal is claimed.
    Held {
        /// End of the lease.
        until: Timestamp,
    },
    /// The signal is pending again.
    GivenBack,
    /// `late_since` changed: a tick saw the signal late, or the clock came back.
    LateChanged,
    /// The signal ended. It must be added to the history, and its file removed.
    Closed(End),
    /// The event had no effect.
    Refused(Refusal),
}

/// Reason why an event had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Another consumer holds the claim.
    Taken {
        /// Name of that consumer.
        by: String,
        /// End of its lease.
        until: Timestamp,
    },
    /// The signal is not claimed.
    NotClaimed,
    /// The approval is older than the request.
    OlderThanRequest,
    /// The signal has ended.
    Over(End),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { by, until } => write!(f, "{by} claimed it until {until}"),
            Self::NotClaimed => f.write_str("it is not claimed"),
            Self::OlderThanRequest => f.write_str("the approval is older than the request"),
            Self::Over(End::TimedOut) => f.write_str("it timed out"),
            Self::Over(end) => write!(f, "it was {}", end.as_str()),
        }
    }
}

/// Returns the next state of a signal, and the effects of the event.
#[must_use]
pub fn step(
    signal: &Signal,
    event: SignalEvent<'_>,
    now: Timestamp,
) -> (Signal, Vec<SignalEffect>) {
    let mut next = signal.clone();
    let mut effects = Vec::new();
    next.pass_time(now, event == SignalEvent::Tick, &mut effects);
    if let Some(effect) = next.take(event, now) {
        effects.push(effect);
    }
    (next, effects)
}

impl Signal {
    /// Returns whether the signal is pending at a point in time.
    #[must_use]
    pub fn is_pending(&self, now: Timestamp) -> bool {
        let next = step(self, SignalEvent::Tick, now).0;
        next.phase == SignalPhase::Pending && !next.is_over(now)
    }

    /// Returns whether the signal has ended or is void at a point in time.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        let claimed = matches!(self.phase, SignalPhase::Claimed { .. });
        let void = self.expires.is_some_and(|at| at <= now) && !claimed;
        void || matches!(self.phase, SignalPhase::Ended(_))
    }

    fn pass_time(&mut self, now: Timestamp, acts: bool, effects: &mut Vec<SignalEffect>) {
        if let SignalPhase::Claimed { until, .. } = &self.phase
            && (*until <= now || until.since(now) > SIGNAL_LEASE_MAX)
        {
            self.phase = SignalPhase::Pending;
            effects.push(SignalEffect::GivenBack);
        }
        if self.phase != SignalPhase::Pending {
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
            effects.push(SignalEffect::LateChanged);
        }
    }

    /// Returns whether an earlier tick saw the signal late at `at`, a plausible time before `now`.
    fn is_late_for_certain(&self, at: Timestamp, now: Timestamp) -> bool {
        let between = SIGNAL_LATE_MIN.min(at.since(self.created) / 4);
        self.late_since.is_some_and(|seen| is_plausible(seen, now) && seen.plus(between) <= now)
    }

    fn take(&mut self, event: SignalEvent<'_>, now: Timestamp) -> Option<SignalEffect> {
        let claimer = match &self.phase {
            SignalPhase::Ended(_) if event == SignalEvent::Tick => return None,
            SignalPhase::Ended(end) => return Some(SignalEffect::Refused(Refusal::Over(*end))),
            SignalPhase::Pending => None,
            SignalPhase::Claimed { by, until } => Some((by.clone(), *until)),
        };
        let taken = |by: &str| match &claimer {
            Some((other, until)) if other != by => {
                Some(SignalEffect::Refused(Refusal::Taken { by: other.clone(), until: *until }))
            }
            Some(_) | None => None,
        };
        let effect = match event {
            SignalEvent::Claim { by, lease } => taken(by).unwrap_or_else(|| {
                let until = now.plus(lease.min(SIGNAL_LEASE_MAX));
                self.phase = SignalPhase::Claimed { by: by.to_owned(), until };
                SignalEffect::Held { until }
            }),
            SignalEvent::Consume { by } => taken(by).unwrap_or_else(|| self.end(End::Consumed)),
            SignalEvent::Release { by } => match (taken(by), &claimer) {
                (Some(refused), _) => refused,
                (None, None) => SignalEffect::Refused(Refusal::NotClaimed),
                (None, Some(_)) => {
                    self.phase = SignalPhase::Pending;
                    SignalEffect::GivenBack
                }
            },
            SignalEvent::Approve { made } if made < self.created => {
                SignalEffect::Refused(Refusal::OlderThanRequest)
            }
            SignalEvent::Approve { .. } => self.end(End::Approved),
            SignalEvent::Reject => self.end(End::Rejected),
            SignalEvent::Tick => return None,
        };
        Some(effect)
    }

    fn end(&mut self, end: End) -> SignalEffect {
        self.phase = SignalPhase::Ended(end);
        SignalEffect::Closed(end)
    }
}

/// Returns whether a clock can show `now` after `earlier` without a jump.
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

    fn shown(effects: &[SignalEffect]) -> String {
        let one = |it: &SignalEffect| match it {
            SignalEffect::Held { until } => {
                format!("held to {}", (until.millis() - at(0).millis()) / 1_000)
            }
            SignalEffect::GivenBack => "given back".to_owned(),
            SignalEffect::LateChanged => "late".to_owned(),
            SignalEffect::Closed(end) => end.as_str().to_owned(),
            SignalEffect::Refused(Refusal::Taken { by, .. }) => format!("refused: {by} has it"),
            SignalEffect::Refused(why) => format!("refused: {why}"),
        };
        effects.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Every state with every event, as in the header's table, at second 100 of a signal that was
    /// created at second 10.
    #[test]
    #[expect(clippy::too_many_lines, reason = "the table is the test")]
    fn every_state_meets_every_event() {
        let held = |by: &str, until| SignalPhase::Claimed { by: by.to_owned(), until: at(until) };
        let ended = [End::Consumed, End::Approved, End::Rejected, End::Expired, End::TimedOut];
        let events = [
            SignalEvent::Claim { by: "me", lease: LEASE },
            SignalEvent::Consume { by: "me" },
            SignalEvent::Release { by: "me" },
            SignalEvent::Approve { made: at(10) },
            SignalEvent::Approve { made: at(9) },
            SignalEvent::Reject,
            SignalEvent::Tick,
        ];
        let stale = "refused: the approval is older than the request";
        let none = (None, None);
        let mut rows = vec![
            (
                "waits",
                SignalPhase::Pending,
                none,
                [
                    "held to 160",
                    "consumed",
                    "refused: it is not claimed",
                    "approved",
                    stale,
                    "rejected",
                    "",
                ],
            ),
            (
                "waits, late",
                SignalPhase::Pending,
                (None, Some(100)),
                [
                    "held to 160",
                    "consumed",
                    "refused: it is not claimed",
                    "approved",
                    stale,
                    "rejected",
                    "late",
                ],
            ),
            (
                "void",
                SignalPhase::Pending,
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
                    "given back, refused: it is not claimed",
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
                    "given back, refused: it is not claimed",
                    "given back, approved",
                    "given back, refused: the approval is older than the request",
                    "given back, rejected",
                    "given back",
                ],
            ),
        ];
        let over = ended.map(|end| shown(&[SignalEffect::Refused(Refusal::Over(end))]));
        for (end, over) in ended.into_iter().zip(&over) {
            let row = [over.as_str(), over, over, over, over, over, ""];
            rows.push(("ended", SignalPhase::Ended(end), none, row));
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
                    SignalEffect::Closed(end) => Some(*end),
                    SignalEffect::Held { .. }
                    | SignalEffect::GivenBack
                    | SignalEffect::LateChanged
                    | SignalEffect::Refused(_) => None,
                });
                match closed {
                    Some(end) => {
                        assert_eq!(next.phase, SignalPhase::Ended(end), "{what}: {event:?}")
                    }
                    None if effects.iter().all(|it| matches!(it, SignalEffect::Refused(_))) => {
                        assert_eq!(next, signal, "{what}: {event:?} changes nothing");
                    }
                    None => {
                        assert!(!matches!(next.phase, SignalPhase::Ended(_)), "{what}: {event:?}")
                    }
                }
            }
        }
    }

    fn pending(expires: Option<Timestamp>, answer_by: Option<Timestamp>) -> Signal {
        let created = at(0);
        Signal { phase: SignalPhase::Pending, created, expires, answer_by, late_since: None }
    }

    /// Returns the effects of ticks at these seconds of a signal whose wait ends at second 4,000.
    fn ticks(signal: &Signal, seconds: &[i64]) -> Vec<String> {
        let mut signal = signal.clone();
        let tick = |second: &i64| {
            let (next, effects) = step(&signal, SignalEvent::Tick, at(*second));
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
                // A quarter of the wait after its end.
                (vec![3_999, 4_000, 4_999, 5_000], vec!["", "late", "", end]),
                // Forward and back repeatedly.
                (vec![73 * YEAR, 100, 74 * YEAR, 200], vec!["late", "late", "late", "late"]),
                (vec![73 * YEAR, 73 * YEAR + 999, 200], vec!["late", "", "late"]),
                // Back, but not before the end of the wait.
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
        let (_, effects) =
            step(&signal, SignalEvent::Claim { by: "me", lease: Duration::MAX }, at(0));
        assert_eq!(effects, [SignalEffect::Held { until: at(0).plus(SIGNAL_LEASE_MAX) }]);
    }
}
