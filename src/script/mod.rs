//! The expression sandbox: Rhai with hard limits and nothing but facts to look at.
//! Lives here: evaluation. `engine` is what Rhai is allowed, `check` types expressions at load, `members` is
//! the table.
//! May not live here: files, clocks, what a rule means.

pub mod branches;
pub mod breaker_facts;
mod builtins;
pub mod call_facts;
pub mod check;
pub mod completion;
pub mod context;
pub mod context_facts;
mod engine;
mod error;
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

use rhai::{AST, Dynamic, Engine};

use context::Context;
pub use error::{FactError, ScriptError, ScriptErrorKind};
use globals::Globals;
use parts::Part;
use plain::{Kept, NoValue, Plain};
use record::Record;
use watch::Watch;

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

impl Value {
    /// A value of the engine's; nothing for one that no expression may have.
    fn of(value: Dynamic) -> Option<Self> {
        if let Ok(value) = value.as_bool() {
            return Some(Self::Bool(value));
        }
        if let Ok(value) = value.as_int() {
            return Some(Self::Int(value));
        }
        // A fraction is only ever compared or shown.
        if let Ok(value) = value.as_float() {
            return Some(Self::Text(value.to_string()));
        }
        if value.is_string() {
            return value.into_string().ok().map(Self::Text);
        }
        let items = value.into_array().ok()?;
        let texts = items.into_iter().map(|it| it.into_string().ok());
        texts.collect::<Option<Vec<_>>>().map(Self::Texts)
    }
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
        let engine = engine::of_facts();
        let mut evaluator =
            Self { engine, globals: Globals::new(), known: BTreeMap::new(), turn: 0, watch: None };
        evaluator.turn_to(context);
        evaluator
    }

    /// An evaluator whose expressions see one record, and nothing else.
    #[must_use]
    pub fn about(record: Record) -> Self {
        let (engine, globals) = (engine::of_record(), Globals::of_record(record));
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
                Err(ScriptError { kind: ScriptErrorKind::Type, message, offset: Some(0) })
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
            found
                .as_ref()
                .is_none_or(|it| alike(it, &engine::run(engine, globals.scope(), ast, &self.text))),
            "`{}` is something else to the engine than in its plain form",
            self.text
        );
        found.unwrap_or_else(|| engine::run(engine, globals.scope(), ast, &self.text))
    }
}

impl Parsed {
    fn of(engine: &Engine, text: &str) -> Result<Self, ScriptError> {
        let ast = engine::compile(engine, text)?;
        Ok(Self { plain: plain::of(&ast), ast })
    }
}

/// What an expression of plain form comes to; nothing, where that is for the engine to find.
fn without_engine(plain: &Plain, globals: &Globals) -> Option<Result<Value, ScriptError>> {
    match plain.value(globals) {
        Ok(value) => Value::of(value).map(Ok),
        Err(NoValue::Failed(error)) => Some(Err(error.into())),
        Err(NoValue::NotPlain) => None,
    }
}

/// Whether two ways came to the same. The engine alone knows where an expression failed; and facts may be
/// longer than what it lets an expression make.
fn alike(found: &Result<Value, ScriptError>, by_engine: &Result<Value, ScriptError>) -> bool {
    match (found, by_engine) {
        (Err(one), Err(other)) => one.message == other.message,
        (Ok(_), Err(engine)) => engine.kind == ScriptErrorKind::TooLarge,
        (one, other) => one == other,
    }
}
