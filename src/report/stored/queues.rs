//! Shapes of the lists of tasks, of what humans are asked, and of the logs beside them.

use super::COUNT;
use crate::source::shape::{Field, Kind, field, required};

const ESCALATION: &[Field] = &[
    required("id", Kind::Text, "Its id, and the name of its document."),
    required("status", Kind::Choice(&["open", "approved", "rejected"]), "Where it stands."),
    field("task_id", Kind::Text, "The task it is about, or empty."),
    field("title", Kind::Text, "Its title."),
    field("trigger", Kind::Text, "What asked for a human."),
    field("reason", Kind::Text, "Why."),
    field("severity", Kind::Text, "`low`, `medium`, `high` or `critical`."),
    field("blocking", Kind::Bool, "Whether its task stands still."),
    field("created", Kind::Date, "When it was opened."),
    field("answer_within_s", COUNT, "Seconds after which humans are told again."),
    field("told_at", Kind::Date, "When humans were last told."),
    field("times_told", COUNT, "How often they were told."),
    field("closed_at", Kind::Date, "When a human answered."),
    field("decision", Kind::Text, "What they decided."),
    field("by", Kind::Text, "Who."),
];

/// `escalations/index.json`
pub(super) const ESCALATIONS: &[Field] = &[required(
    "escalations",
    Kind::List(&Kind::Record(ESCALATION)),
    "What humans are asked, oldest first.",
)];

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
