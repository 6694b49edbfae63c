//! Renders an adapted response as the client's JSON: one object, or the client's empty output.

use serde_json::{Map, Value};

use super::{Caller, HookResponse, adapt};
use policyd_base::text::escaped;
use policyd_harness::{Capability, Harness, ResponseField, ResponseTemplate};

/// Returns the text for standard output. `tool` is the neutral name of the event's tool.
#[must_use]
pub fn render(caller: Caller, answer: &HookResponse, tool: Option<&str>) -> String {
    let silence = || caller.harness.silence.to_owned();
    let Some(moment) = caller.moment else { return silence() };
    let ways = [
        adapt::ability(answer.decision),
        answer.updated_input.is_some().then_some(Capability::Input),
        answer.updated_output.is_some().then_some(Capability::Output),
        answer.context.is_some().then_some(Capability::Context),
        answer.notice.is_some().then_some(Capability::Notice),
    ];
    let plain = |it: &&ResponseTemplate| it.fields.iter().any(|(path, _)| path.is_empty());
    if let Some(text) = &answer.context
        && adapt::ability(answer.decision).is_none()
        && moment.way(Capability::Context).as_ref().is_some_and(plain)
    {
        return escaped(text).into_owned();
    }
    let mut fields = Map::new();
    for way in ways.into_iter().flatten().filter_map(|it| moment.way(it)) {
        put(&mut fields, caller.harness, answer, tool, way);
    }
    if let Some(Value::Object(specific)) = fields.get_mut("hookSpecificOutput") {
        specific.shift_insert(0, "hookEventName".to_owned(), moment.native.into());
    }
    if fields.is_empty() { silence() } else { Value::Object(fields).to_string() }
}

fn put(
    fields: &mut Map<String, Value>,
    harness: &Harness,
    answer: &HookResponse,
    tool: Option<&str>,
    way: &ResponseTemplate,
) {
    // A text can quote the agent, and the user reads it as a question.
    let shown = |it: &str| Value::from(escaped(it).into_owned());
    let text = |it: &Option<String>| shown(it.as_deref().unwrap_or_default());
    for (path, put) in way.fields.iter().filter(|(path, _)| !path.is_empty()) {
        let value = match put {
            ResponseField::Text(text) => Value::from(*text),
            ResponseField::Flag(flag) => Value::from(*flag),
            ResponseField::Reason if answer.reason.is_empty() => continue,
            ResponseField::Reason => shown(&answer.reason),
            ResponseField::Notice => text(&answer.notice),
            ResponseField::Context => text(&answer.context),
            ResponseField::Output => answer.updated_output.clone().unwrap_or_default(),
            ResponseField::Input => native_input(harness, tool, answer.updated_input.clone()),
        };
        set(fields, path, value);
    }
}

/// Sets a value at a path of names. Existing values on the path are objects, because the tables are
/// consistent.
fn set(fields: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        fields.insert(path.to_owned(), value);
        return;
    };
    let inner = fields.entry(first).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(inner) = inner {
        set(inner, rest, value);
    }
}

/// Converts an input to the client's names.
fn native_input(harness: &Harness, tool: Option<&str>, input: Option<Value>) -> Value {
    let mut input = input.unwrap_or_default();
    if let Value::Object(fields) = &mut input
        && tool.is_some_and(Harness::has_own_inputs)
    {
        for (native, neutral) in harness.inputs {
            if let Some(value) = fields.shift_remove(*neutral) {
                fields.insert((*native).to_owned(), value);
            }
        }
    }
    input
}
