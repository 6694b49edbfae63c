//! What policyd last wrote into the files of the user's choices: a digest per file, in the user's state directory.
//! `foreign_choices` compares the files with it.
//!
//! The digest proves nothing: a process of the same user can write it, too. Guards refuse both to an agent, and one
//! copy of a directory does not reach both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::document::{DamageAction, DocumentError, StoredDocument};
use super::file::Durability;
use super::user::UserDirectory;
use super::user_state::UserStateFile;
use policyd_base::limits::USER_STATE_BYTES_MAX;
use policyd_world::{World, WorldError};
use policyd_yaml::checksum::{checksum, hex};

/// Below the user's state directory.
const FILE: &str = "choices.json";
/// Lock of the record, which [`UserStateFile`] creates.
const LOCK: &str = ".choices.lock";
/// An event waits no longer for another process that records or reports.
const LOCK_WAIT: Duration = Duration::from_millis(200);
/// The digest of a file that does not exist.
pub(super) const MISSING: &str = "";

/// The digests by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WrittenFiles {
    files: BTreeMap<String, String>,
}

impl WrittenFiles {
    /// Loads the record. `None` if the user has no state directory.
    ///
    /// # Errors
    /// The record cannot be used.
    pub(super) fn load(world: &dyn World) -> Result<Option<Self>, DocumentError> {
        let Some(record) = record_path(world) else { return Ok(None) };
        let refuse = DamageAction::Refuse;
        let document = StoredDocument::new(world, record, USER_STATE_BYTES_MAX, refuse);
        Ok(Some(document.load()?.unwrap_or_default()))
    }

    /// Whether the digest of a file is the recorded one. A file that was never recorded counts as missing.
    pub(super) fn has(&self, path: &Path, digest: &str) -> bool {
        let known = self.files.get(&*path.to_string_lossy()).map(String::as_str);
        known.unwrap_or(MISSING) == digest
    }

    /// Whether a digest of the file is recorded.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.files.contains_key(&*path.to_string_lossy())
    }
}

fn record_path(world: &dyn World) -> Option<PathBuf> {
    UserDirectory::State.path(world).map(|it| it.join(FILE))
}

/// Records the content that policyd wrote into a file. If it cannot be recorded, the file is reported later.
pub fn record(world: &dyn World, path: &Path, bytes: &[u8]) {
    update(world, &[(path.to_path_buf(), digest(bytes))]);
}

/// Whether the record existed and was removed: its lock stays.
pub(super) fn is_removed(world: &dyn World) -> bool {
    record_path(world).is_some_and(|record| {
        let lock = record.with_file_name(LOCK);
        world.stat(&record) == Err(WorldError::NotFound) && world.stat(&lock).is_ok()
    })
}

/// Saves digests, as far as possible. A record that cannot be used stays as it is.
pub(super) fn update(world: &dyn World, digests: &[(PathBuf, String)]) {
    let opened = UserStateFile::open(world, FILE, DamageAction::Refuse, LOCK_WAIT);
    let Ok((file, mut written)): Result<(_, WrittenFiles), _> = opened else { return };
    for (path, digest) in digests {
        written.files.insert(path.to_string_lossy().into_owned(), digest.clone());
    }
    drop(file.save(&written, &Durability::default()));
}

/// Returns the digest of a content.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex(&checksum(&[bytes]))
}
