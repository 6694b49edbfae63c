//! Makes the fields of records, and the names of a record.

use std::sync::Arc;

use policyd_fact_table::record::{RecordField, Shape};
use policyd_fact_table::types::{Names, Type};

/// Returns the names of a record, which its expressions see and nothing else.
pub(super) fn only(name: &str, fields: Vec<RecordField>) -> Arc<Names> {
    let shape = Shape { name: name.to_owned(), fields };
    Arc::new(Names { record: Some(Arc::new(shape)), ..Names::default() })
}

/// Returns a field with a text.
pub(crate) fn text(name: &str, doc: &str) -> RecordField {
    RecordField::new(name, Type::Text, doc)
}

/// Returns a field with a whole number.
pub(super) fn number(name: &str, doc: &str) -> RecordField {
    RecordField::new(name, Type::Int, doc)
}

/// Returns a field that is true or false.
pub(crate) fn flag(name: &str, doc: &str) -> RecordField {
    RecordField::new(name, Type::Bool, doc)
}

/// Returns a field with a decimal number.
pub(crate) fn decimal(name: &str, doc: &str) -> RecordField {
    RecordField::new(name, Type::Decimal, doc)
}

/// Returns a field with several texts.
pub(crate) fn texts(name: &str, doc: &str) -> RecordField {
    RecordField::new(name, Type::Texts, doc)
}

/// Returns the values of a field that can be empty.
pub(crate) fn or_none(values: &'static [&'static str]) -> Vec<&'static str> {
    values.iter().copied().chain([""]).collect()
}
