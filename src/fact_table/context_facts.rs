//! Facts about how full the agent's context is: `context.percent`, `context.reached("act")`.

use rhai::Dynamic;

use super::FactError;
use super::context::Object;
use super::dynamic::{count, text_argument};
use super::row::{FactRow, field, method, number};
pub use super::snapshots::ContextUsage;
use super::types::{Domain, Evidence::Neutral, Evidence::Structure, PackName, Subject, Type, Unit};
use policyd_base::limits::CONTEXT_TURNS_MAX;

const TIER: &[(Type, Domain)] = &[(Type::Text, PackName::Tier.as_domain())];

/// Rows of `context`.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::Context,
        "percent",
        Unit::Percent,
        Structure,
        ["How full the context is, in percent; 0 where nothing is known.", "context.percent > 60"],
        |it, _| look(it, |it| count(it.percent)),
    ),
    field(
        Subject::Context,
        "known",
        Type::Bool,
        Structure,
        ["Whether an API call since the last compaction tells how full it is.", "context.known"],
        |it, _| look(it, |it| it.known.into()),
    ),
    number(
        Subject::Context,
        "tokens",
        Unit::ContextTokens,
        Structure,
        ["Tokens before the model at the last API call.", "context.tokens > 150000"],
        |it, _| look(it, |it| count(it.tokens)),
    ),
    number(
        Subject::Context,
        "window",
        Unit::ContextTokens,
        Neutral,
        ["Tokens that the model can hold.", "context.window >= 1000000"],
        |it, _| look(it, |it| count(it.window)),
    ),
    number(
        Subject::Context,
        "measured",
        Unit::Percent,
        Structure,
        ["Percentage of the meter that the tiers are measured on.", "context.measured >= 70"],
        |it, _| look(it, |it| count(it.measured)),
    ),
    field(
        Subject::Context,
        "tier",
        Type::Text,
        Structure,
        ["The tier of context.yaml that was reached, else empty.", "context.tier != \"\""],
        |it, _| look(it, |it| it.tier.clone().into()),
    )
    .of_ids(PackName::Tier),
    method(
        Subject::Context,
        "reached",
        TIER,
        (Type::Bool, Structure),
        ["Whether this tier was reached, or a higher one.", "context.reached(\"act\")"],
        |it, args| {
            let name = text_argument(args, 0)?;
            look(it, |it| it.reached.iter().any(|it| **it == *name).into())
        },
    ),
    number(
        Subject::Context,
        "threshold",
        Unit::Percent,
        Neutral,
        ["Percentage of the tier `act`.", "context.percent < context.threshold"],
        |it, _| look(it, |it| count(it.threshold)),
    ),
    number(
        Subject::Context,
        "growth",
        Unit::Other,
        Structure,
        ["Tokens that a turn adds, on average; 0 where nothing grows.", "context.growth > 5000"],
        |it, _| look(it, |it| count(it.growth)),
    ),
    number(
        Subject::Context,
        "turns_left",
        Unit::Count,
        Structure,
        [
            "Turns until the threshold at this growth; 1000000 where nothing grows.",
            "context.turns_left < 10",
        ],
        |it, _| look(it, |it| count(it.turns_left)),
    )
    .with_range((0, TURNS_MAX)),
    number(
        Subject::Context,
        "call_growth",
        Unit::Other,
        Structure,
        [
            "Tokens that an API call adds, on average; 0 where nothing grows.",
            "context.call_growth > 5000",
        ],
        |it, _| look(it, |it| count(it.call_growth)),
    ),
    number(
        Subject::Context,
        "calls_left",
        Unit::Count,
        Structure,
        [
            "API calls until the threshold at this growth; 1000000 where nothing grows.",
            "context.calls_left < 10",
        ],
        |it, _| look(it, |it| count(it.calls_left)),
    )
    .with_range((0, TURNS_MAX)),
    number(
        Subject::Context,
        "calls",
        Unit::Count,
        Structure,
        ["API calls of the session.", "context.calls > 200"],
        |it, _| look(it, |it| count(it.calls)),
    ),
    number(
        Subject::Context,
        "prompts",
        Unit::Count,
        Structure,
        ["Prompts by humans since the last compaction.", "context.prompts > 25"],
        |it, _| look(it, |it| count(it.prompts)),
    ),
    number(
        Subject::Context,
        "compactions",
        Unit::Count,
        Structure,
        ["Compactions of the session.", "context.compactions > 2"],
        |it, _| look(it, |it| count(it.compactions)),
    ),
    number(
        Subject::Context,
        "spent",
        Unit::ContextTokens,
        Structure,
        ["Tokens spent, those of caches too.", "context.spent > 5000000"],
        |it, _| look(it, |it| count(it.input_tokens.saturating_add(it.output_tokens))),
    ),
    number(
        Subject::Context,
        "cumulative_pct",
        Unit::Percent,
        Structure,
        [
            "Tokens spent in percent of the window, also above 100; it does not say how full the window is.",
            "context.cumulative_pct > 500",
        ],
        |it, _| look(it, |it| count(it.cumulative_pct)),
    ),
    field(
        Subject::Context,
        "exhausted",
        Type::Bool,
        Structure,
        ["Whether `cumulative_pct` is at least the threshold.", "!context.exhausted"],
        |it, _| look(it, |it| it.exhausted.into()),
    ),
    number(
        Subject::Context,
        "cost_cents",
        Unit::Cents,
        Structure,
        ["What was spent by the prices of the pack, in US cents.", "context.cost_cents > 1000"],
        |it, _| look(it, |it| count(it.cost_nano / NANO_PER_CENT)),
    ),
    field(
        Subject::Context,
        "noted",
        Type::Bool,
        Structure,
        [
            "Whether a file of the `notes` of context.yaml was edited since the tier was reached.",
            "context.noted",
        ],
        |it, _| look(it, |it| it.noted.into()),
    ),
    field(
        Subject::Context,
        "restated",
        Type::Bool,
        Structure,
        [
            "Whether a summary with the goal was given to the context after the last compaction.",
            "transcript.objective_kept || context.restated",
        ],
        |it, _| look(it, |it| it.restated.into()),
    ),
];

/// Billionths of a US dollar in a cent.
pub(super) const NANO_PER_CENT: u64 = 10_000_000;
#[expect(clippy::cast_possible_wrap, reason = "a small constant")]
const TURNS_MAX: i64 = CONTEXT_TURNS_MAX as i64;

fn look(it: &Object, look: impl FnOnce(&ContextUsage) -> Dynamic) -> Result<Dynamic, FactError> {
    it.view.usage.as_deref().map(look).ok_or_else(|| match it.context().recorded {
        true => it.context().miss("how full the context was"),
        false => "the context window was not measured at this event".into(),
    })
}
