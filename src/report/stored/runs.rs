//! Shapes of what a supervised run keeps: its state, and its lines in the log of events.

use super::{COUNT, EXIT_CODE, TEXTS};
use crate::source::shape::{Field, Kind, field, required};

const MONEY: Kind = Kind::Number { min: -1e9, max: 1e9 };
const MILLIS: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };
const PERCENT: Kind = Kind::Int { min: 0, max: 100 };
const STATUSES: &[&str] = &[
    "complete",
    "stuck",
    "budget",
    "max_iterations",
    "time_up",
    "context_exhaustion",
    "breaker_open",
    "circuit_breaker",
    "human_needed",
    "dead_letter",
    "cannot_run",
    "stopped",
    "interrupted",
];

const OPTIONS: &[Field] = &[
    field("max_iterations", COUNT, "Turns at most."),
    field("max_restarts", COUNT, "Restarts at most."),
    field("budget_usd", MONEY, "Money at most, in USD."),
    field("turn_deadline_ms", COUNT, "Longest time of one turn."),
    field("claims", TEXTS, "How the agent says that it is done; as the pack says, where empty."),
];

const PHASE: &[Field] = &[
    required(
        "is",
        Kind::Choice(&["ready", "asking", "working", "waiting", "paused", "over"]),
        "Where it stands.",
    ),
    field("until_ms", MILLIS, "Until when it waits."),
    field("why", Kind::Text, "Why it waits, or ended."),
    field("status", Kind::Choice(STATUSES), "How it ended."),
];

const SWITCHED: &[Field] = &[
    field("off", Kind::Text, "Why nothing would be judged."),
    field("without", TEXTS, "Checks that are switched off."),
];

const SPEND: &[Field] = &[
    field("input", COUNT, "Plain input tokens."),
    field("output", COUNT, "Output tokens."),
    field("cache_read", COUNT, "Input tokens read from the provider's cache."),
    field("cache_creation", COUNT, "Input tokens written into it."),
    field("cost_usd", MONEY, "Money in USD."),
];

const MARK: &[Field] = &[
    field("content", Kind::Text, "Fingerprint of the project's content afterwards; may be empty."),
    field("lines", COUNT, "Lines that the turn changed, where that is known."),
    field("error", Kind::Text, "Fingerprint of what went wrong; empty for nothing."),
    field("exit_code", EXIT_CODE, "How the command ended."),
    field("words_percent", PERCENT, "Share of the lines that were said before."),
    field("tests", Kind::Bool, "Whether tests passed, where that is known."),
];

/// `runs/<id>/state.json`
pub(super) const RUN_STATE: &[Field] = &[
    required("version", COUNT, "Version of the format."),
    required("id", Kind::Text, "Its id."),
    required("goal", Kind::Text, "What is to be reached."),
    required("command", TEXTS, "The command of a turn."),
    field("options", Kind::Record(OPTIONS), "What somebody asked for."),
    required("phase", Kind::Record(PHASE), "Where it stands."),
    field("session", COUNT, "Number of the session, from 1."),
    field("restarts", COUNT, "Restarts so far."),
    field("iteration", COUNT, "Number of the last turn that began, over all sessions."),
    field("session_iteration", COUNT, "Turns of this session."),
    field("heard_from", COUNT, "Length of the transcript when the turn at work began."),
    field("attempt", COUNT, "Attempts at this turn that are made again."),
    field("again", Kind::Bool, "Whether the next turn is the same one again."),
    field("extended_by", COUNT, "Turns that were added to those that are allowed."),
    field("extended", COUNT, "Times it was extended."),
    field("spend", Kind::Record(SPEND), "What all sessions used; never reset."),
    field("session_spend", Kind::Record(SPEND), "What this session used."),
    field("unpriced", COUNT, "Turns whose cost nobody told."),
    field("worked_ms", COUNT, "Time at work."),
    field("failures", COUNT, "Turns in a row that failed."),
    field("last_class", Kind::Text, "Class of the last failure; empty for none."),
    field("same_class", COUNT, "How often that class came in a row."),
    field("idle", COUNT, "Turns in a row that changed nothing."),
    field("trail", Kind::List(&Kind::Record(MARK)), "The last turns, oldest first."),
    field(
        "circle",
        Kind::List(&Kind::Record(MARK)),
        "The turns for which the last fresh session was begun.",
    ),
    field("base", Kind::Text, "What git had checked out when it began; may be empty."),
    field("unseen", TEXTS, "Files that changed in turns without a visible tool call."),
    field("unverified", COUNT, "Claims in a row that were refused because of them alone."),
    field("unseen_asked", Kind::Bool, "Whether a human was asked about them."),
    field("stuck_rounds", COUNT, "Rounds in a row in which it was stuck."),
    field("stuck_told", Kind::Bool, "Whether something was done about it."),
    field("hint", Kind::Text, "Why it seems stuck; told to the agent."),
    field("feedback", Kind::Text, "What the gate said to the last claim."),
    field("human", TEXTS, "What humans said and the agent was not told yet."),
    field("last_error", Kind::Text, "What the last turn that failed said."),
    field("raised", TEXTS, "Triggers of signals that held after the last turn."),
    field("switched", Kind::Record(SWITCHED), "How the gate is switched by humans."),
    field("switched_at_work", Kind::Text, "What was switched off while the run was at work."),
    field("warned", Kind::Bool, "Whether the money was warned of."),
    field("health", PERCENT, "How it is doing."),
    field("verdict", Kind::Text, "What its health says; empty where there is none."),
    field("aborts", COUNT, "Turns in a row after which that was `abort`."),
    field("started_ms", MILLIS, "When it began."),
    field("updated_ms", MILLIS, "When it was last moved."),
];

/// A line of `logs/events.jsonl`
pub(super) const EVENT_LOG: &[Field] = &[
    required("type", Kind::Text, "`reaction`, or an event of a run: `loop.iteration_start`, …"),
    field("timestamp", Kind::Date, "When; of reactions."),
    field("reaction", Kind::Text, "The entry of reactions.yaml."),
    field("event", Kind::Text, "The event."),
    field("session_id", Kind::Text, "The session."),
    field("did", TEXTS, "What was done."),
    field("ts", Kind::Date, "When; of runs."),
    field("ts_epoch", MILLIS, "The same in seconds since 1970."),
    field("usage_pct", COUNT, "Tokens spent, in percent of the window; may exceed 100."),
    field("occupancy_pct", COUNT, "What stands before the model, in percent of the window."),
    field("threshold", COUNT, "Percentage from which on the context counts as full."),
    field("input_tokens", COUNT, "Input tokens of the session."),
    field("output_tokens", COUNT, "Output tokens of the session."),
    field("window", COUNT, "Tokens that the model can hold."),
    field("tier", Kind::Text, "The tier that was reached."),
    field("run", Kind::Text, "The run."),
    field("goal", Kind::Text, "What is to be reached."),
    field("iteration", COUNT, "The turn."),
    field("prev_iteration", COUNT, "The last turn of the session before."),
    field("max_iterations", COUNT, "Turns that are allowed."),
    field("session", COUNT, "The session."),
    field("attempt", COUNT, "Attempts at this turn before."),
    field("exit_code", EXIT_CODE, "How the command, or the run, ended."),
    field("ended", Kind::Text, "Why a turn was ended that did not fail."),
    field("took_ms", COUNT, "How long a turn took."),
    field("worked_ms", COUNT, "How long all turns took."),
    field("tokens", COUNT, "Tokens."),
    field("cost_usd", MONEY, "Money in USD."),
    field("moved", Kind::Bool, "Whether a turn changed something."),
    field("lines", COUNT, "Lines that it changed."),
    field("failure", Kind::Text, "Class of its failure."),
    field("error", Kind::Text, "What it failed with."),
    field("claimed", Kind::Bool, "Whether the agent said that it is done."),
    field("reason", Kind::Text, "Why."),
    field("reasons", Kind::Text, "Why a run seems stuck."),
    field("signals", COUNT, "Signs of being stuck."),
    field("count", COUNT, "Rounds in a row in which it was stuck."),
    field("wait_ms", COUNT, "How long it waits."),
    field("by", COUNT, "Turns that were added."),
    field("percent", COUNT, "Share of the money that is spent."),
    field("spent_usd", MONEY, "Money spent."),
    field("limit_usd", MONEY, "Money allowed."),
    field("remaining", MONEY, "Money left."),
    field("restart", COUNT, "Restarts so far."),
    field("restarts", COUNT, "Restarts in the end."),
    field("max", COUNT, "Restarts allowed."),
    field("status", Kind::Choice(STATUSES), "How the run ended."),
    field("problem", Kind::Text, "What did not work and stopped nothing."),
    field("task_id", Kind::Text, "The task that was put aside."),
    field("signal", Kind::Text, "A signal that a run created by itself."),
    field("trigger", Kind::Text, "The trigger of signals.yaml that held."),
];
