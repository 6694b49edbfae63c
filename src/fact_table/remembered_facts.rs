//! Facts about the memory of a pack: what its rules remembered. A pack names the entries in `memory.yaml`.

use std::rc::Rc;

use rhai::Dynamic;

use super::FactError;
use super::context::{ContextPart, Object};
use super::dynamic::{count, text_argument, texts};
use super::invariant::Invariant;
use super::params::NAME;
use super::row::{FactRow, field, method, number};
pub use super::snapshots::MemorySnapshot;
use super::types::{Evidence::Structure, Subject, Type, Unit};
use policyd_state::memory::kept_text;

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
            let text = kept_text(&text_argument(args, 0)?);
            Ok(remembered(it)?.contains(&text).into())
        },
    ),
    method(
        Subject::MemoryEntry,
        "times",
        NAME,
        (Type::Int, Structure),
        ["How often it remembers a text.", "memory.deploys.times(\"make deploy\") >= 3"],
        |it, args| {
            let text = kept_text(&text_argument(args, 0)?);
            Ok(count(remembered(it)?.iter().filter(|it| **it == text).count()))
        },
    )
    .of_unit(Unit::Count)
    .always(&[Invariant::AtMost("count")]),
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
        Some(memory) if memory.unknown.contains(&**id) => {
            Err("the transcript cannot be read, so the episode is not known".into())
        }
        Some(memory) => Ok(memory.texts.get(&**id).map(Vec::as_slice).unwrap_or_default()),
        None if it.context().recorded => Err(it.context().miss(&format!("what `{id}` remembered"))),
        None => Err("the memory of the pack cannot be read".into()),
    }
}
