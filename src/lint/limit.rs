//! What one fact must be: intervals of numbers, sets of texts, truth values, orders; and a value that is so.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use policyd_fact_table::ast::{ExprKind, Relation};

/// What one fact must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Constraint {
    /// A truth value.
    Truth(bool),
    /// A number between these, and none of those.
    Number { least: i64, greatest: i64, not: BTreeSet<i64> },
    /// A number with a fraction between these.
    Decimal { least: RangeEnd, greatest: RangeEnd },
    /// One of these texts (any, where absent), and none of those.
    Text { only: Option<BTreeSet<String>>, not: BTreeSet<String> },
    /// How one value stands to another: less, equal, greater.
    Order { less: bool, equal: bool, greater: bool },
}

/// An end of a range, and whether it is left out itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RangeEnd {
    at: f64,
    open: bool,
}

/// Ends are never no number.
impl Eq for RangeEnd {}

pub(super) const fn order(relation: Relation) -> Constraint {
    Constraint::Order {
        less: matches!(relation, Relation::Less | Relation::AtMost | Relation::NotEqual),
        equal: matches!(relation, Relation::Equal | Relation::AtMost | Relation::AtLeast),
        greater: matches!(relation, Relation::Greater | Relation::AtLeast | Relation::NotEqual),
    }
}

/// A value compared with itself.
pub(super) const fn same(relation: Relation) -> Constraint {
    let equal = matches!(relation, Relation::Equal | Relation::AtMost | Relation::AtLeast);
    Constraint::Order { less: false, equal, greater: false }
}

/// Two constants compared: an order that is possible, or not.
pub(super) fn constants(relation: Relation, one: &ExprKind, other: &ExprKind) -> Constraint {
    let ordering = match (one, other) {
        (ExprKind::Int(one), ExprKind::Int(other)) => one.cmp(other),
        (ExprKind::Text(one), ExprKind::Text(other)) => one.cmp(other),
        (ExprKind::Bool(one), ExprKind::Bool(other)) => one.cmp(other),
        _ => return order(relation),
    };
    let Constraint::Order { less, equal, greater } = order(relation) else {
        return order(relation);
    };
    Constraint::Order {
        less: less && ordering.is_lt(),
        equal: equal && ordering.is_eq(),
        greater: greater && ordering.is_gt(),
    }
}

pub(super) fn decimal(relation: Relation, value: f64) -> Constraint {
    let (at, open) = (|at| RangeEnd { at, open: false }, |at| RangeEnd { at, open: true });
    let (least, greatest) = (at(f64::NEG_INFINITY), at(f64::INFINITY));
    match relation {
        Relation::Equal => Constraint::Decimal { least: at(value), greatest: at(value) },
        Relation::NotEqual => Constraint::Decimal { least, greatest },
        Relation::Less => Constraint::Decimal { least, greatest: open(value) },
        Relation::AtMost => Constraint::Decimal { least, greatest: at(value) },
        Relation::Greater => Constraint::Decimal { least: open(value), greatest },
        Relation::AtLeast => Constraint::Decimal { least: at(value), greatest },
    }
}

/// The end that leaves less of a range over, of two on one side of it.
fn narrower(one: RangeEnd, other: RangeEnd, upper: bool) -> RangeEnd {
    let less = if upper { one.at < other.at } else { one.at > other.at };
    let same = one.at.total_cmp(&other.at).is_eq();
    if less || (same && one.open) { one } else { other }
}

pub(super) fn number((least, greatest): (i64, i64), relation: Relation, value: i64) -> Constraint {
    let mut not = BTreeSet::new();
    let (low, high) = match relation {
        Relation::Equal => (value, value),
        Relation::NotEqual => {
            not.insert(value);
            (least, greatest)
        }
        Relation::Less => (least, value.saturating_sub(1)),
        Relation::AtMost => (least, value),
        Relation::Greater => (value.saturating_add(1), greatest),
        Relation::AtLeast => (value, greatest),
    };
    Constraint::Number { least: low.max(least), greatest: high.min(greatest), not }
}

/// Both limits at once; nothing where they cannot be of one fact.
pub(super) fn both(one: &Constraint, other: &Constraint) -> Option<Constraint> {
    match (one, other) {
        (Constraint::Truth(one), Constraint::Truth(other)) => {
            (one == other).then_some(Constraint::Truth(*one))
        }
        (
            Constraint::Number { least, greatest, not },
            Constraint::Number { least: low, greatest: high, not: more },
        ) => Some(Constraint::Number {
            least: *least.max(low),
            greatest: *greatest.min(high),
            not: not.union(more).copied().collect(),
        }),
        (
            Constraint::Decimal { least, greatest },
            Constraint::Decimal { least: low, greatest: high },
        ) => Some(Constraint::Decimal {
            least: narrower(*least, *low, false),
            greatest: narrower(*greatest, *high, true),
        }),
        (Constraint::Text { only, not }, Constraint::Text { only: some, not: more }) => {
            let only = match (only, some) {
                (Some(one), Some(other)) => Some(one.intersection(other).cloned().collect()),
                (one, other) => one.clone().or_else(|| other.clone()),
            };
            Some(Constraint::Text { only, not: not.union(more).cloned().collect() })
        }
        (
            Constraint::Order { less, equal, greater },
            Constraint::Order { less: l, equal: e, greater: g },
        ) => Some(Constraint::Order {
            less: *less && *l,
            equal: *equal && *e,
            greater: *greater && *g,
        }),
        // A fact has one type; a faulty expression may give it two.
        _ => Some(one.clone()),
    }
}

/// Whether numbers within two limits can stand to each other as a third says.
pub(super) const fn in_order(one: &Constraint, other: &Constraint, stand: &Constraint) -> bool {
    let (
        Constraint::Number { least, greatest, .. },
        Constraint::Number { least: low, greatest: high, .. },
        Constraint::Order { less, equal, greater },
    ) = (one, other, stand)
    else {
        return true;
    };
    (*less && *least < *high)
        || (*equal && *least <= *high && *low <= *greatest)
        || (*greater && *greatest > *low)
}

/// A value within a limit.
pub(super) enum ExampleValue<'l> {
    Truth(bool),
    Number(i64),
    Decimal(f64),
    Text(&'l str),
    AnotherText,
    AsCompared,
}

impl Display for ExampleValue<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Decimal(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::AnotherText => f.write_str("another text"),
            Self::AsCompared => f.write_str("as compared"),
        }
    }
}

/// A value within a limit, where there is one.
pub(super) fn value(limit: &Constraint) -> Option<ExampleValue<'_>> {
    match limit {
        Constraint::Truth(value) => Some(ExampleValue::Truth(*value)),
        Constraint::Number { least, greatest, .. } if least > greatest => None,
        Constraint::Number { least, greatest, not } => {
            let from = if *least <= 0 && *greatest >= 0 { 0 } else { *least };
            let up =
                (from..=*greatest).take(not.len().saturating_add(1)).find(|it| !not.contains(it));
            let down = || {
                (*least..=from).rev().take(not.len().saturating_add(1)).find(|it| !not.contains(it))
            };
            up.or_else(down).map(ExampleValue::Number)
        }
        Constraint::Decimal { least, greatest } => {
            between(*least, *greatest).map(ExampleValue::Decimal)
        }
        Constraint::Text { only: Some(only), not } => {
            only.difference(not).next().map(|it| ExampleValue::Text(it))
        }
        Constraint::Text { only: None, not } => {
            let free = ["", "x", "y"].into_iter().find(|it| !not.contains(*it));
            Some(free.map_or(ExampleValue::AnotherText, ExampleValue::Text))
        }
        Constraint::Order { less, equal, greater } => {
            (*less || *equal || *greater).then_some(ExampleValue::AsCompared)
        }
    }
}

/// A number of a range, where there is one: an end of it, or what lies in the middle.
fn between(least: RangeEnd, greatest: RangeEnd) -> Option<f64> {
    if least.at > greatest.at {
        return None;
    }
    if !least.at.is_finite() && !greatest.at.is_finite() {
        return Some(0.0);
    }
    let (low, high) = (least.at, greatest.at);
    let middle = low.midpoint(high);
    let fits = |it: &f64| {
        let above = *it > low || (!least.open && *it >= low);
        let below = *it < high || (!greatest.open && *it <= high);
        it.is_finite() && above && below
    };
    [low, high, low + 1.0, high - 1.0, middle, low.next_up(), high.next_down()]
        .into_iter()
        .find(fits)
}
