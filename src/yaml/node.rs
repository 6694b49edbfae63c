//! The tree of a policy file: values with their spans, and typed access to them.
//! Clones of a node share the nodes below it.
//! Does not contain: parsing (`yaml`), shapes (`shape`, `check`).

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::meaning::{ScalarSense, is_nothing, meaning};
use super::{Source, Span, scalar};
use crate::time::{Timestamp, parse_duration};

/// A value of a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Location. A list or a map ends with its last entry, a block scalar with its last
    /// visible character.
    pub span: Span,
    /// The value.
    pub kind: NodeKind,
}

/// Kinds of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// Text, a number, a boolean, or null.
    Scalar(Scalar),
    /// A list.
    List(Arc<[Node]>),
    /// A map; the keys are scalars, or `Invalid`.
    Map(Arc<[(Node, Node)]>),
    /// A value outside the format (an alias, a tagged value, a key that is not text). The parser reported it, and
    /// checks skip it, so that one cause gives one finding.
    Invalid,
}

/// A scalar as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar {
    /// Text without quotes and escapes, with folded lines. Empty for an empty scalar.
    pub text: String,
    /// Style.
    pub style: ScalarStyle,
    /// Columns before the content of a block scalar.
    pub indent: usize,
}

/// The five ways to write a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScalarStyle {
    /// `text`
    Plain,
    /// `'text'`
    SingleQuoted,
    /// `"text"`
    DoubleQuoted,
    /// `|` and lines
    Literal,
    /// `>` and lines
    Folded,
}

impl Node {
    /// Returns the node of an empty file.
    #[must_use]
    pub fn nothing(source: &Arc<Source>) -> Self {
        let nothing = Scalar { text: String::new(), style: ScalarStyle::Plain, indent: 0 };
        let span = Span { source: Arc::clone(source), start: 0, end: 0 };
        Self { span, kind: NodeKind::Scalar(nothing) }
    }

    /// Returns the node of a source that is one text, and not YAML.
    #[must_use]
    pub fn verbatim(source: &Arc<Source>) -> Self {
        let text = source.text.clone();
        let span = Span { source: Arc::clone(source), start: 0, end: text.len() };
        Self {
            span,
            kind: NodeKind::Scalar(Scalar { text, style: ScalarStyle::Literal, indent: 0 }),
        }
    }

    /// Returns the value of a key. `None` if the node is not a map, or the key is absent or null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        let (_, value) = self.entries()?.iter().find(|(name, _)| name.says(key))?;
        (!value.is_null()).then_some(value)
    }

    /// Whether the node is empty (`key:`) or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.scalar().is_some_and(is_nothing)
    }

    /// The scalar, if it is one.
    #[must_use]
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            NodeKind::Scalar(scalar) => Some(scalar),
            NodeKind::List(_) | NodeKind::Map(_) | NodeKind::Invalid => None,
        }
    }

    /// The text of a scalar that is not null; numbers and truth values as they are written.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.scalar().filter(|it| !is_nothing(it)).map(|it| it.text.as_str())
    }

    /// Whether it is a scalar with this text.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        // The text first: what a scalar means takes longer to tell.
        self.scalar().is_some_and(|it| it.text == text && !is_nothing(it))
    }

    /// Returns the boolean.
    #[must_use]
    pub fn bool(&self) -> Option<bool> {
        match meaning(self.scalar()?) {
            ScalarSense::Bool(value) => Some(value),
            ScalarSense::Null
            | ScalarSense::Int(_)
            | ScalarSense::Number(_)
            | ScalarSense::Text => None,
        }
    }

    /// Returns the integer.
    #[must_use]
    pub fn int(&self) -> Option<i64> {
        match meaning(self.scalar()?) {
            ScalarSense::Int(value) => Some(value),
            ScalarSense::Null
            | ScalarSense::Bool(_)
            | ScalarSense::Number(_)
            | ScalarSense::Text => None,
        }
    }

    /// The number, whole or not.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match meaning(self.scalar()?) {
            #[expect(clippy::cast_precision_loss, reason = "bounds of policy numbers are small")]
            ScalarSense::Int(value) => Some(value as f64),
            ScalarSense::Number(value) => Some(value),
            ScalarSense::Null | ScalarSense::Bool(_) | ScalarSense::Text => None,
        }
    }

    /// The duration: `300s`, `1h30m`.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        parse_duration(self.text()?).ok()
    }

    /// The date, or the point in time.
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        Timestamp::parse(self.text()?)
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self) -> Option<&[Self]> {
        match &self.kind {
            NodeKind::List(items) => Some(items),
            NodeKind::Scalar(_) | NodeKind::Map(_) | NodeKind::Invalid => None,
        }
    }

    /// Returns the items of a list, or the node itself if it is not a list.
    #[must_use]
    pub fn one_or_items(&self) -> &[Self] {
        match &self.kind {
            NodeKind::List(items) => items,
            NodeKind::Scalar(_) | NodeKind::Map(_) | NodeKind::Invalid => {
                std::slice::from_ref(self)
            }
        }
    }

    /// The entries of a map in their order.
    #[must_use]
    pub fn entries(&self) -> Option<&[(Self, Self)]> {
        match &self.kind {
            NodeKind::Map(entries) => Some(entries),
            NodeKind::Scalar(_) | NodeKind::List(_) | NodeKind::Invalid => None,
        }
    }

    /// Returns the value as JSON. Invalid nodes become null.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.kind {
            NodeKind::Scalar(scalar) => match meaning(scalar) {
                ScalarSense::Null => Value::Null,
                ScalarSense::Bool(value) => value.into(),
                ScalarSense::Int(value) => value.into(),
                ScalarSense::Number(value) => value.into(),
                ScalarSense::Text => scalar.text.as_str().into(),
            },
            NodeKind::List(items) => items.iter().map(Self::json).collect(),
            NodeKind::Map(entries) => {
                let text = |key: &Self| key.text().unwrap_or_default().to_owned();
                Value::Object(entries.iter().map(|(key, it)| (text(key), it.json())).collect())
            }
            NodeKind::Invalid => Value::Null,
        }
    }

    /// Returns the span of a byte range of the decoded text: exactly the characters it was written with,
    /// or the whole scalar if they are unknown.
    #[must_use]
    pub fn sub_span(&self, decoded: Range<usize>) -> Span {
        let Span { start, end, .. } = self.span;
        // Most texts are written as they are meant.
        let literal = self.scalar().is_some_and(|it| it.text == self.span.text());
        let range = if literal && decoded.end <= end - start {
            start + decoded.start..start + decoded.end
        } else {
            let map = scalar::decoded_map(self);
            map.and_then(|it| it.source_range(decoded)).unwrap_or(start..end)
        };
        Span { source: self.span.source.clone(), start: range.start, end: range.end }
    }
}
