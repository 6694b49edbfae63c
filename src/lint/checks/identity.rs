//! Checks of names: what is defined, used, changed and switched off.

use std::collections::BTreeMap;

use super::guards::guards;
use super::names::slip;
use super::programs::slip_of;
use crate::facts::glob::word_matches;
use crate::lint::subject::{Entry, Leaf};
use crate::lint::{Findings, Subject};
use crate::policy::builtin;
use crate::policy::guards::FILES;
use crate::policy::layers::is_amplihacks;
use crate::policy::shapes::resilience::SEVERITIES;
use crate::source::node::Node;
use crate::source::{Span, suggest};

/// Lists whose entries have a life of their own.
const LISTS: [&str; 6] = [
    "considerations.yaml",
    "checkers.yaml",
    "session_types.yaml",
    "preferences.yaml",
    "probes.yaml",
    "routes.yaml",
];

pub(in crate::lint) fn ids_alike(subject: &Subject<'_>, out: &mut Findings) {
    for file in LISTS {
        let mut seen: BTreeMap<String, Entry<'_>> = BTreeMap::new();
        for entry in subject.of(file) {
            let folded = entry.name().to_lowercase().replace('-', "_");
            let name = entry.name();
            let alike = |it: &&str| it.eq_ignore_ascii_case(name) && *it != name;
            let below = subject.reviewed.meant.ids_of(file).find(alike);
            // Two of the pack's own are told below.
            if let Some(other) = below.filter(|it| !subject.of(file).any(|own| own.name() == *it)) {
                let message = format!("`{name}` is almost `{other}` of a pack below");
                let help = "write it as it is there, or give it a name that nobody confuses";
                out.help(entry.id.span.clone(), message, help);
            }
            if let Some(first) = seen.insert(folded, *entry)
                && first.name() != entry.name()
            {
                let message = format!("`{}` is almost `{}`", entry.name(), first.name());
                out.add(entry.id.span.clone(), message, |it| {
                    it.with_related(first.id.span.clone(), "the other one")
                        .with_help("give them names that nobody confuses")
                });
            }
        }
    }
}

/// Whether an expression can name it behind a dot: `prefs.<id>`, `probes.<id>`.
fn can_be_named(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(in crate::lint) fn id_form(subject: &Subject<'_>, out: &mut Findings) {
    for file in ["preferences.yaml", "probes.yaml"] {
        for entry in subject.of(file) {
            let name = entry.name();
            if !can_be_named(name) {
                let message = format!("no expression can name `{name}`");
                let help = "use letters, digits and `_`, a letter first";
                out.help(entry.id.span.clone(), message, help);
            }
        }
    }
}

pub(in crate::lint) fn unused_checker(subject: &Subject<'_>, out: &mut Findings) {
    let named =
        |name: &str| subject.of("considerations.yaml").any(|it| it.text("checker") == Some(name));
    for entry in subject.of("checkers.yaml") {
        // Named ones of a pack below are used there.
        let inherited = subject.inherited(entry).is_some();
        if !inherited && !named(entry.name()) && !is_base(entry) {
            let message = format!("no consideration uses the checker `{}`", entry.name());
            let help = "name it in a consideration (`checker: …`), or delete it";
            out.help(entry.id.span.clone(), message, help);
        }
    }
}

/// Whether an entry is of the built-in pack, which others build on.
fn is_base(entry: &Entry<'_>) -> bool {
    builtin::wrote(&entry.id.span.source)
}

/// Sections of a vocabulary, and the functions that take a name of theirs.
const SECTIONS: [(&str, &[&str]); 4] = [
    ("commands", &["kind("]),
    ("files", &["kind("]),
    ("contents", &["findings("]),
    (
        "texts",
        &[
            "in_message(",
            "message_quote(",
            "in_messages(",
            "messages_quote(",
            "in_prompts(",
            "prompt_quote(",
            "prompted_at(",
        ],
    ),
];

pub(in crate::lint) fn unused_pattern(subject: &Subject<'_>, out: &mut Findings) {
    let Some(vocabulary) = subject.file("vocabulary.yaml") else { return };
    if builtin::wrote(&vocabulary.span.source) {
        return;
    }
    let inherited = inherited_text();
    for (section, functions) in SECTIONS {
        for (key, _) in vocabulary.get(section).and_then(Node::entries).unwrap_or_default() {
            let name = key.text().unwrap_or_default();
            let used =
                |text: &str| functions.iter().any(|it| text.contains(&format!("{it}\"{name}\"")));
            let listed = |it: &crate::lint::subject::Leaf<'_>| {
                matches!(it.key, "files" | "except_files") && it.node.text() == Some(name)
            };
            let named = subject.sites.iter().any(|it| used(it.text))
                || used(&inherited.replace("\\\"", "\""))
                || (section == "files" && subject.leaves.iter().any(listed));
            if !named {
                let message = format!("no expression asks for `{name}`");
                out.help(key.span.clone(), message, "use it, or delete it");
            }
        }
    }
}

/// The expressions of the built-in pack, which own entries of its names serve.
fn inherited_text() -> String {
    builtin::FILES.iter().map(|(_, text)| *text).collect()
}

pub(in crate::lint) fn unused_fact(subject: &Subject<'_>, out: &mut Findings) {
    for (file, owner) in [("probes.yaml", "probes"), ("preferences.yaml", "prefs")] {
        // What no expression can name is another finding.
        let own = |it: &&Entry<'_>| {
            subject.inherited(it).is_none() && !is_base(it) && can_be_named(it.name())
        };
        for entry in subject.of(file).filter(own) {
            let path = format!("{owner}.{}", entry.name());
            let reads = |text: &str| {
                text.match_indices(&path).any(|(at, _)| {
                    let rest = text.get(at + path.len()..).unwrap_or_default();
                    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                })
            };
            if !subject.sites.iter().any(|it| reads(it.text)) {
                let message = format!("no expression reads `{path}`");
                out.help(entry.id.span.clone(), message, "read it in a rule, or delete it");
            }
        }
    }
}

pub(in crate::lint) fn override_without_effect(subject: &Subject<'_>, out: &mut Findings) {
    for entry in &subject.entries {
        let Some(below) = subject.inherited(entry) else { continue };
        if is_amplihacks(entry.node) {
            continue; // A file of amplihack's says everything again.
        }
        let own = entry.node.entries().unwrap_or_default();
        let said = |key: &Node| !matches!(key.text(), Some("id" | "override" | "reason"));
        let changes = own.iter().filter(|(key, _)| said(key)).any(|(key, value)| {
            let name = key.text().unwrap_or_default();
            below.get(name).is_none_or(|it| !same(it, value))
        });
        if !changes {
            let message = format!("this says of `{}` what is said already", entry.name());
            out.add(entry.id.span.clone(), message, |it| {
                it.with_related(id_of(below).span.clone(), "said here").with_help("delete it")
            });
        }
    }
}

/// The id of an entry of a list; an entry of a map stands for itself.
fn id_of(entry: &Node) -> &Node {
    entry.get("id").unwrap_or(entry)
}

/// Whether two values say the same, wherever and however they are written.
fn same(one: &Node, other: &Node) -> bool {
    match (one.items(), other.items(), one.entries(), other.entries()) {
        (Some(one), Some(other), ..) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (_, _, Some(one), Some(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((key, one), (name, other))| {
                    key.text() == name.text() && same(one, other)
                })
        }
        _ => one.text().is_some() && one.text() == other.text(),
    }
}

pub(in crate::lint) fn implicit_override(subject: &Subject<'_>, out: &mut Findings) {
    let listed = |it: &&Entry<'_>| LISTS.contains(&it.file) || FILES.contains(&it.file);
    for entry in subject.entries.iter().filter(listed) {
        let Some(below) = subject.inherited(entry) else { continue };
        if entry.node.get("override").is_none() && !is_amplihacks(entry.node) {
            let message =
                format!("`{}` changes an inherited entry and does not say so", entry.name());
            out.add(entry.id.span.clone(), message, |it| {
                it.with_related(id_of(below).span.clone(), "this one")
                    .with_note("what it leaves out stays as it is there")
                    .with_help("write `override: true`, or give it a name of its own")
            });
        }
    }
}

/// Files whose entries look after the agent; they say why in `description`.
const SUPERVISING: [&str; 6] = [
    "escalation.yaml",
    "reactions.yaml",
    "failures.yaml",
    "dead_letter.yaml",
    "signals.yaml",
    "rationalizations.yaml",
];

/// Whether the agent is held or somebody told by an entry: a review that gives tasks up, or a signal that
/// others create, does neither.
fn looks_after(file: &str, entry: &Node) -> bool {
    match file {
        "signals.yaml" => entry.get("when").is_some(),
        "dead_letter.yaml" => {
            entry.get("do").is_none_or(|it| ["escalate", "wait"].iter().any(|does| it.says(does)))
        }
        _ => true,
    }
}

pub(in crate::lint) fn loosened_without_reason(subject: &Subject<'_>, out: &mut Findings) {
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
        // A failure that counted, or was told to a human, is let be.
        let ignored = entry
            .node
            .get("effect")
            .filter(|it| it.says("ignore") && was("effect") != Some("ignore"));
        let said = entry.text("description").is_some();
        let found = [lower, off("enabled"), off("blocking"), ignored].into_iter().flatten().next();
        if let Some(node) = found.filter(|_| !said) {
            let help = "say why in `description`, or ignore this with a reason";
            made_weaker((entry, below), node, help, out);
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
            made_weaker((entry, below), node, "write `reason: …`", out);
        }
    }
}

fn made_weaker((entry, below): (&Entry<'_>, &Node), node: &Node, help: &str, out: &mut Findings) {
    let message = format!("`{}` is made weaker, and nobody says why", entry.name());
    out.add(node.span.clone(), message, |it| {
        it.with_related(id_of(below).span.clone(), "the rule as it was").with_help(help)
    });
}

/// The considerations and guards that the pack itself writes.
fn rules<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = &'s Entry<'s>> {
    subject.of("considerations.yaml").chain(guards(subject))
}

/// Lists that name less than they did: where a rule looks. What is not named any more is let through.
fn narrowed<'s>(entry: &Entry<'s>, below: &Node) -> Vec<&'s Node> {
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
fn softened<'s>(entry: &Entry<'s>, below: &Node) -> Vec<&'s Node> {
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
fn expiring<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = (&'s Entry<'s>, Span, i64)> {
    rules(subject).filter_map(|entry| {
        let node = entry.node.get("expires")?;
        let left = node.date()?.millis().saturating_sub(subject.now.millis());
        Some((entry, node.span.clone(), left.div_euclid(DAY)))
    })
}

pub(in crate::lint) fn expired(subject: &Subject<'_>, out: &mut Findings) {
    for (entry, span, days) in expiring(subject) {
        if days < 0 {
            let message = format!("`{}` has expired", entry.name());
            out.add(span, message, |it| {
                it.with_help("delete the rule, or decide on a new date")
                    .with_note("it is not judged any more")
            });
        }
    }
}

pub(in crate::lint) fn expires_soon(subject: &Subject<'_>, out: &mut Findings) {
    for (entry, span, days) in expiring(subject) {
        if (0..SOON_DAYS).contains(&days) {
            let message = format!("`{}` expires in {days} day(s)", entry.name());
            out.help(span, message, "decide whether it is still needed");
        }
    }
}

pub(in crate::lint) fn expires_without_reason(subject: &Subject<'_>, out: &mut Findings) {
    for (entry, span, _) in expiring(subject) {
        if entry.text("reason").is_none() {
            let message = format!("`{}` expires, and nobody says why", entry.name());
            out.help(span, message, "write `reason: …`");
        }
    }
}

pub(in crate::lint) fn disabled_without_reason(subject: &Subject<'_>, out: &mut Findings) {
    for entry in rules(subject).filter(|it| it.is("enabled", false)) {
        let told = entry.text("reason").is_some() || entry.text("description").is_some();
        if let (false, Some(node)) = (told, entry.node.get("enabled")) {
            let message = format!("`{}` is switched off, and nobody says why", entry.name());
            out.help(node.span.clone(), message, "write `reason: …`");
        }
    }
}

/// What the program's own breakers begin with.
const OWN_BREAKERS: [&str; 2] = ["probe", "alert"];

pub(in crate::lint) fn unmatched_breaker(subject: &Subject<'_>, out: &mut Findings) {
    if subject.of("breakers.yaml").next().is_none() {
        return;
    }
    let names: Vec<_> = subject.reviewed.meant.probe_breakers().collect();
    for entry in subject.of("breakers.yaml") {
        let (kind, _) = entry.name().split_once('/').unwrap_or_default();
        if let Some(meant) = slip_of(kind, OWN_BREAKERS.into_iter()) {
            let message = format!("`{kind}/` is nearly `{meant}/`, and no breaker of this program");
            let help = format!("write `{}`", entry.name().replacen(kind, meant, 1));
            out.help(entry.id.span.clone(), message, help);
        }
        if kind.trim_end_matches('*') == "probe"
            && !names.iter().any(|it| word_matches(entry.name(), it))
        {
            let known: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            let help = suggest::did_you_mean(entry.name(), &known);
            let message = format!("no probe has a breaker `{}`", entry.name());
            out.add(entry.id.span.clone(), message, |it| it.with_help_if(help));
        }
    }
}

pub(in crate::lint) fn unknown_voice(subject: &Subject<'_>, out: &mut Findings) {
    let (manifest, messages) = (subject.file("policyd.yaml"), subject.file("messages.yaml"));
    if manifest.is_none() && messages.is_none() {
        return;
    }
    let chosen = manifest.and_then(|it| it.get("voice"));
    let chosen = chosen.and_then(|it| Some((it, it.text()?)));
    let voices: Vec<&str> = subject.reviewed.meant.voices().chain(["plain"]).collect();
    if let Some((node, name)) = chosen.filter(|(_, it)| !voices.contains(it)) {
        out.add(node.span.clone(), format!("no message has the voice `{name}`"), |it| {
            it.with_meant(name, &voices)
        });
    }
    // A text with a voice that nobody chooses is never said; it may be meant for others, who choose it.
    let chosen = chosen.map(|(_, it)| it).filter(|it| voices.contains(it));
    let is_voice = |it: &&Leaf<'_>| it.key == "voice" && it.file == "messages.yaml";
    let own: Vec<_> = subject.leaves.iter().filter(is_voice).map(|it| it.node).collect();
    let times = |name: &str| own.iter().filter(|it| it.says(name)).count();
    for node in &own {
        let name = node.text().unwrap_or_default();
        let others: Vec<&str> = voices.iter().copied().filter(|it| *it != name).collect();
        // Of two that the pack has, the rarer one is the slip; what is chosen is none.
        let meant = slip(name, &others).filter(|it| {
            let of_others = times(it) == 0;
            of_others
                || times(name) < times(it)
                || (Some(*it) == chosen && times(name) == times(it))
        });
        if let Some(meant) = meant.filter(|_| chosen != Some(name)) {
            let message = format!("the voice `{name}` is nearly `{meant}`");
            out.add(node.span.clone(), message, |it| {
                it.with_note("the text is not said where that voice is chosen")
                    .with_help(format!("did you mean `{meant}`?"))
                    .with_word(name, meant)
            });
        }
    }
}
