//! What a constraint is about: a fact or another part of a condition, or two of them that are compared.

use std::borrow::Cow;
use std::cmp::Ordering;

use policyd_fact_table::ast::{Expr, Relation};
use policyd_fact_table::paths::Fact;
use policyd_fact_table::wider;

/// What a constraint is about. Those with the same text are equal.
#[derive(Debug, Clone)]
pub(crate) struct Topic<'t> {
    /// The text in messages.
    pub(super) text: Cow<'t, str>,
    /// The part; `None` for a comparison whose sides have no constraint.
    part: Option<&'t Expr>,
    /// The part with which it is compared.
    other: Option<&'t Expr>,
}

impl<'t> Topic<'t> {
    /// The value of a part.
    pub(super) fn of(part: &'t Expr) -> Self {
        Self { text: part.canonical(), part: Some(part), other: None }
    }

    /// The order of the values of two parts.
    pub(super) fn pair(one: &Self, other: &Self) -> Self {
        let text = format!("{} to {}", one.text, other.text).into();
        Self { text, part: one.part, other: other.part }
    }

    /// A comparison as a whole.
    pub(super) fn statement(one: &Expr, relation: Relation, other: &Expr) -> Self {
        let text = format!("{} {} {}", one.canonical(), relation.as_str(), other.canonical());
        Self { text: text.into(), part: None, other: None }
    }

    /// The two parts of a pair.
    pub(super) fn sides(&self) -> Option<[Topic<'t>; 2]> {
        Some([Topic::of(self.part?), Topic::of(self.other?)])
    }

    /// The parts that it is about.
    pub(super) fn parts(&self) -> impl Iterator<Item = &'t Expr> {
        self.part.into_iter().chain(self.other)
    }

    fn owner(&self) -> Option<Fact<'t>> {
        let fact = self.part.filter(|_| self.other.is_none())?.fact()?;
        Some(fact.owner().unwrap_or(fact))
    }

    /// Whether a constraint on one can say something of the other: they are equal, or their owners are equal, one
    /// within the other, or chosen in the same way.
    pub(super) fn is_related(&self, other: &Self) -> bool {
        match (self.owner(), other.owner()) {
            (Some(one), Some(other)) => {
                one.is_within(other) || other.is_within(one) || wider::alike(one, other)
            }
            (None, _) | (_, None) => self == other,
        }
    }
}

impl PartialEq for Topic<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Topic<'_> {}

impl PartialOrd for Topic<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Topic<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}
