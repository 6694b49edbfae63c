//! Checks of names that expressions hold against facts as texts: what the pack, the program or the clients
//! name so.

use std::borrow::Cow;

use super::terms::{each_part_with_text, named_ids};
use crate::{Findings, Subject};
use policyd_fact_table::types::PackName;
use policyd_facts::glob::word_matches;
use policyd_state::failure::UNKNOWN;
use policyd_yaml::node::Node;
use policyd_yaml::{secrets, suggest};

/// A kind of names that facts have.
struct FactNames {
    ids: PackName,
    /// What such a name is.
    what: &'static str,
    /// The file that defines them; none where the program does.
    file: &'static str,
    known: for<'s> fn(&'s Subject<'_>) -> Vec<Cow<'s, str>>,
}

const fn named(
    ids: PackName,
    what: &'static str,
    file: &'static str,
    known: for<'s> fn(&'s Subject<'_>) -> Vec<Cow<'s, str>>,
) -> FactNames {
    FactNames { ids, what, file, known }
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

/// Returns the breakers of probes and those to which the pack reports calls.
fn breakers<'s>(subject: &'s Subject<'_>) -> Vec<Cow<'s, str>> {
    let meant = &subject.reviewed.meant;
    meant.probe_breakers().chain(meant.told_breakers().map(Cow::Owned)).collect()
}

/// Returns the failure classes, including the one of unrecognized failures.
fn classes<'s>(subject: &'s Subject<'_>) -> Vec<Cow<'s, str>> {
    let mut known = ids(subject, "failures.yaml", "classes");
    known.push(Cow::Borrowed(UNKNOWN));
    known
}

/// Kinds of names that a file or policyd defines.
const DEFINED: &[FactNames] = &[
    named(PackName::Signal, "signal", "signals.yaml", signals),
    named(PackName::Excuse, "excuse", "rationalizations.yaml", excuses),
    named(PackName::Alarm, "alarm", "dead_letter.yaml", |it| ids(it, "dead_letter.yaml", "alarms")),
    named(PackName::Breaker, "breaker of a probe", "probes.yaml", breakers),
    named(PackName::FailureClass, "failure class", "failures.yaml", classes),
    named(PackName::Trigger, "trigger", "escalation.yaml", |it| {
        ids(it, "escalation.yaml", "triggers")
    }),
    named(PackName::Tier, "context tier", "context.yaml", |it| {
        it.names().tiers.iter().map(|it| Cow::Borrowed(it.as_str())).collect()
    }),
    named(PackName::Secret, "class of secrets", "", |_| {
        secrets::names().map(Cow::Borrowed).collect()
    }),
    named(PackName::IssuedSecret, "class of secrets", "", |_| {
        secrets::issued_names().map(Cow::Borrowed).collect()
    }),
];

/// How a session begins, by the clients' documentation.
pub(super) const SOURCES: [&str; 5] = ["startup", "resume", "clear", "compact", "fork"];
/// Permission modes of the clients.
#[rustfmt::skip]
pub(super) const MODES: [&str; 11] = [
    "default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions", "off", "spec",
    "auto-low", "auto-medium", "auto-high",
];

/// Whether a name is one of those that are known. Of breakers only those of probes are: expressions
/// can name others freely.
fn is_known(row: &FactNames, name: &str, known: &[Cow<'_, str>]) -> bool {
    name.is_empty()
        || (row.ids == PackName::Breaker && !name.starts_with("probe/"))
        || known.iter().any(|it| word_matches(it, name))
}

pub(crate) fn undefined_name(subject: &Subject<'_>, out: &mut Findings) {
    each_part_with_text(subject, |site, term| {
        for row in DEFINED {
            let held = named_ids(term, row.ids, site.names(subject.names()));
            // The names of an unreadable file are unknown.
            let unread = || {
                let written = subject.pack.files.iter().any(|(file, _)| file == row.file);
                written && subject.file(row.file).is_none()
            };
            if held.is_empty() || unread() {
                continue;
            }
            let known = (row.known)(subject);
            for (name, range) in held.into_iter().filter(|(name, _)| !is_known(row, name, &known)) {
                let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
                let message = format!("undefined {} `{name}`", row.what);
                let near = suggest::nearest(name, &known);
                let help = suggest::did_you_mean(name, &known);
                out.add(site.span(range), message, |it| match near {
                    Some(near) => it.suggest(site.word(range, near)),
                    None => it.with_help_if(help),
                });
            }
        }
    });
}

pub(crate) fn signal_field(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("reactions.yaml").filter(|it| !it.is("enabled", false)) {
        let signal = entry.node.get("signal");
        let Some(node) = signal.and_then(|it| it.get("name")) else { continue };
        let name = node.text().unwrap_or_default();
        let Some(fields) = subject.reviewed.meant.signal_fields(name) else { continue };
        let known: Vec<&str> = fields.iter().filter_map(|(key, _)| key.text()).collect();
        let given = signal.and_then(|it| it.get("fields")?.entries()).unwrap_or_default();
        for (key, _) in given.iter().filter(|(key, _)| !known.iter().any(|it| key.says(it))) {
            let field = key.text().unwrap_or_default();
            let message = format!("the signal `{name}` has no field `{field}`");
            let near = suggest::nearest(field, &known);
            let is_given = near.is_some_and(|near| given.iter().any(|(key, _)| key.says(near)));
            out.add(key.span.clone(), message, |it| match is_given {
                true => it.with_help_if(suggest::did_you_mean(field, &known)),
                false => it.with_meant(field, &known),
            });
        }
        for field in needed(fields).filter(|it| !given.iter().any(|(key, _)| key.says(it))) {
            let message = format!("the signal `{name}` requires the field `{field}`");
            let help = format!("write `fields: {{{field}: …}}`");
            out.help(node.span.clone(), message, help);
        }
    }
    for entry in subject.of("signals.yaml").filter(|it| !it.is("enabled", false)) {
        let emitted = entry.node.get("emit").map(Node::one_or_items).unwrap_or_default();
        for node in emitted {
            emitted_by_rule(subject, node, out);
        }
    }
}

/// Returns the required fields of a signal.
fn needed(fields: &[(Node, Node)]) -> impl Iterator<Item = &str> {
    let is_needed = |it: &Node| it.get("required").and_then(Node::bool) == Some(true);
    fields.iter().filter(move |(_, it)| is_needed(it)).filter_map(|(key, _)| key.text())
}

/// What a trigger or a rule of drifts says in the signals that it creates.
const SAID_BY_RULES: [&str; 3] = ["reason", "severity", "task_id"];

fn emitted_by_rule(subject: &Subject<'_>, node: &Node, out: &mut Findings) {
    let name = node.text().unwrap_or_default();
    let fields = subject.reviewed.meant.signal_fields(name).unwrap_or_default();
    if let Some(begin) =
        name.strip_suffix('*').filter(|_| signals(subject).iter().any(|it| it == name))
    {
        let message = format!("`{name}` is a pattern, but one signal is created");
        out.help(node.span.clone(), message, format!("write one name: `{begin}…`"));
    } else if let Some(field) = needed(fields).find(|it| !SAID_BY_RULES.contains(it)) {
        let message = format!(
            "the signal `{name}` requires the field `{field}`, which rules of this file do not set"
        );
        let help = "let the agent create it, or use another signal; a rule sets `reason`, `severity` and `task_id`";
        out.help(node.span.clone(), message, help);
    }
}
