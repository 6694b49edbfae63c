//! Ids of sessions and agents, checked once, because they become paths and keys.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum length of a session or agent id. amplihack uses the same limit.
pub const ID_LENGTH_MAX: usize = 128;

fn is_id_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// A session id that is a safe path component: 1 to 128 characters of `[A-Za-z0-9_-]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(String);

impl SessionId {
    /// Returns the id if the text is valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.len() <= ID_LENGTH_MAX;
        (fits && text.chars().all(is_id_character)).then(|| Self(text.to_owned()))
    }

    /// Builds a valid id from any text. Other characters become `_`, the length is cut, and an
    /// empty text becomes `unknown`. amplihack applies the same rule, so both programs find the
    /// same directory.
    #[must_use]
    pub fn sanitize(text: &str) -> Self {
        let safe: String = text
            .chars()
            .take(ID_LENGTH_MAX)
            .map(|c| if is_id_character(c) { c } else { '_' })
            .collect();
        Self(if safe.is_empty() { "unknown".to_owned() } else { safe })
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("invalid session id"))
    }
}

impl JsonSchema for SessionId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SessionId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_never_leave_their_folder() {
        for hostile in ["../../etc/passwd", "a/b", "a\\b", "..", ".", "a\0b", "ä", "C:\\x"] {
            assert_eq!(SessionId::parse(hostile), None, "{hostile:?}");
            let safe = SessionId::sanitize(hostile);
            assert_eq!(SessionId::parse(safe.as_str()), Some(safe.clone()), "{hostile:?}");
        }
        assert_eq!(SessionId::sanitize("").as_str(), "unknown");
        assert_eq!(SessionId::sanitize(&"x".repeat(500)).as_str().len(), ID_LENGTH_MAX);
    }

    #[test]
    fn valid_ids_stay_as_they_are() {
        let longest = "a".repeat(ID_LENGTH_MAX);
        for id in ["6fbb1ada-4a29-4af1-ab6e-bfc8745f3638", "s_1-x", longest.as_str()] {
            assert_eq!(SessionId::parse(id).unwrap().as_str(), id);
            assert_eq!(SessionId::sanitize(id).as_str(), id);
        }
        assert_eq!(SessionId::parse(&"a".repeat(ID_LENGTH_MAX + 1)), None);
        assert_eq!(SessionId::parse("a.b"), None);
    }
}
