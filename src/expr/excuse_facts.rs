//! Facts about excuses in the agent's last text.

use super::context::{Context, Excuse};
use super::dynamic::{count, texts};
use super::row::{Member, field};
use super::types::{Evidence::Structure, Evidence::Words, Type};

/// Rows of `rationalizations`.
pub(super) const ROWS: &[Member] = &[
    field(
        Type::Rationalizations,
        "count",
        Type::Int,
        Words,
        ["How many were found.", "rationalizations.count == 0"],
        |it, _| Ok(count(found(&it.context, |_| true, |it| it.name.clone()).len())),
    ),
    field(
        Type::Rationalizations,
        "names",
        Type::Texts,
        Words,
        ["Their names.", "rationalizations.names.contains(\"flaky_tests\")"],
        |it, _| Ok(texts(found(&it.context, |_| true, |it| it.name.clone()))),
    ),
    field(
        Type::Rationalizations,
        "quotes",
        Type::Texts,
        Words,
        ["The sentences they were found in.", "rationalizations.quotes.len() > 1"],
        |it, _| Ok(texts(found(&it.context, |_| true, |it| it.quote.clone()))),
    ),
    field(
        Type::Rationalizations,
        "actions",
        Type::Texts,
        Words,
        ["What is to be done instead of each.", "rationalizations.actions.len() > 0"],
        |it, _| Ok(texts(found(&it.context, |_| true, |it| format!("{}: {}", it.name, it.action)))),
    ),
    field(
        Type::Rationalizations,
        "proven",
        Type::Texts,
        Structure,
        [
            "Names of those against which what happened speaks.",
            "rationalizations.proven.len() == 0",
        ],
        |it, _| Ok(texts(found(&it.context, |it| it.proven, |it| it.name.clone()))),
    ),
];

/// Something of each excuse that was found and is wanted; none before they were looked for.
fn found(
    context: &Context,
    wanted: impl Fn(&Excuse) -> bool,
    told: impl Fn(&Excuse) -> String,
) -> Vec<String> {
    let learned = context.learned.borrow();
    let excuses = learned.rationalizations.iter().flat_map(|it| it.iter());
    excuses.filter(|it| wanted(it)).map(told).collect()
}
