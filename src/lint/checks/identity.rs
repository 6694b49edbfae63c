//! Checks of names: what is defined and used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::slips::{slip, slip_of};
use super::structure::each_map;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_facts::glob::word_matches;
use policyd_policy::builtin;
use policyd_policy::layers::GUARD_FILES;
use policyd_yaml::node::Node;

/// Lists whose entries have a life of their own.
#[rustfmt::skip]
pub(super) const LISTS: [&str; 6] = [
    "considerations.yaml", "checkers.yaml", "session_types.yaml", "preferences.yaml", "probes.yaml",
    "routes.yaml",
];

pub(crate) fn similar_names(subject: &Subject<'_>, out: &mut Findings) {
    for file in LISTS {
        similar(subject.of(file).map(|it| it.id), out);
        let own: BTreeSet<&str> = subject.of(file).map(PackEntry::name).collect();
        let inherited: Vec<&str> =
            subject.reviewed.meant.ids_of(file).filter(|id| !own.contains(id)).collect();
        for entry in subject.of(file) {
            let name = entry.name();
            let is_cased = |id: &&&str| id.eq_ignore_ascii_case(name) && **id != name;
            let below = inherited.iter().find(is_cased);
            if let Some(other) = below {
                let message = format!(
                    "`{name}` differs from the inherited `{other}` only in case, `-` or `_`"
                );
                let help = "use the inherited spelling, or choose a clearly different name";
                out.help(entry.id.span.clone(), message, help);
            }
        }
    }
    for node in subject.reviewed.own.values() {
        each_map(node, &mut |entries| similar(entries.iter().map(|(key, _)| key), out));
    }
}

/// Reports names that differ from another one only in case, `-` or `_`.
fn similar<'n>(names: impl Iterator<Item = &'n Node>, out: &mut Findings) {
    let mut seen: BTreeMap<String, &Node> = BTreeMap::new();
    for node in names {
        let name = node.text().unwrap_or_default();
        let first = seen.insert(name.to_lowercase().replace('-', "_"), node);
        // Equal names are an error of the loader.
        if let Some(first) = first.filter(|it| !it.says(name)) {
            let other = first.text().unwrap_or_default();
            let message = format!("`{name}` differs from `{other}` only in case, `-` or `_`");
            out.add(node.span.clone(), message, |it| {
                it.with_related(first.span.clone(), "the other entry")
                    .with_help("choose clearly different names")
            });
        }
    }
}

/// Whether an expression can name it behind a dot: `prefs.<id>`, `probes.<id>`.
fn can_be_named(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(crate) fn id_form(subject: &Subject<'_>, out: &mut Findings) {
    for file in ["preferences.yaml", "probes.yaml", "memory.yaml"] {
        for entry in subject.of(file) {
            let name = entry.name();
            if !can_be_named(name) {
                let message = format!("expressions cannot use the name `{name}`");
                let help = "use letters, digits and `_`, starting with a letter";
                out.help(entry.id.span.clone(), message, help);
            }
        }
    }
}

pub(crate) fn unused_checker(subject: &Subject<'_>, out: &mut Findings) {
    let named =
        |name: &str| subject.of("considerations.yaml").any(|it| it.text("checker") == Some(name));
    for entry in subject.of("checkers.yaml") {
        // Named ones of a pack below are used there.
        let inherited = subject.inherited(entry).is_some();
        if !inherited && !named(entry.name()) && !is_base(entry) {
            let message = format!("no check uses the checker `{}`", entry.name());
            let help = "use it in a check (`checker: …`), or delete it";
            out.help(entry.id.span.clone(), message, help);
        }
    }
}

/// Whether an entry is of the built-in pack, which others build on.
fn is_base(entry: &PackEntry<'_>) -> bool {
    builtin::wrote(&entry.id.span.source)
}

/// Sections of a vocabulary, and how an expression asks for a name of theirs, up to the name.
const SECTIONS: [(&str, &[&str]); 6] = [
    ("commands", &["kind(\"", "run_by(\"", "blamed_by(\""]),
    ("files", &["kind(\""]),
    ("paths", &["\"@", "\"!@"]),
    ("contents", &["findings(\""]),
    (
        "texts",
        &[
            "in_message(\"",
            "message_quote(\"",
            "in_messages(\"",
            "messages_quote(\"",
            "in_prompts(\"",
            "prompt_quote(\"",
            "prompted_at(\"",
            "in_last_prompt(\"",
            "last_prompt_quote(\"",
        ],
    ),
    ("forges", &["\""]),
];

/// A name that a vocabulary defines and no expression asks for.
pub(super) struct UnusedName<'s> {
    section: &'static str,
    pub(super) key: &'s Node,
    /// The inherited names of its section.
    pub(super) inherited: Vec<&'s str>,
}

pub(super) fn unused_names<'s>(subject: &'s Subject<'_>) -> Vec<UnusedName<'s>> {
    let own = subject.file("vocabulary.yaml").filter(|it| !builtin::wrote(&it.span.source));
    let Some(vocabulary) = own else { return Vec::new() };
    // As it is asked for without blanks: `kind( "test" )`.
    let sites: Vec<String> = subject.sites.iter().map(|it| it.text.replace("( ", "(")).collect();
    let mut unused = Vec::new();
    for (section, functions) in SECTIONS {
        let keys = vocabulary.get(section).and_then(Node::entries).unwrap_or_default();
        for (key, entry) in keys {
            // policyd itself asks for a kind with one of these keys.
            let is_set = |key: &&str| entry.get(key).and_then(Node::bool) == Some(true);
            if ["no_evidence", "shows_tests"].iter().any(is_set) {
                continue;
            }
            let name = key.text().unwrap_or_default();
            let calls: Vec<String> = functions.iter().map(|it| format!("{it}{name}\"")).collect();
            let asked = |text: &str| calls.iter().any(|it| text.contains(it));
            let listed = |it: &crate::subject::Leaf<'_>| {
                matches!(it.key, "files" | "except_files" | "except_kinds" | "repaired_by")
                    && it.node.text() == Some(name)
            };
            let named = sites.iter().any(|it| asked(it))
                || asked(&INHERITED)
                || (matches!(section, "files" | "commands") && subject.leaves.iter().any(listed));
            if !named {
                let is_own = |it: &&str| keys.iter().any(|(key, _)| key.says(it));
                let all = defined(subject, section).iter().map(String::as_str);
                let inherited = all.filter(|it| !is_own(it)).collect();
                unused.push(UnusedName { section, key, inherited });
            }
        }
    }
    unused
}

/// What a vocabulary and those below it define in a section.
fn defined<'s>(subject: &'s Subject<'_>, section: &str) -> &'s BTreeSet<String> {
    let names = subject.names();
    match section {
        "commands" => &names.command_kinds,
        "files" => &names.file_kinds,
        "paths" => &names.path_lists,
        "contents" => &names.contents,
        "texts" => &names.texts,
        _ => &names.forges,
    }
}

pub(crate) fn unused_pattern(subject: &Subject<'_>, out: &mut Findings) {
    if !out.is_strict() {
        return;
    }
    // Names of forges inform other packs about the project.
    let unused = unused_names(subject).into_iter().filter(|it| it.section != "forges");
    for UnusedName { key, inherited, .. } in unused {
        let name = key.text().unwrap_or_default();
        if slip(name, &inherited).is_none() {
            let message = format!("no expression uses `{name}`");
            out.help(key.span.clone(), message, "use it, or delete it");
        }
    }
}

/// The expressions of the built-in pack, which own entries of its names serve, without the escapes of quotes.
pub(super) static INHERITED: LazyLock<String> = LazyLock::new(|| {
    let text: String = builtin::FILES.iter().map(|it| it.text).collect();
    text.replace("\\\"", "\"")
});

pub(crate) fn unused_fact(subject: &Subject<'_>, out: &mut Findings) {
    let files =
        [("probes.yaml", "probes"), ("preferences.yaml", "prefs"), ("memory.yaml", "memory")];
    for (file, owner) in files {
        // What no expression can name is another finding.
        let own = |it: &&PackEntry<'_>| {
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

pub(crate) fn never_remembered(subject: &Subject<'_>, out: &mut Findings) {
    let remembers = |id: &str| {
        GUARD_FILES.iter().flat_map(|file| subject.of(file)).any(|guard| {
            let entries = guard.node.get("remember").and_then(Node::entries).unwrap_or_default();
            entries.iter().any(|it| it.0.text() == Some(id))
        })
    };
    let own = |it: &&PackEntry<'_>| subject.inherited(it).is_none() && !is_base(it);
    for entry in subject.of("memory.yaml").filter(own).filter(|it| !remembers(it.name())) {
        let message =
            format!("no guard remembers anything in `{}`, so it is always empty", entry.name());
        let help =
            format!("add `remember: {{{}: \"${{program.line}}\"}}` to a guard", entry.name());
        out.help(entry.id.span.clone(), message, help);
    }
}

/// What the program's own breakers begin with.
const OWN_BREAKERS: [&str; 2] = ["probe", "alert"];

pub(crate) fn unmatched_breaker(subject: &Subject<'_>, out: &mut Findings) {
    if subject.of("breakers.yaml").next().is_none() {
        return;
    }
    let names: Vec<_> = subject.reviewed.meant.probe_breakers().collect();
    for entry in subject.of("breakers.yaml") {
        let (kind, _) = entry.name().split_once('/').unwrap_or_default();
        if let Some(meant) = slip_of(kind, OWN_BREAKERS.into_iter()) {
            let message = format!("unknown type of breaker `{kind}/`");
            let fix = entry.id.rewritten(&entry.name().replacen(kind, meant, 1));
            out.help(entry.id.span.clone(), message, fix);
        }
        if kind.trim_end_matches('*') == "probe"
            && !names.iter().any(|it| word_matches(entry.name(), it))
        {
            let known: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            let message = format!("no probe uses the breaker `{}`", entry.name());
            out.add(entry.id.span.clone(), message, |it| it.with_meant(entry.name(), &known));
        }
    }
}

pub(crate) fn unknown_voice(subject: &Subject<'_>, out: &mut Findings) {
    let chosen = subject.file("policyd.yaml").and_then(|it| it.get("voice"));
    let Some((node, name)) = chosen.and_then(|it| Some((it, it.text()?))) else { return };
    let voices: Vec<&str> = subject.reviewed.meant.voices().chain(["plain"]).collect();
    if !voices.contains(&name) {
        out.add(node.span.clone(), format!("no message has the voice `{name}`"), |it| {
            it.with_meant(name, &voices)
        });
    }
}
