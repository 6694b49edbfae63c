//! Tasks that fail: taken in, put aside, reviewed, brought back, given up.

use serde_json::{Value, json};

use super::Stores;
use crate::judge::dead_letter::{self as rules, Around};
use crate::judge::escalation::{self as asked, Known};
use crate::policy::resilience::{Review, ReviewAction};
use crate::report::mask::mask;
use crate::state::dead_letter::{Attempt, Effect, Event, Place, Task, step};
use crate::state::escalation::Escalation;
use crate::store::escalations::Named;
use crate::store::queues::{Lists, expire};
use crate::world::WorldError;

/// A failed attempt as somebody reports it.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Report {
    /// The task: what is known of it so far; only its id must be there.
    pub(in crate::cli) task: Task,
    /// What was tried and what became of it.
    pub(in crate::cli) attempt: Attempt,
    /// Whether it goes to the dead letters whatever the rules say.
    pub(in crate::cli) at_once: bool,
}

/// What became of a report.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Taken {
    /// The task.
    pub(in crate::cli) task: Task,
    /// The rule by which it entered the queue, or empty.
    pub(in crate::cli) entered: String,
    /// Whether a simpler approach is due.
    pub(in crate::cli) simplify: bool,
    /// Whether this very report was taken in before.
    pub(in crate::cli) known: bool,
    /// The escalation it led to, or empty.
    pub(in crate::cli) escalation: String,
    /// What went wrong beside.
    pub(in crate::cli) problems: Vec<String>,
}

/// What a review did with one task.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Row {
    /// The task afterwards.
    pub(in crate::cli) task: Task,
    /// What was done: `retry`, `split`, `escalate`, `abandon`, `wait`, `leave`.
    pub(in crate::cli) action: &'static str,
    /// The rule that said so, or empty.
    pub(in crate::cli) rule: String,
    /// The escalation, or empty.
    pub(in crate::cli) escalation: String,
    /// The task made of it, or empty.
    pub(in crate::cli) part: String,
    /// What went wrong beside.
    pub(in crate::cli) problems: Vec<String>,
}

impl Stores<'_> {
    /// Takes a failed attempt in; the task enters the dead letters where a rule says so.
    pub(in crate::cli) fn fail(&self, report: &Report) -> Result<Taken, WorldError> {
        let taken = self.queues.change(self.now, |lists| {
            let known = lists.find(&report.task.id).cloned();
            let before = known.map_or_else(|| report.task.clone(), |it| it.with(&report.task));
            let attempt = Attempt { at: self.now, ..report.attempt.clone() };
            let (mut task, _) = step(&before, Event::Failed(attempt), self.now);
            let mut taken = Taken { known: task == before, ..Taken::default() };
            lists.put(task.clone(), &[]);
            let record =
                rules::record(&task, &Around::new(&lists.tasks), self.permanent(&task), self.now);
            let rule = rules::enters(&self.policy.dead_letter, record).filter(|_| !taken.known);
            let strategy = rule.map(|it| it.strategy.as_str()).unwrap_or_default();
            if (rule.is_some() || report.at_once) && task.place < Place::DeadLetter {
                rule.map_or("at once", |it| &it.id).clone_into(&mut taken.entered);
                (task, _) = step(&task, Event::Entered { strategy }, self.now);
                lists.put(task.clone(), &[]);
                self.ask_at_once(&task, lists, &mut taken)?;
            }
            let counted = task.counted().count();
            let after =
                usize::try_from(self.policy.dead_letter.simplify_after).unwrap_or(usize::MAX);
            taken.simplify = counted >= after && task.place < Place::DeadLetter;
            taken.task = lists.find(&task.id).cloned().unwrap_or(task);
            Ok(taken)
        })?;
        let mut taken = taken;
        if !taken.known {
            let what = if taken.entered.is_empty() { "failed" } else { "entered" };
            self.audit(what, &taken.task, json!({"rule": taken.entered}));
        }
        if !taken.escalation.is_empty() {
            taken.problems.extend(self.remind());
        }
        Ok(taken)
    }

    /// A human's need is not put off until the next review.
    fn ask_at_once(
        &self,
        task: &Task,
        lists: &mut Lists,
        taken: &mut Taken,
    ) -> Result<(), WorldError> {
        let (rule, ruling) = self.judged(task, lists);
        taken.problems.extend(ruling.problems);
        if let Some(rule) = rule.filter(|it| it.action == ReviewAction::Escalate) {
            let row = self.apply(task, (rule, ruling.trigger), lists)?;
            taken.escalation = row.escalation;
        }
        Ok(())
    }

    /// Whether an attempt that ended so counts against its task: a rate limit says nothing about it.
    pub(in crate::cli) fn counts(&self, error_type: &str, error: &str) -> bool {
        self.policy.classify(error_type, error).class.attempt
    }

    /// Whether the class of its last error says that no further attempt can help.
    fn permanent(&self, task: &Task) -> bool {
        let last = rules::last_failure(task);
        last.is_some_and(|it| self.policy.classify(&it.error_type, &it.error).is_permanent())
    }

    fn judged(&self, task: &Task, lists: &Lists) -> (Option<&Review>, rules::Ruling) {
        let around = Around::new(&lists.tasks);
        let record = rules::record(task, &around, self.permanent(task), self.now);
        rules::review(&self.policy.dead_letter, &self.policy.escalation, record)
    }

    /// Looks at the dead letters, all of them or those that are named, and does what the rules say.
    pub(in crate::cli) fn review(&self, wanted: &[String]) -> Result<Vec<Row>, WorldError> {
        let rows = self.queues.change(self.now, |lists| {
            let rows = self.review_all(lists, wanted)?;
            if wanted.is_empty() {
                lists.metadata.last_reviewed = Some(self.now);
            }
            let rules = &self.policy.dead_letter;
            let limits = (rules.retention_age, rules.retention_count);
            let gone = expire(lists, limits, self.now);
            Ok((rows, gone))
        });
        let (mut rows, gone) = rows?;
        for row in rows.iter().filter(|it| !matches!(it.action, "wait" | "leave")) {
            self.audit(row.action, &row.task, json!({"rule": row.rule}));
        }
        gone.iter().for_each(|id| {
            self.audit("expired", &Task { id: id.clone(), ..Task::default() }, json!({}))
        });
        let problems = self.remind();
        if let Some(last) = rows.last_mut() {
            last.problems.extend(problems);
        }
        Ok(rows)
    }

    /// What a review would do, with nothing changed.
    pub(in crate::cli) fn foresee(&self, wanted: &[String]) -> Vec<Row> {
        let mut lists = self.queues.peek();
        let ids = self.dead(&lists, wanted);
        let mut rows = Vec::new();
        for id in ids {
            let Some(task) = lists.find(&id).cloned() else { continue };
            let (rule, ruling) = self.judged(&task, &lists);
            let (next, effects) = match rule {
                Some(rule) => step(&task, Event::Reviewed(rules::decision(rule, "")), self.now),
                None => (task, Vec::new()),
            };
            let row = row(&next, rule, &effects, ruling.problems);
            lists.put(next, &effects);
            rows.push(row);
        }
        rows
    }

    fn dead(&self, lists: &Lists, wanted: &[String]) -> Vec<String> {
        let dead = lists.on(Place::DeadLetter).map(|it| it.id.clone());
        dead.filter(|it| wanted.is_empty() || wanted.contains(it)).collect()
    }

    fn review_all(&self, lists: &mut Lists, wanted: &[String]) -> Result<Vec<Row>, WorldError> {
        let mut rows = Vec::new();
        for id in self.dead(lists, wanted) {
            let Some(task) = lists.find(&id).cloned() else { continue };
            let (rule, ruling) = self.judged(&task, lists);
            let Some(rule) = rule else {
                rows.push(row(&task, None, &[], ruling.problems));
                continue;
            };
            let mut done = self.apply(&task, (rule, ruling.trigger), lists)?;
            done.problems.extend(ruling.problems);
            rows.push(done);
        }
        Ok(rows)
    }

    /// Does what a rule says with one task. Where a human is needed, they are asked first: a task
    /// never waits for a question that was not written.
    fn apply(
        &self,
        task: &Task,
        (rule, trigger): (&Review, Option<usize>),
        lists: &mut Lists,
    ) -> Result<Row, WorldError> {
        let mut escalation = String::new();
        if rule.action == ReviewAction::Escalate {
            escalation = self.escalate(task, trigger, "")?.id;
        }
        let event = Event::Reviewed(rules::decision(rule, &escalation));
        let (next, effects) = step(task, event, self.now);
        let mut row = row(&next, Some(rule), &effects, Vec::new());
        row.escalation = escalation;
        lists.put(next, &effects);
        Ok(row)
    }

    /// Writes the question to a human, or finds the one that was written.
    fn escalate(
        &self,
        task: &Task,
        trigger: Option<usize>,
        analysis: &str,
    ) -> Result<Escalation, WorldError> {
        let none = crate::policy::resilience::Trigger::unnamed();
        let trigger =
            trigger.and_then(|at| self.policy.escalation.triggers.get(at)).unwrap_or(&none);
        self.escalations.open(Named::Task(&task.id), self.now, |id| {
            let escalation = asked::of_task(task, trigger, id, self.now);
            let known = Known {
                task: Some(task),
                summary: "",
                analysis,
                options: &trigger.options,
                watch: self.watch.as_ref(),
            };
            let text = asked::document(self.policy, &escalation, known);
            (escalation, mask(&text).0.into_owned())
        })
    }

    /// One event of one task; `None` where there is no such task.
    pub(in crate::cli) fn act(
        &self,
        id: &str,
        what: &str,
        event: Event<'_>,
        details: Value,
    ) -> Result<Option<(Task, Vec<Effect>)>, WorldError> {
        let done = self.queues.change(self.now, |lists| {
            let Some(task) = lists.find(id).cloned() else { return Ok(None) };
            let (next, effects) = step(&task, event, self.now);
            let unchanged = next == task && effects.is_empty();
            lists.put(next.clone(), &effects);
            Ok(Some((next, effects, unchanged)))
        })?;
        Ok(done.map(|(task, effects, unchanged)| {
            if !unchanged {
                self.audit(what, &task, details);
            }
            (task, effects)
        }))
    }

    /// Writes down what was learned about a task; `None` where there is no such task.
    pub(in crate::cli) fn learn(
        &self,
        id: &str,
        hinted: &Task,
    ) -> Result<Option<Task>, WorldError> {
        self.queues.change(self.now, |lists| {
            let Some(task) = lists.find(id).cloned() else { return Ok(None) };
            let mut next = task.clone().with(hinted);
            if next != task {
                next.revision = task.revision.saturating_add(1);
            }
            lists.put(next.clone(), &[]);
            Ok(Some(next))
        })
    }

    pub(in crate::cli) fn audit(&self, what: &str, task: &Task, details: Value) {
        let mut entry = json!({
            "timestamp": self.now.to_string(), "what": what, "task_id": task.id,
            "place": task.place.as_str(), "attempts": task.counted().count(), "by": self.by,
        });
        if let (Value::Object(entry), Value::Object(details)) = (&mut entry, details) {
            entry.extend(details);
        }
        self.queues.audit(&[entry]);
    }
}

fn row(task: &Task, rule: Option<&Review>, effects: &[Effect], problems: Vec<String>) -> Row {
    let part = effects.iter().find_map(|it| match it {
        Effect::Created(part) => Some(part.id.clone()),
        Effect::Recovered | Effect::Abandoned | Effect::Done => None,
    });
    Row {
        task: task.clone(),
        action: rule.map_or("leave", |it| it.action.as_str()),
        rule: rule.map(|it| it.id.clone()).unwrap_or_default(),
        escalation: String::new(),
        part: part.unwrap_or_default(),
        problems,
    }
}
