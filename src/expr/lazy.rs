//! Regexes that are compiled when a text could match them for the first time.
//!
//! A text without the literals that a pattern requires is rejected before the pattern is compiled. Without this
//! test a stop that reads a whole transcript of 50 turns executes 3.9 times as many instructions, a warm stop 1.13
//! times, and a tool call 1.26 times (callgrind, x86-64, 2026-11-25). A second compiled form without automata saved
//! 0.3% and was removed.
//!
//! Contains: [`LazyRegex`], and [`LinePatterns`] for the last matching line of a text.
//! Does not contain: which patterns there are (policy packs), phrases in prose (`expr::pattern`).

mod lines;
mod literals;

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::ops::Range;

use memchr::memmem;
use regex_automata::meta::{Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;

use crate::limits::{REGEX_COMPILED_MAX, REGEX_SOURCE_MAX};
pub use lines::LinePatterns;
use literals::{RequiredLiterals, required_literals};
use policyd_yaml::pairs::{folds_into_ascii, holds_in_any_case};

/// A regex that is compiled when a text could match it for the first time.
#[derive(Debug, Default)]
pub struct LazyRegex {
    source: String,
    needs: OnceCell<RequiredLiterals>,
    /// `None` if the pattern is invalid.
    compiled: OnceCell<Option<Regex>>,
}

impl LazyRegex {
    /// Stores the source. Nothing is compiled yet.
    #[must_use]
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), ..Self::default() }
    }

    /// Returns literals of which every matching text contains at least one, ignoring case. Empty if
    /// the literals are unknown. Of several sets it is the most selective one: the set whose
    /// shortest literal is the longest, then the smaller set.
    #[must_use]
    pub fn literals(&self) -> &[String] {
        let needs = self.needs();
        let sets = [&needs.any_of].into_iter().chain(&needs.also);
        let known = sets.filter(|set| !set.is_empty());
        let rarity = |set: &&Vec<String>| (set.iter().map(String::len).min(), Reverse(set.len()));
        known.max_by_key(rarity).map_or(&[], Vec::as_slice)
    }

    /// Returns whether the pattern occurs in the text. An invalid pattern never occurs.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.can_match(text) && self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// Returns where the pattern occurs first.
    #[must_use]
    pub fn first_match(&self, text: &str) -> Option<Range<usize>> {
        let regex = self.can_match(text).then(|| self.regex()).flatten()?;
        regex.find(text).map(|it| it.range())
    }

    /// Returns the lines of the text in which the pattern occurs, in order.
    pub fn lines<'t>(&self, text: &'t str) -> impl DoubleEndedIterator<Item = &'t str> {
        let text = if self.can_match(text) { text } else { "" };
        text.lines().filter(|line| self.is_match(line))
    }

    /// Returns the line in which each occurrence begins. A pattern that contains `\\n` is
    /// searched in the whole text, any other pattern in each line.
    #[must_use]
    pub fn places<'t>(&self, text: &'t str) -> Vec<&'t str> {
        if !self.source.contains(r"\n") {
            return self.lines(text).collect();
        }
        let Some(regex) = self.can_match(text).then(|| self.regex()).flatten() else {
            return Vec::new();
        };
        let lines = regex.find_iter(text).filter_map(|found| {
            let start = text.get(..found.start())?.rfind('\n').map_or(0, |at| at + 1);
            text.get(start..)?.lines().find(|line| !line.trim().is_empty())
        });
        lines.collect()
    }

    /// Returns what the pattern captures in the text: of each occurrence the first group that took part, else the
    /// whole occurrence.
    #[must_use]
    pub fn captured<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let compiled = || compile(&self.source, WhichCaptures::All);
        let Some(regex) = self.can_match(text).then(compiled).flatten() else { return Vec::new() };
        let matches = regex.captures_iter(text);
        let spans =
            matches.filter_map(|it| it.iter().flatten().nth(1).or(it.get_match()?.span().into()));
        spans.filter_map(|it| text.get(it.range())).collect()
    }

    /// Returns whether the text could match, by the required literals alone.
    #[must_use]
    pub fn can_match(&self, text: &str) -> bool {
        let needs = self.needs();
        self.may_match(text, |literal| match needs.ignore_case {
            true => holds_in_any_case(text, literal),
            false => memmem::find(text.as_bytes(), literal.as_bytes()).is_some(),
        })
    }

    /// Like [`can_match`](Self::can_match). `may_hold` returns whether the text may contain a
    /// literal, in any case.
    #[must_use]
    pub fn may_match(&self, text: &str, may_hold: impl Fn(&str) -> bool) -> bool {
        let needs = self.needs();
        if needs.any_of.is_empty() || (needs.ignore_case && folds_into_ascii(text)) {
            return true; // a byte search does not know those letters
        }
        let holds = |literal: &String| may_hold(literal);
        needs.any_of.iter().any(holds) && needs.also.iter().all(|set| set.iter().any(holds))
    }

    fn needs(&self) -> &RequiredLiterals {
        self.needs.get_or_init(|| required_literals(&self.source))
    }

    fn regex(&self) -> Option<&Regex> {
        // All but `captured` reads no groups.
        self.compiled.get_or_init(|| compile(&self.source, WhichCaptures::Implicit)).as_ref()
    }
}

fn compile(source: &str, captures: WhichCaptures) -> Option<Regex> {
    if source.len() > REGEX_SOURCE_MAX {
        return None;
    }
    let config = Config::new().which_captures(captures);
    let config = config.nfa_size_limit(Some(REGEX_COMPILED_MAX));
    Regex::builder().configure(config).build(source).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pattern_over_two_lines_is_found_where_it_begins() {
        let stub = LazyRegex::new(r"(?m)^\s*def \w+\(\):[ \t]*\n\s*pass$");
        assert_eq!(stub.places("x = 1\n\ndef f():\n    pass\n"), ["def f():"]);
        assert!(stub.places("def f():\n    return 1\n").is_empty());
        assert_eq!(LazyRegex::new("TODO").places("a\n# TODO b\n"), ["# TODO b"]);
    }

    #[test]
    fn the_first_group_that_took_part_is_captured() {
        let text = "3 insertions, 12 deletions";
        assert_eq!(LazyRegex::new(r"\d+").captured(text), ["3", "12"]);
        assert_eq!(LazyRegex::new(r"(\d+) del|(\d+) ins").captured(text), ["3", "12"]);
        assert!(LazyRegex::new(r"(\d+) changes").captured(text).is_empty());
    }

    #[test]
    fn a_text_must_hold_a_literal_of_every_group() {
        let pattern = LazyRegex::new(r"(?im)\b(update|add)\b.*\b(docs?|readme)\b");
        assert!(!pattern.can_match("Add a parser"));
        assert!(pattern.can_match("add it to the README"));
        let branches = LazyRegex::new(r"(foo|bar) (baz|qux)|(one|two)");
        assert!(branches.can_match("one"));
        let perhaps = LazyRegex::new(r"(not|n't) (yet )?(done|finished)");
        assert!(perhaps.can_match("not done") && !perhaps.can_match("Done"));
    }

    #[test]
    fn of_what_is_understood_in_part_nothing_is_known() {
        for source in ["(todo|fixme)[[:space:]]|later", r"(a1|b2)\x41|later", "(a1|b2)(?-i)X|later"]
        {
            let pattern = LazyRegex::new(source);
            assert!(pattern.literals().is_empty(), "{source}");
            assert!(pattern.is_match("do it later"), "{source}");
        }
    }

    #[test]
    fn letters_that_fold_beyond_ascii_are_found() {
        assert!(LazyRegex::new("(?i)kelvin").is_match("\u{212a}elvin"));
        assert!(LazyRegex::new("(?i)\u{212a}elvin").is_match("kelvin"));
        assert!(LazyRegex::new("(?i)todo").is_match("a ToDo b"));
        assert!(!LazyRegex::new("(?i)todo").is_match("to do"));
        assert!(!LazyRegex::new("(broken").is_match("(broken"));
    }

    proptest! {
        #[test]
        fn nothing_that_matches_is_turned_away(
            pieces in proptest::collection::vec(proptest::sample::select(vec![
                "a", "b", "ab", "(", ")", "(?:", "|", "*", "+", "?", ".", "^", "$", "\\b", "\\.",
                "[ab]", "[^a]", "{2}", "{0,1}", "\\s", " ", "(?i)", "k", "s", "é",
            ]), 0..9),
            text in "[abksABÉ—. \n\u{17f}\u{212a}]{0,8}",
        ) {
            let source = pieces.concat();
            if let Ok(regex) = regex::Regex::new(&source) {
                let lazy = LazyRegex::new(&source);
                prop_assert_eq!(lazy.is_match(&text), regex.is_match(&text), "{}", source);
                let lines = LinePatterns::new(std::slice::from_ref(&source));
                let last = text.lines().rfind(|line| regex.is_match(line));
                prop_assert_eq!(lines.last_line(&text), last, "{}", source);
            }
        }
    }
}
