//! Checks of names that expressions hold against facts as texts: what the pack, the program or the clients
//! name so.

use std::borrow::Cow;

use super::terms::{asked, compared, each_part_with};
use crate::facts::glob::word_matches;
use crate::lint::{Findings, Subject, with_edit};
use crate::source::{secrets, suggest};
use crate::state::failure::ERROR_NAMES;

/// Names that a fact has, or that a list of facts holds.
struct Named {
    fact: &'static str,
    /// Its last step, to turn most expressions away.
    member: &'static str,
    /// What such a name is.
    what: &'static str,
    known: for<'s> fn(&'s Subject<'_>) -> Vec<Cow<'s, str>>,
}

const fn named(
    fact: &'static str,
    member: &'static str,
    what: &'static str,
    known: for<'s> fn(&'s Subject<'_>) -> Vec<Cow<'s, str>>,
) -> Named {
    Named { fact, member, what, known }
}

/// Ids of a section of a file.
fn ids<'s>(
    subject: &'s Subject<'_>,
    file: &'static str,
    section: &'static str,
) -> Vec<Cow<'s, str>> {
    subject.reviewed.meant.ids(file, section).map(Cow::Borrowed).collect()
}

fn signals<'s>(subject: &'s Subject<'_>) -> Vec<Cow<'s, str>> {
    ids(subject, "signals.yaml", "signals")
}

fn excuses<'s>(subject: &'s Subject<'_>) -> Vec<Cow<'s, str>> {
    ids(subject, "rationalizations.yaml", "entries")
}

fn breakers<'s>(subject: &'s Subject<'_>) -> Vec<Cow<'s, str>> {
    subject.reviewed.meant.probe_breakers().collect()
}

const PROBES_BREAKER: &str = "breaker of a probe";

/// Facts that have names which somebody defines, and no others.
const DEFINED: &[Named] = &[
    named("signals.count", "count", "signal", signals),
    named("signals.pending", "pending", "signal", signals),
    named("rationalizations.names", "names", "excuse", excuses),
    named("rationalizations.proven", "proven", "excuse", excuses),
    named("dead_letter.alarms", "alarms", "alarm", |it| ids(it, "dead_letter.yaml", "alarms")),
    named("breakers", "breakers", PROBES_BREAKER, breakers),
    named("breakers.open", "open", PROBES_BREAKER, breakers),
    named("breakers.needs_human", "needs_human", PROBES_BREAKER, breakers),
    named("event.class", "class", "class of failures", |it| ids(it, "failures.yaml", "classes")),
    named("task.trigger", "trigger", "trigger", |it| ids(it, "escalation.yaml", "triggers")),
    named("context.tier", "tier", "tier of the context", |it| {
        it.names().tiers.iter().map(|it| Cow::Borrowed(it.as_str())).collect()
    }),
    named("action.secrets", "secrets", "kind of secrets", |_| {
        secrets::names().map(Cow::Borrowed).collect()
    }),
];

/// How a session begins, by the clients' documentation.
const SOURCES: [&str; 5] = ["startup", "resume", "clear", "compact", "fork"];
/// Permission modes of the clients.
const MODES: [&str; 11] = [
    "default",
    "plan",
    "acceptEdits",
    "auto",
    "dontAsk",
    "bypassPermissions",
    "off",
    "spec",
    "auto-low",
    "auto-medium",
    "auto-high",
];

/// Facts whose names are the clients' own, so that an unknown one may be new; one that is nearly a known one
/// is not.
const FOREIGN: [(&str, &str, &[&str]); 3] = [
    ("event.source", "source", &SOURCES),
    ("event.permission_mode", "permission_mode", &MODES),
    ("event.error", "error", &ERROR_NAMES),
];

/// Whether a name is one of those that are known. Of breakers only those of probes are: others are named by
/// whoever asks them.
fn is_known(row: &Named, name: &str, known: &[Cow<'_, str>]) -> bool {
    name.is_empty()
        || (row.what == PROBES_BREAKER && !name.starts_with("probe/"))
        || known.iter().any(|it| word_matches(it, name))
}

pub(in crate::lint) fn undefined_name(subject: &Subject<'_>, out: &mut Findings) {
    for row in DEFINED {
        each_part_with(subject, &[row.member], |site, term| {
            let of_list = asked(term).filter(|(fact, _)| *fact == row.fact).map(|(_, it)| it);
            let held = of_list.unwrap_or_else(|| compared(term, |it| it == row.fact));
            if held.is_empty() {
                return;
            }
            let known = (row.known)(subject);
            for (name, range) in held.into_iter().filter(|(name, _)| !is_known(row, name, &known)) {
                let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
                let message = format!("there is no {} `{name}`", row.what);
                let near = suggest::nearest(name, &known);
                let edit = near.and_then(|near| site.edit(range, &format!("{near:?}")));
                let help = suggest::did_you_mean(name, &known);
                out.add(site.span(range), message, |it| {
                    with_edit(it.with_help_if(help), false, edit)
                });
            }
        });
    }
}

pub(in crate::lint) fn misspelt_value(subject: &Subject<'_>, out: &mut Findings) {
    for (fact, member, known) in FOREIGN {
        each_part_with(subject, &[member], |site, term| {
            for (name, range) in compared(term, |it| it == fact) {
                let near = suggest::nearest(name, known).filter(|_| !known.contains(&name));
                let Some(near) = near else { continue };
                let message = format!("no client has `{name}` as `{fact}`");
                let edit = site.edit(range, &format!("{near:?}"));
                out.add(site.span(range), message, |it| {
                    with_edit(it.with_help(format!("did you mean `{near}`?")), false, edit)
                });
            }
        });
    }
}
