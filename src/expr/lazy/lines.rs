//! The last line of a text that matches one of several patterns. The text is searched once for all patterns, from
//! its end, because summaries are at the end. One search for each pattern executes 2.6 times as many instructions in
//! a stop that reads a whole transcript (callgrind, x86-64, 2026-11-25).
//!
//! Contains: the index of patterns by their literals.
//! Does not contain: the extraction of literals (`literals`).

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter::once;

use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::LazyRegex;

/// Patterns that are searched in single lines.
#[derive(Debug, Default)]
pub struct LinePatterns {
    patterns: Vec<LazyRegex>,
    index: OnceCell<LiteralIndex>,
}

/// Indexes of the patterns, by the literals that a matching line contains.
#[derive(Debug)]
struct LiteralIndex {
    /// By the literal at the beginning of the line, and by its first byte, which excludes most
    /// lines.
    beginnings: BTreeMap<u8, Vec<(String, usize)>>,
    /// By a literal anywhere in the line.
    parts: Vec<(memmem::Finder<'static>, Vec<usize>)>,
    /// Patterns without a usable literal.
    others: Vec<usize>,
}

/// Number of bytes that are searched together, rounded down to whole lines.
const BLOCK: usize = 16 * 1024;

impl LinePatterns {
    /// Stores the sources. Nothing is compiled yet.
    #[must_use]
    pub fn new(sources: &[String]) -> Self {
        let patterns = sources.iter().map(|it| LazyRegex::new(it)).collect();
        Self { patterns, index: OnceCell::new() }
    }

    /// Returns the last line of the text in which one of the patterns occurs.
    #[must_use]
    pub fn last_line<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.patterns.is_empty() {
            return None;
        }
        let index = self.index.get_or_init(|| LiteralIndex::new(&self.patterns));
        let mut rest = text;
        while !rest.is_empty() {
            let (before, block) = rest.split_at_checked(start_of_last_block(rest))?;
            if let Some(line) = self.last_line_of_block(index, block) {
                return Some(line);
            }
            rest = before;
        }
        None
    }

    fn last_line_of_block<'t>(&self, index: &LiteralIndex, block: &'t str) -> Option<&'t str> {
        let mut hits = index.hits(block.as_bytes());
        hits.sort_unstable_by_key(|it| Reverse(*it));
        let line_with = |(start, pattern): &(usize, usize)| {
            let line = block.get(*start..)?.lines().next()?;
            self.patterns.get(*pattern)?.is_match(line).then_some(line)
        };
        let by_literal = hits.iter().find_map(line_with);
        let others = index.others.iter().filter_map(|it| self.patterns.get(*it));
        let lines = others.filter_map(|it| it.lines(block).next_back());
        lines.chain(by_literal).max_by_key(|line| line.as_ptr())
    }
}

impl LiteralIndex {
    fn new(patterns: &[LazyRegex]) -> Self {
        let (mut beginnings, mut others) = (BTreeMap::<u8, Vec<_>>::new(), Vec::new());
        let mut parts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, pattern) in patterns.iter().enumerate() {
            let needs = pattern.needs();
            if needs.any_of.is_empty() || needs.ignore_case {
                others.push(at);
            } else if let Some(first) = needs.line_start.bytes().next() {
                beginnings.entry(first).or_default().push((needs.line_start.clone(), at));
            } else {
                needs.any_of.iter().for_each(|it| parts.entry(it).or_default().push(at));
            }
        }
        let finder = |text: &str| memmem::Finder::new(text).into_owned();
        let parts = parts.into_iter().map(|(text, it)| (finder(text), it)).collect();
        Self { beginnings, parts, others }
    }

    /// Returns the starts of the lines that contain the literal of a pattern, with the index of the
    /// pattern.
    fn hits(&self, block: &[u8]) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        let starts = once(0).chain(memchr_iter(b'\n', block).map(|end| end + 1));
        for start in starts.filter(|_| !self.beginnings.is_empty()) {
            let line = block.get(start..).unwrap_or_default();
            let alike = line.first().and_then(|it| self.beginnings.get(it));
            let begun = alike.into_iter().flatten();
            let begun = begun.filter(|(text, _)| line.starts_with(text.as_bytes()));
            hits.extend(begun.map(|(_, pattern)| (start, *pattern)));
        }
        for (finder, patterns) in &self.parts {
            // Continue with the next line, so that each byte is searched once.
            let mut from = 0;
            while let Some((rest, hit)) =
                block.get(from..).and_then(|it| Some((it, finder.find(it)?)))
            {
                let before = rest.get(..hit).and_then(|it| memrchr(b'\n', it));
                let start = from + before.map_or(0, |end| end + 1);
                hits.extend(patterns.iter().map(|it| (start, *it)));
                let end = rest.get(hit..).and_then(|it| memchr(b'\n', it));
                from += end.map_or(rest.len(), |it| hit + it + 1);
            }
        }
        hits
    }
}

/// Returns the start of the last block of whole lines.
fn start_of_last_block(text: &str) -> usize {
    let before = text.len().saturating_sub(BLOCK);
    text.as_bytes().get(..before).and_then(|it| memrchr(b'\n', it)).map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex::Regex;

    const SOURCES: [&str; 9] = [
        "[1-9] failed",
        "0 failed|ok",
        "passed$",
        "(?i)FAILED$",
        "x",
        "^.",
        "failed: ",
        "^ok",
        "^$",
    ];

    fn patterns(sources: &[&str]) -> LinePatterns {
        LinePatterns::new(&sources.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
    }

    /// Reference implementation: searches each line with each pattern.
    fn slowly<'t>(sources: &[&str], text: &'t str) -> Option<&'t str> {
        let regexes: Vec<Regex> = sources.iter().map(|it| Regex::new(it).unwrap()).collect();
        text.lines().rfind(|line| regexes.iter().any(|it| it.is_match(line)))
    }

    #[test]
    fn the_last_line_is_the_last_of_all_lines() {
        let text = "1 failed\n0 failed, 2 passed\r\nfailed: 3 failed\n\nok 0 failed\nend";
        for (at, source) in SOURCES.iter().enumerate() {
            for sources in [&[*source][..], &SOURCES[at..]] {
                let patterns = patterns(sources);
                for cut in 0..=text.len() {
                    let text = text.get(..cut).unwrap();
                    assert_eq!(
                        patterns.last_line(text),
                        slowly(sources, text),
                        "{sources:?} {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn lines_are_found_in_every_block_and_across_their_ends() {
        let sources = ["[1-9] failed", "^ok"];
        let patterns = patterns(&sources);
        for length in [1, 79, BLOCK - 9, BLOCK - 8, BLOCK + 1] {
            let filler = format!("{}\n0 failed\n", "x".repeat(length));
            let after = filler.repeat(1 + 3 * BLOCK / filler.len());
            for text in [format!("ok\n2 failed\n{after}"), format!("3 failed{after}"), after] {
                assert_eq!(patterns.last_line(&text), slowly(&sources, &text), "{length}");
            }
        }
        assert!(LinePatterns::default().last_line("ok").is_none());
    }

    proptest! {
        #[test]
        fn what_is_skipped_could_not_match(
            sources in proptest::sample::subsequence(SOURCES.to_vec(), 1..4),
            text in "([0-3x] |ok|failed|passed|: |\r?\n){0,12}",
        ) {
            prop_assert_eq!(patterns(&sources).last_line(&text), slowly(&sources, &text));
        }
    }
}
