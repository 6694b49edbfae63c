//! The memory of a pack: one document for a session, and one for all sessions of a project.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{DamageAction, DocumentError, StoredDocument, with_version};
use super::file::Durability;
use policyd_base::limits::STATE_FILE_BYTES_MAX;
use policyd_state::memory::MemoryEntry;
use policyd_world::World;

/// Name of the file.
pub const FILE: &str = "memory.json";
/// Name of its lock.
const LOCK: &str = ".memory.lock";

/// The saved form.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PackMemoryFile {
    /// The entries of `memory.yaml` that rules changed, by id.
    pub entries: BTreeMap<String, MemoryEntry>,
}

/// The memory in one directory.
pub struct MemoryStore<'a>(StoredDocument<'a>);

impl<'a> MemoryStore<'a> {
    /// The memory in a directory.
    #[must_use]
    pub fn new(world: &'a dyn World, directory: &Path, durability: &Durability) -> Self {
        let (path, if_damaged) = (directory.join(FILE), DamageAction::Quarantine);
        let document = StoredDocument::new(world, path, STATE_FILE_BYTES_MAX, if_damaged);
        Self(document.saved_as(durability))
    }

    /// Reads the entries.
    ///
    /// # Errors
    /// The file is damaged, newer, or cannot be read.
    pub fn load(&self) -> Result<BTreeMap<String, MemoryEntry>, DocumentError> {
        Ok(self.0.load::<PackMemoryFile>()?.unwrap_or_default().entries)
    }

    /// Changes the entries under a lock. Returns why a loss of power can undo it, `None` if it cannot.
    ///
    /// # Errors
    /// Another process holds the lock longer than `wait`, the file is newer, or it cannot be read or written.
    pub fn change(
        &self,
        wait: Duration,
        change: impl FnOnce(&mut BTreeMap<String, MemoryEntry>),
    ) -> Result<Option<String>, DocumentError> {
        let _held = self.0.lock(LOCK, wait)?;
        let mut edit = self.0.open::<PackMemoryFile>()?;
        let mut file = edit.value.take().unwrap_or_default();
        change(&mut file.entries);
        edit.save(&format!("{}\n", with_version(&file)))
    }
}
