//! What would switch the gate off without anybody seeing it, and is told to the user.
use policyd::world::WorldError;
use policyd::world::fake::Op;
use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::console::Terminal;

#[test]
fn what_switches_the_gate_off_unseen_is_told() {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    let told = |event: &str, changes: Value| {
        let called = scene.call(event, &scene.payload(&changes).to_string(), &[]);
        assert_eq!(called.decision(), "approve");
        called.json()["systemMessage"].as_str().unwrap_or_default().to_owned()
    };
    let other = told("stop", json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"}));
    assert!(other.contains("says `--hook stop`, and the client reports PreToolUse"), "{other}");
    let other = told("pre-tool-use", json!({}));
    assert!(other.contains("says `--hook pre-tool-use`, and the client reports Stop"), "{other}");
    for id in [json!(""), json!(null), json!(42)] {
        let nobody = told("stop", json!({"session_id": id}));
        assert!(nobody.contains("names no session"), "{nobody}");
    }
    scene.world.put("/t/other.jsonl", "not a record\nnor this\n");
    let unread = told("stop", json!({"transcript_path": "/t/other.jsonl"}));
    assert!(unread.contains("no valid record (lines read: 2)"), "{unread}");
    assert!(scene.stop().decision() == "block", "the gate itself is on");
}

#[test]
fn a_session_type_that_is_forced_and_unknown_is_told() {
    let mut scene = Scene::new();
    scene.events(&[json!({"user": "Hello"}), json!({"assistant": "Hello."})]);
    scene.world.set_env("POLICYD_SESSION_TYPE", "DEVELOPMNT");
    let said = scene.stop().json()["systemMessage"].as_str().unwrap().to_owned();
    assert!(said.contains("`DEVELOPMNT`") && said.contains("`DEVELOPMENT`"), "{said}");
}

#[test]
fn a_folder_that_cannot_be_made_is_found_before_a_block_is_lost() {
    let scene = Scene::new();
    let state = |scene: &Scene| {
        let doctor = scene.run(&["policyd", "doctor", "--format", "json"], b"");
        let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
        let mut checks = report["checks"].as_array().unwrap().clone().into_iter();
        checks.find(|it| it["about"] == "state").unwrap()
    };
    assert_eq!(state(&scene)["health"], "ok", "{}", state(&scene));
    let denied = WorldError::Io("permission denied".to_owned());
    scene.world.refuse_always(Op::Write, ".policyd-doctor.tmp", denied);
    let found = state(&scene);
    assert_eq!(found["health"], "failed", "{found}");
    assert!(
        found["text"].as_str().unwrap().contains("if neither counts them, policyd does not block"),
        "{found}"
    );
}

#[test]
fn an_answer_on_a_terminal_ends_its_line() {
    let scene = Scene::new();
    let payload = scene.payload(&json!({"session_id": ""})).to_string();
    for more in [&[][..], &["--dry-run"], &["--dry-run", "--color", "never"]] {
        let arguments = [&["policyd", "eval", "--hook", "stop"], more].concat();
        let on = |shown: bool| {
            let at = Terminal { shown, ..Terminal::default() };
            scene.run_at(at, &arguments, payload.as_bytes()).stdout
        };
        let piped = on(false);
        assert!(piped.ends_with('}'), "{piped}");
        assert_eq!(on(true), format!("{piped}\n"));
    }
    let listed = scene
        .run_at(
            Terminal { shown: true, ..Terminal::default() },
            &["policyd", "signal", "list"],
            b"",
        )
        .stdout;
    assert!(!listed.ends_with("\n\n"), "{listed:?}");
}
