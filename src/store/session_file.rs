//! The state file of a session: amplihack's keys first, then policyd's own, then foreign keys.
//!
//! Reading is tolerant: a value of another type counts as absent, except for the counters and the id that
//! `validate` checks. Contains: the order of keys, and the foreign keys. Does not contain: recovery, files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::validate::{Corruption, validate_state};
use policyd_base::id::SessionId;
use policyd_base::limits::{AGENTS_MAX, BLOCK_HISTORY_MAX, CORRUPT_QUOTE_CHARS_MAX};
use policyd_state::SessionState;
use policyd_state::context::TierState;
use policyd_state::stored::fields;

/// Version of the format. amplihack's files have no version and are read as this one.
pub(super) const FORMAT_VERSION: u64 = 1;

/// The first keys of the file, in the order in which amplihack writes them.
const FIRST_KEYS: [&str; 7] = [
    "consecutive_blocks",
    "session_id",
    "last_check_timestamp",
    "check_results",
    "version",
    "revision",
    "turn_count",
];
const CONTEXT: &str = "context";
const NOTIFIED: &str = "notified";
const AGENTS: &str = "agents";

/// `sessions/<id>/state.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionRecord<'a> {
    /// Version of the format.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(flatten)]
    state: &'a SessionState,
}

/// A state file as read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StateFile {
    pub(super) state: SessionState,
    /// The whole file, so that a rewrite keeps foreign keys.
    pub(super) raw: Map<String, Value>,
    /// The id in the file if it is another session's.
    pub(super) foreign_id: Option<String>,
    /// The version of the file if it is newer than this program's: the file is not rewritten.
    pub(super) newer: Option<u64>,
}

/// Reads the state file of `session_id`.
pub(super) fn read(bytes: &[u8], session_id: &SessionId) -> Result<StateFile, (Corruption, Value)> {
    let quote = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        json!(text.chars().take(CORRUPT_QUOTE_CHARS_MAX).collect::<String>())
    };
    let text = std::str::from_utf8(bytes).map_err(|_| (Corruption::InvalidUtf8, quote(bytes)))?;
    let value: Value =
        serde_json::from_str(text).map_err(|_| (Corruption::InvalidJson, quote(bytes)))?;
    let newer =
        value.get("version").and_then(Value::as_u64).filter(|version| *version > FORMAT_VERSION);
    if let Err(reason) = validate_state(&value)
        && newer.is_none()
    {
        let small = text.len() <= CORRUPT_QUOTE_CHARS_MAX;
        return Err((reason, if small { value } else { quote(bytes) }));
    }
    let Value::Object(raw) = value else {
        return Err((Corruption::StateNotDict, quote(bytes)));
    };
    let id = raw.get("session_id").and_then(Value::as_str).unwrap_or_default();
    Ok(StateFile {
        foreign_id: (id != session_id.as_str()).then(|| id.to_owned()),
        state: state(&raw, session_id),
        newer,
        raw,
    })
}

fn state(raw: &Map<String, Value>, session_id: &SessionId) -> SessionState {
    let mut own = raw.clone();
    own.insert("session_id".to_owned(), session_id.as_str().into());
    if let Some(Value::Object(agents)) = own.get_mut(AGENTS) {
        *agents = std::mem::take(agents).into_iter().take(AGENTS_MAX).collect();
    }
    let mut state = SessionState::deserialize(Value::Object(own))
        .unwrap_or_else(|_| SessionState::new(session_id.clone()));
    for guard in std::iter::once(&mut state.main).chain(state.agents.values_mut()) {
        guard.history.drain(..guard.history.len().saturating_sub(BLOCK_HISTORY_MAX));
        // amplihack does not store the total.
        guard.total_blocks = guard.total_blocks.max(u64::from(guard.consecutive_blocks));
    }
    state
}

/// Writes a state over the previous content of its file, indented by two spaces as amplihack does.
pub(super) fn write(state: &SessionState, before: &Map<String, Value>) -> Vec<u8> {
    let mut file: Map<String, Value> =
        FIRST_KEYS.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
    file.extend(fields(&SessionRecord { version: Some(FORMAT_VERSION), state }));
    let unset =
        [(CONTEXT, state.context == TierState::default()), (NOTIFIED, state.notified.is_empty())];
    for (key, is_unset) in unset {
        if is_unset && !before.contains_key(key) {
            file.shift_remove(key);
        }
    }
    keep_foreign(file.get_mut("check_results"), before.get("check_results"));
    let agents = before.get(AGENTS).and_then(Value::as_object);
    for (id, agent) in file.get_mut(AGENTS).and_then(Value::as_object_mut).into_iter().flatten() {
        keep_foreign(Some(agent), agents.and_then(|agents| agents.get(id)));
    }
    for (key, value) in before {
        if !file.contains_key(key) {
            file.insert(key.clone(), value.clone());
        }
    }
    // Writing a JSON value to memory cannot fail.
    let mut bytes = serde_json::to_vec_pretty(&Value::Object(file)).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Writes `own` fields over those of `before`.
fn keep_foreign(own: Option<&mut Value>, before: Option<&Value>) {
    if let (Some(Value::Object(own)), Some(Value::Object(before))) = (own, before) {
        let mut all = before.clone();
        all.append(own);
        *own = all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use policyd_state::{
        BlockLimiterState, BlockRecord, CheckResults, FailedConsideration, Release, StopMark,
    };
    use policyd_yaml::time::Timestamp;

    fn id() -> SessionId {
        SessionId::parse("s").unwrap()
    }

    fn full() -> SessionState {
        let at = Timestamp::parse("2025-12-17T19:30:00Z");
        let main = BlockLimiterState {
            episode: "p1".to_owned(),
            consecutive_blocks: 2,
            total_blocks: 7,
            blocks_since_clean: 3,
            releases: 1,
            first_block: at,
            last_block: at,
            fingerprints: vec!["6809e643187a398a".to_owned()],
            idle_blocks: 1,
            project_created: at,
            tools_at_block: 12,
            released: Some(Release {
                finding: "f".to_owned(),
                episode: "p0".to_owned(),
                edits: 3,
                reason: "max_blocks".to_owned(),
                reported: vec!["6809e643187a398a".to_owned()],
            }),
            history: vec![BlockRecord {
                number: 2,
                at: at.unwrap(),
                fingerprint: "f".to_owned(),
                failed: vec![FailedConsideration {
                    id: "todos_complete".to_owned(),
                    details: "1 open".to_owned(),
                    evidence: vec!["- [ ] x".to_owned()],
                }],
            }],
            shown_at_clean_stop: 1,
            reason: "policyd: not done yet.".to_owned(),
        };
        SessionState {
            session_id: id(),
            revision: 9,
            turn_count: 11,
            last_check: at,
            check_results: CheckResults {
                files_modified: ["file1.py".to_owned()].into(),
                workflow_compliant: true,
                quality_score: 85,
            },
            context: TierState {
                tier: "warn".to_owned(),
                compactions: 1,
                since: 40,
                calls: 7,
                model: "sonnet[1m]".to_owned(),
                restated: 1,
            },
            agents: BTreeMap::from([("a-1".to_owned(), main.clone())]),
            main,
            notified: vec!["ab12".to_owned()],
            last_stop: Some(StopMark {
                key: "cd34".to_owned(),
                line: "copilot agentStop".to_owned(),
                at: at.unwrap_or_default(),
            }),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let bytes = write(&full(), &Map::new());
        let file = read(&bytes, &id()).unwrap();
        assert_eq!((file.state, file.foreign_id, file.newer), (full(), None, None));
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("{\n  \"consecutive_blocks\": 2,\n  \"session_id\": \"s\",\n"));
    }

    #[test]
    fn foreign_keys_survive_a_rewrite() {
        let seed = br#"{"consecutive_blocks": 1, "session_id": "other", "user_note": {"a": [1]},
            "check_results": {"files_modified": [], "reviewer": "me"},
            "agents": {"a-1": {"consecutive_blocks": 0, "mark": 5}}}"#;
        let file = read(seed, &id()).unwrap();
        assert_eq!(file.foreign_id.as_deref(), Some("other"));
        assert_eq!(file.state.main.total_blocks, 1);
        let again: Value = serde_json::from_slice(&write(&full(), &file.raw)).unwrap();
        assert_eq!(again["user_note"], json!({"a": [1]}));
        assert_eq!(again["check_results"]["reviewer"], "me");
        assert_eq!(again["check_results"]["quality_score"], 85);
        assert_eq!(again["agents"]["a-1"]["mark"], 5);
        assert_eq!(again["session_id"], "s");
    }

    #[test]
    fn wrong_types_outside_the_counter_are_defaults() {
        let file = read(
            br#"{"consecutive_blocks": 3, "session_id": "s", "turn_count": 8, "block_history": "x",
            "failure_fingerprints": null, "check_results": [], "agents": 5, "revision": -1}"#,
            &id(),
        )
        .unwrap();
        assert_eq!((file.state.main.consecutive_blocks, file.state.turn_count), (3, 8));
        assert_eq!((file.state.main.history.len(), file.state.revision), (0, 0));
    }

    #[test]
    fn a_newer_version_is_read_leniently() {
        let file = read(br#"{"version": 2, "consecutive_blocks": 4}"#, &id()).unwrap();
        assert_eq!((file.newer, file.state.main.consecutive_blocks), (Some(2), 4));
    }
}
