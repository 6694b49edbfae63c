//! The records that rules of the resilience files speak of: their fields, with types and meaning.
//! The loader types rules by these, lint reasons about them, `policyd facts` lists them.

pub mod context;
pub(crate) mod fields;
pub mod run;
pub mod signals;

use std::sync::{Arc, LazyLock};

use fields::{flag, number, only, or_none, text};
use policyd_fact_table::events::{self, FactEvents};
use policyd_fact_table::record::{RecordField, Shape};
use policyd_fact_table::types::{Names, PackName, Type, Unit};
use policyd_facts::event::{EventKind, names as event_names};
pub use signals::SEVERITIES;

/// Strategies of the next attempt of a task: those of amplihack, and `dependency_resolved`, which its rules use
/// although its own list lacks it.
pub const STRATEGIES: &[&str] = &[
    "retry_with_simpler_approach",
    "dependency_blocked",
    "dependency_resolved",
    "requires_human_review",
    "permanent_abandon",
];

/// Priorities of tasks, descending.
pub const PRIORITIES: &[&str] = &["high", "medium", "low"];

/// Where expressions use a record: file, sections (empty: all), and the names of its fields.
type RecordUse = (&'static str, &'static [&'static str], &'static LazyLock<Arc<Names>>);

/// Every such place; the first that fits decides.
pub static PLACES: &[RecordUse] = &[
    ("dead_letter.yaml", &["alarms"], &QUEUE),
    ("dead_letter.yaml", &[], &TASK),
    ("escalation.yaml", &[], &TASK),
    ("reactions.yaml", &[], &EVENT),
    ("run.yaml", &[], &run::RUN),
    ("signals.yaml", &["triggers"], &signals::RUN),
    ("signals.yaml", &["drift", "drift_always"], &signals::DRIFT),
    ("context.yaml", &[], &context::CONTEXT),
    ("messages.yaml", &["escalation"], &DOCUMENT),
    (
        "messages.yaml",
        &["review_done", "humans_asked", "queue_alarms", "signals_pending"],
        &WAITING,
    ),
];

/// The names that expressions of a section see; nothing where its expressions see facts.
#[must_use]
pub fn names(file: &str, section: &str) -> Option<&'static Arc<Names>> {
    let fits = |(own, sections, _): &&RecordUse| {
        *own == file && (sections.is_empty() || sections.contains(&section))
    };
    PLACES.iter().find(fits).map(|(_, _, names)| &***names)
}

/// The shape behind names of [`names`].
#[must_use]
pub fn shape(names: &'static Names) -> &'static Shape {
    static NOTHING: Shape = Shape { name: String::new(), fields: Vec::new() };
    names.record.as_deref().unwrap_or(&NOTHING)
}

/// A task that failed, as review rules and escalation triggers see it.
pub static TASK: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "task",
        vec![
            text("id", "Id of the task."),
            text("title", "Its title."),
            text("description", "Its description."),
            text("text", "Title, description, summary and the last error, a line each."),
            text("priority", "How urgent it is, else empty.").of_values(&or_none(PRIORITIES)),
            text("queue", "The queue it came from."),
            text("strategy", "The recorded strategy, else empty.").of_values(&or_none(STRATEGIES)),
            number("attempts", "Failed attempts in total; no retry resets them."),
            number("failures", "Failures since the last fresh start."),
            number("approaches", "Different approaches tried."),
            number("errors", "Different errors met."),
            number("same_error_approaches", "Approaches that ended with one and the same error."),
            number("same_error_times", "Attempts that ended with the last error."),
            number(
                "same_cause",
                "Tasks in the queue that ended with the same error, this one too.",
            ),
            number("redrives", "How often it was put back to work."),
            number("age_hours", "Hours since the first failure."),
            number("idle_hours", "Hours since the last failure."),
            text("error", "What the last attempt ended with."),
            text("error_type", "Type of that error: `test_failure`, `timeout`, …, else empty.")
                .of_ids(PackName::ErrorType.as_kind()),
            flag(
                "permanent",
                "Whether trying again cannot help: wrong credentials, no such model.",
            ),
            RecordField::new("dependencies", Type::Texts, "Ids of the tasks it needs."),
            RecordField::new(
                "unknown_dependencies",
                Type::Texts,
                "Those of them that are in no queue and not known to be done.",
            ),
            flag("dependency_available", "Whether all it waits for is known to be done."),
            flag("dependency_never", "Whether something it waits for was given up."),
            text("new_approach", "An approach to be tried next, else empty."),
            text("simpler_scope", "A smaller scope that was defined, else empty."),
            text("fix_commit", "The commit that fixed what blocked it, else empty."),
            flag("scope_obsolete", "Whether the task is obsolete."),
            flag("human_abandoned", "Whether a human gave it up."),
            flag("human_approved", "Whether a human said that it may go on."),
            flag("escalated", "Whether a human was asked and has not answered."),
            flag("security", "Whether it was marked as touching security."),
            flag("data_loss", "Whether it was marked as a risk of losing data."),
            flag("irreversible", "Whether it was marked as something that cannot be undone."),
            flag("external", "Whether it is marked as needing external help: keys, credentials."),
            flag("ambiguous", "Whether it was marked as having more than one reading."),
            RecordField::new(
                "confidence",
                Type::Decimal,
                "How sure the agent is, 0 to 1; 1 where unsaid.",
            )
            .of_unit(Unit::Share),
            text("trigger", "The first escalation trigger that holds, else empty.")
                .of_ids(PackName::Trigger.as_kind()),
        ],
    )
});

/// The queue as a whole.
pub static QUEUE: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "queue",
        vec![
            number("depth", "Tasks in it."),
            number("oldest_hours", "Hours since the oldest of them first failed."),
            number("same_cause", "Tasks that share the commonest error."),
            text("cause", "That error."),
            number("awaiting_human", "Tasks that wait for a human."),
            number("unreviewed_hours", "Hours since the last review."),
        ],
    )
});

/// What an escalation document says.
pub static DOCUMENT: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "escalation",
        vec![
            text("id", "Its id, and the name of its file."),
            text("title", "Title of the task."),
            text("task_id", "Id of the task, else empty."),
            number("failures", "Failed attempts."),
            text("trigger", "Id of the trigger."),
            text("reason", "Why a human is needed."),
            text("severity", "How much it matters.").of_values(SEVERITIES),
            flag("blocking", "Whether the task stands still."),
            text("created", "When, in UTC."),
            text("summary", "What fails."),
            RecordField::new("attempts", Type::Texts, "One line for each attempt."),
            text("analysis", "What was tried, and why it failed."),
            RecordField::new("options", Type::Texts, "What may be decided, numbered."),
        ],
    )
});

/// The fields of an event, each with the events that have it.
static EVENT_FIELDS: LazyLock<Vec<(RecordField, &FactEvents)>> = LazyLock::new(|| {
    vec![
        (text("kind", "Neutral name of the event.").of_values(REACTING_NAMES), &events::EVERYWHERE),
        (text("session", "Id of the session."), &events::EVERYWHERE),
        (text("prompt_id", "Id of the prompt being worked on, else empty."), &events::EVERYWHERE),
        (text("agent", "Id of the subagent, else empty."), &events::EVERYWHERE),
        (
            text("source", "How a session began, else empty.")
                .of_ids(PackName::SessionSource.as_kind()),
            &events::SESSION_START,
        ),
        (text("prompt", "The prompt just sent, else empty."), &events::PROMPTS),
        (
            text("tool", "The tool that ran, else empty.").of_ids(PackName::Tool.as_kind()),
            &events::TOOL,
        ),
        (text("model", "The model that was called last, else empty."), &events::AT_ALL_STOPS),
        (
            text("tier", "The tier of routes.yaml that the model belongs to, else empty."),
            &events::AT_ALL_STOPS,
        ),
        (
            text("error", "The client's name of the error, or what the tool said; else empty.")
                .of_ids(PackName::ErrorName.as_kind()),
            &events::AT_FAILURES,
        ),
        (text("text", "All that is known of the failure, a line each."), &events::EVERYWHERE),
        (
            text("class", "The class of the failure, by failures.yaml; else empty.")
                .of_ids(PackName::FailureClass.as_kind()),
            &events::AT_FAILURES,
        ),
        (flag("failed", "Whether the event reports a failure."), &events::AT_FAILURES),
        (flag("interrupted", "Whether a human broke it off."), &events::AT_FAILURES),
        (
            flag("permanent", "Whether the same call fails again, whenever it is made."),
            &events::AT_FAILURES,
        ),
        (flag("human", "Whether a human must fix it."), &events::AT_FAILURES),
        (
            flag("counts", "Whether the failure says something about the task."),
            &events::AT_FAILURES,
        ),
    ]
});

/// An event of the client, as reactions see it.
pub static EVENT: LazyLock<Arc<Names>> =
    LazyLock::new(|| only("event", EVENT_FIELDS.iter().map(|it| it.0.clone()).collect()));

/// Returns the events that have a field of the record `event`.
#[must_use]
pub fn events_of_field(name: &str) -> Option<&'static FactEvents> {
    EVENT_FIELDS.iter().find(|it| it.0.name == name).map(|it| it.1)
}

/// Events that reactions can be for.
pub const REACTING: &[EventKind] = &[
    EventKind::SessionStart,
    EventKind::UserPromptSubmit,
    EventKind::PostToolUse,
    EventKind::PostToolUseFailure,
    EventKind::Stop,
    EventKind::SubagentStop,
    EventKind::StopFailure,
    EventKind::PreCompact,
    EventKind::SessionEnd,
];

/// Their neutral names.
pub const REACTING_NAMES: &[&str] = &event_names::<{ REACTING.len() }>(REACTING);

/// A waiting item, as texts about it use it.
pub static WAITING: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "waiting",
        vec![
            number("count", "How many there are."),
            RecordField::new("lines", Type::Texts, "One line each."),
        ],
    )
});
