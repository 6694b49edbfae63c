//! How many deferred values of the compiled pack an event decodes. A hook that decodes a whole list in order to read one
//! entry or one flag of it shows here as a larger number.

use policyd::deferred::decoded_count;
use serde_json::{Value, json};

use super::scene::Scene;

/// Returns how many values an event decodes after the same event has filled the caches.
fn decoded(scene: &Scene, event: &str, changes: &Value) -> usize {
    let payload = scene.payload(changes).to_string();
    scene.call(event, &payload, &[]);
    let before = decoded_count();
    scene.call(event, &payload, &[]);
    decoded_count() - before
}

fn decoded_by_call(tool: &str, input: &Value) -> usize {
    let call = json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input});
    decoded(&Scene::new(), "pre-tool-use", &call)
}

/// The bounds are the counts of 2026-12-01 with room for a few new rules. They find a list that is decoded for one entry
/// or one flag of it: the pack has 200 guards and 300 rows of programs. Most of the values of a tool call are the 35
/// guards without programs, then the patterns, bodies, and trees of guards that match, and the rows of `git`.
#[test]
fn an_event_decodes_few_values() {
    let bash = |command: &str| decoded_by_call("Bash", &json!({"command": command}));
    let file = json!({"file_path": "/work/src/main.py", "old_string": "a", "new_string": "b"});
    let mut session = Scene::new();
    session.events(&[json!({"user": "Explain it"}), json!({"assistant": "It adds two numbers."})]);
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "Explain it"});
    let counts = [
        ("a harmless command", bash("cargo test --workspace && git status"), 320),
        ("a command without arguments", bash("ls"), 100),
        ("a blocked command", bash("git push --force"), 300),
        ("a file that is read", decoded_by_call("Read", &json!({"file_path": "/work/a.py"})), 120),
        ("a file that is edited", decoded_by_call("Edit", &file), 125),
        ("a prompt", decoded(&session, "user-prompt-submit", &prompt), 16),
        ("a stop", decoded(&session, "stop", &json!({})), 75),
    ];
    let above: Vec<_> = counts.iter().filter(|(_, count, most)| count > most).collect();
    assert!(above.is_empty(), "more decoded values than the bounds: {above:#?}");
}
