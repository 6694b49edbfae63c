//! What one part of a condition says of one fact: the fact, and what it must be.

use std::collections::BTreeSet;

use super::topic::Topic;
use crate::limit::{Constraint, constants, decimal, number, order, same};
use policyd_fact_table::ast::{Expr, ExprKind, Relation};
use policyd_fact_table::paths::Number;
use policyd_fact_table::types::Names;

/// What a part says where it holds, or where it does not.
pub(super) fn atom<'t>(term: &'t Expr, holds: bool, names: &Names) -> (Topic<'t>, Constraint) {
    if let ExprKind::Compare(relation, one, other) = &term.kind {
        let relation = if holds { *relation } else { relation.negated() };
        return comparison(relation, one, other, names);
    }
    let member = if let ExprKind::In(item, list) = &term.kind {
        membership(item, list, holds, names)
    } else {
        None
    };
    member.unwrap_or_else(|| (Topic::of(term), Constraint::Truth(holds)))
}

fn comparison<'t>(
    relation: Relation,
    one: &'t Expr,
    other: &'t Expr,
    names: &Names,
) -> (Topic<'t>, Constraint) {
    match (&one.kind, &other.kind) {
        (
            ExprKind::Int(_) | ExprKind::Text(_) | ExprKind::Bool(_),
            ExprKind::Int(_) | ExprKind::Text(_) | ExprKind::Bool(_),
        ) => (Topic::statement(one, relation, other), constants(relation, &one.kind, &other.kind)),
        (ExprKind::Int(_) | ExprKind::Decimal(_) | ExprKind::Text(_) | ExprKind::Bool(_), _)
            if !matches!(other.kind, ExprKind::Decimal(_)) =>
        {
            comparison(relation.mirrored(), other, one, names)
        }
        (_, ExprKind::Int(value)) => {
            let known = one.fact().map_or(Number::ANY, |it| it.number(names));
            let limit = if known.is_decimal {
                // Beyond what a fraction tells apart, anything may be.
                let value = i32::try_from(*value).map(f64::from);
                let anything = decimal(Relation::NotEqual, 0.0);
                value.map_or(anything, |it| decimal(relation, it))
            } else {
                number(known.range, relation, *value)
            };
            (Topic::of(one), limit)
        }
        (_, ExprKind::Decimal(text)) if text.parse::<f64>().is_ok_and(f64::is_finite) => {
            let value = text.parse().unwrap_or_default();
            (Topic::of(one), decimal(relation, value))
        }
        (_, ExprKind::Text(text)) => match relation {
            Relation::Equal => (Topic::of(one), texts(one, Some([text.clone()].into()), names)),
            Relation::NotEqual => {
                let Constraint::Text { only, .. } = texts(one, None, names) else {
                    return (Topic::of(one), Constraint::Truth(true));
                };
                (Topic::of(one), Constraint::Text { only, not: [text.clone()].into() })
            }
            Relation::Less | Relation::AtMost | Relation::Greater | Relation::AtLeast => {
                (Topic::statement(one, relation, other), Constraint::Truth(true))
            }
        },
        (_, ExprKind::Bool(value)) => {
            let truth = (relation == Relation::Equal) == *value;
            (Topic::of(one), Constraint::Truth(truth))
        }
        _ => {
            let (one, other) = (Topic::of(one), Topic::of(other));
            let (one, other, relation) = match one > other {
                true => (other, one, relation.mirrored()),
                false => (one, other, relation),
            };
            let limit = if one == other { same(relation) } else { order(relation) };
            (Topic::pair(&one, &other), limit)
        }
    }
}

/// The texts a fact can be, of those that are asked for.
fn texts(fact: &Expr, asked: Option<BTreeSet<String>>, names: &Names) -> Constraint {
    let closed = fact.fact().map(|it| it.closed_values(names)).unwrap_or_default();
    let closed: BTreeSet<String> = closed.into_iter().map(str::to_owned).collect();
    let only = match (asked, closed.is_empty()) {
        (asked, true) => asked,
        (None, false) => Some(closed),
        (Some(asked), false) => Some(asked.intersection(&closed).cloned().collect()),
    };
    let only = only.map(|mut only| {
        if fact.last_name() == Some("lower") {
            only.retain(|it| *it == it.to_lowercase());
        }
        only
    });
    Constraint::Text { only, not: BTreeSet::new() }
}

fn membership<'t>(
    item: &'t Expr,
    list: &Expr,
    holds: bool,
    names: &Names,
) -> Option<(Topic<'t>, Constraint)> {
    let ExprKind::List(items) = &list.kind else { return None };
    let constant =
        |it: &Expr| if let ExprKind::Text(text) = &it.kind { Some(text.clone()) } else { None };
    let values = items.iter().map(constant).collect::<Option<BTreeSet<_>>>()?;
    if !matches!(item.kind, ExprKind::Fact(..)) {
        return None;
    }
    let limit = if holds {
        texts(item, Some(values), names)
    } else {
        let Constraint::Text { only, .. } = texts(item, None, names) else { return None };
        Constraint::Text { only, not: values }
    };
    Some((Topic::of(item), limit))
}
