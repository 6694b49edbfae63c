//! GitHub Copilot CLI: the reason of a blocked stop returns as a prompt of the user.
use serde_json::{Value, json};

use super::scene::{Called, Scene};

const EVENTS: &str = include_str!("../../samples/copilot/events.loop.jsonl");
const TRANSCRIPT: &str = "/t/events.jsonl";

/// An `agentStop` after these lines of the transcript.
fn stop(scene: &Scene, lines: &[String], active: bool) -> Called {
    scene.world.put(TRANSCRIPT, lines.join("\n") + "\n");
    let payload = json!({"sessionId": "session-1", "cwd": "/work", "transcriptPath": TRANSCRIPT,
        "stopReason": "end_turn", "stop_hook_active": active});
    scene.call("agentStop", &payload.to_string(), &["--harness", "copilot"])
}

/// The lines of the sample up to its first stop.
fn first_turn() -> Vec<String> {
    EVENTS.lines().take_while(|it| !it.contains("agentStop")).map(str::to_owned).collect()
}

fn prompt(id: usize, text: &str) -> String {
    let data = json!({"content": text, "messageId": format!("m{id}")});
    json!({"type": "user.message", "data": data, "id": format!("u{id}")}).to_string()
}

/// A call of a tool between two stops.
fn call(id: usize) -> [String; 2] {
    let arguments = json!({"command": "git status"});
    let request = json!({"toolCallId": format!("t{id}"), "name": "bash", "arguments": arguments});
    let result =
        json!({"toolCallId": format!("t{id}"), "success": true, "result": {"content": "x"}});
    [
        json!({"type": "assistant.message", "data": {"content": "", "toolRequests": [request]}}),
        json!({"type": "tool.execution_complete", "data": result}),
    ]
    .map(|it| it.to_string())
}

#[test]
fn a_recorded_loop_of_stops_ends() {
    let scene = Scene::new();
    let all: Vec<String> = EVENTS.lines().map(str::to_owned).collect();
    let stops = all.iter().enumerate().filter(|(_, it)| it.contains("agentStop"));
    let mut decisions = Vec::new();
    for (at, line) in stops {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let active = recorded["data"]["input"]["stop_hook_active"] == true;
        decisions.push(stop(&scene, &all[..at], active).decision());
    }
    let expected = ["block", "block", "approve", "approve", "approve", "approve"];
    assert_eq!(decisions, expected);
    assert_eq!(scene.state()["released"]["reason"], "same_failure");
}

#[test]
fn a_prompt_that_repeats_the_reason_continues_the_episode() {
    let scene = Scene::new();
    let mut lines = first_turn();
    let mut decisions = Vec::new();
    for number in 0..4 {
        let said = stop(&scene, &lines, false);
        decisions.push(said.decision());
        if let Some(reason) = said.json()["reason"].as_str() {
            lines.push(prompt(number, reason));
        }
        lines.extend(call(number));
    }
    assert_eq!(decisions, ["block", "block", "approve", "approve"]);
}

#[test]
fn a_new_prompt_of_the_user_begins_a_new_episode() {
    let scene = Scene::new();
    let mut lines = first_turn();
    let first = stop(&scene, &lines, false).json();
    assert_eq!(scene.state()["consecutive_blocks"], 1);
    lines.push(prompt(1, first["reason"].as_str().unwrap()));
    lines.extend(call(1));
    lines.push(prompt(2, "Now write a sub function, too"));
    lines.extend(call(2));
    assert_eq!(stop(&scene, &lines, false).decision(), "block");
    assert_eq!(
        (&scene.state()["consecutive_blocks"], &scene.state()["episode"]),
        (&json!(1), &json!("u2"))
    );
}
