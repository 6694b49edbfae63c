//! Checks of plain lists, most of them of `vocabulary.yaml`: names that nothing is ever called by, patterns that are
//! excused wherever they are found or found everywhere.

use regex_syntax::hir::HirKind;

use super::patterns::{PatternFix, hir};
use crate::{Findings, Subject};
use policyd_fact_table::pattern::compile_regex;
use policyd_facts::glob::path_matches;
use policyd_yaml::node::Node;

const FILE: &str = "vocabulary.yaml";

/// Lists of tools, by their whole names.
const TOOLS: [&str; 3] = ["shell_tools", "edit_tools", "read_tools"];

/// What is wrong with a name, and what to write in its place.
pub(super) type PhraseProblem = (String, PatternFix);

pub(crate) fn unreachable_list_name(subject: &Subject<'_>, out: &mut Findings) {
    let mut judge = |list: Option<&Node>, wrong: &dyn Fn(&str) -> Option<PhraseProblem>| {
        for node in list.and_then(Node::items).unwrap_or_default() {
            if let Some((message, fix)) = node.text().and_then(wrong) {
                out.help(node.span.clone(), message, fix.of(node));
            }
        }
    };
    let variables = subject.file("policyd.yaml").and_then(|it| it.get("session_type_env"));
    judge(variables, &wrong_variable);
    let Some(file) = subject.file(FILE) else { return };
    for key in TOOLS {
        judge(file.get(key), &|it| {
            let message = format!("`{it}` is not the name of a tool");
            it.contains(['*', '?'])
                .then(|| (message, PatternFix::advice("write the full name of each tool")))
        });
    }
    judge(file.get("main_branches"), &wrong_branch);
    for (_, parts) in file.get("forges").and_then(Node::entries).unwrap_or_default() {
        judge(Some(parts), &wrong_host);
    }
}

fn wrong_variable(name: &str) -> Option<PhraseProblem> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.chars().all(part) {
        return None;
    }
    let alone = name.trim_start_matches(['$', '{']);
    let alone = alone.strip_prefix("env:").unwrap_or(alone);
    let alone = alone.split(['=', '}', ':']).next().unwrap_or(alone).trim();
    let alone: String = alone.chars().map(|it| if part(it) { it } else { '_' }).collect();
    let fix = if !alone.starts_with(|it: char| it.is_ascii_alphabetic()) {
        PatternFix::advice("write only the name: `SESSION_TYPE`")
    } else {
        PatternFix::Write(alone)
    };
    Some((format!("`{name}` is not the name of a variable"), fix))
}

/// Characters that names of branches cannot contain (`git check-ref-format`).
const IN_NO_BRANCH: [char; 8] = ['*', '?', '[', '^', ' ', '\\', '~', ':'];

pub(super) fn wrong_branch(name: &str) -> Option<PhraseProblem> {
    if name.contains(IN_NO_BRANCH) {
        let message = format!("`{name}` is not the name of a branch");
        return Some((message, PatternFix::advice("write the full name of each branch")));
    }
    let prefix = ["refs/heads/", "refs/remotes/", "origin/"];
    let rest = prefix.iter().find_map(|it| name.strip_prefix(it))?;
    let message = format!("`{name}` is not the local name of a branch");
    Some((message, PatternFix::Write(rest.to_owned())))
}

pub(super) fn wrong_host(part: &str) -> Option<PhraseProblem> {
    let message = format!("hosts do not contain `{part}`");
    if part.contains(['/', ':', '@', '*', ' ', '\\', '^', '$', '|']) {
        let rest = part.rsplit_once("://").map_or(part, |(_, rest)| rest);
        let rest = rest.split('/').next().unwrap_or(rest);
        let host = rest.rsplit('@').next().unwrap_or(rest).split(':').next().unwrap_or(rest);
        let plain =
            !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-.".contains(c));
        let fix = if plain {
            PatternFix::Write(host.to_lowercase())
        } else {
            PatternFix::advice("write the host or a part of it: `git.example.com`")
        };
        return Some((message, fix));
    }
    let small = part.to_lowercase();
    (small != part)
        .then(|| (format!("{message}: hosts are in lowercase"), PatternFix::Write(small)))
}

/// Entries that list patterns and what excuses them, with whether case counts.
fn rows<'s>(subject: &'s Subject<'_>) -> Vec<(&'s Node, bool)> {
    let file = subject.file(FILE);
    let mapped = |key: &str| {
        let entries = file.and_then(|it| it.get(key)?.entries()).unwrap_or_default();
        entries.iter().map(|(_, row)| row)
    };
    let listed =
        ["failures.yaml", "rationalizations.yaml"].into_iter().flat_map(|it| subject.of(it));
    let prose = mapped("texts").chain(listed.map(|it| it.node)).map(|it| (it, false));
    prose.chain(mapped("contents").map(|it| (it, true))).collect()
}

pub(crate) fn excused_pattern(subject: &Subject<'_>, out: &mut Findings) {
    left_out_files(subject, out);
    said_both_ways(subject, out);
    for (row, case) in rows(subject) {
        let list = |key: &str| row.get(key).map(Node::one_or_items).unwrap_or_default();
        let excuses: Vec<_> =
            list("unless").iter().filter_map(|it| Some((it, it.text()?))).collect();
        for (key, whole_words) in [("phrases", true), ("regexes", false)] {
            for node in list(key) {
                let Some(text) = node.text() else { continue };
                let context = u64::from(whole_words) * 2 + u64::from(case);
                let excused = excuses.iter().find(|(_, it)| {
                    let all = || excuses_all(it, text, whole_words, case);
                    let both = format!("{it}\0{text}");
                    (*it == text && !whole_words)
                        || *subject.memo().of_text("excuses_all", context, &both, all)
                });
                let Some((by, _)) = excused else { continue };
                let message = format!("the exception covers every match of `{text}`");
                out.add(node.span.clone(), message, |it| {
                    it.with_related(by.span.clone(), "this matches there, too")
                        .with_note("the pattern never matches")
                        .with_help("write other text in `unless`, or remove one of them")
                });
            }
        }
    }
}

/// What is listed on both sides: outputs that are passed and failed, kinds of files that are looked at and left
/// out.
fn said_both_ways(subject: &Subject<'_>, out: &mut Findings) {
    const SIDES: [(&str, &str, &str, &str); 2] = [
        ("commands", "failed", "passed", "a run with both outcomes is ambiguous"),
        ("contents", "files", "except_files", "it is searched for in none of them"),
    ];
    for (section, key, other, note) in SIDES {
        let kinds = subject.file(FILE).and_then(|it| it.get(section)?.entries());
        for (_, kind) in kinds.unwrap_or_default() {
            let list = |key: &str| kind.get(key).map(Node::one_or_items).unwrap_or_default();
            for node in list(key) {
                let same = |it: &&Node| it.text().is_some() && it.text() == node.text();
                let Some(beside) = list(other).iter().find(same) else { continue };
                let text = node.text().unwrap_or_default();
                let message = format!("`{text}` is under both `{key}` and `{other}`");
                out.add(node.span.clone(), message, |it| {
                    it.with_related(beside.span.clone(), "the other one")
                        .with_note(note)
                        .with_help("remove one of them")
                });
            }
        }
    }
}

/// Globs of a kind of files that another one leaves out wherever they match.
fn left_out_files(subject: &Subject<'_>, out: &mut Findings) {
    let kinds = subject.file(FILE).and_then(|it| it.get("files")?.entries());
    for (_, kind) in kinds.unwrap_or_default() {
        let list = |key: &str| kind.get(key).map(Node::one_or_items).unwrap_or_default();
        for except in list("except") {
            let by = except.text().unwrap_or_default();
            let note = "files that match `except` are not in the class";
            // The kind below has globs, too.
            if ["**", "*", "**/*"].contains(&by) {
                out.add(
                    except.span.clone(),
                    format!("`{by}` excludes every file of this class"),
                    |it| it.with_note(note).with_help("write a narrower exclusion"),
                );
                continue;
            }
            for node in list("globs") {
                let Some(text) = node.text().filter(|it| path_matches(by, it)) else { continue };
                let message = format!("`{text}` is excluded wherever it matches");
                out.add(node.span.clone(), message, |it| {
                    it.with_related(except.span.clone(), "excluded here")
                        .with_note(note)
                        .with_help("remove one of them")
                });
            }
        }
    }
}

/// Words that occur in almost every text.
const COMMON: [&str; 32] = [
    "a", "all", "an", "and", "are", "as", "at", "be", "but", "by", "can", "for", "from", "i", "if",
    "in", "is", "it", "not", "of", "on", "or", "so", "that", "the", "then", "this", "to", "was",
    "we", "with", "you",
];

pub(crate) fn common_phrase(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in subject.leaves.iter().filter(|it| it.key == "phrases") {
        let text = leaf.node.text().unwrap_or_default();
        if COMMON.iter().any(|word| word.eq_ignore_ascii_case(text.trim())) {
            let message = format!("`{text}` occurs in almost every text");
            out.add(leaf.node.span.clone(), message, |it| {
                it.with_note("in a list, a comma starts a new item unless the text is quoted")
                    .with_help("write the whole phrase in quotes: `\"not sure, but\"`")
            });
        }
    }
}

/// Whether an excuse is found wherever a pattern is: in the phrase, or in the only text that a regex matches.
fn excuses_all(excuse: &str, pattern: &str, whole_words: bool, case: bool) -> bool {
    let found = if whole_words {
        // Between the words of a phrase stands what people write there.
        let words: Vec<&str> =
            pattern.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
        [" ", ", ", "-"].map(|it| words.join(it)).to_vec()
    } else {
        match hir(pattern).as_ref().map(regex_syntax::hir::Hir::kind) {
            Some(HirKind::Literal(text)) => vec![String::from_utf8_lossy(&text.0).into_owned()],
            _ => return false,
        }
    };
    let looks = hir(excuse).map(|it| it.properties().look_set());
    // A phrase ends at word boundaries; the surroundings of a regex are unknown.
    let open = |it: regex_syntax::hir::LookSet| {
        if whole_words { !it.contains_anchor() } else { it.is_empty() }
    };
    let flags = if case { "" } else { "(?im)" };
    looks.is_some_and(open)
        && found.iter().all(|it| !it.trim().is_empty())
        && compile_regex(&format!("{flags}{excuse}"))
            .is_ok_and(|it| found.iter().all(|found| it.is_match(found)))
}
