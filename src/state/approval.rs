//! A request to let a blocked tool call pass: a human on any host answers it once.
//!
//! `step(known, event, now) -> (request, effect)`:
//!
//! | event | no request | open | answered | taken or expired |
//! |---|---|---|---|---|
//! | `Asked` | open | no change | no change | open again, without the old answer |
//! | `Answered` | unknown | answered | rejected: the first answer is final | rejected |
//! | `Taken` | unknown | no change | taken | no change |
//! | `Withdrawn` | unknown | expired | no change | no change |
//!
//! A request expires `APPROVAL_REQUEST_MAX` after it was made, and an answer `ALLOWANCE_ONCE` after it was given. A
//! refusal holds for `APPROVAL_REQUEST_MAX`: until then the same call is not asked about again.

use serde::{Deserialize, Serialize};

use policyd_base::limits::{ALLOWANCE_ONCE, APPROVAL_REQUEST_MAX};
use policyd_yaml::time::Timestamp;

/// A blocked tool call that waits for a human, or was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRequest {
    /// What the human decides about.
    #[serde(flatten)]
    pub call: BlockedCall,
    /// Time of the request.
    pub asked: Timestamp,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<CallAnswer>,
    /// Whether the host of the call needs no answer anymore: its own user let the call pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

/// A blocked tool call. The digest binds the answer to one call; the rest tells the human what it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedCall {
    /// SHA-256 of the session, the directory, the tool, and the input.
    pub digest: String,
    /// Name of the host.
    pub host: String,
    /// Root of the project on that host.
    pub project: String,
    /// Id of the session.
    pub session: String,
    /// Name of the tool.
    pub tool: String,
    /// The input in one line, masked and cut.
    pub input: String,
    /// Rules that block the call.
    pub rules: Vec<String>,
}

/// Answer of a human to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAnswer {
    /// Whether the call may pass once.
    pub allowed: bool,
    /// Name of the human.
    pub by: String,
    /// Time of the answer.
    pub at: Timestamp,
    /// Whether the host of the call has taken the answer over.
    #[serde(default)]
    pub taken: bool,
}

/// Event of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalEvent<'a> {
    /// The call was blocked.
    Asked(&'a BlockedCall),
    /// A human answered.
    Answered { allowed: bool, by: &'a str },
    /// The host of the call took the answer over.
    Taken,
    /// The host of the call needs no answer anymore.
    Withdrawn,
}

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalEffect {
    /// The request is new, or open again.
    Opened,
    /// The event was recorded.
    Noted,
    /// No effect.
    Nothing,
    /// The request does not exist.
    Unknown,
    /// The request was answered before.
    AlreadyAnswered,
    /// The request is older than `APPROVAL_REQUEST_MAX`, or withdrawn.
    Expired,
}

impl CallRequest {
    /// Returns whether a human can answer the request.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.answer.is_none() && !self.withdrawn && now.since(self.asked) < APPROVAL_REQUEST_MAX
    }

    /// Returns the answer, if the host of the call can still take it over.
    #[must_use]
    pub fn takeable(&self, now: Timestamp) -> Option<&CallAnswer> {
        self.answer.as_ref().filter(|it| !it.taken && now.since(it.at) < ALLOWANCE_ONCE)
    }

    /// Returns whether a new request replaces this one.
    fn is_over(&self, now: Timestamp) -> bool {
        match &self.answer {
            Some(answer) if answer.allowed => {
                answer.taken || now.since(answer.at) >= ALLOWANCE_ONCE
            }
            // A human who said no is not asked about the same call again and again.
            Some(answer) => now.since(answer.at) >= APPROVAL_REQUEST_MAX,
            None => !self.is_open(now),
        }
    }
}

/// Returns the request after an event, and the effect of the event; `None` if none exists.
#[must_use]
pub fn step(
    known: Option<&CallRequest>,
    event: &ApprovalEvent<'_>,
    now: Timestamp,
) -> (Option<CallRequest>, ApprovalEffect) {
    let Some(known) = known else {
        return match event {
            ApprovalEvent::Asked(call) => (Some(opened(call, now)), ApprovalEffect::Opened),
            ApprovalEvent::Answered { .. } | ApprovalEvent::Taken | ApprovalEvent::Withdrawn => {
                (None, ApprovalEffect::Unknown)
            }
        };
    };
    let mut next = known.clone();
    let effect = match event {
        ApprovalEvent::Asked(call) if known.is_over(now) => {
            next = opened(call, now);
            ApprovalEffect::Opened
        }
        ApprovalEvent::Asked(_) => ApprovalEffect::Nothing,
        ApprovalEvent::Answered { .. } if known.answer.is_some() => ApprovalEffect::AlreadyAnswered,
        ApprovalEvent::Answered { .. } if !known.is_open(now) => ApprovalEffect::Expired,
        ApprovalEvent::Answered { allowed, by } => {
            let (allowed, by) = (*allowed, (*by).to_owned());
            next.answer = Some(CallAnswer { allowed, by, at: now, taken: false });
            ApprovalEffect::Noted
        }
        ApprovalEvent::Taken => match &mut next.answer {
            Some(answer) if !answer.taken => {
                answer.taken = true;
                ApprovalEffect::Noted
            }
            Some(_) | None => ApprovalEffect::Nothing,
        },
        ApprovalEvent::Withdrawn if known.is_open(now) => {
            next.withdrawn = true;
            ApprovalEffect::Noted
        }
        ApprovalEvent::Withdrawn => ApprovalEffect::Nothing,
    };
    (Some(next), effect)
}

fn opened(call: &BlockedCall, now: Timestamp) -> CallRequest {
    CallRequest { call: call.clone(), asked: now, answer: None, withdrawn: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_state_meets_every_event() {
        let at = |minutes: u64| Timestamp::from_millis(0).plus(Duration::from_secs(60 * minutes));
        let call = BlockedCall { digest: "d".to_owned(), ..BlockedCall::default() };
        let asked = ApprovalEvent::Asked(&call);
        let answered = ApprovalEvent::Answered { allowed: true, by: "ada" };
        let (open, effect) = step(None, &asked, at(0));
        let open = open.unwrap();
        assert_eq!(effect, ApprovalEffect::Opened);
        let (yes, effect) = step(Some(&open), &answered, at(1));
        let yes = yes.unwrap();
        assert_eq!(effect, ApprovalEffect::Noted);
        assert_eq!(yes.answer.as_ref().map(|it| it.by.as_str()), Some("ada"));
        let (taken, effect) = step(Some(&yes), &ApprovalEvent::Taken, at(2));
        let taken = taken.unwrap();
        assert_eq!(effect, ApprovalEffect::Noted);
        assert!(yes.takeable(at(2)).is_some() && taken.takeable(at(2)).is_none());
        assert!(yes.takeable(at(61)).is_none(), "an answer expires");

        let effect =
            |known: &CallRequest, event: &ApprovalEvent<'_>, now| step(Some(known), event, now).1;
        assert_eq!(effect(&open, &asked, at(5)), ApprovalEffect::Nothing);
        assert_eq!(effect(&open, &ApprovalEvent::Taken, at(5)), ApprovalEffect::Nothing);
        assert_eq!(effect(&open, &answered, at(24 * 60)), ApprovalEffect::Expired);
        assert_eq!(effect(&yes, &asked, at(5)), ApprovalEffect::Nothing);
        assert_eq!(effect(&yes, &answered, at(5)), ApprovalEffect::AlreadyAnswered);
        assert_eq!(effect(&taken, &answered, at(5)), ApprovalEffect::AlreadyAnswered);
        assert_eq!(effect(&taken, &ApprovalEvent::Taken, at(5)), ApprovalEffect::Nothing);
        for (over, now) in [(&taken, at(5)), (&yes, at(61)), (&open, at(24 * 60))] {
            let (again, effect) = step(Some(over), &asked, now);
            assert_eq!(effect, ApprovalEffect::Opened);
            assert!(again.unwrap().is_open(now), "a used answer is not used again");
        }
        let (withdrawn, effect_of) = step(Some(&open), &ApprovalEvent::Withdrawn, at(1));
        let withdrawn = withdrawn.unwrap();
        assert_eq!(effect_of, ApprovalEffect::Noted);
        assert_eq!(effect(&withdrawn, &answered, at(2)), ApprovalEffect::Expired);
        assert_eq!(effect(&withdrawn, &asked, at(2)), ApprovalEffect::Opened);
        assert_eq!(effect(&yes, &ApprovalEvent::Withdrawn, at(2)), ApprovalEffect::Nothing);
        let refused = ApprovalEvent::Answered { allowed: false, by: "ada" };
        let (no, _) = step(Some(&open), &refused, at(1));
        let no = no.unwrap();
        assert_eq!(effect(&no, &asked, at(24 * 60)), ApprovalEffect::Nothing);
        assert_eq!(effect(&no, &asked, at(24 * 60 + 1)), ApprovalEffect::Opened);
        assert_eq!(step(None, &answered, at(0)), (None, ApprovalEffect::Unknown));
        assert_eq!(step(None, &ApprovalEvent::Taken, at(0)), (None, ApprovalEffect::Unknown));
    }
}
