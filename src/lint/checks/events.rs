//! Checks of what rules ask of an event: kinds at which they are not judged, and facts that the kinds at
//! which they are judged do not have.

use super::guards::{guards, kept_condition};
use super::terms::{compared, each_part_asking, each_part_with};
use crate::subject::Entry;
use crate::{Findings, Subject};
use policyd_fact_table::ast::Expr;
use policyd_fact_table::paths::Fact;
use policyd_facts::event::{EventKind, PROMPT_EVENTS, TOOL_CALL_EVENTS};
use policyd_policy::guards::FILES;
use policyd_yaml::Span;
use policyd_yaml::node::Node;

const STOPS: &[EventKind] = &[EventKind::Stop, EventKind::SubagentStop];
const FAILURES: &[EventKind] = &[EventKind::PostToolUseFailure, EventKind::StopFailure];
const FAILED_STOP: &[EventKind] = &[EventKind::StopFailure];
const NAME_A_STOP: &str = "name `stop` or `stop_failure` under `on`";
const NAME_A_CALL: &str = "add a tool call event under `on`";
const NAME_A_FAILURE: &str = "add an event that reports a failure under `on`";

/// A fact that only some events have, those events, and the fix.
type Partial = (&'static str, &'static [&'static [EventKind]], &'static str);

/// All of them; the first that fits decides.
const PARTIAL: &[Partial] = &[
    ("event.tool", &[TOOL_CALL_EVENTS], "use `tools.last` or `tools.count(…)` for earlier calls"),
    ("event.input", &[TOOL_CALL_EVENTS], "use `commands` and `files` for earlier actions"),
    ("event.prompt", &[PROMPT_EVENTS], "use `transcript.last_prompt` for the last prompt"),
    ("event.background_running", &[STOPS], "use it in considerations.yaml"),
    ("event.source", &[&[EventKind::SessionStart]], "name `session_start` under `on`"),
    ("event.failed", &[FAILURES], NAME_A_FAILURE),
    ("event.interrupted", &[FAILURES], NAME_A_FAILURE),
    ("event.class", &[FAILURES], NAME_A_FAILURE),
    ("event.permanent", &[FAILURES], NAME_A_FAILURE),
    ("event.human", &[FAILURES], NAME_A_FAILURE),
    ("event.counts", &[FAILURES], NAME_A_FAILURE),
    ("event.error", &[FAILURES], NAME_A_FAILURE),
    ("event.model", &[STOPS, FAILED_STOP], NAME_A_STOP),
    ("event.tier", &[STOPS, FAILED_STOP], NAME_A_STOP),
    // Secrets are looked for in prompts, too.
    ("action.secrets", &[TOOL_CALL_EVENTS, PROMPT_EVENTS], NAME_A_CALL),
    ("action.issued_secrets", &[TOOL_CALL_EVENTS, PROMPT_EVENTS], NAME_A_CALL),
    ("action", &[TOOL_CALL_EVENTS], NAME_A_CALL),
];

/// Files whose entries are judged at stops, where they do not say otherwise.
const AT_STOPS: [&str; 4] =
    ["considerations.yaml", "checkers.yaml", "session_types.yaml", "probes.yaml"];

/// The kinds of events at which an entry is judged, where that is known.
pub(super) fn kinds<'s>(subject: &Subject<'s>, entry: &Entry<'s>) -> Vec<EventKind> {
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

/// What only some events have, where a fact is that or something of it.
fn partial(fact: Fact<'_>) -> Option<&'static Partial> {
    PARTIAL.iter().find(|(names, ..)| fact.begins_with(names))
}

/// Returns the events at which clients report a fact with these names. Empty: all events.
#[must_use]
pub fn events_of(names: &str) -> Vec<EventKind> {
    let row = Expr::parse(names).and_then(|it| partial(it.fact()?));
    row.map(|(_, events, _)| events.concat()).unwrap_or_default()
}

pub(crate) fn unavailable_at_event(subject: &Subject<'_>, out: &mut Findings) {
    each_part_with(subject, &["event", "action"], |site, term| {
        let row = term.fact().and_then(partial);
        if let (Some((fact, events, help)), Some(entry)) = (row, subject.entry_of(site)) {
            let what = format!("`{fact}`");
            report_missing(
                out,
                &kinds(subject, entry),
                events,
                site.span(&term.range),
                &what,
                help,
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
                    NAME_A_CALL,
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
    entry: &Entry<'_>,
    kinds: &[EventKind],
    on: &Node,
    out: &mut Findings,
) -> bool {
    let is_missing = |it: Fact<'_>| partial(it).is_some_and(|(_, events, _)| !have(kinds, events));
    let kept = kept_condition(subject, entry);
    let row = kept.as_ref().and_then(|it| it.needs(&is_missing)).and_then(partial);
    if let Some((fact, events, _)) = row {
        let what = format!("`{fact}`");
        let help = "write a condition for this event: the inherited one still applies";
        report_missing(out, kinds, events, on.span.clone(), &what, help);
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
