//! Changes of the fields of a payload on the way to its neutral spelling.

use serde_json::{Map, Value};

/// Renames a field to its neutral name, if that is not used.
pub(crate) fn rename(fields: &mut Map<String, Value>, native: &str, neutral: &str) {
    if let Some(value) = fields.shift_remove(native) {
        fields.entry(neutral).or_insert(value);
    }
}

/// Replaces a field that contains JSON text by the parsed object.
pub(crate) fn unpack(fields: &mut Map<String, Value>, name: &str) {
    let inner = fields.get(name).and_then(Value::as_str);
    if let Some(Ok(value @ Value::Object(_))) = inner.map(serde_json::from_str) {
        fields.insert(name.to_owned(), value);
    }
}
