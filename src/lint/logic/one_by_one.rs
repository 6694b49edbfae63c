//! Questions for one of several things, as one question for each of them.

use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_fact_table::paths::{self, Fact};

/// The same condition, with each question about one of several texts as a question about each of them:
/// `program.has(["-f", "--force"])` follows from `program.has(["-f"])`.
pub(crate) fn one_by_one(term: &Expr) -> Expr {
    let all = |items: &[Expr]| items.iter().map(one_by_one).collect::<Vec<_>>();
    let kind = match &term.kind {
        ExprKind::And(items) => ExprKind::And(all(items)),
        ExprKind::Or(items) => ExprKind::Or(all(items)),
        ExprKind::Not(inner) => ExprKind::Not(Box::new(one_by_one(inner))),
        ExprKind::Fact(..) => match term.fact().and_then(asked_each) {
            Some(each) => {
                ExprKind::Or(each.into_iter().map(|kind| Expr { kind, ..term.clone() }).collect())
            }
            None => term.kind.clone(),
        },
        other @ (ExprKind::Compare(..)
        | ExprKind::In(..)
        | ExprKind::Arithmetic(..)
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Decimal(_)
        | ExprKind::Text(_)
        | ExprKind::List(_)
        | ExprKind::Negative(_)
        | ExprKind::Member(..)
        | ExprKind::If(_)
        | ExprKind::Other(..)) => other.clone(),
    };
    Expr { kind, ..term.clone() }
}

/// The question about each item of a list, if a fact asks about any of them.
fn asked_each(fact: Fact<'_>) -> Option<Vec<ExprKind>> {
    let [Expr { kind: ExprKind::List(items), .. }] = fact.last()?.arguments else { return None };
    // What is behind `!` is left out of the others.
    let is_exclusion = |it: &Expr| matches!(&it.kind, ExprKind::Text(it) if it.starts_with('!'));
    if items.len() < 2 || items.iter().any(is_exclusion) || !paths::member(fact)?.asks_for_any() {
        return None;
    }
    let each = items.iter().map(|item| {
        let list = Expr { kind: ExprKind::List(vec![item.clone()]), ..item.clone() };
        fact.asking(list)
    });
    each.collect()
}
