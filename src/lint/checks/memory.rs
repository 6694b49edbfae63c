//! Checks of the memory of a pack: what an entry can never have.

use std::collections::BTreeSet;
use std::time::Duration;

use super::terms::each_part_with;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind, Relation};
use policyd_policy::layers::GUARD_FILES;
use policyd_state::memory::KEPT_DEFAULT;
use policyd_yaml::node::Node;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn memory_contradiction(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("memory.yaml").filter(|it| it.text("reset") == Some("day")) {
        let Some(expires) = entry.node.get("expires") else { continue };
        if expires.duration().is_some_and(|it| it >= DAY) {
            let message = "everything is forgotten at the end of the day, before this ends";
            out.help(expires.span.clone(), message, "write a shorter time, or another `reset`");
        }
    }
    each_part_with(subject, &["memory"], |site, term| {
        let Some((id, wanted)) = wanted_count(term) else { return };
        let Some(entry) = subject.of("memory.yaml").find(|it| it.name() == id) else { return };
        let (most, why) = most_texts(subject, entry);
        if wanted > most {
            let message = format!("`memory.{id}` never has {wanted} texts: {why}");
            out.help(
                site.span(&term.range),
                message,
                "compare with a smaller number, or change the entry",
            );
        }
    });
}

/// Returns the entry whose count a comparison needs, and the least count at which it is true.
fn wanted_count(term: &Expr) -> Option<(&str, i64)> {
    let ExprKind::Compare(relation, one, other) = &term.kind else { return None };
    let (fact, number, relation) = match (&one.kind, &other.kind) {
        (_, ExprKind::Int(number)) => (one, *number, *relation),
        (ExprKind::Int(number), _) => {
            let turned = match relation {
                Relation::Less => Relation::Greater,
                Relation::AtMost => Relation::AtLeast,
                Relation::Greater => Relation::Less,
                Relation::AtLeast => Relation::AtMost,
                Relation::Equal | Relation::NotEqual => *relation,
            };
            (other, *number, turned)
        }
        _ => return None,
    };
    let mut names = fact.fact()?.names();
    let (Some("memory"), Some(id), Some("count"), None) =
        (names.next(), names.next(), names.next(), names.next())
    else {
        return None;
    };
    match relation {
        Relation::Equal | Relation::AtLeast => Some((id, number)),
        Relation::Greater => Some((id, number.saturating_add(1))),
        Relation::NotEqual | Relation::Less | Relation::AtMost => None,
    }
}

/// Returns how many texts an entry can have, and why.
fn most_texts(subject: &Subject<'_>, entry: &PackEntry<'_>) -> (i64, String) {
    let default = i64::try_from(KEPT_DEFAULT).unwrap_or(i64::MAX);
    let keep = entry.node.get("keep").and_then(Node::int).unwrap_or(default);
    let texts = || {
        let guards = GUARD_FILES.iter().flat_map(|file| subject.of(file));
        let changed = guards.filter_map(|it| it.node.get("remember")?.entries());
        let own = changed.flatten().filter(|it| it.0.text() == Some(entry.name()));
        own.filter_map(|it| it.1.text()).collect::<BTreeSet<&str>>()
    };
    if entry.is("distinct", true) && entry.id.text().is_some() {
        let texts = texts();
        let constant = i64::try_from(texts.len()).unwrap_or(i64::MAX);
        if !texts.is_empty() && texts.iter().all(|it| !it.contains("${")) && constant < keep {
            return (constant, format!("guards remember {constant} different texts"));
        }
    }
    (keep, format!("it keeps {keep}"))
}
