//! Reviews of the dead letters: what the rules say of each task is foreseen, or done.

use serde_json::{Value, json};

use super::Stores;
use super::dead_letters::{around, not_asked};
use policyd_base::limits::{REVIEW_TIME_MAX, REVIEWED_AT_ONCE_MAX};
use policyd_evaluation::dead_letter as rules;
use policyd_policy::resilience::{Review, ReviewAction};
use policyd_state::dead_letter::{Task, TaskEffect, TaskEvent, TaskQueue, step};
use policyd_store::queues::{Lists, expire};
use policyd_store::shared::action::TaskChange;
use policyd_world::WorldError;

/// What a review did with one task.
#[derive(Debug, Clone)]
pub struct ReviewRow {
    /// The task afterwards.
    pub task: Task,
    /// What was done: `retry`, `split`, `escalate`, `abandon`, `wait`, `leave`.
    pub action: &'static str,
    /// The rule that said so, or empty.
    pub rule: String,
    /// The escalation, or empty.
    pub escalation: String,
    /// The task made of it, or empty.
    pub part: String,
    /// Its dependencies that are in no queue and not known to be done.
    pub unknown: Vec<String>,
    /// What went wrong beside.
    pub problems: Vec<String>,
}

/// What one call reviewed.
#[derive(Debug, Clone, Default)]
pub struct ReviewedTasks {
    /// The tasks, one row each.
    pub rows: Vec<ReviewRow>,
    /// Dead letters that are left for the next call.
    pub left: usize,
}

impl Stores<'_> {
    /// Looks at the dead letters and does what the rules say: at those that are named, else at all of them,
    /// from where the last call ended and no more than one call may look at.
    pub fn review(&self, wanted: &[String]) -> Result<ReviewedTasks, WorldError> {
        let late = self.take_late_in();
        let reviewed = self.queues.change(self.now, |lists| {
            let reviewed = self.review_all(lists, wanted)?;
            if wanted.is_empty() && reviewed.left == 0 {
                lists.metadata.last_reviewed = Some(self.now);
            }
            let rules = &self.policy.dead_letter;
            let gone = expire(lists, rules.retention_age, rules.retention_count, self.now);
            Ok((reviewed, gone))
        });
        let (mut reviewed, gone) = reviewed?;
        let moved = reviewed.rows.iter().filter(|it| !matches!(it.action, "wait" | "leave"));
        let moved = moved.map(|it| self.entry(it.action, &it.task, json!({"rule": it.rule})));
        let expired = gone.iter().map(|id| {
            self.entry("expired", &Task { id: id.clone(), ..Task::default() }, json!({}))
        });
        let entries: Vec<Value> = moved.chain(expired).collect();
        self.queues.audit(&entries);
        let problems = self.remind();
        if let Some(last) = reviewed.rows.last_mut() {
            last.problems.extend(late.into_iter().chain(problems));
        }
        Ok(reviewed)
    }

    /// What a review would do, with nothing changed.
    pub fn preview_review(&self, wanted: &[String]) -> Vec<ReviewRow> {
        let mut lists = self.queues.peek();
        let ids = self.dead(&lists, wanted);
        let around = around(&lists);
        let mut rows = Vec::new();
        for id in ids {
            let Some(task) = lists.find(&id).cloned() else { continue };
            let (rule, ruling) = self.judged(&task, &around);
            let part = part_id(&task, &lists);
            let (next, effects) = match rule {
                Some(rule) => {
                    step(&task, TaskEvent::Reviewed(rules::decision(rule, &part)), self.now)
                }
                None => (task, Vec::new()),
            };
            let mut row = row(&next, rule, &effects, ruling.problems);
            row.unknown = unknown(&next, &around);
            lists.put(next, &effects);
            rows.push(row);
        }
        rows
    }

    fn dead(&self, lists: &Lists, wanted: &[String]) -> Vec<String> {
        let dead = lists.on(TaskQueue::DeadLetter).map(|it| it.id.clone());
        dead.filter(|it| wanted.is_empty() || wanted.contains(it)).collect()
    }

    fn review_all(
        &self,
        lists: &mut Lists,
        wanted: &[String],
    ) -> Result<ReviewedTasks, WorldError> {
        let began = self.world.elapsed();
        self.take_answers_in(lists);
        let around = around(lists);
        let mut ids = self.dead(lists, wanted);
        let bounded = wanted.is_empty();
        if bounded && let Some(from) = ids.iter().position(|it| *it == lists.review_from) {
            drop(ids.drain(..from));
        }
        let mut rows = Vec::new();
        let mut ids = ids.into_iter();
        while let Some(id) = ids.next() {
            // At least one task is reviewed, so that the reviews end.
            let took = self.world.elapsed().saturating_sub(began);
            let is_full = rows.len() >= REVIEWED_AT_ONCE_MAX || took >= REVIEW_TIME_MAX;
            if bounded && is_full && !rows.is_empty() {
                lists.review_from = id;
                return Ok(ReviewedTasks { rows, left: ids.len().saturating_add(1) });
            }
            let Some(task) = lists.find(&id).cloned() else { continue };
            let (rule, ruling) = self.judged(&task, &around);
            let mut done = match rule {
                None => row(&task, None, &[], Vec::new()),
                Some(rule) => match self.apply(&task, rule, ruling.trigger, lists) {
                    Ok(done) => done,
                    // One question that cannot be written holds up nothing else.
                    Err(error) => row(&task, None, &[], vec![not_asked(&task, &error)]),
                },
            };
            done.problems.extend(ruling.problems);
            done.unknown = unknown(&task, &around);
            rows.push(done);
        }
        if bounded {
            lists.review_from.clear();
        }
        Ok(ReviewedTasks { rows, left: 0 })
    }

    /// Applies answers that arrived while the task could not be moved.
    fn take_answers_in(&self, lists: &mut Lists) {
        let waiting: Vec<Task> =
            lists.tasks.iter().filter(|it| !it.waits_for.is_empty()).cloned().collect();
        if waiting.is_empty() {
            return;
        }
        // A task whose answer is unknown goes on waiting.
        let (Ok(asked), Ok(history)) = (self.escalations.all(), self.signals.history()) else {
            return;
        };
        let signals = self.signals.view(self.now);
        for task in waiting {
            let by = task.waits_for.as_str();
            let closed = asked.iter().find(|it| it.id == by).and_then(|it| it.closed.as_ref());
            let ended =
                history.iter().rev().find(|it| it.get("id").and_then(Value::as_str) == Some(by));
            let waits = signals.incomplete || signals.signals.iter().any(|it| it.id == by);
            let outcome = ended.filter(|_| !waits).and_then(|it| it.get("outcome")?.as_str());
            let approved = match (closed, outcome) {
                (Some(closed), _) => closed.approved,
                (None, Some("approved")) => true,
                (None, Some("rejected")) => false,
                (None, Some(_)) => {
                    // Its question can no longer be answered, so it stops waiting.
                    lists.apply(&task.id, TaskChange::Unanswered { by: by.to_owned() }, self.now);
                    continue;
                }
                (None, None) => continue,
            };
            let event = if approved {
                TaskEvent::Answered { by }
            } else {
                TaskEvent::GivenUp { reason: "human" }
            };
            lists.apply(&task.id, event.into(), self.now);
        }
    }

    /// Does what a rule says with one task. Where a human is needed, they are asked first: a task
    /// never waits for a question that was not written.
    pub(super) fn apply(
        &self,
        task: &Task,
        rule: &Review,
        trigger: Option<usize>,
        lists: &mut Lists,
    ) -> Result<ReviewRow, WorldError> {
        let mut escalation = String::new();
        if rule.action == ReviewAction::Escalate {
            escalation = self.escalate(task, trigger)?.id;
        }
        let part = part_id(task, lists);
        let id = if rule.action == ReviewAction::Split { &part } else { &escalation };
        let change = TaskEvent::Reviewed(rules::decision(rule, id)).into();
        let applied = lists.apply(&task.id, change, self.now);
        let (next, effects) = applied.unwrap_or_else(|| (task.clone(), Vec::new()));
        let mut row = row(&next, Some(rule), &effects, Vec::new());
        row.escalation = escalation;
        Ok(row)
    }
}

/// The id of the next part of a task: one that no task has or had.
fn part_id(task: &Task, lists: &Lists) -> String {
    let name = |number: usize| format!("{}-part-{number}", task.id);
    let taken = |id: &String| lists.find(id).is_some() || task.children.contains(id);
    (1..).map(name).find(|id| !taken(id)).unwrap_or_default()
}

fn unknown(task: &Task, around: &rules::QueueContext) -> Vec<String> {
    around.unknown_dependencies(task).into_iter().map(str::to_owned).collect()
}

fn row(
    task: &Task,
    rule: Option<&Review>,
    effects: &[TaskEffect],
    problems: Vec<String>,
) -> ReviewRow {
    let part = effects.iter().find_map(|it| match it {
        TaskEffect::Created(part) => Some(part.id.clone()),
        TaskEffect::Recovered | TaskEffect::Abandoned | TaskEffect::Done | TaskEffect::Claimed => {
            None
        }
    });
    ReviewRow {
        task: task.clone(),
        action: rule.map_or("leave", |it| it.action.as_str()),
        rule: rule.map(|it| it.id.clone()).unwrap_or_default(),
        escalation: String::new(),
        part: part.unwrap_or_default(),
        unknown: Vec::new(),
        problems,
    }
}
