//! Shapes of policy files: constant tables of the keys of maps and of the kinds of their values.
//! `check` compares files with shapes, and `schema` converts shapes to JSON Schema.

use serde_json::Value;

use super::suggest::choice_of;

/// One key of a map.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key as a file states it.
    pub name: &'static str,
    /// Values that the key accepts.
    pub kind: Kind,
    /// Whether each map must contain the key.
    pub required: bool,
    /// Whether an entry must contain the key after it is merged with the entry that it overrides.
    pub needed: bool,
    /// Description of the key, one sentence: shown by editors and in messages.
    pub doc: &'static str,
    /// Names of the key in other systems. An unknown key with such a name is reported with help.
    pub aka: &'static [&'static str],
    /// Returns the value that applies if the key is absent. `None` if no single value describes that.
    pub default: fn() -> Option<Value>,
}

impl Field {
    /// Returns a key that each map must contain.
    #[must_use]
    pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self::optional(name, kind, doc).mandatory()
    }

    /// Returns a key that may be absent.
    #[must_use]
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, required: false, needed: false, doc, aka: &[], default: || None }
    }

    /// Makes the key [`required`](Self::required), without a default.
    #[must_use]
    pub const fn mandatory(self) -> Self {
        Self { required: true, default: || None, ..self }
    }

    /// Makes the key [`needed`](Self::needed), without a default.
    #[must_use]
    pub const fn needed(self) -> Self {
        Self { needed: true, default: || None, ..self }
    }

    /// Adds the names of the key in other systems.
    #[must_use]
    pub const fn also_known_as(self, aka: &'static [&'static str]) -> Self {
        Self { aka, ..self }
    }

    /// Adds the value that applies if the key is absent.
    #[must_use]
    pub const fn with_default(self, default: fn() -> Option<Value>) -> Self {
        Self { default, ..self }
    }
}

/// Returns an optional key.
#[must_use]
pub const fn field(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field::optional(name, kind, doc)
}

/// Returns a required key.
#[must_use]
pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field::required(name, kind, doc)
}

/// Kind of a value. Tables must not contain themselves.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Anything at all.
    Any,
    /// Text.
    Text,
    /// `true` or `false`.
    Bool,
    /// An integer within inclusive bounds.
    Int {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
    },
    /// A number within inclusive bounds.
    Number {
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
    },
    /// One of a closed set of words.
    Choice(&'static [&'static str]),
    /// A duration with its unit: `300s`.
    Duration,
    /// A calendar date or a point in time: `2026-01-31`.
    Date,
    /// An expression.
    Expression,
    /// Text with placeholders `${expression}`.
    Template,
    /// A regular expression.
    Regex,
    /// A list.
    List(&'static Kind),
    /// One value, or a list of them.
    OneOrList(&'static Kind),
    /// A map with free keys.
    Map(&'static Kind),
    /// A map with known keys.
    Record(&'static [Field]),
    /// The first of several kinds that matches.
    Either(&'static [Kind]),
}

/// The three shapes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeShape {
    Scalar,
    List,
    Map,
}

impl Kind {
    /// Whether a value of this kind can be written in `form`.
    pub(super) fn takes(&self, form: NodeShape) -> bool {
        match self {
            Self::Any => true,
            Self::Text
            | Self::Bool
            | Self::Int { .. }
            | Self::Number { .. }
            | Self::Choice(_)
            | Self::Duration
            | Self::Date
            | Self::Expression
            | Self::Template
            | Self::Regex => form == NodeShape::Scalar,
            Self::List(_) => form == NodeShape::List,
            Self::OneOrList(one) => form == NodeShape::List || one.takes(form),
            Self::Map(_) | Self::Record(_) => form == NodeShape::Map,
            Self::Either(kinds) => kinds.iter().any(|kind| kind.takes(form)),
        }
    }

    /// Returns the description of the kind that follows the word "expected".
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Any => "anything".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Int { .. } => "a whole number".to_owned(),
            Self::Number { .. } => "a number".to_owned(),
            Self::Choice(words) => choice_of(words).unwrap_or_default(),
            Self::Duration => "a duration such as `300s`".to_owned(),
            Self::Date => "a date such as `2026-01-31`".to_owned(),
            Self::Expression => "an expression".to_owned(),
            Self::Template => "a message text".to_owned(),
            Self::Regex => "a regular expression".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::OneOrList(one) => format!("{} or a list", one.expected()),
            Self::Map(_) | Self::Record(_) => "a map".to_owned(),
            Self::Either(kinds) => {
                let mut all: Vec<String> = kinds.iter().map(Self::expected).collect();
                all.dedup();
                all.join(" or ")
            }
        }
    }

    /// Returns the keys of maps of this kind, or of the maps in lists of this kind.
    pub(super) fn fields(&self) -> &'static [Field] {
        match self {
            Self::Record(fields) => fields,
            Self::List(one) | Self::OneOrList(one) => one.fields(),
            Self::Any
            | Self::Text
            | Self::Bool
            | Self::Int { .. }
            | Self::Number { .. }
            | Self::Choice(_)
            | Self::Duration
            | Self::Date
            | Self::Expression
            | Self::Template
            | Self::Regex
            | Self::Map(_)
            | Self::Either(_) => &[],
        }
    }
}
