//! Failed tasks: recorded, moved to the dead-letter queue, requeued, abandoned. `reviews` reviews them.

use serde_json::{Value, json};

use super::Stores;
use policyd_base::limits::REVIEW_TIME_MAX;
use policyd_evaluation::dead_letter::{self as rules, QueueContext};
use policyd_evaluation::escalation::{self as asked, EscalationDetails};
use policyd_policy::resilience::{Review, ReviewAction};
use policyd_record::mask::mask;
use policyd_record::notice::{Notice, NoticeKind};
use policyd_state as state;
use policyd_state::dead_letter::{Attempt, Task, TaskEffect, TaskEvent, TaskQueue};
use policyd_state::escalation::Escalation;
use policyd_store::decision_log;
use policyd_store::escalations::EscalationSubject;
use policyd_store::queues::Lists;
use policyd_store::shared::action::TaskChange;
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// A failed attempt as it is reported.
#[derive(Debug, Clone, Default)]
pub struct FailureReport {
    /// The task: what is known of it so far; only its id must be there.
    pub task: Task,
    /// The attempt and its error.
    pub attempt: Attempt,
    /// Whether the task is dead-lettered whatever the rules decide.
    pub at_once: bool,
}

/// Result of a reported failure.
#[derive(Debug, Clone, Default)]
pub struct RecordedFailure {
    /// The task.
    pub task: Task,
    /// The rule by which it entered the queue, or empty.
    pub entered: String,
    /// Whether a simpler approach is due.
    pub simplify: bool,
    /// Whether the same report was recorded before.
    pub known: bool,
    /// The escalation it led to, or empty.
    pub escalation: String,
    /// What went wrong beside.
    pub problems: Vec<String>,
}

impl Stores<'_> {
    /// Takes a failed attempt in; the task enters the dead letters where a rule says so.
    pub fn fail(&self, report: &FailureReport) -> Result<RecordedFailure, WorldError> {
        let mut problems = self.take_late_in();
        let mut taken = self.fail_now(report)?;
        taken.problems.append(&mut problems);
        Ok(taken)
    }

    /// Records a failed attempt for a hook, which cannot wait for long: if the queues are locked, the report
    /// is deferred to the next process. `None` if it was deferred.
    pub fn fail_or_defer(
        &self,
        report: &FailureReport,
    ) -> Result<Option<RecordedFailure>, WorldError> {
        let refused = match self.fail(report) {
            Ok(taken) => return Ok(Some(taken)),
            Err(error) => error,
        };
        let FailureReport { task, attempt, .. } = masked(report);
        let attempt = Attempt { number: 1, at: self.now, ..attempt };
        let task = Task { attempts: vec![attempt], ..task };
        // Why it was not recorded explains more than why it could not be deferred.
        self.queues.put_off(&task, self.now).map_err(|_| refused)?;
        Ok(None)
    }

    /// Records deferred reports, in one change of the queues. Returns what could not be recorded. Reports for which the
    /// time of this call does not suffice wait for the next call.
    pub(super) fn take_late_in(&self) -> Vec<String> {
        let late = self.queues.late();
        if late.is_empty() {
            return Vec::new();
        }
        let began = self.world.elapsed();
        let changed = self.queues.change(self.now, |lists| {
            let mut all = Vec::new();
            for (name, mut task) in late {
                let took = self.world.elapsed().saturating_sub(began);
                if took >= REVIEW_TIME_MAX && !all.is_empty() {
                    break;
                }
                let Some(attempt) = task.attempts.pop() else { continue };
                // A process that dies before the removal does not count it twice.
                let key = if attempt.key.is_empty() { name.clone() } else { attempt.key.clone() };
                task.attempts.clear();
                let report =
                    FailureReport { task, attempt: Attempt { key, ..attempt }, at_once: false };
                all.push((name, self.ingest(lists, &masked(&report))));
            }
            Ok(all)
        });
        match changed {
            Ok(all) => {
                let mut problems = Vec::new();
                for (name, taken) in all {
                    self.queues.taken_in(&name);
                    problems.extend(self.notify_of(taken).problems);
                }
                problems
            }
            Err(error) => vec![format!("queue/late: {error}")],
        }
    }

    fn fail_now(&self, report: &FailureReport) -> Result<RecordedFailure, WorldError> {
        if report.task.id.trim().is_empty() {
            return Err(WorldError::Io("a task needs an id".to_owned()));
        }
        let report = &masked(report);
        let taken = self.queues.change(self.now, |lists| Ok(self.ingest(lists, report)))?;
        Ok(self.notify_of(taken))
    }

    /// Takes one failed attempt into the lists.
    fn ingest(&self, lists: &mut Lists, report: &FailureReport) -> RecordedFailure {
        let known = lists.find(&report.task.id).cloned();
        let before = known.map_or_else(|| report.task.clone(), |it| it.with(&report.task));
        let known_at = report.attempt.at != Timestamp::default();
        let at = if known_at { report.attempt.at } else { self.now };
        let attempt = Attempt { at, ..report.attempt.clone() };
        let change = TaskChange::reported(&report.task, attempt);
        let applied = lists.apply(&report.task.id, change, self.now);
        let mut task = applied.map_or_else(|| before.clone(), |(task, _)| task);
        let mut taken = RecordedFailure { known: task == before, ..RecordedFailure::default() };
        let record = rules::record(&task, &around(lists), self.permanent(&task), self.now);
        let (rule, problems) = rules::enters(&self.policy.dead_letter, record, self.watch.as_ref());
        taken.problems.extend(problems);
        let rule = rule.filter(|_| !taken.known);
        let strategy = rule.map(|it| it.strategy.as_str()).unwrap_or_default();
        let enters = rule.is_some() || (report.at_once && !taken.known);
        if enters && task.place < TaskQueue::DeadLetter {
            rule.map_or("at once", |it| &it.id).clone_into(&mut taken.entered);
            let change = TaskEvent::Entered { strategy }.into();
            if let Some((entered, _)) = lists.apply(&task.id, change, self.now) {
                task = entered;
            }
            self.ask_at_once(&task, lists, &mut taken);
        }
        let counted = task.failed_attempts();
        let after = usize::try_from(self.policy.dead_letter.simplify_after).unwrap_or(usize::MAX);
        taken.simplify = counted >= after && task.place < TaskQueue::DeadLetter;
        taken.task = lists.find(&task.id).cloned().unwrap_or(task);
        taken
    }

    /// Notifies humans of an attempt that was recorded and saved.
    fn notify_of(&self, mut taken: RecordedFailure) -> RecordedFailure {
        if !taken.known {
            let what = if taken.entered.is_empty() { "failed" } else { "entered" };
            self.audit(what, &taken.task, json!({"rule": taken.entered}));
            if !taken.entered.is_empty() {
                let notice = Notice::of_dead_letter(&taken.task, &taken.entered);
                let (world, own) = (self.world, &self.own);
                // The task is in the queue even if the log cannot be written.
                let _unlogged = decision_log::notify(world, own, NoticeKind::DeadLetter, notice);
            }
        }
        if !taken.escalation.is_empty() {
            taken.problems.extend(self.remind());
        }
        taken
    }

    /// A human's need is not put off until the next review.
    fn ask_at_once(&self, task: &Task, lists: &mut Lists, taken: &mut RecordedFailure) {
        let (rule, ruling) = self.judged(task, &around(lists));
        taken.problems.extend(ruling.problems);
        let Some(rule) = rule.filter(|it| it.action == ReviewAction::Escalate) else { return };
        match self.apply(task, rule, ruling.trigger, lists) {
            Ok(row) => taken.escalation = row.escalation,
            // The task is a dead letter anyway, and the next review asks.
            Err(error) => taken.problems.push(not_asked(task, &error)),
        }
    }

    /// Whether an attempt that ended so counts against its task: a rate limit says nothing about it.
    pub fn counts(&self, error_type: &str, error: &str) -> bool {
        self.policy.classify(error_type, error).class.attempt
    }

    /// Whether the class of its last error says that no further attempt can help.
    fn permanent(&self, task: &Task) -> bool {
        let last = rules::last_failure(task);
        last.is_some_and(|it| self.policy.classify(&it.error_type, &it.error).is_permanent())
    }

    pub(super) fn judged(
        &self,
        task: &Task,
        around: &QueueContext,
    ) -> (Option<&Review>, rules::ReviewRule) {
        let record = rules::record(task, around, self.permanent(task), self.now);
        let watch = self.watch.as_ref();
        rules::review(&self.policy.dead_letter, &self.policy.escalation, record, watch)
    }

    /// Writes the question to a human that a task leads to, or finds the one that was written.
    pub(super) fn escalate(
        &self,
        task: &Task,
        trigger: Option<usize>,
    ) -> Result<Escalation, WorldError> {
        let none = policyd_policy::resilience::Trigger::unnamed();
        let trigger =
            trigger.and_then(|at| self.policy.escalation.triggers.get(at)).unwrap_or(&none);
        let known = EscalationDetails {
            task: Some(task),
            options: &trigger.options,
            ..EscalationDetails::default()
        };
        let question = asked::of_task(task, trigger);
        let shared = question.task_id.is_empty();
        let named = EscalationSubject::Task(if shared { &trigger.id } else { &task.id });
        self.open(named, question, known)
    }

    /// Writes a question to a human with its document, or finds the one that was written; its id
    /// and its time are given here.
    pub fn open(
        &self,
        named: EscalationSubject<'_>,
        question: Escalation,
        known: EscalationDetails<'_>,
    ) -> Result<Escalation, WorldError> {
        self.escalations.open(named, self.now, |id| {
            let escalation = Escalation { id: id.to_owned(), created: self.now, ..question };
            let known = EscalationDetails { watch: self.watch.as_ref(), ..known };
            let text = asked::document(self.policy, &escalation, known);
            (escalation, mask(&text).0.into_owned())
        })
    }

    /// Applies an event to a task. `None` if the task does not exist.
    pub fn act(
        &self,
        id: &str,
        what: &str,
        event: TaskEvent<'_>,
        details: Value,
    ) -> Result<Option<(Task, Vec<TaskEffect>)>, WorldError> {
        let done = self.queues.change(self.now, |lists| {
            let Some(task) = lists.find(id).cloned() else { return Ok(None) };
            let applied = lists.apply(id, event.into(), self.now);
            Ok(applied.map(|(next, effects)| {
                let unchanged = next == task && effects.is_empty();
                (next, effects, unchanged)
            }))
        })?;
        Ok(done.map(|(task, effects, unchanged)| {
            if !unchanged {
                self.audit(what, &task, details);
                self.close_questions(&task, what);
            }
            (task, effects)
        }))
    }

    /// Closes the escalations of a task that was decided elsewhere.
    fn close_questions(&self, task: &Task, what: &str) {
        if !matches!(what, "abandoned" | "resolved" | "released") {
            return;
        }
        let lists = self.queues.peek();
        // Escalations that cannot be read, or whose tasks cannot, stay open, which is harmless.
        let (Ok(asked), true) = (self.escalations.all(), lists.unreadable.is_empty()) else {
            return;
        };
        // A question about all tasks with the same cause stays open as long as one of the tasks waits for it.
        let is_shared = |it: &Escalation| {
            let mut triggers = self.policy.escalation.triggers.iter();
            it.task_id.is_empty() && triggers.any(|of| of.for_each_cause && of.id == it.trigger)
        };
        let over = |it: &Escalation| {
            it.task_id == task.id
                || (is_shared(it) && lists.tasks.iter().all(|task| task.waits_for != it.id))
        };
        for it in asked.iter().filter(|it| it.closed.is_none() && over(it)) {
            let closed = state::escalation::EscalationEvent::Closed {
                approved: what != "abandoned",
                decision: format!("the task was {what}"),
                by: self.user(),
            };
            // An escalation that cannot be closed stays open, which is harmless.
            let _refused = self.escalations.step(&it.id, closed, self.now);
        }
    }

    /// Records new hints about a task. `None` if the task does not exist.
    pub fn learn(&self, id: &str, hinted: &Task) -> Result<Option<Task>, WorldError> {
        self.queues.change(self.now, |lists| {
            let change = TaskChange::learned(&masked_task(hinted));
            Ok(lists.apply(id, change, self.now).map(|(task, _)| task))
        })
    }

    /// Appends a line about a task to the audit log.
    pub fn audit(&self, what: &str, task: &Task, details: Value) {
        self.queues.audit(&[self.entry(what, task, details)]);
    }

    /// A line of the audit.
    pub(super) fn entry(&self, what: &str, task: &Task, details: Value) -> Value {
        let mut entry = json!({
            "timestamp": self.now.to_string(), "what": what, "task_id": task.id,
            "place": task.place.as_str(), "attempts": task.failed_attempts(), "by": self.user(),
        });
        if let (Value::Object(entry), Value::Object(details)) = (&mut entry, details) {
            entry.extend(details);
        }
        entry
    }
}

/// The other tasks, as the rules see them.
pub(super) fn around(lists: &Lists) -> QueueContext {
    QueueContext::new(&lists.tasks, lists.done())
}

/// Says that a human could not be asked.
pub(super) fn not_asked(task: &Task, error: &WorldError) -> String {
    format!("`{}` needs a human, who could not be asked: {error}; the next review asks", task.id)
}

/// Returns a report with secrets masked in the texts of users and agents.
fn masked(report: &FailureReport) -> FailureReport {
    let plain = |text: &str| mask(text).0.into_owned();
    let (attempt, at_once) = (&report.attempt, report.at_once);
    let attempt = Attempt {
        approach: plain(&attempt.approach),
        error: plain(&attempt.error),
        ..attempt.clone()
    };
    FailureReport { task: masked_task(&report.task), attempt, at_once }
}

fn masked_task(task: &Task) -> Task {
    let plain = |text: &str| mask(text).0.into_owned();
    let mut masked = task.clone();
    masked.title = plain(&task.title);
    masked.description = plain(&task.description);
    masked.hints.new_approach = plain(&task.hints.new_approach);
    masked.hints.simpler_scope = plain(&task.hints.simpler_scope);
    masked
}
