//! Checks of what rules mean: conditions that cannot hold, rules that cannot fire.

use std::ops::Range;
use std::sync::Arc;

use crate::logic::{BEFORE_MAX, Satisfiability, follows, possible, truth};
use crate::site::Site;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind};
use policyd_fact_table::types::Names;
use policyd_policy::records;
use policyd_yaml::Span;
use policyd_yaml::node::Node;

/// Conditions that can be read, whole, and that the loader has nothing against: what follows from a
/// mistake is not worth a second finding.
fn conditions<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = (&'s Site<'s>, &'s Expr)> {
    let read = subject.sites.iter().filter(|it| it.condition && !subject.has_error(it));
    read.filter_map(|site| Some((site, site.term.as_deref()?)))
}

/// Whether a constant is intended: `blocking: "false"`, and `when: "true"` of the last session type or drift rule.
fn is_meant(site: &Site<'_>, term: &Expr) -> bool {
    match (&term.kind, site.key) {
        (ExprKind::Bool(false), "blocking") => true,
        (ExprKind::Bool(true), "when") => {
            site.file == "session_types.yaml" || site.speaks_of("drift")
        }
        _ => false,
    }
}

pub(crate) fn never_true(subject: &Subject<'_>, out: &mut Findings) {
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

pub(crate) fn always_true(subject: &Subject<'_>, out: &mut Findings) {
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

pub(crate) fn constant_part(subject: &Subject<'_>, out: &mut Findings) {
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

pub(crate) fn redundant_part(subject: &Subject<'_>, out: &mut Findings) {
    for (site, _) in conditions(subject) {
        if site.truth(subject.names()).is_some() {
            continue;
        }
        for (item, other) in subject.of_site("redundant", site, redundant_parts).iter() {
            out.add(site.span(item), "this part has no effect", |it| {
                it.with_related(site.span(other), "this part decides")
                    .with_help("remove it, or write the intended comparison")
            });
        }
    }
}

/// The parts without an effect, each with the part that decides.
fn redundant_parts(term: &Expr, names: &Names) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    term.visit(&mut |part| {
        let Some((items, all)) = row(part) else { return };
        let pair = redundant(items, all, names);
        found.extend(pair.map(|(item, other)| (item.range.clone(), other.range.clone())));
    });
    found
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

/// An entry of a list in which the first entry that applies decides.
pub(super) struct RankedEntry<'n> {
    /// The message if earlier entries cover every case.
    pub(super) message: String,
    /// Place of an entry of this pack; none if it is inherited.
    pub(super) place: Option<Span>,
    /// Entries exclude only entries of the same group; an entry without a group excludes all.
    pub(super) group: Option<&'n str>,
    /// Condition of the entry; none if it always applies.
    pub(super) when: Option<Arc<Expr>>,
}

pub(crate) fn unreachable_rule(subject: &Subject<'_>, out: &mut Findings) {
    for (file, section) in FIRST_DECIDES {
        let Some(names) = records::names(file, section) else { continue };
        let items = subject.file(file).and_then(|it| it.get(section)).and_then(Node::items);
        let used = |it: &&Node| it.get("enabled").and_then(Node::bool) != Some(false);
        let rules = items.unwrap_or_default().iter().filter(used).filter_map(|it| {
            let when = Some(Expr::parse(it.get("when")?.text()?)?);
            let id = it.get("id")?;
            // Without groups, rules exclude those that do the same.
            let ordered = section == "review";
            let group = it.get("group").or_else(|| it.get("do").filter(|_| ordered));
            let message = format!("`{}` never decides", id.text()?);
            Some(RankedEntry {
                message,
                place: Some(id.span.clone()),
                group: group.and_then(Node::text),
                when,
            })
        });
        nothing_left(subject, &rules.collect::<Vec<_>>(), names, out);
    }
    for table in subject.of("tables.yaml") {
        let names = subject.reviewed.records.get(&(table.file, table.name().to_owned()));
        let rows = table.node.get("rows").and_then(Node::items).unwrap_or_default();
        let rows = (1..).zip(rows).filter_map(|(number, it)| {
            let when = it.get("when")?;
            let (place, message) = (Some(when.span.clone()), format!("row {number} never decides"));
            Some(RankedEntry {
                message,
                place,
                group: None,
                when: Some(Expr::parse(when.text()?)?),
            })
        });
        if let Some(names) = names {
            let rows: Vec<RankedEntry<'_>> = rows.collect();
            nothing_left(subject, &rows, names, out);
            let none: Vec<(&Expr, bool)> =
                rows.iter().filter_map(|row| Some((row.when.as_deref()?, false))).collect();
            let otherwise = table.node.get("otherwise").filter(|_| rows.len() <= BEFORE_MAX);
            if let Some(node) =
                otherwise.filter(|_| possible(&none, names) == Satisfiability::Never)
            {
                out.add(node.span.clone(), "`otherwise` is never used", |it| {
                    it.with_note("the rows cover every case")
                        .with_help("narrow a row, or give `otherwise` the answer of the last row")
                });
            }
        }
    }
}

/// Reports entries for which earlier ones leave no case. The conditions see `names`.
pub(super) fn nothing_left(
    subject: &Subject<'_>,
    entries: &[RankedEntry<'_>],
    names: &Names,
    out: &mut Findings,
) {
    let mut conditions = String::new();
    for RankedEntry { place, group, when, .. } in entries {
        let when = when.as_deref().map(Expr::canonical);
        conditions.push_str(&format!("{}\0{group:?}\0{when:?}\n", place.is_some()));
    }
    let find = || covered_entries(entries, names);
    let found = subject.memo().of_text("covered", names.fingerprint(), &conditions, find);
    for (at, last) in found.iter() {
        let (Some(entry), Some(last)) = (entries.get(*at), entries.get(*last)) else { continue };
        let Some(place) = entry.place.clone() else { continue };
        out.add(place, entry.message.clone(), |it| {
            let it = it.with_note("the entries before it cover every case");
            let it = it.with_help("write specific entries before general ones");
            match last.place.clone() {
                Some(place) => it.with_related(place, "the last of these entries"),
                None => it,
            }
        });
    }
}

/// The entries for which earlier ones leave no case, each with the last of those.
fn covered_entries(entries: &[RankedEntry<'_>], names: &Names) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let own = entry.when.as_deref().map(|term| (term, true));
        let mut said: Vec<(&Expr, bool)> = own.into_iter().collect();
        // A condition that is never true is another finding.
        let possible_alone = possible(&said, names) != Satisfiability::Never;
        if entry.place.is_none() || !possible_alone {
            continue;
        }
        let earlier = entries.iter().enumerate().take(at.min(BEFORE_MAX));
        let mut excluding = earlier.filter(|(_, it)| it.group.is_none() || it.group == entry.group);
        let last = excluding.find(|(_, before)| {
            said.extend(before.when.as_deref().map(|term| (term, false)));
            before.when.is_none() || possible(&said, names) == Satisfiability::Never
        });
        found.extend(last.map(|(last, _)| (at, last)));
    }
    found
}

pub(crate) fn words_only_blocker(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("considerations.yaml") {
        let found = subject.reviewed.meant.considerations.iter().find(|it| it.id == entry.name());
        let body = found.map(|it| &it.check.body);
        let words = body.is_some_and(|it| it.satisfied.words_only && it.blocking.is_none());
        if let Some(key) = entry.node.get("words").filter(|it| it.text() == Some("true")) {
            chosen_words(entry, key, words, out);
            continue;
        }
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

/// Reports `words: true` without a reason or an effect.
fn chosen_words(entry: &PackEntry<'_>, key: &Node, words: bool, out: &mut Findings) {
    let name = entry.name();
    let has_reason = entry.node.get("reason").is_some();
    let (message, help) = match (words, has_reason) {
        (false, _) => (
            format!(
                "`words` of `{name}` has no effect: the check does not depend on message text alone"
            ),
            "remove `words`",
        ),
        (true, false) => (
            format!("`{name}` blocks on message text alone, without a reason"),
            "add `reason` with what other facts cannot tell",
        ),
        (true, true) => return,
    };
    out.help(key.span.clone(), message, help);
}

pub(crate) fn blocking_without_effect(subject: &Subject<'_>, out: &mut Findings) {
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

pub(crate) fn checker_and_satisfied(subject: &Subject<'_>, out: &mut Findings) {
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

pub(crate) fn does_nothing(subject: &Subject<'_>, out: &mut Findings) {
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
