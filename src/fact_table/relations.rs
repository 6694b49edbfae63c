//! What facts say of each other, whatever happens in a session.

use super::ast::{Expr, ExprKind, Relation as Operator};
use super::paths::{self, Fact};
use super::types::Subject;

/// Something that is always true of two facts.
#[derive(Debug)]
pub struct Relation {
    /// Types of their owners.
    pub owners: [Subject; 2],
    /// Whose members the two are.
    pub kin: OwnerRelation,
    /// The names of the two.
    pub members: [&'static str; 2],
    /// What is true of them.
    pub holds: Holds,
}

/// Whose members two facts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerRelation {
    /// Of one owner.
    Same,
    /// The first of a part of what the second is of: `files.kind("code")` and `files`.
    Part,
}

/// What is true of two facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The first, the second, or both are so.
    Either(Is, Is),
    /// The first is at most the second.
    AtMost,
}

/// How a fact can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    /// True.
    True,
    /// False.
    False,
    /// 0.
    Zero,
    /// Another number than 0.
    NotZero,
    /// A number above 0.
    Positive,
    /// The empty text.
    Empty,
}

const fn either(owner: Subject, members: [&'static str; 2], one: Is, other: Is) -> Relation {
    let holds = Holds::Either(one, other);
    Relation { owners: [owner; 2], kin: OwnerRelation::Same, members, holds }
}

const fn at_most(owner: Subject, members: [&'static str; 2]) -> Relation {
    let (kin, holds) = (OwnerRelation::Same, Holds::AtMost);
    Relation { owners: [owner; 2], kin, members, holds }
}

/// A number of a part is at most one of the whole.
const fn part(owners: [Subject; 2], members: [&'static str; 2]) -> Relation {
    Relation { owners, kin: OwnerRelation::Part, members, holds: Holds::AtMost }
}

/// All of them.
pub const ALWAYS: &[Relation] = &[
    either(Subject::CommandKind, ["passed", "failed"], Is::False, Is::False),
    either(Subject::CommandKind, ["passed", "count"], Is::False, Is::Positive),
    either(Subject::CommandKind, ["failed", "count"], Is::False, Is::Positive),
    either(Subject::CommandKind, ["passed", "last_passed_at"], Is::False, Is::Positive),
    either(Subject::Command, ["exists", "text"], Is::True, Is::Empty),
    either(Subject::Command, ["exists", "at"], Is::True, Is::Zero),
    either(Subject::Command, ["exists", "at"], Is::False, Is::Positive),
    either(Subject::Commands, ["ran", "total"], Is::False, Is::Positive),
    at_most(Subject::Files, ["count", "edits"]),
    either(Subject::Files, ["count", "last_at"], Is::Positive, Is::Zero),
    either(Subject::Files, ["count", "last_at"], Is::Zero, Is::Positive),
    at_most(Subject::Todos, ["open", "total"]),
    at_most(Subject::Tools, ["count", "total"]),
    either(Subject::Probe, ["ok", "code"], Is::False, Is::Zero),
    either(Subject::Probe, ["ok", "code"], Is::True, Is::NotZero),
    either(Subject::Probe, ["ok", "error"], Is::False, Is::Empty),
    part([Subject::CommandKind, Subject::Commands], ["count", "total"]),
    part([Subject::Files, Subject::Files], ["count", "count"]),
    part([Subject::Files, Subject::Files], ["edits", "edits"]),
    part([Subject::Files, Subject::Files], ["last_at", "last_at"]),
];

impl Is {
    /// The condition that a fact is so.
    pub(super) fn of(self, fact: &Expr) -> Expr {
        let compared = |operator, value| {
            let value = Expr::new(value, fact.range.clone());
            ExprKind::Compare(operator, Box::new(fact.clone()), Box::new(value))
        };
        let kind = match self {
            Self::True => return fact.clone(),
            Self::False => ExprKind::Not(Box::new(fact.clone())),
            Self::Zero => compared(Operator::Equal, ExprKind::Int(0)),
            Self::NotZero => compared(Operator::NotEqual, ExprKind::Int(0)),
            Self::Positive => compared(Operator::Greater, ExprKind::Int(0)),
            Self::Empty => compared(Operator::Equal, ExprKind::Text(String::new())),
        };
        Expr::new(kind, fact.range.clone())
    }
}

impl Holds {
    /// The condition that it is true of two facts.
    pub(super) fn of(self, one: &Expr, other: &Expr) -> Expr {
        let kind = match self {
            Self::Either(first, second) => ExprKind::Or(vec![first.of(one), second.of(other)]),
            Self::AtMost => {
                ExprKind::Compare(Operator::AtMost, Box::new(one.clone()), Box::new(other.clone()))
            }
        };
        Expr::new(kind, one.range.clone())
    }
}

/// A fact that has an owner.
struct OwnedFact<'t> {
    expr: &'t Expr,
    owner: Fact<'t>,
    member: &'t str,
}

impl<'t> OwnedFact<'t> {
    fn new(expr: &'t Expr) -> Option<Self> {
        let fact = expr.fact()?;
        Some(Self { expr, owner: fact.owner()?, member: fact.last()?.name })
    }
}

impl Relation {
    /// Whether it speaks of two facts.
    fn speaks_of(&self, one: &OwnedFact<'_>, other: &OwnedFact<'_>) -> bool {
        let kin = match self.kin {
            OwnerRelation::Same => one.owner == other.owner,
            OwnerRelation::Part => one.owner != other.owner && one.owner.is_within(other.owner),
        };
        kin && self.members == [one.member, other.member]
            && [one, other].map(|it| paths::type_of(it.owner))
                == self.owners.map(|it| Some(it.as_type()))
    }
}

/// Returns what `relations` say of these facts.
#[must_use]
pub fn between(facts: &[&Expr], relations: &[Relation]) -> Vec<Expr> {
    let facts: Vec<OwnedFact<'_>> = facts.iter().filter_map(|it| OwnedFact::new(it)).collect();
    let mut found = Vec::new();
    for one in &facts {
        for relation in relations.iter().filter(|it| it.members[0] == one.member) {
            let others = facts.iter().filter(|it| relation.speaks_of(one, it));
            found.extend(others.map(|it| relation.holds.of(one.expr, it.expr)));
        }
    }
    found
}
