//! Escalation of a task, and its document from the texts of `messages.yaml`.

use std::rc::Rc;

use policyd_fact_table::FactEvaluator;
use policyd_fact_table::record::FactRecord;
use policyd_fact_table::watch::CoverageRecorder;
use policyd_policy::resilience::Trigger;
use policyd_policy::{Policy, records};
use policyd_state::dead_letter::{Attempt, Task};
use policyd_state::escalation::Escalation;

use super::dead_letter::{cause, fingerprint};
use super::message;

/// Title of an escalation about all tasks with the same error.
const SEVERAL: &str = "Several tasks fail with the same error";

/// Builds the escalation of a task by a trigger, or of all tasks with the same error. Opening it
/// sets its id and its time.
#[must_use]
pub fn of_task(task: &Task, trigger: &Trigger) -> Escalation {
    let own = if task.title.is_empty() { &task.id } else { &task.title };
    let shared = cause(task).filter(|_| trigger.for_each_cause);
    let title = shared.as_ref().map_or_else(|| own.clone(), |it| format!("{SEVERAL} (cause {it})"));
    Escalation {
        task_id: if shared.is_some() { String::new() } else { task.id.clone() },
        title,
        trigger: trigger.id.clone(),
        reason: trigger.reason.clone(),
        severity: trigger.severity.clone(),
        blocking: trigger.blocking,
        answer_within: trigger.answer_within,
        ..Escalation::default()
    }
}

/// Details for the document of an escalation.
#[derive(Debug, Clone, Copy, Default)]
pub struct EscalationDetails<'a> {
    /// The task, if the escalation is about one.
    pub task: Option<&'a Task>,
    /// Description of the failure, without a task.
    pub summary: &'a str,
    /// Analysis of the attempts. Empty: derived from the attempts.
    pub analysis: &'a str,
    /// Decisions that the user can make.
    pub options: &'a [String],
    /// Records which text was chosen. Set only by `policyd test --coverage`.
    pub watch: Option<&'a Rc<CoverageRecorder>>,
}

/// Formats the document that asks the user for a decision, by the texts of `messages.yaml`.
#[must_use]
pub fn document(policy: &Policy, escalation: &Escalation, known: EscalationDetails<'_>) -> String {
    let attempts = known.task.map(|it| it.attempts.as_slice()).unwrap_or_default();
    let summary = known.task.map(|it| it.summary.as_str()).filter(|it| !it.is_empty());
    let analysis =
        if known.analysis.is_empty() { analysis(known.task) } else { known.analysis.to_owned() };
    let options = known.options.iter().zip(1..).map(|(it, number)| format!("{number}. {it}"));
    let failures = known.task.map_or(0, Task::failed_attempts);
    let mut record = FactRecord::new(records::shape(&records::DOCUMENT));
    let texts = [
        ("id", escalation.id.as_str()),
        ("title", &escalation.title),
        ("task_id", if escalation.task_id.is_empty() { "none" } else { &escalation.task_id }),
        ("trigger", &escalation.trigger),
        ("reason", &escalation.reason),
        ("severity", &escalation.severity),
        ("created", &escalation.created.to_string()),
        (
            "summary",
            summary.unwrap_or(if known.summary.is_empty() { "not said" } else { known.summary }),
        ),
        ("analysis", &analysis),
    ];
    texts.into_iter().for_each(|(name, value)| record.set(name, value));
    record.set("failures", i64::try_from(failures).unwrap_or(i64::MAX));
    record.set("blocking", escalation.blocking);
    record.set("attempts", or_none(attempts.iter().map(attempt_line).collect()));
    record.set("options", or_none(options.collect()));
    let mut evaluator = FactEvaluator::about(record).watched_by(known.watch);
    let text = message::text(policy, "escalation", &mut evaluator);
    if text.is_empty() {
        // A pack without the text still asks.
        return format!("## Escalation: {}\n\n{}\n", escalation.title, escalation.reason);
    }
    text
}

fn or_none(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { vec!["none".to_owned()] } else { lines }
}

fn attempt_line(attempt: &Attempt) -> String {
    let approach =
        if attempt.approach.is_empty() { "no approach named" } else { &attempt.approach };
    let mut line = format!("{}. {} {approach}", attempt.number, attempt.at);
    if !attempt.error_type.is_empty() || !attempt.error.is_empty() {
        let error = attempt.error.split_whitespace().collect::<Vec<_>>().join(" ");
        let error: String = error.chars().take(ATTEMPT_CHARS_MAX).collect();
        let said = [attempt.error_type.as_str(), &error];
        let said: Vec<&str> = said.into_iter().filter(|it| !it.is_empty()).collect();
        line.push_str(&format!(": {}", said.join(" ")));
    }
    if !attempt.agent.is_empty() {
        line.push_str(&format!(" ({})", attempt.agent));
    }
    line
}

/// Maximum characters of the error in one line of an attempt.
const ATTEMPT_CHARS_MAX: usize = 400;

/// Summarizes the attempts of a task. Some of them can be counted without a record.
fn analysis(task: Option<&Task>) -> String {
    let counted: Vec<&Attempt> = task.into_iter().flat_map(Task::counted).collect();
    let total = task.map_or(0, Task::failed_attempts);
    let different = |of: &dyn Fn(&Attempt) -> String| {
        counted.iter().map(|it| of(it)).collect::<std::collections::BTreeSet<_>>().len()
    };
    let (approaches, errors) =
        (different(&|it| it.approach.clone()), different(&|it| fingerprint(&it.error)));
    let Some(last) = counted.last() else {
        return match total {
            0 => "Nothing was tried yet.".to_owned(),
            _ => format!("Failed attempts: {total}; the task records none of them."),
        };
    };
    let recorded = match counted.len() {
        all if all == total => String::new(),
        some => format!(" (recorded: {some})"),
    };
    let same =
        counted.iter().filter(|it| fingerprint(&it.error) == fingerprint(&last.error)).count();
    format!(
        "Failed attempts: {total}{recorded}; approaches: {approaches}; different errors: {errors}; \
         occurrences of the last error: {same}."
    )
}
