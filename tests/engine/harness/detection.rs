//! Whose payload it is, told from the payload alone where it can be.

use policyd::harness::{self, HARNESSES};
use policyd::hook::payload::{self, PayloadExpectation};
use serde_json::{Value, json};

use super::answers::payloads;

/// Harnesses whose payloads do not say whose they are: their hook lines name them.
const NAMED_ONLY: [&str; 1] = ["opencode"];

#[test]
fn payloads_tell_their_harness() {
    for harness in HARNESSES.into_iter().filter(|it| !NAMED_ONLY.contains(&it.name)) {
        for (event, payload) in payloads(harness) {
            // Copilot's second spelling is Claude Code's; at the end of its session nothing is said
            // to Codex.
            let as_claude = (harness.name == "copilot" && event.starts_with(char::is_uppercase))
                || (harness.name == "codex" && event == "SessionEnd");
            let expected = if as_claude { "claude-code" } else { harness.name };
            let found = harness::detect(payload.as_object().unwrap(), &|_| false);
            assert_eq!(found.name, expected, "{event}: {payload}");
        }
    }
}

#[test]
fn the_command_line_wins_and_a_variable_decides_between_equals() {
    let payload = json!({"session_id": "s", "hook_event_name": "Stop"}).to_string();
    let read = |harness: Option<&str>, set: &'static str| {
        let harness = harness.map(|it| harness::find(it).unwrap());
        let is_set = move |name: &str| name == set;
        let expected = PayloadExpectation { hook: "stop", harness, is_set: &is_set };
        let (event, caller) = payload::read(payload.as_bytes(), &expected).unwrap();
        assert_eq!(event.unwrap().kind.name(), "stop");
        caller.harness.name
    };
    assert_eq!(read(None, ""), "claude-code");
    assert_eq!(read(None, "FACTORY_PROJECT_DIR"), "droid");
    assert_eq!(read(Some("copilot"), "FACTORY_PROJECT_DIR"), "copilot");
}

/// A command that runs, as each client reports it. Cursor has two events for it.
const COMMAND: [(&str, &str, &str); HARNESSES.len() + 1] = [
    ("claude-code", "PreToolUse", r#"{"tool_name":"Bash","tool_input":{"command":"git push"}}"#),
    (
        "codex",
        "PreToolUse",
        r#"{"tool_name":"shell","tool_input":{"command":["bash","-lc","git push"]}}"#,
    ),
    (
        "gemini",
        "BeforeTool",
        r#"{"tool_name":"run_shell_command","tool_input":{"command":"git push"}}"#,
    ),
    ("cursor", "beforeShellExecution", r#"{"command":"git push"}"#),
    ("cursor", "preToolUse", r#"{"tool_name":"Shell","tool_input":{"command":"git push"}}"#),
    ("copilot", "preToolUse", r#"{"toolName":"bash","toolArgs":"{\"command\":\"git push\"}"}"#),
    ("droid", "PreToolUse", r#"{"tool_name":"Execute","tool_input":{"command":"git push"}}"#),
    ("opencode", "tool.execute.before", r#"{"tool":"bash","input":{"command":"git push"}}"#),
    ("plain", "pre_tool_use", r#"{"tool":"Bash","input":{"command":"git push"}}"#),
];

/// A file that is written, as each client reports it.
const FILE: [(&str, &str, &str); 6] = [
    (
        "claude-code",
        "PreToolUse",
        r#"{"tool_name":"Write","tool_input":{"file_path":"/a","content":"x"}}"#,
    ),
    (
        "gemini",
        "BeforeTool",
        r#"{"tool_name":"write_file","tool_input":{"file_path":"/a","content":"x"}}"#,
    ),
    ("cursor", "preToolUse", r#"{"tool_name":"Write","tool_input":{"path":"/a","contents":"x"}}"#),
    ("copilot", "preToolUse", r#"{"toolName":"create","toolArgs":{"path":"/a","file_text":"x"}}"#),
    (
        "droid",
        "PreToolUse",
        r#"{"tool_name":"Create","tool_input":{"file_path":"/a","content":"x"}}"#,
    ),
    (
        "opencode",
        "tool.execute.before",
        r#"{"tool":"write","input":{"filePath":"/a","content":"x"}}"#,
    ),
];

#[test]
fn one_deed_is_one_event_in_every_client() {
    let command = ("Bash", json!({"command": "git push"}), COMMAND.as_slice());
    let file = ("Write", json!({"file_path": "/a", "content": "x"}), FILE.as_slice());
    for (tool, input, deeds) in [command, file] {
        for (name, event, payload) in deeds {
            let harness = harness::find(name);
            let expected = PayloadExpectation { hook: event, harness, is_set: &|_| false };
            let read = payload::read(payload.as_bytes(), &expected);
            let event = read.unwrap().0.unwrap();
            assert_eq!(event.kind.name(), "pre_tool_use", "{name}");
            assert_eq!(event.tool_name.as_deref(), Some(tool), "{name}");
            assert_eq!(sorted(&event.tool_input), sorted(&input), "{name}");
        }
    }
}

fn sorted(value: &Value) -> Vec<(String, Value)> {
    let mut fields: Vec<_> = value
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}

#[test]
fn a_stop_that_the_user_broke_off_is_no_stop() {
    for (name, event, payload) in [
        ("cursor", "stop", json!({"status": "aborted", "conversation_id": "c"})),
        ("copilot", "agentStop", json!({"sessionId": "s", "stopReason": "aborted"})),
    ] {
        let expected =
            PayloadExpectation { hook: event, harness: harness::find(name), is_set: &|_| false };
        let read = payload::read(payload.to_string().as_bytes(), &expected);
        assert_eq!(read.unwrap().0, None, "{name}");
    }
}
