//! A stored file, whose path below `.policyd` is the first line: hooks answer and lists are listed
//! whatever stands in it, and what cannot be read is put aside, never lost.

use super::headed;
use super::machine::{call, machine};

/// Commands that read what is stored; none is to end because of it.
const COMMANDS: [&[&str]; 7] = [
    &["state", "show", "s"],
    &["breaker", "list", "--format", "json"],
    &["dlq", "list", "--format", "json"],
    &["escalation", "list", "--format", "json"],
    &["signal", "list", "--format", "json"],
    &["log", "--format", "json"],
    &["context", "status", "--format", "json"],
];

pub(super) fn run(data: &[u8]) {
    let Some((path, bytes)) = headed(data) else { return };
    let plain = |it: char| it.is_ascii_alphanumeric() || "/-_.".contains(it);
    if path.is_empty() || !path.chars().all(plain) || path.contains("..") || path.contains("//") {
        return;
    }
    if path.ends_with('/') || path.starts_with('/') || path.starts_with("policies") {
        return;
    }
    let world = machine();
    world.put(format!("/work/.policyd/{path}"), bytes);
    for (hook, payload) in [
        (
            "stop",
            &br#"{"session_id": "s", "cwd": "/work", "last_assistant_message": "It works."}"#[..],
        ),
        ("session-start", br#"{"session_id": "s", "cwd": "/work", "source": "startup"}"#),
        (
            "post-tool-use-failure",
            br#"{"session_id": "s", "cwd": "/work", "tool_name": "Bash", "tool_input": {"command": "make"}, "error": "exit 2"}"#,
        ),
    ] {
        call(&world, &["eval", "--hook", hook], payload).is_an_answer();
    }
    for words in COMMANDS {
        let called = call(&world, words, b"");
        assert!([0, 1, 3].contains(&called.code), "{words:?}: {} {}", called.code, called.stderr);
    }
    if is_json_document(path) && serde_json::from_slice::<serde_json::Value>(bytes).is_err() {
        let kept = |it: &_| world.get(it).is_some_and(|it| it == bytes);
        assert!(bytes.is_empty() || world.files().iter().any(kept), "{path} is lost");
    }
}

/// Whether it is a document that somebody's work is kept in; caches may be thrown away.
fn is_json_document(path: &str) -> bool {
    path.ends_with(".json") && !path.contains("cache")
}
