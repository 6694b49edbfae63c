//! What a tool call is about, in one line: the command, or the tool with its file.

use serde_json::Value;

/// Names of the part of an input that tells calls of a tool apart, by client.
const SUBJECTS: [&str; 8] =
    ["command", "cmd", "file_path", "path", "notebook_path", "url", "query", "pattern"];

/// Returns the command or the file of a tool call; for other tools, their name.
#[must_use]
pub fn subject(tool: &str, input: &Value) -> String {
    let find = |name: &&'static str| Some((*name, input.get(*name)?));
    let (name, text) = match SUBJECTS.iter().find_map(find) {
        Some((name, Value::String(text))) => (name, text.clone()),
        Some((name, Value::Array(words))) => {
            let words = words.iter().filter_map(Value::as_str);
            (name, words.collect::<Vec<_>>().join(" "))
        }
        Some((_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_))) | None => {
            return tool.to_owned();
        }
    };
    if matches!(name, "command" | "cmd") { text } else { format!("{tool} {text}") }
}
