//! What the files of the resilience systems may hold: settings at the top, lists of rules below.

use crate::source::shape::{Field, Kind, field, required};

pub(super) const TEXTS: Kind = Kind::List(&Kind::Text);
const COUNT: Kind = Kind::Int { min: 1, max: 1_000_000 };

/// What may become of a task that failed again and again (seed 003; `dependency_resolved` is used
/// there and missing in its own list).
pub const STRATEGIES: &[&str] = &[
    "retry_with_simpler_approach",
    "dependency_blocked",
    "dependency_resolved",
    "requires_human_review",
    "permanent_abandon",
];

/// How much something matters (seed 003).
pub const SEVERITIES: &[&str] = &["low", "medium", "high", "critical"];

/// How urgent a task is (seed 003).
pub const PRIORITIES: &[&str] = &["high", "medium", "low"];

/// The groups of review rules, in the order in which they are judged by default.
pub const REVIEW_GROUPS: &[&str] = &["human", "wait", "retry", "escalate", "abandon"];

/// What a review may do with a task.
pub const REVIEW_ACTIONS: &[&str] = &["wait", "retry", "split", "escalate", "abandon"];

pub(super) use super::{DESCRIPTION, ENABLED, ID, OVERRIDE, WHEN};

const ENTER: &[Field] = &[
    ID,
    WHEN,
    field("strategy", Kind::Choice(STRATEGIES), "What is to be tried next."),
    DESCRIPTION,
    ENABLED,
    OVERRIDE,
];

const REVIEW: &[Field] = &[
    ID,
    WHEN,
    field("do", Kind::Choice(REVIEW_ACTIONS), "What becomes of the task."),
    field("group", Kind::Choice(REVIEW_GROUPS), "Its place in `order`; what it does by default."),
    field("strategy", Kind::Choice(STRATEGIES), "The strategy that is written down."),
    field("reason", Kind::Text, "Why, in one word; its id by default."),
    field("fresh", Kind::Bool, "A retry counts failures from 0 again, and names the new approach."),
    DESCRIPTION,
    ENABLED,
    OVERRIDE,
];

const ALARM: &[Field] = &[
    ID,
    WHEN,
    field("text", Kind::Template, "What is said where it holds."),
    DESCRIPTION,
    ENABLED,
    OVERRIDE,
];

const RETENTION: &[Field] = &[
    field("max_age", Kind::Duration, "Abandoned tasks are kept for that long."),
    field("max_count", COUNT, "Abandoned tasks kept at most, the newest."),
];

const REDRIVE: &[Field] = &[
    field("rate", COUNT, "Tasks put back within `per`, at most."),
    field("per", Kind::Duration, "The time that `rate` counts in."),
    field("max_times", COUNT, "How often one task is put back before a human must look at it."),
];

/// `dead_letter.yaml`: what fails again and again.
pub const DEAD_LETTER: &[Field] = &[
    field("review_every", Kind::Duration, "Time after which the queue is due for review."),
    field("simplify_after", COUNT, "Failed attempts after which a simpler approach is asked for."),
    field(
        "order",
        Kind::List(&Kind::Choice(REVIEW_GROUPS)),
        "Which review rules are judged first.",
    ),
    field("retention", Kind::Record(RETENTION), "How long abandoned tasks are kept."),
    field("redrive", Kind::Record(REDRIVE), "How fast tasks are put back to work."),
    field("enter", Kind::List(&Kind::Record(ENTER)), "When a failing task enters; any that holds."),
    field("review", Kind::List(&Kind::Record(REVIEW)), "What becomes of it; the first that holds."),
    field("alarms", Kind::List(&Kind::Record(ALARM)), "When the queue itself needs a human."),
];

const NOTED_TASK: &[Field] = &[
    required("id", Kind::Template, "Id of the task that an attempt is counted against."),
    field("title", Kind::Template, "Its title."),
    field("approach", Kind::Template, "What was tried."),
];

const ASKED: &[Field] = &[
    required("reason", Kind::Template, "Why a human is needed."),
    field("severity", Kind::Choice(SEVERITIES), "How much it matters; `high` by default."),
    field("options", TEXTS, "What a human may decide, each with what it costs."),
];

const EMITTED: &[Field] = &[
    required("name", Kind::Text, "A signal of signals.yaml."),
    field("fields", Kind::Map(&Kind::Template), "What it says."),
];

/// An entry of `reactions.yaml`.
pub const REACTION: &[Field] = &[
    ID,
    field("on", Kind::List(&Kind::Choice(crate::policy::records::REACTING_NAMES)), "Its events."),
    field("when", Kind::Expression, "Holds where it applies; always, where absent."),
    field("breaker", Kind::Template, "The circuit breaker that is told what became of a call."),
    field("result", Kind::Choice(&["failure", "success"]), "What became of it."),
    field("task", Kind::Record(NOTED_TASK), "The failure is an attempt at this task."),
    field("signal", Kind::Record(EMITTED), "The signal that is created."),
    field("ask_human", Kind::Record(ASKED), "A human is asked, once for each reason."),
    field(
        "say",
        Kind::Template,
        "What the agent is told, where the event takes it; else the user.",
    ),
    DESCRIPTION,
    ENABLED,
    OVERRIDE,
];

const TRIGGER: &[Field] = &[
    ID,
    WHEN,
    field("severity", Kind::Choice(SEVERITIES), "How much it matters; `high` by default."),
    field("blocking", Kind::Bool, "Whether the task stands still until a human answered."),
    field(
        "for_each",
        Kind::Choice(&["task", "cause"]),
        "Whether each task is a question of its own, or all that failed alike are one.",
    ),
    field(
        "answer_within",
        Kind::Duration,
        "Time after which the alert is repeated; never, by default.",
    ),
    field("reason", Kind::Text, "Why a human is needed, in one sentence."),
    field("options", TEXTS, "What a human may decide, each with what it costs."),
    ENABLED,
    DESCRIPTION,
    OVERRIDE,
];

const CHANNEL: &[Field] = &[
    ID,
    ENABLED,
    field("command", TEXTS, "Program and arguments that get the document on standard input."),
    field("folder", Kind::Text, "Folder that gets a copy of each alert as JSON, for a webhook."),
    field("timeout", Kind::Duration, "Time the program may take; 5 s by default."),
    field("breaker", Kind::Text, "Name of its circuit breaker; `alert/<id>` by default."),
    DESCRIPTION,
    OVERRIDE,
];

/// `escalation.yaml`: when a human is needed, and how they are told.
pub const ESCALATION: &[Field] = &[
    field(
        "triggers",
        Kind::List(&Kind::Record(TRIGGER)),
        "When a human is needed; the first that holds.",
    ),
    field("channels", Kind::List(&Kind::Record(CHANNEL)), "How humans are told."),
];
