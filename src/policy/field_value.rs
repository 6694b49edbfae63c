//! Conversion of the value of a key: from a node to a Rust value, and from its default to JSON for the schema.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use policyd_yaml::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::time::duration_text;

/// A Rust value that a key of a policy file holds.
pub trait FieldValue: Sized {
    /// Returns the value of a node. `None` if the node holds another kind of value.
    fn from_node(node: &Node) -> Option<Self>;

    /// Returns the value as a policy file states it. `None` if the value means that the key is absent.
    fn to_json(&self) -> Option<Value>;
}

/// A closed set of values, each with its word in policy files.
pub trait Word: Copy + PartialEq + 'static {
    /// The words, in the order in which they are documented.
    const NAMES: &'static [&'static str];
    /// The value of each word, in the same order.
    const VALUES: &'static [Self];

    /// Returns the value of a word.
    fn from_name(name: &str) -> Option<Self> {
        let mut words = Self::NAMES.iter().zip(Self::VALUES);
        words.find(|(word, _)| **word == name).map(|(_, value)| *value)
    }

    /// Returns the word of the value; of several, the first one.
    fn name(self) -> &'static str {
        let mut words = Self::NAMES.iter().zip(Self::VALUES);
        words.find(|(_, value)| **value == self).map_or("", |(word, _)| *word)
    }
}

/// Returns the kind of a key that holds one of the words of `T`.
#[must_use]
pub const fn words<T: Word>() -> Kind {
    Kind::Choice(T::NAMES)
}

impl<T: Word> FieldValue for T {
    fn from_node(node: &Node) -> Option<Self> {
        Self::from_name(node.text()?)
    }

    fn to_json(&self) -> Option<Value> {
        Some(self.name().into())
    }
}

impl FieldValue for bool {
    fn from_node(node: &Node) -> Option<Self> {
        node.bool()
    }

    fn to_json(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl FieldValue for f64 {
    fn from_node(node: &Node) -> Option<Self> {
        node.number()
    }

    fn to_json(&self) -> Option<Value> {
        Some((*self).into())
    }
}

macro_rules! whole_numbers {
    ($($number:ty)*) => {$(
        impl FieldValue for $number {
            fn from_node(node: &Node) -> Option<Self> {
                Self::try_from(node.int()?).ok()
            }

            fn to_json(&self) -> Option<Value> {
                Some((*self).into())
            }
        }
    )*};
}

whole_numbers!(i32 u32 u64 usize i64);

impl FieldValue for Duration {
    fn from_node(node: &Node) -> Option<Self> {
        node.duration()
    }

    fn to_json(&self) -> Option<Value> {
        Some(duration_text(*self).into())
    }
}

impl FieldValue for String {
    fn from_node(node: &Node) -> Option<Self> {
        node.text().map(str::to_owned)
    }

    fn to_json(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.as_str().into())
    }
}

impl FieldValue for Value {
    fn from_node(node: &Node) -> Option<Self> {
        Some(node.json())
    }

    fn to_json(&self) -> Option<Value> {
        (!self.is_null()).then(|| self.clone())
    }
}

impl FieldValue for Map<String, Value> {
    fn from_node(node: &Node) -> Option<Self> {
        let Value::Object(entries) = node.json() else { return None };
        Some(entries)
    }

    fn to_json(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.clone().into())
    }
}

impl FieldValue for PathBuf {
    fn from_node(node: &Node) -> Option<Self> {
        node.text().map(Self::from)
    }

    fn to_json(&self) -> Option<Value> {
        self.to_str().filter(|it| !it.is_empty()).map(Into::into)
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    /// Skips items of another kind.
    fn from_node(node: &Node) -> Option<Self> {
        Some(node.items().unwrap_or_default().iter().filter_map(T::from_node).collect())
    }

    fn to_json(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.iter().filter_map(T::to_json).collect())
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn from_node(node: &Node) -> Option<Self> {
        T::from_node(node).map(Some)
    }

    fn to_json(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_json)
    }
}
