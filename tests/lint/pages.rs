//! The pages of the rules: each has its four parts, and its example is true. What stands under
//! Example raises exactly that code at the marked place; with what stands under Fix nothing is found.

use std::collections::BTreeMap;

use policyd::harness::{self, Harness};
use policyd::lint::{self, Rule};
use policyd::report::diagnostics::render_compact;

use crate::subjects::look_for;

/// The rule that is told after others: its example raises those, too.
const AFTER_OTHERS: &str = "PD023";

/// What a part of a page shows.
#[derive(Default)]
struct Shown {
    /// Its files, by name.
    files: BTreeMap<String, String>,
    /// Where the mark is: `yaml considerations.yaml at 5:14`.
    mark: Option<String>,
    /// The client it is looked at for: `yaml considerations.yaml at 5:14 for opencode`.
    client: Option<&'static Harness>,
}

/// The text of a page below a heading.
fn part<'p>(rule: &'p Rule, heading: &str) -> &'p str {
    let below = rule.page.split_once(&format!("\n## {heading}\n"));
    let (_, below) = below.unwrap_or_else(|| panic!("{} has no part {heading}", rule.code));
    below.split_once("\n## ").map_or(below, |(part, _)| part).trim()
}

fn shown(rule: &Rule, heading: &str) -> Shown {
    let mut shown = Shown::default();
    let part = format!("\n{}", part(rule, heading));
    for block in part.split("\n```yaml ").skip(1) {
        let (info, rest) = block.split_once('\n').unwrap();
        let mut words = info.split(' ');
        let file = words.next().unwrap().to_owned();
        while let Some(word) = words.next() {
            match (word, words.next()) {
                ("at", Some(place)) => shown.mark = Some(format!("policies/{file}:{place}")),
                ("for", Some(name)) => shown.client = Some(harness::find(name).unwrap()),
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
fn found(rule: &Rule, pack: &Shown) -> (Vec<(String, String)>, String) {
    let files = pack.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let reviewed = look_for(pack.client, &files.collect::<Vec<_>>(), rule.profile);
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
        for heading in ["What", "Why", "Example", "Fix"] {
            assert!(!part(rule, heading).is_empty(), "{} {heading}", rule.code);
        }
    }
}

#[test]
fn every_example_raises_its_rule_there() {
    let mut wrong = Vec::new();
    for rule in lint::rules() {
        let example = shown(rule, "Example");
        let Some(mark) = &example.mark else {
            wrong.push(format!("{}: no place is marked", rule.code));
            continue;
        };
        let (codes, told) = found(rule, &example);
        let others = codes.iter().any(|(_, code)| code != rule.code) && rule.code != AFTER_OTHERS;
        let is_marked = |(place, code): &(String, String)| place == mark && code == rule.code;
        if others || !codes.iter().any(is_marked) {
            wrong.push(format!("{} at {mark}:\n{told}", rule.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fix_leaves_nothing_to_find() {
    let mut wrong = Vec::new();
    for rule in lint::rules() {
        let (mut pack, fixed) = (shown(rule, "Example"), shown(rule, "Fix").files);
        if fixed.is_empty() {
            wrong.push(format!("{}: its fix changes no file", rule.code));
        }
        // A file that the fix shows empty is deleted.
        for (file, text) in fixed {
            if text.is_empty() {
                pack.files.remove(&file)
            } else {
                pack.files.insert(file, text)
            };
        }
        let (codes, told) = found(rule, &pack);
        if !codes.is_empty() {
            wrong.push(format!("{} fixed:\n{told}", rule.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
