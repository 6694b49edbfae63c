//! Writes a case as the text of a case file.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use policyd_yaml::{Source, yaml};

/// A case before it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CaseDraft {
    /// Lines of the comment above the case. Empty for none.
    #[serde(skip)]
    pub comment: String,
    /// Name of the case.
    pub name: String,
    /// Why the case exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Map under `given`. Empty for none.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub given: Map<String, Value>,
    /// Path of the transcript, relative to the directory of the cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// Map under `on`. Empty for a stop.
    #[serde(skip_serializing_if = "Map::is_empty")]
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
        let comment: String = self.comment.lines().map(|it| format!("# {it}\n")).collect();
        let written = serde_yaml::to_string(std::slice::from_ref(self)).ok();
        let case = written.filter(|it| is_valid(it)).unwrap_or_else(|| self.to_escaped());
        comment + case.as_str()
    }

    /// Returns the case on one line, for invisible characters that policyd accepts as escapes only. JSON is YAML.
    fn to_escaped(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        let mut text = "- ".to_owned();
        for character in json.chars() {
            match character.is_ascii() {
                true => text.push(character),
                false => {
                    let units = character.encode_utf16(&mut [0; 2]).to_vec();
                    text.extend(units.iter().map(|it| format!("\\u{it:04x}")));
                }
            }
        }
        text + "\n"
    }
}

/// Whether policyd reads a text without a finding.
fn is_valid(text: &str) -> bool {
    let source = Source { name: String::new(), text: text.to_owned() };
    let (node, findings) = yaml::parse(&Arc::new(source));
    node.is_some() && findings.is_empty()
}
