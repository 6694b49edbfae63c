//! Names that are similar to a known one: a table of what a pack writes, of the known names, and of what is reported.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr;
use std::sync::LazyLock;

use super::entries::kinds;
use super::identity::unused_names;
use super::names::{MODES, SOURCES};
use super::odds::programs_of;
use super::probes::{base_name, command};
use super::programs::command_patterns;
use super::slips::{LETTERS_MIN, slip};
use super::terms::{asked, each_part_asking, each_part_with_text, named_ids};
use super::tools::known_tools;
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::types::PackName;
use policyd_facts::event::EventKind;
use policyd_policy::builtin;
use policyd_policy::guards::FILES;
use policyd_state::failure::ERROR_NAMES;
use policyd_yaml::Span;
use policyd_yaml::node::Node;

/// Shorter options are one letter from other options, dashes counted: `--form` and `--from`.
const OPTION_MIN: usize = 7;

/// A name that a pack writes, and the names that it could be.
struct NameUse<'s> {
    name: &'s str,
    span: Span,
    known: Vec<Cow<'s, str>>,
}

/// A kind of names.
struct NameField {
    written: for<'s> fn(&'s Subject<'_>) -> Vec<NameUse<'s>>,
    /// Formats the message about a name and the known one that is similar to it.
    message: fn(&str, &str) -> String,
    note: Option<&'static str>,
}

const FIELDS: [NameField; 10] = [
    NameField {
        written: |subject| {
            let lists = subject.of("failures.yaml").filter_map(|it| it.node.get("errors"));
            items(lists, &ERROR_NAMES)
        },
        message: |name, _| format!("no client reports an error `{name}`"),
        note: None,
    },
    NameField {
        written: |subject| {
            let lists = subject.of("breakers.yaml").flat_map(|entry| {
                ["ignore", "permanent"].into_iter().filter_map(|key| entry.node.get(key))
            });
            items(lists, &failure_classes(subject))
        },
        message: |name, _| format!("unknown failure class `{name}`"),
        note: None,
    },
    NameField {
        written: |subject| {
            let file = subject.file("vocabulary.yaml");
            let keys = ["shell_tools", "edit_tools", "read_tools"];
            let mut written = items(keys.iter().filter_map(|key| file?.get(key)), known_tools());
            // Other clients write them in lower case; the pack makes others known by naming them here.
            let cased = |name: &str| known_tools().iter().any(|it| it.eq_ignore_ascii_case(name));
            written.retain(|it| !cased(it.name));
            written
        },
        message: |name, _| format!("no client has a tool `{name}`"),
        note: None,
    },
    NameField {
        written: |subject| values(subject, PackName::SessionSource, &SOURCES),
        message: |name, _| format!("no client reports `{name}` as `event.source`"),
        note: None,
    },
    NameField {
        written: |subject| values(subject, PackName::PermissionMode, &MODES),
        message: |name, _| format!("no client reports `{name}` as `event.permission_mode`"),
        note: None,
    },
    NameField {
        written: |subject| values(subject, PackName::ErrorName, &ERROR_NAMES),
        message: |name, _| format!("no client reports `{name}` as `event.error`"),
        note: None,
    },
    NameField {
        written: |subject| values(subject, PackName::ErrorType, &failure_classes(subject)),
        message: |name, _| format!("no known failure reports `{name}` as `task.error_type`"),
        note: None,
    },
    NameField {
        written: named_breakers,
        message: |name, near| {
            format!("the breaker `{name}` receives no calls; a similar one is `{near}`")
        },
        note: None,
    },
    NameField {
        written: options,
        message: |name, _| format!("unknown option `{name}`"),
        note: Some("the program does not have it"),
    },
    NameField {
        written: |subject| {
            let unused = unused_names(subject).into_iter();
            unused.map(|it| written(it.key, it.inherited.into_iter())).collect()
        },
        message: |name, near| {
            format!("no expression uses `{name}`, which is similar to the inherited `{near}`")
        },
        note: Some(
            "an entry of the vocabulary is merged with the inherited entry of the same name",
        ),
    },
];

pub(crate) fn misspelled_name(subject: &Subject<'_>, out: &mut Findings) {
    for field in &FIELDS {
        for NameUse { name, span, known } in (field.written)(subject) {
            let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            let Some(near) = slip(name, &known) else { continue };
            out.add(span, (field.message)(name, near), |it| {
                let it = it.meaning(name, near);
                match field.note {
                    Some(note) => it.with_note(note),
                    None => it,
                }
            });
        }
    }
    similar_peers(subject, out);
}

/// Returns a name without its digits: `db/1` and `db/12` are two.
fn letters(name: &str) -> String {
    name.replace(|c: char| c.is_ascii_digit(), "")
}

fn written<'s>(node: &'s Node, known: impl Iterator<Item = &'s str>) -> NameUse<'s> {
    let name = node.text().unwrap_or_default();
    NameUse { name, span: node.span.clone(), known: known.map(Cow::Borrowed).collect() }
}

/// Returns the items of lists.
fn items<'s>(lists: impl Iterator<Item = &'s Node>, known: &[&'s str]) -> Vec<NameUse<'s>> {
    let nodes = lists.flat_map(Node::one_or_items);
    nodes.map(|it| written(it, known.iter().copied())).collect()
}

/// Returns the constants that expressions name as ids of a kind.
fn values<'s>(subject: &'s Subject<'_>, ids: PackName, known: &[&'s str]) -> Vec<NameUse<'s>> {
    let mut found = Vec::new();
    each_part_with_text(subject, |site, term| {
        let constants = named_ids(term, ids, site.names(subject.names()));
        // The error of a tool is text of the tool.
        let is_text = |entry| kinds(subject, entry).contains(&EventKind::PostToolUseFailure);
        if ids == PackName::ErrorName
            && !constants.is_empty()
            && subject.entry_of(site).is_some_and(is_text)
        {
            return;
        }
        found.extend(constants.into_iter().map(|(name, range)| NameUse {
            name,
            span: site.span(range),
            known: known.iter().map(|it| Cow::Borrowed(*it)).collect(),
        }));
    });
    found
}

fn failure_classes<'s>(subject: &'s Subject<'_>) -> Vec<&'s str> {
    subject.reviewed.meant.ids("failures.yaml", "classes").chain(ERROR_NAMES).collect()
}

/// Returns the names of breakers that the pack reads or configures and that receive no calls, with the names of those
/// that do.
fn named_breakers<'s>(subject: &'s Subject<'_>) -> Vec<NameUse<'s>> {
    let meant = &subject.reviewed.meant;
    let mut found = Vec::new();
    let mut add = |name: &'s str, span| {
        let called = meant.probe_breakers().chain(meant.told_breakers().map(Cow::Owned));
        let called: Vec<Cow<'_, str>> = called.filter(|it| !it.contains('*')).collect();
        if !name.contains(['*', '$', '?']) && !called.iter().any(|it| it == name) {
            let known = called.into_iter().filter(|it| letters(it) != letters(name)).collect();
            found.push(NameUse { name, span, known });
        }
    };
    each_part_with_text(subject, |site, term| {
        let names = named_ids(term, PackName::Breaker, site.names(subject.names()));
        names.into_iter().for_each(|(name, range)| add(name, site.span(range)));
    });
    subject.of("breakers.yaml").for_each(|it| add(it.name(), it.id.span.clone()));
    found
}

/// The options that the guards of the built-in pack name, by program.
static GUARDED: LazyLock<BTreeMap<&str, BTreeSet<&str>>> = LazyLock::new(|| {
    let mut options: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let files = builtin::FILES.iter().filter(|it| FILES.contains(&it.name));
    for guard in files.flat_map(|it| it.text.split("\n- id:")) {
        let commands = guard.lines().find_map(|it| it.strip_prefix("  commands: ["));
        let words = guard.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        let named: Vec<&str> = words.filter(|it| is_option(it)).collect();
        for pattern in commands.unwrap_or_default().split([',', '"']) {
            let program = pattern.split_whitespace().next().unwrap_or_default();
            options.entry(program).or_default().extend(&named);
        }
    }
    options
});

fn is_option(word: &str) -> bool {
    word.starts_with("--") && word.len() >= OPTION_MIN
}

/// Returns the long options of programs in expressions, command patterns, commands of probes, and the vocabulary.
fn options<'s>(subject: &'s Subject<'_>) -> Vec<NameUse<'s>> {
    let of_program = |program: &'s str, name: &'s str, span: Span| {
        if !name.starts_with("--") {
            return None;
        }
        let guarded = GUARDED.get(program).into_iter().flatten().copied();
        let known = subject.reviewed.meant.value_options(program).chain(guarded);
        let known = known.filter(|it| is_option(it)).map(Cow::Borrowed).collect();
        Some(NameUse { name, span, known })
    };
    let mut found = Vec::new();
    each_part_asking(subject, &["has", "value", "values"], |site, term| {
        let of_options = ["program.has", "program.value", "program.values"];
        let Some((_, names)) = asked(term).filter(|(fact, _)| fact.is_one_of(&of_options)) else {
            return;
        };
        let programs = subject.entry_of(site).and_then(|it| programs_of(subject, it));
        let Some([program, others @ ..]) = programs.as_deref() else { return };
        if others.iter().all(|it| it == program) {
            let names = names.into_iter();
            found.extend(names.filter_map(|(it, range)| of_program(program, it, site.span(range))));
        }
    });
    for pattern in command_patterns(subject) {
        let mut words = pattern.text.split(' ').take_while(|it| *it != "--");
        let program = words.next().unwrap_or_default();
        found.extend(words.filter_map(|word| {
            let at = pattern.text.find(word)?;
            of_program(program, word, pattern.part(at..at + word.len()))
        }));
    }
    for entry in subject.of("probes.yaml") {
        let mut words = command(entry).into_iter().take_while(|(it, _)| *it != "--");
        let program = words.next().map(|(it, _)| base_name(it)).unwrap_or_default();
        found.extend(words.filter_map(|(it, node)| of_program(program, it, node.span.clone())));
    }
    let lists = subject.file("vocabulary.yaml").and_then(|it| it.get("value_options")?.entries());
    for (key, list) in lists.unwrap_or_default() {
        let program = key.text().and_then(|it| it.split(' ').next()).unwrap_or_default();
        let own = list.one_or_items();
        let listed = |it: &&str| own.iter().any(|node| node.says(it));
        let others = subject.reviewed.meant.value_options(program);
        let others: Vec<&str> = others.filter(|it| is_option(it) && !listed(it)).collect();
        found.extend(own.iter().map(|it| written(it, others.iter().copied())));
    }
    found
}

/// One of several names that a pack chooses itself.
struct Peer<'s> {
    name: Cow<'s, str>,
    /// The place of the name; none if it is inherited.
    node: Option<&'s Node>,
}

impl<'s> Peer<'s> {
    fn own(node: &'s Node) -> Self {
        Self { name: Cow::Borrowed(node.text().unwrap_or_default()), node: Some(node) }
    }
}

/// Names of one kind: of two that are similar, one is probably misspelled.
struct Peers<'s> {
    what: &'static str,
    note: &'static str,
    /// Whether the beginning or end of another name is a name of its own: `user` and `users`.
    may_be_longer: bool,
    names: Vec<Peer<'s>>,
}

fn answers<'s>(subject: &'s Subject<'_>) -> impl Iterator<Item = Peers<'s>> {
    subject.of("tables.yaml").map(|table| {
        let rows = table.node.get("rows").and_then(Node::items).unwrap_or_default();
        let last = subject.said(table, "otherwise").map(|it| it.get("answer").unwrap_or(it));
        let is_own = |it: &Node| it.span.source == table.id.span.source;
        let answers = rows.iter().filter_map(|it| it.get("answer")).chain(last);
        let names = answers
            .filter(|it| it.text().is_some())
            .map(|it| Peer { node: Some(it).filter(|it| is_own(it)), ..Peer::own(it) });
        Peers {
            what: "answer",
            note: "callers of the table treat them as two answers",
            may_be_longer: true,
            names: names.collect(),
        }
    })
}

fn categories<'s>(subject: &'s Subject<'_>) -> Peers<'s> {
    let own = subject.of("considerations.yaml");
    let mut names: Vec<Peer<'_>> =
        own.filter_map(|it| it.node.get("category")).map(Peer::own).collect();
    if !names.is_empty() {
        let own: BTreeSet<&str> = subject.of("considerations.yaml").map(PackEntry::name).collect();
        let below = subject.reviewed.meant.categories().filter(|(id, _)| !own.contains(id));
        names.extend(below.map(|(_, category)| Peer { name: Cow::Borrowed(category), node: None }));
    }
    let note = "reports show them as two categories";
    Peers { what: "category", note, may_be_longer: false, names }
}

fn voices<'s>(subject: &'s Subject<'_>) -> Peers<'s> {
    let is_voice = |file, key| file == "messages.yaml" && key == "voice";
    let own = subject.leaves.iter().filter(|it| is_voice(it.file, it.key));
    let mut names: Vec<Peer<'_>> = own.map(|it| Peer::own(it.node)).collect();
    if !names.is_empty() {
        let is_own = |names: &[Peer<'_>], voice: &str| names.iter().any(|it| it.name == voice);
        let chosen = subject.file("policyd.yaml").and_then(|it| it.get("voice")?.text());
        let below: Vec<&str> = subject.reviewed.meant.voices().chain(["plain"]).collect();
        let fixed = below.into_iter().filter(|it| Some(*it) == chosen || !is_own(&names, it));
        let fixed: Vec<Peer<'_>> =
            fixed.map(|it| Peer { name: Cow::Borrowed(it), node: None }).collect();
        names.extend(fixed);
    }
    let note = "policyd does not use the text if that voice is selected";
    Peers { what: "voice", note, may_be_longer: false, names }
}

/// The different names among peers: a pack has many rules and few categories.
struct PeerIndex<'p> {
    counts: BTreeMap<&'p str, usize>,
    inherited: BTreeSet<&'p str>,
    /// Numbers of the peers that are the first of their name, or the first inherited ones of it.
    first: Vec<usize>,
}

impl<'p> PeerIndex<'p> {
    fn of(names: &'p [Peer<'_>]) -> Self {
        let (mut counts, mut inherited) = (BTreeMap::<&str, usize>::new(), BTreeSet::new());
        let mut first = Vec::new();
        for (number, peer) in names.iter().enumerate() {
            let count = counts.entry(&*peer.name).or_default();
            *count += 1;
            let is_first_inherited = peer.node.is_none() && inherited.insert(&*peer.name);
            if *count == 1 || is_first_inherited {
                first.push(number);
            }
        }
        Self { counts, inherited, first }
    }

    fn count(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or_default()
    }
}

fn similar_peers(subject: &Subject<'_>, out: &mut Findings) {
    let groups = [categories(subject), voices(subject)];
    for Peers { what, note, may_be_longer, names } in answers(subject).chain(groups) {
        let is_similar = |one: &str, other: &str| {
            let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
            let is_part = may_be_longer && (long.starts_with(short) || long.ends_with(short));
            let is_cased = short.len() > 1 && one.eq_ignore_ascii_case(other);
            let is_near = short.len() >= LETTERS_MIN && !is_part && slip(one, &[other]).is_some();
            one != other && letters(one) != letters(other) && (is_cased || is_near)
        };
        let index = PeerIndex::of(&names);
        for (at, Peer { name, node }) in names.iter().enumerate() {
            let Some(node) = node.filter(|_| !index.inherited.contains(&**name)) else {
                continue;
            };
            // Of two names, the rarer one is misspelled, or the later one; an inherited one never is.
            let own = index.count(name);
            let mut others = index.first.iter().filter_map(|it| Some((*it, names.get(*it)?)));
            let meant = others.find(|(number, other)| {
                let theirs = index.count(&other.name);
                let decides =
                    other.node.is_none() || own < theirs || (own == theirs && *number < at);
                decides && is_similar(name, &other.name)
            });
            let Some((_, Peer { name: meant, node: other })) = meant else { continue };
            let message = format!("the {what} `{name}` is similar to `{meant}`");
            out.add(node.span.clone(), message, |it| {
                let it = it.with_note(note).meaning(name, meant);
                match other.filter(|it| !ptr::eq(*it, node)) {
                    Some(other) => it.with_related(other.span.clone(), "used here"),
                    None => it,
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarded_options_are_read_from_the_built_in_pack() {
        assert!(
            GUARDED
                .get("git")
                .is_some_and(|it| it.contains("--force") && it.contains("--no-verify"))
        );
        assert!(GUARDED.get("docker").is_some_and(|it| it.contains("--privileged")));
    }
}
