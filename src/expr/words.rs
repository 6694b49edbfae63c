//! Parses `name=value` words of a command line into records, typed by a shape.

use super::record::{FactRecord, RecordField, RecordValue, Shape, as_decimal};
use super::types::Type;
use policyd_yaml::suggest;

/// Why a `name=value` word is invalid. Each message is one line with the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    #[error("`{0}` is not `name=value`")]
    NoValue(String),
    /// `help` is empty, or begins with a semicolon.
    #[error("`{owner}` has no `{name}`{help}")]
    UnknownName { owner: String, name: String, help: String },
    /// The value does not have the type of the name.
    #[error("`{name}` takes {expected}, not `{text}`")]
    WrongType { name: String, expected: String, text: String },
    #[error("`{name}` is {limits}, not `{text}`")]
    OutOfRange { name: String, limits: String, text: String },
    /// The name takes a closed set of values.
    #[error("`{name}` is never `{text}`; {help}")]
    UnknownValue { name: String, text: String, help: String },
    #[error("`{0}` is given twice")]
    Repeated(String),
    #[error("`{owner}` needs `{name}=…`")]
    Missing { owner: String, name: String },
}

impl WordError {
    /// Creates the error for a name that is not one of `known`.
    #[must_use]
    pub fn unknown_name(owner: &str, name: &str, known: &[&str]) -> Self {
        let help = suggest::did_you_mean(name, known).unwrap_or_else(|| match known {
            [] => "it has no fields".to_owned(),
            known => format!("it has {}", known.join(", ")),
        });
        let help = format!("; {help}");
        Self::UnknownName { owner: owner.to_owned(), name: name.to_owned(), help }
    }

    /// Creates the error for a value that does not have the expected type.
    #[must_use]
    pub fn wrong_type(name: &str, expected: &str, text: &str) -> Self {
        let [name, expected, text] = [name, expected, text].map(str::to_owned);
        Self::WrongType { name, expected, text }
    }
}

/// Splits a word at its first `=` into name and value.
///
/// # Errors
/// [`WordError::NoValue`] if the word has no `=`.
pub fn cut(word: &str) -> Result<(&str, &str), WordError> {
    word.split_once('=').ok_or_else(|| WordError::NoValue(word.to_owned()))
}

/// Parses a boolean: `true`, `yes`, `1`, `false`, `no`, or `0`, in any case.
#[must_use]
pub fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Checks that a number is within the limits of its field.
fn check_limits(field: &RecordField, text: &str, number: f64) -> Result<(), WordError> {
    let limits = field.limits.text().filter(|_| !field.limits.contains(number));
    limits.map_or(Ok(()), |limits| {
        let (name, text) = (field.name.clone(), text.to_owned());
        Err(WordError::OutOfRange { name, limits: limits.to_string(), text })
    })
}

/// Parses words into a record. `known` has the values of names that are not given.
///
/// # Errors
/// [`WordError`] for a word without `=`, an unknown name, or a value of another type or range.
pub fn record(shape: &Shape, known: FactRecord, words: &[String]) -> Result<FactRecord, WordError> {
    let mut record = known;
    let names: Vec<&str> = shape.fields.iter().map(|it| it.name.as_str()).collect();
    for word in words {
        let (name, text) = cut(word)?;
        let field =
            shape.field(name).ok_or_else(|| WordError::unknown_name(&shape.name, name, &names))?;
        let wrong = |expected: &str| WordError::wrong_type(name, expected, text);
        if !field.values.is_empty() && !field.values.iter().any(|it| it == text) {
            let values: Vec<&str> = field.values.iter().map(String::as_str).collect();
            let help = suggest::did_you_mean(text, &values);
            let help = help.unwrap_or_else(|| format!("it takes {}", values.join(", ")));
            let (name, text) = (name.to_owned(), text.to_owned());
            return Err(WordError::UnknownValue { name, text, help });
        }
        let held = if field.result == Type::Bool {
            RecordValue::Bool(flag(text).ok_or_else(|| wrong("true or false"))?)
        } else if field.result == Type::Int {
            let number: i64 = text.parse().map_err(|_| wrong("a whole number"))?;
            check_limits(field, text, as_decimal(number))?;
            RecordValue::Int(number)
        } else if field.result == Type::Decimal {
            let number: Option<f64> = text.parse().ok().filter(|it: &f64| it.is_finite());
            let number = number.ok_or_else(|| wrong("a number"))?;
            check_limits(field, text, number)?;
            RecordValue::Decimal(number)
        } else if field.result == Type::Texts {
            let mut items = match record.get(name) {
                Some(RecordValue::Texts(items)) => items.clone(),
                Some(
                    RecordValue::Bool(_)
                    | RecordValue::Int(_)
                    | RecordValue::Decimal(_)
                    | RecordValue::Text(_),
                )
                | None => {
                    vec![]
                }
            };
            items.push(text.to_owned());
            RecordValue::Texts(items)
        } else {
            RecordValue::from(text)
        };
        record.set(name, held);
    }
    Ok(record)
}
