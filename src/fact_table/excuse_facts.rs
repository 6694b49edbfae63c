//! Facts about excuses in the agent's last text.

use super::context::{Excuse, FactView};
use super::dynamic::{count, texts};
pub use super::rationalization_matcher::RationalizationMatcher;
use super::row::{FactRow, field, number};
use super::types::{Evidence::Structure, Evidence::Words, PackName, Subject, Type, Unit};

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
