//! Files of the user's choices that another program wrote, without a confirmation: their content is not the one in
//! `choice_record`. Each is reported once. A file without a digest can be older than the record, which versions before
//! 0.2 did not write. Its state counts as known, and is reported only if it weakens policyd. If the record itself was
//! removed, each file is reported.
//!
//! If the record is damaged or a newer version of policyd wrote it, nothing is known of the files. Each event reports
//! that, and nothing is recorded.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::choice_files::{ChoiceFile, ChoiceFiles};
use super::choice_record::{self, MISSING, WrittenFiles};
use super::document::DocumentError;
use policyd_world::World;

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

/// Returns the files of the user's choices for a project that another program changed, or that weaken policyd and were
/// never recorded. Records their content, so that each is returned once.
///
/// # Errors
/// The record cannot be used.
pub fn take_foreign_changes(
    world: &dyn World,
    files: &ChoiceFiles,
) -> Result<Vec<ForeignChoices>, DocumentError> {
    let Some(written) = WrittenFiles::load(world)? else { return Ok(Vec::new()) };
    let current = files.all().filter_map(|file| Some((file.path.clone(), current_digest(file)?)));
    let current: Vec<(PathBuf, String)> = current.collect();
    let is_foreign = |it: &&(PathBuf, String)| !written.has(&it.0, &it.1);
    let foreign: Vec<(PathBuf, String)> = current.iter().filter(is_foreign).cloned().collect();
    if foreign.is_empty() {
        return Ok(Vec::new());
    }
    let is_removed = choice_record::is_removed(world);
    let classify = |(path, _): (PathBuf, String)| {
        let origin = match written.contains(&path) || is_removed {
            true => ChoiceOrigin::Foreign,
            false => ChoiceOrigin::Unrecorded(weakening(files, &path)),
        };
        let is_harmless = origin == ChoiceOrigin::Unrecorded(Vec::new());
        (!is_harmless).then_some(ForeignChoices { path, origin })
    };
    choice_record::update(world, &foreign);
    Ok(foreign.into_iter().filter_map(classify).collect())
}

/// Returns whether the content of the user's pack differs from the recorded one, and records it. An empty hash: the pack does not
/// exist.
#[must_use]
pub fn take_pack_change(world: &dyn World, folder: &Path, hash: &str) -> bool {
    // A record that cannot be used is reported at each event.
    let Ok(Some(written)) = WrittenFiles::load(world) else { return false };
    let is_changed = !written.has(folder, hash);
    if is_changed {
        record_pack(world, folder, hash);
    }
    is_changed
}

/// Records the content of the user's pack that policyd wrote, as a human confirmed.
pub fn record_pack(world: &dyn World, folder: &Path, hash: &str) {
    choice_record::update(world, &[(folder.to_path_buf(), hash.to_owned())]);
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

/// Returns the digest of a file. `None` if the file exists and cannot be read: then policyd does not use it.
fn current_digest(file: &ChoiceFile) -> Option<String> {
    match &file.content {
        Ok(Some(bytes)) => Some(choice_record::digest(bytes)),
        Ok(None) => Some(MISSING.to_owned()),
        Err(_) => None,
    }
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
