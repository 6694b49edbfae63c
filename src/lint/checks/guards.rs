//! Checks of guards.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::lint::logic::{Answer, possible};
use crate::lint::subject::Entry;
use crate::lint::{Findings, Subject};
use crate::policy::guards::FILES;
use crate::script::tree::{Form, Term};
use crate::source::node::Node;

/// The guards that the pack itself writes.
pub(super) fn guards<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s Entry<'s>> {
    FILES.iter().flat_map(|file| subject.of(file))
}

/// Tools that start whatever they are told to.
const SHELLS: [&str; 2] = ["Bash", "PowerShell"];

pub(in crate::lint) fn guard_always_fires(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        let decision = subject.said(entry, "decision").and_then(Node::text).unwrap_or_default();
        let narrowed = ["commands", "unless"].iter().any(|it| subject.said(entry, it).is_some());
        let always =
            match subject.said(entry, "when") {
                None => true,
                Some(_) => subject.sites_of(entry).iter().filter(|it| it.key == "when").any(|it| {
                    matches!(it.term.as_ref().map(|it| &it.form), Some(Form::Bool(true)))
                }),
            };
        if !always || narrowed || entry.is("enabled", false) {
            continue;
        }
        let tools = subject.said(entry, "tools").map(Node::one_or_items);
        let shell = |it: &&str| tools.is_some_and(|tools| tools.iter().any(|node| node.says(it)));
        let name = entry.name();
        let message = match (decision, tools) {
            ("deny" | "block" | "ask" | "halt" | "defer", None) => {
                format!("`{name}` fires at every call of every tool")
            }
            ("allow", None) => format!("`{name}` allows every call of every tool"),
            ("allow", Some(_)) => match SHELLS.iter().find(|it| shell(it)) {
                Some(tool) => format!("`{name}` allows whatever `{tool}` is told to do"),
                None => continue,
            },
            _ => continue,
        };
        let help = "say which: `tools: [Bash]`, `commands: [deploy]`, or `when`";
        out.help(entry.id.span.clone(), message, help);
    }
}

/// How strict a decision is; what only says something stands beside the others.
fn strictness(decision: &str) -> Option<usize> {
    let ranks = [&["allow"][..], &["defer"], &["ask"], &["deny", "block"], &["halt"]];
    ranks.iter().position(|it| it.contains(&decision))
}

/// What a guard looks at under a key; everything, where it does not say.
fn looked_at<'s>(subject: &Subject<'s>, entry: &Entry<'s>, key: &str) -> BTreeSet<&'s str> {
    let list = subject.said(entry, key).map(Node::one_or_items).unwrap_or_default();
    list.iter().filter_map(Node::text).collect()
}

/// The condition under a key of a guard, read; nothing where it has none, or one that cannot be read.
fn condition<'s>(
    subject: &Subject<'s>,
    entry: &Entry<'s>,
    key: &str,
) -> Result<Option<Rc<Term>>, ()> {
    match subject.said(entry, key).and_then(Node::text) {
        Some(text) => Term::parse(text).map(Some).ok_or(()),
        None => Ok(None),
    }
}

/// Whether one guard fires wherever another one does.
fn covers<'s>(subject: &Subject<'s>, wide: &Entry<'s>, narrow: &Entry<'s>) -> bool {
    let list = |entry, key| looked_at(subject, entry, key);
    let on = |entry| match list(entry, "on") {
        named if named.is_empty() => BTreeSet::from(["pre_tool_use"]),
        named => named,
    };
    let (programs, tools) = (list(wide, "commands"), list(wide, "tools"));
    let same_programs = programs.is_empty() == list(narrow, "commands").is_empty();
    let of_tools = list(narrow, "tools");
    if !on(wide).is_superset(&on(narrow))
        || !same_programs
        || !programs.is_superset(&list(narrow, "commands"))
        || !(tools.is_empty() || (!of_tools.is_empty() && tools.is_superset(&of_tools)))
    {
        return false;
    }
    let read = |entry, key| condition(subject, entry, key);
    let all = [(narrow, "when"), (narrow, "unless"), (wide, "when"), (wide, "unless")];
    let [Ok(when), Ok(unless), Ok(wide_when), Ok(wide_unless)] =
        all.map(|(entry, key)| read(entry, key))
    else {
        return false;
    };
    let fires = [(when.as_deref(), true), (unless.as_deref(), false)];
    let silent = [(wide_when.as_deref(), false), (wide_unless.as_deref(), true)];
    silent.into_iter().filter_map(|(term, holds)| Some((term?, holds))).all(|silent| {
        let said = fires.into_iter().filter_map(|(term, holds)| Some((term?, holds)));
        let said: Vec<_> = said.chain([silent]).collect();
        possible(&said, subject.names()) == Answer::Never
    })
}

/// Guards that are stricter than one beyond which nobody asks.
const STRICTER_MAX: usize = 32;

pub(in crate::lint) fn outdone_guard(subject: &Subject<'_>, out: &mut Findings) {
    let in_force = |entry: &&Entry<'_>| {
        let soft = subject.said(entry, "mode").is_some_and(|it| !it.says("enforce"));
        !soft && !entry.is("enabled", false) && subject.said(entry, "expires").is_none()
    };
    let rank = |entry: &Entry<'_>| strictness(subject.said(entry, "decision")?.text()?);
    let all: Vec<_> = guards(subject).filter(in_force).collect();
    for entry in &all {
        let Some(own) = rank(entry) else { continue };
        let stricter = all.iter().filter(|it| rank(it).is_some_and(|it| it > own));
        if let Some(other) = stricter.take(STRICTER_MAX).find(|it| covers(subject, it, entry)) {
            let message = format!("`{}` never decides: `{}` does", entry.name(), other.name());
            out.add(entry.id.span.clone(), message, |it| {
                it.with_related(other.id.span.clone(), "this fires wherever that one does")
                    .with_note("of several guards the strictest answer counts")
                    .with_help("leave out of the stricter one what is meant here, by `unless`")
            });
        }
    }
}

pub(in crate::lint) fn guard_without_message(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        let says = |key: &str| {
            subject.said(entry, key).and_then(Node::text).is_some_and(|it| !it.trim().is_empty())
        };
        let Some(decision) = entry.node.get("decision").filter(|it| !it.says("allow")) else {
            continue;
        };
        if !says("message") && !says("description") {
            let message = format!("`{}` does not say why", entry.name());
            out.add(decision.span.clone(), message, |it| {
                it.with_note(
                    "the agent learns the id of the guard, and tries the next way around it",
                )
                .with_help("write `message: …`: why, and what to do instead")
            });
        }
    }
}

/// What a guard looks at, by the key that lists it.
const FILTERS: [(&str, &str); 3] = [("tools", "tool"), ("commands", "program"), ("on", "event")];

pub(in crate::lint) fn empty_filter(subject: &Subject<'_>, out: &mut Findings) {
    for entry in guards(subject) {
        for (key, what) in FILTERS {
            let Some(list) = entry.node.get(key) else { continue };
            let names = list.one_or_items();
            let empty = names.iter().find(|it| it.text().is_none_or(|it| it.trim().is_empty()));
            if names.is_empty() {
                let message = format!("`{key}` names no {what}");
                out.add(list.span.clone(), message, |it| {
                    it.with_note("a guard without a list of them looks at all")
                        .with_help(format!("name the {what}s, or leave `{key}` out"))
                });
            } else if let Some(empty) = empty {
                let message = format!("`{key}` holds an empty name, which no {what} has");
                out.help(empty.span.clone(), message, "delete it");
            }
        }
    }
}
