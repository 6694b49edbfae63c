//! Checks of command patterns, in lists, as keys and in expressions: the programs they name, and what no
//! program ever sees.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::entries::guards;
use super::patterns::{Pattern, PatternOrigin, arguments};
use super::probes::{base_name, command};
use super::slips::slip_of;
use super::terms::{asked, each_part_asking};
use crate::subject::PackEntry;
use crate::{Findings, Subject};
use policyd_fact_table::types::{Domain, TextMatch};
use policyd_facts::shell::is_assignment;
use policyd_policy::review::{Meant, Programs};
use policyd_yaml::memo::hash_of;
use policyd_yaml::node::Node;
use policyd_yaml::{Span, Suggestion};

pub(crate) fn misspelled_program(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in command_patterns(subject) {
        let known = subject.reviewed.meant.known_programs();
        let text = pattern.text;
        let mut words = text.split_whitespace();
        let program = words.next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or(program);
        let (next, own) = (words.next(), program.len() - name.len());
        let slip = match known.get(name).filter(|_| name == program) {
            Some(subs) => next.and_then(|sub| {
                Some((program.len(), sub.to_owned(), slip_of(sub, all(subs))?.to_owned()))
            }),
            None => similar_program(subject, name)
                .or_else(|| in_small(name, known).map(str::to_owned))
                .map(|it| (own, name.to_owned(), it))
                .or_else(|| moved_blank(name, next?, known).map(|(is, was)| (own, is, was))),
        };
        let Some((before, written, meant)) = slip else { continue };
        let at = text.get(before..).and_then(|it| it.find(&written)).map(|it| it + before);
        let place = at.map_or(0..text.len(), |at| at..at + written.len());
        let message = format!("unknown program or subcommand `{written}`");
        out.add(pattern.part(place), message, |it| {
            it.with_note("the rule never matches a program with another name")
                .meaning(&written, &meant)
        });
    }
    misspelled_commands(subject, out);
}

/// The known program that an unknown one is probably meant to be.
fn similar_program(subject: &Subject<'_>, name: &str) -> Option<String> {
    let find =
        || slip_of(name, all(subject.reviewed.meant.known_programs().keys())).map(str::to_owned);
    // All packs of a base know the same programs.
    subject.memo().of_text("similar program", 0, name, find).as_ref().clone()
}

/// The same of what probes run: their program, and the word behind it.
fn misspelled_commands(subject: &Subject<'_>, out: &mut Findings) {
    for entry in subject.of("probes.yaml") {
        let mut words = command(entry).into_iter();
        let (Some((program, node)), next) = (words.next(), words.next()) else { continue };
        let known = subject.reviewed.meant.known_programs();
        let name = base_name(program);
        let slip = match known.get(name) {
            Some(subs) => next.and_then(|(sub, node)| Some((sub, node, slip_of(sub, all(subs))?))),
            None => slip_of(name, all(known.keys()))
                .filter(|_| name == program)
                .map(|it| (name, node, it)),
        };
        let Some((written, node, meant)) = slip else { continue };
        let message = format!("unknown program or subcommand `{written}`");
        out.add(node.span.clone(), message, |it| {
            it.with_note("the probe has no result, so rules that read it are unknown")
                .meaning(written, meant)
        });
    }
}

/// Returns the word of a command line that is similar to a known program or subcommand, and the known one. `own` is
/// found once for many lines.
pub(super) fn slip_of_program<'l>(
    subject: &Subject<'_>,
    own: &OnceCell<OwnPrograms>,
    line: &'l str,
) -> Option<(&'l str, String)> {
    let known = subject.reviewed.meant.known_programs();
    let mut words = line.split_whitespace();
    let program = words.next()?;
    if let Some(subs) = known.get(program) {
        return words.next().and_then(|it| Some((it, slip_of(it, all(subs))?.to_owned())));
    }
    let own = own.get_or_init(|| OwnPrograms::of(subject));
    if own.names.contains(program) {
        return None;
    }
    let find = || slip_of(program, all(&own.names)).map(str::to_owned);
    let meant = similar_program(subject, program).or_else(|| {
        subject.memo().of_text("similar own program", own.hash, program, find).as_ref().clone()
    });
    meant.map(|it| (program, it))
}

/// The programs that the pack names.
pub(super) struct OwnPrograms {
    names: BTreeSet<String>,
    hash: u64,
}

impl OwnPrograms {
    fn of(subject: &Subject<'_>) -> Self {
        let patterns = command_patterns(subject).into_iter();
        let first = patterns.filter_map(|it| it.text.split_whitespace().next().map(str::to_owned));
        let names: BTreeSet<String> = first.collect();
        Self { hash: hash_of(&names), names }
    }
}

/// The known program that this one is in small letters; programs of Windows have capitals of their own.
fn in_small<'k>(name: &str, known: &'k Programs) -> Option<&'k str> {
    let small = name.to_lowercase();
    known.get_key_value(&small).filter(|_| small != name).map(|(it, _)| it.as_str())
}

/// An unknown program and its word that are known ones where the blank moves by one letter: `dockerc ompose`.
fn moved_blank(name: &str, next: &str, known: &Programs) -> Option<(String, String)> {
    let joined = format!("{name}{next}");
    let near = |program: &String| program.len().abs_diff(name.len()) == 1;
    let mut programs = known.iter().filter(|(it, _)| near(it) && !known.contains_key(name));
    programs.find_map(|(program, subs)| {
        let sub = joined.strip_prefix(program.as_str()).filter(|it| subs.contains(*it))?;
        Some((format!("{name} {next}"), format!("{program} {sub}")))
    })
}

fn all<'k>(
    words: impl IntoIterator<Item = &'k String, IntoIter: Clone>,
) -> impl Iterator<Item = &'k str> + Clone {
    words.into_iter().map(String::as_str)
}

/// The second of two texts side by side, where it is a word of the first, which is a program, and no program
/// itself: with the two as one pattern.
fn word_of_the_one_before<'t>(
    texts: &[&'t str],
    meant: &Meant,
) -> Option<(usize, &'t str, String)> {
    // Known programs are read only if needed: most packs have no such list.
    let known = (texts.len() > 1).then(|| meant.known_programs())?;
    let is_name = |it: &str| !it.contains([' ', '*']);
    texts.windows(2).enumerate().find_map(|(at, pair)| {
        let [program, word] = pair else { return None };
        let follows = known.get(*program).is_some_and(|it| it.contains(*word));
        let is_program = known.contains_key(*word) || PROGRAMS_TOO.contains(word);
        let alone = follows && is_name(word) && !is_program;
        alone.then(|| (at + 1, *word, format!("{program} {word}")))
    })
}

/// Words of programs that are programs themselves, too.
const PROGRAMS_TOO: [&str; 9] =
    ["check", "format", "merge", "purge", "start", "stat", "stop", "sync", "trust"];

pub(crate) fn word_as_program(subject: &Subject<'_>, out: &mut Findings) {
    let meant = &subject.reviewed.meant;
    let mut tell = |span: Span, word: &str, fix: Suggestion| {
        let message = format!("`{word}` is matched as a separate program");
        out.add(span, message, |it| {
            it.with_note("each item is a program with its words, and any match is sufficient")
                .suggest(fix)
        });
    };
    for entry in guards(subject) {
        let nodes = entry.node.get("commands").map(Node::one_or_items).unwrap_or_default();
        let texts: Vec<&str> = nodes.iter().map(|it| it.text().unwrap_or_default()).collect();
        if let Some((at, word, meant)) = word_of_the_one_before(&texts, meant)
            && let (Some(before), Some(node)) = (nodes.get(at - 1), nodes.get(at))
        {
            let both = Span { start: before.span.start, ..node.span.clone() };
            let is_flow = both.text().split_once(',').is_some_and(|(_, it)| !it.contains('\n'));
            let fix = match is_flow {
                true => Suggestion::write(both, meant),
                false => format!("write `{meant}`").into(),
            };
            tell(node.span.clone(), word, fix);
        }
    }
    each_part_asking(subject, &["fed_by"], |site, term| {
        let Some((_, names)) = asked(term).filter(|(fact, _)| fact.is("program.fed_by")) else {
            return;
        };
        let texts: Vec<&str> = names.iter().map(|(text, _)| *text).collect();
        if let Some((at, word, meant)) = word_of_the_one_before(&texts, meant)
            && let (Some((_, before)), Some((_, range))) = (names.get(at - 1), names.get(at))
        {
            let fix = site.write_text(&(before.start..range.end), &meant);
            tell(site.span(range), word, fix);
        }
    });
}

/// What a shell takes away before a program runs.
const SHELL: [&str; 9] = ["|", "&&", ";", ">", "<", "$(", "`", "\"", "'"];

/// Returns a pattern without its parts in braces.
fn outside_braces(pattern: &str) -> String {
    let mut depth = 0_usize;
    let outside = pattern.chars().filter(|c| {
        match c {
            '{' => depth = depth.saturating_add(1),
            '}' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    });
    outside.collect()
}

pub(crate) fn shell_in_pattern(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in command_patterns(subject) {
        let known = subject.reviewed.meant.known_programs();
        let outside = outside_braces(pattern.text);
        let mut parts = outside.split(',').skip(1).map(str::trim_start);
        let program = |it: &str| it.split(' ').next().is_some_and(|it| known.contains_key(it));
        if parts.any(program) {
            out.add(pattern.span(), "a comma does not separate patterns", |it| {
                it.with_note("program names do not contain commas")
                    .with_help("write each pattern as a separate item")
            });
        } else if pattern.text.contains('<') && pattern.text.contains('>') {
            out.add(pattern.span(), "`<…>` is matched literally", |it| {
                it.with_help("write `*` for any characters, or end the pattern before it")
            });
        } else if pattern.text.split(' ').any(|it| matches!(it, "..." | "\u{2026}")) {
            out.add(pattern.span(), "dots are matched literally", |it| {
                it.with_help(
                    "write the program and its subcommand: words between them do not matter",
                )
            });
        } else if let Some(sign) = SHELL.iter().find(|it| pattern.text.contains(**it)) {
            let message = format!("`{sign}` is shell syntax, which no program sees");
            out.add(pattern.span(), message, |it| {
                it.with_note("each program of a command line is evaluated separately")
                    .with_help("write one program and its words: `git push`")
            });
        }
    }
}

pub(crate) fn wrapper_command(subject: &Subject<'_>, out: &mut Findings) {
    for (entry, pattern) in of_guards(subject) {
        // With a condition it may be meant where nothing is started by it: `sudo` with a shell of its own.
        look_through(subject, &pattern, entry.node.get("when").is_some(), out);
    }
    for pattern in arguments(subject, Domain::Text(TextMatch::Command)) {
        look_through(subject, &pattern, false, out);
    }
}

fn look_through(subject: &Subject<'_>, pattern: &Pattern<'_>, alone: bool, out: &mut Findings) {
    // It runs nothing then, so it is a program itself.
    if subject.reviewed.meant.is_check(pattern.text) {
        return;
    }
    let begins = |it: &&str| {
        let rest = pattern.text.strip_prefix(it);
        rest.is_some_and(|rest| (rest.is_empty() && !alone) || rest.starts_with(' '))
    };
    // Alone it tells the variables that are set.
    let wrappers = subject.reviewed.meant.wrappers().filter(|it| *it != "env");
    let longest = wrappers.filter(|it| begins(it)).max_by_key(|it| it.len());
    if let Some(wrapper) = longest {
        let first = wrapper.split(' ').next().unwrap_or_default();
        let message = format!("`{wrapper}` is unwrapped: the wrapped command is matched instead");
        let when = if wrapper == pattern.text { "only if it starts no program" } else { "never" };
        out.add(pattern.span(), message, |it| {
            it.with_note(format!("this pattern matches {when}")).with_help(format!(
                "write the wrapped program, or use `program.wrapped_by([\"{first}\"])`"
            ))
        });
    } else if pattern.text.split(' ').next().is_some_and(is_assignment) {
        let message = "variable assignments are not part of a command pattern";
        out.help(pattern.span(), message, "remove them, or use `action.sets([\"NAME\"])`");
    }
}

pub(crate) fn directory_as_program(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in command_patterns(subject) {
        let program = pattern.text.split_whitespace().next().unwrap_or_default();
        let Some((_, name)) = program.rsplit_once(['/', '\\']) else { continue };
        let meant = match name {
            "" => "no program",
            any if any.chars().all(|it| it == '*') => "every program",
            _ => continue,
        };
        let place = pattern.part(0..program.len());
        out.add(place, format!("`{program}` matches {meant}"), |it| {
            it.with_note("programs are matched by name, without their directory")
                .with_help("list the programs of the directory: `deploy.sh`")
        });
    }
}

/// The command patterns of the pack's own guards.
fn of_guards<'s>(
    subject: &'s Subject<'_>,
) -> impl Iterator<Item = (&'s PackEntry<'s>, Pattern<'s>)> {
    guards(subject).flat_map(|entry| {
        let names = entry.node.get("commands").map(Node::one_or_items).unwrap_or_default();
        names.iter().filter_map(of_node).map(move |it| (entry, it))
    })
}

fn of_node(node: &Node) -> Option<Pattern<'_>> {
    Some(Pattern { text: node.text()?, place: PatternOrigin::Node(node) })
}

/// Every command pattern that the pack itself writes.
pub(super) fn command_patterns<'s>(subject: &'s Subject<'_>) -> Vec<Pattern<'s>> {
    let mut nodes: Vec<&Node> = Vec::new();
    let mut keys: Vec<&Node> = Vec::new();
    if let Some(file) = subject.file("vocabulary.yaml") {
        let entries = |key: &str| file.get(key).and_then(Node::entries).unwrap_or_default();
        keys.extend(entries("value_options").iter().map(|(key, _)| key));
        let kinds = entries("commands").iter().map(|(_, kind)| kind);
        let rows = ["wrappers", "interpreters", "file_effects", "shell_values"];
        let rows = rows.into_iter().filter_map(|it| file.get(it)?.items()).flatten();
        for row in kinds.chain(rows) {
            let keys = ["command", "program", "programs", "except"];
            nodes.extend(keys.into_iter().filter_map(|key| row.get(key)));
        }
    }
    let listed = nodes.into_iter().flat_map(Node::one_or_items).chain(keys);
    let own = of_guards(subject)
        .map(|(_, pattern)| pattern)
        .chain(arguments(subject, Domain::Text(TextMatch::Command)));
    own.chain(listed.filter_map(of_node)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_may_have_changed_places_too() {
        let known: Programs = [("docker".to_owned(), ["compose".to_owned()].into())].into();
        let meant = |name, next| moved_blank(name, next, &known).map(|(_, meant)| meant);
        assert_eq!(meant("dockerc", "ompose").as_deref(), Some("docker compose"));
        assert_eq!(meant("docke", "rcompose").as_deref(), Some("docker compose"));
        assert_eq!(meant("docker", "compose"), None);
        assert_eq!(meant("dockerc", "omposer"), None);
    }
}
