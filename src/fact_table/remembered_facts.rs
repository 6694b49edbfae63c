//! Facts about the memory of a pack: what its rules remembered. A pack names the entries in `memory.yaml`.

use std::rc::Rc;

use rhai::Dynamic;

use super::FactError;
use super::context::{ContextPart, Object};
use super::dynamic::{count, text_argument, texts};
use super::params::NAME;
use super::row::{FactRow, field, method, number};
pub use super::snapshots::MemorySnapshot;
use super::types::{Evidence::Structure, Subject, Type, Unit};

/// Rows of an entry. `memory.<id>` is named by the pack.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::MemoryEntry,
        "count",
        Unit::Count,
        Structure,
        ["How many texts it remembers.", "memory.deploys.count >= 3"],
        |it, _| Ok(count(remembered(it)?.len())),
    ),
    method(
        Subject::MemoryEntry,
        "has",
        NAME,
        (Type::Bool, Structure),
        ["Whether it remembers a text.", "memory.deploys.has(\"make deploy\")"],
        |it, args| {
            let text = text_argument(args, 0)?;
            Ok(remembered(it)?.iter().any(|it| it.as_str() == text.as_str()).into())
        },
    ),
    field(
        Subject::MemoryEntry,
        "texts",
        Type::Texts,
        Structure,
        ["What it remembers, oldest first.", "memory.deploys.texts.join(\", \") != \"\""],
        |it, _| Ok(texts(remembered(it)?.iter().cloned())),
    ),
];

/// `memory.<id>`: the handle of an entry.
pub(super) fn entry(it: &Object, id: &str) -> Dynamic {
    it.part(ContextPart::MemoryEntry(Rc::from(id)))
}

fn remembered(it: &Object) -> Result<&[String], FactError> {
    let ContextPart::MemoryEntry(id) = &it.part else { return Err("not an entry".into()) };
    match &it.view.stores.memory {
        Some(memory) => Ok(memory.texts.get(&**id).map(Vec::as_slice).unwrap_or_default()),
        None if it.context().recorded => Err(it.context().miss(&format!("what `{id}` remembered"))),
        None => Err("the memory of the pack cannot be read".into()),
    }
}
