//! The names that an expression begins with. Each is one part of the context.

use super::context::Part;
use super::row::{COUNTS, Global, Member};
use super::types::{Evidence::Neutral, Type};

/// A global whose values are known before a pack is evaluated.
const fn global(
    name: &'static str,
    result: Type,
    part: fn() -> Part,
    [doc, example]: [&'static str; 2],
) -> Member {
    Member {
        owner: Type::Global,
        name,
        params: None,
        result,
        evidence: Neutral,
        doc,
        example,
        values: &[],
        range: COUNTS,
        run: None,
        global: Some(Global { part, is_learned: false }),
    }
}

/// A global that reads `EvaluationState`.
const fn learned(
    name: &'static str,
    result: Type,
    part: fn() -> Part,
    doc: [&'static str; 2],
) -> Member {
    let global = Some(Global { part, is_learned: true });
    Member { global, ..self::global(name, result, part, doc) }
}

/// Whether an expression can have another value later in the same evaluation. A text that only contains such a name
/// counts too.
pub(super) fn reads_learned(expression: &str) -> bool {
    let mut learned = ROWS.iter().filter(|it| it.global.is_some_and(|it| it.is_learned));
    learned.any(|it| expression.contains(it.name))
}

/// Global names; each gives the handle of one part of the context.
pub(super) const ROWS: &[Member] = &[
    global(
        "event",
        Type::Event,
        || Part::Event,
        ["What the client just reported.", "event.kind == \"stop\""],
    ),
    learned(
        "session",
        Type::Session,
        || Part::Session,
        ["The session and its type.", "session.type == \"DEVELOPMENT\""],
    ),
    global(
        "transcript",
        Type::Transcript,
        || Part::Transcript,
        ["What was said.", "transcript.prompts > 0"],
    ),
    global("tools", Type::Tools, || Part::Tools, ["Tool calls of any kind.", "tools.total == 0"]),
    global(
        "commands",
        Type::Commands,
        || Part::Commands,
        ["Shell commands, parsed into programs.", "commands.ran(\"git push\")"],
    ),
    global(
        "files",
        Type::Files,
        || Part::Files(None),
        ["Files the agent edited.", "files.count > 0"],
    ),
    global("todos", Type::Todos, || Part::Todos, ["The agent's todo list.", "todos.open == 0"]),
    global(
        "tokens",
        Type::Tokens,
        || Part::Tokens,
        ["Token usage of the main chain.", "tokens.context > 150000"],
    ),
    global(
        "patterns",
        Type::Patterns,
        || Part::Patterns,
        ["Text patterns of the vocabulary.", "patterns.in_message(\"next_steps\")"],
    ),
    learned(
        "prefs",
        Type::Preferences,
        || Part::Preferences,
        ["Preferences found in files, by id.", "prefs.no_auto_merge"],
    ),
    learned("probes", Type::Probes, || Part::Probes, ["Answers of probes, by id.", "probes.pr.ok"]),
    learned(
        "breakers",
        Type::Breakers,
        || Part::Breakers,
        ["Circuit breakers, by name in brackets.", "breakers[\"api/claude\"].open"],
    ),
    learned(
        "dead_letter",
        Type::DeadLetters,
        || Part::DeadLetters,
        ["Tasks that failed again and again.", "dead_letter.depth < 20"],
    ),
    learned(
        "escalations",
        Type::Escalations,
        || Part::Escalations,
        ["What humans are asked to decide.", "escalations.blocking.len() == 0"],
    ),
    learned(
        "signals",
        Type::Signals,
        || Part::Signals,
        ["Signals that wait to be consumed.", "signals.awaiting_human > 0"],
    ),
    learned(
        "context",
        Type::Context,
        || Part::Context,
        ["How full the agent's context is.", "context.percent > 60"],
    ),
    learned(
        "state",
        Type::State,
        || Part::State,
        ["What the session remembers between stops.", "state.blocks == 0"],
    ),
    global("now", Type::Now, || Part::Now, ["The clock, in UTC.", "now.hour >= 22"]),
    learned(
        "rule",
        Type::Rule,
        || Part::Rule,
        ["The consideration that is being judged.", "rule.id != \"\""],
    ),
    learned(
        "rationalizations",
        Type::Rationalizations,
        || Part::Rationalizations,
        ["Excuses and red flags in the agent's last text.", "rationalizations.count > 0"],
    ),
    global(
        "action",
        Type::Call,
        || Part::Call,
        ["The tool call that is about to happen; for guards only.", "action.runs(\"git push\")"],
    ),
    learned(
        "program",
        Type::Invocation,
        || Part::Program,
        [
            "The program that `commands` of a guard recognized.",
            "program.has([\"-r\", \"--recursive\"])",
        ],
    ),
    learned(
        "outcome",
        Type::Outcome,
        || Part::Outcome,
        ["What was decided; for messages only.", "outcome.failed > 1"],
    ),
];
