//! Prose: a text as sentences of words, code left out. A text is cut once, however many patterns
//! are looked for in it.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use policyd_yaml::checksum::fingerprint;
use policyd_yaml::pairs::{BigramFilter, folds_into_ascii, holds_in_any_case, listed};

/// A text, cut into sentences when it is first looked at.
#[derive(Debug)]
pub struct Prose {
    text: String,
    /// The text with blanked code spans; nothing if it has none.
    blanked: OnceCell<Option<String>>,
    pairs: OnceCell<BigramFilter>,
    sentences: OnceCell<Vec<Ranges>>,
    /// What was found in it, by the names of what was looked for; those are few.
    found: RefCell<Vec<(String, Option<Range<usize>>)>>,
}

/// Byte ranges of a sentence and of its words in the text.
#[derive(Debug)]
struct Ranges {
    sentence: Range<usize>,
    words: Vec<Range<usize>>,
    marks: ProseMarks,
}

/// Marks of words: what holds a word in any case has its mark, and so may what does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProseMarks(u64);

impl ProseMarks {
    /// Whether all marks of another set are among these.
    #[must_use]
    pub const fn hold(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }
}

impl<'w> FromIterator<&'w str> for ProseMarks {
    fn from_iter<T: IntoIterator<Item = &'w str>>(words: T) -> Self {
        // The highest bits are the most mixed.
        let mark = |word: &str| 1 << (fingerprint(&[&word.to_lowercase()]) >> 58);
        Self(words.into_iter().fold(0, |all, it| all | mark(it)))
    }
}

/// A sentence, or a line.
#[derive(Debug, Clone, Copy)]
pub struct Sentence<'t> {
    whole: &'t str,
    blanked: &'t str,
    ranges: &'t Ranges,
}

impl Prose {
    /// Takes a text as it is; nothing is cut yet.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (blanked, pairs, sentences, found) = Default::default();
        Self { text: text.to_owned(), blanked, pairs, sentences, found }
    }

    /// Its sentences and lines: fenced blocks are left out, and each code span is one unknown word.
    pub fn sentences(&self) -> impl Iterator<Item = Sentence<'_>> {
        let (whole, blanked) = (self.text.as_str(), self.blanked());
        let cut = self.sentences.get_or_init(|| {
            let ranges = |sentence| Ranges {
                sentence: range(blanked, sentence),
                words: words(sentence).map(|word| range(blanked, word)).collect(),
                marks: words(sentence).collect(),
            };
            prose_sentences(blanked).into_iter().map(ranges).collect()
        });
        cut.iter().map(move |ranges| Sentence { whole, blanked, ranges })
    }

    /// The whole text with blanked code spans, of the same length.
    #[must_use]
    pub fn blanked(&self) -> &str {
        let blanked =
            self.blanked.get_or_init(|| self.text.contains('`').then(|| blank(&self.text)));
        blanked.as_deref().unwrap_or(&self.text)
    }

    /// The whole text, code and all.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the text might contain these bytes, in any ASCII case. A fast filter: `true` can be wrong.
    #[must_use]
    pub fn may_hold(&self, bytes: &str) -> bool {
        self.pairs.get_or_init(|| BigramFilter::from_text(&self.text)).may_hold(bytes)
    }

    /// Returns whether the text might contain one of these lowercase words (one per line), in any case.
    #[must_use]
    pub fn may_hold_one(&self, words: &str) -> bool {
        let may_hold = |word: &str| {
            !word.is_ascii() || (self.may_hold(word) && holds_in_any_case(&self.text, word))
        };
        folds_into_ascii(&self.text) || listed(words).any(may_hold)
    }

    /// Returns whether a sentence of the text might contain a phrase. A fast filter: `true` can be wrong.
    #[must_use]
    pub fn may_hold_phrase(&self, phrase: &Phrase) -> bool {
        // Beyond ASCII, letters fold in ways that bytes do not tell.
        phrase.words.iter().all(|it| !it.is_ascii() || self.may_hold(it))
    }

    /// The part of it that `find` finds, which is asked once for each name.
    pub fn remembered<'t>(
        &'t self,
        name: &str,
        find: impl FnOnce(&'t Self) -> Option<&'t str>,
    ) -> Option<&'t str> {
        let known = self.found.borrow().iter().find(|it| it.0 == name).map(|it| it.1.clone());
        let found = known.unwrap_or_else(|| {
            let found = find(self).map(|it| range(&self.text, it));
            self.found.borrow_mut().push((name.to_owned(), found.clone()));
            found
        });
        self.text.get(found?)
    }

    /// How many sentences are questions.
    #[must_use]
    pub fn questions(&self) -> usize {
        let asks = |it: &Sentence<'_>| it.text().trim_end().ends_with('?');
        self.sentences().filter(|it| asks(it) && it.ranges.words.len() > 1).count()
    }
}

impl<'t> Sentence<'t> {
    /// With blanked code spans.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.at(&self.ranges.sentence)
    }

    /// As written.
    #[must_use]
    pub fn quote(&self) -> &'t str {
        self.whole.get(self.ranges.sentence.clone()).unwrap_or_default()
    }

    /// Returns whether the sentence contains the words of a phrase in sequence, in any case.
    #[must_use]
    pub fn has_phrase(&self, phrase: &Phrase) -> bool {
        let Phrase { words, marks } = phrase;
        let same = |(word, wanted): (&Range<usize>, &String)| same_word(self.at(word), wanted);
        !words.is_empty()
            && self.ranges.marks.hold(*marks)
            && self.ranges.words.windows(words.len()).any(|it| it.iter().zip(words).all(same))
    }

    fn at(&self, range: &Range<usize>) -> &'t str {
        self.blanked.get(range.clone()).unwrap_or_default()
    }
}

/// Words that are looked for one after the other.
#[derive(Debug, Clone)]
pub struct Phrase {
    /// In lower case.
    words: Vec<String>,
    marks: ProseMarks,
}

impl Phrase {
    /// Takes a phrase as it is written.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let words: Vec<String> = words(text).map(str::to_lowercase).collect();
        let marks = words.iter().map(String::as_str).collect();
        Self { words, marks }
    }
}

/// Words of a text; apostrophes and hyphens belong to them.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '-'))
        .filter(|it| !it.is_empty())
}

fn same_word(word: &str, lower: &str) -> bool {
    word.eq_ignore_ascii_case(lower)
        || (!word.is_ascii() && word.len() == lower.len() && word.to_lowercase() == *lower)
}

/// Whether a sentence asks.
#[must_use]
pub fn is_question(sentence: &str) -> bool {
    sentence.trim_end().trim_end_matches([')', '"', '*', '_', '”']).ends_with('?')
}

/// Quotation marks around quoted text: the opening and the closing mark.
const QUOTES: [(char, char); 5] = [('`', '`'), ('"', '"'), ('“', '”'), ('«', '»'), ('\'', '\'')];
/// Letter in place of each byte of a code span.
const BLANK: char = 'x';
/// Maximum length of a quote within one line, in bytes. A longer span is not a quote: its opening mark is stray.
const QUOTE_BYTES_MAX: usize = 400;

/// Returns the author's own words: without fenced blocks and quoted lines, with `…` instead of code and quotes within a
/// line. Apostrophes are ASCII.
#[must_use]
pub fn own_words(text: &str) -> String {
    let (mut own, mut fence) = (String::with_capacity(text.len()), None);
    for line in text.lines() {
        let start = line.trim_start();
        let opened = ["```", "~~~"].into_iter().find(|it| start.starts_with(it));
        match (fence, opened) {
            (None, Some(_)) => fence = opened,
            (Some(open), Some(found)) if open == found => fence = None,
            (Some(_), _) => {}
            (None, None) if start.starts_with('>') => {}
            (None, None) => unquoted(line, &mut own),
        }
        own.push('\n');
    }
    own
}

/// Appends a line, with `…` instead of each quote.
fn unquoted(line: &str, own: &mut String) {
    let (mut rest, mut before) = (line, ' ');
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let opening = QUOTES.iter().find(|(open, _)| *open == c);
        // An apostrophe follows a letter, an opening quote does not.
        let quote = opening.filter(|_| !before.is_alphanumeric()).and_then(|(_, close)| {
            let end = after.char_indices().find(|(at, it)| it == close && closes(after, *at, *it));
            end.map(|(at, _)| at + close.len_utf8()).filter(|it| *it <= QUOTE_BYTES_MAX)
        });
        match quote {
            Some(end) => {
                own.push('…');
                rest = after.get(end..).unwrap_or_default();
            }
            None => {
                own.push(if c == '’' { '\'' } else { c });
                rest = after;
            }
        }
        before = c;
    }
}

/// Whether a closing quote ends something: an apostrophe within a word does not.
fn closes(text: &str, at: usize, quote: char) -> bool {
    let next = text.get(at + quote.len_utf8()..).and_then(|it| it.chars().next());
    quote != '\'' || !next.is_some_and(char::is_alphanumeric)
}

/// Returns the byte range of a part of a text.
fn range(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
    start..start.saturating_add(part.len())
}

/// Replaces each byte in a code span by a letter, so that the span is one unknown word. A sign without a partner in its
/// line opens no span.
fn blank(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let spans = line.matches('`').count() / 2;
        for (at, part) in line.split('`').enumerate() {
            if at > 0 {
                blanked.push('`');
            }
            if at % 2 == 1 && at < spans.saturating_mul(2) {
                blanked.extend(std::iter::repeat_n(BLANK, part.len()));
            } else {
                blanked.push_str(part);
            }
        }
    }
    blanked
}

/// Sentences and lines of `text` that are prose: fenced blocks are left out.
fn prose_sentences(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(sentences(line));
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

    #[test]
    fn what_is_quoted_is_not_said() {
        for (text, own) in [
            ("plain", "plain\n"),
            ("a `b c` d", "a … d\n"),
            ("he said \"it is fine\" twice", "he said … twice\n"),
            ("“so” and «so» and 'so'.", "… and … and ….\n"),
            ("I'll say it's fine", "I'll say it's fine\n"),
            ("I’ll do it", "I'll do it\n"),
            ("the users' tests aren't 'just fine'", "the users' tests aren't …\n"),
            ("5\" wide, 6\" high", "5\" wide, 6\" high\n"),
            ("an open \"quote", "an open \"quote\n"),
            ("an open `tick", "an open `tick\n"),
            ("> quoted\nsaid", "\nsaid\n"),
            ("```\nlet a = 1;\n```\nsaid", "\n\n\nsaid\n"),
            ("~~~\n```\nstill code\n~~~\nsaid", "\n\n\n\nsaid\n"),
            ("naïve \"ü\" ö", "naïve … ö\n"),
            ("", ""),
        ] {
            assert_eq!(own_words(text), own, "{text}");
        }
        let stray = format!("\"{}\"", "x".repeat(QUOTE_BYTES_MAX));
        assert_eq!(own_words(&stray), format!("{stray}\n"));
    }

    #[test]
    fn a_code_span_is_one_word_of_its_sentence() {
        for (text, sentences) in [
            ("The test `a.b` fails. So?", &["The test `xxx` fails.", " So?"][..]),
            ("`ä` is out", &["`xx` is out"]),
            ("one ` sign", &["one ` sign"]),
            ("`a` and `", &["`x` and `"]),
            ("a `b\nc` d", &["a `b", "c` d"]),
        ] {
            let prose = Prose::new(text);
            let found: Vec<_> = prose.sentences().map(|it| it.text()).collect();
            assert_eq!(found, sentences, "{text}");
            let quotes: String = prose.sentences().map(|it| it.quote()).collect();
            assert_eq!(quotes, text.replace('\n', ""), "{text}");
        }
    }

    #[test]
    fn questions_end_with_a_mark() {
        for (sentence, asks) in [
            ("Is it?", true),
            ("(Is it?)", true),
            ("**Is it?** ", true),
            ("It is.", false),
            ("", false),
        ] {
            assert_eq!(is_question(sentence), asks, "{sentence}");
        }
    }
}
