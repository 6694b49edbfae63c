//! The names an expression starts with, and what they stand for in one evaluation.

use std::rc::Rc;

use rhai::{Dynamic, Scope};

use super::context::{Context, Object, Part};
use super::members::{COUNTS, Global, Member, find};
use super::record::Record;
use super::types::{Evidence::Neutral, Type};

/// What the names stand for. Most expressions are evaluated without the engine, so its scope is only
/// filled once it is asked.
#[derive(Debug)]
pub(super) struct Globals {
    context: Option<Rc<Context>>,
    scope: Scope<'static>,
}

impl Globals {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { context: None, scope: Scope::new() }
    }

    /// One record under its own name, and nothing else.
    pub(super) fn of_record(record: Record) -> Self {
        let mut scope = Scope::new();
        scope.push(record.name.clone(), record);
        Self { context: None, scope }
    }

    /// The parts of another context.
    pub(super) fn turn_to(&mut self, context: Option<Rc<Context>>) {
        self.scope.clear();
        self.context = context;
    }

    /// The handle that a name stands for; nothing where it stands for none, as that of a record does.
    pub(super) fn handle(&self, name: &str) -> Option<Object> {
        let context = self.context.as_ref()?;
        let global = find(Type::Global, name)?.global?;
        Some(Object { context: Rc::clone(context), part: (global.part)() })
    }

    /// What a name stands for.
    pub(super) fn value(&self, name: &str) -> Option<Dynamic> {
        self.handle(name).map(Dynamic::from).or_else(|| self.scope.get(name).cloned())
    }

    /// All names, for the engine.
    pub(super) fn scope(&mut self) -> &mut Scope<'static> {
        if self.scope.is_empty() {
            for row in ROWS {
                if let Some(handle) = self.handle(row.name) {
                    self.scope.push(row.name, handle);
                }
            }
        }
        &mut self.scope
    }
}

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

/// A global that reads `Learned`.
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
            "The program that `commands` of a guard recognised.",
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
