//! What policyd last wrote into the files of the user's choices: a digest per file, in the user's state directory.
//! A file with another content was written by another program, without a confirmation. It is reported once.
//! A file without a digest can be older than the record, which versions before 0.2 did not write. Its state counts as
//! known, and is reported only if it weakens policyd. If the record itself was removed, each file is reported.
//!
//! If the record is damaged or a newer version of policyd wrote it, nothing is known of the files. Each event reports
//! that, and nothing is recorded.
//!
//! The digest proves nothing: a process of the same user can write it, too. Guards refuse both to an agent, and one
//! copy of a directory does not reach both.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice_files::{ChoiceFile, ChoiceFiles};
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
const MISSING: &str = "";

/// Choices that weaken policyd, by their keys: a value other than null, false, and an empty list.
const WEAKENING: [(&str, &str); 7] = [
    ("disabled", "policyd is disabled"),
    ("switch_files", "switch files disable policyd"),
    ("pauses", "pauses"),
    ("runs", "started runs"),
    ("allowances", "allowed rules and calls"),
    ("approvals", "approvals"),
    ("packs", "trusted packs"),
];

/// A file of the user's choices whose content policyd did not write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignChoices {
    pub path: PathBuf,
    pub origin: ChoiceOrigin,
}

/// What is known of the program that wrote a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChoiceOrigin {
    /// It is not policyd: policyd recorded another content.
    Foreign,
    /// The file was never recorded. Contains what weakens policyd.
    Unrecorded(Vec<&'static str>),
}

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

/// Returns the files of the user's choices for a project that another program changed, or that weaken policyd and were
/// never recorded. Records their content, so that each is returned once.
///
/// # Errors
/// The record cannot be used.
pub fn take_foreign_changes(
    world: &dyn World,
    files: &ChoiceFiles,
) -> Result<Vec<ForeignChoices>, DocumentError> {
    let Some(record) = UserDirectory::State.path(world).map(|it| it.join(FILE)) else {
        return Ok(Vec::new());
    };
    let current = files.all().filter_map(|file| Some((file.path.clone(), current_digest(file)?)));
    let current: Vec<(PathBuf, String)> = current.collect();
    let document =
        StoredDocument::new(world, record.clone(), USER_STATE_BYTES_MAX, DamageAction::Refuse);
    let written: WrittenFiles = document.load()?.unwrap_or_default();
    let is_foreign = |it: &&(PathBuf, String)| !written.has(&it.0, &it.1);
    let foreign: Vec<(PathBuf, String)> = current.iter().filter(is_foreign).cloned().collect();
    if foreign.is_empty() {
        return Ok(Vec::new());
    }
    let is_removed = is_record_removed(world, &record);
    let classify = |(path, _): (PathBuf, String)| {
        let is_recorded = written.files.contains_key(&*path.to_string_lossy());
        let origin = match is_recorded || is_removed {
            true => ChoiceOrigin::Foreign,
            false => ChoiceOrigin::Unrecorded(weakening(files, &path)),
        };
        let is_harmless = origin == ChoiceOrigin::Unrecorded(Vec::new());
        (!is_harmless).then_some(ForeignChoices { path, origin })
    };
    update(world, &foreign);
    Ok(foreign.into_iter().filter_map(classify).collect())
}

/// Whether the record existed and was removed: its lock stays.
fn is_record_removed(world: &dyn World, record: &Path) -> bool {
    let lock = record.with_file_name(LOCK);
    world.stat(record) == Err(WorldError::NotFound) && world.stat(&lock).is_ok()
}

/// Returns the choices of a file that weaken policyd. A file that is not JSON is not used.
fn weakening(files: &ChoiceFiles, path: &Path) -> Vec<&'static str> {
    let file = files.all().find(|it| it.path == path);
    let bytes = file.and_then(|it| it.content.as_ref().ok()?.as_deref()).unwrap_or_default();
    let choices: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let is_chosen = |key: &str| match choices.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::Bool(true) | Value::Number(_) | Value::String(_)) => true,
    };
    let chosen = WEAKENING.iter().filter(|(key, _)| is_chosen(key)).map(|(_, what)| *what);
    let observes = choices.get("mode").and_then(Value::as_str) == Some("observe");
    chosen.chain(observes.then_some("rules are only observed")).collect()
}

/// Saves digests, as far as possible. A record that cannot be used stays as it is.
fn update(world: &dyn World, digests: &[(PathBuf, String)]) {
    let opened = UserStateFile::open(world, FILE, DamageAction::Refuse, LOCK_WAIT);
    let Ok((file, mut written)): Result<(_, WrittenFiles), _> = opened else { return };
    for (path, digest) in digests {
        written.files.insert(path.to_string_lossy().into_owned(), digest.clone());
    }
    drop(file.save(&written, &Durability::default()));
}

/// Returns the digest of a file. `None` if the file exists and cannot be read: then policyd does not use it.
fn current_digest(file: &ChoiceFile) -> Option<String> {
    match &file.content {
        Ok(Some(bytes)) => Some(digest(bytes)),
        Ok(None) => Some(MISSING.to_owned()),
        Err(_) => None,
    }
}

fn digest(bytes: &[u8]) -> String {
    hex(&checksum(&[bytes]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_choices::{UserChoiceStore, UserChoices};
    use policyd_world::fake::FakeWorld;

    const ROOT: &str = "/work/.policyd";

    fn machine() -> FakeWorld {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world
    }

    fn taken(world: &FakeWorld) -> Vec<(PathBuf, ChoiceOrigin)> {
        let take = || take_foreign_changes(world, &ChoiceFiles::read(world, Path::new(ROOT)));
        let taken = take().unwrap();
        assert_eq!(take(), Ok(Vec::new()), "once");
        taken.into_iter().map(|it| (it.path, it.origin)).collect()
    }

    #[test]
    fn a_change_by_another_program_is_returned_once() {
        let world = machine();
        let store = UserChoiceStore::new(&world, Path::new(ROOT));
        assert_eq!(taken(&world), [], "no file, no record");
        store.change(|it| it.switch_files = true).unwrap();
        assert_eq!(taken(&world), [], "policyd wrote it");
        let path = store.path().unwrap();
        let text = r#"{"version": 1, "switch_files": true, "approvals": ["0123456789ab"]}"#;
        world.put(&path, text);
        assert_ne!(store.load(), Ok(UserChoices::default()));
        assert_eq!(taken(&world), [(path.clone(), ChoiceOrigin::Foreign)]);
        store.change(|it| it.switch_files = false).unwrap();
        assert_eq!(taken(&world), []);
        world.put(&path, r#"{"version": 1}"#);
        assert_eq!(taken(&world), [(path, ChoiceOrigin::Foreign)], "also a harmless change");
    }

    #[test]
    fn choices_older_than_the_record_are_known_and_reported_if_they_weaken_policyd() {
        for (text, weakens) in [
            (r#"{"version": 1, "packs": []}"#, vec![]),
            (r#"{"version": 1, "forced_breakers": ["api/x"], "disabled": null}"#, vec![]),
            ("not JSON", vec![]),
            (r#"{"version": 1, "packs": [{"folder": "/x"}]}"#, vec!["trusted packs"]),
            (
                r#"{"version": 1, "disabled": {"since": "2026-01-01T00:00:00Z"}, "mode": "observe"}"#,
                vec!["policyd is disabled", "rules are only observed"],
            ),
        ] {
            let world = machine();
            let path = UserChoiceStore::new(&world, Path::new(ROOT)).path().unwrap();
            world.put(&path, text);
            let expected = ChoiceOrigin::Unrecorded(weakens.clone());
            let expected = (path.clone(), expected);
            assert_eq!(taken(&world), if weakens.is_empty() { vec![] } else { vec![expected] });
            world.put(&path, format!("{text} "));
            assert_eq!(taken(&world), [(path, ChoiceOrigin::Foreign)], "its state is known");
        }
    }

    #[test]
    fn a_change_after_the_removal_of_the_record_is_returned() {
        let world = machine();
        let store = UserChoiceStore::new(&world, Path::new(ROOT));
        store.change(|it| it.forced_breakers.insert("api/x".to_owned())).unwrap();
        assert_eq!(taken(&world), []);
        world.remove(Path::new("/home/me/.local/state/policyd/choices.json")).unwrap();
        let path = store.path().unwrap();
        world.put(&path, r#"{"version": 1}"#);
        assert_eq!(taken(&world), [(path, ChoiceOrigin::Foreign)]);
    }
}
