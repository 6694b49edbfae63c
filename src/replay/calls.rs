//! Extracts tool calls with their whole input from a transcript of any client, because facts
//! contain only a part of it. Does not contain: their evaluation.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use policyd_facts::Facts;
use policyd_facts::record::lenient::{Either, Text};
use policyd_facts::record::{self, EntryCall, Record, RecordEntry};

/// Names of the call id, by client.
const IDS: [&str; 3] = ["id", "call_id", "toolCallId"];
/// Names of the input, by client.
const INPUTS: [&str; 5] = ["input", "arguments", "args", "action", "parameters"];

/// Maximum nesting depth of the search. Known clients nest calls six levels deep.
const DEPTH_MAX: usize = 16;

/// A recorded tool call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RecordedCall {
    /// Id by which the client pairs the call with its result; empty if it has none.
    pub(super) id: String,
    /// Name of the tool.
    pub(super) tool: String,
    /// Input, as a hook would have received it.
    pub(super) input: Value,
}

/// Returns the calls of a record that `facts` do not contain yet. Parses the line again, because
/// facts contain only a part of an input.
pub(super) fn calls(line: &[u8], record: &Record<'_>, facts: &Facts) -> Vec<RecordedCall> {
    let called = record.entries.iter().filter_map(RecordEntry::call);
    let called = called.filter_map(|call| match call {
        EntryCall::Begun { id, name } => {
            let search = InputSearch { id, tool: name, deep: DEPTH_MAX, careful: false };
            let input = search.of_line(line).unwrap_or_default();
            Some(RecordedCall { id: id.to_owned(), tool: name.to_owned(), input })
        }
        EntryCall::Ended { name, input: Either::One(input), result }
            if !facts.knows_call(&result.id) =>
        {
            let (key, value) = match &input.command {
                Either::Text(command) => ("command", command.as_ref()),
                Either::One(_) | Either::Many(_) | Either::None => ("input", &*input.input),
            };
            let id = result.id.as_ref().to_owned();
            Some(RecordedCall { id, tool: name.to_owned(), input: json!({ key: value }) })
        }
        EntryCall::Ended { .. } => None,
    });
    called.collect()
}

/// Search for the input of a call: the value beside the call's id, or beside its name if it has no id.
#[derive(Clone, Copy)]
struct InputSearch<'c> {
    id: &'c str,
    tool: &'c str,
    /// Remaining levels of the search.
    deep: usize,
    /// Whether unneeded values stay undecoded, so that an invalid value does not hide another one.
    careful: bool,
}

impl InputSearch<'_> {
    /// Returns the input in a line. Clients write unpaired surrogates and other text that the
    /// strict parser rejects.
    fn of_line(self, line: &[u8]) -> Option<Value> {
        // Nearly every line is valid UTF-8, which is checked faster.
        let sound = std::str::from_utf8(line).map(Cow::Borrowed);
        let line = sound.unwrap_or_else(|_| String::from_utf8_lossy(line));
        let strictly = self.deserialize(&mut serde_json::Deserializer::from_str(&line));
        let careful = Self { careful: true, ..self };
        strictly.unwrap_or_else(|_| careful.within(&line))
    }

    /// Returns the input in a value.
    fn within(self, json: &str) -> Option<Value> {
        self.deserialize(&mut serde_json::Deserializer::from_str(json)).ok().flatten()
    }

    /// Returns the input in an undecoded value.
    fn within_raw(self, raw: &RawValue) -> Option<Value> {
        let holds_more = raw.get().starts_with(['{', '[']);
        holds_more.then(|| self.within(raw.get())).flatten()
    }
}

impl<'de> DeserializeSeed<'de> for InputSearch<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        match self.deep.checked_sub(1) {
            Some(deep) => from.deserialize_any(Self { deep, ..self }),
            None => IgnoredAny::deserialize(from).map(|_| None),
        }
    }
}

impl<'de> Visitor<'de> for InputSearch<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut meant, mut below) = (false, None);
        let mut inputs: [Option<&RawValue>; INPUTS.len()] = Default::default();
        while let Some(key) = map.next_key::<Text<'_>>()? {
            let input = INPUTS.iter().position(|it| *it == &*key);
            if let Some(place) = input.and_then(|at| inputs.get_mut(at)) {
                *place = Some(map.next_value()?);
            } else if IDS.contains(&&*key) {
                let id = text(map.next_value()?);
                meant |= !id.is_empty() && id == self.id;
            } else if &*key == "name" {
                let name = text(map.next_value()?);
                meant |= self.id.is_empty() && name == self.tool;
            } else if below.is_none() && self.careful {
                below = self.within_raw(map.next_value()?);
            } else if below.is_none() {
                below = map.next_value_seed(self)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let mut inputs = inputs.into_iter().flatten();
        Ok(match meant.then(|| inputs.next()).flatten() {
            Some(found) => input(found),
            None => below.or_else(|| inputs.find_map(|it| self.within_raw(it))),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        loop {
            let found = match self.careful {
                true => items.next_element()?.map(|it| self.within_raw(it)),
                false => items.next_element_seed(self)?,
            };
            let Some(found) = found else { return Ok(None) };
            if found.is_some() {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(found);
            }
        }
    }

    fn visit_borrowed_str<E>(self, _: &'de str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Decodes a text. Empty if the value is not a text.
fn text(raw: &RawValue) -> String {
    serde_json::from_str::<Text<'_>>(raw.get()).map(|it| it.0.into_owned()).unwrap_or_default()
}

/// Decodes an input. Some clients store it as JSON inside a text.
fn input(written: &RawValue) -> Option<Value> {
    let json = written.get();
    let mended = || serde_json::from_slice(&record::repaired(json.as_bytes())?).ok();
    let value: Value = serde_json::from_str(json).ok().or_else(mended)?;
    let inner = value.as_str().and_then(|it| serde_json::from_str(it).ok());
    Some(inner.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(line: &Value) -> Vec<(String, Value)> {
        let bytes = line.to_string().into_bytes();
        let record = record::read(&bytes).unwrap();
        calls(&bytes, &record, &Facts::default())
            .into_iter()
            .map(|it| (it.tool, it.input))
            .collect()
    }

    /// Returns the input of the call `a` of a line.
    fn input_of_a(line: &str) -> Option<Value> {
        let search = InputSearch { id: "a", tool: "Bash", deep: DEPTH_MAX, careful: false };
        search.of_line(line.as_bytes())
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
        assert_eq!(input_of_a(&deep), None);
    }

    #[test]
    fn what_cannot_be_decoded_hides_no_call() {
        for beside in [
            r#""extra": "x \ud83d""#,
            r#""extra": 1e999"#,
            r#""extra": [{"deep": [1e999, "\ud83d"]}]"#,
            r#""name": "\ud83d""#,
        ] {
            let block = r#"{"type": "tool_use", "id": "a", "input": {"command": "ls"}}"#;
            let line = format!(r#"{{{beside}, "message": {{"content": [1e999, {block}]}}}}"#);
            assert_eq!(input_of_a(&line), Some(json!({"command": "ls"})), "{line}");
        }
        let cut = r#"{"id": "a", "input": {"command": "ls \ud83d"}}"#;
        assert_eq!(input_of_a(cut), Some(json!({"command": "ls \u{fffd}"})));
    }
}
