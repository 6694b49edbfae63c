//! The patterns of a table of rationalizations, which find excuses in a text.

use std::cell::OnceCell;

use super::pattern::{StoredPattern, TextPattern, TextPatternSource, prose_regex};
use policyd_facts::lazy::LazyRegex;

/// What a table of excuses looks for, row by row, each prepared when it is first needed.
#[derive(Debug)]
pub struct RationalizationMatcher {
    /// Regexes by which others are said to have said something.
    pub others: Vec<LazyRegex>,
    rows: Vec<OnceCell<TextPattern>>,
}

impl RationalizationMatcher {
    /// Takes the regexes for what others said, and room for so many rows.
    #[must_use]
    pub fn new(others: &[String], rows: usize) -> Self {
        let others = others.iter().map(|it| prose_regex(it)).collect();
        Self { others, rows: (0..rows).map(|_| OnceCell::new()).collect() }
    }

    /// Returns the pattern of a row. `source` is called for the first use of the row only.
    pub fn row(
        &self,
        number: usize,
        source: impl FnOnce() -> TextPatternSource,
    ) -> Option<&TextPattern> {
        let pattern = || TextPattern::new(StoredPattern::with_found_words(source()));
        Some(self.rows.get(number)?.get_or_init(pattern))
    }
}
