//! How values are stored as JSON. Contains: readers of fields that others might have written.
//! Does not contain: files, and the formats themselves, which are the structures that derive them.
//!
//! A field that is read by [`or_default`], [`items`], or [`count`] never makes its file unreadable: a value of
//! another type counts as absent.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Returns whether a value is the default, and is not written.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns the fields that a record writes.
pub fn fields(record: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

/// Reads a value; the default if it has another type.
///
/// # Errors
/// The text is not JSON.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Value::deserialize(deserializer).map(value_or_default)
}

/// Reads a list of records; an item of another type is the default.
///
/// # Errors
/// The text is not JSON.
pub fn records<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let items: Vec<Value> = or_default(deserializer)?;
    Ok(items.into_iter().map(value_or_default).collect())
}

/// Reads a list and leaves out items of another type.
///
/// # Errors
/// The text is not JSON.
pub fn items<'de, D, T, C>(deserializer: D) -> Result<C, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
    C: FromIterator<T>,
{
    let items: Vec<Value> = or_default(deserializer)?;
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

/// Reads a map and leaves out values of another type.
///
/// # Errors
/// The text is not JSON.
pub fn entries<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let entries: Map<String, Value> = or_default(deserializer)?;
    let entry = |(key, value)| Some((key, serde_json::from_value(value).ok()?));
    Ok(entries.into_iter().filter_map(entry).collect())
}

/// Reads a list or a map; the default if the value is neither.
///
/// # Errors
/// An element has another type.
pub fn elements<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    match Value::deserialize(deserializer)? {
        value @ (Value::Array(_) | Value::Object(_)) => {
            serde_json::from_value(value).map_err(D::Error::custom)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(T::default()),
    }
}

/// Reads a count: the largest `u32` for a larger one, 0 for a value of another type.
///
/// # Errors
/// The text is not JSON.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let count: u64 = or_default(deserializer)?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

fn value_or_default<T: DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}
