//! Facts of expressions, looked up in the table of facts.

use policyd_expr::paths;
pub use policyd_expr::paths::{Fact, FactStep, Number};

use super::members;
use super::names::TableOfFacts;
use super::types::{NameClass, Names, Type};
use policyd_expr::table::Member;
use policyd_facts::call::CallEffects;

/// Returns the type of a fact. `None` if the table does not have it.
#[must_use]
pub fn type_of(fact: Fact<'_>) -> Option<Type> {
    paths::find(fact.names(), &TableOfFacts, None).map(|it| it.0)
}

/// Returns the row of the last name of a fact.
#[must_use]
pub fn member(fact: Fact<'_>) -> Option<&'static Member> {
    paths::find(fact.names(), &TableOfFacts, None)?.1
}

/// Returns the kind of names that the values of a fact with these names are.
#[must_use]
pub fn ids_of_names(fact: &str, names: &Names) -> Option<NameClass> {
    match names.record.as_ref().and_then(|it| it.at(fact)) {
        Some(field) => field.ids,
        None => member_of_names(fact)?.ids,
    }
}

/// Returns the row of the last of names such as `commands.kind.count`.
#[must_use]
pub fn member_of_names(names: &str) -> Option<&'static Member> {
    paths::find(names.split('.'), &TableOfFacts, None)?.1
}

/// Returns the effects of a call without which a fact is false. `None` if it can be true without any.
#[must_use]
pub fn effects(fact: Fact<'_>) -> Option<CallEffects> {
    members::row_of(type_of(fact.owner()?)?, fact.last()?.name)?.effects
}
