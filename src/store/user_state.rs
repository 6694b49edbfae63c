//! A JSON file in the user's state directory that one process at a time reads and changes: positions in logs, and what was
//! sent or made. The lock is held as long as the value.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::document::{DamageAction, DocumentError, StoredDocument, with_version};
use super::file::Durability;
use super::user::UserDirectory;
use policyd_base::limits::USER_STATE_BYTES_MAX;
use policyd_world::{HeldLock, World};

/// A file that was read, with its lock.
pub struct UserStateFile<'a> {
    document: StoredDocument<'a>,
    /// Whether the file had a value.
    pub is_stored: bool,
    _held: Box<dyn HeldLock>,
}

impl<'a> UserStateFile<'a> {
    /// Locks and reads the file with a name below the user's state directory. Without a file the value is the default.
    ///
    /// # Errors
    /// Another process holds the lock longer than `wait`, the directory cannot be created, or the file cannot be used.
    pub fn open<T: DeserializeOwned + Default>(
        world: &'a dyn World,
        name: &str,
        if_damaged: DamageAction,
        wait: Duration,
    ) -> Result<(Self, T), DocumentError> {
        let document = document(world, name, if_damaged)?;
        let stem = document.path().file_stem().unwrap_or_default().to_string_lossy();
        let lock = format!(".{stem}.lock");
        let held = document.lock(&lock, wait)?;
        let value = document.open()?.value;
        let is_stored = value.is_some();
        Ok((Self { document, is_stored, _held: held }, value.unwrap_or_default()))
    }

    /// Reads the file with a name below the user's state directory, without its lock. Without a file the value is the
    /// default.
    ///
    /// # Errors
    /// The user has no state directory, or the file cannot be used.
    pub fn peek<T: DeserializeOwned + Default>(
        world: &'a dyn World,
        name: &str,
        if_damaged: DamageAction,
    ) -> Result<T, DocumentError> {
        Ok(document(world, name, if_damaged)?.load()?.unwrap_or_default())
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.document.path()
    }

    /// Saves the value in one write.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(
        &self,
        value: &impl Serialize,
        durability: &Durability,
    ) -> Result<(), DocumentError> {
        let document = self.document.clone().saved_as(durability);
        document.create(&format!("{}\n", with_version(value))).map(drop)
    }
}

fn document<'a>(
    world: &'a dyn World,
    name: &str,
    if_damaged: DamageAction,
) -> Result<StoredDocument<'a>, DocumentError> {
    let directory = UserDirectory::State;
    let path = directory.path(world).ok_or(DocumentError::NoDirectory(directory))?.join(name);
    Ok(StoredDocument::new(world, path, USER_STATE_BYTES_MAX, if_damaged))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use policyd_world::WorldError;
    use policyd_world::fake::FakeWorld;

    type Numbers = BTreeMap<String, u32>;

    #[test]
    fn a_value_is_loaded_as_it_was_saved_under_one_lock() {
        let world = FakeWorld::new();
        let open = || {
            let if_damaged = DamageAction::Refuse;
            UserStateFile::open::<Numbers>(&world, "x/numbers.json", if_damaged, Duration::ZERO)
        };
        assert_eq!(open().err(), Some(DocumentError::NoDirectory(UserDirectory::State)));
        world.set_env("HOME", "/home/me");
        let (file, numbers) = open().unwrap();
        assert!(matches!(open(), Err(DocumentError::Io { source: WorldError::Locked(_), .. })));
        assert!(!file.is_stored);
        assert_eq!(numbers, Numbers::new());
        file.save(&Numbers::from([("one".to_owned(), 1)]), &Durability::default()).unwrap();
        drop(file);
        let (file, numbers) = open().unwrap();
        assert!(file.is_stored);
        assert_eq!(numbers.get("one"), Some(&1));
    }
}
