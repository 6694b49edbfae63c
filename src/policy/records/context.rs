//! What the texts of `context.yaml` speak of: how full the context is.

use std::sync::{Arc, LazyLock};

use super::fields::{flag, number, only, text};
use policyd_fact_table::types::{Names, PackName, Unit};

/// How full the context is, as texts see it.
pub static CONTEXT: LazyLock<Arc<Names>> = LazyLock::new(|| {
    only(
        "context",
        vec![
            number("percent", "How full the context is, in percent; 0 where nothing is known.")
                .of_unit(Unit::Percent),
            number("measured", "Percentage of the meter that the tiers are measured on.")
                .of_unit(Unit::Percent),
            number("cumulative_pct", "Tokens spent in percent of the window.")
                .of_unit(Unit::Percent),
            number("threshold", "Percentage of the tier `act`.").of_unit(Unit::Percent),
            number("tokens", "Tokens before the model at the last API call.")
                .of_unit(Unit::ContextTokens),
            number("window", "Tokens that the model can hold.").of_unit(Unit::ContextTokens),
            number("growth", "Tokens that a turn adds, on average; 0 where nothing grows."),
            number("turns_left", "Turns until the threshold; 1000000 where nothing grows."),
            number("call_growth", "Tokens that an API call adds, on average."),
            number("calls_left", "API calls until the threshold; 1000000 where nothing grows."),
            number("prompts", "Prompts by humans since the last compaction."),
            number("compactions", "Compactions of the session."),
            text("tier", "The tier that was reached, else empty.").of_ids(PackName::Tier.as_kind()),
            text("model", "Model of the last API call, else empty."),
            text("notes", "The file in which the agent writes down where the work stands."),
            flag("noted", "Whether it wrote that down since the tier was reached."),
        ],
    )
});
