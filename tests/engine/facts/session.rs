//! Transcript lines for tests, one function per thing that can happen in a session, and their facts.

use policyd::facts::Facts;
use serde_json::{Value, json};

use super::lens;

/// What the fold makes of these lines.
pub(crate) fn facts(lines: &[Value]) -> Facts {
    let lens = lens::compiled();
    let mut facts = Facts::default();
    for line in lines {
        facts.ingest_record(line.to_string().as_bytes(), &lens);
    }
    facts
}

/// The texts of the prompts that are kept.
pub(crate) fn prompts(facts: &Facts) -> Vec<&str> {
    facts.prompts.first.iter().chain(&facts.prompts.last).map(|p| p.text.as_str()).collect()
}

pub(crate) fn user(text: &str) -> Value {
    json!({"type": "user", "uuid": "u", "promptId": "p", "message": {"role": "user", "content": text}})
}

pub(crate) fn with(mut line: Value, key: &str, value: Value) -> Value {
    line[key] = value;
    line
}

pub(crate) fn said(message: &str, text: &str) -> Value {
    assistant(message, json!([{"type": "text", "text": text}]))
}

pub(crate) fn assistant(message: &str, content: Value) -> Value {
    json!({"type": "assistant", "uuid": "a", "isSidechain": false, "cwd": "/w", "gitBranch": "main",
        "message": {"id": message, "role": "assistant", "model": "m", "content": content,
            "usage": {"input_tokens": 1, "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 300, "output_tokens": 4000}}})
}

pub(crate) fn call(id: &str, name: &str, input: Value) -> Value {
    assistant(id, json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
}

pub(crate) fn bash(id: &str, command: &str) -> Value {
    call(id, "Bash", json!({"command": command}))
}

pub(crate) fn result(id: &str, text: &str, is_error: bool) -> Value {
    json!({"type": "user", "uuid": "r", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]}})
}

pub(crate) fn output(id: &str, stdout: &str) -> Value {
    with(
        result(id, stdout, false),
        "toolUseResult",
        json!({"stdout": stdout, "stderr": "", "interrupted": false}),
    )
}

pub(crate) fn failed(id: &str, text: &str) -> Value {
    with(result(id, text, true), "toolUseResult", json!(format!("Error: {text}")))
}

pub(crate) fn denied(id: &str) -> Value {
    with(failed(id, "PreToolUse:Bash hook error: no"), "toolDenialKind", json!("permission-rule"))
}

/// A session with every kind of record in it.
pub(crate) fn every_kind() -> Vec<Value> {
    vec![
        json!({"type": "queue-operation", "operation": "enqueue", "content": "x"}),
        json!({"type": "permission-mode", "permissionMode": "acceptEdits"}),
        json!({"uuid": "s", "attachment": {"type": "prompt_snapshot", "systemPrompt": ["x"]}, "type": "attachment"}),
        with(user("fix \u{e4}\u{1f600} it"), "origin", json!({"kind": "human"})),
        with(user("skill body"), "isMeta", json!(true)),
        user(
            "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>a b</command-args>",
        ),
        user("<local-command-stdout>x</local-command-stdout>"),
        with(user("<task-notification>x"), "promptId", json!("n1")),
        with(user("peer"), "origin", json!({"kind": "peer"})),
        with(said("side", "subagent"), "isSidechain", json!(true)),
        json!({"attachment": {"type": "queued_command", "prompt": "and this", "origin": {"kind": "human"}}, "type": "attachment", "uuid": "q"}),
        said("m1", "I begin."),
        call("t0", "TodoWrite", json!({"todos": [{"content": "A", "status": "pending"}]})),
        result("t0", "ok", false),
        call(
            "t1",
            "Write",
            json!({"file_path": "/w/a.py", "content": "x = 1 # TODO\nraise NotImplementedError\n"}),
        ),
        result("t1", "ok", false),
        call(
            "t2",
            "Edit",
            json!({"file_path": "/w/a.py", "old_string": "x = 1 # TODO", "new_string": "x = 2"}),
        ),
        result("t2", "ok", false),
        bash("t3", "cd /w && cargo test 2>&1 | tail -3 > out.txt"),
        output("t3", "test result: ok. 3 passed"),
        bash("t4", "git push --force"),
        denied("t4"),
        bash("t5", "sleep 100"),
        with(
            result("t5", "started", false),
            "toolUseResult",
            json!({"stdout": "", "backgroundTaskId": "b1"}),
        ),
        call("t6", "TaskCreate", json!({"subject": "B", "description": "b"})),
        with(result("t6", "Task #1 created", false), "toolUseResult", json!({"task": {"id": "1"}})),
        call("t7", "TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        result("t7", "ok", false),
        call("t8", "Skill", json!({"skill": "review"})),
        result("t8", "ok", false),
        json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {}}),
        with(user("This session is being continued"), "isCompactSummary", json!(true)),
        json!({"type": "tool_use", "id": "f1", "name": "Bash", "input": {"command": "pytest"}}),
        json!({"type": "tool_result", "id": "f1", "content": "Exit code 1\n2 failed"}),
        json!({"role": "assistant", "content": "flat"}),
        json!({"type": "assistant.message", "data": {"content": "ok", "toolRequests": [
            {"name": "bash", "arguments": "{\"command\":\"ls\"}", "id": "c1"}]}}),
        json!({"type": "response_item", "payload": {"type": "function_call", "name": "exec_command",
            "arguments": "{\"cmd\":\"cargo test\"}", "call_id": "x1"}}),
        json!({"type": "gemini", "id": "g1", "content": "running", "tokens": {"input": 5}}),
        call("t9", "AskUserQuestion", json!({"questions": []})),
        said("m9", "Done."),
    ]
}
