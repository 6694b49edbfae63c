//! Entries of a pack: its guards, the conditions that these keep, and the events at which an entry is judged.

use std::sync::Arc;

use crate::Subject;
use crate::subject::PackEntry;
use policyd_fact_table::ast::Expr;
use policyd_facts::event::EventKind;
use policyd_policy::guards::FILES;
use policyd_yaml::node::Node;

const STOPS: &[EventKind] = &[EventKind::Stop, EventKind::SubagentStop];
/// Files whose entries are judged at stops, where they do not say otherwise.
const AT_STOPS: [&str; 4] =
    ["considerations.yaml", "checkers.yaml", "session_types.yaml", "probes.yaml"];

/// The guards that the pack itself writes.
pub(super) fn guards<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s PackEntry<'s>> {
    FILES.iter().flat_map(|file| subject.of(file))
}

/// The condition of the guard that this one changes, where it stays as it was.
pub(super) fn kept_condition(subject: &Subject<'_>, entry: &PackEntry<'_>) -> Option<Arc<Expr>> {
    // The guard also fires if `unless` is unknown.
    let kept = subject.inherited(entry).filter(|_| entry.node.get("when").is_none())?;
    Expr::parse(kept.get("when")?.text()?)
}

/// The kinds of events at which an entry is judged, where that is known.
pub(super) fn kinds<'s>(subject: &Subject<'s>, entry: &PackEntry<'s>) -> Vec<EventKind> {
    let named = |node: &Node| -> Vec<EventKind> {
        let names = node.one_or_items().iter().filter_map(Node::text);
        names.filter_map(EventKind::find).collect()
    };
    let usual: &[EventKind] = match entry.file {
        "considerations.yaml" => &[EventKind::Stop],
        file if AT_STOPS.contains(&file) => STOPS,
        file if FILES.contains(&file) => &[EventKind::PreToolUse],
        _ => &[],
    };
    subject.said(entry, "on").map_or_else(|| usual.to_vec(), named)
}
