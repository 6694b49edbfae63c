//! The dead-letter queue: a task that fails repeatedly is dead-lettered and reviewed. It is then
//! requeued, escalated to a human, or abandoned. Contains: the effect of a decision. Does not
//! contain: the rules that decide.
//!
//! `step(task, event, now) -> (task, effects)`:
//!
//! | event | pending, in progress | dead letter | abandoned |
//! |---|---|---|---|
//! | `Started` | in progress | no change | no change |
//! | `Failed` | recorded, and counted if it counts; back to pending | recorded, counted | recorded, counted |
//! | `Entered` | dead letter | no change | no change |
//! | `Reviewed(Wait)` | no change | no change | no change |
//! | `Reviewed(Retry)` | no change | pending, recovered; its hints are removed | no change |
//! | `Reviewed(Split)` | no change | stays, linked to a smaller task | no change |
//! | `Reviewed(Escalate)` | no change | stays, asks a human once | no change |
//! | `Reviewed(Abandon)` | no change | abandoned | no change |
//! | `Released` | no longer blocked | pending, recovered | pending, recovered |
//! | `Redriven` | no change | pending, recovered; no change if it waits for a human | no change |
//! | `GivenUp` | abandoned | abandoned | no change |
//! | `Blocked` | blocked; if it already waits, it waits for the same as before | as before | no change |
//! | `Answered` | no longer blocked, if it waits for this | no longer blocked; the approval is a hint | no change |
//! | `Resolved` | done | done, recovered | done |
//! | `Claimed` | no change | claimed, unless it is claimed or waits for a human | no change |
//! | `Unclaimed` | no change | its claim ends, if the generation is that of the claim | no change |
//! | `Finished` | no change | done, recovered, if the generation is that of the claim | no change |
//!
//! A claimed dead letter is not reviewed and not redriven.
//!
//! Attempts are never removed. The counter of failures can restart; the failures that only the counter contained are
//! then kept beside the attempts.

use std::time::Duration;

use policyd_base::limits::CLAIM_LEASE_MAX;
use policyd_yaml::time::Timestamp;

mod task;

pub use task::{Attempt, Hints, MARKS, Task, TaskClaim, TaskQueue, cut};

/// Holder of a claim without a name, such as that of a container without the variable `USER`.
const UNKNOWN_HOLDER: &str = "unknown";
/// Marks that describe the task, not an event. A retry does not remove them.
const LASTING: [&str; 5] = ["security", "data_loss", "irreversible", "external", "ambiguous"];

/// Decision of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewDecision<'a> {
    /// The task stays.
    Wait,
    /// The task is requeued.
    Retry {
        /// Whether failures count from 0 again.
        fresh: bool,
        /// New strategy. Empty: the current strategy stays.
        strategy: &'a str,
    },
    /// A smaller task is created.
    Split {
        /// Id of the new task, which must be unused.
        id: &'a str,
    },
    /// A human is asked.
    Escalate {
        /// New strategy. Empty: the current strategy stays.
        strategy: &'a str,
        /// Id of the escalation.
        id: &'a str,
    },
    /// The task is abandoned.
    Abandon {
        /// Reason, one word.
        reason: &'a str,
    },
}

/// Event of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEvent<'a> {
    /// An agent started work on it.
    Started,
    /// An attempt failed.
    Failed(Attempt),
    /// A rule dead-letters the task.
    Entered {
        /// Strategy of the next attempt.
        strategy: &'a str,
    },
    /// A review decided about the task.
    Reviewed(ReviewDecision<'a>),
    /// A user or an agent requeues the task.
    Released,
    /// The task is redriven, together with others.
    Redriven,
    /// A human abandons the task.
    GivenUp {
        /// Reason, as given.
        reason: &'a str,
    },
    /// The task waits for a human.
    Blocked {
        /// Id of the request that it waits for.
        by: &'a str,
    },
    /// A human approves that the task continues.
    Answered {
        /// Id of the approved request.
        by: &'a str,
    },
    /// The task is done.
    Resolved,
    /// An agent wants to work on the dead letter alone.
    Claimed {
        /// Name of the agent.
        holder: &'a str,
        /// Length of the lease.
        lease: Duration,
    },
    /// The agent gives the dead letter back.
    Unclaimed {
        /// Generation of its claim.
        generation: u64,
    },
    /// The agent that claimed the dead letter has done the task.
    Finished {
        /// Generation of its claim.
        generation: u64,
    },
}

/// Effect of an event besides the change of the task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEffect {
    /// A dead letter was requeued.
    Recovered,
    /// A task was abandoned.
    Abandoned,
    /// A smaller task was created.
    Created(Box<Task>),
    /// The task is done and leaves the queues.
    Done,
    /// The dead letter belongs to the agent that claimed it now.
    Claimed,
}

/// Returns the task after an event, and its further effects. An unchanged task was not affected.
#[must_use]
pub fn step(task: &Task, event: TaskEvent<'_>, now: Timestamp) -> (Task, Vec<TaskEffect>) {
    let mut next = task.clone();
    let effects = next.apply(event, now);
    if next != *task {
        next.revision = task.revision.saturating_add(1);
    }
    (next, effects)
}

impl Task {
    /// Merges another report of this task. Empty fields stay unchanged, and marks are combined.
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

    fn apply(&mut self, event: TaskEvent<'_>, now: Timestamp) -> Vec<TaskEffect> {
        match event {
            TaskEvent::Started => {
                if self.place == TaskQueue::Pending && self.waits_for.is_empty() {
                    self.place = TaskQueue::InProgress;
                }
                Vec::new()
            }
            TaskEvent::Failed(attempt) => {
                self.fail(attempt);
                Vec::new()
            }
            TaskEvent::Entered { strategy } => {
                if self.place.is_work() {
                    self.place = TaskQueue::DeadLetter;
                    self.plan(strategy);
                }
                Vec::new()
            }
            TaskEvent::Reviewed(decision)
                if self.place == TaskQueue::DeadLetter && !self.is_claimed(now) =>
            {
                self.review(decision, now)
            }
            TaskEvent::Reviewed(_) => Vec::new(),
            TaskEvent::Released => self.release(now),
            TaskEvent::Redriven
                if self.place == TaskQueue::DeadLetter
                    && self.waits_for.is_empty()
                    && !self.is_claimed(now) =>
            {
                self.release(now)
            }
            TaskEvent::Redriven => Vec::new(),
            TaskEvent::GivenUp { reason } if self.place != TaskQueue::Abandoned => {
                self.give_up(reason, now)
            }
            TaskEvent::GivenUp { .. } => Vec::new(),
            TaskEvent::Blocked { by } => {
                if self.place != TaskQueue::Abandoned && self.waits_for.is_empty() {
                    by.clone_into(&mut self.waits_for);
                }
                Vec::new()
            }
            TaskEvent::Answered { by } => {
                // An approval of another request does not unblock this task.
                if self.waits_for == by {
                    self.waits_for.clear();
                    if self.place == TaskQueue::DeadLetter {
                        self.hints.marks.insert("human_approved".to_owned());
                    }
                }
                Vec::new()
            }
            TaskEvent::Resolved if self.place == TaskQueue::DeadLetter => {
                vec![TaskEffect::Recovered, TaskEffect::Done]
            }
            TaskEvent::Resolved => vec![TaskEffect::Done],
            TaskEvent::Claimed { holder, lease } if self.claim(holder, lease, now) => {
                vec![TaskEffect::Claimed]
            }
            TaskEvent::Claimed { .. } => Vec::new(),
            TaskEvent::Unclaimed { generation } => {
                self.unclaim(generation, now);
                Vec::new()
            }
            TaskEvent::Finished { generation } if self.holds(generation) => {
                vec![TaskEffect::Recovered, TaskEffect::Done]
            }
            TaskEvent::Finished { .. } => Vec::new(),
        }
    }

    /// Returns whether an agent works on the dead letter. A lease that a wrong clock made too long does not count.
    #[must_use]
    pub fn is_claimed(&self, now: Timestamp) -> bool {
        let active = |it: &TaskClaim| it.until > now && it.until.since(now) <= CLAIM_LEASE_MAX;
        self.claim.as_ref().is_some_and(|it| !it.holder.is_empty() && active(it))
    }

    /// Claims the dead letter, if it is free. Returns whether it was.
    fn claim(&mut self, holder: &str, lease: Duration, now: Timestamp) -> bool {
        if self.place != TaskQueue::DeadLetter || !self.waits_for.is_empty() || self.is_claimed(now)
        {
            return false;
        }
        let generation = self.claim.as_ref().map_or(0, |it| it.generation).saturating_add(1);
        let until = now.plus(lease.min(CLAIM_LEASE_MAX));
        // An empty name would mean that the claim ended.
        let holder = if holder.is_empty() { UNKNOWN_HOLDER } else { holder };
        self.claim = Some(TaskClaim { holder: holder.to_owned(), until, generation });
        true
    }

    fn unclaim(&mut self, generation: u64, now: Timestamp) {
        if let Some(claim) = self.claim.as_mut().filter(|it| it.generation == generation) {
            claim.holder.clear();
            claim.until = now;
        }
    }

    /// Returns whether the dead letter was claimed with this generation, and not since.
    fn holds(&self, generation: u64) -> bool {
        let own = |it: &TaskClaim| it.generation == generation && !it.holder.is_empty();
        self.place == TaskQueue::DeadLetter && self.claim.as_ref().is_some_and(own)
    }

    /// Returns the task with what was learned about it.
    #[must_use]
    pub fn learned(self, other: &Self) -> Self {
        let revision = self.revision;
        let before = self.clone();
        let mut next = self.with(other);
        if next != before {
            next.revision = revision.saturating_add(1);
        }
        next
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
            self.place = TaskQueue::Pending;
        }
        self.note(attempt);
    }

    fn note(&mut self, attempt: Attempt) {
        let number = self.attempts.iter().map(|it| it.number).max().unwrap_or(0).saturating_add(1);
        self.attempts.push(Attempt { number, ..attempt });
    }

    fn review(&mut self, decision: ReviewDecision<'_>, now: Timestamp) -> Vec<TaskEffect> {
        match decision {
            ReviewDecision::Wait => Vec::new(),
            ReviewDecision::Retry { fresh, strategy } => {
                if fresh {
                    let unlisted = self.failed_attempts().saturating_sub(self.counted().count());
                    self.unlisted = u32::try_from(unlisted).unwrap_or(u32::MAX);
                    self.failures = 0;
                    let approach = self.hints.new_approach.clone();
                    self.note(Attempt { at: now, approach, ..Attempt::default() });
                }
                self.plan(strategy);
                self.release(now)
            }
            ReviewDecision::Split { id } => {
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
                vec![TaskEffect::Created(Box::new(part))]
            }
            ReviewDecision::Escalate { strategy, id } => {
                self.plan(strategy);
                if self.waits_for.is_empty() {
                    id.clone_into(&mut self.waits_for);
                }
                Vec::new()
            }
            ReviewDecision::Abandon { reason } => self.give_up(reason, now),
        }
    }

    fn release(&mut self, now: Timestamp) -> Vec<TaskEffect> {
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
        self.place = TaskQueue::Pending;
        self.redrives = self.redrives.saturating_add(1);
        self.redriven = Some(now);
        self.reason.clear();
        self.abandoned = None;
        vec![TaskEffect::Recovered]
    }

    fn give_up(&mut self, reason: &str, now: Timestamp) -> Vec<TaskEffect> {
        self.place = TaskQueue::Abandoned;
        reason.clone_into(&mut self.reason);
        self.abandoned = Some(now);
        self.waits_for.clear();
        self.plan("permanent_abandon");
        vec![TaskEffect::Abandoned]
    }

    fn plan(&mut self, strategy: &str) {
        if !strategy.is_empty() {
            strategy.clone_into(&mut self.strategy);
        }
    }

    /// Returns the attempts that count.
    pub fn counted(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|it| it.counts)
    }

    /// Returns how many attempts failed in total. Other programs count failures without a list of the attempts, so
    /// the higher number counts.
    #[must_use]
    pub fn failed_attempts(&self) -> usize {
        let stored = usize::try_from(self.failures).unwrap_or(usize::MAX);
        let unlisted = usize::try_from(self.unlisted).unwrap_or(usize::MAX);
        self.counted().count().saturating_add(unlisted).max(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000 + seconds * 1000)
    }

    fn task(place: TaskQueue) -> Task {
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
        let (once, _) = step(&task(TaskQueue::Pending), TaskEvent::Failed(attempt.clone()), at(0));
        let (twice, _) = step(&once, TaskEvent::Failed(attempt), at(1));
        assert_eq!(twice, once);
    }

    #[test]
    fn a_counter_counts_like_attempts_and_survives_a_fresh_start() {
        let counter = |failures| Task { failures, ..task(TaskQueue::DeadLetter) };
        assert_eq!([0, 1, 5].map(|it| counter(it).failed_attempts()), [1, 1, 5]);
        let fresh = TaskEvent::Reviewed(ReviewDecision::Retry { fresh: true, strategy: "" });
        let (back, _) = step(&counter(5), fresh, at(0));
        assert_eq!((back.failures, back.failed_attempts()), (0, 5));
        let attempt = Attempt { counts: true, ..Attempt::default() };
        let (failed, _) = step(&back, TaskEvent::Failed(attempt), at(1));
        assert_eq!((failed.failures, failed.failed_attempts()), (1, 6));
    }

    #[test]
    fn what_was_used_up_does_not_bring_a_task_back_again() {
        let retry = TaskEvent::Reviewed(ReviewDecision::Retry { fresh: false, strategy: "" });
        let (back, _) = step(&task(TaskQueue::DeadLetter), retry, at(0));
        assert_eq!(back.hints.new_approach, "");
        assert_eq!(back.hints.marks, ["security".to_owned()].into());
        assert_eq!((back.redrives, back.redriven), (1, Some(at(0))));
    }
}
