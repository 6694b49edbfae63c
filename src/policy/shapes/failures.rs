//! What `failures.yaml` may hold.

use super::{OVERRIDE, REGEXES, TEXTS};
use crate::source::shape::{Field, Kind, field, required};

const RETRY: &[Field] = &[
    field("max", Kind::Int { min: 0, max: 1000 }, "Times it is made again at most."),
    field("initial", Kind::Duration, "Wait before the first."),
    field("multiplier", Kind::Number { min: 1.0, max: 100.0 }, "How each wait grows."),
    field("cap", Kind::Duration, "Longest wait."),
    field("jitter", Kind::Number { min: 0.0, max: 1.0 }, "Share that chance may take off a wait."),
];

const FAILURE_CLASS: &[Field] = &[
    required("id", Kind::Text, "Its name."),
    field("errors", TEXTS, "Names by which hooks and programs tell it."),
    field("regexes", REGEXES, "Tried on each line where no name is known, case not counted."),
    field("unless", REGEXES, "Found in the same line, they excuse it."),
    field(
        "effect",
        Kind::Choice(&["trip", "ignore", "permanent"]),
        "What it does to a breaker; `trip` by default. `permanent` is never tried again.",
    ),
    field("attempt", Kind::Bool, "Whether it counts as an attempt at the task; `true` by default."),
    field("human", Kind::Bool, "Whether a person is needed; `false` by default."),
    field("retry", Kind::Record(RETRY), "When it is tried again."),
    field("description", Kind::Text, "For people."),
    OVERRIDE,
];

const FAILURE_LABEL: &[Field] = &[
    required("label", Kind::Text, "What the other program calls it."),
    required("classes", TEXTS, "Ids of the classes it stands for."),
    field("retry", Kind::Record(RETRY), "When that program tries again; as the class says, else."),
];

const WAITS: &[Field] = &[
    field("longest", Kind::Duration, "Longest wait that a server's words are followed for."),
    field("margin", Kind::Duration, "Waited beyond the time at which a limit is reset."),
    field("per_minute", Kind::Duration, "Time shared among the requests allowed per minute."),
    field("least", Kind::Duration, "Least wait by requests per minute."),
    field("most", Kind::Duration, "Longest wait by requests per minute."),
];

const PAUSE: &[Field] = &[
    field("after", Kind::Int { min: 1, max: 1000 }, "Failures of one class in a row."),
    field("initial", Kind::Duration, "The first pause."),
    field("multiplier", Kind::Number { min: 1.0, max: 100.0 }, "How each pause grows."),
    field("cap", Kind::Duration, "Longest pause."),
];

const RECOVERY: &[Field] = &[
    field("attempts", Kind::Int { min: 1, max: 1000 }, "Attempts at one failure."),
    field("time", Kind::Duration, "Time spent on one failure."),
    field("cost", Kind::Number { min: 0.0, max: 1e9 }, "Cost of one failure; no limit, else."),
    field("repeats", Kind::Int { min: 1, max: 1000 }, "Failures alike in a row that end it."),
    field("tier", Kind::Text, "Tier that is asked for where the provider is down."),
    field(
        "crash_lines",
        Kind::Int { min: 0, max: 1000 },
        "A program that failed with fewer lines of output crashed.",
    ),
];

const LADDER: &[Field] = &[
    field("escalate", Kind::Int { min: 1, max: 1000 }, "Failures in a row that are passed on."),
    field("pause", Kind::Int { min: 1, max: 1000 }, "Failures in a row that pause the loop."),
];

const UNCERTAINTY: &[Field] = &[
    field("signs", Kind::Int { min: 1, max: 100 }, "Signs that must hold at once."),
    field("rounds", Kind::Int { min: 1, max: 100 }, "Rounds in a row they must hold."),
    field("ring", Kind::Int { min: 2, max: 100 }, "Diffs remembered to see them come back."),
];

const CLAIMS: &[Field] =
    &[field("silence", Kind::Duration, "Longest silence of a worker that is alive.")];

/// `failures.yaml`: what a failure is, and what is done about it.
pub const FAILURES: &[Field] = &[
    field("classes", Kind::List(&Kind::Record(FAILURE_CLASS)), "Classes, the first match wins."),
    field("unrecognized", Kind::Text, "The class of what nothing recognises."),
    field(
        "lines",
        Kind::Int { min: 1, max: 100_000 },
        "Lines of a text that are looked at, from its end.",
    ),
    field(
        "profiles",
        Kind::Map(&Kind::List(&Kind::Record(FAILURE_LABEL))),
        "Vocabularies of other programs; of each the first label wins.",
    ),
    field("waits", Kind::Record(WAITS), "How waits are told from what a server says."),
    field("pause", Kind::Record(PAUSE), "The pause after failures of one class in a row."),
    field("recovery", Kind::Record(RECOVERY), "When recovering is given up."),
    field("ladder", Kind::Record(LADDER), "What a gate does that fails again and again."),
    field("uncertainty", Kind::Record(UNCERTAINTY), "When signs of being lost are passed on."),
    field("claims", Kind::Record(CLAIMS), "When a worker is taken for dead."),
];
