//! The projects in which policyd evaluated a stop or the start of a session, one small file each in the user's state.
//! `policyd status --all` reads them. A project cannot reach them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::document::{DamageAction, StoredDocument, with_version};
use super::file::Durability;
use super::user::UserDirectory;
use policyd_base::limits::{KNOWN_PROJECTS_MAX, POLICY_FILE_BYTES_MAX};
use policyd_world::{World, WorldError};
use policyd_yaml::checksum::hex;
use policyd_yaml::time::Timestamp;

/// Directory below the user's state directory.
const FOLDER: &str = "projects";
/// A set variable keeps projects out of the registry.
pub const PRIVATE: &str = "POLICYD_PRIVATE";
/// Hexadecimal digits of a file name.
const NAME_DIGITS: usize = 24;

/// A project of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownProject {
    /// Main checkout of the project.
    pub directory: PathBuf,
    /// Its state directory.
    pub state_dir: PathBuf,
    /// When policyd first evaluated an event there.
    pub since: Timestamp,
}

/// The registry of the user of this process.
pub struct ProjectRegistry<'a> {
    world: &'a dyn World,
    /// `None` if neither `XDG_STATE_HOME` nor `HOME` is set.
    folder: Option<PathBuf>,
}

impl<'a> ProjectRegistry<'a> {
    /// Returns the registry of the user of this process.
    #[must_use]
    pub fn new(world: &'a dyn World) -> Self {
        let state = UserDirectory::State.path(world);
        Self { world, folder: state.map(|it| it.join(FOLDER)) }
    }

    /// Adds a project that is not listed yet. A registry that cannot be written stays as it is: it is a convenience,
    /// and no decision depends on it. A project whose path is not UTF-8 is not listed, because JSON cannot contain it.
    pub fn register(&self, directory: &Path, state_dir: &Path, now: Timestamp) {
        let Some(path) = self.path(directory) else { return };
        if self.world.stat(&path).is_ok() || self.world.env(PRIVATE).is_some() {
            return;
        }
        let (directory, state_dir) = (directory.to_owned(), state_dir.to_owned());
        let project = KnownProject { directory, state_dir, since: now };
        let text = format!("{}\n", with_version(&project));
        let quick = Durability { fsync: false, ..Durability::default() };
        let document = self.document(path).saved_as(&quick);
        drop(document.create_folder().and_then(|()| document.create(&text)));
    }

    fn document(&self, path: PathBuf) -> StoredDocument<'a> {
        StoredDocument::new(self.world, path, POLICY_FILE_BYTES_MAX, DamageAction::Refuse)
    }

    /// Returns all projects, sorted by directory, each once. Files that cannot be used are left out.
    #[must_use]
    pub fn all(&self) -> Vec<KnownProject> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let names = self.world.list(folder).unwrap_or_default();
        let mut projects: Vec<KnownProject> = names
            .iter()
            .filter(|it| is_entry(it))
            .take(KNOWN_PROJECTS_MAX)
            .filter_map(|it| self.document(folder.join(it)).load().ok()?)
            .collect();
        projects.sort_by(|one, other| one.directory.cmp(&other.directory));
        projects.dedup_by(|one, other| one.directory == other.directory);
        projects
    }

    /// Removes a project. Returns whether it was listed.
    ///
    /// # Errors
    /// Its file could not be removed.
    pub fn forget(&self, directory: &Path) -> Result<bool, WorldError> {
        let Some(path) = self.path(directory) else { return Ok(false) };
        match self.world.remove(&path) {
            Ok(()) => Ok(true),
            Err(WorldError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the file of a project.
    fn path(&self, directory: &Path) -> Option<PathBuf> {
        let mut name = hex(&Sha256::digest(directory.as_os_str().as_encoded_bytes()));
        name.truncate(NAME_DIGITS);
        Some(self.folder.as_ref()?.join(format!("{name}.json")))
    }
}

/// Whether a file of the directory is an entry, and not a temporary file of a write.
fn is_entry(name: &str) -> bool {
    !name.starts_with('.') && Path::new(name).extension().is_some_and(|it| it == "json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_project_is_listed_once_until_it_is_forgotten() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        let registry = ProjectRegistry::new(&world);
        let (first, second) = (Path::new("/work/b"), Path::new("/work/a"));
        registry.register(first, Path::new("/work/b/.policyd"), at(1));
        registry.register(second, Path::new("/work/a/.policyd"), at(2));
        registry.register(first, Path::new("/elsewhere"), at(3));
        let listed: Vec<_> =
            registry.all().into_iter().map(|it| (it.directory, it.since)).collect();
        assert_eq!(listed, [(second.to_owned(), at(2)), (first.to_owned(), at(1))]);
        assert_eq!(registry.forget(first), Ok(true));
        assert_eq!(registry.forget(first), Ok(false));
        assert_eq!(registry.all().len(), 1);
    }

    #[test]
    fn a_private_session_is_not_listed() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world.set_env(PRIVATE, "1");
        let registry = ProjectRegistry::new(&world);
        registry.register(Path::new("/work"), Path::new("/work/.policyd"), at(1));
        assert_eq!(registry.all(), []);
    }
}
