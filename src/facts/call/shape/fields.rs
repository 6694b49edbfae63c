//! The fields of an input, those of the objects in it among them, one level deep.

use serde_json::{Map, Value as Json};

/// Fields by their keys.
pub(super) struct Fields<'a>(Vec<(String, &'a Json)>);

impl<'a> Fields<'a> {
    pub(super) fn new(input: &'a Json) -> Self {
        let mut found = Vec::new();
        let mut add = |fields: &'a Map<String, Json>| {
            found.extend(fields.iter().map(|(key, value)| (normal(key), value)));
        };
        let fields = input.as_object();
        fields.into_iter().for_each(&mut add);
        for value in fields.into_iter().flat_map(Map::values) {
            value.as_object().into_iter().for_each(&mut add);
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Json::as_object).for_each(&mut add);
        }
        found.retain(|(_, value)| !is_empty(value));
        Self(found)
    }

    /// Fields of some keys that hold something.
    pub(super) fn of(&self, keys: &[&str]) -> impl Iterator<Item = (&str, &'a Json)> {
        let meant = self.0.iter().filter(move |(key, _)| keys.contains(&key.as_str()));
        meant.map(|(key, value)| (key.as_str(), *value))
    }

    /// Texts of some keys, those of lists among them.
    pub(super) fn texts(&self, keys: &[&str]) -> impl Iterator<Item = &'a str> {
        self.of(keys).flat_map(|(_, value)| texts(value))
    }

    /// Texts of lists of some keys.
    pub(super) fn lists(&self, keys: &[&str]) -> impl Iterator<Item = &'a str> {
        self.of(keys).filter(|(_, value)| value.is_array()).flat_map(|(_, value)| texts(value))
    }
}

/// A text, or the texts of a list.
pub(super) fn texts(value: &Json) -> impl Iterator<Item = &str> {
    let items = value.as_array().into_iter().flatten();
    value.as_str().into_iter().chain(items.filter_map(Json::as_str))
}

/// A key in small letters, without what separates its words.
fn normal(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) => false,
    }
}
