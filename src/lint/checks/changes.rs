//! Checks of changed rules: overrides that weaken a rule, and rules that expire or are disabled.

use super::entries::guards;
use super::identity::LISTS;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_policy::guards::FILES;
use policyd_policy::layers::is_amplihacks;
use policyd_policy::records::SEVERITIES;
use policyd_yaml::node::Node;
use policyd_yaml::{Diagnostic, Level, Span};

/// Returns the id of an entry of a list, or an entry of a map itself.
fn id_of(entry: &Node) -> &Node {
    entry.get("id").unwrap_or(entry)
}

pub(crate) fn implicit_override(subject: &Subject<'_>, out: &mut Findings) {
    let listed = |it: &&PackEntry<'_>| LISTS.contains(&it.file) || FILES.contains(&it.file);
    for entry in subject.entries.iter().filter(listed) {
        let Some(below) = subject.inherited(entry) else { continue };
        if entry.node.get("override").is_none() && !is_amplihacks(entry.node) {
            let message =
                format!("`{}` replaces an inherited entry without `override: true`", entry.name());
            out.add(entry.id.span.clone(), message, |it| {
                it.with_related(id_of(below).span.clone(), "the inherited entry")
                    .with_note("keys that it omits keep their inherited values")
                    .with_help("write `override: true`, or choose another id")
            });
        }
    }
}

/// Files whose entries look after the agent; they say why in `description`.
#[rustfmt::skip]
const SUPERVISING: [&str; 6] = [
    "escalation.yaml", "reactions.yaml", "failures.yaml", "dead_letter.yaml", "signals.yaml",
    "rationalizations.yaml",
];

/// Whether an entry blocks the agent or notifies a human: a review that abandons tasks, or a signal that others
/// create, does not.
fn looks_after(file: &str, entry: &Node) -> bool {
    match file {
        "signals.yaml" => entry.get("when").is_some(),
        "dead_letter.yaml" => {
            entry.get("do").is_none_or(|it| ["escalate", "wait"].iter().any(|does| it.says(does)))
        }
        _ => true,
    }
}

pub(crate) fn loosened_without_reason(subject: &Subject<'_>, out: &mut Findings) {
    for entry in SUPERVISING.iter().flat_map(|it| subject.of(it)) {
        let below = subject.inherited(entry).filter(|it| looks_after(entry.file, it));
        let Some(below) = below else { continue };
        let was = |key: &str| below.get(key).and_then(Node::text);
        let severity = |it: &str| SEVERITIES.iter().position(|known| *known == it);
        let lower = entry.node.get("severity").filter(|it| {
            let (now, before) = (it.text().and_then(severity), was("severity").and_then(severity));
            now.zip(before).is_some_and(|(now, before)| now < before)
        });
        let off = |key: &str| {
            let on = was(key) == Some("true") || (key == "enabled" && was(key).is_none());
            entry.node.get(key).filter(|it| on && it.bool() == Some(false))
        };
        // A failure that was counted or reported to a human is ignored.
        let ignored = entry
            .node
            .get("effect")
            .filter(|it| it.says("ignore") && was("effect") != Some("ignore"));
        let said = entry.text("description").is_some();
        let found = [lower, off("enabled"), off("blocking"), ignored].into_iter().flatten().next();
        if let Some(node) = found.filter(|_| !said) {
            let help = "add a `description`, or suppress this finding with a reason";
            made_weaker(entry, below, node, help, out);
        }
    }
    for entry in rules(subject) {
        let Some(below) = subject.inherited(entry) else { continue };
        if entry.text("reason").is_some() {
            continue;
        }
        let was = |key: &str, value: &str| {
            below.get(key).and_then(Node::text).is_none_or(|it| it == value)
        };
        let weaker = [
            ("enabled", "false", was("enabled", "true")),
            ("severity", "warning", was("severity", "blocker")),
            ("mode", "warn", was("mode", "enforce")),
            ("mode", "shadow", below.get("mode").and_then(Node::text) != Some("shadow")),
        ];
        let weaker = weaker.into_iter().filter(|(_, _, stronger)| *stronger);
        let weaker = weaker.filter_map(|(key, value, _)| {
            entry.node.get(key).filter(|it| it.text() == Some(value))
        });
        for node in weaker.chain(narrowed(entry, below)).chain(softened(entry, below)) {
            made_weaker(entry, below, node, "write `reason: …`", out);
        }
    }
}

fn made_weaker(entry: &PackEntry<'_>, below: &Node, node: &Node, help: &str, out: &mut Findings) {
    let message = format!("this override weakens `{}` and has no `reason`", entry.name());
    out.add(node.span.clone(), message, |it| {
        it.with_related(id_of(below).span.clone(), "the inherited rule").with_help(help)
    });
}

/// The considerations and guards that the pack itself writes.
fn rules<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s PackEntry<'s>> {
    subject.of("considerations.yaml").chain(guards(subject))
}

/// Returns filters that contain fewer names than the inherited ones: the rule does not apply to the others anymore.
fn narrowed<'s>(entry: &PackEntry<'s>, below: &Node) -> Vec<&'s Node> {
    if is_amplihacks(entry.node) {
        return Vec::new(); // A file of amplihack's says everything again, in its own way.
    }
    let keys = ["commands", "tools", "on", "applicable_session_types"];
    let lists = keys.into_iter().filter_map(|key| Some((key, entry.node.get(key)?)));
    let holds = |list: &Node, wanted: &Node| {
        let mut names = list.one_or_items().iter().filter_map(Node::text);
        names.any(|it| it == "*" || Some(it) == wanted.text())
    };
    let less = lists.filter(|(key, own)| match below.get(key) {
        Some(was) => !was.one_or_items().iter().all(|it| holds(own, it)),
        // Without a list of tools or programs it looked at all of them.
        None => {
            let any = own.one_or_items().iter().any(|it| it.text() == Some("*"));
            matches!(*key, "commands" | "tools") && !any
        }
    });
    less.map(|(_, own)| own).collect()
}

/// Exceptions that a guard did not have, and a decision or fallback that stops less.
fn softened<'s>(entry: &PackEntry<'s>, below: &Node) -> Vec<&'s Node> {
    let strength = |text: &str| match text {
        "deny" | "block" | "halt" => 3,
        "ask" | "defer" => 2,
        "warn" | "context" => 1,
        _ => 0,
    };
    let stopped = below.get("decision").and_then(Node::text).map(strength);
    let decision = entry.node.get("decision").filter(|it| {
        let now = it.text().map(strength);
        stopped.is_some() && now < stopped
    });
    let unless = entry.node.get("unless").filter(|_| below.get("unless").is_none());
    [decision, unless].into_iter().flatten().collect()
}

/// Days before its end in which a rule is said to expire soon.
const SOON_DAYS: i64 = 14;
const DAY: i64 = 86_400_000;

/// Entries that expire, with the days that remain.
fn expiring<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = (&'s PackEntry<'s>, Span, i64)> {
    rules(subject).filter_map(|entry| {
        let node = entry.node.get("expires")?;
        let left = node.date()?.millis().saturating_sub(subject.now.millis());
        Some((entry, node.span.clone(), left.div_euclid(DAY)))
    })
}

pub(crate) fn expired(subject: &Subject<'_>, out: &mut Findings) {
    for (entry, span, days) in expiring(subject) {
        if days < 0 {
            let message = format!("`{}` has expired", entry.name());
            out.add(span, message, |it| {
                it.with_help("delete the rule, or set a new date")
                    .with_note("policyd does not evaluate an expired rule")
            });
        }
    }
}

pub(crate) fn expires_soon(subject: &Subject<'_>, out: &mut Findings) {
    for (entry, span, days) in expiring(subject) {
        if (0..SOON_DAYS).contains(&days) {
            let unit = if days == 1 { "day" } else { "days" };
            let message = format!("`{}` expires in {days} {unit}", entry.name());
            out.add(span, message, |it| {
                let it = it.with_help("decide whether you still need the rule");
                Diagnostic { level: Level::Note, ..it }
            });
        }
    }
}

pub(crate) fn expires_without_reason(subject: &Subject<'_>, out: &mut Findings) {
    if !out.is_strict() {
        return;
    }
    for (entry, span, _) in expiring(subject) {
        if entry.text("reason").is_none() {
            let message = format!("`{}` expires and has no `reason`", entry.name());
            out.help(span, message, "write `reason: …`");
        }
    }
}

pub(crate) fn disabled_without_reason(subject: &Subject<'_>, out: &mut Findings) {
    if !out.is_strict() {
        return;
    }
    for entry in rules(subject).filter(|it| it.is("enabled", false)) {
        let told = entry.text("reason").is_some() || entry.text("description").is_some();
        if let (false, Some(node)) = (told, entry.node.get("enabled")) {
            let message = format!("`{}` is disabled and has no `reason`", entry.name());
            out.help(node.span.clone(), message, "write `reason: …`");
        }
    }
}
