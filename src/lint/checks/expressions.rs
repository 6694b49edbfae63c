//! Checks of expressions: how they are written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::terms::{constant, each_part};
use crate::lint::site::Site;
use crate::lint::{Findings, Subject, with_edit, with_edits};
use crate::script::ast::{Expr, ExprKind, Relation};

pub(in crate::lint) fn mixed_operators(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let ExprKind::Or(items) = &term.kind else { return };
        for item in items {
            if matches!(item.kind, ExprKind::And(_)) && item.outer == item.range {
                let message = "`&&` and `||` are mixed without parentheses";
                let before = site.edit(&(item.range.start..item.range.start), "(");
                let after = site.edit(&(item.range.end..item.range.end), ")");
                out.add(site.span(&item.range), message, |it| {
                    let it = it.with_help("`&&` binds more tightly; add parentheses");
                    with_edits(it, true, [before, after])
                });
            }
        }
    });
}

pub(in crate::lint) fn boolean_comparison(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let ExprKind::Compare(relation @ (Relation::Equal | Relation::NotEqual), one, other) =
            &term.kind
        else {
            return;
        };
        let (value, fact) = match (&one.kind, &other.kind) {
            (_, ExprKind::Bool(value)) => (*value, one),
            (ExprKind::Bool(value), _) => (*value, other),
            _ => return,
        };
        let holds = (*relation == Relation::Equal) == value;
        let simple =
            matches!(fact.kind, ExprKind::Fact(..) | ExprKind::Not(_)) || fact.outer != fact.range;
        let fact = site.part(&fact.outer);
        let fact = if simple { fact.to_owned() } else { format!("({fact})") };
        let text = if holds { fact } else { format!("!{fact}") };
        out.add(site.span(&term.range), "a boolean is compared with a constant", |it| {
            let it = it.with_help(format!("write `{text}`"));
            with_edit(it, true, site.edit(&term.range, &text))
        });
    });
}

pub(in crate::lint) fn double_negation(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        if let ExprKind::Not(inner) = &term.kind
            && let ExprKind::Not(innermost) = &inner.kind
        {
            let text = site.part(&innermost.outer);
            out.add(site.span(&term.range), "this condition is negated twice", |it| {
                let it = it.with_help(format!("write `{text}`"));
                with_edit(it, true, site.edit(&term.range, text))
            });
        }
    });
}

pub(in crate::lint) fn negated_comparison(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        if let ExprKind::Not(inner) = &term.kind
            && let ExprKind::Compare(relation, one, other) = &inner.kind
        {
            let (one, other) = (site.part(&one.outer), site.part(&other.outer));
            let text = format!("{one} {} {other}", relation.negated().as_str());
            // Within something else it must stay one value.
            let whole = term.outer == (0..site.text.trim_end().len());
            let text = if whole { text } else { format!("({text})") };
            out.add(site.span(&term.range), "this comparison is negated", |it| {
                let it = it.with_help(format!("write `{text}`"));
                with_edit(it, true, site.edit(&term.range, &text))
            });
        }
    });
}

const fn is_constant(form: &ExprKind) -> bool {
    matches!(form, ExprKind::Int(_) | ExprKind::Decimal(_) | ExprKind::Text(_) | ExprKind::Bool(_))
}

pub(in crate::lint) fn constant_first(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let ExprKind::Compare(relation, one, other) = &term.kind else { return };
        if is_constant(&one.kind) && !is_constant(&other.kind) {
            let (one, other) = (site.part(&one.outer), site.part(&other.outer));
            let text = format!("{other} {} {one}", relation.mirrored().as_str());
            out.add(site.span(&term.range), "the constant is on the left side", |it| {
                let it = it.with_help(format!("write `{text}`"));
                with_edit(it, true, site.edit(&term.range, &text))
            });
        }
    });
}

/// Parts above which an expression is hard to read.
const PARTS_MAX: usize = 80;

pub(in crate::lint) fn complex_expression(subject: &Subject<'_>, out: &mut Findings) {
    for site in &subject.sites {
        let mut parts = 0_usize;
        site.visit(|_| parts += 1);
        if parts > PARTS_MAX {
            let message = format!("this expression has {parts} parts");
            let help = "split the rule into two, or move patterns into vocabulary.yaml";
            out.help(site.whole(), message, help);
        }
    }
}

/// Bytes from which a repeated condition is worth a name of its own.
const REPEATED_BYTES_MIN: usize = 60;
/// Entries that must repeat it.
const REPEATED_MIN: usize = 3;

pub(in crate::lint) fn repeated_expression(subject: &Subject<'_>, out: &mut Findings) {
    let mut seen: BTreeMap<Cow<'_, str>, Vec<&Site<'_>>> = BTreeMap::new();
    for site in subject.sites.iter().filter(|it| it.condition) {
        if let Some(term) = &site.term {
            seen.entry(term.canonical()).or_default().push(site);
        }
    }
    for (text, sites) in &seen {
        let entries: BTreeSet<Option<usize>> = sites.iter().map(|it| it.entry).collect();
        if let [first, ..] = sites.as_slice()
            && text.len() >= REPEATED_BYTES_MIN
            && entries.len() >= REPEATED_MIN
        {
            let message = format!("{} rules repeat this condition", entries.len());
            let help = "move it to a checker, or to a session type";
            out.help(first.whole(), message, help);
        }
    }
}

/// Whether evaluating it tries regular expressions on texts.
fn is_costly(site: &Site<'_>, term: &Expr) -> bool {
    let text = site.part(&term.range);
    text.contains(".matches(") || text.contains("patterns.")
}

pub(in crate::lint) fn costly_first(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let (ExprKind::And(items) | ExprKind::Or(items)) = &term.kind else { return };
        let costly = items.iter().position(|it| is_costly(site, it));
        let cheap = items.iter().rposition(|it| !is_costly(site, it));
        if let (Some(first), Some(last)) = (costly, cheap)
            && first < last
            && let (Some(item), Some(other)) = (items.get(first), items.get(last))
        {
            out.add(site.span(&item.range), "this precedes a cheaper condition", |it| {
                it.with_related(site.span(&other.range), "this is cheaper")
                    .with_help("write the cheapest condition first")
            });
        }
    });
}

pub(in crate::lint) fn duplicate_in_list(subject: &Subject<'_>, out: &mut Findings) {
    each_part(subject, |site, term| {
        let ExprKind::List(items) = &term.kind else { return };
        let mut seen: BTreeMap<&str, &Range<usize>> = BTreeMap::new();
        let mut before: Option<&Expr> = None;
        for item in items {
            let previous = before.replace(item);
            let Some((text, range)) = constant(item) else { continue };
            let edit = previous.and_then(|it| site.edit(&(it.outer.end..item.outer.end), ""));
            if let Some(first) = seen.get(text) {
                out.add(site.span(range), format!("`{text}` is listed twice"), |it| {
                    let it =
                        it.with_related(site.span(first), "listed here").with_help("delete it");
                    with_edit(it, true, edit)
                });
            } else {
                seen.insert(text, range);
            }
        }
    });
}
