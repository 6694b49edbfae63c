//! The document of a signal that all hosts share: what it contains, and the changes that the server applies to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::signals::found::message_of;
use policyd_base::limits::SHARED_CLOCK_TOLERANCE;
use policyd_state::signal::{End, Signal, SignalEffect, SignalEvent, SignalPhase, step};
use policyd_yaml::time::Timestamp;

/// A signal as other hosts see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedSignal {
    /// Id on its host.
    pub id: String,
    /// Name of the signal.
    pub signal: String,
    /// Name of the host.
    pub host: String,
    /// State directory on that host.
    pub project: String,
    /// Sender. Can be empty.
    pub sender: String,
    /// Fields of the signal.
    pub fields: Map<String, Value>,
    /// Whether a human answers it.
    pub asks: bool,
    /// Effect on a supervised run: `stop`, `pause`, `input`, or empty. Only a human sends such a signal.
    pub interrupts: String,
    /// Time of its creation.
    pub created: Timestamp,
    /// Time after which it is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The claim of a consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<SharedSignalClaim>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<SharedSignalEnd>,
}

/// A claim of a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSignalClaim {
    /// Id of the host and name of the consumer.
    pub by: String,
    /// End of the lease by the clock of the server.
    pub until: Timestamp,
    /// Number of this claim among all of the signal.
    pub generation: u64,
}

/// The end of a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedSignalEnd {
    /// `consumed`, `approved`, or `rejected`, or `closed`: its own host ended it.
    pub outcome: String,
    /// Who ended it.
    pub by: String,
    /// Decision or reason of the human.
    pub text: String,
}

impl SharedSignalEnd {
    /// Returns whether the signal cannot be open again. A consumption can be taken back.
    #[must_use]
    pub fn is_final(&self) -> bool {
        End::find(&self.outcome) != Some(End::Consumed)
    }

    /// Returns the end that other hosts see of a signal that its own host ended.
    #[must_use]
    pub fn closed(by: &str) -> Self {
        Self { outcome: "closed".to_owned(), by: by.to_owned(), text: String::new() }
    }
}

/// A change of a signal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalChange {
    /// The signal was created on its host.
    Emitted(Box<SharedSignal>),
    /// A consumer claims it.
    Claimed { by: String, lease: Duration },
    /// A consumer releases its claim.
    Released { by: String },
    /// A consumer consumes it.
    Consumed { by: String },
    /// A consumer that did not learn of its consumption gives the signal back.
    Reopened { by: String },
    /// It ended: a human answered it, or its host ended it.
    Ended(SharedSignalEnd),
}

/// Response to a change of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalResponse {
    /// The change was made.
    Changed,
    /// The change was refused, and why.
    Refused(String),
    /// The signal does not exist.
    Unknown,
}

impl SharedSignal {
    /// Returns whether the signal waits for a consumer or a human.
    #[must_use]
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.ended.is_none() && self.state().is_pending(now)
    }

    /// Returns what the signal says; empty if it has fields of other names only.
    #[must_use]
    pub fn message(&self) -> &str {
        message_of(&self.fields)
    }

    /// Moves the times to a clock that is ahead. A small difference does not count.
    pub(super) fn shifted(mut self, ahead_ms: i64) -> Self {
        let tolerance = u64::try_from(SHARED_CLOCK_TOLERANCE.as_millis()).unwrap_or(u64::MAX);
        if ahead_ms.unsigned_abs() < tolerance {
            return self;
        }
        let moved = |at: Timestamp| Timestamp::from_millis(at.millis().saturating_add(ahead_ms));
        self.created = moved(self.created);
        self.expires = self.expires.map(moved);
        if let Some(claim) = &mut self.claim {
            claim.until = moved(claim.until);
        }
        self
    }

    fn state(&self) -> Signal {
        let ended = self.ended.as_ref().and_then(|it| End::find(&it.outcome));
        let phase = match (ended, &self.claim) {
            (Some(end), _) => SignalPhase::Ended(end),
            (None, Some(it)) => SignalPhase::Claimed { by: it.by.clone(), until: it.until },
            (None, None) => SignalPhase::Pending,
        };
        let (created, expires) = (self.created, self.expires);
        Signal { phase, created, expires, answer_by: None, late_since: None }
    }

    /// Applies an event. Returns whether it was refused.
    fn apply(&mut self, event: SignalEvent<'_>, now: Timestamp) -> Option<String> {
        let (next, effects) = step(&self.state(), event, now);
        let refused = effects.iter().find_map(|it| match it {
            SignalEffect::Refused(why) => Some(why.to_string()),
            SignalEffect::Held { .. }
            | SignalEffect::GivenBack
            | SignalEffect::LateChanged
            | SignalEffect::Closed(_) => None,
        });
        if refused.is_some() {
            return refused;
        }
        let by = match event {
            SignalEvent::Claim { by, .. }
            | SignalEvent::Consume { by }
            | SignalEvent::Release { by } => by,
            SignalEvent::Approve { .. } | SignalEvent::Reject | SignalEvent::Tick => "",
        };
        match next.phase {
            SignalPhase::Pending => self.claim = None,
            SignalPhase::Claimed { by, until } => {
                let generation = self.claim.as_ref().map_or(0, |it| it.generation);
                let generation = generation.saturating_add(1);
                self.claim = Some(SharedSignalClaim { by, until, generation });
            }
            SignalPhase::Ended(end) => {
                let outcome = end.as_str().to_owned();
                let (by, text) = (by.to_owned(), String::new());
                self.ended = Some(SharedSignalEnd { outcome, by, text });
            }
        }
        None
    }
}

impl SignalChange {
    /// Returns the changed signal, and the response.
    #[must_use]
    pub fn apply(
        &self,
        known: Option<&SharedSignal>,
        now: Timestamp,
    ) -> (Option<SharedSignal>, SignalResponse) {
        let Some(known) = known else {
            return match self {
                Self::Emitted(signal) => {
                    let ahead_ms = now.millis().saturating_sub(signal.created.millis());
                    (Some((**signal).clone().shifted(ahead_ms)), SignalResponse::Changed)
                }
                Self::Claimed { .. }
                | Self::Released { .. }
                | Self::Consumed { .. }
                | Self::Reopened { .. }
                | Self::Ended(_) => (None, SignalResponse::Unknown),
            };
        };
        let mut next = known.clone();
        let refused = match self {
            Self::Emitted(_) => Some("it exists".to_owned()),
            Self::Claimed { by, lease } => {
                next.apply(SignalEvent::Claim { by, lease: *lease }, now)
            }
            Self::Released { by } => next.apply(SignalEvent::Release { by }, now),
            Self::Consumed { by } => next.apply(SignalEvent::Consume { by }, now),
            Self::Reopened { by } => {
                let is_own = |it: &SharedSignalEnd| {
                    End::find(&it.outcome) == Some(End::Consumed) && it.by == *by
                };
                next.ended = next.ended.filter(|it| !is_own(it));
                next.ended.is_some().then(|| "another one ended it".to_owned())
            }
            Self::Ended(_) if known.ended.is_none() && known.state().is_over(now) => {
                Some("it expired".to_owned())
            }
            Self::Ended(end) => match &known.ended {
                Some(before) => Some(format!("it was {}", before.outcome.replace('_', " "))),
                None => {
                    next.ended = Some(end.clone());
                    None
                }
            },
        };
        match refused {
            Some(why) => (None, SignalResponse::Refused(why)),
            None => (Some(next), SignalResponse::Changed),
        }
    }
}

/// Returns whether a signal ended for good, and the next document does not contain that.
pub(super) fn is_answer_lost(known: &Value, next: &Value) -> bool {
    let end = |it: &Value| signal_of(it).and_then(|it| it.ended);
    end(known).is_some_and(|it| it.is_final()) && end(next).is_none()
}

/// Reads a signal. `None` if the document is not one.
pub(super) fn signal_of(document: &Value) -> Option<SharedSignal> {
    serde_json::from_value(document.clone()).ok()
}

/// Converts documents of the server to the clock of this host; `ahead_ms`: how far the clock of the server is ahead.
pub(super) fn on_local_clock(
    documents: Vec<(String, Option<Value>)>,
    ahead_ms: i64,
) -> Vec<(String, Option<Value>)> {
    let local = |document: Value| match signal_of(&document) {
        Some(signal) if ahead_ms != 0 => json!(signal.shifted(ahead_ms.saturating_neg())),
        Some(_) | None => document,
    };
    documents.into_iter().map(|(name, it)| (name, it.map(local))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_signal_are_those_of_the_clock_of_its_reader() {
        const HOUR: i64 = 3_600_000;
        let at = |minutes: i64| Timestamp::from_millis(1_767_225_600_000 + minutes * 60_000);
        // The host is an hour behind the server, and its signal expires in ten minutes.
        let (created, expires) = (at(0), Some(at(10)));
        let signal = SharedSignal { created, expires, ..SharedSignal::default() };
        let emitted = SignalChange::Emitted(Box::new(signal.clone()));
        let (shared, _) = emitted.apply(None, at(60));
        let shared = shared.unwrap();
        assert_eq!((shared.created, shared.expires), (at(60), Some(at(70))));
        assert!(shared.is_pending(at(61)) && !shared.is_pending(at(71)));
        let document = vec![("s".to_owned(), Some(json!(shared)))];
        let local = on_local_clock(document, HOUR).remove(0).1.unwrap();
        assert_eq!(signal_of(&local), Some(signal.clone()));
        let (near, _) = emitted.apply(None, Timestamp::from_millis(at(0).millis() + 900));
        assert_eq!(near, Some(signal), "a small difference does not count");
    }
}
