//! Text patterns: named sets of phrases and regexes that are looked for in prose.
//! A phrase matches whole words only, without regard to case and spacing; it compiles nothing.

use std::cell::OnceCell;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::facts::lazy::LazyRegex;
use crate::limits;

/// A named set, as written in `vocabulary.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPatternSource {
    /// Phrases: whole words, any case, any spacing between words.
    pub phrases: Vec<String>,
    /// Regexes, without regard to case.
    pub regexes: Vec<String>,
    /// Regexes that excuse the sentence in which something was found.
    pub unless: Vec<String>,
}

/// The set, prepared when it is first looked for.
#[derive(Debug)]
pub struct TextPattern {
    source: TextPatternSource,
    prepared: OnceCell<Prepared>,
}

#[derive(Debug)]
struct Prepared {
    phrases: Vec<Vec<String>>,
    regexes: Vec<LazyRegex>,
    unless: Vec<LazyRegex>,
}

impl TextPattern {
    /// Takes a set as it is; nothing is prepared yet.
    #[must_use]
    pub fn new(source: TextPatternSource) -> Self {
        Self { source, prepared: OnceCell::new() }
    }

    /// The first sentence or line of `text` that the set matches, code spans left out.
    #[must_use]
    pub fn quote<'t>(&self, text: &'t str) -> Option<&'t str> {
        let prepared = self.prepared.get_or_init(|| Prepared::new(&self.source));
        prose_sentences(text).into_iter().find(|sentence| prepared.is_in(sentence))
    }
}

impl Prepared {
    fn new(source: &TextPatternSource) -> Self {
        let lazy = |texts: &[String]| texts.iter().map(|it| prose_regex(it)).collect();
        Self {
            phrases: source
                .phrases
                .iter()
                .map(|it| words(it).map(str::to_lowercase).collect())
                .collect(),
            regexes: lazy(&source.regexes),
            unless: lazy(&source.unless),
        }
    }

    fn is_in(&self, sentence: &str) -> bool {
        let spoken: Vec<&str> = words(sentence).collect();
        let hit = self.phrases.iter().any(|phrase| contains_phrase(&spoken, phrase))
            || self.regexes.iter().any(|it| it.is_match(sentence));
        hit && !self.unless.iter().any(|it| it.is_match(sentence))
    }
}

/// How many sentences of `text` are questions, code left out.
#[must_use]
pub fn questions(text: &str) -> usize {
    let asks = |it: &&&str| it.trim_end().ends_with('?') && words(it).nth(1).is_some();
    prose_sentences(text).iter().filter(asks).count()
}

/// A regex for prose: no regard to case, `^` and `$` at each line.
#[must_use]
pub fn prose_regex(source: &str) -> LazyRegex {
    LazyRegex::new(&format!("(?im){source}"))
}

/// Proves a regex of a pack: bounded size, linear time.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn compile_regex(source: &str) -> Result<Regex, String> {
    if source.len() > limits::REGEX_SOURCE_MAX {
        return Err(format!("longer than {} bytes", limits::REGEX_SOURCE_MAX));
    }
    RegexBuilder::new(source).size_limit(limits::REGEX_COMPILED_MAX).build().map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or(&text).trim_start_matches("error: ").to_owned()
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '-'))
        .filter(|it| !it.is_empty())
}

fn contains_phrase(spoken: &[&str], phrase: &[String]) -> bool {
    !phrase.is_empty()
        && spoken
            .windows(phrase.len())
            .any(|window| window.iter().zip(phrase).all(|(word, wanted)| same_word(word, wanted)))
}

fn same_word(word: &str, lower: &str) -> bool {
    word.len() == lower.len() && word.to_lowercase() == *lower
}

/// Sentences and lines of `text` that are prose: fenced blocks are left out, code spans cut.
fn prose_sentences(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').step_by(2).flat_map(sentences));
        }
    }
    found
}

fn sentences(line: &str) -> Vec<&str> {
    let ends = |at: usize| line.get(at..).is_none_or(|rest| rest.starts_with(char::is_whitespace));
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let after = at.saturating_add(c.len_utf8());
        if matches!(c, '.' | '!' | '?') && ends(after) {
            found.extend(line.get(start..after));
            start = after;
        }
    }
    found.extend(line.get(start..));
    found.retain(|it| !it.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote<'t>(
        phrases: &[&str],
        regexes: &[&str],
        unless: &[&str],
        text: &'t str,
    ) -> Option<&'t str> {
        let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        let source =
            TextPatternSource { phrases: own(phrases), regexes: own(regexes), unless: own(unless) };
        TextPattern::new(source).quote(text)
    }

    #[test]
    fn a_phrase_matches_whole_words_only() {
        assert_eq!(quote(&["sync"], &[], &[], "an asynchronous call"), None);
        assert_eq!(quote(&["ci"], &[], &[], "be specific"), None);
        assert_eq!(
            quote(&["next steps"], &[], &[], "Next   STEPS: none"),
            Some("Next   STEPS: none")
        );
    }

    #[test]
    fn the_sentence_that_matched_is_quoted() {
        let text = "All good. I still need to add tests. Bye.";
        assert_eq!(quote(&["still need to"], &[], &[], text), Some(" I still need to add tests."));
    }

    #[test]
    fn an_excuse_in_the_same_sentence_counts() {
        assert_eq!(quote(&["remaining work"], &[], &[r"\bno\b"], "No remaining work."), None);
        assert!(
            quote(&["remaining work"], &[], &[r"\bno\b"], "No bugs. Remaining work: docs")
                .is_some()
        );
    }

    #[test]
    fn code_is_not_prose() {
        let text = "Done. `next steps`\n```\nnext steps\n```\n";
        assert_eq!(quote(&["next steps"], &[], &[], text), None);
    }

    #[test]
    fn a_bad_regex_says_why() {
        assert!(compile_regex("(").unwrap_err().contains("unclosed group"));
        assert!(compile_regex("(?:a{1000}){1000}").is_err(), "size is capped");
    }
}
