//! Shape of a case file, and its JSON Schema. The modules that read the maps of a case declare their keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::expect::EXPECTATION;
use super::given::GIVEN;
use super::happens::ON;
use super::transcript::USAGE;
use policyd_policy::shapes::FileShape;
use policyd_yaml::schema::json_schema;
use policyd_yaml::shape::{Field, Kind, field, required};

const TODO_STATES: Kind = Kind::Choice(&["pending", "in_progress", "completed"]);

/// One happening in a session. [`HAPPENINGS`] lists its main keys.
const HAPPENING: &[Field] = &[
    field("user", Kind::Text, "Prompt of the user."),
    field("branch", Kind::Text, "The git branch from this prompt on."),
    field("assistant", Kind::Text, "Text of the agent."),
    field("edit", Kind::Text, "File that the agent writes, relative to the project."),
    field("text", Kind::Text, "Content of the written file."),
    field("ran", Kind::Text, "Shell command that the agent runs."),
    field("prints", Kind::Text, "Output of the command."),
    field("failed", Kind::Bool, "Whether the command, or the tool, failed."),
    field("todos", Kind::Map(&TODO_STATES), "New content of the agent's todo list."),
    field("tool", Kind::Text, "Tool that the agent calls."),
    field("input", Kind::Map(&Kind::Any), "Input of the tool."),
    field("result", Kind::Text, "Result of the tool; `ok` by default."),
    field("pending", Kind::Bool, "Whether the tool has no result yet."),
    field("usage", USAGE.map, "Token usage of a turn."),
    field("compacted", Kind::Bool, "Whether the client compacted the conversation."),
    field("record", Kind::Map(&Kind::Any), "A line of the transcript, unchanged."),
    field(
        "times",
        Kind::Int { min: 1, max: 500 },
        "Number of repetitions; `{{n}}` is the number of each.",
    ),
];

/// Main keys of a happening, of which it has exactly one, each with its optional keys.
pub const HAPPENINGS: &[(&str, &[&str])] = &[
    ("user", &["branch"]),
    ("assistant", &["usage"]),
    ("edit", &["text"]),
    ("ran", &["prints", "failed"]),
    ("todos", &[]),
    ("tool", &["input", "result", "failed", "pending"]),
    ("usage", &[]),
    ("compacted", &[]),
    ("record", &[]),
];

const TRANSCRIPT: Kind = Kind::Either(&[Kind::Text, Kind::List(&Kind::Record(HAPPENING))]);

const STEP: &[Field] = &[
    field("given", GIVEN.map, "Changes before the action."),
    field("after", Kind::Duration, "Time that passes before the action."),
    field("transcript", TRANSCRIPT, "Additions to the transcript before the action."),
    field("on", ON, "The event: its name, or a map with its payload."),
    required("expect", EXPECTATION, "Expected result."),
];

/// A case.
pub const CASE: &[Field] = &[
    required("name", Kind::Text, "Name of the situation, unique in the file."),
    field("reason", Kind::Text, "Why the case matters."),
    field("skip", Kind::Text, "Reason why the case is skipped."),
    field(
        "each",
        Kind::List(&Kind::Map(&Kind::Any)),
        "Maps of values. The case runs once for each map; `{{key}}` is its value.",
    ),
    field("given", GIVEN.map, "State before the first step."),
    field("transcript", TRANSCRIPT, "Transcript: a list of happenings, or a file beside this one."),
    field("on", ON, "The event: its name, or a map with its payload."),
    field("expect", EXPECTATION, "Expected result; `snapshot` compares the whole report."),
    field("steps", Kind::List(&Kind::Record(STEP)), "Several events of one session, in order."),
];

/// Returns the JSON Schema of a case file: the schema of its shape, with `{{name}}` wherever a
/// value of `each` is possible. The filled value is checked later.
#[must_use]
pub fn schema() -> Value {
    let mut schema = json_schema(&FILE.kind, FILE.file.trim_end_matches(".yaml"));
    if let Some(Value::Object(keys)) = schema.pointer_mut("/items/properties") {
        for (key, value) in keys.iter_mut().filter(|(key, _)| *key != "each") {
            with_placeholders(value, key != "name");
        }
    }
    let mut definitions = Map::new();
    SharedSchemas::of(&schema).share(&mut schema, "case", &mut definitions);
    if let Value::Object(fields) = &mut schema {
        let placeholder = json!({"type": "string", "pattern": PLACEHOLDER_PATTERN});
        definitions.insert("placeholder".to_owned(), placeholder);
        fields.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Length of a schema as text above which it is written once.
const SHARED_BYTES_MIN: usize = 200;

/// How often each schema occurs, without its description.
struct SharedSchemas {
    times: BTreeMap<String, usize>,
    /// Names of the definitions so far.
    names: BTreeMap<String, String>,
}

impl SharedSchemas {
    fn of(schema: &Value) -> Self {
        let mut shared = Self { times: BTreeMap::new(), names: BTreeMap::new() };
        shared.count(&mut schema.clone());
        shared
    }

    fn count(&mut self, schema: &mut Value) {
        let times = self.times.entry(body(schema)).or_default();
        *times = times.saturating_add(1);
        if *times == 1 {
            parts(schema).into_iter().for_each(|(_, it)| self.count(it));
        }
    }

    /// Moves schemas that occur several times to definitions, named by the key where they occur first.
    fn share(&mut self, schema: &mut Value, key: &str, definitions: &mut Map<String, Value>) {
        let text = body(schema);
        let is_shared = text.len() >= SHARED_BYTES_MIN && self.times.get(&text) > Some(&1);
        if let Some(name) = self.names.get(&text).filter(|_| is_shared) {
            refer(schema, name);
            return;
        }
        for (name, part) in parts(schema) {
            self.share(part, name.unwrap_or(key), definitions);
        }
        if is_shared {
            let numbered = (2..).map(|number: usize| format!("{key}_{number}"));
            let mut names = std::iter::once(key.to_owned()).chain(numbered);
            let Some(name) = names.find(|it| !definitions.contains_key(it)) else { return };
            let mut definition = schema.clone();
            if let Value::Object(fields) = &mut definition {
                fields.remove("description");
            }
            definitions.insert(name.clone(), definition);
            refer(schema, &name);
            self.names.insert(text, name);
        }
    }
}

/// Returns a schema as text, without its description.
fn body(schema: &Value) -> String {
    let mut schema = schema.clone();
    if let Value::Object(fields) = &mut schema {
        fields.remove("description");
    }
    schema.to_string()
}

/// Replaces a schema by a reference to its definition. The description stays.
fn refer(schema: &mut Value, name: &str) {
    let description = schema.get("description").cloned();
    let mut fields = Map::new();
    fields.extend(description.map(|it| ("description".to_owned(), it)));
    fields.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
    *schema = Value::Object(fields);
}

/// Returns the schemas in a schema, those of keys with the key.
fn parts(schema: &mut Value) -> Vec<(Option<&str>, &mut Value)> {
    let mut found = Vec::new();
    let Value::Object(fields) = schema else { return found };
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(keys)) => {
                found.extend(keys.iter_mut().map(|(key, it)| (Some(key.as_str()), it)));
            }
            ("anyOf", Value::Array(kinds)) => found.extend(kinds.iter_mut().map(|it| (None, it))),
            ("items" | "additionalProperties", value @ Value::Object(_)) => {
                found.push((None, value));
            }
            _ => {}
        }
    }
    found
}

/// Extends a schema and its parts to accept placeholders, unless they accept any text.
fn with_placeholders(schema: &mut Value, itself: bool) {
    let Value::Object(fields) = schema else { return };
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(keys)) => {
                keys.values_mut().for_each(|it| with_placeholders(it, true));
            }
            ("items" | "additionalProperties", value) => with_placeholders(value, true),
            ("anyOf", Value::Array(kinds)) => {
                kinds.iter_mut().for_each(|it| with_placeholders(it, false));
            }
            _ => {}
        }
    }
    let any_text = fields.get("type").is_some_and(|it| it == "string")
        && !fields.contains_key("pattern")
        && !fields.contains_key("format");
    let anything = !["type", "enum", "anyOf"].iter().any(|it| fields.contains_key(*it));
    if itself && !any_text && !anything {
        let outside = ["description", "default"].map(|key| fields.remove_entry(key));
        let strict = Value::Object(std::mem::take(fields));
        fields.extend(outside.into_iter().flatten());
        let placeholder = json!({"$ref": "#/$defs/placeholder"});
        fields.insert("anyOf".to_owned(), json!([strict, placeholder]));
    }
}

/// Pattern of a text with a placeholder.
const PLACEHOLDER_PATTERN: &str = r"\{\{[A-Za-z0-9_]+\}\}";

pub use super::happens::DEEDS;
pub use policyd_policy::shapes::CASES_FOLDER as FOLDER;

/// Shape of a case file.
pub const FILE: FileShape = FileShape { file: "cases.yaml", kind: Kind::List(&Kind::Record(CASE)) };
