//! Facts about the signals of the project: `signals.pending`, `signals.count("DOCS_NEEDED")`.

use rhai::Dynamic;
use serde::{Deserialize, Serialize};

use super::FactError;
use super::context::Object;
use super::members::{Member, count, field, method, text_argument, texts};
use super::types::{Domain, Evidence::Structure, Type};

/// What waits in the folder of signals at one moment, as expressions see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["pending", "drifts", "awaiting_human"]))]
pub struct Waiting {
    /// Names of those that nobody consumed, the oldest first; one that is there twice is named twice.
    pub pending: Vec<String>,
    /// Drifts since the context was last cleared.
    pub drifts: usize,
    /// Requests that no human answered.
    pub awaiting_human: usize,
}

const FREE: &[(Type, Domain)] = &[(Type::Text, Domain::Free)];

/// Rows of `signals`.
pub(super) const ROWS: &[Member] = &[
    field(
        Type::Signals,
        "pending",
        Type::Texts,
        Structure,
        ["Names of the signals that wait, the oldest first.", "signals.pending.contains(\"STOP\")"],
        |it, _| look(it, |it| texts(it.pending.iter().cloned())),
    ),
    method(
        Type::Signals,
        "count",
        FREE,
        (Type::Int, Structure),
        ["Signals of a name that wait.", "signals.count(\"HUMAN_REVIEW_NEEDED\") > 0"],
        |it, args| {
            let name = text_argument(args, 0)?;
            look(it, |it| count(it.pending.iter().filter(|it| **it == name).count()))
        },
    ),
    field(
        Type::Signals,
        "drifts",
        Type::Int,
        Structure,
        ["Drifts since the context was last cleared.", "signals.drifts >= 3"],
        |it, _| look(it, |it| count(it.drifts)),
    ),
    field(
        Type::Signals,
        "awaiting_human",
        Type::Int,
        Structure,
        ["Requests that no human answered.", "signals.awaiting_human > 0"],
        |it, _| look(it, |it| count(it.awaiting_human)),
    ),
];

fn look(it: &Object, look: impl FnOnce(&Waiting) -> Dynamic) -> Result<Dynamic, FactError> {
    let learned = it.context.learned.borrow();
    learned.signals.as_ref().map(look).ok_or_else(|| match it.context.recorded {
        true => it.context.miss("which signals waited"),
        false => "the signals were not read at this event".into(),
    })
}
