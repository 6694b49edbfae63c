//! JSON documents that policyd stores: one reader, one writer, and one error for all of them.
//!
//! A document is read without a lock and changed under one. Its content is never lost: a change fails if a newer version
//! of policyd wrote the document. A damaged document is moved aside, or the change fails.
//! Does not contain: the formats, which are the structures that are saved, and logs.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::file::{self, Durability, LoadedDocument, SaveOutcome};
use super::layout;
use super::user::UserDirectory;
use policyd_world::{HeldLock, World, WorldError};

/// Newest version of the formats that this program knows. A document without a version has version 1.
pub const FORMAT_VERSION: u32 = 1;

/// What a change does to a damaged document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageAction {
    /// Moves it aside and begins again, because policyd can continue without the content. A torn document is read from
    /// its sibling.
    Quarantine,
    /// Fails, because only the user knows the content.
    Refuse,
}

/// Why a stored document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentError {
    /// No environment variable names the directory.
    NoDirectory(UserDirectory),
    /// The content is not what the document must contain.
    Damaged { path: PathBuf, why: String, if_damaged: DamageAction },
    /// A newer version of policyd wrote the document, in this version of its format.
    Newer { path: PathBuf, version: u64 },
    /// The document cannot be read, its directory cannot be created, or another process holds its lock.
    Io { path: PathBuf, source: WorldError },
    /// The document cannot be written. The former content is unchanged.
    NotSaved { path: PathBuf, why: String },
}

impl DocumentError {
    /// Returns how to make the document usable.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        match self {
            Self::NoDirectory(_) => "set HOME",
            Self::Damaged { if_damaged: DamageAction::Quarantine, .. } => {
                "repair the file before the next change, or leave it to policyd"
            }
            Self::Damaged { if_damaged: DamageAction::Refuse, .. } => {
                "repair the file, or remove it to begin again"
            }
            Self::Newer { .. } => "update policyd, or move the file away",
            Self::Io { source: WorldError::Locked(_), .. } => "try again when that process ended",
            Self::Io { .. } => "repair the file, or move it away",
            Self::NotSaved { .. } => "make the file writable, or free space on the disk",
        }
    }

    /// Returns the error and its fix in one line.
    #[must_use]
    pub fn note(&self) -> String {
        format!("{}; {}", self.message(), self.help())
    }

    /// Returns the error without its fix.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::NoDirectory(directory) => format!(
                "neither {} nor HOME is set, so the {} of the user cannot be saved",
                directory.variable(),
                directory.name()
            ),
            Self::Damaged { path, if_damaged: DamageAction::Quarantine, .. } => {
                format!("`{}` is damaged; the next change quarantines it", path.display())
            }
            Self::Damaged { path, why, if_damaged: DamageAction::Refuse } => {
                format!("`{}` is not used: it is damaged ({why})", path.display())
            }
            Self::Newer { path, version } => format!(
                "`{}` is not used: a newer version of policyd wrote it (format {version})",
                path.display()
            ),
            Self::Io { path, source } => {
                format!("`{}` cannot be used, and nothing is changed: {source}", path.display())
            }
            Self::NotSaved { path, why } => format!("`{}` was not saved: {why}", path.display()),
        }
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhelp: {}", self.message(), self.help())
    }
}

impl std::error::Error for DocumentError {}

impl From<DocumentError> for WorldError {
    fn from(error: DocumentError) -> Self {
        if let DocumentError::Io { source: WorldError::Locked(by), .. } = error {
            return Self::Locked(by);
        }
        Self::Io(error.note())
    }
}

/// One document in one file.
#[derive(Clone)]
pub struct StoredDocument<'a> {
    world: &'a dyn World,
    path: PathBuf,
    bytes_max: usize,
    durability: Durability,
    if_damaged: DamageAction,
    is_form: fn(&Value) -> bool,
}

impl<'a> StoredDocument<'a> {
    /// Returns the document at a path. More than `bytes_max` bytes are neither read nor written.
    #[must_use]
    pub fn new(
        world: &'a dyn World,
        path: PathBuf,
        bytes_max: usize,
        if_damaged: DamageAction,
    ) -> Self {
        let (durability, is_form) = (Durability::default(), Value::is_object as _);
        Self { world, path, bytes_max, durability, if_damaged, is_form }
    }

    /// Returns the same document, whose value can be another than an object.
    #[must_use]
    pub fn in_form(self, is_form: fn(&Value) -> bool) -> Self {
        Self { is_form, ..self }
    }

    /// Returns the same document, written in another way.
    #[must_use]
    pub fn saved_as(self, durability: &Durability) -> Self {
        Self { durability: durability.clone(), ..self }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory of the document, and acquires a lock there.
    ///
    /// # Errors
    /// Another process holds the lock longer than `wait`, or the directory cannot be created.
    pub fn lock(&self, name: &str, wait: Duration) -> Result<Box<dyn HeldLock>, DocumentError> {
        self.create_folder()?;
        let lock = self.path.with_file_name(name);
        self.world.lock(&lock, wait).map_err(|source| self.io(source))
    }

    /// Creates the directory of the document.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn create_folder(&self) -> Result<(), DocumentError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        self.world.create_folder(folder).map_err(|source| self.io(source))
    }

    /// Reads the value. `None` if the file does not exist, or is empty as `touch` creates it.
    ///
    /// # Errors
    /// The document is damaged, a newer version of policyd wrote it, or it cannot be read.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, DocumentError> {
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        parse(&self.path, &bytes, self.if_damaged, self.is_form)
    }

    /// Reads the document to change it. The caller holds the lock until the document is saved. A damaged document is
    /// quarantined or refused, and a torn one is replaced by its sibling.
    ///
    /// # Errors
    /// As for [`StoredDocument::load`], or the document could not be quarantined.
    pub fn open<T: DeserializeOwned>(&self) -> Result<DocumentEdit<'_, 'a, T>, DocumentError> {
        if self.if_damaged == DamageAction::Quarantine
            && let LoadedDocument::Torn { bytes, backup: Some(_) } =
                file::load(self.world, &self.path, self.bytes_max)
        {
            // The user might have edited the file: the edited content is kept beside it.
            let written = self.world.write(&self.quarantine(), &bytes);
            let restored = written.and_then(|()| file::restore(self.world, &self.path));
            restored.map_err(|source| self.io(source))?;
        }
        match self.load() {
            Ok(value) => Ok(DocumentEdit { document: self, value }),
            Err(DocumentError::Damaged { if_damaged: DamageAction::Quarantine, .. }) => {
                self.put_aside()?;
                Ok(DocumentEdit { document: self, value: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Saves a document whose name no other document has.
    ///
    /// # Errors
    /// As for [`DocumentEdit::save`].
    pub fn create(&self, text: &str) -> Result<Option<String>, DocumentError> {
        self.write(text)
    }

    /// Moves a damaged document aside.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn put_aside(&self) -> Result<(), DocumentError> {
        let moved = self.world.rename(&self.path, &self.quarantine());
        moved.map_err(|source| self.io(source))
    }

    /// Returns the bytes of the file, of a torn one those of its sibling. `None` if the file does not exist.
    pub(crate) fn bytes(&self) -> Result<Option<Vec<u8>>, DocumentError> {
        match self.if_damaged {
            DamageAction::Refuse => match self.world.read(&self.path, self.bytes_max) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(WorldError::NotFound) => Ok(None),
                Err(source) => Err(self.io(source)),
            },
            DamageAction::Quarantine => match file::load(self.world, &self.path, self.bytes_max) {
                LoadedDocument::Missing => Ok(None),
                LoadedDocument::Whole(bytes)
                | LoadedDocument::Torn { backup: Some(bytes), .. }
                | LoadedDocument::Torn { bytes, backup: None } => Ok(Some(bytes)),
                // Too much is not nothing: another program may have written it, and knows what it means.
                LoadedDocument::Unreadable { error, .. } => Err(self.io(error)),
            },
        }
    }

    /// Returns the error of a content that the document must not have.
    pub(crate) fn damaged(&self, why: &str) -> DocumentError {
        let (path, if_damaged) = (self.path.clone(), self.if_damaged);
        DocumentError::Damaged { path, why: why.to_owned(), if_damaged }
    }

    fn io(&self, source: WorldError) -> DocumentError {
        DocumentError::Io { path: self.path.clone(), source }
    }

    fn write(&self, text: &str) -> Result<Option<String>, DocumentError> {
        let not_saved = |why: String| DocumentError::NotSaved { path: self.path.clone(), why };
        if text.len() > self.bytes_max {
            return Err(not_saved(WorldError::TooLarge(text.len() as u64).to_string()));
        }
        match file::save(self.world, &self.path, text.as_bytes(), &self.durability) {
            SaveOutcome::Durable { .. } => Ok(None),
            SaveOutcome::Degraded { why, .. } => Ok(Some(why)),
            SaveOutcome::NotSaved { why, .. } => Err(not_saved(why)),
        }
    }

    /// Returns where a damaged file is moved.
    fn quarantine(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".corrupt-{}", self.world.now().millis()));
        PathBuf::from(name)
    }
}

/// A document that was read to be changed.
pub struct DocumentEdit<'d, 'a, T> {
    document: &'d StoredDocument<'a>,
    /// The value. `None` if the file does not exist, or was quarantined.
    pub value: Option<T>,
}

impl<T> DocumentEdit<'_, '_, T> {
    /// Saves the document. Returns why a loss of power can undo it, `None` if it cannot.
    ///
    /// # Errors
    /// The document is too large, or was not written. The former content is unchanged.
    pub fn save(&self, text: &str) -> Result<Option<String>, DocumentError> {
        self.document.write(text)
    }
}

/// Returns the value of bytes that were read from a path. `None` if they are empty. `is_form`: whether a JSON value can be
/// the document.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    if_damaged: DamageAction,
    is_form: fn(&Value) -> bool,
) -> Result<Option<T>, DocumentError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Ok(None);
    }
    let damaged = |why| DocumentError::Damaged { path: path.to_owned(), why, if_damaged };
    let not_json = |error: serde_json::Error| damaged(error.to_string());
    let value: Value = serde_json::from_str(text).map_err(not_json)?;
    if !is_form(&value) {
        return Err(damaged("it has another form".to_owned()));
    }
    check_version(path, value.get("version").and_then(Value::as_u64))?;
    serde_json::from_value(value).map(Some).map_err(not_json)
}

/// Fails if a newer version of policyd wrote the document.
pub(crate) fn check_version(path: &Path, version: Option<u64>) -> Result<(), DocumentError> {
    match version.filter(|it| *it > u64::from(FORMAT_VERSION)) {
        Some(version) => Err(DocumentError::Newer { path: path.to_owned(), version }),
        None => Ok(()),
    }
}

/// Returns the fields of a value after the version of the format.
pub(crate) fn with_version(value: &impl Serialize) -> Value {
    let mut fields = Map::from_iter([("version".to_owned(), FORMAT_VERSION.into())]);
    let content = policyd_state::stored::fields(value);
    debug_assert!(!content.contains_key("version"), "the format has the key `version`");
    fields.extend(content);
    Value::Object(fields)
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
    /// Why what was saved may not survive a loss of power, once that is so. Clones share it.
    degraded: Rc<RefCell<Option<String>>>,
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
        let (root, degraded) = (root.to_owned(), Rc::default());
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

    /// Returns a document, which is quarantined if it is damaged.
    #[must_use]
    pub fn document(&self, name: &str) -> StoredDocument<'a> {
        let if_damaged = DamageAction::Quarantine;
        let document = StoredDocument::new(self.world, self.path(name), self.bytes_max, if_damaged);
        document.saved_as(&self.durability)
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

    /// Returns the fields of a document. `None` if the document does not exist, or is damaged: the next change
    /// quarantines it.
    ///
    /// # Errors
    /// The document cannot be read now, is too large, or was written by a newer version of policyd.
    pub fn fields(&self, name: &str) -> Result<Option<Map<String, Value>>, DocumentError> {
        match self.document(name).load() {
            Err(DocumentError::Damaged { .. }) => Ok(None),
            loaded => loaded,
        }
    }

    /// Returns why the fields of a document are unknown. `None` if they can be read, or the document does not exist.
    #[must_use]
    pub fn problem(&self, name: &str) -> Option<DocumentError> {
        self.document(name).load::<Map<String, Value>>().err()
    }

    /// Reads the fields of a document to change it, under its lock, as [`StoredDocument::open`] does.
    ///
    /// # Errors
    /// The document cannot be changed, or could not be quarantined.
    pub fn read_to_change(&self, name: &str) -> Result<Option<Map<String, Value>>, DocumentError> {
        self.document(name).open().map(|it| it.value)
    }

    /// Writes a document durably, under its lock: a new one, or one that was read to change it.
    ///
    /// # Errors
    /// It is too large, or was not saved; the old one stands.
    pub fn save(&self, name: &str, text: &str) -> Result<(), WorldError> {
        let document = self.document(name);
        if self.durability.fsync && self.world.stat(document.path()) == Err(WorldError::NotFound) {
            self.sync_folders(document.path())?;
        }
        if let Some(why) = document.write(text)? {
            self.degraded.replace(Some(why));
        }
        Ok(())
    }

    /// Notes that a file was written, but might not survive a loss of power.
    pub(super) fn note_degraded(&self, why: &WorldError) {
        self.degraded.replace(Some(format!("sync: {why}")));
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

#[cfg(test)]
pub(crate) mod tests;
