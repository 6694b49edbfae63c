//! Checks of what rules mean: conditions that cannot hold, rules that cannot fire.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::lint::logic::{Answer, BEFORE_MAX, follows, possible, truth};
use crate::lint::site::Site;
use crate::lint::subject::Entry;
use crate::lint::{Findings, Subject};
use crate::policy::records;
use crate::script::ast::{Expr, ExprKind};
use crate::script::types::Names;
use crate::source::node::Node;

/// Conditions that can be read, whole, and that the loader has nothing against: what follows from a
/// mistake is not worth a second finding.
fn conditions<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = (&'s Site<'s>, &'s Expr)> {
    let read = subject.sites.iter().filter(|it| it.condition && !subject.has_error(it));
    read.filter_map(|site| Some((site, site.term.as_deref()?)))
}

/// A constant that says what is meant: `blocking: "false"`, and `when: "true"` of whatever takes what
/// is left, a session type or what a drift leads to.
fn is_meant(site: &Site<'_>, term: &Expr) -> bool {
    match (&term.kind, site.key) {
        (ExprKind::Bool(false), "blocking") => true,
        (ExprKind::Bool(true), "when") => {
            site.file == "session_types.yaml" || site.speaks_of("drift")
        }
        _ => false,
    }
}

pub(in crate::lint) fn never_true(subject: &Subject<'_>, out: &mut Findings) {
    for (site, term) in conditions(subject) {
        if !is_meant(site, term) && site.truth(subject.names()) == Some(false) {
            let (message, note) = match site.key {
                "satisfied" => ("this is never true", "the check always fires"),
                "blocking" => ("this is never true", "the rule never blocks"),
                _ => ("this is never true", "the rule or text with this condition is never used"),
            };
            out.add(site.whole(), message, |it| {
                it.with_note(note).with_help(
                    "write the intended condition, or disable the rule with `enabled: false`",
                )
            });
        }
    }
}

pub(in crate::lint) fn always_true(subject: &Subject<'_>, out: &mut Findings) {
    for (site, term) in conditions(subject) {
        if !is_meant(site, term) && site.truth(subject.names()) == Some(true) {
            let (note, help) = match site.key {
                "satisfied" => {
                    ("the rule never fires", "write the intended condition, or delete the rule")
                }
                _ => ("it has no effect", "replace the constant by a condition, or remove the key"),
            };
            out.add(site.whole(), "this is always true", |it| it.with_note(note).with_help(help));
        }
    }
}

/// The parts of a row of `&&` or `||`, with whether all of them must hold.
fn row(term: &Expr) -> Option<(&[Expr], bool)> {
    let (ExprKind::And(items) | ExprKind::Or(items)) = &term.kind else { return None };
    Some((items, matches!(term.kind, ExprKind::And(_))))
}

pub(in crate::lint) fn constant_part(subject: &Subject<'_>, out: &mut Findings) {
    for (site, term) in conditions(subject) {
        if site.truth(subject.names()).is_none() {
            constant_parts(site, term, subject, out);
        }
    }
}

fn constant_parts(site: &Site<'_>, term: &Expr, subject: &Subject<'_>, out: &mut Findings) {
    let parts: Vec<&Expr> = if let ExprKind::Not(inner) = &term.kind {
        vec![inner]
    } else {
        row(term).map(|(items, _)| items.iter().collect()).unwrap_or_default()
    };
    for part in parts {
        match truth(part, site.names(subject.names())) {
            Some(value) => {
                let message = format!("this part is always {value}");
                out.help(
                    site.span(&part.range),
                    message,
                    "remove it, or write the intended comparison",
                );
            }
            None => constant_parts(site, part, subject, out),
        }
    }
}

pub(in crate::lint) fn redundant_part(subject: &Subject<'_>, out: &mut Findings) {
    for (site, _) in conditions(subject) {
        if site.truth(subject.names()).is_some() {
            continue;
        }
        site.visit(|part| {
            let Some((items, all)) = row(part) else { return };
            if let Some((item, other)) = redundant(items, all, site.names(subject.names())) {
                out.add(site.span(&item.range), "this part has no effect", |it| {
                    it.with_related(site.span(&other.range), "this part decides")
                        .with_help("remove it, or write the intended comparison")
                });
            }
        });
    }
}

/// A part that follows from one of the others (`&&`), or that makes one of the others hold (`||`).
fn redundant<'t>(items: &'t [Expr], all: bool, names: &Names) -> Option<(&'t Expr, &'t Expr)> {
    let open: Vec<bool> = items.iter().map(|it| truth(it, names).is_none()).collect();
    let is_open = |at: usize| open.get(at) == Some(&true);
    for (at, item) in items.iter().enumerate().rev() {
        for (number, other) in items.iter().enumerate() {
            let follows = number != at
                && is_open(at)
                && is_open(number)
                && follows((item, all), (other, all), names);
            if follows {
                return Some((item, other));
            }
        }
    }
    None
}

/// Lists of rules over a record of which the first that holds decides.
const FIRST_DECIDES: [(&str, &str); 3] =
    [("dead_letter.yaml", "review"), ("escalation.yaml", "triggers"), ("signals.yaml", "drift")];

/// One of several rules of which the first that holds decides.
struct Ranked<'n> {
    name: String,
    place: &'n Node,
    /// Only rules of one group are in each other's way: where they name none, those that do the same.
    group: Option<&'n str>,
    when: Rc<Expr>,
}

pub(in crate::lint) fn unreachable_rule(subject: &Subject<'_>, out: &mut Findings) {
    for (file, section) in FIRST_DECIDES {
        let Some(names) = records::names(file, section) else { continue };
        let items = subject.file(file).and_then(|it| it.get(section)).and_then(Node::items);
        let used = |it: &&Node| it.get("enabled").and_then(Node::bool) != Some(false);
        let rules = items.unwrap_or_default().iter().filter(used).filter_map(|it| {
            let when = Expr::parse(it.get("when")?.text()?)?;
            let place = it.get("id")?;
            let ordered = section == "review";
            let group = it.get("group").or_else(|| it.get("do").filter(|_| ordered));
            let group = group.and_then(Node::text);
            Some(Ranked { name: format!("`{}`", place.text()?), place, group, when })
        });
        nothing_left(&rules.collect::<Vec<_>>(), names, out);
    }
    for table in subject.of("tables.yaml") {
        let names = subject.reviewed.records.get(&(table.file, table.name().to_owned()));
        let rows = table.node.get("rows").and_then(Node::items).unwrap_or_default();
        let rows = (1..).zip(rows).filter_map(|(number, it)| {
            let place = it.get("when")?;
            let when = Expr::parse(place.text()?)?;
            Some(Ranked { name: format!("row {number}"), place, group: None, when })
        });
        if let Some(names) = names {
            let rows: Vec<Ranked<'_>> = rows.collect();
            nothing_left(&rows, names, out);
            let none: Vec<(&Expr, bool)> = rows.iter().map(|it| (&*it.when, false)).collect();
            let otherwise = table.node.get("otherwise").filter(|_| rows.len() <= BEFORE_MAX);
            if let Some(node) = otherwise.filter(|_| possible(&none, names) == Answer::Never) {
                out.add(node.span.clone(), "`otherwise` is never used", |it| {
                    it.with_note("the rows cover every case")
                        .with_help("narrow a row, or give `otherwise` the answer of the last row")
                });
            }
        }
    }
}

/// Tells of rules to which those before them leave nothing.
fn nothing_left(rules: &[Ranked<'_>], names: &Names, out: &mut Findings) {
    for (at, rule) in rules.iter().enumerate() {
        let mut said: Vec<(&Expr, bool)> = vec![(&rule.when, true)];
        if possible(&said, names) == Answer::Never {
            continue; // That is a finding of its own.
        }
        let earlier = rules.iter().take(at.min(BEFORE_MAX)).filter(|it| it.group == rule.group);
        for before in earlier {
            said.push((&before.when, false));
            if possible(&said, names) == Answer::Never {
                out.add(rule.place.span.clone(), format!("{} never decides", rule.name), |it| {
                    it.with_note("the rules before it cover every case")
                        .with_help("write specific entries before general ones")
                        .with_related(before.place.span.clone(), "the last of these rules")
                });
                break;
            }
        }
    }
}

pub(in crate::lint) fn duplicate_condition(subject: &Subject<'_>, out: &mut Findings) {
    let mut seen: BTreeMap<(Cow<'_, str>, Cow<'_, str>), &Entry<'_>> = BTreeMap::new();
    for entry in &subject.entries {
        let term = |key: &str| subject.site(entry, key)?.term.as_deref();
        let canonical = |key: &str| term(key).map(Expr::canonical);
        let Some(satisfied) = canonical("satisfied") else { continue };
        let key = (canonical("when").unwrap_or_default(), satisfied);
        if let Some(first) = seen.get(&key) {
            let message =
                format!("`{}` has the same condition as `{}`", entry.name(), first.name());
            out.add(entry.id.span.clone(), message, |it| {
                it.with_related(first.id.span.clone(), "the other entry")
                    .with_help("use one checker for both, or delete one")
            });
        } else {
            seen.insert(key, entry);
        }
    }
}

pub(in crate::lint) fn words_only_blocker(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("considerations.yaml") {
        let found = subject.reviewed.meant.considerations.iter().find(|it| it.id == entry.name());
        let body = found.map(|it| &it.check.body);
        let words = body.is_some_and(|it| it.satisfied.words_only && it.blocking.is_none());
        let severity = entry.node.get("severity").filter(|it| it.text() == Some("blocker"));
        if let Some(severity) = severity.filter(|_| words) {
            let message =
                format!("`{}` depends only on message text, so it never blocks", entry.name());
            out.add(severity.span.clone(), message, |it| {
                it.with_note("message text is not evidence; the rule only warns").with_help(
                    "add a command, file, todo or probe to the condition, or write `severity: warning`",
                )
            });
        }
    }
}

pub(in crate::lint) fn blocking_without_effect(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("considerations.yaml") {
        let Some(blocking) = entry.node.get("blocking") else { continue };
        let is =
            |key: &str, value: &str| subject.said(entry, key).and_then(Node::text) == Some(value);
        let why = if is("severity", "warning") {
            Some("severity: warning")
        } else if is("mode", "warn") {
            Some("mode: warn")
        } else {
            is("mode", "shadow").then_some("mode: shadow")
        };
        if let Some(why) = why {
            let message = format!("`{}` never blocks: it has `{why}`", entry.name());
            out.help(
                blocking.span.clone(),
                message,
                "remove `blocking`, or make the rule a blocker",
            );
        }
    }
}

pub(in crate::lint) fn mode_without_effect(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("considerations.yaml") {
        let mode = entry.node.get("mode").filter(|it| it.text() == Some("warn"));
        let warns = subject.said(entry, "severity").and_then(Node::text) == Some("warning");
        if let Some(mode) = mode.filter(|_| warns) {
            let message = "a rule of severity `warning` only warns in any case";
            out.help(mode.span.clone(), message, "remove `mode`");
        }
    }
}

pub(in crate::lint) fn checker_and_satisfied(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("considerations.yaml") {
        if let (Some(checker), Some(satisfied)) =
            (entry.node.get("checker"), entry.node.get("satisfied"))
        {
            let name = checker.text().unwrap_or_default();
            out.add(checker.span.clone(), format!("the checker `{name}` is not used"), |it| {
                it.with_related(satisfied.span.clone(), "this is evaluated instead")
                    .with_help("keep one of them")
            });
        }
    }
}

/// What an entry of a file can do: one of these keys, and what to write.
const DEEDS: [(&str, &str, &[&str], &str); 2] = [
    (
        "reactions.yaml",
        "",
        &["breaker", "task", "signal", "ask_human", "say"],
        "write `breaker`, `task`, `signal`, `ask_human` or `say`",
    ),
    ("escalation.yaml", "channels", &["command", "folder"], "write `command` or `folder`"),
];

pub(in crate::lint) fn does_nothing(subject: &Subject<'_>, out: &mut Findings) {
    for (file, section, keys, help) in DEEDS {
        for entry in subject.of(file) {
            let list = subject.file(file).filter(|_| !section.is_empty());
            let listed = list.is_none_or(|it| {
                let items = it.get(section).and_then(Node::items).unwrap_or_default();
                items.iter().any(|it| std::ptr::eq(it, entry.node))
            });
            if listed
                && !entry.is("enabled", false)
                && !keys.iter().any(|it| subject.said(entry, it).is_some())
            {
                let message = format!("`{}` does nothing", entry.name());
                out.help(entry.id.span.clone(), message, help);
            }
        }
    }
}
