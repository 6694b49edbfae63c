//! What `tables.yaml` means: decision tables, each typed by its own inputs.

use serde::{Deserialize, Serialize};

use super::Expression;
use crate::script::record::Shape;
use crate::source::suggest;

/// Their file.
pub(super) const FILE: &str = "tables.yaml";

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its id.
    pub id: String,
    /// For people; may be empty.
    pub description: String,
    /// What its rows see as `given`.
    pub inputs: Shape,
    /// Values of inputs that are not given, as `name=value`.
    pub defaults: Vec<String>,
    /// The first that holds answers.
    pub rows: Vec<Row>,
    /// The answer where none holds.
    pub otherwise: Answer,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Over `given`.
    pub when: Expression,
    /// What it answers.
    pub answer: Answer,
}

/// What a table answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The answer.
    pub answer: String,
    /// Why; a template over `given`, may be empty.
    pub reason: String,
}

/// Finds the table of a name.
///
/// # Errors
/// There is none, in one sentence with the cure.
pub fn find<'t>(tables: &'t [Table], id: &str) -> Result<&'t Table, String> {
    let known: Vec<&str> = tables.iter().map(|it| it.id.as_str()).collect();
    tables.iter().find(|it| it.id == id).ok_or_else(|| {
        let help = suggest::did_you_mean(id, &known).unwrap_or_else(|| known.join(", "));
        format!("there is no table `{id}`; {help}")
    })
}
