//! Shapes of the lists of tasks, of what humans are asked, and of the logs beside them.

use super::{COUNT, TEXTS};
use crate::source::shape::{Field, Kind, field, required};
use crate::state::dead_letter::MARKS;

const ATTEMPT: &[Field] = &[
    required("attempt_number", COUNT, "From 1."),
    field("timestamp", Kind::Date, "When."),
    field("approach", Kind::Text, "What was tried."),
    field(
        "error_type",
        Kind::Text,
        "`test_failure`, `timeout`, or another class of failures.yaml.",
    ),
    field("error_message", Kind::Text, "What it ended with."),
    field("agent_id", Kind::Text, "Who tried."),
    field("counts", Kind::Bool, "False where it says nothing about the task."),
    field("key", Kind::Text, "Names the report, so that it is taken in once."),
];

const TASK_DATA: &[Field] = &[
    field("title", Kind::Text, "Title."),
    field("description", Kind::Text, "Description."),
    field("dependencies", TEXTS, "Ids of the tasks it needs."),
    field("priority", Kind::Text, "`high`, `medium`, `low`, or empty."),
];

const HINTS: &[Field] = &[
    field("new_approach", Kind::Text, "What else could be tried."),
    field("simpler_scope", Kind::Text, "A smaller scope."),
    field("fix_commit", Kind::Text, "The commit that fixed what blocked it."),
    field("marks", Kind::List(&Kind::Choice(MARKS)), "What is the case."),
];

const TASK: &[Field] = &[
    required("task_id", Kind::Text, "Its id."),
    field("original_queue", Kind::Text, "`pending` or `in-progress`."),
    field("failure_count", COUNT, "Failures since the last fresh start."),
    field("first_failure", Kind::Date, "The first failure of all."),
    field("last_failure", Kind::Date, "The last one."),
    field("error_summary", Kind::Text, "What fails, in one line."),
    field("attempts", Kind::List(&Kind::Record(ATTEMPT)), "Attempts, oldest first."),
    field("recovery_strategy", Kind::Text, "What is to be done about it, or empty."),
    field("task_data", Kind::Record(TASK_DATA), "What it is."),
    field("status", Kind::Text, "`blocked` where it waits for a human."),
    field("waits_for", Kind::Text, "Id of what it waits for."),
    field("hints", Kind::Record(HINTS), "What was learned since it failed."),
    field("confidence", Kind::Number { min: 0.0, max: 1.0 }, "How sure the agent is."),
    field("redrives", COUNT, "How often it was put back to work."),
    field("redriven_at", Kind::Date, "When it was last put back."),
    field("parent", Kind::Text, "The task it is a part of."),
    field("children", TEXTS, "Smaller tasks made of it."),
    field("scope", Kind::Text, "What is left of its parent's scope."),
    field("fix_commit", Kind::Text, "The commit it was put back for."),
    field("reason", Kind::Text, "Why it was given up."),
    field("abandoned_at", Kind::Date, "When it was given up."),
    field("revision", COUNT, "Changes so far: of two copies the one with more is the newer."),
];

const METADATA: &[Field] = &[
    field("last_reviewed", Kind::Date, "When the dead letters were last reviewed."),
    field(
        "review_from",
        Kind::Text,
        "The dead letter that a review goes on with, if it did not reach the last one.",
    ),
    field("total_abandoned", COUNT, "Dead letters given up, ever."),
    field("total_recovered", COUNT, "Dead letters that came back to life, ever."),
];

/// `queue/{pending,in-progress,dead-letter,abandoned}.json`
pub(super) const TASKS: &[Field] = &[
    required("tasks", Kind::List(&Kind::Record(TASK)), "The tasks."),
    field("metadata", Kind::Record(METADATA), "Totals; of the dead letters only."),
];

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
