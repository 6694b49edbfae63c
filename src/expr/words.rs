//! Records as `name=value` words, as people write them in a shell: typed by their shape, a slip told
//! with its cure.

use super::record::{Field, FieldValue, Record, Shape, as_decimal};
use super::types::Type;
use crate::source::suggest;

/// A word cut at its first `=`.
///
/// # Errors
/// There is none.
pub fn cut(word: &str) -> Result<(&str, &str), String> {
    word.split_once('=').ok_or_else(|| format!("`{word}` is no `name=value`"))
}

/// What is said of a name that is not known.
#[must_use]
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let help = suggest::did_you_mean(name, known).map(|it| format!("; {it}")).unwrap_or_default();
    format!("{what} has no `{name}`{help}")
}

/// What a text says that must be true or false.
#[must_use]
pub fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Checks that a number is within the limits of its field.
fn check_limits(field: &Field, text: &str, number: f64) -> Result<(), String> {
    let wanted = field.limits.text().filter(|_| !field.limits.contains(number));
    wanted.map_or(Ok(()), |wanted| Err(format!("`{}` is {wanted}, not `{text}`", field.name)))
}

/// A record of these words; `known` has the values of what is not given.
///
/// # Errors
/// A name or a value that does not fit, in one sentence with the cure.
pub fn record(shape: &Shape, known: Record, words: &[String]) -> Result<Record, String> {
    let mut record = known;
    let names: Vec<&str> = shape.fields.iter().map(|it| it.name.as_str()).collect();
    for word in words {
        let (name, text) = cut(word)?;
        let field =
            shape.field(name).ok_or_else(|| unknown(&format!("`{}`", shape.name), name, &names))?;
        let wrong = |wanted: &str| format!("`{name}` takes {wanted}, not `{text}`");
        if !field.values.is_empty() && !field.values.iter().any(|it| it == text) {
            let values: Vec<&str> = field.values.iter().map(String::as_str).collect();
            let help = suggest::did_you_mean(text, &values);
            let help = help.unwrap_or_else(|| format!("it takes {}", values.join(", ")));
            return Err(format!("`{name}` is never `{text}`; {help}"));
        }
        let held = if field.result == Type::Bool {
            FieldValue::Bool(flag(text).ok_or_else(|| wrong("true or false"))?)
        } else if field.result == Type::Int {
            let number: i64 = text.parse().map_err(|_| wrong("a whole number"))?;
            check_limits(field, text, as_decimal(number))?;
            FieldValue::Int(number)
        } else if field.result == Type::Decimal {
            let number: Option<f64> = text.parse().ok().filter(|it: &f64| it.is_finite());
            let number = number.ok_or_else(|| wrong("a number"))?;
            check_limits(field, text, number)?;
            FieldValue::Decimal(number)
        } else if field.result == Type::Texts {
            let mut items = match record.get(name) {
                Some(FieldValue::Texts(items)) => items.clone(),
                Some(
                    FieldValue::Bool(_)
                    | FieldValue::Int(_)
                    | FieldValue::Decimal(_)
                    | FieldValue::Text(_),
                )
                | None => {
                    vec![]
                }
            };
            items.push(text.to_owned());
            FieldValue::Texts(items)
        } else {
            FieldValue::from(text)
        };
        record.set(name, held);
    }
    Ok(record)
}
