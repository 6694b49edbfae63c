//! Questions for one of several things, as one question for each of them.

use policyd_fact_table::ast::{Expr, ExprKind};

/// Functions that hold where one of the texts of their list does.
#[rustfmt::skip]
const ANY_OF: [&str; 12] = [
    ".has(", ".names(", ".any(", ".any_in(", ".sets(", ".reads(", ".writes(", ".deletes(",
    ".changes(", ".touches(", ".fed_by(", ".wrapped_by(",
];

/// The same condition, with each question about one of several texts as a question about each of them:
/// `program.has(["-f", "--force"])` follows from `program.has(["-f"])`.
pub(crate) fn one_by_one(term: &Expr) -> Expr {
    let all = |items: &[Expr]| items.iter().map(one_by_one).collect::<Vec<_>>();
    let kind = match &term.kind {
        ExprKind::And(items) => ExprKind::And(all(items)),
        ExprKind::Or(items) => ExprKind::Or(all(items)),
        ExprKind::Not(inner) => ExprKind::Not(Box::new(one_by_one(inner))),
        ExprKind::Fact(path, arguments) => match asked_each(path, arguments) {
            Some(each) => ExprKind::Or(each.map(|kind| Expr { kind, ..term.clone() }).collect()),
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

/// The question about each text of a list, where a path ends in one about any of them.
fn asked_each<'t>(
    path: &'t str,
    arguments: &'t [Expr],
) -> Option<impl Iterator<Item = ExprKind> + 't> {
    let [Expr { kind: ExprKind::List(items), .. }] = arguments else { return None };
    let (call, _) = path.split_once('[').filter(|_| items.len() > 1 && path.ends_with("])"))?;
    ANY_OF.iter().any(|it| call.ends_with(it)).then(|| {
        items.iter().map(move |it| {
            ExprKind::Fact(format!("{call}[{}])", it.canonical()).into(), Vec::new())
        })
    })
}
