//! Secrets in the result of a tool: masked before the agent reads it, where the client takes that.
use serde_json::{Value, json};

use crate::scene::Scene;

const GUARD: &str = "- id: mask_secrets\n  on: [post_tool_use]\n  tools: [Bash, Read]\n  decision: mask\n  \
    message: Secrets in this result are masked.\n";
const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ";

fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.world.put("/work/.policyd/policies/guards.yaml", GUARD);
    scene.events(&[json!({"user": "Show the settings"})]);
    scene
}

/// The answer of a client's hook after a tool.
fn after(scene: &Scene, client: &str, stdout: &str) -> Value {
    let payload = json!({"session_id": "session-1", "cwd": "/work", "hook_event_name": "PostToolUse",
        "tool_name": "Bash", "tool_input": {"command": "cat settings"},
        "tool_response": {"stdout": stdout, "stderr": "", "interrupted": false}});
    let said = scene.call("post-tool-use", &payload.to_string(), &["--harness", client]);
    assert_eq!(said.code, 0, "{said:?}");
    said.json()
}

#[test]
fn a_result_keeps_its_shape_and_loses_its_secrets() {
    let scene = scene();
    let said = after(&scene, "claude-code", &format!("token {SECRET}\nport 80"));
    let specific = &said["hookSpecificOutput"];
    let expected = json!({"stdout": "token «masked»\nport 80", "stderr": "", "interrupted": false});
    assert_eq!(specific["updatedToolOutput"], expected);
    assert_eq!(specific["additionalContext"], "Secrets in this result are masked.");
    let log = scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap();
    let log = String::from_utf8(log).unwrap();
    assert!(log.contains("mask_secrets") && !log.contains(SECRET), "{log}");
}

#[test]
fn a_result_without_secrets_stays_and_a_client_that_cannot_is_reported() {
    let scene = scene();
    assert_eq!(after(&scene, "claude-code", "port 80"), json!({}));
    let said = after(&scene, "codex", &format!("token {SECRET}"));
    let notice = said["systemMessage"].as_str().unwrap();
    assert!(notice.contains("the result cannot be changed for Codex CLI at PostToolUse"), "{said}");
    assert!(!said.to_string().contains("updatedToolOutput"), "{said}");
}

#[test]
fn cases_say_what_the_agent_reads() {
    let scene = Scene::new();
    scene.world.put("/pack/policyd.yaml", "version: 1\nextends: [builtin]\n");
    scene.world.put("/pack/guards.yaml", GUARD);
    let case = |name: &str, stdout: &str, expect: &str| {
        format!(
            "- name: {name}\n  on: {{event: post_tool_use, tool: Bash, fields: {{tool_response: {{stdout: \
             \"{stdout}\"}}}}}}\n  expect: {{updated_output: {expect}}}\n"
        )
    };
    let cases = [
        case("masked", &format!("token {SECRET}"), "{stdout: token «masked»}"),
        case("as it was", "port 80", "none"),
    ];
    scene.world.put("/pack/tests/masking.yaml", cases.concat());
    let said = scene.run(&["policyd", "test", "/pack"], b"");
    assert_eq!(said.code, 0, "{said:?}");
    let lint = scene.run(&["policyd", "lint", "--harness", "codex", "/pack"], b"");
    assert!(lint.stdout.contains("Codex CLI takes no `updated_output`"), "{lint:?}");
    let early = GUARD.replace("post_tool_use", "pre_tool_use");
    scene.world.put("/pack/guards.yaml", early);
    let lint = scene.run(&["policyd", "lint", "/pack"], b"");
    assert!(lint.stdout.contains("no client can be told `mask` at `pre_tool_use`"), "{lint:?}");
}
