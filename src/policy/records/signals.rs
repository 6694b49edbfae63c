//! What the rules of `signals.yaml` speak of: a run of an agent, a drift, one signal.

use std::sync::{Arc, LazyLock};

use super::fields::{decimal, flag, number, only, or_none, text};
use policyd_fact_table::record::RecordField;
use policyd_fact_table::types::{Names, Unit};

/// Severities of escalations and signals, ascending.
pub const SEVERITIES: &[&str] = &["low", "medium", "high", "critical"];

/// How an agent is doing, as triggers see it.
pub static RUN: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "run",
        vec![
            decimal("confidence", "How sure the agent is, 0 to 1; 1 where unsaid.")
                .of_unit(Unit::Share),
            flag("critical_decision", "Whether a decision is to be taken that matters."),
            flag("security", "Whether what is to be done is critical for security."),
            flag("irreversible", "Whether what is to be done cannot be undone."),
            flag("ambiguous", "Whether the request is unclear, which blocks the work."),
            number("consecutive_failures", "Failures in a row on the same task."),
            decimal("cost_usd_per_hour", "What it costs, in USD an hour."),
            number("iterations", "Turns since the context was last cleared."),
            number("history_bytes", "Length of the history in bytes."),
            number("same_error_count", "How often the same error came."),
            number("drift_count", "Drifts since the context was last cleared."),
            flag("context_heavy", "Whether the agent says that its context is heavy."),
            flag("confused", "Whether the agent goes round in circles."),
            flag(
                "supervised",
                "Whether `policyd run` drives it, which puts a task aside that fails too often.",
            ),
            text("task_id", "The task, else empty."),
        ],
    )
});

/// A reported drift, with the number of earlier ones.
pub static DRIFT: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "drift",
        vec![
            text("severity", "How much it matters, else empty.").of_values(&or_none(SEVERITIES)),
            text("task_id", "The task, else empty."),
            text("agent", "The agent, else empty."),
            text("planned_action", "What was meant to be done, else empty."),
            text("detected_drift", "What was done instead."),
            text("original_goal", "The goal of the task, else empty."),
            decimal("distance", "Steps off the track; 0 where unsaid."),
            number("in_task", "Drifts in this task since the context was cleared, this one too."),
            number("total", "Drifts of all tasks since then, this one too."),
        ],
    )
});

/// What every signal has; a kind adds its own fields.
const COMMON: [(&str, &str); 6] = [
    (
        "id",
        "Id of the signal, unique within the project; `policyd signal show ID` prints the signal.",
    ),
    ("name", "Name of the signal, such as `HUMAN_REVIEW_NEEDED`."),
    ("part", "The part of the name that matches the `*` of its type, else empty."),
    ("sender", "Who sent it, else empty."),
    ("request", "Id of the request that it answers, else empty."),
    ("note", "What is odd about its file, else empty."),
];

/// Returns the fields that every signal has.
pub(crate) fn common() -> Vec<RecordField> {
    let texts = COMMON.iter().map(|(name, doc)| text(name, doc));
    texts.chain([number("age_hours", "Hours since it was created.")]).collect()
}

/// Whether every signal has a field of this name, so that no kind may have one of its own.
#[must_use]
pub fn is_common(name: &str) -> bool {
    COMMON.iter().any(|(it, _)| *it == name)
        || ["age_hours", "timestamp", "signal", "expires"].contains(&name)
}
