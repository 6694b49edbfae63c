//! Facts by the text that names them, looked up in the table of facts.

use policyd_expr::paths;
pub use policyd_expr::paths::{Number, closed_values, number, owner_and_member};

use super::members::Member;
use super::names::TableOfFacts;
use super::types::Type;

/// The type of a fact; `None` where the table does not have it.
#[must_use]
pub fn type_of(path: &str) -> Option<Type> {
    paths::type_of(path, &TableOfFacts)
}

/// The row of the last name of a path.
#[must_use]
pub fn last_member(path: &str) -> Option<&'static Member> {
    paths::last_member(path, &TableOfFacts)
}
