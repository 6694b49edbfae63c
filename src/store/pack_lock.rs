//! The lock file of a pack, `policies.lock` beside its manifest: which content each remote pack has. Hooks load exactly
//! this content. Trust covers it, because the hash of a pack contains the hashes of its remote packs.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::administrator;
use super::file::{self, Durability, Saved};
use super::user::{ChoiceError, FileProblem};
use policyd_base::limits::PACK_LOCK_BYTES_MAX;
use policyd_policy::pack_list::is_hash;
use policyd_world::{World, WorldError};

/// File name beside the manifest.
pub const LOCK_FILE: &str = "policies.lock";
const FORMAT_VERSION: u32 = 1;

/// The content of a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PackLock {
    /// Version of the format.
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
    /// [`FileProblem`] if the file cannot be read, or is not a lock file of this version.
    pub fn load(world: &dyn World, folder: &Path) -> Result<Self, FileProblem> {
        let bytes = match world.read(&Self::path(folder), PACK_LOCK_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(WorldError::NotFound) => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let lock: Self = serde_json::from_slice(&bytes)?;
        if lock.version != FORMAT_VERSION {
            return Err(FileProblem::Version);
        }
        let is_valid = lock.packs.iter().all(|it| is_hash(&it.sha256));
        Some(lock).filter(|_| is_valid).ok_or(FileProblem::Shape)
    }

    /// Saves the lock file of a pack directory.
    ///
    /// # Errors
    /// [`ChoiceError::NotSaved`] if the file cannot be written.
    pub fn save(&self, world: &dyn World, folder: &Path) -> Result<(), ChoiceError> {
        let path = Self::path(folder);
        let text = format!("{:#}\n", json!(self));
        match file::save(world, &path, text.as_bytes(), &Durability::default()) {
            Saved::NotSaved { why, .. } => Err(ChoiceError::NotSaved { path, why }),
            Saved::Durable { .. } | Saved::Degraded { .. }
                if administrator::is_policies(folder) =>
            {
                let published = world.publish(&path);
                published.map_err(|error| ChoiceError::NotSaved { path, why: error.to_string() })
            }
            Saved::Durable { .. } | Saved::Degraded { .. } => Ok(()),
        }
    }
}
