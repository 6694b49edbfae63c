//! The hash of the newest line of each decision log, in the user's own state directory. Every stop saves it, so that the removal
//! of a log together with the file of its head is noticed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::document::{DamageAction, FORMAT_VERSION, StoredDocument};
use super::file::Durability;
use super::user::UserDirectory;
use policyd_base::limits::POLICY_FILE_BYTES_MAX;
use policyd_world::World;
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::time::Timestamp;

/// Directory below the user's state directory.
const FOLDER: &str = "log-heads";

/// `log-heads/KEY.json` in the user's state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogWitness {
    /// Version of the format.
    #[serde(default)]
    version: u32,
    /// The log.
    log: PathBuf,
    /// Hash of its newest line.
    pub(super) head: String,
    /// Time of the save.
    pub(super) at: Timestamp,
}

/// Saves the hash of the newest line of a log. Without it, only the removal of the log as a whole remains unnoticed.
pub(super) fn save(world: &dyn World, log: &Path, head: String) {
    let Some(document) = document(world, log) else { return };
    let (version, log, at) = (FORMAT_VERSION, log.to_path_buf(), world.now());
    let Ok(text) = serde_json::to_string(&LogWitness { version, log, head, at }) else { return };
    let is_new = world.stat(document.path()).is_err();
    if is_new && document.create_folder().is_err() {
        return;
    }
    drop(document.open::<LogWitness>().and_then(|it| it.save(&text)));
}

/// Returns what was saved of a log.
pub(super) fn load(world: &dyn World, log: &Path) -> Option<LogWitness> {
    document(world, log)?.load().ok()?
}

fn document<'w>(world: &'w dyn World, log: &Path) -> Option<StoredDocument<'w>> {
    let name = format!("{}.json", hex(&checksum(&[log.as_os_str().as_encoded_bytes()])));
    let path = UserDirectory::State.path(world)?.join(FOLDER).join(name);
    let once = Durability { fsync: false, attempts: 1, ..Durability::default() };
    let document =
        StoredDocument::new(world, path, POLICY_FILE_BYTES_MAX, DamageAction::Quarantine);
    Some(document.saved_as(&once))
}
