//! Facts of expressions, looked up in the table of facts.

use policyd_expr::paths;
pub use policyd_expr::paths::{Fact, FactStep, Number};

use super::members::Member;
use super::names::TableOfFacts;
use super::types::Type;

/// Returns the type of a fact. `None` if the table does not have it.
#[must_use]
pub fn type_of(fact: Fact<'_>) -> Option<Type> {
    fact.result(&TableOfFacts)
}

/// Returns the row of the last name of a fact.
#[must_use]
pub fn member(fact: Fact<'_>) -> Option<&'static Member> {
    fact.member(&TableOfFacts)
}

/// Returns the row of the last of names such as `commands.kind.count`.
#[must_use]
pub fn member_of_names(names: &str) -> Option<&'static Member> {
    paths::find(names.split('.'), &TableOfFacts)?.1
}
