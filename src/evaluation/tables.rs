//! Evaluates a decision table: the first row whose condition is true gives the answer.

use policyd_fact_table::record::FactRecord;
use policyd_fact_table::watch::CoverageWatch;
use policyd_fact_table::words::{self, WordError};
use policyd_fact_table::{FactEvaluator, ScriptError, template};
use policyd_policy::SourceLocation;
use policyd_policy::tables::Table;

/// Result of a decision table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDecision {
    pub answer: String,
    /// Reason. Can be empty.
    pub reason: String,
    /// Number of the matching row, from 1. `None` if no row matches.
    pub row: Option<usize>,
}

/// Parses the inputs of a table, given as `name=value`. Missing inputs get their defaults.
///
/// # Errors
/// [`WordError`] for an unknown input or an invalid value.
pub fn given(table: &Table, said: &[String]) -> Result<FactRecord, WordError> {
    let is_given = |default: &&String| {
        let name = default.split('=').next().unwrap_or_default();
        said.iter().any(|it| it.split('=').next() == Some(name))
    };
    let defaults = table.defaults.iter().filter(|it| !is_given(it));
    let all: Vec<String> = defaults.chain(said).cloned().collect();
    words::record(&table.inputs, FactRecord::new(&table.inputs), &all)
}

/// Returns the inputs that are not given and have no default.
pub fn missing<'t>(table: &'t Table, said: &[String]) -> Vec<&'t str> {
    let all = || table.defaults.iter().chain(said).filter_map(|it| it.split('=').next());
    let names = table.inputs.fields.iter().map(|it| it.name.as_str());
    names.filter(|name| !all().any(|it| it == *name)).collect()
}

/// Evaluates a table.
///
/// # Errors
/// The location and the error of a row that could not be evaluated, before any row matched.
pub fn decide(
    table: &Table,
    given: FactRecord,
    watch: CoverageWatch<'_>,
) -> Result<TableDecision, (SourceLocation, ScriptError)> {
    let mut evaluator = FactEvaluator::about(given).watched_by(watch);
    let mut found = None;
    for (number, row) in (1_usize..).zip(&table.rows) {
        match evaluator.eval_bool(&row.when) {
            Ok(true) => {
                found = Some((number, &row.answer));
                break;
            }
            Ok(false) => {}
            Err(error) => return Err((SourceLocation::clone(&row.when.place), error)),
        }
    }
    let (row, answer) = match found {
        Some((number, answer)) => (Some(number), answer),
        None => (None, &table.otherwise),
    };
    let reason = template::render(&answer.reason, &mut evaluator);
    Ok(TableDecision { answer: answer.answer.clone(), reason, row })
}
