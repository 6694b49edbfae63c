//! The names that an expression begins with. Each is one part of the context.

use policyd_expr::table::{COUNTS, Member};

use super::context::Part;
use super::events;
use super::row::{FactRow, Global};
use super::source::FactSource;
use super::types::{Evidence::Neutral, PackName, Subject, Type};

/// A global whose values are known before the first step.
const fn global(
    name: &'static str,
    result: Subject,
    source: FactSource,
    part: fn() -> Part,
    [doc, example]: [&'static str; 2],
) -> FactRow {
    let member = Member {
        owner: Type::Global,
        name,
        params: None,
        result: result.as_type(),
        evidence: Neutral,
        doc,
        example,
        values: &[],
        is_day: false,
        range: COUNTS,
        unit: None,
        ids: None,
    };
    let global = Some(Global { part, changes: false });
    FactRow {
        member,
        run: None,
        source: Some(source),
        effects: None,
        events: None,
        invariants: &[],
        global,
    }
}

/// A global whose values a later step of the evaluation can change.
const fn changing(
    name: &'static str,
    result: Subject,
    source: FactSource,
    part: fn() -> Part,
    doc: [&'static str; 2],
) -> FactRow {
    let global = Some(Global { part, changes: true });
    FactRow { global, ..self::global(name, result, source, part, doc) }
}

/// Whether an expression can have another value later in the same evaluation. A text that only contains such a name
/// counts too.
pub(super) fn can_change(expression: &str) -> bool {
    let mut changing = ROWS.iter().filter(|it| it.global.is_some_and(|it| it.changes));
    changing.any(|it| expression.contains(it.member.name))
}

/// Global names; each gives the handle of one part of the context.
pub(super) const ROWS: &[FactRow] = &[
    global(
        "event",
        Subject::Event,
        FactSource::Event,
        || Part::Event,
        ["What the client just reported.", "event.kind == \"stop\""],
    ),
    changing(
        "session",
        Subject::Session,
        FactSource::Event,
        || Part::Session,
        ["The session and its type.", "session.type == \"DEVELOPMENT\""],
    ),
    global(
        "transcript",
        Subject::Transcript,
        FactSource::Transcript,
        || Part::Transcript,
        ["What was said.", "transcript.prompts > 0"],
    ),
    global(
        "tools",
        Subject::Tools,
        FactSource::Transcript,
        || Part::Tools,
        ["Tool calls of any kind.", "tools.total == 0"],
    ),
    global(
        "commands",
        Subject::Commands,
        FactSource::Transcript,
        || Part::Commands,
        ["Shell commands, parsed into programs.", "commands.ran(\"git push\")"],
    ),
    global(
        "files",
        Subject::Files,
        FactSource::Transcript,
        || Part::Files(None),
        ["Files the agent edited.", "files.count > 0"],
    ),
    global(
        "project",
        Subject::Project,
        FactSource::Project,
        || Part::Project,
        ["The files of the project on the disk.", "project.has_tests"],
    ),
    global(
        "todos",
        Subject::Todos,
        FactSource::Transcript,
        || Part::Todos,
        ["The agent's todo list.", "todos.open == 0"],
    ),
    global(
        "tokens",
        Subject::Tokens,
        FactSource::Transcript,
        || Part::Tokens,
        ["Token usage of the main chain.", "tokens.context > 150000"],
    ),
    global(
        "patterns",
        Subject::Patterns,
        FactSource::Transcript,
        || Part::Patterns,
        ["Text patterns of the vocabulary.", "patterns.in_message(\"next_steps\")"],
    ),
    changing(
        "prefs",
        Subject::Preferences,
        FactSource::Preferences,
        || Part::Preferences,
        ["Preferences found in files, by id.", "prefs.no_auto_merge"],
    ),
    changing(
        "probes",
        Subject::Probes,
        FactSource::Probes,
        || Part::Probes,
        ["Answers of probes, by id.", "probes.pr.ok"],
    ),
    changing(
        "breakers",
        Subject::Breakers,
        FactSource::Breakers,
        || Part::Breakers,
        ["Circuit breakers, by name in brackets.", "breakers[\"api/claude\"].open"],
    )
    .of_ids(PackName::Breaker),
    changing(
        "dead_letter",
        Subject::DeadLetters,
        FactSource::Queues,
        || Part::DeadLetters,
        ["Tasks that failed again and again.", "dead_letter.depth < 20"],
    ),
    changing(
        "escalations",
        Subject::Escalations,
        FactSource::Queues,
        || Part::Escalations,
        ["What humans are asked to decide.", "escalations.blocking.len() == 0"],
    ),
    changing(
        "signals",
        Subject::Signals,
        FactSource::Signals,
        || Part::Signals,
        ["Signals that wait to be consumed.", "signals.awaiting_human > 0"],
    ),
    changing(
        "context",
        Subject::Context,
        FactSource::Context,
        || Part::Context,
        ["How full the agent's context is.", "context.percent > 60"],
    ),
    changing(
        "state",
        Subject::State,
        FactSource::Memory,
        || Part::State,
        ["What the session remembers between stops.", "state.blocks == 0"],
    ),
    global(
        "now",
        Subject::Now,
        FactSource::Event,
        || Part::Now,
        ["The clock, in UTC.", "now.hour >= 22"],
    ),
    changing(
        "rule",
        Subject::Rule,
        FactSource::Rule,
        || Part::Rule,
        ["The consideration that is being judged.", "rule.id != \"\""],
    ),
    changing(
        "rationalizations",
        Subject::Rationalizations,
        FactSource::Excuses,
        || Part::Rationalizations,
        ["Excuses and red flags in the agent's last text.", "rationalizations.count > 0"],
    ),
    global(
        "action",
        Subject::Call,
        FactSource::Call,
        || Part::Call,
        ["The tool call that is about to happen; for guards only.", "action.runs(\"git push\")"],
    )
    .at(&events::CALLS),
    changing(
        "program",
        Subject::Invocation,
        FactSource::Program,
        || Part::Program,
        [
            "The program that `commands` of a guard recognized.",
            "program.has([\"-r\", \"--recursive\"])",
        ],
    ),
    changing(
        "outcome",
        Subject::Outcome,
        FactSource::Outcome,
        || Part::Outcome,
        ["What was decided; for messages only.", "outcome.failed > 1"],
    ),
];
