//! `name=value` words of a command line, typed by a table of names.

use serde_json::{Map, Number, Value};

use crate::policy::shapes::resilience::SEVERITIES;
use crate::policy::signals::{FieldType, SignalKind};
use crate::script::record::{Held, Record, Shape};
use crate::script::types::Type;
use crate::source::suggest;
use crate::time::Timestamp;

/// A word cut at its first `=`.
fn cut(word: &str) -> Result<(&str, &str), String> {
    word.split_once('=').ok_or_else(|| format!("`{word}` is no `name=value`"))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let help = suggest::did_you_mean(name, known).map(|it| format!("; {it}")).unwrap_or_default();
    format!("{what} has no `{name}`{help}")
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// A record of these words; `known` has the values of what is not given.
///
/// # Errors
/// A name or a value that does not fit, in one sentence with the cure.
pub(in crate::cli) fn record(
    shape: &Shape,
    known: Record,
    words: &[String],
) -> Result<Record, String> {
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
            Held::Bool(flag(text).ok_or_else(|| wrong("true or false"))?)
        } else if field.result == Type::Int {
            Held::Int(text.parse().map_err(|_| wrong("a whole number"))?)
        } else if field.result == Type::Decimal {
            let number: Option<f64> = text.parse().ok().filter(|it: &f64| it.is_finite());
            Held::Decimal(number.ok_or_else(|| wrong("a number"))?)
        } else if field.result == Type::Texts {
            let mut items = match record.get(name) {
                Some(Held::Texts(items)) => items.clone(),
                Some(Held::Bool(_) | Held::Int(_) | Held::Decimal(_) | Held::Text(_)) | None => {
                    vec![]
                }
            };
            items.push(text.to_owned());
            Held::Texts(items)
        } else {
            Held::from(text)
        };
        record.set(name, held);
    }
    Ok(record)
}

/// What a signal of this kind says, by these words.
///
/// # Errors
/// A field or a value that does not fit, or a field that is missing.
pub(super) fn signal(kind: &SignalKind, words: &[String]) -> Result<Map<String, Value>, String> {
    let mut said = Map::new();
    let names: Vec<&str> = kind.fields.iter().map(|it| it.name.as_str()).collect();
    for word in words {
        let (name, text) = cut(word)?;
        let field = kind.fields.iter().find(|it| it.name == name);
        let field = field.ok_or_else(|| unknown(&format!("`{}`", kind.id), name, &names))?;
        let wrong = |wanted: &str| format!("`{name}` takes {wanted}, not `{text}`");
        let value = match field.kind {
            FieldType::Text => text.into(),
            FieldType::Number => number(text).ok_or_else(|| wrong("a number"))?.into(),
            FieldType::Flag => flag(text).ok_or_else(|| wrong("true or false"))?.into(),
            FieldType::List => {
                let mut items = match said.remove(name) {
                    Some(Value::Array(items)) => items,
                    _ => vec![],
                };
                items.push(text.into());
                items.into()
            }
            FieldType::Time => {
                let time = Timestamp::parse(text);
                time.ok_or_else(|| wrong("a time such as 2026-01-25T10:30:00Z"))?.to_string().into()
            }
            FieldType::Severity if SEVERITIES.contains(&text) => text.into(),
            FieldType::Severity => return Err(wrong(&SEVERITIES.join(", "))),
        };
        if said.insert(name.to_owned(), value).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    match kind.fields.iter().find(|it| it.required && !said.contains_key(&it.name)) {
        Some(missing) => Err(format!("`{}` needs `{}=…`", kind.id, missing.name)),
        None => Ok(said),
    }
}

fn number(text: &str) -> Option<Number> {
    let whole = text.parse::<i64>().ok().map(Number::from);
    whole.or_else(|| Number::from_f64(text.parse().ok()?))
}
