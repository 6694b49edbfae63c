//! What `context.yaml` may hold: windows and prices of models, tiers, what is said at them.

use super::CHOICES;
use super::resilience::{DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS};
use crate::source::shape::{Field, Kind, field};

/// Events at which a tier can be told to the agent.
pub const TOLD_AT: &[&str] = &["user_prompt_submit", "post_tool_use", "post_tool_use_failure"];

/// The meters that tiers can be measured on.
pub const METERS: &[&str] = &["occupancy", "cumulative"];

/// Who asks for a fresh context.
pub const CLEAR_REQUESTS: &[&str] = &["never", "loop", "always"];

/// How a session may begin.
pub const SOURCES: &[&str] = &["startup", "clear", "compact", "resume", "fork"];

const TOKENS: Kind = Kind::Int { min: 1, max: 1_000_000_000 };
const PRICE: Kind = Kind::Number { min: 0.0, max: 1_000_000.0 };

const MODEL: &[Field] = &[
    field("window", TOKENS, "Tokens it can hold."),
    field("input", PRICE, "US dollars for a million tokens of input."),
    field("output", PRICE, "US dollars for a million tokens of output."),
    field("cache_read", PRICE, "The same read from the cache; a tenth of the input by default."),
    field("cache_write", PRICE, "The same written to it; 1.25 of the input by default."),
];

const TIER: &[Field] = &[
    ID,
    field("at", Kind::Number { min: 0.0, max: 1000.0 }, "Percentage from which on it is reached."),
    field("say", CHOICES, "What the agent is told when it is reached."),
    DESCRIPTION,
    ENABLED,
    OVERRIDE,
];

const SUMMARY: &[Field] = &[
    field(
        "inject",
        Kind::List(&Kind::Choice(SOURCES)),
        "How a session may begin that is told the summary of the one before it.",
    ),
    field("max_age", Kind::Duration, "Older summaries are not told."),
];

/// `context.yaml`: how full the context is, and what is done about it.
pub const CONTEXT: &[Field] = &[
    field("window", TOKENS, "Tokens that a model can hold of which nothing else is said."),
    field(
        "variants",
        Kind::Map(&TOKENS),
        "Windows of variants of models, by what their names end with.",
    ),
    field("models", Kind::Map(&Kind::Record(MODEL)), "Windows and prices, by globs over names."),
    field("meter", Kind::Choice(METERS), "What the tiers are measured on."),
    field(
        "hysteresis",
        Kind::Number { min: 0.0, max: 100.0 },
        "Points that a tier holds below its own percentage.",
    ),
    field("on", Kind::List(&Kind::Choice(TOLD_AT)), "Events at which tiers are told."),
    field(
        "tiers",
        Kind::List(&Kind::Record(TIER)),
        "Percentages at which something is said; `act` is the one at which a run is started anew.",
    ),
    field("notes", TEXTS, "Globs over files that hold where the work stands, the best one first."),
    field("compact", Kind::Template, "What whoever summarises the context is told."),
    field(
        "clear_requests",
        Kind::Choice(CLEAR_REQUESTS),
        "Which sessions ask for a fresh context by the triggers of `signals.yaml`.",
    ),
    field("summary", Kind::Record(SUMMARY), "What is carried over into the next context."),
];
