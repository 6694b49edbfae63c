//! Parses the fields of a signal from `name=value` words of a command line.

use serde_json::{Map, Number, Value};

use policyd_fact_table::words::{WordError, cut, flag};
use policyd_policy::records::SEVERITIES;
use policyd_policy::signals::{FieldType, SignalKind};
use policyd_yaml::time::Timestamp;

/// Parses the fields of a signal of one type.
///
/// # Errors
/// [`WordError`] for an unknown, repeated, or missing field, and for an invalid value.
pub fn parse(kind: &SignalKind, words: &[String]) -> Result<Map<String, Value>, WordError> {
    let mut said = Map::new();
    let names: Vec<&str> = kind.fields.iter().map(|it| it.name.as_str()).collect();
    for word in words {
        let (name, text) = cut(word)?;
        let field = kind.fields.iter().find(|it| it.name == name);
        let field = field.ok_or_else(|| WordError::unknown_name(&kind.id, name, &names))?;
        let wrong = |expected: &str| WordError::wrong_type(name, expected, text);
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
            return Err(WordError::Repeated(name.to_owned()));
        }
    }
    match kind.fields.iter().find(|it| it.required && !said.contains_key(&it.name)) {
        Some(it) => Err(WordError::Missing { owner: kind.id.clone(), name: it.name.clone() }),
        None => Ok(said),
    }
}

fn number(text: &str) -> Option<Number> {
    let whole = text.parse::<i64>().ok().map(Number::from);
    whole.or_else(|| Number::from_f64(text.parse().ok()?))
}
