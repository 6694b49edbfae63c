//! Codex CLI drops an answer that its schemas do not take: every answer is held against them, where
//! they lie beside the repository.

use policyd::evaluation::combine::Decision;
use policyd::facts::event::EventKind;
use policyd::harness::codex::HARNESS;
use policyd::hook::{Caller, HookResponse, speak};
use serde_json::{Value, json};

use crate::support::shared;

#[test]
fn every_answer_is_taken() {
    let Some(folder) = shared::path("samples/codex/schemas") else { return };
    for moment in HARNESS.moments {
        let kebab: String = moment
            .native
            .chars()
            .flat_map(|it| it.is_uppercase().then_some('-').into_iter().chain(it.to_lowercase()))
            .collect();
        let path = folder.join(format!("{}.command.output.json", kebab.trim_start_matches('-')));
        let caller = Caller { harness: &HARNESS, moment: Some(moment) };
        let Ok(bytes) = std::fs::read(&path) else {
            assert!(moment.ways.is_empty(), "{} has no schema", moment.native);
            continue;
        };
        let schema: Value = serde_json::from_slice(&bytes).unwrap();
        let schema = jsonschema::validator_for(&schema).unwrap();
        for decision in Decision::ALL {
            for told in [false, true] {
                let text = told.then(|| "text".to_owned());
                let answer = HookResponse {
                    override_hint: Some("policyd allow --call K7Q2M4XB".into()),
                    decision,
                    reason: "because".to_owned(),
                    notice: text.clone(),
                    context: text,
                    updated_input: told.then(|| json!({"command": "ls"})),
                    updated_output: told.then(|| json!("masked")),
                };
                let (said, _) = speak(caller, &answer, Some("Bash"));
                let value: Value = serde_json::from_str(&said).unwrap();
                assert!(schema.is_valid(&value), "{}: {said}", moment.native);
                // What its schemas allow and its program does not honour.
                let decision = value["hookSpecificOutput"]["permissionDecision"].as_str();
                assert!(!matches!(decision, Some("ask")), "{said}");
                let rewritten = value["hookSpecificOutput"].get("updatedInput").is_some();
                assert!(decision != Some("allow") || rewritten, "{said}");
                assert!(
                    moment.kind != Some(EventKind::PreToolUse) || value.get("continue").is_none()
                );
            }
        }
    }
}
