//! What the reader makes of OpenCode's messages: recorded ones, shortened.

use super::session::{facts, prompts};
use policyd::facts::record::TranscriptFormat;
use policyd::facts::{CommandOutcome, record};
use serde_json::{Value, json};

fn message(id: &str, role: &str, parts: &Value) -> Value {
    let tokens = json!({"total": 110, "input": 100, "output": 8, "reasoning": 2,
        "cache": {"read": 5, "write": 7}});
    let mut info = json!({"id": id, "sessionID": "ses_1", "role": role});
    if role == "assistant" {
        info["modelID"] = "claude-sonnet-4-5".into();
        info["tokens"] = tokens;
        info["path"] = json!({"cwd": "/home/dev/project", "root": "/"});
    }
    json!({"info": info, "parts": parts})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(id: &str, tool: &str, state: &Value) -> Value {
    json!({"type": "tool", "callID": id, "tool": tool, "state": state})
}

fn write(path: &str, status: &str, metadata: &Value) -> Value {
    let input = json!({"filePath": path, "content": "x = 1\n"});
    tool(
        path,
        "edit",
        &json!({"status": status, "input": input, "error": "no", "metadata": metadata}),
    )
}

fn bash(id: &str, command: &str, exit: i32) -> Value {
    let state = json!({"status": "completed", "input": {"command": command}, "output": "checked",
        "metadata": {"exit": exit}});
    tool(id, "bash", &state)
}

#[test]
fn messages_are_prompts_texts_calls_and_results() {
    let lens_tools = json!([text("Testing."), bash("c1", "make test", 3), bash("c2", "ls", 0)]);
    let todo = json!({"status": "completed", "input": {"todos": [
        {"content": "document it", "status": "in_progress", "id": "1"}]}, "output": "1"});
    let facts = facts(&[
        message("m1", "user", &json!([text("Write it"), {"type": "file", "mime": "text/plain"}])),
        message("m2", "assistant", &json!([write("a.py", "completed", &json!({}))])),
        message("m3", "assistant", &lens_tools),
        message("m4", "assistant", &json!([tool("t", "todowrite", &todo), text("Done.")])),
    ]);
    assert_eq!(prompts(&facts), ["Write it"]);
    let said: Vec<_> = facts.messages.last.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(said, ["Testing.", "Done."]);
    assert_eq!(facts.files[0].path, "a.py");
    let ran: Vec<_> = facts
        .commands
        .recent
        .iter()
        .map(|it| (it.text.as_str(), it.outcome, it.exit_code))
        .collect();
    let expected = [
        ("make test", CommandOutcome::Failed, Some(3)),
        ("ls", CommandOutcome::Succeeded, Some(0)),
    ];
    assert_eq!(ran, expected);
    assert_eq!(facts.todos.items[0].content, "document it");
    let total = facts.tokens.meters.total();
    assert_eq!((total.input, total.output, facts.tokens.meters.occupied), (300, 30, 112));
    assert_eq!(facts.tokens.meters.model, "claude-sonnet-4-5");
    assert_eq!((facts.folder.as_str(), facts.lines_skipped), ("/home/dev/project", 0));
}

#[test]
fn a_call_that_did_not_run_edits_nothing() {
    let facts = facts(&[message(
        "m1",
        "assistant",
        &json!([
            write("denied.py", "error", &json!({"denied": true})),
            write("failed.py", "error", &json!({})),
            write("aborted.py", "error", &json!({"interrupted": true})),
            write("running.py", "running", &json!({})),
        ]),
    )]);
    let edited: Vec<_> = facts.files.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(edited, ["running.py"], "its result is not known yet");
    assert_eq!((facts.tools.denied, facts.tools.failed, facts.pending.len()), (1, 2, 1));
}

#[test]
fn a_prompt_of_policyd_or_of_the_client_is_not_a_humans() {
    let own = json!([{"type": "text", "text": "not done yet", "metadata": {"policyd": "stop"}}]);
    let synthetic = json!([{"type": "text", "text": "Continue", "synthetic": true}]);
    let mut summary = message("m5", "assistant", &json!([text("## Goal")]));
    summary["info"]["summary"] = true.into();
    let facts = facts(&[
        message("m1", "user", &json!([text("Write it")])),
        message("m2", "user", &own),
        message("m3", "user", &synthetic),
        message("m4", "user", &json!([{"type": "compaction", "auto": true}])),
        summary,
    ]);
    assert_eq!(prompts(&facts), ["Write it"]);
    assert_eq!((facts.compactions.count, facts.messages.count), (1, 0));
}

#[test]
fn a_later_line_replaces_the_one_with_its_id() {
    let full = json!([text("Testing."), bash("c", "make test", 0)]);
    let facts = facts(&[
        message("m", "assistant", &json!([text("Testing.")])),
        message("m", "assistant", &full),
        message("m", "assistant", &full),
    ]);
    assert_eq!((facts.messages.count, facts.tools.total), (1, 1));
    assert_eq!(facts.tokens.meters.total().input, 100);
}

#[test]
fn odd_lines_are_counted_or_empty() {
    for (line, known) in [
        (r#"{"info":{"id":"m","role":"user"},"parts":"x"}"#, true),
        (
            r#"{"info":{"id":7,"role":[],"tokens":1,"path":2},"parts":[1,null,{"type":"tool"}]}"#,
            true,
        ),
        (r#"{"info":null}"#, false),
        (r#"{"info":"#, false),
    ] {
        assert_eq!(record::read(line.as_bytes()).is_some(), known, "{line}");
    }
    let format = TranscriptFormat::of_line(br#"{"info":{"id":"m"},"parts":[]}"#);
    assert_eq!(format, TranscriptFormat::OpenCode);
}
