//! An escalation: a human is asked to decide, notified repeatedly, and answers once.
//!
//! `step(escalation, event, now) -> (escalation, answer)`:
//!
//! | event | open | closed |
//! |---|---|---|
//! | `Told` | the time of the alert is kept | nothing |
//! | `Looked` | due without a notification, or `answer_within` after the last one | nothing |
//! | `Closed` | closed, with the decision | refused: the first answer stands |

use std::time::Duration;

use crate::time::Timestamp;

/// A question to a human.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Escalation {
    /// Its id, and the name of its document.
    pub id: String,
    /// The task it is about, or empty.
    pub task_id: String,
    /// Title of the task.
    pub title: String,
    /// Id of the trigger.
    pub trigger: String,
    /// Why a human is needed.
    pub reason: String,
    /// `low`, `medium`, `high` or `critical`.
    pub severity: String,
    /// Whether the task stands still until a human answered.
    pub blocking: bool,
    /// When it was opened.
    pub created: Timestamp,
    /// Repeat interval of the notifications.
    pub answer_within: Option<Duration>,
    /// Last notification.
    pub told: Option<Timestamp>,
    /// Number of notifications.
    pub times_told: u32,
    /// What was decided, once it was.
    pub closed: Option<Closed>,
}

/// The answer of a human.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Time of the answer.
    pub at: Timestamp,
    /// Whether the task may go on.
    pub approved: bool,
    /// In their words.
    pub decision: String,
    /// Who.
    pub by: String,
}

/// What happens to an escalation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Humans were notified.
    Told,
    /// policyd checks whether a notification is due.
    Looked,
    /// A human answered.
    Closed {
        /// Whether the task may go on.
        approved: bool,
        /// In their words.
        decision: String,
        /// Who.
        by: String,
    },
}

/// What an escalation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The event is recorded.
    Noted,
    /// A notification is due.
    Due,
    /// Nothing is to be done.
    Nothing,
    /// It was answered before.
    AlreadyClosed,
}

/// The next state of an escalation, and its answer.
#[must_use]
pub fn step(escalation: &Escalation, event: Event, now: Timestamp) -> (Escalation, Answer) {
    let mut next = escalation.clone();
    let open = escalation.closed.is_none();
    let answer = match event {
        Event::Told if open => {
            next.told = Some(now);
            next.times_told = next.times_told.saturating_add(1);
            Answer::Noted
        }
        Event::Looked if open && is_due(escalation, now) => Answer::Due,
        Event::Told | Event::Looked => Answer::Nothing,
        Event::Closed { approved, decision, by } if open => {
            next.closed = Some(Closed { at: now, approved, decision, by });
            Answer::Noted
        }
        Event::Closed { .. } => Answer::AlreadyClosed,
    };
    (next, answer)
}

fn is_due(escalation: &Escalation, now: Timestamp) -> bool {
    match (escalation.told, escalation.answer_within) {
        (None, _) => true,
        // An alert of the future was written by a clock that went back since.
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
        let answer = Closed { at: at(1), approved: true, decision: "a".into(), by: "b".into() };
        let closed = Escalation { closed: Some(answer), ..told.clone() };
        let no = Event::Closed { approved: false, decision: "no".into(), by: "me".into() };
        let rows = [
            (&open, Event::Looked, 0, Answer::Due, 0, false),
            (&open, Event::Told, 0, Answer::Noted, 1, false),
            (&open, no.clone(), 0, Answer::Noted, 0, true),
            (&told, Event::Looked, 23, Answer::Nothing, 1, false),
            (&told, Event::Looked, 24, Answer::Due, 1, false),
            (&told, Event::Looked, -30, Answer::Due, 1, false),
            (&told, Event::Told, 24, Answer::Noted, 2, false),
            (&told, no.clone(), 24, Answer::Noted, 1, true),
            (&closed, Event::Looked, 99, Answer::Nothing, 1, true),
            (&closed, Event::Told, 99, Answer::Nothing, 1, true),
            (&closed, no, 99, Answer::AlreadyClosed, 1, true),
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
