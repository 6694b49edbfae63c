//! The seed's diagnostic entries (seed 000, `diagnostic.jsonl`) as values, and what can be read
//! out of them. Every seed field is there; `code`, `success` on failures, and what a recovery
//! needs are added. May not live here: files.

use serde_json::{Map, Value, json};

use super::file::{Failure, Saved, Step};
use super::validate::Corruption;
use crate::state::{GuardState, SessionState};
use crate::time::Timestamp;

/// The seed's return codes; the `code` field of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// 0: success.
    Success,
    /// 1: state save failed; it is tried again.
    SaveFailed,
    /// 2: validation failed; the state is recovered.
    ValidationFailed,
    /// 3: verification failed; it is written again.
    VerificationFailed,
    /// 4: all retries exhausted; a warning, and on.
    RetriesExhausted,
}

impl Code {
    /// The number.
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

/// Where and when something happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) now: Timestamp,
    pub(super) session_id: &'a str,
    pub(super) file_path: &'a str,
}

impl Scene<'_> {
    fn entry(&self, operation: &str) -> Map<String, Value> {
        let mut entry = Map::new();
        entry.insert("timestamp".to_owned(), json!(self.now.to_string()));
        entry.insert("operation".to_owned(), json!(operation));
        entry
    }

    fn with(&self, operation: &str, fields: Value) -> Map<String, Value> {
        let mut entry = self.entry(operation);
        if let Value::Object(fields) = fields {
            entry.extend(fields);
        }
        entry
    }

    /// A state file was read.
    pub(super) fn state_load(&self, counter: u32, problem: Option<Corruption>) -> Value {
        let loaded = !matches!(
            problem,
            Some(Corruption::TooLarge | Corruption::NotAFile | Corruption::Unreadable)
        );
        let code = if problem.is_none() { Code::Success } else { Code::ValidationFailed };
        let entry = self.with(
            "state_load",
            json!({
                "session_id": self.session_id,
                "file_path": self.file_path,
                "load_success": loaded,
                "validation_passed": problem.is_none(),
                "counter_value": counter,
                "code": code.number(),
            }),
        );
        failed_if(entry, problem.map(Corruption::as_str))
    }

    /// A state file was not a state.
    pub(super) fn validation(&self, reason: Corruption, corrupted_state: &Value) -> Value {
        let entry = self.with(
            "validation",
            json!({
                "validation_failed": true,
                "corrupted_state": corrupted_state,
                "session_id": self.session_id,
                "code": Code::ValidationFailed.number(),
            }),
        );
        failed_if(entry, Some(reason.as_str()))
    }

    /// A new state took the place of a corrupt one.
    pub(super) fn state_reset(&self, counter: u32, recovered_from: &str) -> Value {
        let fields = json!({
            "reason": "corruption_detected",
            "counter_reset_to": counter,
            "session_id": self.session_id,
            "recovered_from": recovered_from,
        });
        Value::Object(self.with("state_reset", fields))
    }

    /// Attempts and outcome of a save, one entry each.
    pub(super) fn state_save(
        &self,
        before: u32,
        state: &SessionState,
        failures: &[Failure],
        saved: &Saved,
    ) -> Vec<Value> {
        let mut entries = Vec::new();
        for (retry, failure) in failures.iter().enumerate() {
            entries.push(self.failed_attempt(retry, before, state, failure));
        }
        let (success, retries, code, why) = match saved {
            Saved::Durable { retries } => (true, *retries, Code::Success, None),
            Saved::Degraded { retries, why } => {
                (true, *retries, Code::RetriesExhausted, Some(why.as_str()))
            }
            Saved::NotSaved { retries, why, code } => (false, *retries, *code, Some(why.as_str())),
        };
        let mut entry = self.save_entry(before, state, success, retries, code);
        if success && why.is_some() {
            entry.insert("degraded".to_owned(), json!(true));
        }
        memory_of(state, &mut entry);
        entries.push(match why {
            Some(why) if success => {
                entry.insert("reason".to_owned(), json!(why));
                Value::Object(entry)
            }
            why => failed_if(entry, why),
        });
        if matches!(saved, Saved::Durable { .. }) && retries > 0 {
            let fields = json!({"success": true, "retry_count": retries});
            entries.push(Value::Object(self.with("state_save_retry", fields)));
        }
        entries
    }

    fn failed_attempt(
        &self,
        retry: usize,
        before: u32,
        state: &SessionState,
        failure: &Failure,
    ) -> Value {
        let entry = match failure.step {
            Step::Save => {
                let retries = u32::try_from(retry).unwrap_or(u32::MAX);
                self.save_entry(before, state, false, retries, Code::SaveFailed)
            }
            Step::Verify => self.with(
                "verification_read",
                json!({
                    "verification_success": false,
                    "session_id": self.session_id,
                    "file_path": self.file_path,
                    "code": Code::VerificationFailed.number(),
                }),
            ),
        };
        failed_if(entry, Some(&failure.why))
    }

    fn save_entry(
        &self,
        before: u32,
        state: &SessionState,
        success: bool,
        retries: u32,
        code: Code,
    ) -> Map<String, Value> {
        self.with(
            "state_save",
            json!({
                "counter_before": before,
                "counter_after": state.main.consecutive_blocks,
                "session_id": self.session_id,
                "file_path": self.file_path,
                "save_success": success,
                "verification_success": success,
                "retry_count": retries,
                "code": code.number(),
            }),
        )
    }
}

/// Marks an entry as failed, so that `grep '"success": false'` finds it with its reason.
fn failed_if(mut entry: Map<String, Value>, why: Option<&str>) -> Value {
    if let Some(why) = why {
        entry.insert("success".to_owned(), json!(false));
        entry.insert("reason".to_owned(), json!(why));
        entry.insert("error".to_owned(), json!(why));
    }
    Value::Object(entry)
}

/// What a recovery from the log needs beyond the counter.
fn memory_of(state: &SessionState, entry: &mut Map<String, Value>) {
    entry.insert("revision".to_owned(), json!(state.revision));
    entry.insert("turn_count".to_owned(), json!(state.turn_count));
    entry.insert("total_blocks".to_owned(), json!(state.main.total_blocks));
    entry.insert("episode".to_owned(), json!(state.main.episode));
    let agents = state.agents.iter().filter(|(_, guard)| guard.total_blocks > 0);
    let agents: Map<String, Value> = agents
        .map(|(id, guard)| {
            let memory = json!({
                "consecutive_blocks": guard.consecutive_blocks,
                "total_blocks": guard.total_blocks,
                "episode": guard.episode,
            });
            (id.clone(), memory)
        })
        .collect();
    if !agents.is_empty() {
        entry.insert("agents".to_owned(), Value::Object(agents));
    }
}

/// What the newest entries of a log remember of a state: the counter after the last successful
/// save, else the counter of the last successful load.
pub(super) fn remembered(entries: &[Value], state: &mut SessionState) -> bool {
    let succeeded = |entry: &&Value, operation: &str, flag: &str| {
        text(entry, "operation") == operation && entry.get(flag) == Some(&Value::Bool(true))
    };
    let counter = |value: Option<&Value>| {
        let counter = value?.as_i64().filter(|it| (0..=crate::limits::COUNTER_MAX).contains(it))?;
        u32::try_from(counter).ok()
    };
    let saves = entries.iter().rev().filter(|it| succeeded(it, "state_save", "save_success"));
    for entry in saves {
        let Some(after) = counter(entry.get("counter_after")) else { continue };
        let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
        state.revision = number(entry, "revision");
        state.turn_count = number(entry, "turn_count");
        let guard = |value: &Value, consecutive_blocks: u32| GuardState {
            episode: text(value, "episode").to_owned(),
            consecutive_blocks,
            total_blocks: number(value, "total_blocks").max(u64::from(consecutive_blocks)),
            ..GuardState::default()
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
