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
    let begins = |it: &str| it.split_once(':').is_some_and(|(name, _)| name == program);
    let at = KNOWN.lines().position(begins)?;
    let mut lines = KNOWN.lines().skip(at);
    let (_, first) = lines.next()?.split_once(':')?;
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
    let name = option.strip_prefix("--")?.split('=').next().filter(|it| !it.is_empty())?;
    let known: Vec<&str> = known_options(program)?.collect();
    if name.len() == 1 {
        return Some(format!("-{name}"));
    }
    let is_known = |it: &str| known.contains(&it);
    if is_known(name) || name.strip_prefix("no-").is_some_and(is_known) {
        return None;
    }
    let all = known.iter().flat_map(|it| [(*it).to_owned(), format!("no-{it}")]);
    all.into_iter().find(|it| is_one_off(name, it)).map(|it| format!("--{it}"))
}

/// Whether one letter was left out, put in, mistaken, or changed places with the next.
fn is_one_off(word: &str, meant: &str) -> bool {
    let mistaken = || word.bytes().zip(meant.bytes()).filter(|(one, other)| one != other).count();
    is_slip(word, meant) || is_slip(meant, word) || (word.len() == meant.len() && mistaken() == 1)
}

/// The one program that the rule of an expression is for.
fn only_program<'s>(subject: &'s Subject<'_>, site: &Site<'s>) -> Option<&'s str> {
    let commands = subject.said(subject.entry_of(site)?, "commands")?.one_or_items();
    // Programs are known by their names, without a folder.
    let name = |it: &'s Node| it.text()?.split(' ').next()?.rsplit('/').next();
    let first = commands.first().and_then(name)?;
    commands.iter().all(|it| name(it) == Some(first)).then_some(first)
}

pub(in crate::lint) fn misspelt_option(subject: &Subject<'_>, out: &mut Findings) {
    in_expressions(subject, out);
    in_patterns(subject, out);
    in_vocabulary(subject, out);
    in_probes(subject, out);
}

fn in_patterns(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in command_patterns(subject) {
        let mut words = pattern.text.split_whitespace();
        let program = words.next().unwrap_or_default();
        for option in words.filter(|it| it.starts_with("--") && !it.contains(['*', '{'])) {
            let Some(meant) = meant_by(subject, program, option) else { continue };
            let at = pattern.text.find(option).unwrap_or_default();
            out.add(pattern.part(at..at + option.len()), message(option, &meant), |it| {
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
            out.add(node.span.clone(), message(option, &meant), |it| {
                unmet(it, program, &meant).with_word(option, &meant)
            });
        }
    }
}

fn in_probes(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let words = command(entry);
        let Some(((program, _), arguments)) = words.split_first() else { continue };
        let options = arguments.iter().take_while(|(it, _)| *it != "--");
        for (option, node) in options.filter(|(it, _)| it.starts_with("--")) {
            let Some(meant) = meant_by(subject, base_name(program), option) else { continue };
            out.add(node.span.clone(), message(option, &meant), |it| {
                it.with_note("the program refuses it, and the probe has no answer")
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
            out.add(site.span(range), message(text, &meant), |it| {
                let edit = site.edit(range, &format!("{meant:?}"));
                with_edit(unmet(it, program, &meant), false, edit)
            });
        }
    });
}

fn message(option: &str, meant: &str) -> String {
    format!("`{option}` is nearly `{meant}`, and nothing that is known")
}

fn unmet(finding: Diagnostic, program: &str, meant: &str) -> Diagnostic {
    finding
        .with_note(format!("no call of `{program}` is met by it"))
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
        for (word, meant) in
            [("forc", "force"), ("foorce", "force"), ("farce", "force"), ("froce", "force")]
        {
            assert!(is_one_off(word, meant), "{word}");
        }
        for word in ["force", "fo", "forced-up", "frcoe"] {
            assert!(!is_one_off(word, "force"), "{word}");
        }
    }
}
