//! A JSON document in the user's configuration: read as a whole or not used, and changed durably under a lock.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::choice_record;
use super::document::{DamageAction, DocumentError, StoredDocument, with_version};
use super::user::UserDirectory;
use policyd_base::limits::{USER_CHOICES_BYTES_MAX, USER_LOCK_WAIT};
use policyd_world::World;

/// Lock of the files of a directory.
const LOCK: &str = ".lock";

/// The content of the file.
#[derive(Serialize)]
struct Document<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    state_dir: Option<String>,
    #[serde(flatten)]
    value: &'a T,
}

/// A file of the user's configuration.
#[derive(Clone)]
pub(super) struct UserFile<'a> {
    pub(super) world: &'a dyn World,
    /// Path of the file. `None` if neither `XDG_CONFIG_HOME` nor `HOME` is set.
    pub(super) path: Option<PathBuf>,
    /// State directory that the file belongs to; it is recorded for the user.
    pub(super) state_dir: Option<&'a Path>,
}

impl UserFile<'_> {
    /// Loads the value. Without a file it is the default.
    ///
    /// # Errors
    /// The file is damaged, a newer version of policyd wrote it, or it cannot be read.
    pub(super) fn load<T: DeserializeOwned + Default>(&self) -> Result<T, DocumentError> {
        let Some(path) = &self.path else { return Ok(T::default()) };
        Ok(document(self.world, path).load()?.unwrap_or_default())
    }

    /// Changes the value durably, under a lock; returns what `change` returns. Nothing is written if
    /// nothing changed.
    ///
    /// # Errors
    /// The change was not saved: no directory for it, the lock, a file that is not used, or the disk.
    pub(super) fn change<T, R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, DocumentError>
    where
        T: Serialize + DeserializeOwned + Default + Clone + PartialEq,
    {
        let no_directory = DocumentError::NoDirectory(UserDirectory::Configuration);
        let path = self.path.as_ref().ok_or(no_directory)?;
        let document = document(self.world, path);
        let _held = document.lock(LOCK, USER_LOCK_WAIT)?;
        let mut open = document.open::<T>()?;
        let before = open.value.take().unwrap_or_default();
        let mut after = before.clone();
        let changed = change(&mut after);
        if after != before {
            let state_dir = self.state_dir.map(|it| it.display().to_string());
            let content = with_version(&Document { state_dir, value: &after });
            let text = format!("{content:#}\n");
            open.save(&text)?;
            choice_record::record(self.world, path, text.as_bytes());
        }
        Ok(changed)
    }
}

/// Returns the document with choices of the user at a path.
pub(super) fn document<'a>(world: &'a dyn World, path: &Path) -> StoredDocument<'a> {
    StoredDocument::new(world, path.to_owned(), USER_CHOICES_BYTES_MAX, DamageAction::Refuse)
}
