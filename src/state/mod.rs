//! Saved state of a session between hook calls. Contains: the values. Does not contain: the step
//! (`guard`), files, clocks, JSON.

pub mod breaker;
pub mod context;
pub mod dead_letter;
pub mod escalation;
pub mod failure;
pub mod guard;
pub mod recovery;
pub mod retry;
pub mod run;
pub mod signal;
pub mod uncertainty;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::SessionId;
use crate::time::Timestamp;

/// State of one session: one file, one value.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    /// Whose it is.
    pub session_id: SessionId,
    /// Writes so far; never goes back.
    pub revision: u64,
    /// Stops that moved the state; never goes back.
    pub turn_count: u64,
    /// When a stop was last judged.
    pub last_check: Option<Timestamp>,
    /// What the last judged stop found (seed 000).
    pub check_results: CheckResults,
    /// The main agent's loop guard; its counters stand at the top of the file as in the seed.
    pub main: GuardState,
    /// The tier that the main agent's context reached.
    pub context: context::Standing,
    /// Loop guards of subagents by agent id.
    pub agents: BTreeMap<String, GuardState>,
    /// Keys of warnings that are reported once per session, oldest first.
    pub notified: Vec<String>,
    /// The last stop that changed the state.
    pub last_stop: Option<StopMark>,
}

/// Tells a stop that two hook lines report from two stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopMark {
    /// What the payload and the transcript say about the stop, as a checksum.
    pub key: String,
    /// The hook line: client and event as the command line names them.
    pub line: String,
    /// When it was evaluated.
    pub at: Timestamp,
}

impl StopMark {
    /// Maximum time in milliseconds between two hook lines of one stop.
    const TOGETHER_MAX: i64 = 5_000;

    /// Returns whether another hook line reported this stop just before.
    #[must_use]
    pub fn repeats(&self, before: &Self) -> bool {
        let apart = self.at.millis().saturating_sub(before.at.millis());
        self.key == before.key
            && self.line != before.line
            && (0..=Self::TOGETHER_MAX).contains(&apart)
    }
}

/// What the last judged stop found (seed 000, `check_results`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckResults {
    /// Files the agent edited; shared, since the state is copied at every stop.
    pub files_modified: Arc<[String]>,
    /// Whether every blocker was satisfied.
    pub workflow_compliant: bool,
    /// Share of satisfied checks, 0 to 100.
    pub quality_score: u8,
}

/// Memory of the loop guard for one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardState {
    /// Key of the episode: the human prompt it began with; empty when the client names none.
    pub episode: String,
    /// Blocks in this episode.
    pub consecutive_blocks: u32,
    /// Blocks in the whole session; never goes back.
    pub total_blocks: u64,
    /// Blocks since the last clean stop, whatever the episodes.
    pub blocks_since_clean: u32,
    /// Stops in this session that were let go although something was unsatisfied.
    pub releases: u64,
    /// First block of this episode.
    pub first_block: Option<Timestamp>,
    /// Last block of this episode.
    pub last_block: Option<Timestamp>,
    /// Fingerprints of the blocks of this episode, oldest first.
    pub fingerprints: Vec<String>,
    /// Blocks in a row after which no tool ran.
    pub idle_blocks: u32,
    /// Tool calls seen when it last blocked.
    pub tools_at_block: u64,
    /// What it last let go, and how much work there was then.
    pub released: Option<Release>,
    /// The last blocks with their evidence, oldest first.
    pub history: Vec<BlockRecord>,
    /// Beginning of the last block's reason: some clients send the reason back as a prompt.
    pub reason: String,
}

/// A finding that was let go: the same one is not blocked again until there is new work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// Digest of what was unsatisfied, with details and evidence.
    pub finding: String,
    /// Episode it was let go in.
    pub episode: String,
    /// Edits seen at that moment.
    pub edits: u64,
    /// Why: `max_blocks`, `same_failure`, `no_progress`.
    pub reason: String,
}

/// One block, as remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockRecord {
    /// Number of the block within its episode, from 1.
    pub number: u32,
    /// When.
    pub at: Timestamp,
    /// Fingerprint of the failed considerations.
    pub fingerprint: String,
    /// What failed.
    pub failed: Vec<FailedConsideration>,
}

/// One failed consideration of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedConsideration {
    /// Its id.
    pub id: String,
    /// What was wrong.
    pub details: String,
    /// What decided.
    pub evidence: Vec<String>,
}

impl SessionState {
    /// Creates the state of a session without a stop.
    #[must_use]
    pub fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            revision: 0,
            turn_count: 0,
            last_check: None,
            check_results: CheckResults::default(),
            main: GuardState::default(),
            context: context::Standing::default(),
            agents: BTreeMap::new(),
            notified: Vec::new(),
            last_stop: None,
        }
    }
}
