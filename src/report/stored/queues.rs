//! Shapes of the lists of tasks, of what humans are asked, and of the logs beside them.

use super::COUNT;
use crate::source::shape::{Field, Kind, field, required};

/// A line of `logs/dead-letter.jsonl`
pub(super) const TASK_LOG: &[Field] = &[
    required("timestamp", Kind::Date, "When."),
    required("what", Kind::Text, "What was done: `failed`, `entered`, `retry`, `abandon`, …"),
    required("task_id", Kind::Text, "The task."),
    field("place", Kind::Text, "The list it is on then."),
    field("attempts", COUNT, "Attempts that count."),
    field("by", Kind::Text, "Who."),
    field("rule", Kind::Text, "The rule that said so."),
    field("redrive", Kind::Bool, "Whether it was put back with others."),
    field("escalation", Kind::Text, "The escalation that was answered."),
    field("signal", Kind::Text, "The signal it waits for."),
    field("request", Kind::Text, "The request that was approved."),
    field("decision", Kind::Text, "What was decided."),
    field("approved", Kind::Bool, "Whether it may go on."),
];
