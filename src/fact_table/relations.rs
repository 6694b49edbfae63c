//! What facts say of each other, whatever happens in a session: conditions that are always true.

use super::ast::{Expr, ExprKind, Relation as Operator};
pub use super::invariant::{Invariant, Is};
use super::members;
use super::paths::{self, Fact};
use super::row::FactRow;
use policyd_expr::table::Member;

/// The condition that one of two facts is at most the other.
pub(super) fn at_most(one: &Expr, other: &Expr) -> Expr {
    let (one, range) = (Box::new(one.clone()), one.range.clone());
    Expr::new(ExprKind::Compare(Operator::AtMost, one, Box::new(other.clone())), range)
}

/// The condition that one of two conditions is true.
pub(super) fn either(one: Expr, other: Expr) -> Expr {
    let range = one.range.clone();
    Expr::new(ExprKind::Or(vec![one, other]), range)
}

/// A fact that has an owner, and its row.
struct OwnedFact<'t> {
    expr: &'t Expr,
    owner: Fact<'t>,
    row: &'static FactRow,
}

impl<'t> OwnedFact<'t> {
    fn new(expr: &'t Expr) -> Option<Self> {
        let fact = expr.fact()?;
        let owner = fact.owner()?;
        let row = members::row_of(paths::type_of(owner)?, fact.last()?.name)?;
        Some(Self { expr, owner, row })
    }

    /// The condition that an invariant of the fact is about another one.
    fn condition(&self, invariant: Invariant, other: &Self) -> Option<Expr> {
        let of_owner = |name: &str| self.owner == other.owner && other.row.member.name == name;
        let of_whole = |name: &str| {
            self.owner != other.owner
                && self.owner.is_within(other.owner)
                && other.row.member.name == name
        };
        match invariant {
            Invariant::Either(is, name, so) => {
                of_owner(name).then(|| either(is.of(self.expr), so.of(other.expr)))
            }
            Invariant::AtMost(name) => of_owner(name).then(|| at_most(self.expr, other.expr)),
            Invariant::AtMostOfWhole(name) => {
                of_whole(name).then(|| at_most(self.expr, other.expr))
            }
            // By the argument, in `wider`.
            Invariant::Implies(_) => None,
        }
    }
}

/// A condition that is always true, and the invariant that says so.
#[derive(Debug)]
pub struct AlwaysTrue {
    /// The row that has the invariant.
    pub row: &'static Member,
    /// The invariant.
    pub invariant: Invariant,
    /// The condition.
    pub condition: Expr,
}

/// Returns the invariants of all rows.
pub fn invariants() -> impl Iterator<Item = (&'static Member, Invariant)> {
    members::rows().flat_map(|row| row.invariants.iter().map(|it| (&row.member, *it)))
}

/// Returns what is always true of these facts.
#[must_use]
pub fn between(facts: &[&Expr]) -> Vec<AlwaysTrue> {
    let facts: Vec<OwnedFact<'_>> = facts.iter().filter_map(|it| OwnedFact::new(it)).collect();
    let mut found = Vec::new();
    for one in &facts {
        for invariant in one.row.invariants {
            let conditions = facts.iter().filter_map(|it| one.condition(*invariant, it));
            let (row, invariant) = (&one.row.member, *invariant);
            found.extend(conditions.map(|condition| AlwaysTrue { row, invariant, condition }));
        }
    }
    found
}
