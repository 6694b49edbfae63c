//! An escalation: a human is asked to decide, is notified again if they do not answer, and answers
//! once.
//!
//! `step(escalation, event, now) -> (escalation, answer)`:
//!
//! | event | open | closed |
//! |---|---|---|
//! | `Told` | the time of the notification is recorded | no change |
//! | `Looked` | due, if no human was notified, or not within `answer_within` | no change |
//! | `Closed` | closed, with the decision | rejected: the first answer is final |

use std::time::Duration;

use policyd_yaml::time::Timestamp;

/// A request for a decision of a human.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Escalation {
    /// Id of the escalation, and name of its document.
    pub id: String,
    /// Id of the task. Empty if it is about several tasks.
    pub task_id: String,
    /// Title of the task.
    pub title: String,
    /// Id of the trigger.
    pub trigger: String,
    /// Reason for which a human is needed.
    pub reason: String,
    /// `low`, `medium`, `high` or `critical`.
    pub severity: String,
    /// Whether the task is blocked until a human answers.
    pub blocking: bool,
    /// Time at which it was opened.
    pub created: Timestamp,
    /// Time after which the human is notified again.
    pub answer_within: Option<Duration>,
    /// Time of the last notification.
    pub told: Option<Timestamp>,
    /// Number of notifications.
    pub times_told: u32,
    /// The decision, after it was made.
    pub closed: Option<Resolution>,
}

/// The decision of a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// Time of the decision.
    pub at: Timestamp,
    /// Whether the task may continue.
    pub approved: bool,
    /// Decision, in the human's words.
    pub decision: String,
    /// Name of the human.
    pub by: String,
}

/// Event of an escalation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EscalationEvent {
    /// A human was notified.
    Told,
    /// A process checks whether a notification is due.
    Looked,
    /// A human answered.
    Closed {
        /// Whether the task may continue.
        approved: bool,
        /// Decision, in the human's words.
        decision: String,
        /// Name of the human.
        by: String,
    },
}

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscalationEffect {
    /// The event was recorded.
    Noted,
    /// A notification is due.
    Due,
    /// No effect.
    Nothing,
    /// The escalation was answered before.
    AlreadyClosed,
}

/// Returns the next state of an escalation, and the effect of the event.
#[must_use]
pub fn step(
    escalation: &Escalation,
    event: EscalationEvent,
    now: Timestamp,
) -> (Escalation, EscalationEffect) {
    let mut next = escalation.clone();
    let open = escalation.closed.is_none();
    let answer = match event {
        EscalationEvent::Told if open => {
            next.told = Some(now);
            next.times_told = next.times_told.saturating_add(1);
            EscalationEffect::Noted
        }
        EscalationEvent::Looked if open && is_due(escalation, now) => EscalationEffect::Due,
        EscalationEvent::Told | EscalationEvent::Looked => EscalationEffect::Nothing,
        EscalationEvent::Closed { approved, decision, by } if open => {
            next.closed = Some(Resolution { at: now, approved, decision, by });
            EscalationEffect::Noted
        }
        EscalationEvent::Closed { .. } => EscalationEffect::AlreadyClosed,
    };
    (next, answer)
}

fn is_due(escalation: &Escalation, now: Timestamp) -> bool {
    match (escalation.told, escalation.answer_within) {
        (None, _) => true,
        // A notification in the future was recorded before the clock went back.
        (Some(told), Some(within)) => now.since(told) >= within || told.since(now) > within,
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_meets_every_event() {
        let at = |hours: i64| Timestamp::from_millis(1_000_000_000_000 + hours * 3_600_000);
        let open = Escalation {
            id: "e".to_owned(),
            created: at(0),
            answer_within: Some(Duration::from_secs(24 * 3600)),
            ..Escalation::default()
        };
        let told = Escalation { told: Some(at(0)), times_told: 1, ..open.clone() };
        let answer = Resolution { at: at(1), approved: true, decision: "a".into(), by: "b".into() };
        let closed = Escalation { closed: Some(answer), ..told.clone() };
        let no =
            EscalationEvent::Closed { approved: false, decision: "no".into(), by: "me".into() };
        let rows = [
            (&open, EscalationEvent::Looked, 0, EscalationEffect::Due, 0, false),
            (&open, EscalationEvent::Told, 0, EscalationEffect::Noted, 1, false),
            (&open, no.clone(), 0, EscalationEffect::Noted, 0, true),
            (&told, EscalationEvent::Looked, 23, EscalationEffect::Nothing, 1, false),
            (&told, EscalationEvent::Looked, 24, EscalationEffect::Due, 1, false),
            (&told, EscalationEvent::Looked, -30, EscalationEffect::Due, 1, false),
            (&told, EscalationEvent::Told, 24, EscalationEffect::Noted, 2, false),
            (&told, no.clone(), 24, EscalationEffect::Noted, 1, true),
            (&closed, EscalationEvent::Looked, 99, EscalationEffect::Nothing, 1, true),
            (&closed, EscalationEvent::Told, 99, EscalationEffect::Nothing, 1, true),
            (&closed, no, 99, EscalationEffect::AlreadyClosed, 1, true),
        ];
        for (before, event, hours, answer, times, is_closed) in rows {
            let (next, said) = step(before, event.clone(), at(hours));
            let got = (said, next.times_told, next.closed.is_some());
            assert_eq!(got, (answer, times, is_closed), "{event:?} at {hours} h on {before:?}");
            if before.closed.is_some() {
                assert_eq!(next, *before, "the first answer stands");
            }
        }
    }
}
