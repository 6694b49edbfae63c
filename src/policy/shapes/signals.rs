//! What `signals.yaml` may hold: kinds of signals, when one is created, what a drift leads to.

use super::CHOICES;
use super::resilience::{DESCRIPTION, ENABLED, ID, OVERRIDE, SEVERITIES, TEXTS, WHEN};
use crate::source::shape::{Field, Kind, field, required};

/// How a signal is kept: a file that need only be there, a file that holds JSON, a log of lines.
pub const FORMS: &[&str] = &["presence", "json", "log"];

/// What a field of a signal may hold.
pub const TYPES: &[&str] = &["text", "number", "flag", "list", "time", "severity"];

/// What becomes of a signal that nobody answered in time.
pub const TIMEOUT_ACTIONS: &[&str] = &["dead_letter", "alert", "discard"];

/// What a signal does to a loop that looks at it between two turns.
pub const INTERRUPTS: &[&str] = &["stop", "pause", "input"];

const FIELD: &[Field] = &[
    field("type", Kind::Choice(TYPES), "What it holds; `text` by default."),
    field("required", Kind::Bool, "Whether `policyd signal emit` wants it."),
    DESCRIPTION,
];

const SIGNAL: &[Field] = &[
    required("id", Kind::Text, "Its name, or a glob over names: `FEATURE_READY_*`."),
    field("form", Kind::Choice(FORMS), "How it is kept; `json` by default."),
    field("purpose", Kind::Text, "What it says, in one sentence."),
    field("created_by", Kind::Text, "Who creates it."),
    field("consumed_by", Kind::Text, "Who acts on it."),
    field("fields", Kind::Map(&Kind::Record(FIELD)), "What it says beside its name."),
    field("answer_within", Kind::Duration, "Time after which it counts as not answered."),
    field(
        "on_timeout",
        Kind::List(&Kind::Choice(TIMEOUT_ACTIONS)),
        "What becomes of it then: its task goes to the dead letters, a human is told.",
    ),
    field("expires", Kind::Duration, "Time after which one that nobody consumed is void."),
    field("approves", Kind::Text, "The signal that this one is a human's yes to."),
    field("ends_drift", Kind::Bool, "Whether drifts are counted anew once it was consumed."),
    field("interrupts", Kind::Choice(INTERRUPTS), "What it does to a loop between two turns."),
    field("shown", Kind::Bool, "Whether the agent is told of it while it is pending."),
    field("text", CHOICES, "What the agent is told."),
    ENABLED,
    OVERRIDE,
];

const TRIGGER: &[Field] = &[
    ID,
    WHEN,
    field("emit", Kind::Text, "The signal that is created."),
    field("reason", Kind::Template, "Why, in one sentence."),
    field("severity", Kind::Choice(SEVERITIES), "How much it matters; `high` by default."),
    DESCRIPTION,
    ENABLED,
    OVERRIDE,
];

const DRIFT: &[Field] = &[
    ID,
    WHEN,
    field("do", Kind::Text, "Its name for programs: `warn_and_continue`."),
    field("message", Kind::Template, "What the agent is told."),
    field("emit", TEXTS, "Signals that are created, unless one is pending."),
    field("pause_task", Kind::Bool, "Whether the task stands still."),
    field("escalate", Kind::Bool, "Whether the task is looked at by whoever gave it."),
    field("reviewer", Kind::Text, "Who looks at it, else nobody."),
    DESCRIPTION,
    ENABLED,
    OVERRIDE,
];

const ALWAYS: &[Field] =
    &[ID, required("text", CHOICES, "What the agent is told to do."), ENABLED, OVERRIDE];

/// `signals.yaml`: what processes tell each other through files.
pub const SIGNALS: &[Field] = &[
    field("signals", Kind::List(&Kind::Record(SIGNAL)), "The signals there are."),
    field("triggers", Kind::List(&Kind::Record(TRIGGER)), "When one is created; any that holds."),
    field(
        "drift",
        Kind::List(&Kind::Record(DRIFT)),
        "What a drift leads to; the first that holds.",
    ),
    field("drift_always", Kind::List(&Kind::Record(ALWAYS)), "What any drift leads to, in order."),
];
