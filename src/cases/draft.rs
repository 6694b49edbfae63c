//! Writes a case as the text of a case file.

use serde_json::{Map, Value, json};

/// A case before it is written. Values are written as JSON, which is YAML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseDraft {
    /// Lines of the comment above the case. Empty for none.
    pub comment: String,
    /// Name of the case.
    pub name: String,
    /// Why the case exists.
    pub reason: Option<String>,
    /// Map under `given`. Empty for none.
    pub given: Map<String, Value>,
    /// Path of the transcript, relative to the directory of the cases.
    pub transcript: Option<String>,
    /// Map under `on`. Empty for a stop.
    pub on: Map<String, Value>,
    /// Map under `expect`.
    pub expect: Map<String, Value>,
}

/// Returns the map under `on` of a tool call, or of another event without a tool. A command has a short form.
#[must_use]
pub fn event(name: &str, tool: Option<&str>, input: &Value) -> Map<String, Value> {
    let mut on = Map::new();
    on.insert("event".to_owned(), name.into());
    match (input.get("command").filter(|_| tool == Some("Bash")), tool) {
        (Some(command), _) => {
            on.insert("command".to_owned(), command.clone());
        }
        (None, Some(tool)) => {
            on.insert("tool".to_owned(), tool.into());
            if input.is_object() {
                on.insert("input".to_owned(), input.clone());
            }
        }
        (None, None) => {}
    }
    on
}

impl CaseDraft {
    /// Returns the text of a case file with this case.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text: String = self.comment.lines().map(|it| format!("# {it}\n")).collect();
        text += &format!("- name: {}\n", json!(self.name));
        let mut entry = |key: &str, value: Value| text += &format!("  {key}: {value}\n");
        if let Some(reason) = &self.reason {
            entry("reason", json!(reason));
        }
        if !self.given.is_empty() {
            entry("given", Value::Object(self.given.clone()));
        }
        if let Some(path) = &self.transcript {
            entry("transcript", json!(path));
        }
        if !self.on.is_empty() {
            entry("on", Value::Object(self.on.clone()));
        }
        text += "  expect:\n";
        for (key, value) in &self.expect {
            text += &format!("    {key}: {value}\n");
        }
        text
    }
}
