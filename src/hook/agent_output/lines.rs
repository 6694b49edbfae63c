//! Formats transcript lines as Claude Code does.

use serde_json::{Value, json};

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolEnd {
    Succeeded,
    Failed,
    Denied,
}

impl ToolEnd {
    pub(super) const fn of(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Succeeded }
    }
}

/// Formats a text of the agent.
pub(super) fn said(text: &str) -> String {
    assistant(&json!({"type": "text", "text": text}))
}

/// Formats a tool call.
pub(super) fn tool_use(id: &str, name: &str, input: &Value) -> String {
    assistant(&json!({"type": "tool_use", "id": id, "name": name, "input": input}))
}

fn assistant(block: &Value) -> String {
    json!({"type": "assistant", "message": {"role": "assistant", "content": [block]}}).to_string()
}

/// Formats the result of a tool call.
pub(super) fn tool_result(id: &str, output: &str, ending: ToolEnd) -> String {
    let block = json!({
        "type": "tool_result", "tool_use_id": id, "content": output,
        "is_error": ending != ToolEnd::Succeeded,
    });
    let mut line = json!({"type": "user", "message": {"role": "user", "content": [block]}});
    if let (ToolEnd::Denied, Value::Object(fields)) = (ending, &mut line) {
        fields.insert("toolDenialKind".to_owned(), "declined".into());
    }
    line.to_string()
}
