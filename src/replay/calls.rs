//! Tool calls as a transcript tells them, whatever client wrote it: the whole input of each, for rules
//! that look closer than the facts do. May not live here: judging them.

use std::borrow::Cow;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::facts::record::{Entry, Record};

/// Names under which clients keep the id of a call.
const IDS: [&str; 3] = ["id", "call_id", "toolCallId"];
/// Names under which they keep its input.
const INPUTS: [&str; 5] = ["input", "arguments", "args", "action", "parameters"];

/// Levels of a line at which calls are looked for; known clients nest them six deep.
const DEPTH_MAX: usize = 16;

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
    let whole: Option<&RawValue> = serde_json::from_slice(line).ok();
    told.map(|(id, tool)| Call {
        tool: tool.to_owned(),
        input: whole.and_then(|it| input(it.get(), (id, tool), DEPTH_MAX)).unwrap_or_default(),
    })
    .collect()
}

/// The input that stands beside the id of a call, or beside its name where it has none. Of all else in
/// the line only the outline is read.
fn input(json: &str, call: (&str, &str), deep: usize) -> Option<Value> {
    let deep = deep.checked_sub(1)?;
    match json.as_bytes().first()? {
        b'{' => {
            let fields: Fields<'_> = serde_json::from_str(json).ok()?;
            let is = |key: &str, text: &str| {
                fields.get(key).is_some_and(|it| {
                    serde_json::from_str::<Cow<'_, str>>(it.get()).is_ok_and(|it| it == text)
                })
            };
            let meant = match call {
                ("", name) => is("name", name),
                (id, _) => IDS.iter().any(|key| is(key, id)),
            };
            let beside = || INPUTS.iter().find_map(|key| fields.get(key));
            match beside().filter(|_| meant) {
                Some(found) => {
                    let value: Value = serde_json::from_str(found.get()).ok()?;
                    // Some clients keep it as JSON within a text.
                    let inner = value.as_str().and_then(|it| serde_json::from_str(it).ok());
                    Some(inner.unwrap_or(value))
                }
                None => fields.0.iter().find_map(|(_, it)| input(it.get(), call, deep)),
            }
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            items.into_iter().find_map(|it| input(it.get(), call, deep))
        }
        _ => None,
    }
}

/// An object by its outline, in its own order.
#[derive(Default)]
struct Fields<'j>(Vec<(Cow<'j, str>, &'j RawValue)>);

impl<'j> Fields<'j> {
    fn get(&self, key: &str) -> Option<&'j RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Outline)
    }
}

struct Outline;

impl<'de> Visitor<'de> for Outline {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::default();
        while let Some(field) = map.next_entry()? {
            fields.0.push(field);
        }
        Ok(fields)
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

    #[test]
    fn a_line_that_is_nested_without_end_is_given_up() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(input(&deep, ("a", "Bash"), DEPTH_MAX), None);
    }
}
