//! Evaluates the rules of `dead_letter.yaml` and the triggers of `escalation.yaml` for one failed
//! task. Tasks, settings and the time are arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regex::Regex;
use sha2::{Digest, Sha256};

use policyd_fact_table::queue_facts::QueueSnapshot;
use policyd_fact_table::record::{FactRecord, RecordValue};
use policyd_fact_table::watch::CoverageWatch;
use policyd_fact_table::{FactEvaluator, template};
use policyd_policy::resilience::{
    DeadLetter, Enter, EscalationPolicy, Review, ReviewAction, Trigger,
};
use policyd_policy::{Expression, records};
use policyd_state as state;
use policyd_state::dead_letter::{Attempt, ReviewDecision, Task, TaskQueue};
use policyd_yaml::checksum::hex;
use policyd_yaml::time::Timestamp;

/// The other tasks of the queues.
#[derive(Debug, Clone, Default)]
pub struct QueueContext {
    /// Queue of every known task.
    places: BTreeMap<String, TaskQueue>,
    /// Dead letters by the fingerprint of their last error.
    causes: BTreeMap<String, BTreeSet<String>>,
    /// Tasks that left the queues because they were done.
    done: BTreeSet<String>,
}

impl QueueContext {
    /// Indexes all tasks of the queues. `done`: ids of tasks that left the queues because they were done.
    pub fn new<'t>(
        tasks: impl IntoIterator<Item = &'t Task>,
        done: impl IntoIterator<Item = &'t String>,
    ) -> Self {
        let mut around = Self { done: done.into_iter().cloned().collect(), ..Self::default() };
        for task in tasks {
            around.places.insert(task.id.clone(), task.place);
            if let Some(cause) = cause(task).filter(|_| task.place == TaskQueue::DeadLetter) {
                around.causes.entry(cause).or_default().insert(task.id.clone());
            }
        }
        around
    }

    /// Counts dead letters that ended with the error of this task, itself included.
    fn sharing(&self, task: &Task) -> usize {
        let Some(cause) = cause(task) else { return 0 };
        let others =
            self.causes.get(&cause).map(|tasks| tasks.iter().filter(|it| **it != task.id).count());
        others.unwrap_or(0).saturating_add(1)
    }

    /// Returns whether every dependency is done. One that no queue knows is not.
    fn has_dependencies(&self, task: &Task) -> bool {
        let blocked = task.strategy == "dependency_blocked";
        let done = |it: &String| self.done.contains(it) && !self.places.contains_key(it);
        blocked && !task.dependencies.is_empty() && task.dependencies.iter().all(done)
    }

    /// Returns the dependencies that are in no queue and not known to be done: a misspelled id, or work outside.
    pub fn unknown_dependencies<'t>(&self, task: &'t Task) -> Vec<&'t str> {
        let known = |it: &&String| self.done.contains(*it) || self.places.contains_key(*it);
        task.dependencies.iter().filter(|it| !known(it)).map(String::as_str).collect()
    }

    /// Returns whether a dependency was abandoned.
    fn lost_dependency(&self, task: &Task) -> bool {
        task.dependencies.iter().any(|it| self.places.get(it) == Some(&TaskQueue::Abandoned))
    }
}

/// Returns a fingerprint of an error that ignores paths, times and addresses: 16 hexadecimal
/// digits.
#[must_use]
pub fn fingerprint(error: &str) -> String {
    thread_local! {
        static VARYING: Option<Regex> = Regex::new(
            r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b\d[\d:.,TZ/+-]*(ns|us|ms|s|m|h|kb|mb|gb)?\b|/[^\s:]+/",
        )
        .ok();
    }
    let plain = VARYING.with(|patterns| match patterns {
        Some(regex) => regex.replace_all(error, "#").into_owned(),
        None => error.to_owned(),
    });
    let words: Vec<&str> = plain.split_whitespace().collect();
    let digest = Sha256::digest(words.join(" ").to_lowercase());
    digest.get(..8).map(hex).unwrap_or_default()
}

/// Returns the last attempt that counts and has an error.
#[must_use]
pub fn last_failure(task: &Task) -> Option<&Attempt> {
    task.attempts.iter().rev().find(|it| it.counts && !it.error.is_empty())
}

/// Returns the fingerprint of the last error of a task.
#[must_use]
pub fn cause(task: &Task) -> Option<String> {
    last_failure(task).map(|it| fingerprint(&it.error))
}

/// Returns a task as a record for rules. `permanent`: whether the class of its last error excludes
/// success of a further attempt.
#[must_use]
pub fn record(task: &Task, around: &QueueContext, permanent: bool, now: Timestamp) -> FactRecord {
    let last = last_failure(task);
    let error = last.map(|it| it.error.as_str()).unwrap_or_default();
    let counted: Vec<_> = task.counted().collect();
    let mut by_error: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for attempt in counted.iter().filter(|it| !it.error.is_empty()) {
        by_error.entry(fingerprint(&attempt.error)).or_default().insert(&attempt.approach);
    }
    let own = fingerprint(error);
    let is_own = |it: &&&Attempt| !error.is_empty() && fingerprint(&it.error) == own;
    let same = counted.iter().filter(is_own).count();
    let approaches: BTreeSet<&str> = counted.iter().map(|it| it.approach.as_str()).collect();
    let text = [&task.title, &task.description, &task.summary, error].join("\n");
    let has = |mark: &str| task.hints.marks.contains(mark);
    let mut record = FactRecord::new(records::shape(&records::TASK));
    let texts = [
        ("id", task.id.as_str()),
        ("title", &task.title),
        ("description", &task.description),
        ("text", &text),
        ("priority", &task.priority),
        ("queue", task.original_queue.as_str()),
        ("strategy", &task.strategy),
        ("error", error),
        ("error_type", last.map(|it| it.error_type.as_str()).unwrap_or_default()),
        ("new_approach", &task.hints.new_approach),
        ("simpler_scope", &task.hints.simpler_scope),
        ("fix_commit", &task.hints.fix_commit),
    ];
    texts.into_iter().for_each(|(name, value)| record.set(name, value));
    let numbers = [
        ("attempts", task.failed_attempts()),
        ("failures", usize::try_from(task.failures).unwrap_or(usize::MAX)),
        ("approaches", approaches.len()),
        ("errors", by_error.len()),
        ("same_error_approaches", by_error.values().map(BTreeSet::len).max().unwrap_or(0)),
        ("same_error_times", same),
        ("same_cause", around.sharing(task)),
        ("redrives", usize::try_from(task.redrives).unwrap_or(usize::MAX)),
        ("age_hours", hours(task.first_failure, now)),
        ("idle_hours", hours(task.last_failure, now)),
    ];
    numbers.into_iter().for_each(|(name, value)| record.set(name, number(value)));
    let flags = [
        ("permanent", permanent || has("permanent")),
        ("dependency_available", has("dependency_available") || around.has_dependencies(task)),
        ("dependency_never", has("dependency_never") || around.lost_dependency(task)),
        ("escalated", !task.waits_for.is_empty()),
    ];
    flags.into_iter().for_each(|(name, value)| record.set(name, value));
    let marks = ["scope_obsolete", "human_abandoned", "human_approved", "security", "data_loss"];
    let marks = marks.into_iter().chain(["irreversible", "external", "ambiguous"]);
    marks.for_each(|name| record.set(name, has(name)));
    record.set("dependencies", task.dependencies.clone());
    let unknown: Vec<String> =
        around.unknown_dependencies(task).into_iter().map(str::to_owned).collect();
    record.set("unknown_dependencies", unknown);
    record.set("confidence", task.confidence.unwrap_or(1.0));
    record
}

fn hours(since: Option<Timestamp>, now: Timestamp) -> usize {
    let hours = since.map_or(0, |it| now.since(it).as_secs() / 3600);
    usize::try_from(hours).unwrap_or(usize::MAX)
}

fn number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Result of the review rules. A condition that cannot be evaluated counts as false and is
/// reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewRule {
    /// Id of the matching rule. Empty if none matches.
    pub rule: String,
    /// Index of the matching trigger.
    pub trigger: Option<usize>,
    /// Conditions that could not be evaluated, with the errors.
    pub problems: Vec<String>,
}

/// Returns the index of the first trigger that matches.
fn triggered(
    triggers: &[Trigger],
    evaluator: &mut FactEvaluator,
    problems: &mut Vec<String>,
) -> Option<usize> {
    triggers.iter().position(|it| holds(evaluator, &it.id, &it.when, problems))
}

fn holds(
    evaluator: &mut FactEvaluator,
    id: &str,
    condition: &Expression,
    problems: &mut Vec<String>,
) -> bool {
    evaluator.eval_bool(condition).unwrap_or_else(|error| {
        problems.push(format!("`{id}` could not be judged: {error}"));
        false
    })
}

/// Returns the rule by which a failed task enters the dead-letter queue, and the errors of
/// conditions.
#[must_use]
pub fn enters<'r>(
    rules: &'r DeadLetter,
    record: FactRecord,
    watch: CoverageWatch<'_>,
) -> (Option<&'r Enter>, Vec<String>) {
    let mut evaluator = FactEvaluator::about(record).watched_by(watch);
    let mut problems = Vec::new();
    let mut all = rules.enter.iter();
    let rule = all.find(|it| holds(&mut evaluator, &it.id, &it.when, &mut problems));
    (rule, problems)
}

/// Returns the rule by which a review decides about a task.
#[must_use]
pub fn review<'r>(
    rules: &'r DeadLetter,
    escalation: &EscalationPolicy,
    mut record: FactRecord,
    watch: CoverageWatch<'_>,
) -> (Option<&'r Review>, ReviewRule) {
    let mut ruling = ReviewRule::default();
    let mut evaluator = FactEvaluator::about(record.clone()).watched_by(watch);
    ruling.trigger = triggered(&escalation.triggers, &mut evaluator, &mut ruling.problems);
    let trigger = ruling.trigger.and_then(|at| escalation.triggers.get(at));
    record.set("trigger", trigger.map(|it| it.id.as_str()).unwrap_or_default());
    let mut evaluator = FactEvaluator::about(record).watched_by(watch);
    let rule =
        rules.in_order().find(|it| holds(&mut evaluator, &it.id, &it.when, &mut ruling.problems));
    rule.iter().for_each(|it| it.id.clone_into(&mut ruling.rule));
    (rule, ruling)
}

/// Converts a rule to a decision. `id` is the id of the document if the rule escalates, and the id
/// of the part if it splits.
#[must_use]
pub fn decision<'r>(rule: &'r Review, id: &'r str) -> ReviewDecision<'r> {
    let strategy = rule.strategy.as_str();
    match rule.action {
        ReviewAction::Wait => ReviewDecision::Wait,
        ReviewAction::Retry => ReviewDecision::Retry { fresh: rule.fresh, strategy },
        ReviewAction::Split => ReviewDecision::Split { id },
        ReviewAction::Escalate => ReviewDecision::Escalate { strategy, id },
        ReviewAction::Abandon => ReviewDecision::Abandon { reason: &rule.reason },
    }
}

/// Returns whether the queue must be reviewed: never reviewed, or longer ago than `every`.
#[must_use]
pub fn review_due(last: Option<Timestamp>, every: Duration, now: Timestamp) -> bool {
    // A review in the future was written before the clock went back.
    last.is_none_or(|last| now.since(last) > every || last.since(now) > every)
}

/// Returns the queue as a record for alarms.
#[must_use]
pub fn queue_record(
    tasks: &[&Task],
    last_reviewed: Option<Timestamp>,
    now: Timestamp,
) -> FactRecord {
    let dead: Vec<&&Task> = tasks.iter().filter(|it| it.place == TaskQueue::DeadLetter).collect();
    let mut causes: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for task in &dead {
        if let Some(cause) = cause(task) {
            let text = last_failure(task).map(|it| it.error.as_str()).unwrap_or_default();
            causes.entry(cause).or_insert((0, text)).0 += 1;
        }
    }
    let commonest = causes.values().max_by_key(|(count, _)| *count).copied().unwrap_or_default();
    let oldest = dead.iter().filter_map(|it| it.first_failure).min();
    let waiting = dead.iter().filter(|it| !it.waits_for.is_empty()).count();
    FactRecord::new(records::shape(&records::QUEUE))
        .with("depth", number(dead.len()))
        .with("oldest_hours", number(hours(oldest, now)))
        .with("same_cause", number(commonest.0))
        .with("cause", commonest.1.lines().next().unwrap_or_default())
        .with("awaiting_human", number(waiting))
        .with("unreviewed_hours", number(hours(last_reviewed, now)))
}

/// Returns the alarms that fire, each with its text.
#[must_use]
pub fn alarms(
    rules: &DeadLetter,
    record: FactRecord,
    watch: CoverageWatch<'_>,
) -> Vec<(String, String)> {
    let mut evaluator = FactEvaluator::about(record).watched_by(watch);
    let mut problems = Vec::new();
    let mut said = Vec::new();
    for alarm in &rules.alarms {
        if holds(&mut evaluator, &alarm.id, &alarm.when, &mut problems) {
            said.push((alarm.id.clone(), template::render(&alarm.text.text, &mut evaluator)));
        }
    }
    said
}

/// Returns the waiting work of a project as a record for expressions.
#[must_use]
pub fn waiting(
    rules: &DeadLetter,
    tasks: &[&Task],
    last_reviewed: Option<Timestamp>,
    escalations: &[state::escalation::Escalation],
    now: Timestamp,
) -> QueueSnapshot {
    let record = queue_record(tasks, last_reviewed, now);
    let count = |name: &str| match record.get(name) {
        Some(RecordValue::Int(value)) => usize::try_from(*value).unwrap_or(0),
        _ => 0,
    };
    let open = escalations.iter().filter(|it| it.closed.is_none());
    QueueSnapshot {
        depth: count("depth"),
        oldest_hours: count("oldest_hours"),
        same_cause: count("same_cause"),
        awaiting_human: count("awaiting_human"),
        open: open.clone().map(|it| it.title.clone()).collect(),
        blocking: open.filter(|it| it.blocking).map(|it| it.title.clone()).collect(),
        alarms: alarms(rules, record, None).into_iter().map(|(id, _)| id).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_the_same_whatever_its_places_and_times() {
        let one = "thread 'main' panicked at /home/a/src/lib.rs:10:5 after 12.5s: 0x7ffe";
        let other = "thread 'main' panicked at /home/b/c/src/lib.rs:99:1 after 3s:  0x00a1";
        assert_eq!(fingerprint(one), fingerprint(other));
        assert_ne!(fingerprint("E0308 mismatched types"), fingerprint("E0277 trait bound"));
        assert_ne!(fingerprint("E1"), fingerprint("E2"));
    }

    #[test]
    fn a_review_is_due_after_more_than_its_time() {
        let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
        let last = Timestamp::from_millis(1_000_000_000_000);
        assert!(!review_due(Some(last), day, last.plus(day)));
        assert!(review_due(Some(last), day, last.plus(day).plus(Duration::from_millis(1))));
        assert!(review_due(None, day, last));
        assert!(
            review_due(Some(last.plus(day * 3)), day, last),
            "written by a clock that went back"
        );
        assert!(!review_due(Some(last.plus(hour)), day, last));
    }
}
