//! The local copy of documents that only the shared store contains: one file for each kind, below the user's state.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::limits::{HOOK_LOCK_WAIT, MIRROR_BYTES_MAX};
use crate::store::document::{DocumentContent, Documents};
use crate::store::file::Durability;
use crate::time::Timestamp;
use crate::world::{World, WorldError};

/// Documents of one kind by name.
pub(super) type MirrorDocuments = BTreeMap<String, Value>;

/// The local copy of one kind.
pub(super) struct Mirror<'a> {
    documents: Documents<'a>,
    file: String,
}

impl<'a> Mirror<'a> {
    /// Returns the copy of a kind in the directory of the shared store.
    pub(super) fn new(
        world: &'a dyn World,
        folder: &Path,
        kind: &str,
        durability: &Durability,
    ) -> Self {
        let durability = durability.clone();
        let documents = Documents::new(world, folder, durability, HOOK_LOCK_WAIT, MIRROR_BYTES_MAX);
        Self { documents, file: format!("{kind}.json") }
    }

    /// Reads all documents without a lock. A damaged copy is empty.
    pub(super) fn all(&self) -> MirrorDocuments {
        match self.documents.read(&self.file) {
            Ok(DocumentContent::Value(value)) => documents_of(value),
            Ok(DocumentContent::Nothing | DocumentContent::Damaged) | Err(_) => BTreeMap::new(),
        }
    }

    /// Changes documents under a lock. Nothing is written if nothing changed.
    pub(super) fn change<T>(
        &self,
        now: Timestamp,
        work: impl FnOnce(&mut MirrorDocuments) -> Result<T, WorldError>,
    ) -> Result<T, WorldError> {
        self.documents.world.create_folder(&self.documents.root)?;
        let _held = self.documents.lock(&format!(".{}.lock", self.file), &[])?;
        let known = self.documents.read_to_change(&self.file, now)?;
        let known = known.map(documents_of).unwrap_or_default();
        let mut next = known.clone();
        let result = work(&mut next)?;
        if next != known {
            self.documents.save(&self.file, &format!("{}\n", json!(next)))?;
        }
        Ok(result)
    }
}

fn documents_of(value: Value) -> MirrorDocuments {
    match value {
        Value::Object(fields) => fields.into_iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            BTreeMap::new()
        }
    }
}

/// Removes the documents with the oldest times in a field, beyond a limit.
pub(super) fn forget_oldest(all: &mut MirrorDocuments, field: &str, kept: usize) {
    let time = |it: &Value| it.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    while all.len() > kept {
        let oldest = all.iter().min_by_key(|(_, it)| time(it)).map(|(id, _)| id.clone());
        let Some(oldest) = oldest else { return };
        all.remove(&oldest);
    }
}
