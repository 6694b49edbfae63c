//! Transcript lines in the form of Claude Code.

use serde_json::{Value, json};

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Succeeded,
    Failed,
    Denied,
}

impl Ending {
    pub(super) const fn of(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Succeeded }
    }
}

/// A text of the agent.
pub(super) fn said(text: &str) -> String {
    assistant(&json!({"type": "text", "text": text}))
}

/// A call of a tool.
pub(super) fn tool_use(id: &str, name: &str, input: &Value) -> String {
    assistant(&json!({"type": "tool_use", "id": id, "name": name, "input": input}))
}

fn assistant(block: &Value) -> String {
    json!({"type": "assistant", "message": {"role": "assistant", "content": [block]}}).to_string()
}

/// The result of a call.
pub(super) fn tool_result(id: &str, output: &str, ending: Ending) -> String {
    let block = json!({
        "type": "tool_result", "tool_use_id": id, "content": output,
        "is_error": ending != Ending::Succeeded,
    });
    let mut line = json!({"type": "user", "message": {"role": "user", "content": [block]}});
    if let (Ending::Denied, Value::Object(fields)) = (ending, &mut line) {
        fields.insert("toolDenialKind".to_owned(), "declined".into());
    }
    line.to_string()
}
