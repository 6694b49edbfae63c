//! The expression sandbox: Rhai with hard limits and nothing but facts to look at.
//! Lives here: the engine and evaluation. `check` types expressions at load; `members` is the table.
//! May not live here: files, clocks, what a rule means.

pub mod branches;
pub mod breaker_facts;
mod builtins;
pub mod call_facts;
pub mod check;
pub mod completion;
pub mod context;
pub mod context_facts;
mod excuse_facts;
mod file_facts;
mod globals;
mod lately;
pub mod members;
mod memory_facts;
mod pack_facts;
pub mod parts;
pub mod paths;
pub mod pattern;
pub mod place_facts;
pub mod plain;
pub mod program_facts;
pub mod prose;
pub mod queue_facts;
pub mod record;
pub mod relations;
pub mod reply;
mod session_facts;
pub mod signal_facts;
pub mod template;
mod text_list;
mod tokens;
pub mod tree;
pub mod types;
pub mod watch;
pub mod wider;
pub mod words;
mod work_facts;

use std::collections::BTreeMap;
use std::rc::Rc;

use rhai::{AST, Dynamic, Engine, EvalAltResult, Expr, OptimizationLevel, Position};

use crate::limits;
use context::{Context, Object, Part as Handle};
use globals::Globals;
use parts::Part;
use plain::{Kept, NoValue, Plain};
use record::Record;
use types::Type;
use watch::Watch;

/// What went wrong in an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// One lower-case sentence.
    pub message: String,
    /// Byte offset in the expression, where known.
    pub offset: Option<usize>,
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::Texts(values) => f.write_str(&values.join(", ")),
        }
    }
}

/// An expression as it is written, with its plain form where that was kept.
#[derive(Debug, Clone, Copy)]
pub struct Written<'t> {
    /// Its text.
    pub text: &'t str,
    /// Its plain form.
    pub kept: Option<&'t Kept>,
}

impl<'t> From<&'t str> for Written<'t> {
    fn from(text: &'t str) -> Self {
        Self { text, kept: None }
    }
}

impl<'t> From<&'t String> for Written<'t> {
    fn from(text: &'t String) -> Self {
        text.as_str().into()
    }
}

/// Evaluates expressions against one context.
#[derive(Debug)]
pub struct Evaluator {
    engine: Engine,
    globals: Globals,
    /// Conditions are asked when planning and again when deciding. By the length of their text:
    /// many begin alike, and few are equally long.
    known: BTreeMap<usize, Vec<Known>>,
    /// Which context this is; what was evaluated in another one is forgotten.
    turn: u64,
    /// Is told what expressions come to; nobody is, unless somebody measures.
    pub watch: Option<Rc<Watch>>,
}

/// An expression that was evaluated before.
#[derive(Debug)]
struct Known {
    text: String,
    /// What it was parsed to, once its kept form did not do.
    parsed: Option<Box<Parsed>>,
    /// Whether it may have another value later in the same context.
    changes: bool,
    /// Its value with the context it has it in, where it cannot change any more there.
    value: Option<(u64, Value)>,
}

/// An expression that was parsed.
#[derive(Debug)]
struct Parsed {
    ast: AST,
    plain: Option<Plain>,
}

impl Evaluator {
    /// An evaluator whose expressions see `context`.
    #[must_use]
    pub fn new(context: Rc<Context>) -> Self {
        let mut engine = sandbox();
        builtins::register(&mut engine);
        register_members(&mut engine);
        let mut evaluator =
            Self { engine, globals: Globals::new(), known: BTreeMap::new(), turn: 0, watch: None };
        evaluator.turn_to(context);
        evaluator
    }

    /// An evaluator whose expressions see one record, and nothing else.
    #[must_use]
    pub fn about(record: Record) -> Self {
        let mut engine = sandbox();
        builtins::register(&mut engine);
        engine.register_indexer_get(|record: &mut Record, name: &str| {
            record.value(name).map_err(Box::<EvalAltResult>::from)
        });
        let globals = Globals::of_record(record);
        Self { engine, globals, known: BTreeMap::new(), turn: 0, watch: None }
    }

    /// Tells somebody what the expressions come to.
    #[must_use]
    pub fn watched_by(mut self, watch: watch::Watching<'_>) -> Self {
        self.watch = watch.cloned();
        self
    }

    /// Turns to another context: what was parsed is kept, what was evaluated is forgotten.
    pub fn turn_to(&mut self, context: Rc<Context>) {
        self.leave();
        self.globals.turn_to(Some(context));
    }

    /// Lets go of the context: whoever made it has it alone again.
    pub fn leave(&mut self) {
        self.globals.turn_to(None);
        self.turn = self.turn.wrapping_add(1);
    }

    /// The value of an expression that passed the load-time checks.
    ///
    /// # Errors
    /// A probe that could not answer, a limit, an overflow: a rule takes it as unknown.
    pub fn eval<'t>(&mut self, written: impl Into<Written<'t>>) -> Result<Value, ScriptError> {
        let written = written.into();
        let value = self.value(written);
        if let Some(watch) = self.watch.clone() {
            watch.evaluated(written.text, &value, |part| self.value(part.into()));
        }
        value
    }

    fn value(&mut self, Written { text, kept }: Written<'_>) -> Result<Value, ScriptError> {
        let alike = self.known.entry(text.len()).or_default();
        let mut known = match alike.iter().position(|it| it.text == text) {
            Some(at) => alike.swap_remove(at),
            None => Known::new(text),
        };
        let around = (self.turn, &self.engine, &mut self.globals);
        let found = known.value(kept.and_then(Kept::plain), around);
        alike.push(known);
        found
    }

    /// The value of a condition.
    ///
    /// # Errors
    /// As [`Evaluator::eval`], and a value that is not true or false.
    pub fn eval_bool<'t>(&mut self, written: impl Into<Written<'t>>) -> Result<bool, ScriptError> {
        match self.eval(written)? {
            Value::Bool(value) => Ok(value),
            Value::Int(_) | Value::Text(_) | Value::Texts(_) => {
                let message = "a condition must be true or false".to_owned();
                Err(ScriptError { message, offset: Some(0) })
            }
        }
    }

    /// The parts of an expression with their values, the whole last; for explanations.
    #[must_use]
    pub fn explain(&mut self, text: &str) -> Vec<Part> {
        parts::explain(self, text)
    }
}

impl Known {
    fn new(text: &str) -> Self {
        let (changes, text) = (context::reads_learned(text), text.to_owned());
        Self { text, parsed: None, changes, value: None }
    }

    /// Its value; `plain` is its plain form, where that was kept.
    fn value(
        &mut self,
        plain: Option<&Plain>,
        (turn, engine, globals): (u64, &Engine, &mut Globals),
    ) -> Result<Value, ScriptError> {
        if let Some((_, value)) = self.value.as_ref().filter(|(known, _)| *known == turn) {
            return Ok(value.clone());
        }
        let found = plain.and_then(|it| without_engine(it, globals));
        let value = found.unwrap_or_else(|| self.parsed_value(engine, globals))?;
        self.value = (!self.changes).then(|| (turn, value.clone()));
        Ok(value)
    }

    /// Its value, where no kept form gave one.
    fn parsed_value(
        &mut self,
        engine: &Engine,
        globals: &mut Globals,
    ) -> Result<Value, ScriptError> {
        let parsed = match self.parsed.take() {
            Some(parsed) => parsed,
            None => Box::new(Parsed::of(engine, &self.text)?),
        };
        let Parsed { ast, plain } = &**self.parsed.insert(parsed);
        let found = plain.as_ref().and_then(|it| without_engine(it, globals));
        debug_assert!(
            found.as_ref().is_none_or(|it| alike(it, &by_engine(engine, globals, ast, &self.text))),
            "`{}` is something else to the engine than in its plain form",
            self.text
        );
        found.unwrap_or_else(|| by_engine(engine, globals, ast, &self.text))
    }
}

impl Parsed {
    fn of(engine: &Engine, text: &str) -> Result<Self, ScriptError> {
        let ast = compile(engine, text)?;
        Ok(Self { plain: plain::of(&ast), ast })
    }
}

/// What an expression of plain form comes to; nothing, where that is for the engine to find.
fn without_engine(plain: &Plain, globals: &Globals) -> Option<Result<Value, ScriptError>> {
    match plain.value(globals) {
        Ok(value) => to_value(value).map(Ok),
        Err(NoValue::Failed(message)) => Some(Err(ScriptError { message, offset: None })),
        Err(NoValue::NotPlain) => None,
    }
}

/// Whether two ways came to the same. The engine alone knows where an expression failed; and facts may be
/// longer than what it lets an expression make.
fn alike(found: &Result<Value, ScriptError>, by_engine: &Result<Value, ScriptError>) -> bool {
    match (found, by_engine) {
        (Err(one), Err(other)) => one.message == other.message,
        (Ok(_), Err(engine)) => engine.message.ends_with("too large"),
        (one, other) => one == other,
    }
}

/// The value that the engine gives an expression.
fn by_engine(
    engine: &Engine,
    globals: &mut Globals,
    parsed: &AST,
    text: &str,
) -> Result<Value, ScriptError> {
    let result = engine.eval_ast_with_scope::<Dynamic>(globals.scope(), parsed);
    let value = result.map_err(|error| runtime_error(&error, text))?;
    to_value(value).ok_or_else(|| ScriptError {
        message: "the value is neither true-or-false, a number, text nor a list".to_owned(),
        offset: Some(0),
    })
}

/// An engine that can do nothing: no packages, no modules, no output, no closures, no loops.
fn sandbox() -> Engine {
    let mut engine = Engine::new_raw();
    engine
        .set_optimization_level(OptimizationLevel::None)
        .set_max_operations(limits::EXPRESSION_OPERATIONS_MAX)
        .set_max_call_levels(limits::EXPRESSION_CALLS_MAX)
        .set_max_expr_depths(limits::EXPRESSION_DEPTH_MAX, limits::EXPRESSION_DEPTH_MAX)
        .set_max_string_size(limits::EXPRESSION_STRING_MAX)
        .set_max_array_size(limits::EXPRESSION_ARRAY_MAX)
        .set_max_map_size(limits::EXPRESSION_ARRAY_MAX)
        .set_max_variables(64)
        .set_max_functions(0)
        .set_allow_anonymous_fn(false)
        .set_allow_looping(false)
        .set_allow_loop_expressions(false)
        .set_allow_shadowing(false);
    for symbol in ["eval", "print", "debug", "import", "export", "Fn", "call", "curry", "this"] {
        engine.disable_symbol(symbol);
    }
    engine
}

/// Parses an expression.
///
/// # Errors
/// Its length, or the first syntax error with its place.
fn compile(engine: &Engine, text: &str) -> Result<AST, ScriptError> {
    if text.len() > limits::EXPRESSION_BYTES_MAX {
        let message = format!("longer than {} bytes", limits::EXPRESSION_BYTES_MAX);
        return Err(ScriptError { message, offset: None });
    }
    engine.compile_expression(text).map_err(|error| ScriptError {
        message: lower_first(&error.0.to_string()),
        offset: byte_offset(text, error.1),
    })
}

fn register_members(engine: &mut Engine) {
    let failed = Box::<EvalAltResult>::from;
    engine.register_indexer_get(move |object: &mut Object, name: &str| {
        member_value(object, name, &[]).map_err(failed)
    });
    let mut done = std::collections::BTreeSet::new();
    for row in members::tables() {
        let (Some(params), Some(_)) = (row.params, row.run) else { continue };
        if !done.insert((row.name, params.len())) {
            continue;
        }
        let name = row.name;
        match params.len() {
            0 => {
                engine.register_fn(name, move |it: &mut Object| {
                    member_value(it, name, &[]).map_err(failed)
                });
            }
            _ => {
                engine.register_fn(name, move |it: &mut Object, arg: Dynamic| {
                    member_value(it, name, &[arg]).map_err(failed)
                });
            }
        }
    }
}

fn member_value(object: &Object, name: &str, args: &[Dynamic]) -> Result<Dynamic, String> {
    let owner = type_of(&object.part);
    match (owner, members::find(owner, name).and_then(|row| row.run)) {
        (_, Some(run)) => run(object, args),
        (Type::Preferences, None) => pack_facts::preference(object, name),
        (Type::Probes, None) => Ok(pack_facts::probe(object, name)),
        (Type::Breakers, None) => Ok(breaker_facts::breaker(object, name)),
        (_, None) => Err(format!("there is no `{name}` on {owner}")),
    }
}

/// The type whose rows a part answers.
const fn type_of(part: &Handle) -> Type {
    match part {
        Handle::Event => Type::Event,
        Handle::Session => Type::Session,
        Handle::Transcript => Type::Transcript,
        Handle::Tools => Type::Tools,
        Handle::Commands => Type::Commands,
        Handle::Command(_) => Type::Command,
        Handle::CommandKind(_) => Type::CommandKind,
        Handle::Files(_) => Type::Files,
        Handle::Findings(_) => Type::Findings,
        Handle::Todos => Type::Todos,
        Handle::Tokens => Type::Tokens,
        Handle::Patterns => Type::Patterns,
        Handle::Preferences => Type::Preferences,
        Handle::Probes => Type::Probes,
        Handle::Probe(_) => Type::Probe,
        Handle::Breakers => Type::Breakers,
        Handle::DeadLetters => Type::DeadLetters,
        Handle::Escalations => Type::Escalations,
        Handle::Signals => Type::Signals,
        Handle::Context => Type::Context,
        Handle::Breaker(_) => Type::Breaker,
        Handle::State => Type::State,
        Handle::Now => Type::Now,
        Handle::Rule => Type::Rule,
        Handle::Outcome => Type::Outcome,
        Handle::Rationalizations => Type::Rationalizations,
        Handle::Call => Type::Call,
        Handle::Program => Type::Invocation,
        Handle::Places(_) => Type::Places,
    }
}

fn to_value(value: Dynamic) -> Option<Value> {
    if let Ok(value) = value.as_bool() {
        return Some(Value::Bool(value));
    }
    if let Ok(value) = value.as_int() {
        return Some(Value::Int(value));
    }
    // A fraction is only ever compared or shown.
    if let Ok(value) = value.as_float() {
        return Some(Value::Text(value.to_string()));
    }
    if value.is_string() {
        return value.into_string().ok().map(Value::Text);
    }
    let items = value.into_array().ok()?;
    let texts = items.into_iter().map(|it| it.into_string().ok());
    texts.collect::<Option<Vec<_>>>().map(Value::Texts)
}

fn runtime_error(error: &EvalAltResult, text: &str) -> ScriptError {
    let offset = byte_offset(text, error.position());
    let inner = error.unwrap_inner();
    let message = if let EvalAltResult::ErrorRuntime(value, _) = inner {
        value.to_string()
    } else {
        let mut plain = inner.to_string();
        if let Some(at) = plain.rfind(" (line ") {
            plain.truncate(at);
        }
        lower_first(&plain)
    };
    ScriptError { message, offset }
}

/// What stands in the brackets of `a[b].c`, which Rhai reads as `a` indexed by `b.c`, and what follows.
fn in_brackets(inside: &Expr) -> (&Expr, Option<&Expr>) {
    if let Expr::Dot(chain, ..) = inside {
        return (&chain.lhs, Some(&chain.rhs));
    }
    (inside, None)
}

/// Rhai counts lines and characters from 1; sources are cut by bytes.
fn byte_offset(text: &str, position: Position) -> Option<usize> {
    let (line, column) = (position.line()?, position.position().unwrap_or(1));
    let mut start = 0_usize;
    for _ in 1..line {
        start = start.saturating_add(text.get(start..)?.find('\n')?).saturating_add(1);
    }
    let (rest, before) = (text.get(start..)?, column.saturating_sub(1));
    let within = match rest.as_bytes().get(..before) {
        Some(bytes) if bytes.is_ascii() => before,
        _ => rest.char_indices().nth(before).map_or(rest.len(), |(at, _)| at),
    };
    Some(start.saturating_add(within))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
