//! Facts about excuses in the agent's last text.

use std::cell::OnceCell;

use super::context::{Excuse, FactView};
use super::dynamic::{count, texts};
use super::pattern::{StoredPattern, TextPattern, TextPatternSource, prose_regex};
use super::row::{FactRow, field, number};
use super::types::{Evidence::Structure, Evidence::Words, PackName, Subject, Type, Unit};
use policyd_facts::lazy::LazyRegex;

/// Rows of `rationalizations`.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::Rationalizations,
        "count",
        Unit::Count,
        Words,
        ["How many were found.", "rationalizations.count == 0"],
        |it, _| Ok(count(found(&it.view, |_| true, |it| it.name.clone()).len())),
    ),
    field(
        Subject::Rationalizations,
        "names",
        Type::Texts,
        Words,
        ["Their names.", "rationalizations.names.contains(\"flaky_tests\")"],
        |it, _| Ok(texts(found(&it.view, |_| true, |it| it.name.clone()))),
    )
    .of_ids(PackName::Excuse),
    field(
        Subject::Rationalizations,
        "quotes",
        Type::Texts,
        Words,
        ["The sentences they were found in.", "rationalizations.quotes.len() > 1"],
        |it, _| Ok(texts(found(&it.view, |_| true, |it| it.quote.clone()))),
    ),
    field(
        Subject::Rationalizations,
        "actions",
        Type::Texts,
        Words,
        ["What is to be done instead of each.", "rationalizations.actions.len() > 0"],
        |it, _| Ok(texts(found(&it.view, |_| true, |it| format!("{}: {}", it.name, it.action)))),
    ),
    field(
        Subject::Rationalizations,
        "proven",
        Type::Texts,
        Structure,
        [
            "Names of those against which what happened speaks.",
            "rationalizations.proven.len() == 0",
        ],
        |it, _| Ok(texts(found(&it.view, |it| it.proven, |it| it.name.clone()))),
    )
    .of_ids(PackName::Excuse),
];

/// Something of each excuse that was found and is wanted; none before they were looked for.
fn found(
    view: &FactView,
    wanted: impl Fn(&Excuse) -> bool,
    told: impl Fn(&Excuse) -> String,
) -> Vec<String> {
    let excuses = view.excuses.iter().flat_map(|it| it.iter());
    excuses.filter(|it| wanted(it)).map(told).collect()
}

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
