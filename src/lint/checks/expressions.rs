//! Checks of expressions: how they are written.

use std::collections::BTreeMap;
use std::ops::Range;

use super::terms::{constant, each_part};
use crate::findings::{with_edit, with_edits};
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind};

pub(crate) fn mixed_operators(subject: &Subject<'_>, out: &mut Findings) {
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

pub(crate) fn duplicate_in_list(subject: &Subject<'_>, out: &mut Findings) {
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
