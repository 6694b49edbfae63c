//! The names an expression starts with, and what they stand for in one evaluation.

use std::rc::Rc;

use rhai::{Dynamic, Scope};

use super::context::{Context, Object, Part};
use super::members::{COUNTS, Member, find};
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
        let part = part(find(Type::Global, name)?.result)?;
        Some(Object { context: Rc::clone(context), part })
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

/// The part of the context that names of this type stand for.
const fn part(global: Type) -> Option<Part> {
    Some(match global {
        Type::Event => Part::Event,
        Type::Session => Part::Session,
        Type::Transcript => Part::Transcript,
        Type::Tools => Part::Tools,
        Type::Commands => Part::Commands,
        Type::Files => Part::Files(None),
        Type::Todos => Part::Todos,
        Type::Tokens => Part::Tokens,
        Type::Patterns => Part::Patterns,
        Type::Preferences => Part::Preferences,
        Type::Probes => Part::Probes,
        Type::Breakers => Part::Breakers,
        Type::DeadLetters => Part::DeadLetters,
        Type::Escalations => Part::Escalations,
        Type::Signals => Part::Signals,
        Type::Context => Part::Context,
        Type::State => Part::State,
        Type::Now => Part::Now,
        Type::Rule => Part::Rule,
        Type::Outcome => Part::Outcome,
        Type::Rationalizations => Part::Rationalizations,
        Type::Call => Part::Call,
        Type::Invocation => Part::Program,
        Type::Global
        | Type::Bool
        | Type::Int
        | Type::Decimal
        | Type::Text
        | Type::Texts
        | Type::Command
        | Type::CommandKind
        | Type::Findings
        | Type::Probe
        | Type::Breaker
        | Type::Places
        | Type::Record
        | Type::Any => return None,
    })
}

const fn global(name: &'static str, result: Type, doc: [&'static str; 2]) -> Member {
    let ([doc, example], range) = (doc, COUNTS);
    Member {
        owner: Type::Global,
        name,
        params: None,
        result,
        evidence: Neutral,
        doc,
        example,
        values: &[],
        range,
        run: None,
    }
}

/// Global names; each gives the handle of one part of the context.
pub(super) const ROWS: &[Member] = &[
    global("event", Type::Event, ["What the client just reported.", "event.kind == \"stop\""]),
    global(
        "session",
        Type::Session,
        ["The session and its type.", "session.type == \"DEVELOPMENT\""],
    ),
    global("transcript", Type::Transcript, ["What was said.", "transcript.prompts > 0"]),
    global("tools", Type::Tools, ["Tool calls of any kind.", "tools.total == 0"]),
    global(
        "commands",
        Type::Commands,
        ["Shell commands, parsed into programs.", "commands.ran(\"git push\")"],
    ),
    global("files", Type::Files, ["Files the agent edited.", "files.count > 0"]),
    global("todos", Type::Todos, ["The agent's todo list.", "todos.open == 0"]),
    global("tokens", Type::Tokens, ["Token usage of the main chain.", "tokens.context > 150000"]),
    global(
        "patterns",
        Type::Patterns,
        ["Text patterns of the vocabulary.", "patterns.in_message(\"next_steps\")"],
    ),
    global(
        "prefs",
        Type::Preferences,
        ["Preferences found in files, by id.", "prefs.no_auto_merge"],
    ),
    global("probes", Type::Probes, ["Answers of probes, by id.", "probes.pr.ok"]),
    global(
        "breakers",
        Type::Breakers,
        ["Circuit breakers, by name in brackets.", "breakers[\"api/claude\"].open"],
    ),
    global(
        "dead_letter",
        Type::DeadLetters,
        ["Tasks that failed again and again.", "dead_letter.depth < 20"],
    ),
    global(
        "escalations",
        Type::Escalations,
        ["What humans are asked to decide.", "escalations.blocking.len() == 0"],
    ),
    global(
        "signals",
        Type::Signals,
        ["Signals that wait to be consumed.", "signals.awaiting_human > 0"],
    ),
    global("context", Type::Context, ["How full the agent's context is.", "context.percent > 60"]),
    global(
        "state",
        Type::State,
        ["What the session remembers between stops.", "state.blocks == 0"],
    ),
    global("now", Type::Now, ["The clock, in UTC.", "now.hour >= 22"]),
    global("rule", Type::Rule, ["The consideration that is being judged.", "rule.id != \"\""]),
    global(
        "rationalizations",
        Type::Rationalizations,
        ["Excuses and red flags in the agent's last text.", "rationalizations.count > 0"],
    ),
    global(
        "action",
        Type::Call,
        ["The tool call that is about to happen; for guards only.", "action.runs(\"git push\")"],
    ),
    global(
        "program",
        Type::Invocation,
        [
            "The program that `commands` of a guard recognised.",
            "program.has([\"-r\", \"--recursive\"])",
        ],
    ),
    global(
        "outcome",
        Type::Outcome,
        ["What was decided; for messages only.", "outcome.failed > 1"],
    ),
];
