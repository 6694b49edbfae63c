//! The files with the user's choices, each read once per event: policyd uses the content whose digest it compares.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{self, DamageAction, DocumentError};
use super::enforcement::{EnforcementChoice, EnforcementStore};
use super::trust::TrustStore;
use super::user;
use super::user_choices::{UserChoiceStore, UserChoices};
use super::user_file;
use policyd_world::World;

/// A file with choices as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChoiceFile {
    pub(super) path: PathBuf,
    /// Content of the file. `None` if the file does not exist.
    pub(super) content: Result<Option<Vec<u8>>, DocumentError>,
}

impl ChoiceFile {
    /// Reads a file. `None` if the user has no directory for it.
    pub(super) fn read(world: &dyn World, path: Option<PathBuf>) -> Option<Self> {
        let path = path?;
        let content = user_file::document(world, &path).bytes();
        Some(Self { path, content })
    }

    /// Returns the value. Without a file it is the default.
    ///
    /// # Errors
    /// The file is damaged, a newer version of policyd wrote it, or it could not be read.
    fn value<T: DeserializeOwned + Default>(&self) -> Result<T, DocumentError> {
        let content = self.content.as_ref().map_err(DocumentError::clone)?;
        let content = content.as_deref().unwrap_or_default();
        let value = document::parse(&self.path, content, DamageAction::Refuse, Value::is_object)?;
        Ok(value.unwrap_or_default())
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
    pub fn choices(&self) -> Result<UserChoices, DocumentError> {
        self.choices.as_ref().map_or_else(|| Ok(UserChoices::default()), ChoiceFile::value)
    }

    /// Returns whether the user lets policyd act on this machine.
    ///
    /// # Errors
    /// The file is not used.
    pub fn enforcement(&self) -> Result<EnforcementChoice, DocumentError> {
        let choice = self.enforcement.as_ref();
        choice.map_or_else(|| Ok(EnforcementChoice::default()), ChoiceFile::value)
    }

    /// Returns every file for which the user has a directory.
    pub(super) fn all(&self) -> impl Iterator<Item = &ChoiceFile> {
        [&self.choices, &self.enforcement, &self.trust].into_iter().flatten()
    }
}
