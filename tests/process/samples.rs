//! Recorded payloads and transcripts of three clients, where they lie beside the repository.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::machine::{Machine, read_json};
use crate::support::shared;

/// The recorded samples of one client, sorted; none where they are absent.
fn samples(client: &str) -> Vec<PathBuf> {
    let Some(folder) = shared::path("samples") else { return Vec::new() };
    let entries = fs::read_dir(folder.join(client)).unwrap();
    let mut paths: Vec<_> = entries.map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Our name of a client's event.
fn event(name: &str) -> &str {
    match name {
        "AfterAgent" => "stop",
        "BeforeAgent" => "user-prompt-submit",
        "BeforeTool" => "pre-tool-use",
        "AfterTool" => "post-tool-use",
        "PreCompress" => "pre-compact",
        other => other,
    }
}

#[test]
fn every_recorded_payload_is_answered() {
    let machine = Machine::new();
    let mut answered = 0;
    for client in ["claude-code", "codex", "gemini"] {
        let is_payload = |it: &PathBuf| it.extension().is_some_and(|it| it == "json");
        for path in samples(client).into_iter().filter(is_payload) {
            let payload = read_json(&path);
            let Some(name) = payload["hook_event_name"].as_str() else { continue };
            let called = machine.run(&["eval", "--hook", event(name)], &fs::read(&path).unwrap());
            assert!(!called.blocks(), "{}: no transcript, no finding", path.display());
            let is_stop = ["stop", "Stop", "SubagentStop"].contains(&event(name));
            let unknown = ["BeforeModel", "AfterModel", "BeforeToolSelection"].contains(&name);
            // One of the recorded calls is a force-push, which is refused.
            let refused = path.ends_with("PreToolUse.Bash.denied.json");
            let answer = called.answer();
            let decision = &answer["hookSpecificOutput"]["permissionDecision"];
            assert_eq!(decision == "deny", refused, "{}: {answer}", path.display());
            let silent = ["", "{}"].contains(&called.stdout.as_str());
            assert!(is_stop || unknown || silent || refused, "{}", path.display());
            answered += 1;
        }
    }
    eprintln!("{answered} recorded payloads were answered");
}

/// A recorded stop with its recorded transcript: what a person reads, and the report.
fn judged(client: &str, payload: &str, transcript: &str) -> Option<(String, Value)> {
    let paths = samples(client);
    let named = |name: &str| paths.iter().find(|it| it.ends_with(name)).cloned();
    let (payload, transcript) = (named(payload)?, named(transcript)?);
    let machine = Machine::new();
    let mut payload = read_json(&payload);
    payload["transcript_path"] = json!(transcript);
    payload["agent_transcript_path"] = json!(transcript);
    payload["cwd"] = json!(machine.project);
    let hook = event(payload["hook_event_name"].as_str().unwrap()).to_owned();
    let stdin = payload.to_string();
    let report = |format: &str| {
        let arguments = ["eval", "--hook", &hook, "--dry-run", "--format", format];
        machine.run(&arguments, stdin.as_bytes()).stdout
    };
    let text = report("text");
    eprintln!("--- {client}, {hook} ---\n{text}");
    Some((text, serde_json::from_str(&report("json")).unwrap()))
}

fn details(report: &Value, id: &str) -> String {
    let found = report["considerations"].as_array().unwrap().iter().find(|it| it["id"] == id);
    found.unwrap()["details"].as_str().unwrap().to_owned()
}

/// `pytest` was not there; later a command of the agent's own printed "1 passed". That is no test
/// runner, so the tests could not run: the block is right.
#[test]
fn claude_codes_session_did_not_run_the_tests() {
    let found = judged("claude-code", "Stop.json", "transcript.jsonl");
    let Some((text, report)) = found else { return };
    assert_eq!(report["decision"], "block", "{text}");
    assert_eq!(report["session_type"], "DEVELOPMENT");
    assert_eq!(details(&report, "local_testing"), "code was edited, but the tests could not run");
    assert!(text.contains("No module named pytest"), "{text}");
}

#[test]
fn recorded_sessions_without_work_are_let_go() {
    for (client, payload, transcript) in [
        ("claude-code", "SubagentStop.json", "transcript.subagent.jsonl"),
        ("claude-code", "Stop.background-task-running.json", "transcript.jsonl"),
        ("claude-code", "Stop.json", "transcript.claude-2.1.197.jsonl"),
        ("codex", "Stop.json", "rollout.jsonl"),
        ("gemini", "AfterAgent.json", "session.jsonl"),
    ] {
        let Some((text, report)) = judged(client, payload, transcript) else { return };
        assert_eq!(report["decision"], "none", "{text}");
    }
}
