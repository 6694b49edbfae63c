//! The mutation gate: dropping or swapping one character in a key, an enum value or a name of the
//! built-in pack is never passed over in silence while it changes what is decided.
//!
//! Every third word of those that stand anywhere in the pack is mutated at one of its places, once: each
//! costs a whole load of the pack. If `CI` is not set, it is every thirtieth word. Every word, at one place:
//! `POLICYD_MUTATE=words`, at another character `words+1` and so on; every character of every word, at one place: `characters` (half an hour
//! of two cores); all words, places and characters (hours):
//! `POLICYD_MUTATE=all cargo test --release --test lint mutations`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::thread;

use policyd::expr::ast::ExprKind;
use policyd::facts::glob::word_matches;
use policyd::lint::{self, Profile, Subject};
use policyd::policy::builtin;
use policyd::policy::guards::GuardBody;
use policyd::policy::load::{self, Pack};
use policyd::policy::review::{Base, ReviewedPolicy};
use policyd::source::node::{Node, NodeKind};
use policyd::source::shape::Kind;
use policyd::source::{Level, Source};
use policyd::time::Timestamp;

use crate::subjects::TODAY;
use crate::support::full;

/// A word of the pack: its file by number, and its bytes.
#[derive(Debug, Clone)]
struct Word {
    file: usize,
    start: usize,
    text: String,
    /// Whether the name is defined here: under another one the same is decided.
    defines: bool,
}

impl Word {
    /// Whether a mutant may be the name of another program, or of another word behind it: of so few
    /// letters nobody can tell, and some are known to be.
    fn may_be_another_program(&self, mutant: &str) -> bool {
        let (was, is) = (self.text.split(' '), mutant.split(' '));
        let changed = was.zip(is).find(|(was, is)| was != is);
        let real = [
            "argo", "elm", "ent", "erl", "fpc", "ionic", "isntall", "lld", "nim", "nvm", "pic",
            "pnp", "ppm", "pst", "python", "shasum", "star", "sync", "test", "top", "tst",
        ];
        let few = changed.is_some_and(|(was, is)| was.len() < 4 || real.contains(&is));
        let is_program =
            builtin::FILES.get(self.file).is_some_and(|it| it.name == "vocabulary.yaml");
        is_program && few
    }
}

/// The built-in pack as a folder holds it.
fn folder() -> Pack {
    let files = builtin::FILES.iter().map(|builtin::File { name, text, .. }| {
        let source = Source { name: format!("policies/{name}"), text: (*text).to_owned() };
        ((*name).to_owned(), Arc::new(source))
    });
    Pack { name: "policies".to_owned(), files: files.collect(), ..Pack::default() }
}

/// Keys, values of closed sets, ids that are named elsewhere, and names within expressions.
fn words() -> Vec<Word> {
    let pack = folder();
    let base = Base::new(&builtin::pack());
    let reviewed = ReviewedPolicy::new(&pack, &base);
    let subject = Subject::new(&pack, &reviewed, Timestamp::parse(TODAY).unwrap());
    let mut found = Vec::new();
    let file_of =
        |source: &Arc<Source>| pack.files.iter().position(|(_, it)| it == source).unwrap();
    let mut take = |source: &Arc<Source>, start: usize, text: &str, defines: bool| {
        if source.text.get(start..start + text.len()) == Some(text) {
            found.push(Word { file: file_of(source), start, text: text.to_owned(), defines });
        }
    };
    for node in reviewed.own.values() {
        keys(node, false, &mut |key, defines| {
            take(&key.span.source, key.span.start, key.text().unwrap_or_default(), defines)
        });
    }
    for leaf in &subject.leaves {
        let named = matches!(leaf.kind, Kind::Choice(_))
            || matches!(leaf.key, "checker" | "on" | "applicable_session_types" | "voice");
        if named {
            let text = leaf.node.text().unwrap_or_default();
            let start = leaf.node.sub_span(0..text.len()).start;
            take(&leaf.node.span.source, start, text, leaf.key == "voice");
        }
    }
    for entry in &subject.entries {
        take(&entry.id.span.source, entry.id.span.start, entry.name(), true);
    }
    for site in &subject.sites {
        site.visit(|term| {
            let ExprKind::Fact(..) = term.kind else { return };
            let (text, start) = (site.part(&term.range), term.range.start);
            for (at, word) in names(text) {
                let span = site.span(&(start + at..start + at + word.len()));
                take(&span.source, span.start, word, false);
            }
        });
    }
    found
}

/// Keys of maps, all the way down, and whether they define a name for others to use. Those of `cures` are
/// texts that are looked for in what a program said, and those of `models`, `variants`, and `languages` in the name of a
/// model or a tool, as free as a phrase; the names of profiles and of the fields of a signal are the author's own.
fn keys<'n>(node: &'n Node, define: bool, look: &mut impl FnMut(&'n Node, bool)) {
    match &node.kind {
        NodeKind::Map(entries) => {
            for (key, value) in entries.iter() {
                look(key, define);
                match key.text() {
                    Some("cures" | "models" | "variants" | "languages") => {}
                    Some("profiles" | "fields") => {
                        let own = value.entries().unwrap_or_default();
                        own.iter().for_each(|(_, labels)| keys(labels, false, look));
                    }
                    // Kinds of the vocabulary.
                    Some("files" | "commands" | "contents" | "texts") => keys(value, true, look),
                    _ => keys(value, false, look),
                }
            }
        }
        NodeKind::List(items) => items.iter().for_each(|it| keys(it, false, look)),
        NodeKind::Scalar(_) | NodeKind::Invalid => {}
    }
}

/// Names of facts, fields, functions and of what the vocabulary defines; free texts left out.
fn names(chain: &str) -> Vec<(usize, &str)> {
    let defining = [
        "kind(",
        "findings(",
        "in_message(",
        "message_quote(",
        "in_messages(",
        "in_prompts(",
        "prompt_quote(",
    ];
    let (mut found, mut at) = (Vec::new(), 0);
    for piece in chain.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_')) {
        let word = piece.trim_end_matches(|c: char| !(c.is_alphanumeric() || c == '_'));
        let before = chain.get(..at).unwrap_or_default();
        let quoted = before.replace("\\\"", "").matches('"').count() % 2 == 1;
        let defined = defining.iter().any(|it| before.ends_with(&format!("{it}\"")));
        if word.len() > 1 && !word.starts_with(|c: char| c.is_numeric()) && (!quoted || defined) {
            found.push((at, word));
        }
        at += piece.len();
    }
    found
}

/// A character dropped, or swapped with the next one, where that makes another word.
fn mutants(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    let mut found = Vec::new();
    for at in 0..chars.len() {
        let mut dropped = chars.clone();
        dropped.remove(at);
        found.push(dropped.into_iter().collect());
        if at + 1 < chars.len() {
            let mut swapped = chars.clone();
            swapped.swap(at, at + 1);
            found.push(swapped.into_iter().collect());
        }
    }
    // The last message, and all of them: which one was meant nobody but the author knows.
    let both_are = |it: &String| {
        matches!(
            (word, it.as_str()),
            ("in_messages", "in_message") | ("messages_quote", "message_quote")
        )
    };
    found.retain(|it: &String| it != word && !it.is_empty() && !both_are(it));
    found
}

/// Whether a mutant is a glob that fits all that the glob fits which it was made of: `probe*`, `probe/*`.
fn is_wider(mutant: &str, glob: &str) -> bool {
    mutant.contains('*') && word_matches(mutant, glob)
}

/// What a pack decides by: its policy without places.
fn decisions(pack: &Pack) -> Option<String> {
    let policy = load::load(pack, &builtin::pack()).policy?;
    let bodies: Vec<&GuardBody> = policy.guards.rules.iter().map(|it| &*it.body).collect();
    let all: [&dyn Debug; 20] = [
        &policy.settings,
        &policy.lens,
        &policy.considerations,
        &policy.session_types,
        &*policy.preferences,
        &*policy.probes,
        &*policy.failures,
        &*policy.rationalizations,
        &*policy.messages,
        &*policy.guards,
        &bodies,
        &*policy.breakers,
        &*policy.routes,
        &*policy.dead_letter,
        &*policy.escalation,
        &*policy.reactions,
        &*policy.signals,
        &*policy.run,
        &*policy.tables,
        &*policy.context,
    ];
    let text = format!("{all:?}");
    // Lines and columns move with the text.
    let mut plain = String::new();
    for piece in text.split("place: Place {") {
        plain.push_str(piece.split_once('}').map_or(piece, |(place, rest)| {
            if plain.is_empty() && !place.contains("file:") { piece } else { rest }
        }));
    }
    Some(plain)
}

/// Whether lint says something of a pack. Its cases are not looked at here: without them, every rule would
/// lack one.
fn is_warned_of(pack: &Pack, reviewed: &ReviewedPolicy) -> bool {
    let now = Timestamp::parse(TODAY).unwrap();
    let found = lint::review(&Subject::new(pack, reviewed, now), Profile::Strict, true).findings;
    found.iter().any(|it| it.level >= Level::Warning && it.code != "missing-case")
}

/// Whether a mutant is passed over although it changes what is decided.
fn slips_through(base: &Base, original: &str, word: &Word, mutant: &str) -> bool {
    let mut pack = folder();
    let (_, source) = pack.files.get_mut(word.file).unwrap();
    let mut text = source.text.clone();
    text.replace_range(word.start..word.start + word.text.len(), mutant);
    *source = Arc::new(Source { name: source.name.clone(), text });
    let reviewed = ReviewedPolicy::new(&pack, base);
    // What the loader refuses no comment can silence, and most typos end here.
    if reviewed.diagnostics.iter().any(|it| it.level >= Level::Error) {
        return false;
    }
    if is_warned_of(&pack, &reviewed) {
        return false;
    }
    let decisions = decisions(&pack).unwrap();
    // Something else may have the mutant's name.
    let renamed = |it: &str| it.replace(&format!("{mutant:?}"), &format!("{:?}", word.text));
    let (here, there) = (renamed(&decisions), renamed(original));
    decisions != original && !(word.defines && parts_in_order(&here) == parts_in_order(&there))
}

/// What a pack decides by, without the order of its parts: tables of names are sorted by them.
fn parts_in_order(decisions: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = decisions.split(['{', '}', '[', ']', ',']).map(str::trim).collect();
    parts.sort_unstable();
    parts
}

#[test]
fn no_typo_changes_a_decision_in_silence() {
    let asked = std::env::var("POLICYD_MUTATE").unwrap_or_default();
    let all = asked == "all";
    let characters = all || asked == "characters";
    let mut places: BTreeMap<(bool, String), Vec<Word>> = BTreeMap::new();
    for word in words() {
        places.entry((word.defines, word.text.clone())).or_default().push(word);
    }
    let mut tries: Vec<(Word, String)> = Vec::new();
    let every = match characters || asked.starts_with("words") {
        true => 1,
        false if full() => 3,
        false => 30,
    };
    let shifted = asked.split_once('+').and_then(|(_, it)| it.parse().ok()).unwrap_or(0_usize);
    for (number, words) in places.values().enumerate().step_by(every) {
        for word in words.iter().take(if all { usize::MAX } else { 1 }) {
            let mut mutants = mutants(&word.text);
            mutants.retain(|it| !word.may_be_another_program(it) && !is_wider(it, &word.text));
            let first = number.saturating_add(shifted).checked_rem(mutants.len());
            let first = if characters { 0 } else { first.unwrap_or(0) };
            let taken = if characters { usize::MAX } else { 1 };
            let taken = mutants.into_iter().skip(first).take(taken);
            tries.extend(taken.map(|it| (word.clone(), it)));
        }
    }
    assert!(tries.len() > 750 / every, "{} mutants", tries.len());
    let original = decisions(&folder()).unwrap();
    let untouched = ReviewedPolicy::new(&folder(), &Base::new(&builtin::pack()));
    assert!(!is_warned_of(&folder(), &untouched), "lint would see no difference");
    let share = tries.len().div_ceil(thread::available_parallelism().map_or(1, Into::into));
    let slipped: Vec<String> = thread::scope(|scope| {
        let look = |tries: &[(Word, String)]| {
            let base = Base::new(&builtin::pack());
            let slipped =
                tries.iter().filter(|(word, it)| slips_through(&base, &original, word, it));
            slipped
                .map(|(word, it)| {
                    format!("{} -> {it} in {}", word.text, builtin::FILES[word.file].name)
                })
                .collect::<Vec<_>>()
        };
        let running: Vec<_> = tries.chunks(share).map(|it| scope.spawn(move || look(it))).collect();
        running.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    assert!(
        slipped.is_empty(),
        "{} of {} slip through:\n{}",
        slipped.len(),
        tries.len(),
        slipped.join("\n")
    );
}
