//! The dead-letter queue of loki-mode: a task that fails repeatedly is moved to the queue and reviewed. It is
//! requeued, escalated, or abandoned. Rules decide; this module applies their decisions.
//!
//! `step(task, event, now) -> (task, effects)`:
//!
//! | event | at work (pending, in progress) | dead letter | abandoned |
//! |---|---|---|---|
//! | `Started` | in progress | nothing | nothing |
//! | `Failed` | noted, counted where it counts; back to pending | noted, counted | noted, counted |
//! | `Entered` | dead letter | nothing | nothing |
//! | `Reviewed(Wait)` | nothing | nothing | nothing |
//! | `Reviewed(Retry)` | nothing | pending, recovered; its hints are used up | nothing |
//! | `Reviewed(Split)` | nothing | stays, with a smaller task linked to it | nothing |
//! | `Reviewed(Escalate)` | nothing | stays, asks a human once | nothing |
//! | `Reviewed(Abandon)` | nothing | abandoned | nothing |
//! | `Released` | blocked no more | pending, recovered | pending, recovered |
//! | `Redriven` | nothing | pending, recovered; nothing where it waits for a human | nothing |
//! | `GivenUp` | abandoned | abandoned | nothing |
//! | `Blocked` | blocked; one that waits already goes on waiting for that | the same | nothing |
//! | `Answered` | blocked no more, where it waits for just that | waits no more; the approval is a hint | nothing |
//! | `Resolved` | done | done, recovered | done |
//!
//! Attempts are never removed; the counter of failures can be reset.

use crate::time::Timestamp;

mod task;

pub use task::{Attempt, Hints, MARKS, Place, Task, cut};

/// Marks that say what a task is, not what has happened: no retry uses them up.
const LASTING: [&str; 5] = ["security", "data_loss", "irreversible", "external", "ambiguous"];

/// What a review came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// It stays.
    Wait,
    /// It goes back to work; `fresh`: failures count from 0 again.
    Retry {
        /// Whether failures count from 0 again.
        fresh: bool,
        /// The recorded strategy; empty to keep the present one.
        strategy: &'a str,
    },
    /// A smaller task goes to work.
    Split {
        /// Its id, which no task has.
        id: &'a str,
    },
    /// A human is asked.
    Escalate {
        /// The recorded strategy; empty to keep the present one.
        strategy: &'a str,
        /// Id of the escalation.
        id: &'a str,
    },
    /// It is given up.
    Abandon {
        /// Why, in one word.
        reason: &'a str,
    },
}

/// What happens to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// An agent started the task.
    Started,
    /// An attempt failed.
    Failed(Attempt),
    /// A rule says that it failed too often.
    Entered {
        /// What is to be tried next.
        strategy: &'a str,
    },
    /// It was looked at.
    Reviewed(Decision<'a>),
    /// A user or signal requeues the task.
    Released,
    /// It is put back to work with others.
    Redriven,
    /// A human gives it up.
    GivenUp {
        /// Reason of the user.
        reason: &'a str,
    },
    /// It has to wait for a human.
    Blocked {
        /// Id of what it waits for.
        by: &'a str,
    },
    /// A human says that it may go on.
    Answered {
        /// Id of what was answered.
        by: &'a str,
    },
    /// It is done.
    Resolved,
}

/// What an event causes beside the task itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A dead letter came back to life.
    Recovered,
    /// One was given up.
    Abandoned,
    /// A smaller task goes to work.
    Created(Box<Task>),
    /// The task is done and leaves the lists.
    Done,
}

/// The task after an event, and what else that causes. A task that is unchanged had nothing to do
/// with the event.
#[must_use]
pub fn step(task: &Task, event: Event<'_>, now: Timestamp) -> (Task, Vec<Effect>) {
    let mut next = task.clone();
    let effects = next.apply(event, now);
    if next != *task {
        next.revision = task.revision.saturating_add(1);
    }
    (next, effects)
}

impl Task {
    /// Returns the task with the fields of `other` that are not empty, and the marks of both.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        let texts = [
            (&mut self.title, &other.title),
            (&mut self.description, &other.description),
            (&mut self.priority, &other.priority),
            (&mut self.summary, &other.summary),
            (&mut self.hints.new_approach, &other.hints.new_approach),
            (&mut self.hints.simpler_scope, &other.hints.simpler_scope),
            (&mut self.hints.fix_commit, &other.hints.fix_commit),
        ];
        for (own, said) in texts {
            if !said.is_empty() {
                own.clone_from(said);
            }
        }
        if !other.dependencies.is_empty() {
            self.dependencies.clone_from(&other.dependencies);
        }
        self.hints.marks.extend(other.hints.marks.iter().cloned());
        self.confidence = other.confidence.or(self.confidence);
        self
    }

    fn apply(&mut self, event: Event<'_>, now: Timestamp) -> Vec<Effect> {
        match event {
            Event::Started => {
                if self.place == Place::Pending && self.waits_for.is_empty() {
                    self.place = Place::InProgress;
                }
                Vec::new()
            }
            Event::Failed(attempt) => {
                self.fail(attempt);
                Vec::new()
            }
            Event::Entered { strategy } => {
                if self.place.is_work() {
                    self.place = Place::DeadLetter;
                    self.plan(strategy);
                }
                Vec::new()
            }
            Event::Reviewed(decision) if self.place == Place::DeadLetter => {
                self.review(decision, now)
            }
            Event::Reviewed(_) => Vec::new(),
            Event::Released => self.release(now),
            Event::Redriven if self.place == Place::DeadLetter && self.waits_for.is_empty() => {
                self.release(now)
            }
            Event::Redriven => Vec::new(),
            Event::GivenUp { reason } if self.place != Place::Abandoned => {
                self.give_up(reason, now)
            }
            Event::GivenUp { .. } => Vec::new(),
            Event::Blocked { by } => {
                if self.place != Place::Abandoned && self.waits_for.is_empty() {
                    by.clone_into(&mut self.waits_for);
                }
                Vec::new()
            }
            Event::Answered { by } => {
                // The answer to another escalation does not count.
                if self.waits_for == by {
                    self.waits_for.clear();
                    if self.place == Place::DeadLetter {
                        self.hints.marks.insert("human_approved".to_owned());
                    }
                }
                Vec::new()
            }
            Event::Resolved => {
                let dead = self.place == Place::DeadLetter;
                let recovered = dead.then_some(Effect::Recovered);
                recovered.into_iter().chain([Effect::Done]).collect()
            }
        }
    }

    fn fail(&mut self, attempt: Attempt) {
        let known = !attempt.key.is_empty() && self.attempts.iter().any(|it| it.key == attempt.key);
        if known {
            return;
        }
        if attempt.counts {
            let line = attempt.error.lines().find(|it| !it.trim().is_empty());
            line.unwrap_or(&self.summary).to_owned().clone_into(&mut self.summary);
            self.failures = self.failures.saturating_add(1);
        }
        self.first_failure = self.first_failure.or(Some(attempt.at));
        self.last_failure = self.last_failure.max(Some(attempt.at));
        if self.place.is_work() {
            self.original_queue = self.place;
            self.place = Place::Pending;
        }
        self.note(attempt);
    }

    fn note(&mut self, attempt: Attempt) {
        let number = self.attempts.iter().map(|it| it.number).max().unwrap_or(0).saturating_add(1);
        self.attempts.push(Attempt { number, ..attempt });
    }

    fn review(&mut self, decision: Decision<'_>, now: Timestamp) -> Vec<Effect> {
        match decision {
            Decision::Wait => Vec::new(),
            Decision::Retry { fresh, strategy } => {
                if fresh {
                    self.failures = 0;
                    let approach = self.hints.new_approach.clone();
                    self.note(Attempt { at: now, approach, ..Attempt::default() });
                }
                self.plan(strategy);
                self.release(now)
            }
            Decision::Split { id } => {
                let scope = std::mem::take(&mut self.hints.simpler_scope);
                let id = id.to_owned();
                self.children.push(id.clone());
                let lasting = self.hints.marks.iter().filter(|it| LASTING.contains(&it.as_str()));
                let hints = Hints { marks: lasting.cloned().collect(), ..Hints::default() };
                let part = Self {
                    id,
                    title: format!("{}: {scope}", self.title),
                    description: self.description.clone(),
                    priority: self.priority.clone(),
                    parent: self.id.clone(),
                    hints,
                    scope,
                    ..Self::default()
                };
                vec![Effect::Created(Box::new(part))]
            }
            Decision::Escalate { strategy, id } => {
                self.plan(strategy);
                if self.waits_for.is_empty() {
                    id.clone_into(&mut self.waits_for);
                }
                Vec::new()
            }
            Decision::Abandon { reason } => self.give_up(reason, now),
        }
    }

    fn release(&mut self, now: Timestamp) -> Vec<Effect> {
        self.waits_for.clear();
        if self.place.is_work() {
            return Vec::new();
        }
        let hints = std::mem::take(&mut self.hints);
        if !hints.fix_commit.is_empty() {
            self.fix_commit = hints.fix_commit;
        }
        let lasting = hints.marks.into_iter().filter(|it| LASTING.contains(&it.as_str()));
        self.hints.marks = lasting.collect();
        self.place = Place::Pending;
        self.redrives = self.redrives.saturating_add(1);
        self.redriven = Some(now);
        self.reason.clear();
        self.abandoned = None;
        vec![Effect::Recovered]
    }

    fn give_up(&mut self, reason: &str, now: Timestamp) -> Vec<Effect> {
        self.place = Place::Abandoned;
        reason.clone_into(&mut self.reason);
        self.abandoned = Some(now);
        self.waits_for.clear();
        self.plan("permanent_abandon");
        vec![Effect::Abandoned]
    }

    fn plan(&mut self, strategy: &str) {
        if !strategy.is_empty() {
            strategy.clone_into(&mut self.strategy);
        }
    }

    /// Attempts that count.
    pub fn counted(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|it| it.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000 + seconds * 1000)
    }

    fn task(place: Place) -> Task {
        let attempt = Attempt { number: 1, at: at(-60), counts: true, ..Attempt::default() };
        Task {
            id: "t".to_owned(),
            place,
            failures: 1,
            first_failure: Some(at(-60)),
            last_failure: Some(at(-60)),
            attempts: vec![attempt],
            hints: Hints {
                new_approach: "other".to_owned(),
                simpler_scope: "less".to_owned(),
                marks: ["security", "dependency_available"].map(str::to_owned).into(),
                ..Hints::default()
            },
            revision: 7,
            ..Task::default()
        }
    }

    #[test]
    fn the_same_report_is_taken_in_once() {
        let attempt = Attempt { key: "run-7".into(), counts: true, ..Attempt::default() };
        let (once, _) = step(&task(Place::Pending), Event::Failed(attempt.clone()), at(0));
        let (twice, _) = step(&once, Event::Failed(attempt), at(1));
        assert_eq!(twice, once);
    }

    #[test]
    fn what_was_used_up_does_not_bring_a_task_back_again() {
        let retry = Event::Reviewed(Decision::Retry { fresh: false, strategy: "" });
        let (back, _) = step(&task(Place::DeadLetter), retry, at(0));
        assert_eq!(back.hints.new_approach, "");
        assert_eq!(back.hints.marks, ["security".to_owned()].into());
        assert_eq!((back.redrives, back.redriven), (1, Some(at(0))));
    }
}
