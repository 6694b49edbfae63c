//! The pages of the rules: each has its four parts, and its example is true. What stands under
//! Example raises exactly that code at the marked place; with what stands under Fix nothing is found.

use std::collections::BTreeMap;

use policyd::lint::{self, Rule};
use policyd::report::diagnostics::render_compact;

use crate::subjects::look;

/// Rules whose example would be too large for a page (`tests/yaml_limits.rs` and `tests/policy_load.rs`
/// make it), that need folders, or that are asked for by an option (`tests/lint/clients.rs`).
const WITHOUT_EXAMPLE: [&str; 6] = ["PD021", "PD032", "PD022", "PD023", "PD024", "PD811"];

/// The text of a page below a heading.
fn part<'p>(rule: &'p Rule, heading: &str) -> &'p str {
    let below = rule.page.split_once(&format!("\n## {heading}\n"));
    let (_, below) = below.unwrap_or_else(|| panic!("{} has no part {heading}", rule.code));
    below.split_once("\n## ").map_or(below, |(part, _)| part).trim()
}

/// Files of a part, by name, and where the mark is: `yaml considerations.yaml at 5:14`.
fn files(rule: &Rule, heading: &str) -> (BTreeMap<String, String>, Option<String>) {
    let (mut files, mut mark) = (BTreeMap::new(), None);
    let part = format!("\n{}", part(rule, heading));
    for block in part.split("\n```yaml ").skip(1) {
        let (info, rest) = block.split_once('\n').unwrap();
        let mut words = info.split(' ');
        let file = words.next().unwrap().to_owned();
        match (words.next(), words.next()) {
            (None, _) => {}
            (Some("at"), Some(place)) => mark = Some(format!("policies/{file}:{place}")),
            other => panic!("{}: {other:?}", rule.code),
        }
        let end = if rest.starts_with("```") { 0 } else { rest.find("\n```").unwrap() + 1 };
        files.insert(file, visible(rest.get(..end).unwrap()));
    }
    (files, mark)
}

/// A page is plain text: `‹U+202E›` stands for the character, `‹U+000D›` for one that ends lines,
/// `‹×4100 x›` for that many letters.
fn visible(text: &str) -> String {
    let mut pieces = text.split('‹');
    let mut all = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let (sign, rest) = piece.split_once('›').unwrap();
        if let Some(number) = sign.strip_prefix("U+") {
            all.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        } else {
            let (number, letter) = sign.strip_prefix('×').unwrap().split_once(' ').unwrap();
            all.push_str(&letter.repeat(number.parse().unwrap()));
        }
        all.push_str(rest);
    }
    all
}

/// Each finding as `place: code`.
fn found(rule: &Rule, files: &BTreeMap<String, String>) -> (Vec<(String, String)>, String) {
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let reviewed = look(&files, rule.profile);
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

/// The rules that can be shown, each with its example and where that is marked.
fn shown() -> impl Iterator<Item = (&'static Rule, BTreeMap<String, String>, Option<String>)> {
    let rules = lint::rules().iter().filter(|it| !WITHOUT_EXAMPLE.contains(&it.code));
    rules.map(|rule| {
        let (example, mark) = files(rule, "Example");
        (rule, example, mark)
    })
}

#[test]
fn every_example_raises_its_rule_there() {
    let mut wrong = Vec::new();
    for (rule, example, mark) in shown() {
        let Some(mark) = mark else {
            wrong.push(format!("{}: no place is marked", rule.code));
            continue;
        };
        let (codes, told) = found(rule, &example);
        let right = codes.iter().all(|(_, code)| code == rule.code);
        if !right || !codes.iter().any(|(place, _)| *place == mark) {
            wrong.push(format!("{} at {mark}:\n{told}", rule.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fix_leaves_nothing_to_find() {
    let mut wrong = Vec::new();
    for (rule, mut pack, _) in shown() {
        let (fixed, _) = files(rule, "Fix");
        if fixed.is_empty() {
            wrong.push(format!("{}: its fix changes no file", rule.code));
        }
        // A file that the fix shows empty is deleted.
        for (file, text) in fixed {
            if text.is_empty() {
                pack.remove(&file)
            } else {
                pack.insert(file, text)
            };
        }
        let (codes, told) = found(rule, &pack);
        if !codes.is_empty() {
            wrong.push(format!("{} fixed:\n{told}", rule.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
