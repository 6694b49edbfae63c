//! Snapshots of stores and of the tool call, as expressions read them. The context holds them.
//! Does not contain: the table of facts, which reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::FactError;
use super::code_owners::CodeOwners;
use policyd_facts::call::{Call, CallEnvironment};
use policyd_state::breaker::BreakerPhase;

/// What the disk shows of a project at a stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ProjectView {
    /// Whether the project has tests.
    pub has_tests: bool,
    /// Packages with edited code that no test run after the edit covers, by their directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untested_packages: Vec<String>,
}

/// Snapshot of the circuit breakers of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakersSnapshot {
    /// Load level that the breakers request together.
    pub load_level: String,
    /// Maximum number of concurrent calls.
    pub parallelism: u32,
    /// Breakers with saved state, by name. All others are closed.
    pub known: BTreeMap<String, BreakerSnapshot>,
}

/// Snapshot of one breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerSnapshot {
    /// State: `CLOSED`, `OPEN`, or `HALF_OPEN`, as in loki-mode.
    pub state: String,
    /// Whether the breaker rejects calls.
    pub open: bool,
    /// Seconds until a trial call is permitted.
    pub retry_after: u64,
    /// Number of failures in the window.
    pub failures: usize,
    /// Message of the last failure.
    pub last_error: String,
    /// Permitted share of the usual load, in percent.
    pub capacity: u32,
    /// Whether the last failures need a human, because waiting does not fix them.
    pub needs_human: bool,
}

impl Default for BreakerSnapshot {
    /// A breaker without saved state.
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

/// A tool call and its environment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallFacts {
    pub call: Call,
    /// Environment of the call: project, directories, links, clean work trees.
    pub around: Rc<CallEnvironment>,
    /// Indexes of the programs that the user's settings of the client let run.
    pub allowed: Vec<usize>,
    /// What the disk shows of its files and of the project.
    pub disk: Rc<DiskFacts>,
}

/// What the disk shows of the files of a tool call and of the project, as far as a rule reads it. What is not here is
/// unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiskFacts {
    /// How the call changes the texts of files, by absolute path.
    pub texts: BTreeMap<String, ChangedText>,
    /// What paths are, by absolute path.
    pub states: BTreeMap<String, PathState>,
    /// Whether the project has a path or a file of a glob. `None`: it has too many files to know.
    pub has: BTreeMap<String, Option<bool>>,
    /// Texts of files of the project, by path as an expression writes it.
    pub project_texts: BTreeMap<String, ReadText>,
    /// The owners of files. `Err` says why they are unknown.
    pub owners: Option<Result<Rc<CodeOwners>, FactError>>,
}

/// The text of a file, or why it is unknown.
pub type ReadText = Result<KnownText, FactError>;

/// The text of a file, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownText {
    /// The text, with `\n` at the end of each line.
    pub text: Rc<str>,
    /// Whether it is all of the text.
    pub is_whole: bool,
    /// Number of lines of the file. `None` if it is too long to be counted.
    pub lines: Option<u64>,
}

impl KnownText {
    /// A text of which everything is known.
    #[must_use]
    pub fn whole(text: &str) -> Self {
        let lines = u64::try_from(text.lines().count()).ok();
        Self { text: text.into(), is_whole: true, lines }
    }
}

/// How a call changes the text of a file. What is unknown says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedText {
    /// The text as it is. A file that does not exist has an empty text.
    pub before: ReadText,
    /// The text as it will be. `None` for a file that the call deletes.
    pub after: Option<ReadText>,
    /// Lines that the call adds.
    pub added: Result<Vec<String>, FactError>,
    /// Lines that the call removes.
    pub removed: Result<Vec<String>, FactError>,
}

/// What the disk and git know of a path. `None` is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathState {
    /// Whether it exists.
    pub exists: Option<bool>,
    /// Whether git tracks it, or a file below it.
    pub tracked: Option<bool>,
    /// Whether it, or a file below it, has changes that are not committed.
    pub uncommitted: Option<bool>,
    /// Whether it, or a file below it, is tracked and has changes that are not committed.
    pub modified: Option<bool>,
}

/// Snapshot of the context window's usage, and of the amounts spent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextUsage {
    /// Whether the usage is known: an API call followed the last compaction.
    pub known: bool,
    /// Tokens in the context at that call.
    pub tokens: u64,
    /// Size of the model's window in tokens.
    pub window: u64,
    /// `tokens` in percent of the window, rounded down.
    pub percent: u64,
    /// Percentage by the meter that the tiers use, rounded down.
    pub measured: u64,
    /// Id of the reached tier; empty if none is reached.
    pub tier: String,
    /// Ids of the reached tier and of all tiers below it.
    pub reached: Vec<String>,
    /// Percentage from which the context counts as exhausted.
    pub threshold: u64,
    /// Average number of tokens that a turn adds; 0 if the context does not grow.
    pub growth: u64,
    /// Turns until the threshold, each from one prompt to the next; `CONTEXT_TURNS_MAX` if unknown.
    pub turns_left: u64,
    /// Average number of tokens that an API call adds.
    pub call_growth: u64,
    /// API calls until the threshold.
    pub calls_left: u64,
    /// Number of API calls.
    pub calls: u64,
    /// Number of user prompts since the last compaction.
    pub prompts: u64,
    /// Number of compactions.
    pub compactions: u64,
    /// Input tokens spent, including cached ones.
    pub input_tokens: u64,
    /// Output tokens spent.
    pub output_tokens: u64,
    /// All tokens spent in percent of the window, rounded down, as in shipwright.
    pub cumulative_pct: u64,
    /// Whether `cumulative_pct` is at least the threshold.
    pub exhausted: bool,
    /// Cost, in billionths of a US dollar.
    pub cost_nano: u64,
    /// Model of the last call; empty if unknown.
    pub model: String,
    /// Whether the agent saved handoff notes since the tier was reached.
    pub noted: bool,
    /// Whether the context received a summary with the goal after the last compaction.
    pub restated: bool,
}

/// A program that matched a command pattern of a guard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchedProgram {
    /// Index of the program in the call.
    pub at: usize,
    /// Number of operands that the command pattern names: 1 for `git push`.
    pub named: usize,
}

/// Snapshot of the dead letters and escalations of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSnapshot {
    /// Number of dead letters.
    pub depth: usize,
    /// Hours since the first failure of the oldest dead letter.
    pub oldest_hours: usize,
    /// Number of dead letters with the most frequent error.
    pub same_cause: usize,
    /// Number of dead letters that wait for a human.
    pub awaiting_human: usize,
    /// Ids of the active alarms of `dead_letter.yaml`.
    pub alarms: Vec<String>,
    /// Titles of open escalations.
    pub open: Vec<String>,
    /// Titles of open escalations that block their task.
    pub blocking: Vec<String>,
}

/// What sessions spent today, without this one. Amounts are in billionths of a US dollar.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CostSnapshot {
    /// Amount of the project.
    pub project_nano: u64,
    /// Amount of the user.
    pub user_nano: u64,
    /// What this session spent before today. `None` if its transcript does not show what it spent, and the amounts above
    /// contain it.
    pub own_before_nano: Option<u64>,
}

/// What the rules of a pack remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct MemorySnapshot {
    /// The texts of each entry of `memory.yaml`, oldest first.
    pub texts: BTreeMap<String, Vec<String>>,
    /// Entries of an episode that is not known.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<String>,
}

/// What waits in the folder of signals at one moment, as expressions see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["pending", "drifts", "awaiting_human"]))]
pub struct SignalSnapshot {
    /// Names of the pending signals, oldest first. A name is repeated for each pending signal.
    pub pending: Vec<String>,
    /// Drifts since the context was last cleared.
    pub drifts: usize,
    /// Requests that no human answered.
    pub awaiting_human: usize,
}
