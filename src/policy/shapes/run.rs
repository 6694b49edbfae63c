//! What `run.yaml` may hold.

use super::OVERRIDE;
use crate::limits::RESTARTS_MAX;
use crate::source::shape::{Field, Kind, field, required};
use crate::state::run::UnseenChanges;

const COUNT: Kind = Kind::Int { min: 0, max: 1_000_000 };
const PERCENT: Kind = Kind::Int { min: 1, max: 100 };
const FEW: Kind = Kind::Int { min: 1, max: 100 };

/// How an agent may say that it is done.
pub const CLAIMS: &[&str] = &["signal", "structured", "exit"];

const ITERATIONS: &[Field] = &[
    field("max", COUNT, "Turns of all sessions together."),
    field("extend", COUNT, "Times a run is extended that has used them up; 0 by default."),
    field("extend_by", COUNT, "Turns of one extension."),
];

const RESTARTS: &[Field] = &[
    field("max", Kind::Int { min: 0, max: RESTARTS_MAX as i64 }, "Fresh sessions at most."),
    field("when_stuck", Kind::Bool, "Whether one is tried where the agent is stuck."),
];

const BUDGET: &[Field] = &[
    field("usd", Kind::Number { min: 0.0, max: 1e9 }, "Money at most; no limit, else."),
    field("warn", PERCENT, "Share of it that is worth a warning, in percent."),
];

const TURN: &[Field] = &[
    field("longest", Kind::Duration, "Longest time of one turn."),
    field("silence", Kind::Duration, "Longest time without any output."),
    field("grace", Kind::Duration, "Time it has to end when it is told to."),
];

const STUCKNESS: &[Field] = &[
    field("signs", FEW, "Signs that must hold at once."),
    field("rounds", FEW, "Turns in a row in which they must hold."),
    field("window", FEW, "Turns alike that are a sign."),
    field("lines", COUNT, "Changed lines below which a turn changed nothing to speak of."),
    field("words", PERCENT, "Share of the lines that were said before, in percent."),
    field("budget", PERCENT, "Share of the turns after which tests should pass, in percent."),
    field("idle", COUNT, "Turns in a row without any change that end it; 0 for never."),
    field("aborts", COUNT, "Turns in a row of a health below 30 that end it; 0 for never."),
];

const SECTION: &[Field] = &[
    required("id", Kind::Text, "Its name."),
    field("when", Kind::Expression, "Whether it is said, over `run`; always by default."),
    field("text", Kind::Template, "What is said, over `run`."),
    field("enabled", Kind::Bool, "Whether it is used; `true` by default."),
    OVERRIDE,
];

/// `run.yaml`: how an agent's command is supervised.
pub const RUN: &[Field] = &[
    field("iterations", Kind::Record(ITERATIONS), "How many turns it may take."),
    field("restarts", Kind::Record(RESTARTS), "How often a fresh session is begun."),
    field("budget", Kind::Record(BUDGET), "What it may cost."),
    field("time", Kind::Duration, "Time at work at most; no limit, where it is left out."),
    field("turn", Kind::Record(TURN), "How long one turn may take."),
    field("stuckness", Kind::Record(STUCKNESS), "When it counts as stuck."),
    field("breaker", Kind::Template, "The breaker that is asked before each turn, over `run`."),
    field("breaker_wait", Kind::Duration, "Longest wait for it; the run ends, else."),
    field("on_review", Kind::Choice(&["end", "wait"]), "What it does while a human is asked."),
    field(
        "unseen_changes",
        Kind::Choice(UnseenChanges::NAMES),
        "What follows if files changed, no tool call was visible, and the agent says that it is done; `continue` by default.",
    ),
    field("claims", Kind::List(&Kind::Choice(CLAIMS)), "How an agent says that it is done."),
    field("keep", Kind::Int { min: 1, max: 10_000 }, "Runs whose files are kept."),
    field("prompt", Kind::List(&Kind::Record(SECTION)), "What the agent is told, in order."),
];
