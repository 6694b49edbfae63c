//! The names that an expression begins with. Each is one part of the context.

use policyd_expr::table::{COUNTS, Member};

use super::context::ContextPart;
use super::events;
use super::fact_source::FactSource;
use super::row::{FactRow, Global};
use super::types::{Evidence::Neutral, PackName, Subject, TextForm, Type};

/// A global whose values are known before the first step.
const fn global(
    name: &'static str,
    result: Subject,
    source: FactSource,
    part: fn() -> ContextPart,
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
        form: TextForm::Any,
        range: COUNTS,
        unit: None,
        ids: None,
        is_written_out: false,
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
    part: fn() -> ContextPart,
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
        || ContextPart::Event,
        ["What the client just reported.", "event.kind == \"stop\""],
    ),
    changing(
        "session",
        Subject::Session,
        FactSource::Event,
        || ContextPart::Session,
        ["The session and its type.", "session.type == \"DEVELOPMENT\""],
    ),
    global(
        "transcript",
        Subject::Transcript,
        FactSource::Transcript,
        || ContextPart::Transcript,
        ["What was said.", "transcript.prompts > 0"],
    ),
    global(
        "tools",
        Subject::Tools,
        FactSource::Transcript,
        || ContextPart::Tools,
        ["Tool calls of any kind.", "tools.total == 0"],
    ),
    global(
        "agents",
        Subject::Agents,
        FactSource::Transcript,
        || ContextPart::Agents,
        ["Subagents that the agent started.", "agents.ran(\"security-reviewer\")"],
    ),
    global(
        "commands",
        Subject::Commands,
        FactSource::Transcript,
        || ContextPart::Commands,
        ["Shell commands, parsed into programs.", "commands.ran(\"git push\")"],
    ),
    global(
        "files",
        Subject::Files,
        FactSource::Transcript,
        || ContextPart::Files(None),
        ["Files the agent edited.", "files.count > 0"],
    ),
    global(
        "project",
        Subject::Project,
        FactSource::Event,
        || ContextPart::Project,
        ["The files of the project on the disk.", "project.has_tests"],
    ),
    global(
        "todos",
        Subject::Todos,
        FactSource::Transcript,
        || ContextPart::Todos,
        ["The agent's todo list.", "todos.open == 0"],
    ),
    global(
        "tokens",
        Subject::Tokens,
        FactSource::Transcript,
        || ContextPart::Tokens,
        ["Token usage of the main chain.", "tokens.context > 150000"],
    ),
    global(
        "patterns",
        Subject::Patterns,
        FactSource::Transcript,
        || ContextPart::Patterns,
        ["Text patterns of the vocabulary.", "patterns.in_message(\"next_steps\")"],
    ),
    changing(
        "prefs",
        Subject::Preferences,
        FactSource::Preferences,
        || ContextPart::Preferences,
        ["Preferences found in files, by id.", "prefs.no_auto_merge"],
    ),
    changing(
        "probes",
        Subject::Probes,
        FactSource::Probes,
        || ContextPart::Probes,
        ["Answers of probes, by id.", "probes.pr.ok"],
    ),
    changing(
        "breakers",
        Subject::Breakers,
        FactSource::Breakers,
        || ContextPart::Breakers,
        ["Circuit breakers, by name in brackets.", "breakers[\"api/claude\"].open"],
    )
    .of_ids(PackName::Breaker),
    changing(
        "dead_letter",
        Subject::DeadLetters,
        FactSource::Queues,
        || ContextPart::DeadLetters,
        ["Tasks that failed again and again.", "dead_letter.depth < 20"],
    ),
    changing(
        "escalations",
        Subject::Escalations,
        FactSource::Queues,
        || ContextPart::Escalations,
        ["What humans are asked to decide.", "escalations.blocking.len() == 0"],
    ),
    changing(
        "signals",
        Subject::Signals,
        FactSource::Signals,
        || ContextPart::Signals,
        ["Signals that wait to be consumed.", "signals.awaiting_human > 0"],
    ),
    changing(
        "context",
        Subject::Context,
        FactSource::Context,
        || ContextPart::Context,
        ["How full the agent's context is.", "context.percent > 60"],
    ),
    changing(
        "costs",
        Subject::Costs,
        FactSource::Costs,
        || ContextPart::Costs,
        ["What was spent today, in all sessions.", "costs.today_cents > 5000"],
    ),
    changing(
        "memory",
        Subject::Memory,
        FactSource::PackMemory,
        || ContextPart::Memory,
        ["What the rules of the pack remembered, by entry.", "memory.deploys.count >= 3"],
    ),
    changing(
        "state",
        Subject::State,
        FactSource::Memory,
        || ContextPart::State,
        ["What the session remembers between stops.", "state.blocks == 0"],
    ),
    global(
        "now",
        Subject::Now,
        FactSource::Event,
        || ContextPart::Now(0),
        ["The clock, in UTC unless a time zone is named.", "now.hour >= 22"],
    ),
    changing(
        "rule",
        Subject::Rule,
        FactSource::Rule,
        || ContextPart::Rule,
        ["The consideration that is being judged.", "rule.id != \"\""],
    ),
    changing(
        "rationalizations",
        Subject::Rationalizations,
        FactSource::Excuses,
        || ContextPart::Rationalizations,
        ["Excuses and red flags in the agent's last text.", "rationalizations.count > 0"],
    ),
    global(
        "action",
        Subject::Call,
        FactSource::Call,
        || ContextPart::Call,
        ["The tool call that is about to happen; for guards only.", "action.runs(\"git push\")"],
    )
    .at(&events::CALLS),
    changing(
        "program",
        Subject::Invocation,
        FactSource::Program,
        || ContextPart::Program,
        [
            "The program that `commands` of a guard recognized.",
            "program.has([\"-r\", \"--recursive\"])",
        ],
    ),
    changing(
        "outcome",
        Subject::Outcome,
        FactSource::Outcome,
        || ContextPart::Outcome,
        ["What was decided; for messages only.", "outcome.failed > 1"],
    ),
];
