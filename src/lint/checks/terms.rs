//! How checks go through the expressions of a pack, and what they ask of a part of one.

use std::ops::Range;

use crate::Subject;
use crate::site::Site;
use policyd_fact_table::ast::{Expr, ExprKind, Relation};
use policyd_fact_table::paths::Fact;
use policyd_fact_table::types::{Names, PackName};

/// The expressions that the loader has nothing against: what follows from a mistake is not worth a second
/// finding.
pub(super) fn sound<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s Site<'s>> {
    subject.sites.iter().filter(|it| !subject.has_error(it))
}

/// Calls `look` with every part of every expression.
pub(super) fn each_part<'s>(
    subject: &'s Subject<'_>,
    mut look: impl FnMut(&'s Site<'s>, &'s Expr),
) {
    sound(subject).for_each(|site| site.visit(|term| look(site, term)));
}

/// The same of those that may ask for one of these members.
pub(super) fn each_part_with<'s>(
    subject: &'s Subject<'_>,
    members: &[&str],
    mut look: impl FnMut(&'s Site<'s>, &'s Expr),
) {
    let sites = sound(subject).filter(|it| it.may_name(members));
    sites.for_each(|site| site.visit(|term| look(site, term)));
}

/// The same of those that may ask one of these members for a text constant.
pub(super) fn each_part_asking<'s>(
    subject: &'s Subject<'_>,
    members: &[&str],
    mut look: impl FnMut(&'s Site<'s>, &'s Expr),
) {
    let sites = subject.sites.iter().filter(|it| it.may_ask(members) && !subject.has_error(it));
    sites.for_each(|site| site.visit(|term| look(site, term)));
}

/// The same of those with a text constant.
pub(super) fn each_part_with_text<'s>(
    subject: &'s Subject<'_>,
    mut look: impl FnMut(&'s Site<'s>, &'s Expr),
) {
    let sites = subject.sites.iter().filter(|it| it.has_text() && !subject.has_error(it));
    sites.for_each(|site| site.visit(|term| look(site, term)));
}

/// Calls `look` with the parts that make a condition hold where they do. What is negated leaves more to a guard.
pub(super) fn each_wanted<'t>(term: &'t Expr, look: &mut dyn FnMut(&'t Expr)) {
    if let ExprKind::And(items) | ExprKind::Or(items) = &term.kind {
        items.iter().for_each(|it| each_wanted(it, look));
    } else if !matches!(term.kind, ExprKind::Not(_) | ExprKind::Compare(Relation::NotEqual, ..)) {
        look(term);
    }
}

/// A text constant with its place.
pub(super) type Constant<'t> = (&'t str, &'t Range<usize>);

/// The text constant that a part is.
pub(super) fn constant(term: &Expr) -> Option<Constant<'_>> {
    if let ExprKind::Text(text) = &term.kind { Some((text, &term.range)) } else { None }
}

/// The argument of the last call of a chain, where that calls `name`.
pub(super) fn last_argument<'t>(term: &'t Expr, name: &str) -> Option<&'t Expr> {
    term.fact()?.last().filter(|it| it.name == name)?.arguments.last()
}

/// The constant that the last call of a chain asks for, where that calls `name`, and what it is asked of.
pub(super) fn asked_with<'t>(term: &'t Expr, name: &str) -> Option<(Fact<'t>, Constant<'t>)> {
    Some((term.fact()?.owner()?, constant(last_argument(term, name)?)?))
}

/// The constants that a part names as ids of a kind: those that it asks a fact for, or compares one with.
pub(super) fn named_ids<'t>(term: &'t Expr, ids: PackName, names: &Names) -> Vec<Constant<'t>> {
    let fits = |it: Fact<'_>| it.ids(names) == Some(ids.as_kind());
    match asked(term).filter(|(fact, _)| fits(*fact)) {
        Some((_, constants)) => constants,
        None => compared(term, fits),
    }
}

/// Whether a fact is this field of the input of a tool.
pub(super) fn is_input(fact: Fact<'_>, field: &str) -> bool {
    let argument = fact.last().and_then(|it| constant(it.arguments.first()?));
    fact.is("event.input") && argument.is_some_and(|it| it.0 == field)
}

/// The constants that a part compares a fact with, of those facts that are asked for: `==`, `!=`, and `in` a list.
pub(super) fn compared<'t>(
    term: &'t Expr,
    is_asked: impl Fn(Fact<'t>) -> bool,
) -> Vec<Constant<'t>> {
    let fits = |it: &'t Expr| it.fact().is_some_and(&is_asked);
    if let ExprKind::Compare(Relation::Equal | Relation::NotEqual, one, other) = &term.kind {
        let right = constant(other).filter(|_| fits(one));
        return right.or_else(|| constant(one).filter(|_| fits(other))).into_iter().collect();
    }
    if let ExprKind::In(item, list) = &term.kind
        && fits(item)
    {
        return list.parts().into_iter().filter_map(constant).collect();
    }
    Vec::new()
}

/// A list that a part asks for constants, or what it calls with one, and those: `"a" in fact`,
/// `fact.contains("a")`, `fact.any_in(["a"])`, `fact("a")`, `fact["a"]`.
pub(super) fn asked(term: &Expr) -> Option<(Fact<'_>, Vec<Constant<'_>>)> {
    let (fact, argument) = if let ExprKind::In(item, list) = &term.kind {
        (list.fact()?, &**item)
    } else {
        let asked = term.fact()?.asked()?;
        let last = asked.last()?;
        let is_of_owner = !last.is_call || matches!(last.name, "contains" | "any_in" | "all_in");
        let fact = if is_of_owner { asked.owner()? } else { asked };
        (fact, last.arguments.first()?)
    };
    let items = if let ExprKind::List(items) = &argument.kind { items.as_slice() } else { &[] };
    let constants = constant(argument).into_iter().chain(items.iter().filter_map(constant));
    Some((fact, constants.collect()))
}
