//! Facts about the signals of the project: `signals.pending`, `signals.count("DOCS_NEEDED")`.

use rhai::Dynamic;

use super::FactError;
use super::context::Object;
use super::dynamic::{count, text_argument, texts};
use super::params::NAME;
use super::row::{FactRow, field, method, number};
pub use super::snapshots::SignalSnapshot;
use super::types::{Evidence::Structure, PackName, Subject, Type, Unit};

/// Rows of `signals`.
pub(super) const ROWS: &[FactRow] = &[
    field(
        Subject::Signals,
        "pending",
        Type::Texts,
        Structure,
        ["Names of the signals that wait, the oldest first.", "signals.pending.contains(\"STOP\")"],
        |it, _| look(it, |it| texts(it.pending.iter().cloned())),
    )
    .of_ids(PackName::Signal),
    method(
        Subject::Signals,
        "count",
        NAME,
        (Type::Int, Structure),
        ["Signals of a name that wait.", "signals.count(\"HUMAN_REVIEW_NEEDED\") > 0"],
        |it, args| {
            let name = text_argument(args, 0)?;
            look(it, |it| count(it.pending.iter().filter(|it| **it == name).count()))
        },
    )
    .of_ids(PackName::Signal)
    .of_unit(Unit::Count),
    number(
        Subject::Signals,
        "drifts",
        Unit::Count,
        Structure,
        ["Drifts since the context was last cleared.", "signals.drifts >= 3"],
        |it, _| look(it, |it| count(it.drifts)),
    ),
    number(
        Subject::Signals,
        "awaiting_human",
        Unit::Count,
        Structure,
        ["Requests that no human answered.", "signals.awaiting_human > 0"],
        |it, _| look(it, |it| count(it.awaiting_human)),
    ),
];

fn look(it: &Object, look: impl FnOnce(&SignalSnapshot) -> Dynamic) -> Result<Dynamic, FactError> {
    it.view.stores.signals.as_ref().map(look).ok_or_else(|| match it.context().recorded {
        true => it.context().miss("which signals waited"),
        false => "the signals were not read at this event".into(),
    })
}
