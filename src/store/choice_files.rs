//! The files with the user's choices, each read once per event: policyd uses the content whose digest it compares.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::enforcement::{EnforcementChoice, EnforcementStore};
use super::trust::TrustStore;
use super::user::{self, ChoiceError, FileProblem};
use super::user_choices::{UserChoiceStore, UserChoices};
use policyd_base::limits::USER_CHOICES_BYTES_MAX;
use policyd_world::{World, WorldError};

/// Version of the files.
pub(super) const FORMAT_VERSION: u32 = 1;

/// A file with choices as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChoiceFile {
    pub(super) path: PathBuf,
    pub(super) content: Result<Vec<u8>, WorldError>,
}

impl ChoiceFile {
    /// Reads a file. `None` if the user has no directory for it.
    pub(super) fn read(world: &dyn World, path: Option<PathBuf>) -> Option<Self> {
        let path = path?;
        let content = world.read(&path, USER_CHOICES_BYTES_MAX);
        Some(Self { path, content })
    }

    /// Returns the value. Without a file it is the default.
    ///
    /// # Errors
    /// The file is damaged or could not be read.
    pub(super) fn value<T: DeserializeOwned + Default>(&self) -> Result<T, ChoiceError> {
        let value = match &self.content {
            Ok(bytes) => parse(bytes),
            Err(WorldError::NotFound) => return Ok(T::default()),
            Err(error) => Err(error.clone().into()),
        };
        value.map_err(|problem| ChoiceError::InvalidChoices { path: self.path.clone(), problem })
    }
}

/// The files with the user's choices for one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceFiles {
    choices: Option<ChoiceFile>,
    enforcement: Option<ChoiceFile>,
    trust: Option<ChoiceFile>,
}

impl ChoiceFiles {
    /// Reads the files for the project whose state is in `state_dir`.
    #[must_use]
    pub fn read(world: &dyn World, state_dir: &Path) -> Self {
        let trust = user::config_folder(world).map(|it| TrustStore::new(world, &it).path());
        Self {
            choices: ChoiceFile::read(world, UserChoiceStore::new(world, state_dir).path()),
            enforcement: ChoiceFile::read(world, EnforcementStore::new(world).path()),
            trust: ChoiceFile::read(world, trust),
        }
    }

    /// Returns the choices for the project.
    ///
    /// # Errors
    /// The file is not used.
    pub fn choices(&self) -> Result<UserChoices, ChoiceError> {
        self.choices.as_ref().map_or_else(|| Ok(UserChoices::default()), ChoiceFile::value)
    }

    /// Returns whether the user lets policyd act on this machine.
    ///
    /// # Errors
    /// The file is not used.
    pub fn enforcement(&self) -> Result<EnforcementChoice, ChoiceError> {
        let choice = self.enforcement.as_ref();
        choice.map_or_else(|| Ok(EnforcementChoice::default()), ChoiceFile::value)
    }

    /// Returns every file for which the user has a directory.
    pub(super) fn all(&self) -> impl Iterator<Item = &ChoiceFile> {
        [&self.choices, &self.enforcement, &self.trust].into_iter().flatten()
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FileProblem> {
    let value: Value = serde_json::from_slice(bytes)?;
    if value.get("version").and_then(Value::as_u64) != Some(u64::from(FORMAT_VERSION)) {
        return Err(FileProblem::Version);
    }
    serde_json::from_value(value).map_err(|_| FileProblem::Shape)
}
