//! Asks a decision table: the first row that holds answers.

use crate::policy::Place;
use crate::policy::tables::Table;
use crate::script::record::Record;
use crate::script::watch::Watching;
use crate::script::{Evaluator, ScriptError, template, words};

/// What a table answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The answer.
    pub answer: String,
    /// Why; may be empty.
    pub reason: String,
    /// Number of the row that holds, from 1; none where none does.
    pub row: Option<usize>,
}

/// A table with what it is asked, `name=value` each.
///
/// # Errors
/// An input or a value that does not fit, in one sentence with the cure.
pub fn given(table: &Table, said: &[String]) -> Result<Record, String> {
    let is_given = |default: &&String| {
        let name = default.split('=').next().unwrap_or_default();
        said.iter().any(|it| it.split('=').next() == Some(name))
    };
    let defaults = table.defaults.iter().filter(|it| !is_given(it));
    let all: Vec<String> = defaults.chain(said).cloned().collect();
    words::record(&table.inputs, Record::new(&table.inputs), &all)
}

/// Inputs that are neither given nor have a default.
pub fn missing<'t>(table: &'t Table, said: &[String]) -> Vec<&'t str> {
    let all = || table.defaults.iter().chain(said).filter_map(|it| it.split('=').next());
    let names = table.inputs.fields.iter().map(|it| it.name.as_str());
    names.filter(|name| !all().any(|it| it == *name)).collect()
}

/// What a table answers.
///
/// # Errors
/// A row before the first one that holds could not be evaluated: where it is, and why.
pub fn decide(
    table: &Table,
    given: Record,
    watch: Watching<'_>,
) -> Result<Decided, (Place, ScriptError)> {
    let mut evaluator = Evaluator::about(given).watched_by(watch);
    let mut found = None;
    for (number, row) in (1_usize..).zip(&table.rows) {
        match evaluator.eval_bool(&row.when) {
            Ok(true) => {
                found = Some((number, &row.answer));
                break;
            }
            Ok(false) => {}
            Err(error) => return Err((Place::clone(&row.when.place), error)),
        }
    }
    let (row, answer) = match found {
        Some((number, answer)) => (Some(number), answer),
        None => (None, &table.otherwise),
    };
    let reason = template::render(&answer.reason, &mut evaluator);
    Ok(Decided { answer: answer.answer.clone(), reason, row })
}
