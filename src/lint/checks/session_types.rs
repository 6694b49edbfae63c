//! Checks of session types: types that no session is of, sessions that are of none or of several.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use super::rules::{RankedEntry, nothing_left};
use crate::logic::{BEFORE_MAX, Satisfiability, possible};
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;

/// Session types in their order: id, the condition, and the entry where it is the pack's own. None,
/// where the pack has none of its own.
fn session_types<'s>(subject: &'s Subject<'_>) -> Vec<(String, Arc<Expr>, Option<PackEntry<'s>>)> {
    if subject.of("session_types.yaml").next().is_none() {
        return Vec::new();
    }
    let own = |id: &str| subject.of("session_types.yaml").find(|it| it.name() == id).copied();
    let types = subject.reviewed.meant.session_types();
    types.filter_map(|(id, when)| Some((id.to_owned(), Expr::parse(when)?, own(id)))).collect()
}

pub(crate) fn unreachable_session_type(subject: &Subject<'_>, out: &mut Findings) {
    let types = session_types(subject).into_iter().map(|(id, when, own)| RankedEntry {
        message: format!("no session has the type `{id}`"),
        place: own.map(|it| it.id.span.clone()),
        group: None,
        when: Some(when),
    });
    nothing_left(subject, &types.collect::<Vec<_>>(), subject.names(), out);
}

/// An own type before the inherited ones that leaves nothing of what makes a session one of those.
pub(crate) fn overlapping_session_type(subject: &Subject<'_>, out: &mut Findings) {
    let types = session_types(subject);
    for (at, (id, when, own)) in types.iter().enumerate() {
        // The author knows if an inherited rule is applied to the new type.
        let named = |it: &PackEntry<'_>| {
            let types = it.node.get("applicable_session_types").and_then(Node::items);
            subject.inherited(it).is_some()
                && types.unwrap_or_default().iter().any(|it| it.says(id))
        };
        let is_known = || subject.of("considerations.yaml").any(named);
        let Some(own) = own.filter(|it| subject.inherited(it).is_none() && !is_known()) else {
            continue;
        };
        let lost = |other: &str| {
            let asked = subject.reviewed.meant.asked_of();
            let is_lost = |of: &Vec<&str>| {
                of.contains(&other) && !of.contains(&"*") && !of.contains(&id.as_str())
            };
            asked.filter(is_lost).count()
        };
        let inherited = types.iter().skip(at).filter(|it| it.2.is_none()).take(BEFORE_MAX);
        let taken = inherited.filter_map(|(other, theirs, _)| {
            let ways = if let ExprKind::Or(ways) = &theirs.kind {
                ways
            } else {
                slice::from_ref(&**theirs)
            };
            let way = ways.iter().find(|way| {
                !matches!(way.kind, ExprKind::Bool(_))
                    && possible(&[(way, true), (when, false)], subject.names())
                        == Satisfiability::Never
            });
            Some((lost(other), other, way?)).filter(|it| it.0 > 0)
        });
        if let Some((count, other, way)) = taken.max_by_key(|it| it.0) {
            let message = format!("sessions of `{other}` become `{id}`");
            out.add(own.id.span.clone(), message, |it| {
                it.with_note(format!(
                    "all sessions with `{}`; rules for `{other}` that are not evaluated there: {count}",
                    way.canonical()
                ))
                .with_help(format!(
                    "narrow the condition of `{id}`, or add it to `applicable_session_types` of the \
                     inherited rules that should apply"
                ))
            });
        }
    }
}

pub(crate) fn no_default_session_type(subject: &Subject<'_>, out: &mut Findings) {
    let types = session_types(subject);
    let Some((_, _, Some(last))) = types.last() else { return };
    let said: Vec<(&Expr, bool)> = types.iter().map(|(_, when, _)| (&**when, false)).collect();
    if said.len() > 2 * BEFORE_MAX {
        return;
    }
    let answer = possible(&said, subject.names());
    if answer != Satisfiability::Never {
        out.add(last.id.span.clone(), "a session can have no type", |it| {
            let it = it.with_help("end the list with a type whose `when` is \"true\"");
            witness(it, "no type matches if", &answer)
        });
    }
}

fn witness(finding: Diagnostic, what: &str, answer: &Satisfiability) -> Diagnostic {
    match answer.witness() {
        Some(example) => finding.with_note(format!("{what} {example}")),
        None => finding,
    }
}

pub(crate) fn redundant_session_type(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("considerations.yaml") {
        let types = entry.node.get("applicable_session_types").and_then(Node::items);
        if let Some(list) =
            entry.node.get("applicable_session_types").filter(|_| types == Some(&[]))
        {
            out.add(list.span.clone(), "an empty list means every type", |it| {
                it.with_help("write `[\"*\"]` for all, or `enabled: false` for none")
            });
        }
        let types = types.unwrap_or_default();
        let all = types.iter().find(|it| it.text() == Some("*"));
        let mut seen: BTreeMap<&str, &Node> = BTreeMap::new();
        for node in types {
            let name = node.text().unwrap_or_default();
            let other = seen.insert(name, node).or(all.filter(|_| name != "*"));
            if let Some(other) = other {
                out.add(node.span.clone(), format!("`{name}` is redundant"), |it| {
                    it.with_related(other.span.clone(), "defined here").with_help("delete it")
                });
            }
        }
    }
}
