//! A part of an entry of the decision log that few readers need. Its text stays as it was logged until it is read.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A part of an entry.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum LoggedPart<T> {
    /// A value that will be logged.
    Value(Box<T>),
    /// The JSON text of a value that was logged.
    Text(Box<RawValue>),
}

impl<T> LoggedPart<T> {
    /// Returns the part with a value that will be logged.
    pub fn new(value: T) -> Self {
        Self::Value(Box::new(value))
    }
}

impl<T: Clone + DeserializeOwned> LoggedPart<T> {
    /// Returns the value. `None` if another version of policyd logged something else.
    pub fn read(&self) -> Option<T> {
        match self {
            Self::Value(value) => Some(T::clone(value)),
            Self::Text(text) => serde_json::from_str(text.get()).ok(),
        }
    }
}

impl<'de, T> Deserialize<'de> for LoggedPart<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(Self::Text)
    }
}

impl<T: PartialEq> PartialEq for LoggedPart<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(one), Self::Value(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one.get() == other.get(),
            (Self::Value(_), Self::Text(_)) | (Self::Text(_), Self::Value(_)) => false,
        }
    }
}
