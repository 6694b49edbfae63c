//! What policyd last wrote into the files of the user's choices: a digest per file, in the user's state directory.
//! A file with another content was written by another program, without a confirmation. It is reported once.
//!
//! The digest proves nothing: a process of the same user can write it, too. Guards refuse both to an agent, and one
//! copy of a directory does not reach both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::choice_files::{ChoiceFile, ChoiceFiles};
use super::file::Durability;
use super::user::UserDirectory;
use super::user_state::UserStateFile;
use crate::checksum::{checksum, hex};
use crate::limits::USER_STATE_BYTES_MAX;
use crate::world::{World, WorldError};

/// Below the user's state directory.
const FILE: &str = "choices.json";
/// An event waits no longer for another process that records or reports.
const LOCK_WAIT: Duration = Duration::from_millis(200);
/// The digest of a file that does not exist.
const MISSING: &str = "";

/// The digests by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct WrittenFiles {
    files: BTreeMap<String, String>,
}

impl WrittenFiles {
    fn has(&self, path: &Path, digest: &str) -> bool {
        let known = self.files.get(&*path.to_string_lossy()).map(String::as_str);
        known.unwrap_or(MISSING) == digest
    }
}

/// Records the content that policyd wrote into a file. If it cannot be recorded, the file is reported later.
pub fn record(world: &dyn World, path: &Path, bytes: &[u8]) {
    update(world, &[(path.to_path_buf(), digest(bytes))]);
}

/// Returns the files of the user's choices for a project that another program changed, and records their content, so
/// that each change is returned once.
pub fn take_foreign_changes(world: &dyn World, files: &ChoiceFiles) -> Vec<PathBuf> {
    let Some(record) = UserDirectory::State.path(world).map(|it| it.join(FILE)) else {
        return Vec::new();
    };
    let current = files.all().filter_map(|file| Some((file.path.clone(), current_digest(file)?)));
    let current: Vec<(PathBuf, String)> = current.collect();
    let written: WrittenFiles = world
        .read(&record, USER_STATE_BYTES_MAX)
        .ok()
        .and_then(|it| serde_json::from_slice(&it).ok())
        .unwrap_or_default();
    let is_foreign = |it: &&(PathBuf, String)| !written.has(&it.0, &it.1);
    let foreign: Vec<(PathBuf, String)> = current.iter().filter(is_foreign).cloned().collect();
    if foreign.is_empty() {
        return Vec::new();
    }
    update(world, &foreign);
    foreign.into_iter().map(|it| it.0).collect()
}

/// Saves digests, as far as possible.
fn update(world: &dyn World, digests: &[(PathBuf, String)]) {
    let Ok(file) = UserStateFile::open(world, FILE, LOCK_WAIT) else { return };
    let mut written: WrittenFiles = file.load().unwrap_or_default();
    for (path, digest) in digests {
        written.files.insert(path.to_string_lossy().into_owned(), digest.clone());
    }
    drop(file.save(&written, &Durability::default()));
}

/// Returns the digest of a file. `None` if the file exists and cannot be read: then policyd does not use it.
fn current_digest(file: &ChoiceFile) -> Option<String> {
    match &file.content {
        Ok(bytes) => Some(digest(bytes)),
        Err(WorldError::NotFound) => Some(MISSING.to_owned()),
        Err(_) => None,
    }
}

fn digest(bytes: &[u8]) -> String {
    hex(&checksum(&[bytes]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::user_choices::{UserChoiceStore, UserChoices};
    use crate::world::fake::FakeWorld;

    #[test]
    fn a_change_by_another_program_is_returned_once() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        let root = Path::new("/work/.policyd");
        let foreign = || take_foreign_changes(&world, &ChoiceFiles::read(&world, root));
        let store = UserChoiceStore::new(&world, root);
        assert!(foreign().is_empty(), "no file, no record");
        store.change(|it| it.switch_files = true).unwrap();
        assert!(foreign().is_empty(), "policyd wrote it");
        let path = store.path().unwrap();
        let text = r#"{"version": 1, "switch_files": true, "approvals": ["0123456789ab"]}"#;
        world.put(&path, text);
        assert_ne!(store.load(), Ok(UserChoices::default()));
        assert_eq!(foreign(), std::slice::from_ref(&path));
        assert!(foreign().is_empty(), "once");
        store.change(|it| it.switch_files = false).unwrap();
        assert!(foreign().is_empty());
        let trust = "/home/me/.config/policyd/trust.json";
        world.put(trust, "{\"version\": 1, \"packs\": []}");
        assert_eq!(foreign(), [PathBuf::from(trust)]);
        assert!(foreign().is_empty(), "once");
    }

    #[test]
    fn a_first_file_of_another_program_is_returned() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        let root = Path::new("/work/.policyd");
        let path = UserChoiceStore::new(&world, root).path().unwrap();
        world.put(&path, "{\"version\": 1, \"disabled\": {\"since\": \"2026-01-01T00:00:00Z\"}}");
        assert_eq!(take_foreign_changes(&world, &ChoiceFiles::read(&world, root)), [path]);
    }
}
