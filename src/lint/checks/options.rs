//! Checks of options of programs, in expressions and in the vocabulary: what no option is like.

use std::collections::BTreeSet;

use super::odds::programs_of;
use super::patterns::{PatternFix, PatternOrigin, arguments};
use super::terms::{asked, each_part_asking};
use crate::site::Site;
use crate::{Findings, Subject};
use policyd_fact_table::types::{Domain, TextMatch};
use policyd_yaml::node::Node;

/// Lists of options in the vocabulary, by the file's section and their key.
const OPTION_LISTS: [(&str, &str); 9] = [
    ("wrappers", "value_options"),
    ("interpreters", "code"),
    ("interpreters", "other"),
    ("file_effects", "read_options"),
    ("file_effects", "write_options"),
    ("file_effects", "folder_options"),
    ("file_effects", "text_unless"),
    ("file_effects", "marked_options"),
    ("shell_values", "options"),
];

/// Options that the vocabulary lists.
fn listed_options<'s>(subject: &'s Subject<'_>) -> Vec<&'s Node> {
    let Some(file) = subject.file("vocabulary.yaml") else { return Vec::new() };
    let by_program = file.get("value_options").and_then(Node::entries).unwrap_or_default();
    let rows = OPTION_LISTS.iter().flat_map(|(section, key)| {
        let rows = file.get(section).and_then(Node::items).unwrap_or_default();
        rows.iter().filter_map(move |row| row.get(key))
    });
    by_program.iter().map(|(_, list)| list).chain(rows).flat_map(Node::one_or_items).collect()
}

fn no_listed_option(subject: &Subject<'_>, out: &mut Findings) {
    for node in listed_options(subject) {
        let text = node.text().unwrap_or_default();
        let fix = if text.contains([',', ' ']) {
            "write each option as a separate item".into()
        } else if let Some(name) = text.strip_suffix('=').filter(|it| it.starts_with("--")) {
            node.rewritten(name).because(": a value after `=` is matched anyway")
        } else {
            continue;
        };
        out.help(node.span.clone(), format!("`{text}` is not the name of an option"), fix);
    }
}

/// What is wrong with a text that begins as an option does: the message, why, and what to write.
fn not_one_option(text: &str) -> Option<(String, &'static str, String)> {
    let before_comma = text.split(',').next().unwrap_or_default();
    // Some programs take a list behind a letter: `-Wl,-z,now`.
    let listed = before_comma != text && (before_comma.len() == 2 || text.starts_with("--"));
    if text.contains([' ', '|']) || listed {
        let first = text.split([' ', ',', '|']).next().unwrap_or_default();
        let message = format!("`{text}` is matched as a single option");
        let help = format!("write each option as a separate item: `[\"{first}\", …]`");
        return Some((message, "option names do not contain a space, a comma or `|`", help));
    }
    (text.len() > 1 && text.ends_with('*')).then(|| {
        let note = "`*` is a literal character; abbreviated long options match anyway";
        let help = "write each option in full: `--force`, `--force-with-lease`";
        (format!("`{text}` is not the name of an option"), note, help.to_owned())
    })
}

/// What to write for an option without its dashes, by what the vocabulary knows of the programs of the rule.
pub(super) fn with_dashes(name: &str, subject: &Subject<'_>, site: &Site<'_>) -> PatternFix {
    let programs = subject.entry_of(site).and_then(|it| programs_of(subject, it));
    let programs = programs.unwrap_or_default();
    let known = programs.iter().flat_map(|it| subject.reviewed.meant.value_options(it));
    let known: BTreeSet<&str> = known.collect();
    let is_spelling = |it: &&&str| it.trim_start_matches('-') == name;
    let mut spellings = known.iter().filter(is_spelling);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    // `terraform -chdir`: one dash is for options of several letters, too.
    let is_long = |it: &&str| {
        it.len() > 2 && it.trim_start_matches('-').len() + 1 == it.len() && !it.ends_with('*')
    };
    let is_short = name.chars().count() == 1;
    let help = "write the option with its dashes, as its program does";
    match (spellings.next(), spellings.next()) {
        (Some(spelling), None) => PatternFix::Write((*spelling).to_owned()),
        (None, _) if is_short => PatternFix::write_if(is_name, &format!("-{name}"), help),
        (None, _) if !known.iter().any(is_long) => {
            PatternFix::write_if(is_name, &format!("--{name}"), help)
        }
        _ => PatternFix::advice(help),
    }
}

pub(crate) fn no_option(subject: &Subject<'_>, out: &mut Findings) {
    no_listed_option(subject, out);
    bundled_option(subject, out);
    let options = arguments(subject, Domain::Text(TextMatch::Option));
    for pattern in options.iter().filter(|it| it.is_argument_of("program.has")) {
        let text = pattern.text;
        // Programs of Windows take `/s`, and some of Unix `+x`.
        if text.starts_with(['-', '+', '/']) {
            if let Some((message, note, help)) = not_one_option(text) {
                let fix = pattern.separated(&[' ', ',', '|']).unwrap_or_else(|| help.into());
                out.add(pattern.span(), message, |it| it.with_note(note).suggest(fix));
            }
            continue;
        }
        let name = text.trim_start_matches(|it: char| !it.is_alphanumeric());
        let PatternOrigin::Argument(site, ..) = pattern.place else { continue };
        let fix = pattern.fix(with_dashes(name, subject, site));
        let message = format!("`{text}` is not an option: it does not start with a dash");
        out.add(pattern.span(), message, |it| {
            it.with_note("use `program.operands` and `program.names` for other words").suggest(fix)
        });
    }
}

/// Programs with one-letter options that can be combined in any order.
const OF_LETTERS: [&str; 17] = [
    "chmod", "chown", "cp", "curl", "df", "du", "git", "grep", "ln", "ls", "mkdir", "mv", "ps",
    "rm", "rsync", "ssh", "tar",
];

/// Several letters that are asked for as one option.
fn bundled_option(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["has"], |site, term| {
        let Some((_, names)) = asked(term).filter(|(fact, _)| fact.is("program.has")) else {
            return;
        };
        let commands = subject.entry_of(site).and_then(|it| subject.said(it, "commands"));
        let commands = commands.map(Node::one_or_items).unwrap_or_default();
        let of_letters = |it: &Node| {
            let program = it.text().and_then(|it| it.split(' ').next());
            program.is_some_and(|it| OF_LETTERS.contains(&it))
        };
        if commands.is_empty() || !commands.iter().all(of_letters) {
            return;
        }
        for (text, range) in names {
            let letters = text.strip_prefix('-').unwrap_or_default();
            if (2..=3).contains(&letters.len())
                && letters.bytes().all(|it| it.is_ascii_alphabetic())
                && letters.chars().collect::<BTreeSet<_>>().len() == letters.len()
            {
                // A letter that is repeated means more of the same: `-vv`.
                let each: Vec<String> =
                    letters.chars().map(|it| format!("program.has([\"-{it}\"])")).collect();
                out.add(
                    site.span(range),
                    format!("`{text}` matches only this exact spelling"),
                    |it| {
                        it.with_note("short options can appear in any order and separately")
                            .with_help(format!("check each option: `{}`", each.join(" && ")))
                    },
                );
            }
        }
    });
}
