//! A JSON document in the user's configuration: read as a whole or not used, and changed durably under a lock.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::choice_record;
use super::file::{self, Durability, Saved};
use super::user::{ChoiceError, FileProblem};
use policyd_base::limits::{USER_CHOICES_BYTES_MAX, USER_LOCK_WAIT};
use policyd_world::{World, WorldError};

const FORMAT_VERSION: u32 = 1;

/// The content of the file.
#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
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
    /// The file is damaged or cannot be read.
    pub(super) fn load<T: DeserializeOwned + Default>(&self) -> Result<T, ChoiceError> {
        let Some(path) = &self.path else { return Ok(T::default()) };
        let value = match self.world.read(path, USER_CHOICES_BYTES_MAX) {
            Ok(bytes) => parse(&bytes),
            Err(WorldError::NotFound) => return Ok(T::default()),
            Err(error) => Err(error.into()),
        };
        value.map_err(|problem| ChoiceError::InvalidChoices { path: path.clone(), problem })
    }

    /// Changes the value durably, under a lock; returns what `change` returns. Nothing is written if
    /// nothing changed.
    ///
    /// # Errors
    /// The change was not saved: no directory for it, the lock, a damaged file, or the disk.
    pub(super) fn change<T, R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, ChoiceError>
    where
        T: Serialize + DeserializeOwned + Default + Clone + PartialEq,
    {
        let path = self.path.as_ref().ok_or(ChoiceError::NoDirectory)?;
        let failed = |source: WorldError| ChoiceError::Io { path: path.clone(), source };
        let folder = path.parent().unwrap_or(path);
        self.world.create_folder(folder).map_err(failed)?;
        let _held = self.world.lock(&folder.join(".lock"), USER_LOCK_WAIT).map_err(failed)?;
        let before: T = self.load()?;
        let mut after = before.clone();
        let changed = change(&mut after);
        if after != before {
            let state_dir = self.state_dir.map(|it| it.display().to_string());
            let document = Document { version: FORMAT_VERSION, state_dir, value: &after };
            let text = format!("{:#}\n", json!(document));
            let saved = file::save(self.world, path, text.as_bytes(), &Durability::default());
            if let Saved::NotSaved { why, .. } = saved {
                return Err(ChoiceError::NotSaved { path: path.clone(), why });
            }
            choice_record::record(self.world, path, text.as_bytes());
        }
        Ok(changed)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FileProblem> {
    let value: Value = serde_json::from_slice(bytes)?;
    if value.get("version").and_then(Value::as_u64) != Some(u64::from(FORMAT_VERSION)) {
        return Err(FileProblem::Version);
    }
    serde_json::from_value(value).map_err(|_| FileProblem::Shape)
}
