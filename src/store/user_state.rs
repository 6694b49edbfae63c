//! A JSON file in the user's state directory that one process at a time reads and changes: positions in logs, and what was
//! sent or made. The lock is held as long as the value.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::file::{self, Durability, Saved};
use super::user::UserDirectory;
use policyd_base::limits::USER_STATE_BYTES_MAX;
use policyd_world::{HeldLock, World, WorldError};

const FORMAT_VERSION: u32 = 1;

/// Why a file cannot be read or saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserStateError {
    #[error("neither XDG_STATE_HOME nor HOME is set, so the state of the user cannot be saved")]
    NoDirectory,
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: WorldError },
    #[error("{} is damaged: {why}\nhelp: remove it to begin again", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("a newer version of policyd wrote {}\nhelp: remove it to begin again", path.display())]
    Newer { path: PathBuf },
}

/// A file with its lock.
pub struct UserStateFile<'a> {
    world: &'a dyn World,
    path: PathBuf,
    _held: Box<dyn HeldLock>,
}

/// The version of a file, whatever else it contains.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredVersion {
    version: u32,
}

impl<'a> UserStateFile<'a> {
    /// Locks the file with a name below the user's state directory.
    ///
    /// # Errors
    /// Another process holds the lock longer than `wait`, or the directory cannot be created.
    pub fn open(world: &'a dyn World, name: &str, wait: Duration) -> Result<Self, UserStateError> {
        let directory = UserDirectory::State.path(world).ok_or(UserStateError::NoDirectory)?;
        let path = directory.join(name);
        let failed = |source| UserStateError::Io { path: path.clone(), source };
        let folder = path.parent().unwrap_or(&directory);
        world.create_folder(folder).map_err(failed)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let held = world.lock(&folder.join(format!(".{stem}.lock")), wait).map_err(failed)?;
        Ok(Self { world, path, _held: held })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.world.stat(&self.path).is_ok()
    }

    /// Loads the value. Without a file it is the default.
    ///
    /// # Errors
    /// The file is damaged, a newer version wrote it, or it cannot be read.
    pub fn load<T: DeserializeOwned + Default>(&self) -> Result<T, UserStateError> {
        let path = || self.path.clone();
        let bytes = match self.world.read(&self.path, USER_STATE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(WorldError::NotFound) => return Ok(T::default()),
            Err(source) => return Err(UserStateError::Io { path: path(), source }),
        };
        let damaged = |error: serde_json::Error| UserStateError::Damaged {
            path: path(),
            why: error.to_string(),
        };
        let StoredVersion { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if version > FORMAT_VERSION {
            return Err(UserStateError::Newer { path: path() });
        }
        serde_json::from_slice(&bytes).map_err(damaged)
    }

    /// Saves the value in one write.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(
        &self,
        value: &impl Serialize,
        durability: &Durability,
    ) -> Result<(), UserStateError> {
        let mut value = json!(value);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("version".to_owned(), FORMAT_VERSION.into());
        }
        let text = format!("{value}\n");
        match file::save(self.world, &self.path, text.as_bytes(), durability) {
            Saved::Durable { .. } | Saved::Degraded { .. } => Ok(()),
            Saved::NotSaved { why, .. } => {
                Err(UserStateError::Io { path: self.path.clone(), source: WorldError::Io(why) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use policyd_world::fake::FakeWorld;

    type Numbers = BTreeMap<String, u32>;

    #[test]
    fn a_value_is_loaded_as_it_was_saved_under_one_lock() {
        let world = FakeWorld::new();
        let open = || UserStateFile::open(&world, "x/numbers.json", Duration::ZERO);
        assert_eq!(open().err(), Some(UserStateError::NoDirectory));
        world.set_env("HOME", "/home/me");
        let file = open().unwrap();
        assert!(matches!(open(), Err(UserStateError::Io { source: WorldError::Locked(_), .. })));
        assert!(!file.exists());
        assert_eq!(file.load(), Ok(Numbers::new()));
        file.save(&Numbers::from([("one".to_owned(), 1)]), &Durability::default()).unwrap();
        drop(file);
        let loaded: Numbers = open().unwrap().load().unwrap();
        assert_eq!(loaded.get("one"), Some(&1));
    }

    #[test]
    fn a_damaged_file_and_one_of_a_newer_version_are_errors() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        let file = UserStateFile::open(&world, "numbers.json", Duration::ZERO).unwrap();
        let loaded = |text: &str| {
            world.put(file.path(), text);
            file.load::<Numbers>().unwrap_err()
        };
        assert!(matches!(loaded("{\"one\""), UserStateError::Damaged { .. }));
        assert!(matches!(loaded("{\"one\": \"x\"}"), UserStateError::Damaged { .. }));
        assert!(matches!(loaded("{\"version\": 2, \"one\": \"x\"}"), UserStateError::Newer { .. }));
    }
}
