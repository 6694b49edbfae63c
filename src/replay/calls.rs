//! Tool calls as a transcript tells them, whatever client wrote it: the whole input of each, for rules
//! that look closer than the facts do. May not live here: judging them.

use serde_json::Value;

use crate::facts::record::{Entry, Record};

/// Names under which clients keep the id of a call.
const IDS: [&str; 3] = ["id", "call_id", "toolCallId"];
/// Names under which they keep its input.
const INPUTS: [&str; 5] = ["input", "arguments", "args", "action", "parameters"];

/// A tool call that was recorded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// Name of the tool.
    pub(super) tool: String,
    /// What a hook would have been told as its input.
    pub(super) input: Value,
}

/// The calls of a record; its line is read again for them, since the facts keep little of an input.
pub(super) fn calls(line: &[u8], record: &Record<'_>) -> Vec<Call> {
    let told = record.entries.iter().filter_map(|it| match it {
        Entry::Call { id, name, .. } => Some((id.as_ref(), name.as_ref())),
        Entry::Stopped { .. }
        | Entry::CutOff
        | Entry::Asked(_)
        | Entry::Prompt { .. }
        | Entry::Injected { .. }
        | Entry::Said(_)
        | Entry::Result(_)
        | Entry::Usage(_)
        | Entry::Compacted => None,
    });
    let mut told = told.peekable();
    if told.peek().is_none() {
        return Vec::new();
    }
    let whole: Value = serde_json::from_slice(line).unwrap_or_default();
    told.map(|(id, tool)| Call {
        tool: tool.to_owned(),
        input: input(&whole, (id, tool)).unwrap_or_default(),
    })
    .collect()
}

/// The input that stands beside the id of a call, or beside its name where it has none.
fn input(value: &Value, call: (&str, &str)) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let is = |key: &str, text: &str| fields.get(key).is_some_and(|it| it == text);
            let meant = match call {
                ("", name) => is("name", name),
                (id, _) => IDS.iter().any(|key| is(key, id)),
            };
            let beside = || INPUTS.iter().find_map(|key| fields.get(*key));
            match beside().filter(|_| meant) {
                // Some clients keep it as JSON within a text.
                Some(Value::String(text)) => {
                    Some(serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()))
                }
                Some(input) => Some(input.clone()),
                None => fields.values().find_map(|it| input(it, call)),
            }
        }
        Value::Array(items) => items.iter().find_map(|it| input(it, call)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::record;
    use serde_json::json;

    fn told(line: &Value) -> Vec<(String, Value)> {
        let bytes = line.to_string().into_bytes();
        let record = record::read(&bytes).unwrap();
        calls(&bytes, &record).into_iter().map(|it| (it.tool, it.input)).collect()
    }

    #[test]
    fn the_whole_input_of_each_call_is_found_in_every_form() {
        let claude = json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "content": [
            {"type": "text", "text": "x"},
            {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls", "timeout": 5}},
            {"type": "tool_use", "id": "b", "name": "WebFetch", "input": {"url": "http://x"}}]}});
        let both = [
            ("Bash".to_owned(), json!({"command": "ls", "timeout": 5})),
            ("WebFetch".to_owned(), json!({"url": "http://x"})),
        ];
        assert_eq!(told(&claude), both);
        let codex = json!({"type": "response_item", "payload": {"type": "function_call",
            "name": "shell", "call_id": "c", "arguments": "{\"command\": [\"ls\", \"-a\"]}"}});
        assert_eq!(told(&codex), [("shell".to_owned(), json!({"command": ["ls", "-a"]}))]);
        assert!(told(&json!({"type": "user", "message": {"content": "hi"}})).is_empty());
    }
}
