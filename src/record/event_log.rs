//! Lines of `logs/events.jsonl`, as the schema describes them. `report::run`, `report::context`, and reactions
//! write them with the fields of their event; a test compares their keys with this structure.

use schemars::JsonSchema;

use policyd_state::run::RunStatus;
use policyd_yaml::time::Timestamp;

/// Path of the log below the state directory.
pub const EVENT_LOG: &str = "logs/events.jsonl";

/// A line of `logs/events.jsonl`.
#[derive(Debug, JsonSchema)]
pub struct EventLine {
    /// `reaction`, or an event of a run: `loop.iteration_start`, ….
    #[schemars(length(min = 1))]
    #[schemars(rename = "type")]
    pub kind: String,
    /// Time of a reaction.
    pub timestamp: Option<Timestamp>,
    /// Entry of `reactions.yaml`.
    pub reaction: Option<String>,
    /// Event that a reaction reacts to.
    pub event: Option<String>,
    /// Id of the session.
    pub session_id: Option<String>,
    /// Actions of a reaction.
    pub did: Option<Vec<String>>,
    /// Time of an event of a run.
    pub ts: Option<Timestamp>,
    /// The same time in seconds since 1970.
    pub ts_epoch: Option<i64>,
    /// Tokens used, in percent of the window; can exceed 100.
    pub usage_pct: Option<u64>,
    /// Size of the context, in percent of the window.
    pub occupancy_pct: Option<u64>,
    /// Percentage from which the context counts as full.
    pub threshold: Option<u64>,
    /// Input tokens of the session.
    pub input_tokens: Option<u64>,
    /// Output tokens of the session.
    pub output_tokens: Option<u64>,
    /// Size of the context window in tokens.
    pub window: Option<u64>,
    /// Tier that the context reached.
    pub tier: Option<String>,
    /// Id of the run.
    pub run: Option<String>,
    /// Goal of the run.
    pub goal: Option<String>,
    /// Number of the turn.
    pub iteration: Option<u64>,
    /// Last turn of the session before.
    pub prev_iteration: Option<u64>,
    /// Maximum number of turns.
    pub max_iterations: Option<u64>,
    /// Number of the session.
    pub session: Option<u64>,
    /// Earlier attempts at this turn.
    pub attempt: Option<u64>,
    /// Exit code of the command or the run.
    pub exit_code: Option<i32>,
    /// Why a turn was ended that did not fail.
    pub ended: Option<String>,
    /// Duration of a turn in milliseconds.
    pub took_ms: Option<u64>,
    /// Duration of all turns in milliseconds.
    pub worked_ms: Option<u64>,
    /// Number of tokens.
    pub tokens: Option<u64>,
    /// Cost in USD.
    #[schemars(range(min = -1e9, max = 1e9))]
    pub cost_usd: Option<f64>,
    /// Turns of unknown cost. `cost_usd` does not contain them.
    pub unpriced_turns: Option<u64>,
    /// Whether a turn changed something.
    pub moved: Option<bool>,
    /// Number of changed lines.
    pub lines: Option<u64>,
    /// Class of the failure.
    pub failure: Option<String>,
    /// Error of the failure.
    pub error: Option<String>,
    /// Whether the agent claimed to be done.
    pub claimed: Option<bool>,
    /// Reason.
    pub reason: Option<String>,
    /// Why a run seems stuck.
    pub reasons: Option<String>,
    /// Number of signs of being stuck.
    pub signals: Option<u64>,
    /// Consecutive rounds in which the run was stuck.
    pub count: Option<u64>,
    /// Duration of a wait in milliseconds.
    pub wait_ms: Option<u64>,
    /// Number of added turns.
    pub by: Option<u64>,
    /// Share of the budget that is spent, in percent.
    pub percent: Option<u64>,
    /// Cost so far in USD.
    #[schemars(range(min = -1e9, max = 1e9))]
    pub spent_usd: Option<f64>,
    /// Maximum cost in USD.
    #[schemars(range(min = -1e9, max = 1e9))]
    pub limit_usd: Option<f64>,
    /// Remaining budget in USD.
    #[schemars(range(min = -1e9, max = 1e9))]
    pub remaining: Option<f64>,
    /// Number of restarts so far.
    pub restart: Option<u64>,
    /// Number of restarts at the end.
    pub restarts: Option<u64>,
    /// Maximum number of restarts.
    pub max: Option<u64>,
    /// How the run ended.
    pub status: Option<RunStatus>,
    /// A problem that ended nothing.
    pub problem: Option<String>,
    /// Task that was moved to the dead-letter queue.
    pub task_id: Option<String>,
    /// Signal that the run created.
    pub signal: Option<String>,
    /// Trigger of `signals.yaml` that was true.
    pub trigger: Option<String>,
}
