//! Records: what the rules of one file speak of, such as the `task` of `dead_letter.yaml`.
//! Lives here: the shape that expressions are typed by, and the values they are evaluated on.

use std::collections::BTreeMap;

use rhai::Dynamic;
use serde::{Deserialize, Serialize};

use super::FactError;
use super::types::{NameClass, Type, Unit};

/// What a record holds: its name in expressions, and its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Its name: `task`.
    pub name: String,
    /// Fields that expressions can read.
    pub fields: Vec<RecordField>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordField {
    /// Name in expressions: the part after the dot in `task.attempts`.
    pub name: String,
    /// Type of its value: a boolean, a number, a decimal, a text, or a list of texts.
    pub result: Type,
    /// One sentence.
    pub doc: String,
    /// The values it can have, where they are few.
    pub values: Vec<String>,
    /// The limits of its number.
    pub limits: Limits,
    /// What its number counts. Only fields that policyd defines have one.
    #[serde(skip)]
    pub unit: Option<Unit>,
    /// The kind of names that its value is.
    #[serde(skip)]
    pub ids: Option<NameClass>,
}

/// The least and the greatest number that a field can have. `None`: not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The least number.
    pub min: Option<i64>,
    /// The greatest number.
    pub max: Option<i64>,
}

impl Limits {
    /// The limits of a count: zero or more.
    pub const COUNT: Self = Self { min: Some(0), max: None };

    /// Returns whether a number is within the limits.
    #[must_use]
    pub fn contains(self, number: f64) -> bool {
        self.min.is_none_or(|it| as_decimal(it) <= number)
            && self.max.is_none_or(|it| number <= as_decimal(it))
    }

    /// Returns whether no number is within the limits.
    #[must_use]
    pub fn are_contradictory(self) -> bool {
        self.min.zip(self.max).is_some_and(|(min, max)| min > max)
    }

    /// Formats the limits, such as `from 0 to 1`. `None` without a limit.
    #[must_use]
    pub fn text(self) -> Option<String> {
        match (self.min, self.max) {
            (Some(min), Some(max)) => Some(format!("from {min} to {max}")),
            (Some(min), None) => Some(format!("at least {min}")),
            (None, Some(max)) => Some(format!("at most {max}")),
            (None, None) => None,
        }
    }

    /// Returns the least and the greatest whole number within the limits.
    #[must_use]
    pub fn range(self) -> (i64, i64) {
        (self.min.unwrap_or(i64::MIN), self.max.unwrap_or(i64::MAX))
    }
}

/// A whole number that is compared with a decimal.
#[expect(clippy::cast_precision_loss, reason = "limits are far below the precision of a decimal")]
pub(super) fn as_decimal(number: i64) -> f64 {
    number as f64
}

impl RecordField {
    /// A field that can have any value of its type; counts begin at zero.
    #[must_use]
    pub fn new(name: &str, result: Type, doc: &str) -> Self {
        let values = Vec::new();
        let (name, doc, limits) = (name.to_owned(), doc.to_owned(), Limits::COUNT);
        Self { name, result, doc, values, limits, unit: None, ids: None }
    }

    /// The same with what its number counts.
    #[must_use]
    pub fn of_unit(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// The same with the kind of names that its value is.
    #[must_use]
    pub fn of_ids(self, ids: NameClass) -> Self {
        Self { ids: Some(ids), ..self }
    }

    /// The same of a number that counts from one.
    #[must_use]
    pub fn from_one(self) -> Self {
        Self { limits: Limits { min: Some(1), ..self.limits }, ..self }
    }

    /// The same with the closed set of its values.
    #[must_use]
    pub fn of_values(self, values: &[&str]) -> Self {
        Self { values: values.iter().map(|it| (*it).to_owned()).collect(), ..self }
    }
}

impl Shape {
    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&RecordField> {
        self.fields.iter().find(|it| it.name == name)
    }

    /// The field at a path such as `task.attempts`.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&RecordField> {
        self.field(path.strip_prefix(self.name.as_str())?.strip_prefix('.')?)
    }
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Decimal(f64),
    /// Text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
}

impl RecordValue {
    /// The value of a field that was not given: false, 0, empty.
    #[must_use]
    pub fn empty(kind: Type) -> Self {
        let known = [
            (Type::Bool, Self::Bool(false)),
            (Type::Int, Self::Int(0)),
            (Type::Decimal, Self::Decimal(0.0)),
            (Type::Texts, Self::Texts(Vec::new())),
        ];
        let found = known.into_iter().find(|(it, _)| *it == kind);
        found.map_or(Self::Text(String::new()), |(_, empty)| empty)
    }
}

impl From<bool> for RecordValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for RecordValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for RecordValue {
    fn from(value: f64) -> Self {
        Self::Decimal(value)
    }
}

impl From<&str> for RecordValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<Vec<String>> for RecordValue {
    fn from(values: Vec<String>) -> Self {
        Self::Texts(values)
    }
}

/// One record: what its fields hold.
#[derive(Debug, Clone, PartialEq)]
pub struct FactRecord {
    /// Its name in expressions.
    pub name: String,
    values: BTreeMap<String, RecordValue>,
}

impl FactRecord {
    /// A record of this shape in which every field holds what an absent one does.
    #[must_use]
    pub fn new(shape: &Shape) -> Self {
        let empty = |it: &RecordField| (it.name.clone(), RecordValue::empty(it.result));
        Self { name: shape.name.clone(), values: shape.fields.iter().map(empty).collect() }
    }

    /// The same with the value of one field.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<RecordValue>) -> Self {
        self.set(field, value);
        self
    }

    /// Sets a field; the shape says which there are.
    pub fn set(&mut self, field: &str, value: impl Into<RecordValue>) {
        if let Some(held) = self.values.get_mut(field) {
            *held = value.into();
        }
    }

    /// What a field holds.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&RecordValue> {
        self.values.get(field)
    }

    /// What a field holds, as expressions see it.
    pub(super) fn value(&self, field: &str) -> Result<Dynamic, FactError> {
        match self.values.get(field) {
            Some(RecordValue::Bool(value)) => Ok((*value).into()),
            Some(RecordValue::Int(value)) => Ok((*value).into()),
            Some(RecordValue::Decimal(value)) => Ok((*value).into()),
            Some(RecordValue::Text(text)) => Ok(text.clone().into()),
            Some(RecordValue::Texts(items)) => Ok(super::dynamic::texts(items.iter().cloned())),
            None => Err(format!("`{}` has no `{field}`", self.name).into()),
        }
    }
}
