//! The pages of the rules: each has its four parts, and its example is true. What stands under
//! Example raises exactly that code at the marked place; with what stands under Fix nothing is found.

use std::collections::BTreeMap;

use policyd::harness::{self, Harness};
use policyd::lint::fix::changes;
use policyd::lint::{self, Profile, Rule};
use policyd::report::diagnostics::render_compact;

use crate::subjects::look_for;

/// The rule that is told after others: its example raises those, too.
const AFTER_OTHERS: &str = "too-many-findings";

/// What a part of a page shows.
struct Shown {
    /// Its files, by name.
    files: BTreeMap<String, String>,
    /// Where the mark is: `yaml considerations.yaml at 5:14`.
    mark: Option<String>,
    /// The client it is looked at for: `yaml considerations.yaml at 5:14 for opencode`.
    client: Option<&'static Harness>,
    /// The profile that reports it: `yaml probes.yaml at 5:14 profile strict`.
    profile: Profile,
}

/// An example of a page and its fix: the main one, or the one of a section about a merged rule.
struct Example<'p> {
    /// Heading of its section; empty for the main example.
    name: &'p str,
    example: &'p str,
    fix: &'p str,
}

/// Returns the text of a page below a heading, up to the next one of this or a higher level.
fn part<'p>(page: &'p str, heading: &str) -> Option<&'p str> {
    let (_, below) = page.split_once(&format!("\n{heading}\n"))?;
    let end = ["\n## ", "\n### "].iter().filter_map(|it| below.find(it)).min();
    below.get(..end.unwrap_or(below.len())).map(str::trim)
}

fn examples(rule: &Rule) -> Vec<Example<'_>> {
    let wanted = |text, heading| {
        part(text, heading).unwrap_or_else(|| panic!("{} has no part {heading}", rule.code))
    };
    let main = Example {
        name: "",
        example: wanted(rule.page, "## Example"),
        fix: wanted(rule.page, "## Fix"),
    };
    let sections = rule.page.split("\n## ").skip(1).filter(|it| it.contains("\n### Example\n"));
    let merged = sections.map(|text| Example {
        name: text.lines().next().unwrap(),
        example: wanted(text, "### Example"),
        fix: wanted(text, "### Fix"),
    });
    [main].into_iter().chain(merged).collect()
}

fn shown(rule: &Rule, part: &str) -> Shown {
    let mut shown =
        Shown { files: BTreeMap::new(), mark: None, client: None, profile: rule.profile };
    let part = format!("\n{part}");
    for block in part.split("\n```yaml ").skip(1) {
        let (info, rest) = block.split_once('\n').unwrap();
        let mut words = info.split(' ');
        let file = words.next().unwrap().to_owned();
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("at", Some(place)) => shown.mark = Some(format!("policies/{file}:{place}")),
                ("for", Some(name)) => shown.client = Some(harness::find(name).unwrap()),
                ("profile", Some("strict")) => shown.profile = Profile::Strict,
                other => panic!("{}: {other:?}", rule.code),
            }
        }
        let end = if rest.starts_with("```") { 0 } else { rest.find("\n```").unwrap() + 1 };
        shown.files.insert(file, visible(rest.get(..end).unwrap()));
    }
    shown
}

/// A page is plain text: `‹U+202E›` stands for the character, `‹U+000D›` for one that ends lines,
/// `‹×4100 x›` for that many letters, or texts, with their number in place of each `№`.
fn visible(text: &str) -> String {
    let mut pieces = text.split('‹');
    let mut all = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let (sign, rest) = piece.split_once('›').unwrap();
        if let Some(number) = sign.strip_prefix("U+") {
            all.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        } else {
            let (number, letter) = sign.strip_prefix('×').unwrap().split_once(' ').unwrap();
            let count: usize = number.parse().unwrap();
            all.extend((1..=count).map(|it| letter.replace('№', &it.to_string())));
        }
        all.push_str(rest);
    }
    all
}

/// Each finding as `place: code`.
fn found(pack: &Shown) -> (Vec<(String, String)>, String) {
    let files = pack.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let reviewed = look_for(pack.client, &files.collect::<Vec<_>>(), pack.profile);
    let codes =
        reviewed.findings.iter().map(|it| (it.span.place(), lint::code_of(it.code).to_owned()));
    (codes.collect(), render_compact(&reviewed.findings))
}

#[test]
fn every_page_has_its_parts() {
    for rule in lint::rules() {
        let title = format!("# {} {}\n", rule.code, rule.name);
        assert!(rule.page.starts_with(&title), "{}: its title is `{}`", rule.code, title.trim());
        assert!(rule.page.contains(rule.summary), "{}: its summary is on its page", rule.code);
        for heading in ["## What", "## Why", "## Example", "## Fix"] {
            assert!(
                part(rule.page, heading).is_some_and(|it| !it.is_empty()),
                "{} {heading}",
                rule.code
            );
        }
    }
}

#[test]
fn every_example_raises_its_rule_there() {
    let mut wrong = Vec::new();
    for (rule, part) in all_examples() {
        let example = shown(rule, part.example);
        let Some(mark) = &example.mark else {
            wrong.push(format!("{} {}: no place is marked", rule.code, part.name));
            continue;
        };
        let (codes, told) = found(&example);
        let others = codes.iter().any(|(_, code)| code != rule.code) && part.name != AFTER_OTHERS;
        let is_marked = |(place, code): &(String, String)| place == mark && code == rule.code;
        if others || !codes.iter().any(is_marked) {
            wrong.push(format!("{} {} at {mark}:\n{told}", rule.code, part.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fix_leaves_nothing_to_find() {
    let mut wrong = Vec::new();
    for (rule, part) in all_examples() {
        let (mut pack, fixed) = (shown(rule, part.example), shown(rule, part.fix).files);
        if fixed.is_empty() {
            wrong.push(format!("{} {}: its fix changes no file", rule.code, part.name));
        }
        // A file that the fix shows empty is deleted.
        for (file, text) in fixed {
            if text.is_empty() {
                pack.files.remove(&file)
            } else {
                pack.files.insert(file, text)
            };
        }
        let (codes, told) = found(&pack);
        if !codes.is_empty() {
            wrong.push(format!("{} {} fixed:\n{told}", rule.code, part.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Examples that edits fix, at least.
const EDITED_MIN: usize = 59;
/// Rounds of edits: an edit may uncover another mistake.
const ROUNDS_MAX: usize = 8;

#[test]
fn the_edits_of_an_example_leave_nothing_to_find() {
    let (mut wrong, mut edited) = (Vec::new(), 0);
    for (rule, part) in all_examples() {
        let mut pack = shown(rule, part.example);
        let before = pack.files.clone();
        for _ in 0..ROUNDS_MAX {
            let files = pack.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            let reviewed = look_for(pack.client, &files.collect::<Vec<_>>(), pack.profile);
            for change in changes(&reviewed.findings, |_| true) {
                let name = change.source.name.trim_start_matches("policies/").to_owned();
                pack.files.insert(name, change.text);
            }
        }
        let (codes, told) = found(&pack);
        edited += usize::from(pack.files != before);
        if pack.files != before && !codes.is_empty() {
            wrong.push(format!("{} {} edited:\n{told}", rule.code, part.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(edited >= EDITED_MIN, "edits fix the examples of {edited} pages");
}

fn all_examples() -> impl Iterator<Item = (&'static Rule, Example<'static>)> {
    lint::rules().iter().flat_map(|rule| examples(rule).into_iter().map(move |it| (rule, it)))
}
