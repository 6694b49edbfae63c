//! An audit log that cannot be written is reported, also where nothing could be evaluated.

use policyd::world::{WorldError, fake::Op};
use serde_json::json;

use super::scene::Scene;

/// Machines on which the audit log cannot be written.
fn without_audit_log() -> [fn(&Scene); 2] {
    [
        |scene| scene.world.put("/work/.policyd/logs", "a file"),
        |scene| {
            let why = WorldError::Io("Permission denied (os error 13)".to_owned());
            scene.world.refuse_always(Op::Append, "decisions.jsonl", why);
        },
    ]
}

const UNRECORDED: &str = "this decision is not recorded: `/work/.policyd/logs/decisions.jsonl` could \
                          not be written. `policyd doctor` checks the state directory";

#[test]
fn a_stop_that_could_not_be_evaluated_reports_that_it_is_not_recorded() {
    for hinder in without_audit_log() {
        let mut scene = Scene::new();
        scene.events(&[json!({"user": "Do it"})]);
        hinder(&scene);
        let why = WorldError::Io("Input/output error (os error 5)".to_owned());
        scene.world.refuse_always(Op::ReadAt, "session.jsonl", why);
        let unread = scene.stop().json();
        assert!(unread["decision"].is_null(), "{unread}");
        let notice = unread["systemMessage"].as_str().unwrap();
        assert!(notice.contains(UNRECORDED), "the transcript was not read: {notice}");

        scene.world.put("/work/.policyd/policies/considerations.yaml", "- id: [x\n");
        let broken = scene.stop().json();
        let notice = broken["systemMessage"].as_str().unwrap();
        assert!(notice.contains("the policy pack is broken"), "{notice}");
        assert!(notice.contains(UNRECORDED), "{notice}");
    }
}

#[test]
fn a_call_that_a_broken_pack_blocks_reports_that_it_is_not_recorded() {
    let call = json!({"session_id": "session-1", "cwd": "/work", "tool_name": "Bash",
        "hook_event_name": "PreToolUse", "tool_input": {"command": "make"}});
    let blocked = |scene: &Scene| {
        scene.world.put("/work/.policyd/policies/considerations.yaml", "- id: [x\n");
        let manifest = "version: 1\nextends: [builtin]\non_error: block\n";
        scene.world.put("/work/.policyd/policies/policyd.yaml", manifest);
        let answer = scene.call("pre-tool-use", &call.to_string(), &[]);
        assert!(answer.stdout.contains("\"deny\""), "{answer:?}");
        answer.json()["systemMessage"].as_str().unwrap().to_owned()
    };
    assert!(!blocked(&Scene::new()).contains("not recorded"));
    for hinder in without_audit_log() {
        let scene = Scene::new();
        hinder(&scene);
        let notice = blocked(&scene);
        assert!(notice.contains(UNRECORDED), "{notice}");
    }
}
