//! Text patterns: named sets of phrases and regexes that are looked for in prose.
//! A phrase matches whole words only, without regard to case and spacing; it compiles nothing.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::Hir;
use serde::{Deserialize, Serialize};

use super::prose::{self, Phrase, Prose, Sentence};
use crate::lazy::LazyRegex;
use crate::limits;
use policyd_yaml::deferred::Lazy;

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

impl TextPatternSource {
    /// Returns lowercase words. Every text that the set matches contains at least one of them. Empty if such words are
    /// unknown.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let longest = |phrase: &String| {
            let word = prose::words(phrase).max_by_key(|it| it.len());
            word.map(|it| vec![it.to_lowercase()]).unwrap_or_default()
        };
        let phrases = self.phrases.iter().map(longest);
        let lower = |it: &String| it.to_lowercase();
        let literals = |it: &String| prose_regex(it).literals().iter().map(lower).collect();
        let sets: Vec<Vec<String>> = phrases.chain(self.regexes.iter().map(literals)).collect();
        if sets.iter().any(Vec::is_empty) { Vec::new() } else { sets.concat() }
    }
}

/// A set as a compiled pack keeps it: most texts hold none of its words, and then it stays encoded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "EncodedSet", into = "EncodedSet")]
pub struct StoredPattern {
    /// Lowercase words of the set, one per line. Empty if they are unknown.
    words: OnceLock<String>,
    source: Lazy<TextPatternSource>,
}

/// A set with its words, as a compiled pack keeps it.
#[derive(Serialize, Deserialize)]
struct EncodedSet {
    words: String,
    source: Lazy<TextPatternSource>,
}

impl StoredPattern {
    /// The set as it is written.
    #[must_use]
    pub fn source(&self) -> &TextPatternSource {
        &self.source
    }

    /// A set whose words the caller found in the text already, so that they are not searched again.
    #[must_use]
    pub fn with_found_words(source: TextPatternSource) -> Self {
        Self { words: OnceLock::from(String::new()), source: source.into() }
    }

    fn words(&self) -> &str {
        self.words.get_or_init(|| self.source.words().join("\n"))
    }
}

impl From<TextPatternSource> for StoredPattern {
    fn from(source: TextPatternSource) -> Self {
        Self { words: OnceLock::new(), source: source.into() }
    }
}

impl From<StoredPattern> for EncodedSet {
    fn from(kept: StoredPattern) -> Self {
        Self { words: kept.words().to_owned(), source: kept.source }
    }
}

impl From<EncodedSet> for StoredPattern {
    fn from(EncodedSet { words, source }: EncodedSet) -> Self {
        Self { words: words.into(), source }
    }
}

/// Its words say nothing of their own.
impl PartialEq for StoredPattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for StoredPattern {}

/// The set, prepared when a text that it may match is met.
#[derive(Debug)]
pub struct TextPattern {
    kept: StoredPattern,
    prepared: OnceCell<PreparedPattern>,
}

/// The sets of a pack by name, decoded when the first one is read. Few events read one.
#[derive(Debug, Default)]
pub struct TextPatterns {
    stored: RefCell<Lazy<BTreeMap<String, StoredPattern>>>,
    patterns: OnceCell<BTreeMap<String, TextPattern>>,
}

impl TextPatterns {
    /// Returns the set with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&TextPattern> {
        let stored = || self.stored.take().into_inner().into_iter();
        let patterns = || stored().map(|(name, it)| (name, TextPattern::new(it))).collect();
        self.patterns.get_or_init(patterns).get(name)
    }
}

impl From<Lazy<BTreeMap<String, StoredPattern>>> for TextPatterns {
    fn from(stored: Lazy<BTreeMap<String, StoredPattern>>) -> Self {
        Self { stored: stored.into(), patterns: OnceCell::new() }
    }
}

#[derive(Debug)]
struct PreparedPattern {
    phrases: Vec<Phrase>,
    regexes: Vec<LazyRegex>,
    unless: Vec<LazyRegex>,
}

impl TextPattern {
    /// Takes a set as it is; nothing is prepared yet.
    #[must_use]
    pub fn new(kept: impl Into<StoredPattern>) -> Self {
        Self { kept: kept.into(), prepared: OnceCell::new() }
    }

    /// The first sentence or line that the set matches.
    #[must_use]
    pub fn quote<'t>(&self, text: &'t Prose) -> Option<&'t str> {
        self.quote_where(text, |_| true)
    }

    /// The first sentence or line that the set matches, of those that count.
    #[must_use]
    pub fn quote_where<'t>(
        &self,
        text: &'t Prose,
        counts: impl Fn(&str) -> bool,
    ) -> Option<&'t str> {
        let words = self.kept.words();
        if !words.is_empty() && !text.may_hold_one(words) {
            return None;
        }
        let prepared = self.prepared.get_or_init(|| PreparedPattern::new(self.kept.source()));
        // A phrase or regex that cannot match the whole text is not searched in its sentences.
        let phrases = prepared.phrases.iter().filter(|it| text.may_hold_phrase(it));
        let may_hold = |literal: &str| text.may_hold(literal);
        let regexes = prepared.regexes.iter();
        let regexes = regexes.filter(|it| it.may_match(text.blanked(), may_hold));
        let regexes = regexes.filter(|it| it.can_match(text.blanked()));
        let (phrases, regexes): (Vec<_>, Vec<_>) = (phrases.collect(), regexes.collect());
        if phrases.is_empty() && regexes.is_empty() {
            return None;
        }
        let mut hits = text.sentences().filter(|it| prepared.is_in(it, &phrases, &regexes));
        hits.find(|sentence| counts(sentence.text())).map(|it| it.quote())
    }
}

impl PreparedPattern {
    fn new(source: &TextPatternSource) -> Self {
        let lazy = |texts: &[String]| texts.iter().map(|it| prose_regex(it)).collect();
        Self {
            phrases: source.phrases.iter().map(|it| Phrase::new(it)).collect(),
            regexes: lazy(&source.regexes),
            unless: lazy(&source.unless),
        }
    }

    /// Whether a sentence is meant, as far as these of the phrases and regexes tell.
    fn is_in(&self, sentence: &Sentence<'_>, phrases: &[&Phrase], regexes: &[&LazyRegex]) -> bool {
        let matched = |it: &LazyRegex| it.is_match(sentence.text());
        let hit = phrases.iter().any(|it| sentence.has_phrase(it))
            || regexes.iter().any(|it| matched(it));
        hit && !self.unless.iter().any(matched)
    }
}

/// A regex for prose: no regard to case, `^` and `$` at each line.
#[must_use]
pub fn prose_regex(source: &str) -> LazyRegex {
    // Said twice, the flags would hide from `LazyRegex` which literals a text needs.
    let mut rest = source;
    while let Some(less) = ["(?i)", "(?m)", "(?im)"].iter().find_map(|it| rest.strip_prefix(it)) {
        rest = less;
    }
    LazyRegex::new(&format!("(?im){rest}"))
}

/// Whether a regex matches the empty text wherever that is, and so within every text.
#[must_use]
pub fn matches_every_text(regex: &Hir) -> bool {
    let properties = regex.properties();
    properties.minimum_len() == Some(0) && properties.look_set().is_empty()
}

/// Why a regex of a pack is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegexError {
    #[error("longer than {} bytes", limits::REGEX_SOURCE_MAX)]
    TooLong,
    /// Contains one line of the parser: a syntax error, or that the compiled form is too large.
    #[error("{0}")]
    Invalid(String),
}

/// Checks that a regex of a pack compiles. The results of the last regexes are kept: a pack is checked whenever it changes,
/// and most of its regexes do not change.
///
/// # Errors
/// [`RegexError`] like [`compile_regex`].
pub fn check_regex(source: &str) -> Result<(), RegexError> {
    static CHECKED: Mutex<BTreeMap<String, Result<(), RegexError>>> = Mutex::new(BTreeMap::new());
    let checked = || CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = checked().get(source) {
        return known.clone();
    }
    let result = compile_regex(source).map(|_| ());
    let mut checked = checked();
    if checked.len() >= limits::REGEXES_CHECKED_MAX {
        checked.clear();
    }
    if source.len() <= limits::REGEX_SOURCE_MAX {
        checked.insert(source.to_owned(), result.clone());
    }
    result
}

/// Compiles a regex of a pack, with bounded size. It matches in linear time.
///
/// # Errors
/// [`RegexError`] if the regex is too long, too large when compiled, or not valid.
pub fn compile_regex(source: &str) -> Result<Regex, RegexError> {
    if source.len() > limits::REGEX_SOURCE_MAX {
        return Err(RegexError::TooLong);
    }
    RegexBuilder::new(source).size_limit(limits::REGEX_COMPILED_MAX).build().map_err(|error| {
        let text = error.to_string();
        let line = text.lines().last().unwrap_or(&text).trim_start_matches("error: ");
        RegexError::Invalid(line.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample;

    fn quote(phrases: &[&str], regexes: &[&str], unless: &[&str], text: &str) -> Option<String> {
        let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
        let source =
            TextPatternSource { phrases: own(phrases), regexes: own(regexes), unless: own(unless) };
        TextPattern::new(source).quote(&Prose::new(text)).map(str::to_owned)
    }

    #[test]
    fn a_phrase_matches_whole_words_only() {
        assert_eq!(quote(&["sync"], &[], &[], "an asynchronous call"), None);
        assert_eq!(quote(&["ci"], &[], &[], "be specific"), None);
        assert_eq!(
            quote(&["next steps"], &[], &[], "Next   STEPS: none").as_deref(),
            Some("Next   STEPS: none")
        );
    }

    #[test]
    fn flags_that_hold_anyway_hide_no_literal() {
        for source in
            ["^clean\\.force=(no|off)", "(?m)^clean\\.force=(no|off)", "(?i)(?m)^clean\\.force="]
        {
            let regex = prose_regex(source);
            assert!(!regex.literals().is_empty(), "{source}");
            assert!(regex.is_match("a\nCLEAN.force=no"), "{source}");
        }
    }

    #[test]
    fn the_sentence_that_matched_is_quoted() {
        let text = "All good. I still need to add tests. Bye.";
        let found = quote(&["still need to"], &[], &[], text);
        assert_eq!(found.as_deref(), Some(" I still need to add tests."));
    }

    #[test]
    fn letters_beyond_ascii_match_in_any_case() {
        assert!(quote(&["nächste schritte"], &[], &[], "NÄCHSTE Schritte: keine").is_some());
        assert!(quote(&["nächste"], &[], &[], "nachste").is_none());
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

    // No regex matches the letter that replaces code in prose.
    proptest! {
        #[test]
        fn words_turn_away_nothing_that_matches(
            phrases in proptest::collection::vec(
                sample::select(vec!["next steps", "Sync", "ask", "nächste", "k-s", "don't"]), 0..3),
            regexes in proptest::collection::vec(
                sample::select(vec!["(task|ask) me", "so?s", "\\bÄrger", "s$", "(?i)Sky|z", "(next|ask)[[:space:]]|so",
                    "(next|ask)\\x41|sync", "(ask|z)\\p{P}|TASK", "(ask|z)(?P<n>y)|so", "(ask|z)(?-i)Y|so"]), 0..3),
            pieces in proptest::collection::vec(
                sample::select(vec![
                    "Next", "STEPS", "sync", "aſk", "a\u{212a}", "ask", "TASK me", "NÄCHSTE", "ärger", "—",
                    "soſ", "K-S", "don't", "z", ".", "`ask`",
                ]), 0..6),
        ) {
            let text = pieces.join(" ");
            let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
            let source =
                TextPatternSource { phrases: own(&phrases), regexes: own(&regexes), unless: vec![] };
            let without =
                StoredPattern { words: OnceLock::from(String::new()), source: source.clone().into() };
            let prose = Prose::new(&text);
            let found = TextPattern::new(source).quote(&prose).map(str::to_owned);
            prop_assert_eq!(found, TextPattern::new(without).quote(&prose).map(str::to_owned));
        }
    }

    #[test]
    fn a_bad_regex_says_why() {
        assert!(compile_regex("(").unwrap_err().to_string().contains("unclosed group"));
        assert!(compile_regex("(?:a{1000}){1000}").is_err(), "size is capped");
    }
}
