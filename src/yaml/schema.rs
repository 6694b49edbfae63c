//! JSON Schema (draft 2020-12) of a shape, for editors and other programs. It is as strict as `check`, and no
//! stricter: both take a key without a value for an absent one.

use serde_json::{Map, Value, json};

use super::shape::{Field, Kind};
use crate::limits::{EXPRESSION_BYTES_MAX, REGEX_SOURCE_MAX};

const DURATION_PATTERN: &str = "^([0-9]+(ms|s|m|h|d|w))+$";
/// The text of a date, or of a point in time.
pub const DATE_PATTERN: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.+)?$";

/// A text in which something is written.
const SOMETHING_PATTERN: &str = r"\S";

/// The schema of a file of this kind.
#[must_use]
pub fn json_schema(kind: &Kind, title: &str) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(title));
    schema.append(&mut of_kind(kind));
    Value::Object(schema)
}

fn of_kind(kind: &Kind) -> Map<String, Value> {
    let schema = match kind {
        Kind::Any => json!({}),
        Kind::Text | Kind::Template => json!({ "type": "string" }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Duration => json!({ "type": "string", "pattern": DURATION_PATTERN }),
        Kind::Date => json!({ "type": "string", "pattern": DATE_PATTERN }),
        Kind::Expression => json!({
            "type": ["string", "boolean", "number"],
            "minLength": 1,
            "maxLength": EXPRESSION_BYTES_MAX,
        }),
        Kind::Regex => {
            json!({ "type": "string", "format": "regex", "maxLength": REGEX_SOURCE_MAX })
        }
        Kind::List(one) => json!({ "type": "array", "items": of_kind(one) }),
        Kind::OneOrList(one) => json!({
            "anyOf": [of_kind(one), { "type": "array", "items": of_kind(one) }],
        }),
        Kind::Map(one) => json!({ "type": "object", "additionalProperties": of_kind(one) }),
        Kind::Record(fields) => of_record(fields),
        Kind::Either(kinds) => {
            json!({ "anyOf": kinds.iter().map(of_kind).collect::<Vec<_>>() })
        }
    };
    match schema {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

/// Lets the schema of a value take a key that has none.
fn take_nothing(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.push(Value::Null);
    } else if let Some(Value::Array(schemas)) = schema.get_mut("anyOf") {
        schemas.push(json!({ "type": "null" }));
    } else if let Some(types) = schema.get_mut("type") {
        match types.as_array_mut() {
            Some(types) => types.push(json!("null")),
            None => *types = json!([types.take(), "null"]),
        }
    }
}

fn of_record(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut schema = Map::new();
            schema.insert("description".to_owned(), json!(field.doc));
            schema.append(&mut of_kind(&field.kind));
            let is_text = matches!(field.kind, Kind::Text | Kind::Template);
            if !field.required {
                take_nothing(&mut schema);
            } else if is_text {
                schema.insert("pattern".to_owned(), json!(SOMETHING_PATTERN));
            }
            schema.extend((field.default)().map(|value| ("default".to_owned(), value)));
            (field.name.to_owned(), Value::Object(schema))
        })
        .collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut record = Map::new();
    record.insert("type".to_owned(), json!("object"));
    record.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        record.insert("required".to_owned(), json!(required));
    }
    record.insert("additionalProperties".to_owned(), json!(false));
    Value::Object(record)
}
