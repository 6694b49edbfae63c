//! Checks of what rules ask of an event: kinds at which they are not judged, and facts that the kinds at
//! which they are judged do not have.

use super::entries::{guards, kept_condition, kinds};
use super::terms::{compared, each_part_asking, each_part_with};
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::events::{self, FactEvents};
use policyd_fact_table::members;
use policyd_fact_table::paths::Fact;
use policyd_fact_table::types::Names;
use policyd_facts::event::{EventKind, TOOL_CALL_EVENTS};
use policyd_policy::records;
use policyd_yaml::Span;
use policyd_yaml::node::Node;

/// `` `stop` and `subagent_stop` ``.
fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|it| format!("`{it}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

pub(crate) fn other_event(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["kind"], |site, term| {
        let Some(entry) = subject.entry_of(site) else { return };
        let asked = compared(term, |it| it.is("event.kind"));
        let kinds = if asked.is_empty() { Vec::new() } else { kinds(subject, entry) };
        for (name, range) in asked {
            let Some(kind) = EventKind::find(name).filter(|it| !kinds.contains(it)) else {
                continue;
            };
            if !kinds.is_empty() {
                let at = listed(kinds.iter().map(|it| it.name()));
                let message = format!("`{}` is not evaluated at `{}`", entry.name(), kind.name());
                out.add(site.span(range), message, |it| {
                    it.with_note(format!("the rule is evaluated at {at}"))
                        .with_help("add the event under `on`, or remove this comparison")
                });
            }
        }
    });
}

/// A fact that only some events have, by the first of its names, and these events.
fn partial(fact: Fact<'_>, known: &Names) -> Option<(String, &'static FactEvents)> {
    let mut names: Vec<&str> = fact.names().collect();
    let (count, events) = match (&known.record, names.as_slice()) {
        (Some(record), ["event", field, ..]) if record.name == "event" => {
            (2, records::events_of_field(field)?)
        }
        (Some(_), _) => return None,
        (None, names) => members::events(names.iter().copied())?,
    };
    names.truncate(count);
    Some((names.join("."), events)).filter(|it| !it.1.events.is_empty())
}

pub(crate) fn unavailable_at_event(subject: &Subject<'_>, out: &mut Findings) {
    each_part_with(subject, &["event", "action"], |site, term| {
        let found = term.fact().and_then(|it| partial(it, site.names(subject.names())));
        if let (Some((fact, events)), Some(entry)) = (found, subject.entry_of(site)) {
            let what = format!("`{fact}`");
            report_missing(
                out,
                &kinds(subject, entry),
                events.events,
                site.span(&term.range),
                &what,
                events.help,
            );
        }
    });
    for entry in guards(subject) {
        let kinds = kinds(subject, entry);
        let on = entry.node.get("on");
        let told = on.is_some_and(|on| left_as_it_was(subject, entry, &kinds, on, out));
        // What is inherited is looked at where the events change.
        let moved = on.filter(|_| !told);
        for key in ["tools", "commands"] {
            let inherited = subject.said(entry, key).and(moved);
            if let Some(place) = entry.node.get(key).or(inherited) {
                report_missing(
                    out,
                    &kinds,
                    &[TOOL_CALL_EVENTS],
                    place.span.clone(),
                    "tool call",
                    events::CALLS.help,
                );
                break;
            }
        }
    }
}

/// Tells where a guard is moved to events (`on`) at which the condition that it keeps never holds; says whether
/// it is so.
fn left_as_it_was(
    subject: &Subject<'_>,
    entry: &PackEntry<'_>,
    kinds: &[EventKind],
    on: &Node,
    out: &mut Findings,
) -> bool {
    let partial = |it: Fact<'_>| partial(it, subject.names());
    let is_missing = |it| partial(it).is_some_and(|(_, it)| !have(kinds, it.events));
    let kept = kept_condition(subject, entry);
    let row = kept.as_ref().and_then(|it| it.needs(&is_missing)).and_then(partial);
    if let Some((fact, events)) = &row {
        let what = format!("`{fact}`");
        let help = "write a condition for this event: the inherited one still applies";
        report_missing(out, kinds, events.events, on.span.clone(), &what, help);
    }
    row.is_some()
}

/// Whether one of the kinds of events is one of these.
fn have(kinds: &[EventKind], events: &[&[EventKind]]) -> bool {
    kinds.iter().any(|kind| events.iter().any(|it| it.contains(kind)))
}

/// Tells that none of the kinds of events is one of those that have something.
fn report_missing(
    out: &mut Findings,
    kinds: &[EventKind],
    events: &[&[EventKind]],
    span: Span,
    what: &str,
    help: &str,
) {
    if kinds.is_empty() || have(kinds, events) {
        return;
    }
    let at = listed(kinds.iter().map(|it| it.name()));
    out.add(span, format!("{what} is not available at {at}"), |it| {
        let events = listed(events.concat().iter().map(|it| it.name()));
        it.with_note(format!("clients report it at {events}")).with_help(help)
    });
}
