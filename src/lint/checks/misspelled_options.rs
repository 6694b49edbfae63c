//! PD147: options of programs that are nearly ones that these take, in expressions, command patterns and the
//! commands of probes. What options there are says `known_options.txt`, and the vocabulary of a pack.

use super::probes::{base_name, command};
use super::programs::{command_patterns, is_slip};
use super::terms::{asked, each_part_asking};
use crate::lint::site::Site;
use crate::lint::{Findings, Subject, with_edit};
use crate::source::Diagnostic;
use crate::source::node::Node;

/// What is asked about one option, or about several.
const OF_OPTIONS: [&str; 3] = ["program.has", "program.value", "program.values"];

/// Shorter options of a vocabulary, which does not list them all, are near others, dashes counted: `--form` and
/// `--from`.
const TELLING_MIN: usize = 8;

/// Programs with all the long options that they take.
const KNOWN: &str = include_str!("known_options.txt");

/// The long options of a program, where all are known.
fn known_options(program: &str) -> Option<impl Iterator<Item = &'static str>> {
    let mut lines = KNOWN.lines();
    let of_program = |it: &'static str| it.strip_prefix(program)?.strip_prefix(':');
    let first = lines.find_map(of_program)?;
    let rest = lines.take_while(|it| it.starts_with(' '));
    Some(first.split_whitespace().chain(rest.flat_map(str::split_whitespace)))
}

/// The option that was probably meant by one that a program does not take, as far as a pack knows.
fn meant_by(subject: &Subject<'_>, program: &str, option: &str) -> Option<String> {
    let own = || subject.reviewed.meant.value_options(program);
    if own().any(|it| it == option) {
        return None;
    }
    slip_of_known(program, option).or_else(|| {
        // A vocabulary lists some alone: what lacks a letter may be another one.
        let near =
            |it: &&str| it.len() == option.len() && it.len() >= TELLING_MIN && is_slip(option, it);
        own().find(near).filter(|_| known_options(program).is_none()).map(str::to_owned)
    })
}

/// The option that was probably meant by one that a program does not take, where all of its are known.
fn slip_of_known(program: &str, option: &str) -> Option<String> {
    let (name, value) = match option.strip_prefix("--")?.split_once('=') {
        Some((name, value)) => (name, format!("={value}")),
        None => (option.strip_prefix("--")?, String::new()),
    };
    let known: Vec<&str> = known_options(program)?.collect();
    let is_known = |it: &str| known.contains(&it);
    if name.is_empty() || is_known(name) || name.strip_prefix("no-").is_some_and(is_known) {
        return None;
    }
    if name.len() == 1 {
        return Some(format!("-{name}{value}"));
    }
    let negated = known.iter().filter(|_| name.starts_with("no")).map(|it| format!("no-{it}"));
    let mut all = known.iter().map(|it| (*it).to_owned()).chain(negated);
    all.find(|it| is_one_off(name, it)).map(|it| format!("--{it}{value}"))
}

/// Whether one letter was left out, put in, mistaken, or changed places with the next. Short names are near many
/// others, and some programs take a name with an `s` at its end, too.
fn is_one_off(word: &str, meant: &str) -> bool {
    let mistaken = || word.bytes().zip(meant.bytes()).filter(|(one, other)| one != other).count();
    let (left_out, put_in) = (is_slip(word, meant), is_slip(meant, word));
    let is_plural = word.strip_suffix('s') == Some(meant);
    match meant.len() {
        0..3 => false,
        3 | 4 => left_out,
        _ => left_out || (put_in && !is_plural) || (word.len() == meant.len() && mistaken() == 1),
    }
}

/// Words of programs behind which the options of another program stand, which nobody lists here.
const PLUGINS: [(&str, &[&str]); 5] = [
    ("docker", &["compose", "buildx", "scout", "model", "mcp", "sandbox", "debug"]),
    ("git", &["lfs", "filter-repo", "cliff", "flow", "town", "annex", "absorb", "machete"]),
    ("gh", &["copilot", "extension", "ext", "aw", "dash"]),
    ("kubectl", &["krew", "ns", "ctx", "argo", "cnpg", "virt"]),
    (
        "cargo",
        &["deny", "audit", "nextest", "make", "dist", "release", "outdated", "hack", "mutants"],
    ),
];
/// Words behind which programs start others, whose options are none of theirs.
const STARTING: [&str; 2] = ["exec", "run"];
const STARTERS: [&str; 4] = ["docker", "podman", "kubectl", "npm"];

/// Whether the options behind these words are those of the program alone.
fn are_its_own(program: &str, next: Option<&str>) -> bool {
    let of = PLUGINS.iter().find(|(it, _)| *it == program).map_or(&[][..], |it| it.1);
    next.is_none_or(|it| !of.contains(&it))
}

/// The words of a call that are the program's own, by their numbers: what stands behind `--` is no option, and what
/// stands behind a program that is started belongs to that.
fn own_words(words: &[&str]) -> usize {
    let program = words.first().copied().map(base_name).unwrap_or_default();
    if !are_its_own(program, words.get(1).copied()) {
        return 0;
    }
    let end = words.iter().position(|it| *it == "--").unwrap_or(words.len());
    let starting = words.iter().position(|it| STARTING.contains(it));
    let Some(starting) = starting.filter(|_| STARTERS.contains(&program)) else { return end };
    let behind = words.iter().skip(starting + 1);
    let inner = behind.take_while(|it| it.starts_with('-')).count();
    end.min(starting + 1 + inner)
}

/// The one program that the rule of an expression is for.
fn only_program<'s>(subject: &'s Subject<'_>, site: &Site<'s>) -> Option<&'s str> {
    let commands = subject.said(subject.entry_of(site)?, "commands")?.one_or_items();
    // Programs are known by their names, without a folder.
    let name = |it: &'s Node| it.text()?.split(' ').next()?.rsplit('/').next();
    let first = commands.first().and_then(name)?;
    let next = |it: &'s Node| it.text().and_then(|it| it.split(' ').nth(1));
    let fits = |it: &'s Node| name(it) == Some(first) && are_its_own(first, next(it));
    commands.iter().all(fits).then_some(first)
}

pub(in crate::lint) fn misspelled_option(subject: &Subject<'_>, out: &mut Findings) {
    in_expressions(subject, out);
    in_patterns(subject, out);
    in_vocabulary(subject, out);
    in_probes(subject, out);
}

fn in_patterns(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in command_patterns(subject) {
        let words: Vec<&str> = pattern.text.split_whitespace().collect();
        let program = words.first().copied().unwrap_or_default();
        let own = words.iter().take(own_words(&words)).skip(1);
        for option in own.filter(|it| it.starts_with("--") && !it.contains(['*', '{'])) {
            let Some(meant) = meant_by(subject, program, option) else { continue };
            let at = pattern.text.find(option).unwrap_or_default();
            out.add(pattern.part(at..at + option.len()), message(option), |it| {
                unmet(it, program, &meant).with_word(option, &meant)
            });
        }
    }
}

fn in_vocabulary(subject: &Subject<'_>, out: &mut Findings) {
    let Some(file) = subject.file("vocabulary.yaml") else { return };
    for (key, list) in file.get("value_options").and_then(Node::entries).unwrap_or_default() {
        let program = key.text().and_then(|it| it.split(' ').next()).unwrap_or_default();
        for node in list.one_or_items() {
            let option = node.text().unwrap_or_default();
            let Some(meant) = slip_of_known(program, option) else { continue };
            out.add(node.span.clone(), message(option), |it| {
                unmet(it, program, &meant).with_word(option, &meant)
            });
        }
    }
}

fn in_probes(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let words = command(entry);
        let texts: Vec<&str> = words.iter().map(|(it, _)| *it).collect();
        let program = texts.first().copied().map(base_name).unwrap_or_default();
        let own = words.iter().take(own_words(&texts)).skip(1);
        for (option, node) in own.filter(|(it, _)| it.starts_with("--")) {
            let Some(meant) = meant_by(subject, program, option) else { continue };
            out.add(node.span.clone(), message(option), |it| {
                it.with_note("if the program rejects it, the probe has no result")
                    .with_help(format!("did you mean `{meant}`?"))
                    .with_word(option, &meant)
            });
        }
    }
}

fn in_expressions(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["has", "value", "values"], |site, term| {
        let Some((_, names)) = asked(term).filter(|(fact, _)| OF_OPTIONS.contains(fact)) else {
            return;
        };
        let Some(program) = only_program(subject, site) else { return };
        for (text, range) in names.into_iter().filter(|(it, _)| it.starts_with("--")) {
            let Some(meant) = meant_by(subject, program, text) else { continue };
            out.add(site.span(range), message(text), |it| {
                let edit = site.edit(range, &format!("{meant:?}"));
                with_edit(unmet(it, program, &meant), false, edit)
            });
        }
    });
}

fn message(option: &str) -> String {
    format!("unknown option `{option}`")
}

fn unmet(finding: Diagnostic, program: &str, meant: &str) -> Diagnostic {
    finding
        .with_note(format!("it matches no call of `{program}`"))
        .with_help(format!("did you mean `{meant}`?"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_program_is_listed_once_with_its_options() {
        let mut programs = BTreeSet::new();
        for line in KNOWN.lines().filter(|it| !it.starts_with(['#', ' '])) {
            let (program, _) = line.split_once(':').unwrap();
            assert!(programs.insert(program), "{program} is listed twice");
            let options: Vec<&str> = known_options(program).unwrap().collect();
            assert!(options.is_sorted() && options.len() > 3, "{program}");
            let is_name =
                |it: &&str| it.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'.');
            assert!(options.iter().all(is_name), "{program}");
        }
        assert!(programs.contains("git") && known_options("nothing").is_none());
    }

    #[test]
    fn one_letter_is_a_slip() {
        for word in ["forc", "foorce", "farce", "froce", "forcee"] {
            assert!(is_one_off(word, "force"), "{word}");
        }
        assert!(is_one_off("jsn", "json") && !is_one_off("jsom", "json"));
        for word in ["force", "fo", "forced-up", "frcoe", "forces"] {
            assert!(!is_one_off(word, "force"), "{word}");
        }
    }
}
