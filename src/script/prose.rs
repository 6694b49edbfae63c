//! Prose: a text as sentences of words, code left out. A text is cut once, however many patterns
//! are looked for in it.

use std::cell::OnceCell;
use std::ops::Range;

/// A text, cut into sentences when it is first looked at.
#[derive(Debug)]
pub struct Prose {
    text: String,
    sentences: OnceCell<Vec<Ranges>>,
}

/// Where a sentence and its words stand in the text.
#[derive(Debug)]
struct Ranges {
    sentence: Range<usize>,
    words: Vec<Range<usize>>,
}

/// A sentence, or a line.
#[derive(Debug, Clone, Copy)]
pub struct Sentence<'t> {
    whole: &'t str,
    ranges: &'t Ranges,
}

impl Prose {
    /// Takes a text as it is; nothing is cut yet.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), sentences: OnceCell::new() }
    }

    /// Its sentences and lines: fenced blocks are left out, code spans cut.
    pub fn sentences(&self) -> impl Iterator<Item = Sentence<'_>> {
        let whole = self.text.as_str();
        let cut = self.sentences.get_or_init(|| {
            let ranges = |sentence| Ranges {
                sentence: range(whole, sentence),
                words: words(sentence).map(|word| range(whole, word)).collect(),
            };
            prose_sentences(whole).into_iter().map(ranges).collect()
        });
        cut.iter().map(move |ranges| Sentence { whole, ranges })
    }

    /// How many sentences are questions.
    #[must_use]
    pub fn questions(&self) -> usize {
        let asks = |it: &Sentence<'_>| it.text().trim_end().ends_with('?');
        self.sentences().filter(|it| asks(it) && it.ranges.words.len() > 1).count()
    }
}

impl<'t> Sentence<'t> {
    /// As written.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.at(&self.ranges.sentence)
    }

    /// Whether lower-case words stand in it one after the other, in any case.
    #[must_use]
    pub fn has_phrase(&self, phrase: &[String]) -> bool {
        let same = |(word, wanted): (&Range<usize>, &String)| same_word(self.at(word), wanted);
        !phrase.is_empty()
            && self.ranges.words.windows(phrase.len()).any(|it| it.iter().zip(phrase).all(same))
    }

    fn at(&self, range: &Range<usize>) -> &'t str {
        self.whole.get(range.clone()).unwrap_or_default()
    }
}

/// Words of a text; apostrophes and hyphens belong to them.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '-'))
        .filter(|it| !it.is_empty())
}

fn same_word(word: &str, lower: &str) -> bool {
    word.eq_ignore_ascii_case(lower)
        || (!word.is_ascii() && word.len() == lower.len() && word.to_lowercase() == *lower)
}

/// Where a part of a text stands in it.
fn range(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
    start..start.saturating_add(part.len())
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
