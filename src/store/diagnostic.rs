//! Entries of `diagnostic.jsonl`: amplihack's fields, and `code`, `success` of failures, and what a recovery
//! needs. Contains: their stored form; recovery reads amplihack's entries, too, so it is tolerant. Does not
//! contain: files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::file::{SaveFailure, SaveOutcome, SaveStep};
use super::validate::Corruption;
use policyd_state::stored::is_default;
use policyd_state::{BlockLimiterState, SessionState};
use policyd_yaml::time::Timestamp;

/// Return codes of amplihack; the `code` field of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// 0: success.
    Success,
    /// 1: the save failed and is retried.
    SaveFailed,
    /// 2: validation failed; the state is recovered.
    ValidationFailed,
    /// 3: verification failed; the file is written again.
    VerificationFailed,
    /// 4: all retries failed; policyd warns and continues.
    RetriesExhausted,
}

impl Code {
    /// Returns the number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::SaveFailed => 1,
            Self::ValidationFailed => 2,
            Self::VerificationFailed => 3,
            Self::RetriesExhausted => 4,
        }
    }
}

/// A line of `diagnostic.jsonl`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiagnosticEntry<'a> {
    /// Time of the operation.
    timestamp: Timestamp,
    #[serde(flatten)]
    operation: Operation<'a>,
    #[serde(flatten)]
    failure: FailureFields<'a>,
}

/// An operation on the state file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "operation", rename_all = "snake_case")]
enum Operation<'a> {
    /// The state file was read.
    StateLoad {
        session_id: &'a str,
        file_path: &'a str,
        load_success: bool,
        validation_passed: bool,
        /// Blocks of the episode.
        counter_value: u32,
        /// Return code of amplihack.
        code: u8,
    },
    /// The content of the state file is not a state.
    Validation {
        validation_failed: bool,
        corrupted_state: &'a Value,
        session_id: &'a str,
        /// Return code of amplihack.
        code: u8,
    },
    /// A new state replaced a corrupt one.
    StateReset {
        reason: &'static str,
        /// Blocks of the episode.
        counter_reset_to: u32,
        session_id: &'a str,
        /// Source of the new state.
        recovered_from: &'a str,
    },
    /// The state was saved, or an attempt failed.
    StateSave {
        /// Blocks of the episode before.
        counter_before: u32,
        /// Blocks of the episode after.
        counter_after: u32,
        session_id: &'a str,
        file_path: &'a str,
        save_success: bool,
        verification_success: bool,
        /// Attempts after the first one.
        retry_count: u32,
        /// Return code of amplihack.
        code: u8,
        /// Whether the state might not survive a power loss.
        #[serde(default, skip_serializing_if = "is_default")]
        degraded: bool,
        #[serde(flatten)]
        memory: Option<SavedMemory<'a>>,
    },
    /// The saved file could not be read back.
    VerificationRead {
        verification_success: bool,
        session_id: &'a str,
        file_path: &'a str,
        /// Return code of amplihack.
        code: u8,
    },
    /// A save succeeded after retries.
    StateSaveRetry {
        success: bool,
        /// Attempts after the first one.
        retry_count: u32,
    },
}

/// Why an operation failed. Both names of the reason are written, so that a search finds either.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct FailureFields<'a> {
    /// `false` if the operation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
    /// Reason of a failure or of a degraded save.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Reason of a failure (amplihack's name).
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> FailureFields<'a> {
    fn new(why: Option<&'a str>) -> Self {
        Self { success: why.map(|_| false), reason: why, error: why }
    }
}

/// State from which a lost state file is recovered.
#[derive(Debug, Serialize, JsonSchema)]
struct SavedMemory<'a> {
    /// Number of saves.
    revision: u64,
    /// Stops that changed the state.
    turn_count: u64,
    /// Blocks of the session.
    total_blocks: u64,
    /// Key of the episode.
    episode: &'a str,
    /// Subagents that were blocked, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    agents: BTreeMap<&'a str, AgentMemory<'a>>,
}

/// State of a subagent.
#[derive(Debug, Serialize, JsonSchema)]
struct AgentMemory<'a> {
    /// Blocks of the episode.
    consecutive_blocks: u32,
    /// Blocks of the session.
    total_blocks: u64,
    /// Key of the episode.
    episode: &'a str,
}

/// Time and place of operations.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiagnosticContext<'a> {
    pub(super) now: Timestamp,
    pub(super) session_id: &'a str,
    pub(super) file_path: &'a str,
}

impl DiagnosticContext<'_> {
    fn entry(&self, operation: Operation<'_>, failure: FailureFields<'_>) -> Value {
        json!(DiagnosticEntry { timestamp: self.now, operation, failure })
    }

    /// The state file was read.
    pub(super) fn state_load(&self, counter: u32, problem: Option<Corruption>) -> Value {
        let code = if problem.is_none() { Code::Success } else { Code::ValidationFailed };
        let operation = Operation::StateLoad {
            session_id: self.session_id,
            file_path: self.file_path,
            load_success: !matches!(
                problem,
                Some(Corruption::TooLarge | Corruption::NotAFile | Corruption::Unreadable)
            ),
            validation_passed: problem.is_none(),
            counter_value: counter,
            code: code.number(),
        };
        self.entry(operation, FailureFields::new(problem.map(Corruption::as_str)))
    }

    /// The content of the state file is not a state.
    pub(super) fn validation(&self, reason: Corruption, corrupted_state: &Value) -> Value {
        let operation = Operation::Validation {
            validation_failed: true,
            corrupted_state,
            session_id: self.session_id,
            code: Code::ValidationFailed.number(),
        };
        self.entry(operation, FailureFields::new(Some(reason.as_str())))
    }

    /// A new state replaced a corrupt one.
    pub(super) fn state_reset(&self, counter: u32, recovered_from: &str) -> Value {
        let operation = Operation::StateReset {
            reason: "corruption_detected",
            counter_reset_to: counter,
            session_id: self.session_id,
            recovered_from,
        };
        self.entry(operation, FailureFields::default())
    }

    /// Attempts and result of a save, one entry each.
    pub(super) fn state_save(
        &self,
        before: u32,
        state: &SessionState,
        failures: &[SaveFailure],
        saved: &SaveOutcome,
    ) -> Vec<Value> {
        let mut entries = Vec::new();
        for (retry, failure) in failures.iter().enumerate() {
            entries.push(self.failed_attempt(retry, before, state, failure));
        }
        let (success, retries, code, why) = match saved {
            SaveOutcome::Durable { retries } => (true, *retries, Code::Success, None),
            SaveOutcome::Degraded { retries, why } => {
                (true, *retries, Code::RetriesExhausted, Some(why.as_str()))
            }
            SaveOutcome::NotSaved { retries, why, code } => {
                (false, *retries, *code, Some(why.as_str()))
            }
        };
        let operation = Operation::StateSave {
            counter_before: before,
            counter_after: state.main.consecutive_blocks,
            session_id: self.session_id,
            file_path: self.file_path,
            save_success: success,
            verification_success: success,
            retry_count: retries,
            code: code.number(),
            degraded: success && why.is_some(),
            memory: Some(SavedMemory::new(state)),
        };
        let failure = match success {
            true => FailureFields { reason: why, ..FailureFields::default() },
            false => FailureFields::new(why),
        };
        entries.push(self.entry(operation, failure));
        if matches!(saved, SaveOutcome::Durable { .. }) && retries > 0 {
            let operation = Operation::StateSaveRetry { success: true, retry_count: retries };
            entries.push(self.entry(operation, FailureFields::default()));
        }
        entries
    }

    fn failed_attempt(
        &self,
        retry: usize,
        before: u32,
        state: &SessionState,
        failure: &SaveFailure,
    ) -> Value {
        let operation = match failure.step {
            SaveStep::Save => Operation::StateSave {
                counter_before: before,
                counter_after: state.main.consecutive_blocks,
                session_id: self.session_id,
                file_path: self.file_path,
                save_success: false,
                verification_success: false,
                retry_count: u32::try_from(retry).unwrap_or(u32::MAX),
                code: Code::SaveFailed.number(),
                degraded: false,
                memory: None,
            },
            SaveStep::Verify => Operation::VerificationRead {
                verification_success: false,
                session_id: self.session_id,
                file_path: self.file_path,
                code: Code::VerificationFailed.number(),
            },
        };
        self.entry(operation, FailureFields::new(Some(&failure.why)))
    }
}

impl<'a> SavedMemory<'a> {
    fn new(state: &'a SessionState) -> Self {
        let blocked = state.agents.iter().filter(|(_, guard)| guard.total_blocks > 0);
        let agent = |(id, guard): (&'a String, &'a BlockLimiterState)| {
            let memory = AgentMemory {
                consecutive_blocks: guard.consecutive_blocks,
                total_blocks: guard.total_blocks,
                episode: &guard.episode,
            };
            (id.as_str(), memory)
        };
        Self {
            revision: state.revision,
            turn_count: state.turn_count,
            total_blocks: state.main.total_blocks,
            episode: &state.main.episode,
            agents: blocked.map(agent).collect(),
        }
    }
}

/// Recovers a state from the newest entries of a log: the counter after the last successful save, else the
/// counter of the last successful load. Returns whether there is one.
pub(super) fn remembered(entries: &[Value], state: &mut SessionState) -> bool {
    let succeeded = |entry: &&Value, operation: &str, flag: &str| {
        text(entry, "operation") == operation && entry.get(flag) == Some(&Value::Bool(true))
    };
    let counter = |value: Option<&Value>| {
        let counter =
            value?.as_i64().filter(|it| (0..=policyd_base::limits::COUNTER_MAX).contains(it))?;
        u32::try_from(counter).ok()
    };
    let saves = entries.iter().rev().filter(|it| succeeded(it, "state_save", "save_success"));
    for entry in saves {
        let Some(after) = counter(entry.get("counter_after")) else { continue };
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
        state.revision = number(entry, "revision");
        state.turn_count = number(entry, "turn_count");
        let guard = |value: &Value, consecutive_blocks: u32| BlockLimiterState {
            episode: text(value, "episode").to_owned(),
            consecutive_blocks,
            total_blocks: number(value, "total_blocks").max(u64::from(consecutive_blocks)),
            ..BlockLimiterState::default()
        };
        state.main = guard(entry, after);
        let agents = entry.get("agents").and_then(Value::as_object).into_iter().flatten();
        state.agents = agents
            .filter_map(|(id, it)| {
                Some((id.clone(), guard(it, counter(it.get("consecutive_blocks"))?)))
            })
            .collect();
        return true;
    }
    let loads = entries.iter().rev().filter(|it| succeeded(it, "state_load", "validation_passed"));
    let last = loads.filter_map(|entry| counter(entry.get("counter_value"))).next();
    if let Some(counter) = last {
        state.main.consecutive_blocks = counter;
        state.main.total_blocks = u64::from(counter);
    }
    last.is_some()
}

pub(super) fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}
