//! JSON documents in the state directory, shared by all processes of a project: read without a lock, changed
//! under one. Damaged documents are quarantined, never lost.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::file::{self, Durability, LoadedDocument};
use super::layout;
use policyd_world::{HeldLock, World, WorldError};
use policyd_yaml::time::Timestamp;

/// Content of a document file.
#[derive(Debug, Clone, PartialEq)]
pub enum DocumentContent {
    /// The file does not exist.
    Nothing,
    /// A JSON value.
    Value(Value),
    /// Something else.
    Damaged,
}

/// Newest version of a document's format that this program knows. All documents that have a version have this one.
const FORMAT_VERSION: u64 = 1;

/// A stored document whose content is unknown. Commands that list its entries report it and fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreProblem {
    #[error("{} is damaged; the next change quarantines it", path.display())]
    Damaged { path: PathBuf },
    #[error("{} cannot be read, and nothing is changed: {source}", path.display())]
    Unreadable { path: PathBuf, source: WorldError },
}

impl StoreProblem {
    /// Returns how to make the document readable.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => {
                "repair the file before the next change, or leave it to policyd"
            }
            Self::Unreadable { source: WorldError::Newer(_), .. } => {
                "update policyd, or move the file away"
            }
            Self::Unreadable { .. } => "repair the file, or move it away",
        }
    }
}

impl From<StoreProblem> for WorldError {
    fn from(problem: StoreProblem) -> Self {
        Self::Io(problem.to_string())
    }
}

/// The documents of one store; they are named by their paths under the root.
#[derive(Clone)]
pub struct Documents<'a> {
    /// The machine.
    pub world: &'a dyn World,
    /// State directory of the project.
    pub root: PathBuf,
    /// How they are written.
    pub durability: Durability,
    /// Longest wait for a lock.
    pub lock_wait: Duration,
    /// Bytes of one document; more are not read, and not written.
    pub bytes_max: usize,
    /// Why what was saved may not survive a loss of power, once that is so.
    degraded: RefCell<Option<String>>,
}

impl<'a> Documents<'a> {
    /// Returns the documents of a state directory.
    #[must_use]
    pub fn new(
        world: &'a dyn World,
        root: &Path,
        durability: Durability,
        lock_wait: Duration,
        bytes_max: usize,
    ) -> Self {
        let (root, degraded) = (root.to_owned(), RefCell::default());
        Self { world, root, durability, lock_wait, bytes_max, degraded }
    }

    /// Why something that was saved may not survive a loss of power; told once.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        self.degraded.take()
    }

    /// Where a document is.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Takes a lock; folders that are not there yet are made.
    ///
    /// # Errors
    /// The lock was not free in time, or a folder could not be made.
    pub fn lock(&self, name: &str, folders: &[&str]) -> Result<Box<dyn HeldLock>, WorldError> {
        let path = self.path(name);
        match self.world.lock(&path, self.lock_wait) {
            Err(WorldError::NotFound) => {
                for folder in folders {
                    self.world.create_folder(&self.root.join(folder))?;
                }
                layout::hide(self.world, &self.root);
                self.world.lock(&path, self.lock_wait)
            }
            answer => answer,
        }
    }

    /// Looks at a document. A torn one reads as its sibling, which the next change puts in its place.
    ///
    /// # Errors
    /// The document cannot be read now, is too large, or was written by a newer version of policyd.
    pub fn read(&self, name: &str) -> Result<DocumentContent, WorldError> {
        let content = match file::load(self.world, &self.path(name), self.bytes_max) {
            LoadedDocument::Missing => DocumentContent::Nothing,
            LoadedDocument::Whole(bytes) | LoadedDocument::Torn { backup: Some(bytes), .. } => {
                parse(&bytes)
            }
            LoadedDocument::Torn { bytes, backup: None } => parse(&bytes),
            // Too much is not nothing: another program may have written it, and knows what it means.
            LoadedDocument::Unreadable { error, .. } => return Err(error),
        };
        match newer_version(&content) {
            Some(version) => Err(WorldError::Newer(version)),
            None => Ok(content),
        }
    }

    /// Returns the value of a document. `None` if the document does not exist, or is damaged: the next change
    /// quarantines it.
    ///
    /// # Errors
    /// As for [`Documents::read`].
    pub fn value(&self, name: &str) -> Result<Option<Value>, StoreProblem> {
        match self.read(name) {
            Ok(DocumentContent::Value(value)) => Ok(Some(value)),
            Ok(DocumentContent::Nothing | DocumentContent::Damaged) => Ok(None),
            Err(source) => Err(StoreProblem::Unreadable { path: self.path(name), source }),
        }
    }

    /// Returns why the content of a document is unknown. `None` if it can be read, or does not exist.
    #[must_use]
    pub fn problem(&self, name: &str) -> Option<StoreProblem> {
        match self.read(name) {
            Ok(DocumentContent::Nothing | DocumentContent::Value(_)) => None,
            Ok(DocumentContent::Damaged) => Some(StoreProblem::Damaged { path: self.path(name) }),
            Err(source) => Some(StoreProblem::Unreadable { path: self.path(name), source }),
        }
    }

    /// Reads a document to change it, under its lock. A damaged document is quarantined, and a torn one is
    /// replaced by its sibling.
    ///
    /// # Errors
    /// The document cannot be read now, or could not be quarantined.
    pub fn read_to_change(&self, name: &str, now: Timestamp) -> Result<Option<Value>, WorldError> {
        let path = self.path(name);
        let loaded = file::load(self.world, &path, self.bytes_max);
        if let LoadedDocument::Torn { bytes, backup: Some(_) } = loaded {
            // The user might have edited the file: the edited content is kept beside it.
            self.world.write(&aside(&path, now), &bytes)?;
            file::restore(self.world, &path)?;
        }
        match self.read(name)? {
            DocumentContent::Nothing => Ok(None),
            DocumentContent::Value(value) => Ok(Some(value)),
            DocumentContent::Damaged => {
                self.world.rename(&path, &aside(&path, now))?;
                Ok(None)
            }
        }
    }

    /// Puts a document aside that is something else than it should be.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn put_aside(&self, name: &str, now: Timestamp) -> Result<(), WorldError> {
        let path = self.path(name);
        self.world.rename(&path, &aside(&path, now))
    }

    /// Writes a document durably, under its lock.
    ///
    /// # Errors
    /// It is too large, or was not saved; the old one stands.
    pub fn save(&self, name: &str, text: &str) -> Result<(), WorldError> {
        if text.len() > self.bytes_max {
            return Err(WorldError::TooLarge(text.len() as u64));
        }
        let path = self.path(name);
        if self.durability.fsync && self.world.stat(&path) == Err(WorldError::NotFound) {
            self.sync_folders(&path)?;
        }
        match file::save(self.world, &path, text.as_bytes(), &self.durability) {
            file::Saved::Durable { .. } => Ok(()),
            file::Saved::Degraded { why, .. } => {
                self.degraded.replace(Some(why));
                Ok(())
            }
            file::Saved::NotSaved { why, .. } => Err(WorldError::Io(why)),
        }
    }

    /// Makes the folders above a new document durable, up to the one that holds the root: they may
    /// have been made by a process that was killed.
    fn sync_folders(&self, path: &Path) -> Result<(), WorldError> {
        let inside = path.ancestors().skip(2).take_while(|it| it.starts_with(&self.root));
        for folder in inside.chain(self.root.parent()) {
            match self.world.sync_folder(folder) {
                Ok(()) | Err(WorldError::Unsupported) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns the version of a document that a newer version of policyd wrote.
fn newer_version(content: &DocumentContent) -> Option<u64> {
    let DocumentContent::Value(value) = content else { return None };
    value.get("version")?.as_u64().filter(|version| *version > FORMAT_VERSION)
}

fn parse(bytes: &[u8]) -> DocumentContent {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    // An empty file, as `touch` makes it, has no value.
    if text.is_empty() {
        return DocumentContent::Nothing;
    }
    serde_json::from_str(text).map_or(DocumentContent::Damaged, DocumentContent::Value)
}

/// Where a damaged file is put.
fn aside(path: &Path, now: Timestamp) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(format!(".corrupt-{}", now.millis()));
    PathBuf::from(name)
}
