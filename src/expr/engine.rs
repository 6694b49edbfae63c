//! The engine that expressions run in: Rhai, of which everything is taken away but values and the members of
//! facts. Lives here: setting it up, parsing, running, and where its errors are in the text. May not live
//! here: which expressions need no engine, what facts are.

use rhai::{AST, Dynamic, Engine, EvalAltResult, OptimizationLevel, Position, Scope};

use super::record::FactRecord;
use super::table::Handle;
use super::types::Type;
use super::value::Value;
use super::{FactError, ScriptError, ScriptErrorKind, builtins};
use crate::limits;

/// An engine whose expressions see facts.
pub(super) fn of_facts<H: Handle>() -> Engine {
    let mut engine = sandbox();
    builtins::register(&mut engine);
    register_members::<H>(&mut engine);
    engine
}

/// An engine whose expressions see one record.
pub(super) fn of_record() -> Engine {
    let mut engine = sandbox();
    builtins::register(&mut engine);
    engine.register_indexer_get(|record: &mut FactRecord, name: &str| {
        record.value(name).map_err(Box::<EvalAltResult>::from)
    });
    engine
}

/// An engine that can do nothing: no packages, no modules, no output, no closures, no loops.
pub(super) fn sandbox() -> Engine {
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
pub(super) fn compile(engine: &Engine, text: &str) -> Result<AST, ScriptError> {
    if text.len() > limits::EXPRESSION_BYTES_MAX {
        let message = format!("longer than {} bytes", limits::EXPRESSION_BYTES_MAX);
        return Err(ScriptError { kind: ScriptErrorKind::Syntax, message, offset: None });
    }
    engine.compile_expression(text).map_err(|error| ScriptError {
        kind: ScriptErrorKind::Syntax,
        message: lower_first(&error.0.to_string()),
        offset: byte_offset(text, error.1),
    })
}

/// Checks that a text is one expression of Rhai.
///
/// # Errors
/// Its length, or the first syntax error with its place.
pub(super) fn check_syntax(text: &str) -> Result<(), ScriptError> {
    thread_local! {
        /// One parser for all expressions: building one takes longer than parsing with it.
        static PARSER: Engine = sandbox();
    }
    PARSER.with(|it| compile(it, text)).map(drop)
}

fn register_members<H: Handle>(engine: &mut Engine) {
    let failed = Box::<EvalAltResult>::from;
    engine.register_indexer_get(move |object: &mut H, name: &str| {
        object.value(name, &[]).map_err(failed)
    });
    let mut done = std::collections::BTreeSet::new();
    for row in H::TABLE.rows().filter(|it| matches!(it.owner, Type::Object(_))) {
        let Some(params) = row.params else { continue };
        if !done.insert((row.name, params.len())) {
            continue;
        }
        let name = row.name;
        match params.len() {
            0 => {
                engine.register_fn(name, move |it: &mut H| it.value(name, &[]).map_err(failed));
            }
            _ => {
                engine.register_fn(name, move |it: &mut H, arg: Dynamic| {
                    it.value(name, &[arg]).map_err(failed)
                });
            }
        }
    }
}

/// The value of what was parsed.
///
/// # Errors
/// What went wrong while it ran, or a value that is of no use.
pub(super) fn run(
    engine: &Engine,
    scope: &mut Scope<'_>,
    parsed: &AST,
    text: &str,
) -> Result<Value, ScriptError> {
    let result = engine.eval_ast_with_scope::<Dynamic>(scope, parsed);
    let value = result.map_err(|error| runtime_error(&error, text))?;
    Value::of(value).ok_or_else(|| ScriptError {
        kind: ScriptErrorKind::Type,
        message: "the value is not a boolean, a number, a text, or a list".to_owned(),
        offset: Some(0),
    })
}

fn runtime_error(error: &EvalAltResult, text: &str) -> ScriptError {
    let offset = byte_offset(text, error.position());
    let inner = error.unwrap_inner();
    if let EvalAltResult::ErrorRuntime(value, _) = inner {
        let fact = value.clone().try_cast::<FactError>();
        let error = fact.unwrap_or_else(|| FactError::Unavailable(value.to_string()));
        return ScriptError { offset, ..error.into() };
    }
    let kind = if matches!(inner, EvalAltResult::ErrorDataTooLarge(..)) {
        ScriptErrorKind::TooLarge
    } else {
        ScriptErrorKind::Evaluation
    };
    let mut message = inner.to_string();
    if let Some(at) = message.rfind(" (line ") {
        message.truncate(at);
    }
    ScriptError { kind, message: lower_first(&message), offset }
}

/// Rhai counts lines and characters from 1; sources are cut by bytes.
pub(super) fn byte_offset(text: &str, position: Position) -> Option<usize> {
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
