//! What `breakers.yaml` and `routes.yaml` may hold.

use crate::source::shape::{Field, Kind, field, required};

const TEXTS: Kind = Kind::List(&Kind::Text);
const COUNT: Kind = Kind::Int { min: 1, max: 1000 };
const PERCENT: Kind = Kind::Int { min: 1, max: 100 };
const MODES: &[&str] = &["enforce", "observe", "off"];

/// An entry of `breakers.yaml`; its key is a glob over names of breakers.
pub const BREAKER: &[Field] = &[
    field(
        "mode",
        Kind::Choice(MODES),
        "Whether it rejects calls (`enforce`), only tells which ones it would (`observe`), or admits all and records nothing (`off`).",
    ),
    field("threshold", COUNT, "Failures within the window that open it.").also_known_as(&[
        "failure_threshold",
        "max_failures",
        "failureThreshold",
    ]),
    field("window", Kind::Duration, "How long a call counts."),
    field("window_calls", COUNT, "Calls that count, the last ones: in place of `window`."),
    field(
        "consecutive",
        Kind::Bool,
        "Counts failures in a row, however old: in place of `window`.",
    ),
    field(
        "failure_rate",
        PERCENT,
        "Share of failed calls that opens it, in percent: in place of `threshold`.",
    ),
    field("slow_call", Kind::Duration, "A call that takes as long is slow."),
    field("slow_rate", PERCENT, "Share of slow calls that opens it, in percent."),
    field("min_calls", COUNT, "Calls in the window before a share of them says anything."),
    field("cooldown", Kind::Duration, "How long it stays open.").also_known_as(&[
        "reset_timeout",
        "cooldownSeconds",
        "open_duration",
    ]),
    field(
        "cooldown_factor",
        Kind::Number { min: 1.0, max: 100.0 },
        "How many times as long each further cooldown is, until it stayed closed for as long as the longest one.",
    ),
    field("cooldown_max", Kind::Duration, "Longest cooldown, where they grow."),
    field(
        "cooldown_jitter",
        Kind::Int { min: 0, max: 100 },
        "Up to how many percent are taken off a cooldown, so that not all come back at once.",
    ),
    field(
        "retry_after_max",
        Kind::Duration,
        "Longest time for which a `Retry-After` keeps it open.",
    ),
    field(
        "half_open_interval",
        Kind::Duration,
        "Time between two probes while it is half open; one that is lost blocks nobody for longer.",
    ),
    field("recovery_threshold", COUNT, "Successes in a row that close it.")
        .also_known_as(&["success_threshold", "halfOpenRequests"]),
    field("ramp_start", PERCENT, "Capacity just after it closed again, in percent."),
    field("ramp_step", PERCENT, "What is added to the capacity each `ramp_every`, in percent."),
    field("ramp_every", Kind::Duration, "How long each step of the capacity lasts."),
    field("parallelism", COUNT, "Calls that may run side by side: a hint for rules."),
    field("parallelism_reduced", COUNT, "The same while it is not closed."),
    field("ignore", TEXTS, "Classes of errors that are noted and do not count."),
    field(
        "permanent",
        TEXTS,
        "Classes of errors that waiting does not cure: they go to a human, and never count.",
    ),
    field(
        "on_permanent",
        Kind::Choice(&["open", "note"]),
        "Whether a permanent error opens it at once, or is only noted.",
    ),
    field("description", Kind::Text, "For people."),
    super::OVERRIDE,
];

const TIER: &[Field] = &[
    required("name", Kind::Text, "Its name, as it is answered."),
    field("breaker", Kind::Text, "Name of its circuit breaker; `<id>/<name>` by default."),
    field("models", TEXTS, "Models that it stands for, the preferred one first."),
];

/// An entry of `routes.yaml`: a chain of fallbacks.
pub const ROUTE: &[Field] = &[
    required("id", Kind::Text, "Its name."),
    field(
        "tiers",
        Kind::List(&Kind::Record(TIER)),
        "What is tried, in this order: the first whose breaker admits a call is taken.",
    ),
    field("description", Kind::Text, "For people."),
    super::OVERRIDE,
];
