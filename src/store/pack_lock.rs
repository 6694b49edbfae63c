//! The lock file of a pack, `policies.lock` beside its manifest: which content each remote pack has. Hooks load exactly
//! this content. Trust covers it, because the hash of a pack contains the hashes of its remote packs.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::administrator;
use super::document::{DamageAction, DocumentError, FORMAT_VERSION, StoredDocument};
use policyd_base::limits::PACK_LOCK_BYTES_MAX;
use policyd_policy::pack_list::is_hash;
use policyd_world::World;

/// File name beside the manifest.
pub const LOCK_FILE: &str = "policies.lock";

/// The content of a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["version", "packs"]))]
pub struct PackLock {
    /// Version of the format.
    #[serde(default)]
    version: u32,
    /// The remote packs, in the order of the manifest.
    pub packs: Vec<LockedPack>,
}

/// The content of one remote pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockedPack {
    /// The source as the manifest states it.
    pub source: String,
    /// Commit or digest that the source stood for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// SHA-256 of the file list of the content.
    pub sha256: String,
    /// Name of the pack.
    pub name: String,
    /// Version of the pack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack_version: Option<String>,
    /// Public key by which the pack was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl PackLock {
    /// Returns a lock file with these packs.
    #[must_use]
    pub fn new(packs: Vec<LockedPack>) -> Self {
        Self { version: FORMAT_VERSION, packs }
    }

    /// Returns the pack of a source.
    #[must_use]
    pub fn get(&self, source: &str) -> Option<&LockedPack> {
        self.packs.iter().find(|it| it.source == source)
    }

    /// Returns the path of the lock file of a pack directory.
    #[must_use]
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(LOCK_FILE)
    }

    /// Loads the lock file of a pack directory. Without a file it is empty.
    ///
    /// # Errors
    /// The file cannot be read, or is not a lock file of this version.
    pub fn load(world: &dyn World, folder: &Path) -> Result<Self, DocumentError> {
        let document = document(world, folder);
        let lock: Self = document.load()?.unwrap_or_default();
        let is_valid = lock.packs.iter().all(|it| is_hash(&it.sha256));
        if is_valid { Ok(lock) } else { Err(document.damaged("a `sha256` is not a hash")) }
    }

    /// Saves the lock file of a pack directory.
    ///
    /// # Errors
    /// The file is not used, or cannot be written.
    pub fn save(&self, world: &dyn World, folder: &Path) -> Result<(), DocumentError> {
        let document = document(world, folder);
        document.open::<Self>()?.save(&format!("{:#}\n", json!(self)))?;
        let path = document.path().to_owned();
        let published = match administrator::is_policies(folder) {
            true => world.publish(&path),
            false => Ok(()),
        };
        published.map_err(|error| DocumentError::NotSaved { path, why: error.to_string() })
    }
}

fn document<'a>(world: &'a dyn World, folder: &Path) -> StoredDocument<'a> {
    let path = PackLock::path(folder);
    StoredDocument::new(world, path, PACK_LOCK_BYTES_MAX, DamageAction::Refuse)
}
