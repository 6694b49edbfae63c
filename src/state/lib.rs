//! What a session was before an event, and what it is after it: step functions and the stored form of their values.
//!
//! Contains: the saved session, block limits, breakers, runs, dead letters, escalations, signals, retries. Each step
//! is a pure function.
//! Does not contain: files and clocks (`policyd-store` saves the values).
//!
//! ```
//! use policyd_state::breaker::{Breaker, BreakerEvent, BreakerSettings, step};
//! use policyd_yaml::time::Timestamp;
//!
//! let (settings, now) = (BreakerSettings::default(), Timestamp::from_millis(0));
//! let (same, _response) = step(&Breaker::default(), BreakerEvent::Request, &settings, now);
//! assert_eq!(same, Breaker::default()); // a closed breaker lets a call pass
//! ```

pub mod approval;
pub mod block_limiter;
pub mod breaker;
pub mod context;
pub mod continuation;
pub mod daily_costs;
pub mod dead_letter;
pub mod escalation;
pub mod failure;
pub mod memory;
pub mod recovery;
pub mod retry;
pub mod run;
pub mod signal;
pub mod stored;
pub mod uncertainty;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use policyd_base::id::SessionId;
use policyd_yaml::secrets::mask;
use policyd_yaml::time::Timestamp;
use stored::{count, entries, items, or_default};

/// State of one session: one file, one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["consecutive_blocks", "session_id"]))]
pub struct SessionState {
    /// Id of the session.
    pub session_id: SessionId,
    /// When a stop was last evaluated.
    #[serde(rename = "last_check_timestamp", default, deserialize_with = "or_default")]
    pub last_check: Option<Timestamp>,
    /// Result of the last evaluated stop.
    #[serde(default, deserialize_with = "or_default")]
    pub check_results: CheckResults,
    /// Number of saves; never decreases.
    #[serde(default, deserialize_with = "or_default")]
    pub revision: u64,
    /// Number of stops that changed the state; never decreases.
    #[serde(default, deserialize_with = "or_default")]
    pub turn_count: u64,
    /// Block limiter of the main agent. Its keys are at the top of the file, as amplihack has them.
    #[serde(flatten)]
    pub main: BlockLimiterState,
    /// Tier that the context of the main agent reached.
    #[serde(default, deserialize_with = "or_default")]
    pub context: context::TierState,
    /// Keys of the warnings that were reported once, oldest first; see `once` in `considerations.yaml`.
    #[serde(default, deserialize_with = "items")]
    pub notified: Vec<String>,
    /// The last stop that changed the state.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub last_stop: Option<StopMark>,
    /// Block limiters of subagents, by agent id.
    #[serde(default, deserialize_with = "entries")]
    pub agents: BTreeMap<String, BlockLimiterState>,
}

/// Distinguishes two stops from one stop that two hook lines report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopMark {
    /// Checksum of the stop in the payload and the transcript.
    #[serde(default, deserialize_with = "or_default")]
    pub key: String,
    /// Hook line: client and event as the command line names them.
    #[serde(default, deserialize_with = "or_default")]
    pub line: String,
    /// When the stop was evaluated.
    pub at: Timestamp,
}

impl StopMark {
    /// Maximum time in milliseconds between two hook lines of one stop.
    const TOGETHER_MAX: i64 = 5_000;

    /// Returns whether another hook line just reported this stop.
    #[must_use]
    pub fn repeats(&self, before: &Self) -> bool {
        let apart = self.at.millis().saturating_sub(before.at.millis());
        self.key == before.key
            && self.line != before.line
            && (0..=Self::TOGETHER_MAX).contains(&apart)
    }
}

/// Result of the last evaluated stop (amplihack: `check_results`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckResults {
    /// Files that the agent edited; shared, because the state is copied at every stop.
    #[serde(deserialize_with = "items")]
    #[schemars(with = "Vec<String>")]
    pub files_modified: Arc<[String]>,
    /// Whether every blocker passed.
    #[serde(deserialize_with = "or_default")]
    pub workflow_compliant: bool,
    /// Share of the checks that passed, in percent.
    #[serde(deserialize_with = "percent")]
    #[schemars(range(max = 100))]
    pub quality_score: u8,
}

/// State of the block limiter for one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["consecutive_blocks"]))]
pub struct BlockLimiterState {
    /// Blocks of this episode.
    #[serde(deserialize_with = "count")]
    pub consecutive_blocks: u32,
    /// Blocks of the whole session; never decreases.
    #[serde(deserialize_with = "or_default")]
    pub total_blocks: u64,
    /// Blocks since the last clean stop, over all episodes.
    #[serde(deserialize_with = "count")]
    pub blocks_since_clean: u32,
    /// Releases in this session.
    #[serde(deserialize_with = "or_default")]
    pub releases: u64,
    /// Key of the episode: the user prompt with which it began; empty if the client names none.
    #[serde(deserialize_with = "or_default")]
    pub episode: String,
    /// First block of this episode.
    #[serde(rename = "first_block_timestamp", deserialize_with = "or_default")]
    pub first_block: Option<Timestamp>,
    /// Last block of this episode.
    #[serde(rename = "last_block_timestamp", deserialize_with = "or_default")]
    pub last_block: Option<Timestamp>,
    /// The last blocks with their evidence, oldest first.
    #[serde(rename = "block_history", deserialize_with = "items")]
    pub history: Vec<BlockRecord>,
    /// Fingerprints of the blocks of this episode, oldest first.
    #[serde(rename = "failure_fingerprints", deserialize_with = "items")]
    pub fingerprints: Vec<String>,
    /// Consecutive blocks without a tool call after them.
    #[serde(deserialize_with = "count")]
    pub idle_blocks: u32,
    /// Number of tool calls at the last block.
    #[serde(deserialize_with = "or_default")]
    pub tools_at_block: u64,
    /// The last release.
    #[serde(deserialize_with = "or_default")]
    pub released: Option<Release>,
    /// Blocks of this episode that the transcript showed at the last clean stop.
    #[serde(deserialize_with = "count", skip_serializing_if = "is_zero")]
    pub shown_at_clean_stop: u32,
    /// Creation of the project's directory, if known. Blocks in a project that was deleted do not count in a new one
    /// at its place.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub project_created: Option<Timestamp>,
    /// Beginning of the last block's reason: some clients send the reason back as a prompt.
    #[serde(rename = "block_reason", deserialize_with = "or_default", serialize_with = "masked")]
    pub reason: String,
}

/// A released problem: it does not block again until there is new work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Release {
    /// Digest of the checks that did not pass, with details and evidence.
    #[serde(deserialize_with = "or_default")]
    pub finding: String,
    /// Episode of the release.
    #[serde(deserialize_with = "or_default")]
    pub episode: String,
    /// Number of edits at the release.
    #[serde(deserialize_with = "or_default")]
    pub edits: u64,
    /// Reason: `max_blocks`, `same_failure`, or `no_progress`.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Fingerprints of the findings that were reported after the release, oldest first.
    #[serde(deserialize_with = "items", skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<String>,
}

/// Record of one block.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend(
    "required" = ["block_number", "timestamp", "fingerprint", "failed_evidence"]
))]
pub struct BlockRecord {
    /// Number of the block within its episode, from 1.
    #[serde(rename = "block_number", deserialize_with = "count")]
    pub number: u32,
    /// Time of the block.
    #[serde(rename = "timestamp", deserialize_with = "or_default")]
    pub at: Timestamp,
    /// Fingerprint of the checks that did not pass.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub fingerprint: String,
    /// Checks that did not pass.
    #[serde(rename = "failed_evidence", deserialize_with = "items")]
    pub failed: Vec<FailedConsideration>,
}

/// One check of a block that did not pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["consideration_id", "reason", "evidence"]))]
pub struct FailedConsideration {
    /// Id of the check.
    #[serde(rename = "consideration_id", deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub id: String,
    /// The problem.
    #[serde(rename = "reason", deserialize_with = "or_default", serialize_with = "masked")]
    #[schemars(length(min = 1))]
    pub details: String,
    /// Evidence of the problem.
    #[serde(deserialize_with = "items", serialize_with = "all_masked")]
    pub evidence: Vec<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let percent: u64 = or_default(deserializer)?;
    Ok(u8::try_from(percent.min(100)).unwrap_or(100))
}

fn masked<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    mask(text).0.serialize(serializer)
}

fn all_masked<S: Serializer>(texts: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(texts.iter().map(|text| mask(text).0))
}

impl SessionState {
    /// Returns the state of a session without an evaluated stop.
    #[must_use]
    pub fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            last_check: None,
            check_results: CheckResults::default(),
            revision: 0,
            turn_count: 0,
            main: BlockLimiterState::default(),
            context: context::TierState::default(),
            notified: Vec::new(),
            last_stop: None,
            agents: BTreeMap::new(),
        }
    }
}
