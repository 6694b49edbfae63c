//! What expressions see of stores and of the tool call: values at one moment, which the context holds.
//! May not live here: the table of facts, which reads them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::facts::call::{Call, CallEnvironment};
use crate::state::breaker::BreakerPhase;

/// Where the breakers of a project stand at one moment, as expressions see them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakersSnapshot {
    /// How much load they ask for together.
    pub load_level: String,
    /// Calls that may run side by side.
    pub parallelism: u32,
    /// Those of which something is remembered, by name; the others are closed.
    pub known: BTreeMap<String, BreakerSnapshot>,
}

/// Where one breaker stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerSnapshot {
    /// The seed's name of its state.
    pub state: String,
    /// Whether it rejects calls.
    pub open: bool,
    /// Seconds until it may be tried.
    pub retry_after: u64,
    /// Failures that count.
    pub failures: usize,
    /// What the last failure said.
    pub last_error: String,
    /// Share of the usual load that it lets through, in percent.
    pub capacity: u32,
    /// Whether waiting does not cure the last failures.
    pub needs_human: bool,
}

impl Default for BreakerSnapshot {
    /// One of which nothing is remembered.
    fn default() -> Self {
        Self {
            state: BreakerPhase::default().as_str().to_owned(),
            open: false,
            retry_after: 0,
            failures: 0,
            last_error: String::new(),
            capacity: 100,
            needs_human: false,
        }
    }
}

/// A call, and where it happens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallFacts {
    /// The call.
    pub call: Call,
    /// Where it happens.
    pub around: Rc<CallEnvironment>,
}

/// How full the context is at one moment, and what was spent, as expressions see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextUsage {
    /// Whether an API call since the last compaction tells how full it is.
    pub known: bool,
    /// Tokens before the model at that call.
    pub tokens: u64,
    /// Tokens that the model can hold.
    pub window: u64,
    /// The same in percent of the window, rounded down.
    pub percent: u64,
    /// Percentage of the meter that the tiers are measured on, rounded down.
    pub measured: u64,
    /// The tier that was reached; empty for none.
    pub tier: String,
    /// That tier and those below it.
    pub reached: Vec<String>,
    /// Percentage from which on the context counts as exhausted.
    pub threshold: u64,
    /// Tokens that a turn adds, on average; 0 where nothing grows.
    pub growth: u64,
    /// Turns until the threshold, from a human's prompt to the next; `CONTEXT_TURNS_MAX` where nobody can
    /// tell.
    pub turns_left: u64,
    /// The same of API calls.
    pub call_growth: u64,
    /// API calls until the threshold.
    pub calls_left: u64,
    /// API calls.
    pub calls: u64,
    /// Prompts by humans since the last compaction.
    pub prompts: u64,
    /// Compactions.
    pub compactions: u64,
    /// Input tokens spent, those of caches too.
    pub input_tokens: u64,
    /// Output tokens spent.
    pub output_tokens: u64,
    /// Both in percent of the window, rounded down (seed 004).
    pub cumulative_pct: u64,
    /// Whether that is at least the threshold.
    pub exhausted: bool,
    /// What was spent, in billionths of a US dollar.
    pub cost_nano: u64,
    /// Model of the last call; empty where nobody said.
    pub model: String,
    /// Whether the agent wrote down where the work stands since the tier was reached.
    pub noted: bool,
    /// Whether a summary with the goal was given to the context after the last compaction.
    pub restated: bool,
}

/// A program that a guard recognised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchedProgram {
    /// Its position among the programs of the call.
    pub at: usize,
    /// How many of its operands its command pattern names: 1 for `git push`.
    pub named: usize,
}

/// What waits in a project at one moment, as expressions see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSnapshot {
    /// Dead letters.
    pub depth: usize,
    /// Hours since the oldest of them first failed.
    pub oldest_hours: usize,
    /// Those that share the commonest error.
    pub same_cause: usize,
    /// Those that wait for a human.
    pub awaiting_human: usize,
    /// Alarms of `dead_letter.yaml` that hold, by id.
    pub alarms: Vec<String>,
    /// Titles of open escalations.
    pub open: Vec<String>,
    /// Titles of those among them whose task stands still.
    pub blocking: Vec<String>,
}

/// What waits in the folder of signals at one moment, as expressions see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["pending", "drifts", "awaiting_human"]))]
pub struct SignalSnapshot {
    /// Names of those that nobody consumed, the oldest first; one that is there twice is named twice.
    pub pending: Vec<String>,
    /// Drifts since the context was last cleared.
    pub drifts: usize,
    /// Requests that no human answered.
    pub awaiting_human: usize,
}
