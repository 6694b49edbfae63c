//! Facts about the circuit breakers of the project: `breakers.load_level`, `breakers["api/claude"].open`.

use rhai::Dynamic;

use super::FactError;
use super::context::{ContextPart, Object};
use super::dynamic::{count, texts};
use super::row::{FactRow, field, number};
pub use super::snapshots::{BreakerSnapshot, BreakersSnapshot};
use super::types::{Evidence::Structure, PackName, Subject, Type, Unit};
use policyd_state::breaker::PHASES;
use policyd_state::breaker::load::LOAD_LEVELS;

/// Rows of `breakers` and of one of them.
pub(super) const ROWS: &[FactRow] = &[
    field(
            Subject::Breakers,
            "load_level",
            Type::Text,
            Structure,
            [
                "`reduced` while a breaker is not closed, `recovering` shortly after it closed, else `normal`.",
                "breakers.load_level == \"normal\"",
            ],
            |it, _| all(it, |it| it.load_level.clone().into()),
        ).with_values(&LOAD_LEVELS),
    field(
            Subject::Breakers,
            "open",
            Type::Texts,
            Structure,
            ["Names of those that reject calls.", "breakers.open.contains(\"api/claude\")"],
            |it, _| all(it, |it| names(it, |it| it.open)),
        ).of_ids(PackName::Breaker),
    field(
            Subject::Breakers,
            "needs_human",
            Type::Texts,
            Structure,
            [
                "Names of those that waiting does not cure.",
                "breakers.needs_human.contains(\"api/claude\")",
            ],
            |it, _| all(it, |it| names(it, |it| it.needs_human)),
        ).of_ids(PackName::Breaker),
    number(
        Subject::Breakers,
        "parallelism",
        Unit::Count,
        Structure,
        ["Calls that may run side by side.", "breakers.parallelism < 5"],
        |it, _| all(it, |it| count(it.parallelism)),
    ),
    field(
            Subject::Breaker,
            "state",
            Type::Text,
            Structure,
            ["Where it stands.", "breakers[\"api/claude\"].state == \"HALF_OPEN\""],
            |it, _| one(it, |it| it.state.clone().into()),
        ).with_values(&PHASES),
    field(
        Subject::Breaker,
        "open",
        Type::Bool,
        Structure,
        ["Whether it rejects calls.", "breakers[\"api/claude\"].open"],
        |it, _| one(it, |it| it.open.into()),
    ),
    number(
        Subject::Breaker,
        "retry_after",
        Unit::Other,
        Structure,
        [
            "Seconds until it may be tried, 0 where it may be now or only a human can open it.",
            "breakers[\"api/claude\"].retry_after > 60",
        ],
        |it, _| one(it, |it| count(it.retry_after)),
    ),
    number(
        Subject::Breaker,
        "failures",
        Unit::Count,
        Structure,
        ["Failures that count.", "breakers[\"api/claude\"].failures > 1"],
        |it, _| one(it, |it| count(it.failures)),
    ),
    field(
        Subject::Breaker,
        "last_error",
        Type::Text,
        Structure,
        [
            "What the last failure said, else empty.",
            "breakers[\"api/claude\"].last_error.contains(\"529\")",
        ],
        |it, _| one(it, |it| it.last_error.clone().into()),
    ),
    number(
            Subject::Breaker,
            "capacity",
            Unit::PercentOfWhole,
            Structure,
            [
                "Share of the usual load that it permits, in percent.",
                "breakers[\"api/claude\"].capacity < 100",
            ],
            |it, _| one(it, |it| count(it.capacity)),
        ).with_range((0, 100)),
    field(
        Subject::Breaker,
        "needs_human",
        Type::Bool,
        Structure,
        [
            "Whether waiting does not cure the last failures.",
            "breakers[\"api/claude\"].needs_human",
        ],
        |it, _| one(it, |it| it.needs_human.into()),
    ),
];

/// `breakers["name"]`: the handle of one of them.
pub(super) fn breaker(it: &Object, key: &str) -> Dynamic {
    it.part(ContextPart::Breaker(std::rc::Rc::from(key)))
}

fn names(standing: &BreakersSnapshot, wanted: impl Fn(&BreakerSnapshot) -> bool) -> Dynamic {
    texts(standing.known.iter().filter(|(_, it)| wanted(it)).map(|(key, _)| key.clone()))
}

/// Looks at all of them.
fn all(it: &Object, look: impl FnOnce(&BreakersSnapshot) -> Dynamic) -> Result<Dynamic, FactError> {
    it.view.stores.breakers.as_ref().map(look).ok_or_else(|| match it.context().recorded {
        true => it.context().miss("where the breakers stood"),
        false => "the breakers were not read at this event".into(),
    })
}

/// Looks at one of them.
fn one(it: &Object, look: impl FnOnce(&BreakerSnapshot) -> Dynamic) -> Result<Dynamic, FactError> {
    let ContextPart::Breaker(key) = &it.part else { return Err("not a breaker".into()) };
    all(it, |standing| match standing.known.get(&**key) {
        Some(known) => look(known),
        None => look(&BreakerSnapshot::default()),
    })
}
