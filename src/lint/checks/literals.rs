//! Checks of patterns where a text is looked for as it stands: regular expressions among command patterns and phrases,
//! globs that are compared.

use std::ops::Range;

use super::patterns::leaves;
use super::programs::command_patterns;
use super::terms::{asked, asked_with, compared, constant, each_part_asking};
use super::vocabulary::{PhraseProblem, wrong_branch, wrong_host};
use crate::site::Site;
use crate::{Findings, Subject};
use policyd_fact_table::ast::{Expr, ExprKind, Relation};
use policyd_fact_table::paths::Fact;
use policyd_fact_table::types::TextForm;
use policyd_yaml::Suggestion;
use policyd_yaml::node::Node;

/// Programs that run what a project calls as it likes: `npm run test.unit`.
const RUNNERS: [&str; 8] = ["make", "gmake", "just", "rake", "npm", "yarn", "pnpm", "bun"];

/// Command patterns that are written as regular expressions.
fn regex_as_command(subject: &Subject<'_>, out: &mut Findings) {
    for pattern in command_patterns(subject) {
        let text = pattern.text;
        let mut words = text.split_whitespace();
        let program = words.next().filter(|it| !RUNNERS.contains(it));
        let known = program.and_then(|it| subject.reviewed.meant.known_programs().get(it));
        // `mkfs.*` is a glob; no word of `git` goes on with a dot.
        let stem = words.next().and_then(|it| it.strip_suffix(".*"));
        let of_regex = stem.zip(known).is_some_and(|(it, known)| known.contains(it));
        let ends = text.starts_with('^') || text.starts_with("\\b") || text.ends_with("\\b");
        // `git.*push`: no name of a program goes on so.
        let joined = text.split_once(".*").or_else(|| text.split_once("\\s"));
        let of_regex = of_regex
            || joined.is_some_and(|(program, rest)| {
                subject.reviewed.meant.known_programs().contains_key(program)
                    && rest.contains(char::is_alphabetic)
            });
        // Another rule reports shell syntax.
        if (ends || text.ends_with('$') || of_regex) && !text.contains('|') {
            let message = format!("`{text}` is a regular expression in a command pattern");
            let fix = match command_words(text) {
                Some(words) => pattern.write(&words),
                None => {
                    "write the words of the command: `git push`; `*` matches any characters".into()
                }
            };
            out.add(pattern.span(), message, |it| {
                it.with_note("it matches no program").suggest(fix)
            });
        }
    }
}

/// The words of the command that a regular expression finds. `None` if it has alternatives, or anything in between.
fn command_words(regex: &str) -> Option<String> {
    let bare = regex.trim_start_matches('^').trim_end_matches('$');
    let bare = bare.trim_start_matches("\\b").trim_end_matches("\\b").trim_end_matches(".*");
    let spaced = bare.replace("\\s+", " ").replace("\\s*", " ").replace(".*", " ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_word = |it: &&str| it.chars().all(is_plain) && !it.ends_with('/');
    let all = !words.is_empty() && words.iter().all(is_word);
    all.then(|| words.join(" "))
}

/// Facts that are compared whole, of which hardly one holds a `*`, and what knows patterns in their place.
const WHOLE: [(&str, &str); 6] = [
    ("files.last_path", "use `files.matching(…)`"),
    ("program.name", "use a pattern under `commands`"),
    ("event.tool", "use `tools` of a guard, or `event.tool.starts_with(…)`"),
    ("action.tool", "use `tools` of the guard"),
    ("event.source", "list each value: `event.source in [\"startup\", \"resume\"]`"),
    (
        "event.permission_mode",
        "list each value: `event.permission_mode in [\"plan\", \"default\"]`",
    ),
];
/// Lists of names, which hold no patterns either.
const OF_NAMES: [(&str, &str); 4] = [
    ("action.programs", "list each program, or use patterns under `commands`"),
    ("tools.count", "it counts the calls of one tool: write the full name"),
    ("signals.pending", "list each signal"),
    ("signals.count", "list each signal"),
];

/// Globs and alternatives among what facts are compared with.
fn glob_as_text(subject: &Subject<'_>, out: &mut Findings) {
    let members = ["last_path", "name", "tool", "source", "permission_mode"];
    each_part_asking(subject, &members, |site, term| {
        for (fact, instead) in WHOLE {
            for (text, range) in compared(term, |it| it.is(fact)) {
                let glob = text.contains('*') && text.contains(char::is_alphanumeric);
                // Another rule reports a directory before a name.
                let glob = glob && (fact != "program.name" || !text.contains(['/', ' ']));
                let is_either = are_alternatives(text, "-_/.");
                if is_either || glob {
                    let message = format!("`{text}` is compared literally");
                    let fix = if is_either { either(site, term, text) } else { instead.into() };
                    out.help(site.span(range), message, fix);
                }
            }
        }
    });
    each_part_asking(subject, &["programs", "count", "pending"], |site, term| {
        let Some((fact, names)) = asked(term) else { return };
        let Some((_, help)) = OF_NAMES.iter().find(|(it, _)| fact.is(it)) else { return };
        for (text, range) in names.into_iter().filter(|(it, _)| it.contains('*')) {
            out.help(site.span(range), format!("`{text}` is compared literally"), *help);
        }
    });
}

/// Whether a text is several names of letters, digits and these signs with `|` between them.
pub(super) fn are_alternatives(text: &str, signs: &str) -> bool {
    let is_name =
        |it: &str| !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || signs.contains(c));
    text.contains('|') && text.split('|').all(is_name)
}

/// What to write for names with `|` between them.
fn either(site: &Site<'_>, term: &Expr, text: &str) -> Suggestion {
    let names: Vec<&str> = text.split('|').collect();
    let ExprKind::Compare(relation, one, other) = &term.kind else {
        return "write each name as a separate item".into();
    };
    let fact = if constant(one).is_some() { other } else { one };
    let listed = format!("{} in {names:?}", site.part(&fact.range));
    let is_equal = *relation == Relation::Equal;
    site.write(&term.range, if is_equal { listed } else { format!("!({listed})") })
}

/// Texts that facts are compared with and never are by their form: names of branches and hosts.
fn wrong_form(subject: &Subject<'_>, out: &mut Findings) {
    each_part_asking(subject, &["branch", "remote_host"], |site, term| {
        let names = site.names(subject.names());
        let form_of = |it: Fact<'_>| it.member(names).map_or(TextForm::Any, |it| it.form);
        let mut judge = |form: TextForm, wrong: fn(&str) -> Option<PhraseProblem>| {
            for (text, range) in compared(term, |it| form_of(it) == form) {
                if are_alternatives(text, "-_/.") {
                    let message = format!("`{text}` is compared literally");
                    out.help(site.span(range), message, either(site, term, text));
                } else if let Some((message, fix)) = wrong(text) {
                    out.help(site.span(range), message, fix.at(site, range));
                }
            }
        };
        judge(TextForm::Branch, wrong_branch);
        judge(TextForm::Host, wrong_host);
    });
}

/// What only regular expressions make something of.
const OF_REGEXES: [&str; 6] = ["\\s+", "\\d+", "\\w+", ".*", ".+", "(?i)"];

/// Beginnings of the facts that hold what people say, and names.
const PROSE: [&str; 7] =
    ["transcript", "event.prompt", "event.model", "session", "tokens", "task.text", "todos"];

/// Facts that hold the lines of programs, of which hardly one is a pattern itself.
const LINES: [&str; 2] = ["program.line", "action.command"];
/// Programs that are given patterns.
const GIVEN_PATTERNS: [&str; 9] = ["grep", "rg", "sed", "awk", "find", "perl", "ag", "ack", "jq"];

/// Whether a text holds what no line of a program does (`drop.*table`), or no text at all (`\\beval\\(`).
fn only_in_regexes(owner: Fact<'_>, text: &str) -> bool {
    let is_word = |it: &str| it.len() > 1 && it.bytes().all(|c| c.is_ascii_alphabetic());
    let between = |(at, _): (usize, &str)| {
        let ends = |it: &str| it.rsplit(|c: char| !c.is_alphanumeric()).next().is_some_and(is_word);
        let begins =
            |it: &str| it.split(|c: char| !c.is_alphanumeric()).next().is_some_and(is_word);
        text.get(..at).is_some_and(ends) && text.get(at + 2..).is_some_and(begins)
    };
    let is_line = LINES.iter().any(|it| owner.begins_with(it));
    let names_given = GIVEN_PATTERNS.iter().any(|it| text.contains(it));
    let of_words = text.strip_prefix("\\b").filter(|it| it.starts_with(char::is_alphanumeric));
    let signs = ["\\b", "\\(", "\\s", "\\w", "\\d", ".*", "|"];
    (is_line && !names_given && text.match_indices(".*").any(between))
        || of_words.is_some_and(|rest| signs.iter().any(|it| rest.contains(it)))
}

/// Whether the programs of a guard are given patterns.
fn is_given_patterns(subject: &Subject<'_>, site: &Site<'_>) -> bool {
    let commands = subject.entry_of(site).and_then(|it| subject.said(it, "commands"));
    let mut programs = commands.map(Node::one_or_items).unwrap_or_default().iter();
    programs
        .any(|it| it.text().is_some_and(|it| GIVEN_PATTERNS.iter().any(|given| it.contains(given))))
}

/// The call of `matches` for a call with a regular expression, and the bytes of that, both without the closing
/// parenthesis. It finds the expression at the same end of a text. `None` if the expression is a glob, or if its anchor
/// is of one alternative.
fn anchored(
    site: &Site<'_>,
    name: &str,
    text: &str,
    range: &Range<usize>,
) -> Option<(Range<usize>, String)> {
    let call = range.start.checked_sub(name.len() + 1)?..range.start;
    site.part(&call).strip_suffix('(').filter(|it| *it == name)?;
    let source = site.part(range).strip_prefix('"')?.strip_suffix('"')?;
    let is_anchored = match name {
        "starts_with" => text.starts_with('^'),
        "ends_with" => text.ends_with('$') && !text.ends_with("\\$"),
        _ => return Some((call.start..range.end, format!("matches(\"{source}\""))),
    };
    if text.ends_with('*') || text.ends_with("\\$") || (is_anchored && text.contains('|')) {
        return None;
    }
    let written = match name {
        _ if is_anchored => source.to_owned(),
        "starts_with" => format!("^({source})"),
        _ => format!("({source})$"),
    };
    Some((call.start..range.end, format!("matches(\"{written}\"")))
}

/// Functions that take a text as it stands.
const LITERAL: [&str; 3] = ["contains", "starts_with", "ends_with"];

pub(crate) fn regex_in_literal(subject: &Subject<'_>, out: &mut Findings) {
    regex_as_command(subject, out);
    glob_as_text(subject, out);
    wrong_form(subject, out);
    each_part_asking(subject, &LITERAL, |site, term| {
        for name in LITERAL {
            let Some((owner, (text, range))) = asked_with(term, name) else { continue };
            let ends = match name {
                "starts_with" => {
                    text.starts_with('^') || (text.ends_with('*') && !text.starts_with('*'))
                }
                "ends_with" => text.ends_with('$'),
                _ => text.starts_with('^') && text.ends_with('$'),
            };
            let ends = ends || text.starts_with("\\b") || text.ends_with("\\b");
            // What commands and files say may well be written like this.
            let prose = PROSE.iter().any(|it| owner.begins_with(it));
            let words = |it: &str| {
                let plain = it.chars().all(|c| c.is_alphanumeric() || c == ' ');
                plain && !it.is_empty() && it.trim() == it
            };
            let either = text.contains('|') && text.split('|').all(words);
            let of_regex = OF_REGEXES.iter().any(|it| text.contains(it)) || either;
            let is_path = owner.begins_with("files.last_path") && text.contains('*');
            let of_regex_alone = only_in_regexes(owner, text) && !is_given_patterns(subject, site);
            let found = is_path || of_regex_alone || (prose && (ends || of_regex));
            if text.len() > 1 && found {
                let edit = anchored(site, name, text, range)
                    .filter(|_| ends || either)
                    .and_then(|(call, written)| site.edit(&call, &written));
                let help = "use `matches`, or write only the literal text";
                out.add(site.span(range), format!("`{name}` matches `{text}` literally"), |it| {
                    it.with_note("it is not a pattern here").suggest(Suggestion::edited(help, edit))
                });
            }
        }
    });
    for phrase in leaves(subject, |it| it.key == "phrases") {
        let text = phrase.text;
        if text.contains(".*") || text.contains("\\b") || text.split('|').count() > 1 {
            out.add(phrase.span(), "phrases are matched word by word", |it| {
                it.with_note("a phrase is not a regular expression")
                    .with_help("write it under `regexes`")
            });
        }
    }
}
