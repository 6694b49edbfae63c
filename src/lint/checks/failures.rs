//! Checks of what a pack says of failures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::pattern::prose_regex;
use policyd_policy::builtin;
use policyd_policy::resilience::Channel;
use policyd_state::retry::Retry;
use policyd_yaml::node::Node;
use policyd_yaml::time::duration_text;
use policyd_yaml::{Source, yaml};

const FILE: &str = "failures.yaml";
/// The class of what no other one fits.
const UNKNOWN: &str = "unknown";

/// The pack's own classes, in their order.
fn classes<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s Node> {
    subject.of(FILE).map(|it| it.node)
}

fn errors(class: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let errors = class.get("errors").and_then(Node::items).unwrap_or_default();
    errors.iter().filter_map(|it| Some((it.text()?, it)))
}

pub(crate) fn overlapping_errors(subject: &Subject<'_>, out: &mut Findings) {
    let mut first: BTreeMap<&str, &Node> = BTreeMap::new();
    for (name, node) in classes(subject).flat_map(errors) {
        if let Some(before) = first.get(name) {
            let span = before.span.clone();
            out.add(
                node.span.clone(),
                format!("the error `{name}` is already in a class above"),
                |it| {
                    it.with_related(span, "first used here")
                        .with_help("remove it; the first class that contains it wins")
                },
            );
        } else {
            first.insert(name, node);
        }
    }
}

/// Classes of the pack alone: they stand before the inherited ones, and the first that fits wins.
fn new_classes<'s, 'a>(subject: &'s Subject<'a>) -> impl Iterator<Item = &'s PackEntry<'a>> {
    subject.of(FILE).filter(|it| subject.inherited(it).is_none() && !it.is("enabled", false))
}

pub(crate) fn overlapping_class(subject: &Subject<'_>, out: &mut Findings) {
    if new_classes(subject).next().is_none() {
        return;
    }
    let is_own = |id: &str| subject.of(FILE).any(|it| it.name() == id);
    let inherited: Vec<(&str, Vec<&str>)> =
        subject.reviewed.meant.failure_classes().filter(|(id, _)| !is_own(id)).collect();
    let told: Vec<&(String, String)> =
        SAMPLES.iter().filter(|(_, class)| inherited.iter().any(|(id, _)| id == class)).collect();
    for entry in new_classes(subject) {
        for (name, node) in errors(entry.node) {
            if let Some((class, _)) = inherited.iter().find(|it| it.1.contains(&name)) {
                let message = format!("failures `{name}` leave the inherited class `{class}`");
                out.add(node.span.clone(), message, |it| {
                    it.with_note(
                        "classes of the pack precede the inherited ones, and the first match wins",
                    )
                    .with_help(format!("override the class: `{{id: {class}, override: true, …}}`"))
                });
            }
        }
        let listed = |key: &str| entry.node.get(key).and_then(Node::items).unwrap_or_default();
        let excuses: Vec<_> =
            listed("unless").iter().filter_map(Node::text).map(prose_regex).collect();
        let left = told.iter().filter(|(text, _)| !excuses.iter().any(|it| it.is_match(text)));
        let left: Vec<&(String, String)> = left.copied().collect();
        listed("regexes").iter().for_each(|it| takes_several(it, &left, out));
    }
}

/// Reports a regex that matches the failures of several inherited classes.
fn takes_several(regex: &Node, told: &[&(String, String)], out: &mut Findings) {
    let Some(pattern) = regex.text().map(prose_regex) else { return };
    let fitting: Vec<&&(String, String)> =
        told.iter().filter(|it| pattern.is_match(&it.0)).collect();
    let classes: BTreeSet<&str> = fitting.iter().map(|it| it.1.as_str()).collect();
    if let [(first, _), .., (last, _)] = fitting.as_slice()
        && classes.len() > 1
    {
        let classes: Vec<String> = classes.iter().map(|it| format!("`{it}`")).collect();
        let message =
            format!("this also matches failures of the inherited classes {}", classes.join(", "));
        out.add(regex.span.clone(), message, |it| {
            it.with_note(format!(
                "such as `{first}` and `{last}`; classes of the pack precede the inherited ones"
            ))
            .with_help("use a more specific pattern")
        });
    }
}

/// What failures say, and of which inherited class each is: the built-in pack has a case for each.
static SAMPLES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let text = builtin::CASES.iter().find(|it| it.0 == FILE).map_or("", |it| it.1);
    let source = Arc::new(Source { name: FILE.to_owned(), text: text.to_owned() });
    let tree = yaml::parse(&source).0;
    let cases = tree.iter().filter_map(Node::items).flatten();
    let each = cases.filter_map(|it| it.get("each")?.items()).flatten();
    let told = each.filter_map(|it| Some((it.get("text")?.text()?, it.get("class")?.text()?)));
    // An own class may capture unknown failures.
    let known = told.filter(|(_, class)| *class != UNKNOWN);
    known.map(|(text, class)| (text.to_owned(), class.to_owned())).collect()
});

pub(crate) fn unreachable_class(subject: &Subject<'_>, out: &mut Findings) {
    let unrecognized = subject.file(FILE).and_then(|it| it.get("unrecognized")?.text());
    for entry in subject.of(FILE).filter(|it| subject.inherited(it).is_none()) {
        let listed = |key: &str| entry.node.get(key).and_then(Node::items);
        let led_to = ["errors", "regexes"].into_iter().filter_map(listed).any(|it| !it.is_empty());
        if !led_to && unrecognized != Some(entry.name()) {
            let message = format!("no failure matches the class `{}`", entry.name());
            out.help(entry.id.span.clone(), message, "add `errors` or `regexes`");
        }
    }
}

/// Only what is tried again can be tried afresh.
fn idle_fresh(subject: &Subject<'_>, out: &mut Findings) {
    let retries = |it: &PackEntry<'_>| subject.said(it, "do").is_some_and(|it| it.says("retry"));
    let rules = subject.of("dead_letter.yaml").filter(|it| !retries(it));
    for node in rules.filter_map(|it| it.node.get("fresh")).filter(|it| it.bool() == Some(true)) {
        let message = "`fresh` has no effect without `do: retry`";
        out.help(node.span.clone(), message, "write `do: retry`, or remove `fresh`");
    }
}

pub(crate) fn contradiction(subject: &Subject<'_>, out: &mut Findings) {
    idle_fresh(subject, out);
    odd_result(subject, out);
    let Some(file) = subject.file(FILE) else { return };
    let labels = file.get("profiles").and_then(Node::entries).unwrap_or_default().iter();
    let labels = labels.filter_map(|(_, labels)| labels.items()).flatten();
    let retries = classes(subject).chain(labels).filter_map(|it| it.get("retry"));
    for waits in retries.chain(file.get("pause")) {
        let initial = waits.get("initial").and_then(Node::duration);
        let initial = initial.unwrap_or(Retry::default().initial);
        let cap = waits.get("cap").and_then(|it| Some((it, it.duration()?)));
        if let Some((node, _)) = cap.filter(|(_, cap)| *cap < initial) {
            let message = format!("the first delay, {}, is above the cap", duration_text(initial));
            out.help(node.span.clone(), message, "raise `cap`, or reduce the first delay");
        }
    }
    for entry in subject.of(FILE) {
        let permanent = subject.said(entry, "effect").is_some_and(|it| it.says("permanent"));
        let retry = entry.node.get("retry").filter(|_| permanent);
        // `max: 0` says the same.
        let never = |it: &Node| it.get("max").and_then(Node::int) == Some(0);
        if let Some(node) = retry.filter(|it| !never(it)) {
            let message = "permanent failures are never retried";
            out.help(node.span.clone(), message, "remove `retry`, or write another `effect`");
        }
    }
    let numbers = |section: &str, low: &str, high: &str| {
        let section = file.get(section)?;
        Some((section.get(low)?, section.get(high)?))
    };
    if let Some((escalate, pause)) = numbers("ladder", "escalate", "pause")
        && pause.int() < escalate.int()
    {
        let message = "the loop pauses before the escalation";
        out.help(pause.span.clone(), message, "set `pause` to at least `escalate`");
    }
    let spans = |node: &Node| node.duration().unwrap_or(Duration::ZERO);
    if let Some((least, most)) = numbers("waits", "least", "most")
        && spans(most) < spans(least)
    {
        let message = "the longest delay is below the shortest";
        out.help(most.span.clone(), message, "set `most` to at least `least`");
    }
}

pub(crate) fn invalid_channel_directory(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("escalation.yaml") {
        let Some(folder) = entry.node.get("folder") else { continue };
        let path = folder.text().unwrap_or_default();
        let help = "use a directory below `.policyd/`: `folder: alerts`";
        if !Channel::may_write_to(path) {
            let message = format!("`{path}` is outside of `.policyd/`");
            out.add(folder.span.clone(), message, |it| {
                it.with_note("policyd does not write there").with_help(help)
            });
        } else if path.starts_with(['~', '$']) {
            let message = format!("`{path}` is not expanded");
            out.add(folder.span.clone(), message, |it| {
                it.with_note("policyd writes copies only below `.policyd/`").with_help(help)
            });
        }
    }
}

/// What is judged before a task may be given up: a human's need.
const BEFORE_ABANDONING: [&str; 2] = ["human", "escalate"];
/// The order of the built-in pack.
const USUAL_ORDER: [&str; 5] = ["human", "wait", "retry", "escalate", "abandon"];

/// Reactions that tell a breaker of failures where nothing failed, or of successes where something did. A
/// reaction with a condition may know better.
fn odd_result(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("reactions.yaml").filter(|it| !it.is("enabled", false)) {
        let Some(result) = subject.said(entry, "result") else { continue };
        let on = subject.said(entry, "on").map(Node::one_or_items).unwrap_or_default();
        let at = |events: &[&str]| {
            !on.is_empty() && on.iter().all(|it| events.iter().any(|name| it.says(name)))
        };
        let failing = at(&["post_tool_use_failure", "stop_failure"]);
        let sound = at(&["stop", "subagent_stop", "session_start", "post_tool_use"]);
        let message = match (result.says("success"), result.says("failure")) {
            (true, _) if failing => "a success is reported at an event of a failure",
            (_, true) if sound && subject.said(entry, "when").is_none() => {
                "a failure is reported at an event without one"
            }
            _ => continue,
        };
        let place = entry.node.get("result").or_else(|| entry.node.get("on"));
        if let Some(place) = place {
            out.add(place.span.clone(), message, |it| {
                it.with_note("the breaker records it each time")
                    .with_help("write the other `result`, or other events under `on`")
            });
        }
    }
}

pub(crate) fn abandon_before_escalation(subject: &Subject<'_>, out: &mut Findings) {
    let Some(file) = subject.file("dead_letter.yaml") else { return };
    let note = "a task that needs a human is then abandoned without a request";
    let order = file.get("order").and_then(Node::items).unwrap_or_default();
    let place = |name: &str| order.iter().position(|it| it.says(name));
    let usual = |name: &str| USUAL_ORDER.iter().position(|it| *it == name);
    let judged_at = |name: &str| if order.is_empty() { usual(name) } else { place(name) };
    // Groups before the check for a human, or the group of that check.
    let is_early = |name: &str| {
        judged_at(name).is_some_and(|at| {
            BEFORE_ABANDONING.iter().any(|it| *it == name || judged_at(it) > Some(at))
        })
    };
    if let Some(abandon) = place("abandon")
        && let Some(later) = BEFORE_ABANDONING.iter().find(|it| place(it) > Some(abandon))
        && let Some(node) = order.get(abandon)
    {
        let message = format!("tasks are abandoned before `{later}` is evaluated");
        out.add(node.span.clone(), message, |it| {
            it.with_note(note).with_help("move `abandon` after `human` and `escalate`")
        });
    }
    let used = |it: &&Node| it.get("enabled").and_then(Node::bool) != Some(false);
    let rules = file.get("review").and_then(Node::items).unwrap_or_default();
    for rule in rules.iter().filter(used) {
        let group = rule.get("group").filter(|it| it.text().is_some_and(is_early));
        let gives_up = rule.get("do").is_some_and(|it| it.says("abandon"));
        // A human who gave it up was asked.
        let when = rule.get("when").and_then(Node::text).unwrap_or_default();
        if let Some(group) = group.filter(|_| {
            gives_up && !when.contains("task.human_") && !when.contains("task.escalated")
        }) {
            let name = group.text().unwrap_or_default();
            let message = format!("a rule of `{name}` abandons tasks");
            out.add(group.span.clone(), message, |it| {
                it.with_note(note).with_help("remove `group`, or write another `do`")
            });
        }
    }
}
