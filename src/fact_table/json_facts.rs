//! Facts about a JSON file of the project, such as `package.json`.

use rhai::Dynamic;
use serde_json::Value;

use super::FactError;
use super::context::{ContextPart, Object};
use super::dynamic::{text_argument, texts};
use super::json_paths::{json_text, texts_at, values, whole_number};
use super::params::KEY;
use super::row::{FactRow, method};
use super::types::{Evidence::Structure, Subject, Type, Unit};

/// Rows of a JSON file. Paths are those of probes.
pub(super) const ROWS: &[FactRow] = &[
    method(
        Subject::JsonFile,
        "has",
        KEY,
        (Type::Bool, Structure),
        [
            "Whether there is a value at a path.",
            "project.json(\"package.json\").has(\"scripts.test\")",
        ],
        |it, args| at(it, args, |found| (!found.is_empty()).into()),
    ),
    method(
        Subject::JsonFile,
        "text",
        KEY,
        (Type::Text, Structure),
        [
            "The value at a path as text, else empty.",
            "project.json(\"package.json\").text(\"scripts.test\").contains(\"vitest\")",
        ],
        |it, args| {
            at(it, args, |found| found.first().map(|it| json_text(it)).unwrap_or_default().into())
        },
    ),
    method(
        Subject::JsonFile,
        "flag",
        KEY,
        (Type::Bool, Structure),
        [
            "Whether the value at a path is true.",
            "project.json(\"package.json\").flag(\"private\")",
        ],
        |it, args| {
            at(it, args, |found| found.first().is_some_and(|it| **it == Value::Bool(true)).into())
        },
    ),
    method(
        Subject::JsonFile,
        "number",
        KEY,
        (Type::Int, Structure),
        [
            "The whole number at a path; 0 without a value, and unknown for another value.",
            "project.json(\"package.json\").number(\"config.port\") > 0",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            whole_number(&values(value(it)?, &path))
        },
    )
    .of_unit(Unit::Unknown)
    .with_range((i64::MIN, i64::MAX)),
    method(
        Subject::JsonFile,
        "list",
        KEY,
        (Type::Texts, Structure),
        [
            "The values at a path, as `probes.ID.list` has them.",
            "project.json(\"package.json\").list(\"workspaces[]\").len() > 0",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            Ok(texts(texts_at(value(it)?, &path)))
        },
    ),
];

fn at(
    it: &Object,
    args: &[Dynamic],
    look: impl FnOnce(Vec<&Value>) -> Dynamic,
) -> Result<Dynamic, FactError> {
    let path = text_argument(args, 0)?;
    Ok(look(values(value(it)?, &path)))
}

fn value(it: &Object) -> Result<&Value, FactError> {
    if let ContextPart::JsonFile(value) = &it.part { Ok(value) } else { Err("not JSON".into()) }
}
