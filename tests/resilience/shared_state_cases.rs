//! Cases about state that the project shares with the systems it replaces: they are read from
//! beside the project, and where they are absent this says so. Prints a table of agreement.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use policyd::id::SessionId;
use policyd::store::file::{Durability, SaveOutcome, save};
use policyd::store::health::health;
use policyd::store::session::{Layout, SessionStore, StateOrigin};
use policyd::store::validate::validate_state;
use policyd::world::WorldError;
use policyd::world::fake::{FakeWorld, Op};
use serde_json::{Value, json};

use crate::support::shared;

/// What we answer to a case; `None` for kinds that are not about state.
fn answer(kind: &str, input: &Value) -> Option<Value> {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    Some(match kind {
        "state_load" => state_load(text("turn_state_json")),
        "state_validate" => match validate_state(&input["state"]) {
            Ok(_) => json!({"valid": true, "reason": ""}),
            Err(reason) => json!({"valid": false, "reason": reason.as_str()}),
        },
        "state_save_fault" => save_fault(input),
        "diagnostics" => {
            let health = health(input["events"].as_array().unwrap());
            json!({
                "stall": health.stall.is_some(),
                "stall_value": health.stall,
                "oscillation": health.oscillation.is_some(),
                "health": health.level.as_str(),
            })
        }
        "session_id_valid" => json!({"valid": SessionId::parse(text("session_id")).is_some()}),
        "session_id_sanitize" => {
            json!({"sanitized": SessionId::sanitize(text("session_id")).as_str()})
        }
        _ => return None,
    })
}

fn state_load(content: &str) -> Value {
    let world = FakeWorld::new();
    let store = SessionStore::new(&world, "/work", Layout::power_steering());
    let session = SessionId::parse("s").unwrap();
    let escaped = content.contains("(bytes)");
    let bytes = if escaped { b"\xff\xfe".as_slice() } else { content.as_bytes() };
    world.put(store.paths(&session).state, bytes);
    let found = store.lock(&session, Duration::ZERO).unwrap().load();
    json!({
        "turn_count": found.state.turn_count,
        "consecutive_blocks": found.state.main.consecutive_blocks,
        "recovered": matches!(found.origin, StateOrigin::Recovered { .. }),
    })
}

fn save_fault(input: &Value) -> Value {
    let world = FakeWorld::new();
    world.put("/work/state.json", "{}");
    world.without_exchange();
    let number = |key: &str| u32::try_from(input[key].as_u64().unwrap()).unwrap();
    let failures = number("rename_failures_before_success");
    world.refuse_times(Op::Rename, "", failures, WorldError::Io("no".to_owned()));
    let durability = Durability { attempts: number("max_retries"), ..Durability::default() };
    let saved = save(&world, Path::new("/work/state.json"), b"{\"n\": 1}", &durability);
    let (durable, retries) = match saved {
        SaveOutcome::Durable { retries } => (true, retries),
        SaveOutcome::Degraded { retries, .. } | SaveOutcome::NotSaved { retries, .. } => {
            (false, retries)
        }
    };
    json!({"saved": durable, "attempts": retries + 1, "raised": false})
}

#[test]
fn shared_cases_about_state_agree() {
    let Some(cases) = shared::cases("amplihack_cases.json") else { return };
    let mut table: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let mut differing = Vec::new();
    for case in &cases {
        let kind = case["kind"].as_str().unwrap();
        let Some(answer) = answer(kind, &case["input"]) else { continue };
        let row = table.entry(kind).or_default();
        row.1 += 1;
        if answer == case["expected"] {
            row.0 += 1;
        } else {
            differing.push(format!("{}: {answer}, expected {}", case["name"], case["expected"]));
        }
    }
    for (kind, (agree, all)) in &table {
        eprintln!("{kind:<20} {agree} of {all}");
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(!table.is_empty());
}
