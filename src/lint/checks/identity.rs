//! Checks of names: what is defined and used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::names::slip;
use super::programs::{LETTERS_MIN, is_slip, slip_of};
use crate::facts::glob::word_matches;
use crate::lint::subject::{Entry, Leaf};
use crate::lint::{Findings, Subject};
use crate::policy::builtin;
use crate::source::node::Node;
use crate::source::suggest;

/// Lists whose entries have a life of their own.
pub(super) const LISTS: [&str; 6] = [
    "considerations.yaml",
    "checkers.yaml",
    "session_types.yaml",
    "preferences.yaml",
    "probes.yaml",
    "routes.yaml",
];

pub(in crate::lint) fn misspelled_answer(subject: &Subject<'_>, out: &mut Findings) {
    for table in subject.of("tables.yaml") {
        let rows = table.node.get("rows").and_then(Node::items).unwrap_or_default();
        let last = subject.said(table, "otherwise").map(|it| it.get("answer").unwrap_or(it));
        let answers = rows.iter().filter_map(|it| it.get("answer")).chain(last);
        let answers: Vec<(&str, &Node)> = answers.filter_map(|it| Some((it.text()?, it))).collect();
        let letters = |it: &str| it.replace(|c: char| c.is_ascii_digit(), "");
        let times = |text: &str| answers.iter().filter(|(it, _)| *it == text).count();
        let is_own = |node: &Node| Arc::ptr_eq(&node.span.source, &table.id.span.source);
        for (at, (text, node)) in answers.iter().enumerate().filter(|(_, (_, it))| is_own(it)) {
            let slips = |it: &str| {
                let long = it.len().min(text.len()) >= LETTERS_MIN;
                let (short, whole) = if it.len() < text.len() { (it, *text) } else { (*text, it) };
                // `user` and `users`, `wait` and `await` are two.
                let longer = whole.starts_with(short) || whole.ends_with(short);
                let near = long && !longer && (is_slip(text, it) || is_slip(it, text));
                let cased = it.len() > 1 && it.eq_ignore_ascii_case(text);
                letters(it) != letters(text) && (near || cased)
            };
            // Of two the rarer one is the slip, or the later; what is inherited is none.
            let meant = answers.iter().enumerate().find(|(other, (it, place))| {
                let (own, theirs) = (times(text), times(it));
                let later = own == theirs && (*other < at || !is_own(place));
                slips(it) && (own < theirs || later)
            });
            let Some((_, (meant, other))) = meant else { continue };
            out.add(
                node.span.clone(),
                format!("the answer `{text}` is similar to `{meant}`"),
                |it| {
                    it.with_related(other.span.clone(), "used here")
                        .with_note("callers of the table treat them as two answers")
                        .with_help(format!("did you mean `{meant}`?"))
                },
            );
        }
    }
}

pub(in crate::lint) fn similar_category(subject: &Subject<'_>, out: &mut Findings) {
    let own: Vec<&Node> =
        subject.of("considerations.yaml").filter_map(|it| it.node.get("category")).collect();
    if own.is_empty() {
        return;
    }
    let all = subject.policy().map(|it| it.considerations.iter()).into_iter().flatten();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for category in all.map(|it| &*it.category) {
        *times.entry(category).or_default() += 1;
    }
    let count = |it: &str| times.get(it).copied().unwrap_or(0);
    for node in own {
        let name = node.text().unwrap_or_default();
        let is_near = |it: &str| {
            it != name
                && (it.eq_ignore_ascii_case(name) || is_slip(it, name) || is_slip(name, it))
                && name.len().min(it.len()) > LETTERS_MIN
        };
        // Of two the rarer one is the slip, or the one that sorts later.
        let meant =
            times.keys().copied().find(|it| is_near(it) && (count(it), *it) > (count(name), name));
        let Some(meant) = meant else { continue };
        out.add(
            node.span.clone(),
            format!("the category `{name}` is similar to `{meant}`"),
            |it| {
                it.with_note("reports show them as two categories")
                    .with_help(format!("did you mean `{meant}`?"))
            },
        );
    }
}

pub(in crate::lint) fn similar_ids(subject: &Subject<'_>, out: &mut Findings) {
    for file in LISTS {
        let mut seen: BTreeMap<String, Entry<'_>> = BTreeMap::new();
        for entry in subject.of(file) {
            let folded = entry.name().to_lowercase().replace('-', "_");
            let name = entry.name();
            let alike = |it: &&str| it.eq_ignore_ascii_case(name) && *it != name;
            let below = subject.reviewed.meant.ids_of(file).find(alike);
            // Two of the pack's own are told below.
            if let Some(other) = below.filter(|it| !subject.of(file).any(|own| own.name() == *it)) {
                let message = format!(
                    "`{name}` differs from the inherited `{other}` only in case, `-` or `_`"
                );
                let help = "use the inherited spelling, or choose a clearly different name";
                out.help(entry.id.span.clone(), message, help);
            }
            if let Some(first) = seen.insert(folded, *entry)
                && first.name() != entry.name()
            {
                let message = format!(
                    "`{}` differs from `{}` only in case, `-` or `_`",
                    entry.name(),
                    first.name()
                );
                out.add(entry.id.span.clone(), message, |it| {
                    it.with_related(first.id.span.clone(), "the other entry")
                        .with_help("choose clearly different names")
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
                let message = format!("expressions cannot use the name `{name}`");
                let help = "use letters, digits and `_`, starting with a letter";
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
            let message = format!("no check uses the checker `{}`", entry.name());
            let help = "use it in a check (`checker: …`), or delete it";
            out.help(entry.id.span.clone(), message, help);
        }
    }
}

/// Whether an entry is of the built-in pack, which others build on.
fn is_base(entry: &Entry<'_>) -> bool {
    builtin::wrote(&entry.id.span.source)
}

/// Sections of a vocabulary, and how an expression asks for a name of theirs, up to the name.
const SECTIONS: [(&str, &[&str]); 5] = [
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
    ("forges", &[""]),
];

/// A name that a vocabulary defines and no expression asks for.
struct Unused<'s> {
    section: &'static str,
    key: &'s Node,
    /// The inherited name that was meant, as it seems.
    meant: Option<&'s str>,
}

fn unused_names<'s>(subject: &'s Subject<'_>) -> Vec<Unused<'s>> {
    let own = subject.file("vocabulary.yaml").filter(|it| !builtin::wrote(&it.span.source));
    let Some(vocabulary) = own else { return Vec::new() };
    // As it is asked for without blanks: `kind( "test" )`.
    let sites: Vec<String> = subject.sites.iter().map(|it| it.text.replace("( ", "(")).collect();
    let mut unused = Vec::new();
    for (section, functions) in SECTIONS {
        let keys = vocabulary.get(section).and_then(Node::entries).unwrap_or_default();
        for (key, _) in keys {
            let name = key.text().unwrap_or_default();
            let asked =
                |text: &str| functions.iter().any(|it| text.contains(&format!("{it}\"{name}\"")));
            let listed = |it: &crate::lint::subject::Leaf<'_>| {
                matches!(it.key, "files" | "except_files") && it.node.text() == Some(name)
            };
            let named = sites.iter().any(|it| asked(it))
                || asked(&INHERITED)
                || (section == "files" && subject.leaves.iter().any(listed));
            if !named {
                let is_own = |it: &&str| keys.iter().any(|(key, _)| key.says(it));
                let all = defined(subject, section).iter().map(String::as_str);
                let below: Vec<&str> = all.filter(|it| !is_own(it)).collect();
                unused.push(Unused { section, key, meant: slip(name, &below) });
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
        "contents" => &names.contents,
        "texts" => &names.texts,
        _ => &names.forges,
    }
}

pub(in crate::lint) fn unused_pattern(subject: &Subject<'_>, out: &mut Findings) {
    // Whoever names a forge tells others what the project is on.
    let unused = unused_names(subject).into_iter().filter(|it| it.section != "forges");
    for it in unused.filter(|it| it.meant.is_none()) {
        let message = format!("no expression uses `{}`", it.key.text().unwrap_or_default());
        out.help(it.key.span.clone(), message, "use it, or delete it");
    }
}

pub(in crate::lint) fn similar_to_inherited(subject: &Subject<'_>, out: &mut Findings) {
    for Unused { section, key, meant } in unused_names(subject) {
        let (Some(meant), Some(name)) = (meant, key.text()) else { continue };
        let message =
            format!("no expression uses `{name}`, which is similar to the inherited `{meant}`");
        out.add(key.span.clone(), message, |it| {
            it.with_note(format!(
                "an entry of `{section}` is merged with the inherited entry of the same name"
            ))
            .with_help(format!("did you mean `{meant}`?"))
            .with_word(name, meant)
        });
    }
}

/// The expressions of the built-in pack, which own entries of its names serve, without the escapes of quotes.
pub(super) static INHERITED: LazyLock<String> = LazyLock::new(|| {
    let text: String = builtin::FILES.iter().map(|it| it.text).collect();
    text.replace("\\\"", "\"")
});

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
            let message = format!("unknown type of breaker `{kind}/`");
            let help = format!("write `{}`", entry.name().replacen(kind, meant, 1));
            out.help(entry.id.span.clone(), message, help);
        }
        if kind.trim_end_matches('*') == "probe"
            && !names.iter().any(|it| word_matches(entry.name(), it))
        {
            let known: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
            let help = suggest::did_you_mean(entry.name(), &known);
            let message = format!("no probe uses the breaker `{}`", entry.name());
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
            let message = format!("the voice `{name}` is similar to `{meant}`");
            out.add(node.span.clone(), message, |it| {
                it.with_note("policyd does not use the text if that voice is selected")
                    .with_help(format!("did you mean `{meant}`?"))
                    .with_word(name, meant)
            });
        }
    }
}
