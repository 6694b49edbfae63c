//! What one part of a condition says of one fact: the fact by its name, and what it must be.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::limit::{Constraint, constants, decimal, number, order, same};
use policyd_fact_table::ast::{Expr, ExprKind, Relation};
use policyd_fact_table::paths::{self, closed_values};
use policyd_fact_table::types::Names;

/// Stands between the names of two facts that are compared.
pub(super) const BETWEEN: &str = " to ";

/// What a part says where it holds, or where it does not.
pub(super) fn atom<'t>(term: &'t Expr, holds: bool, names: &Names) -> (Cow<'t, str>, Constraint) {
    if let ExprKind::Compare(relation, one, other) = &term.kind {
        let relation = if holds { *relation } else { relation.negated() };
        return comparison(relation, one, other, names);
    }
    let member = if let ExprKind::In(item, list) = &term.kind {
        membership(item, list, holds, names)
    } else {
        None
    };
    member.unwrap_or_else(|| (term.canonical(), Constraint::Truth(holds)))
}

fn comparison<'t>(
    relation: Relation,
    one: &'t Expr,
    other: &'t Expr,
    names: &Names,
) -> (Cow<'t, str>, Constraint) {
    match (&one.kind, &other.kind) {
        (
            ExprKind::Int(_) | ExprKind::Text(_) | ExprKind::Bool(_),
            ExprKind::Int(_) | ExprKind::Text(_) | ExprKind::Bool(_),
        ) => {
            let key = format!("{} {} {}", one.canonical(), relation.as_str(), other.canonical());
            (key.into(), constants(relation, &one.kind, &other.kind))
        }
        (ExprKind::Int(_) | ExprKind::Decimal(_) | ExprKind::Text(_) | ExprKind::Bool(_), _)
            if !matches!(other.kind, ExprKind::Decimal(_)) =>
        {
            comparison(relation.mirrored(), other, one, names)
        }
        (_, ExprKind::Int(value)) => {
            let fact = one.canonical();
            let known = paths::number(&fact, names);
            let limit = if known.is_decimal {
                // Beyond what a fraction tells apart, anything may be.
                let value = i32::try_from(*value).map(f64::from);
                let anything = decimal(Relation::NotEqual, 0.0);
                value.map_or(anything, |it| decimal(relation, it))
            } else {
                number(known.range, relation, *value)
            };
            (fact, limit)
        }
        (_, ExprKind::Decimal(text)) if text.parse::<f64>().is_ok_and(f64::is_finite) => {
            let value = text.parse().unwrap_or_default();
            (one.canonical(), decimal(relation, value))
        }
        (_, ExprKind::Text(text)) => match relation {
            Relation::Equal => (one.canonical(), texts(one, Some([text.clone()].into()), names)),
            Relation::NotEqual => {
                let Constraint::Text { only, .. } = texts(one, None, names) else {
                    return (one.canonical(), Constraint::Truth(true));
                };
                (one.canonical(), Constraint::Text { only, not: [text.clone()].into() })
            }
            Relation::Less | Relation::AtMost | Relation::Greater | Relation::AtLeast => {
                let key = format!("{} {} {text:?}", one.canonical(), relation.as_str());
                (key.into(), Constraint::Truth(true))
            }
        },
        (_, ExprKind::Bool(value)) => {
            let truth = (relation == Relation::Equal) == *value;
            (one.canonical(), Constraint::Truth(truth))
        }
        _ => {
            let (mut left, mut right) = (one.canonical(), other.canonical());
            let mut relation = relation;
            if left > right {
                std::mem::swap(&mut left, &mut right);
                relation = relation.mirrored();
            }
            let limit = if left == right { same(relation) } else { order(relation) };
            (format!("{left}{BETWEEN}{right}").into(), limit)
        }
    }
}

/// The texts a fact can be, of those that are asked for.
fn texts(fact: &Expr, asked: Option<BTreeSet<String>>, names: &Names) -> Constraint {
    let path = fact.canonical();
    let closed: BTreeSet<String> =
        closed_values(&path, names).into_iter().map(str::to_owned).collect();
    let only = match (asked, closed.is_empty()) {
        (asked, true) => asked,
        (None, false) => Some(closed),
        (Some(asked), false) => Some(asked.intersection(&closed).cloned().collect()),
    };
    let only = only.map(|mut only| {
        if path.ends_with(".lower()") {
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
) -> Option<(Cow<'t, str>, Constraint)> {
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
    Some((item.canonical(), limit))
}
