//! Expressions: their tree, their types, and their values; templates and patterns of text. Rhai, with hard limits and
//! nothing but facts to read, evaluates what `evaluate` does not.
//! Contains: the evaluator. `ast` is the tree, `parse` builds it, `check` types it at load, `engine` is Rhai.
//! Does not contain: facts. The program implements the traits of `table`.
//!
//! ```
//! use policyd_expr::ast::Expr;
//!
//! assert!(Expr::parse("tests.failed > 0 && !user.forbids_tests").is_some());
//! assert!(Expr::parse("tests.failed >").is_none()); // a syntax error
//! ```

pub mod ast;
pub mod builtins;
pub mod check;
pub mod compiled;
pub mod completion;
pub mod dynamic;
mod engine;
mod error;
mod evaluate;
mod hints;
pub mod lazy;
mod lexer;
pub mod limits;
pub mod marks;
mod parse;
pub mod parts;
pub mod paths;
pub mod pattern;
pub mod prose;
pub mod record;
mod rewrite;
mod scope;
pub mod spacing;
pub mod table;
pub mod template;
pub mod text_list;
pub mod types;
mod value;
pub mod watch;
pub mod words;

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use rhai::{AST, Engine};

use ast::Expr;
pub use error::{FactError, ScriptError, ScriptErrorKind};
use evaluate::NoValue;
use parts::Part;
use record::FactRecord;
use scope::Globals;
use table::Handle;
pub use value::Value;
use watch::CoverageRecorder;

/// The text of an expression, with its tree if that is at hand.
#[derive(Debug, Clone, Copy)]
pub struct ExprSource<'t> {
    /// The text.
    pub text: &'t str,
    /// The tree.
    pub tree: Option<&'t Expr>,
}

impl<'t> From<&'t str> for ExprSource<'t> {
    fn from(text: &'t str) -> Self {
        Self { text, tree: None }
    }
}

impl<'t> From<&'t String> for ExprSource<'t> {
    fn from(text: &'t String) -> Self {
        text.as_str().into()
    }
}

/// Evaluates expressions against one context.
#[derive(Debug)]
pub struct Evaluator<H: Handle> {
    /// Rhai, built for the first expression that needs it.
    engine: LazyCell<Engine>,
    globals: Globals<H>,
    /// Parsed expressions, since conditions are evaluated for the plan and again for the decision. The key is the
    /// length of the text: many expressions share a prefix, and few have the same length.
    cache: BTreeMap<usize, Vec<CachedEvaluation>>,
    /// Number of the context. Values of another context are not used.
    turn: u64,
    /// Records the value of each evaluated expression. Set only if coverage is measured.
    pub watch: Option<Rc<CoverageRecorder>>,
}

/// An expression that was evaluated before.
#[derive(Debug)]
struct CachedEvaluation {
    text: String,
    /// Its tree, if it was evaluated without one; `None` in it if the text is not understood.
    tree: Option<Option<Box<Expr>>>,
    /// What Rhai parsed, if it was needed.
    ast: Option<Box<AST>>,
    /// Whether the value can change in the same context.
    changes: bool,
    /// The value, and the context in which it cannot change.
    value: Option<(u64, Value)>,
}

impl<H: Handle> Evaluator<H> {
    /// An evaluator whose expressions see `context`.
    #[must_use]
    pub fn new(context: Rc<H::Context>) -> Self {
        let mut evaluator = Self::with(engine::of_facts::<H>, Globals::new());
        evaluator.turn_to(context);
        evaluator
    }

    /// An evaluator whose expressions see one record, and nothing else.
    #[must_use]
    pub fn about(record: FactRecord) -> Self {
        Self::with(engine::of_record, Globals::of_record(record))
    }

    fn with(engine: fn() -> Engine, globals: Globals<H>) -> Self {
        let (engine, cache) = (LazyCell::new(engine), BTreeMap::new());
        Self { engine, globals, cache, turn: 0, watch: None }
    }

    /// Records the values of expressions for coverage.
    #[must_use]
    pub fn watched_by(mut self, watch: watch::CoverageWatch<'_>) -> Self {
        self.watch = watch.cloned();
        self
    }

    /// Uses another context: trees are kept, values are not.
    pub fn turn_to(&mut self, context: Rc<H::Context>) {
        self.leave();
        self.globals.turn_to(Some(context));
    }

    /// Changes the context between two steps of an evaluation. Only values of expressions that [`Handle::can_change`]
    /// names may differ afterwards: the others are kept.
    pub fn change(&mut self, change: impl FnOnce(&mut H::Context)) {
        self.globals.change(change);
    }

    /// Changes the context in a way that any value may differ afterwards.
    pub fn change_all(&mut self, change: impl FnOnce(&mut H::Context)) {
        self.turn = self.turn.wrapping_add(1);
        self.globals.change(change);
    }

    /// Releases the context.
    pub fn leave(&mut self) {
        self.globals.turn_to(None);
        self.turn = self.turn.wrapping_add(1);
    }

    /// The value of an expression that passed the load-time checks.
    ///
    /// # Errors
    /// A fact without a value, a limit, an overflow: a rule is unknown then.
    pub fn eval<'t>(&mut self, source: impl Into<ExprSource<'t>>) -> Result<Value, ScriptError> {
        let source = source.into();
        let value = self.value(source);
        if let Some(watch) = self.watch.clone() {
            watch.evaluated(source.text, &value, |part| self.value(part.into()));
        }
        value
    }

    /// The value of an expression as Rhai alone computes it: what tests compare with.
    ///
    /// # Errors
    /// As [`Evaluator::eval`].
    pub fn eval_by_rhai(&mut self, text: &str) -> Result<Value, ScriptError> {
        let parsed = engine::compile(&self.engine, text)?;
        engine::run(&self.engine, self.globals.scope(), &parsed, text)
    }

    fn value(&mut self, source: ExprSource<'_>) -> Result<Value, ScriptError> {
        let text = source.text;
        let alike = self.cache.entry(text.len()).or_default();
        let mut cached = match alike.iter().position(|it| it.text == text) {
            Some(at) => alike.swap_remove(at),
            None => CachedEvaluation::new(text, H::can_change(text)),
        };
        let value = cached.value(source.tree, self.turn, &self.engine, &mut self.globals);
        alike.push(cached);
        value
    }

    /// The value of a condition.
    ///
    /// # Errors
    /// As [`Evaluator::eval`], and a value that is not true or false.
    pub fn eval_bool<'t>(
        &mut self,
        source: impl Into<ExprSource<'t>>,
    ) -> Result<bool, ScriptError> {
        match self.eval(source)? {
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

impl CachedEvaluation {
    fn new(text: &str, changes: bool) -> Self {
        let text = text.to_owned();
        Self { text, tree: None, ast: None, changes, value: None }
    }

    fn value<H: Handle>(
        &mut self,
        tree: Option<&Expr>,
        turn: u64,
        engine: &LazyCell<Engine>,
        globals: &mut Globals<H>,
    ) -> Result<Value, ScriptError> {
        if let Some((_, value)) = self.value.as_ref().filter(|(known, _)| *known == turn) {
            return Ok(value.clone());
        }
        let parse = || parse::parse(&self.text).ok().map(Box::new);
        let tree = tree.or_else(|| self.tree.get_or_insert_with(parse).as_deref());
        let found = tree.and_then(|it| without_engine(it, globals));
        debug_assert!(
            found.as_ref().is_none_or(|it| {
                let parsed = engine::compile(engine, &self.text);
                let run = |it| engine::run(engine, globals.scope(), &it, &self.text);
                is_alike(it, &parsed.and_then(run))
            }),
            "`{}` is {found:?} in its tree, and another value in Rhai",
            self.text
        );
        let value = match found {
            Some(value) => value?,
            None => self.value_by_rhai(engine, globals)?,
        };
        self.value = (!self.changes).then(|| (turn, value.clone()));
        Ok(value)
    }

    /// The value of an expression that only Rhai evaluates.
    fn value_by_rhai<H: Handle>(
        &mut self,
        engine: &Engine,
        globals: &mut Globals<H>,
    ) -> Result<Value, ScriptError> {
        let parsed = match self.ast.take() {
            Some(parsed) => parsed,
            None => Box::new(engine::compile(engine, &self.text)?),
        };
        engine::run(engine, globals.scope(), self.ast.insert(parsed), &self.text)
    }
}

/// The value of a tree; `None` if only Rhai can compute it.
fn without_engine<H: Handle>(
    tree: &Expr,
    globals: &Globals<H>,
) -> Option<Result<Value, ScriptError>> {
    match tree.value(globals) {
        Ok(value) => Value::of(value).map(Ok),
        Err(NoValue::Failed(error)) => Some(Err(error.into())),
        Err(NoValue::Beyond) => None,
    }
}

/// Whether two evaluations have the same result. Only Rhai knows where an expression failed, and facts can be longer
/// than its limits.
fn is_alike(found: &Result<Value, ScriptError>, by_rhai: &Result<Value, ScriptError>) -> bool {
    match (found, by_rhai) {
        (Err(one), Err(other)) => one.message == other.message,
        (Ok(_), Err(error)) => error.kind == ScriptErrorKind::TooLarge,
        (one, other) => one == other,
    }
}
