//! The state file: seed 000's JSON, extended and versioned. Lives here: the keys, both ways.
//! May not live here: recovery, files, defaults of a policy.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::validate::{Corruption, validate_state};
use crate::id::SessionId;
use crate::limits::{AGENTS_MAX, BLOCK_HISTORY_MAX};
use crate::source::secrets::mask;
use crate::state::context::Standing;
use crate::state::{
    BlockRecord, CheckResults, FailedConsideration, GuardState, Release, SessionState, StopMark,
};
use crate::time::Timestamp;

/// The format written here. A file without a version is the seed's, and is read as this one.
pub(super) const FORMAT_VERSION: u64 = 1;

/// The key of the tier that the context reached.
const CONTEXT: &str = "context";
/// The key of the warnings that were reported once.
const NOTIFIED: &str = "notified";
/// The key of the last stop that changed the state.
const LAST_STOP: &str = "last_stop";

/// A state file as read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StateFile {
    pub(super) state: SessionState,
    /// Everything that was in the file, so that foreign keys survive a rewrite.
    pub(super) raw: Map<String, Value>,
    /// The id in the file where it is not ours.
    pub(super) foreign_id: Option<String>,
    /// The version of the file where it is newer than ours: it is not rewritten.
    pub(super) newer: Option<u64>,
}

/// Reads a state file that belongs to `session_id`.
pub(super) fn read(bytes: &[u8], session_id: &SessionId) -> Result<StateFile, (Corruption, Value)> {
    let quote = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        json!(text.chars().take(crate::limits::CORRUPT_QUOTE_CHARS_MAX).collect::<String>())
    };
    let text = std::str::from_utf8(bytes).map_err(|_| (Corruption::InvalidUtf8, quote(bytes)))?;
    let value: Value =
        serde_json::from_str(text).map_err(|_| (Corruption::InvalidJson, quote(bytes)))?;
    let newer = value.get("version").and_then(Value::as_u64).filter(|it| *it > FORMAT_VERSION);
    if let Err(reason) = validate_state(&value)
        && newer.is_none()
    {
        let small = text.len() <= crate::limits::CORRUPT_QUOTE_CHARS_MAX;
        return Err((reason, if small { value } else { quote(bytes) }));
    }
    let Value::Object(raw) = value else {
        return Err((Corruption::StateNotDict, quote(bytes)));
    };
    let id = string(&raw, "session_id");
    Ok(StateFile {
        foreign_id: (id != session_id.as_str()).then_some(id),
        state: state(&raw, session_id),
        newer,
        raw,
    })
}

fn state(raw: &Map<String, Value>, session_id: &SessionId) -> SessionState {
    let empty = Map::new();
    let results = raw.get("check_results").and_then(Value::as_object).unwrap_or(&empty);
    let agents = raw.get("agents").and_then(Value::as_object).unwrap_or(&empty);
    SessionState {
        session_id: session_id.clone(),
        revision: number(raw, "revision"),
        turn_count: number(raw, "turn_count"),
        last_check: timestamp(raw, "last_check_timestamp"),
        check_results: CheckResults {
            files_modified: strings(results, "files_modified").into(),
            workflow_compliant: results.get("workflow_compliant") == Some(&Value::Bool(true)),
            quality_score: u8::try_from(number(results, "quality_score").min(100)).unwrap_or(100),
        },
        main: guard(raw),
        context: standing(raw),
        agents: agents
            .iter()
            .filter_map(|(id, it)| Some((id.clone(), guard(it.as_object()?))))
            .take(AGENTS_MAX)
            .collect::<BTreeMap<_, _>>(),
        notified: strings(raw, NOTIFIED),
        last_stop: stop_mark(raw),
    }
}

fn stop_mark(raw: &Map<String, Value>) -> Option<StopMark> {
    let mark = raw.get(LAST_STOP)?.as_object()?;
    let (key, line) = (string(mark, "key"), string(mark, "line"));
    Some(StopMark { key, line, at: timestamp(mark, "at")? })
}

fn guard(raw: &Map<String, Value>) -> GuardState {
    let released = raw.get("released").and_then(Value::as_object);
    let history = raw.get("block_history").and_then(Value::as_array).map(Vec::as_slice);
    let mut history: Vec<BlockRecord> =
        history.unwrap_or_default().iter().filter_map(|it| it.as_object().map(record)).collect();
    history.drain(..history.len().saturating_sub(BLOCK_HISTORY_MAX));
    let consecutive_blocks = number32(raw, "consecutive_blocks");
    GuardState {
        episode: string(raw, "episode"),
        consecutive_blocks,
        // A file of the seed does not have it, and it is never below the blocks that it has.
        total_blocks: number(raw, "total_blocks").max(u64::from(consecutive_blocks)),
        blocks_since_clean: number32(raw, "blocks_since_clean"),
        releases: number(raw, "releases"),
        first_block: timestamp(raw, "first_block_timestamp"),
        last_block: timestamp(raw, "last_block_timestamp"),
        fingerprints: strings(raw, "failure_fingerprints"),
        idle_blocks: number32(raw, "idle_blocks"),
        tools_at_block: number(raw, "tools_at_block"),
        released: released.map(|it| Release {
            finding: string(it, "finding"),
            episode: string(it, "episode"),
            edits: number(it, "edits"),
            reason: string(it, "reason"),
        }),
        history,
        reason: string(raw, "block_reason"),
    }
}

/// The tier that the context reached.
fn standing(raw: &Map<String, Value>) -> Standing {
    let empty = Map::new();
    let it = raw.get(CONTEXT).and_then(Value::as_object).unwrap_or(&empty);
    Standing {
        tier: string(it, "tier"),
        compactions: number(it, "compactions"),
        since: number(it, "since"),
        calls: number(it, "calls"),
        model: string(it, "model"),
        restated: number(it, "restated"),
    }
}

fn record(raw: &Map<String, Value>) -> BlockRecord {
    let failed = raw.get("failed_evidence").and_then(Value::as_array).map(Vec::as_slice);
    let failure = |it: &Map<String, Value>| FailedConsideration {
        id: string(it, "consideration_id"),
        details: string(it, "reason"),
        evidence: strings(it, "evidence"),
    };
    BlockRecord {
        number: number32(raw, "block_number"),
        at: timestamp(raw, "timestamp").unwrap_or_default(),
        fingerprint: string(raw, "fingerprint"),
        failed: failed
            .unwrap_or_default()
            .iter()
            .filter_map(|it| it.as_object().map(failure))
            .collect(),
    }
}

/// A whole number that is not negative; 0 for anything else.
fn number(raw: &Map<String, Value>, key: &str) -> u64 {
    raw.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn number32(raw: &Map<String, Value>, key: &str) -> u32 {
    u32::try_from(number(raw, key)).unwrap_or(u32::MAX)
}

fn string(raw: &Map<String, Value>, key: &str) -> String {
    raw.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn strings(raw: &Map<String, Value>, key: &str) -> Vec<String> {
    let texts = raw.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    texts.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn timestamp(raw: &Map<String, Value>, key: &str) -> Option<Timestamp> {
    Timestamp::parse(raw.get(key)?.as_str()?)
}

/// Writes a state over what was in its file before: the seed's keys first, foreign keys last.
/// Two spaces of indentation, as in the seed.
pub(super) fn write(state: &SessionState, before: &Map<String, Value>) -> Vec<u8> {
    let results = before.get("check_results").and_then(Value::as_object).cloned();
    let checks = &state.check_results;
    let mut file = object(json!({
        "consecutive_blocks": state.main.consecutive_blocks,
        "session_id": state.session_id.as_str(),
        "last_check_timestamp": text(state.last_check),
        "check_results": over(
            results.unwrap_or_default(),
            json!({
                "files_modified": checks.files_modified.as_ref(),
                "workflow_compliant": checks.workflow_compliant,
                "quality_score": checks.quality_score,
            }),
        ),
        "version": FORMAT_VERSION,
        "revision": state.revision,
        "turn_count": state.turn_count,
    }));
    file.extend(guard_keys(&state.main));
    let it = &state.context;
    if *it != Standing::default() || before.contains_key(CONTEXT) {
        let tier = json!({"tier": it.tier, "compactions": it.compactions, "since": it.since,
            "calls": it.calls, "model": it.model, "restated": it.restated});
        file.insert(CONTEXT.to_owned(), tier);
    }
    if !state.notified.is_empty() || before.contains_key(NOTIFIED) {
        file.insert(NOTIFIED.to_owned(), json!(state.notified));
    }
    if let Some(it) = &state.last_stop {
        let mark = json!({"key": it.key, "line": it.line, "at": it.at.to_string()});
        file.insert(LAST_STOP.to_owned(), mark);
    }
    let agents = before.get("agents").and_then(Value::as_object);
    let agent = |(id, guard): (&String, &GuardState)| {
        let before = agents.and_then(|all| all.get(id)?.as_object()).cloned();
        (id.clone(), over(before.unwrap_or_default(), Value::Object(guard_keys(guard))))
    };
    let agents: Map<String, Value> = state.agents.iter().map(agent).collect();
    file.insert("agents".to_owned(), Value::Object(agents));
    for (key, value) in before {
        if !file.contains_key(key) {
            file.insert(key.clone(), value.clone());
        }
    }
    // Writing a JSON value into memory does not fail.
    let mut bytes = serde_json::to_vec_pretty(&Value::Object(file)).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn guard_keys(guard: &GuardState) -> Map<String, Value> {
    let failure = |it: &FailedConsideration| {
        let evidence: Vec<_> = it.evidence.iter().map(|it| mask(it).0).collect();
        json!({"consideration_id": it.id, "reason": mask(&it.details).0, "evidence": evidence})
    };
    let record = |it: &BlockRecord| {
        json!({
            "block_number": it.number,
            "timestamp": it.at.to_string(),
            "fingerprint": it.fingerprint,
            "failed_evidence": it.failed.iter().map(failure).collect::<Vec<_>>(),
        })
    };
    let released = guard.released.as_ref().map(|it| {
        json!({
            "finding": it.finding,
            "episode": it.episode,
            "edits": it.edits,
            "reason": it.reason,
        })
    });
    object(json!({
        "consecutive_blocks": guard.consecutive_blocks,
        "total_blocks": guard.total_blocks,
        "blocks_since_clean": guard.blocks_since_clean,
        "releases": guard.releases,
        "episode": guard.episode,
        "first_block_timestamp": text(guard.first_block),
        "last_block_timestamp": text(guard.last_block),
        "block_history": guard.history.iter().map(record).collect::<Vec<_>>(),
        "failure_fingerprints": guard.fingerprints,
        "idle_blocks": guard.idle_blocks,
        "tools_at_block": guard.tools_at_block,
        "released": released,
        "block_reason": mask(&guard.reason).0,
    }))
}

fn text(at: Option<Timestamp>) -> Option<String> {
    at.map(|it| it.to_string())
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

/// The keys of `new` over those of `old`.
fn over(mut old: Map<String, Value>, new: Value) -> Value {
    old.extend(object(new));
    Value::Object(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> SessionId {
        SessionId::parse("s").unwrap()
    }

    fn full() -> SessionState {
        let at = Timestamp::parse("2025-12-17T19:30:00Z");
        let main = GuardState {
            episode: "p1".to_owned(),
            consecutive_blocks: 2,
            total_blocks: 7,
            blocks_since_clean: 3,
            releases: 1,
            first_block: at,
            last_block: at,
            fingerprints: vec!["6809e643187a398a".to_owned()],
            idle_blocks: 1,
            tools_at_block: 12,
            released: Some(Release {
                finding: "f".to_owned(),
                episode: "p0".to_owned(),
                edits: 3,
                reason: "max_blocks".to_owned(),
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
            context: Standing {
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
