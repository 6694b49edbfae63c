//! Operations that wait for the server: one file each, written before the local change and removed after the
//! server applied the operation. Names are in the order of the operations, and contain which server and group they are for.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::action::SharedAction;
use super::void::VoidQuestion;
use crate::document::{DamageAction, DocumentError, StoredDocument, with_version};
use crate::file::Durability;
use policyd_base::limits::{OPERATION_BYTES_MAX, OUTBOX_MAX, SHARED_FILE_BYTES_MAX};
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

/// Directory of operations that the server rejected for good.
const REJECTED: &str = "rejected";

/// An operation that waits for the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedOperation {
    /// Id, unique on all hosts. The server applies each id once.
    pub id: String,
    /// Time of the event on this host.
    pub at: Timestamp,
    pub action: SharedAction,
    /// Whether this host only knows the change, which a server lost. It is dropped if this account must not make it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_again: bool,
    /// Id of the answer of a human that the change belongs to. If the server refuses a change of an answer, the later ones do
    /// not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl QueuedOperation {
    /// Returns the id of the question that the operation is, or whose void it is.
    pub(super) const fn question(&self) -> &String {
        if let SharedAction::Void(void) = &self.action { &void.operation } else { &self.id }
    }

    /// Returns the operation that is left of this one.
    pub(super) fn voided(&self, void: VoidQuestion) -> Self {
        let id = format!("{}-void", self.id);
        let action = SharedAction::Void(void);
        Self { id, at: self.at, action, is_again: false, answer: None }
    }
}

/// An operation that the server rejected for good, or a file of the outbox without a readable operation.
#[derive(Debug, Clone, PartialEq)]
pub struct RejectedOperation {
    /// Name, without the extension of the file.
    pub name: String,
    /// Why. Empty: unknown, from an earlier version.
    pub why: String,
    /// The operation; `None` if the file does not contain one.
    pub operation: Option<QueuedOperation>,
}

/// A file of the outbox that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnreadOperation {
    pub(super) why: String,
    /// Whether it waits: for a newer version of policyd that wrote it, or until it can be read.
    pub(super) waits: bool,
}

/// The outbox of one state directory.
pub(super) struct Outbox<'a> {
    pub(super) world: &'a dyn World,
    pub(super) folder: PathBuf,
    /// Which server and group the operations are for.
    pub(super) store: String,
    pub(super) durability: Durability,
}

impl Outbox<'_> {
    /// Returns a new operation, and its name behind all others.
    pub(super) fn make(
        &self,
        client: &str,
        action: SharedAction,
        at: Timestamp,
    ) -> (String, QueuedOperation) {
        /// One process can record several events within a millisecond.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let names = self.names();
        // The order survives a clock that goes back.
        let last = names.last().and_then(|it| it.split('-').next()?.parse::<i64>().ok());
        let moment = self.world.now().millis().max(last.unwrap_or_default());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{moment:015}-{}-{number:06}-{}", self.world.process_id(), self.store);
        let id = format!("{client}-{name}");
        (name, QueuedOperation { id, at, action, is_again: false, answer: None })
    }

    /// Saves an operation durably.
    pub(super) fn save(&self, name: &str, operation: &QueuedOperation) -> Result<(), WorldError> {
        self.world.create_folder(&self.folder)?;
        if self.names().len() >= OUTBOX_MAX {
            let text = format!("the outbox `{}` is full", self.folder.display());
            return Err(WorldError::Io(text));
        }
        let text = format!("{}\n", with_version(operation));
        self.document(&format!("{name}.json")).create(&text)?;
        Ok(())
    }

    fn document(&self, name: &str) -> StoredDocument<'_> {
        let (path, if_damaged) = (self.folder.join(name), DamageAction::Refuse);
        StoredDocument::new(self.world, path, OPERATION_BYTES_MAX, if_damaged)
            .saved_as(&self.durability)
    }

    /// Returns the names of the operations for this store, oldest first.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = self.all_names();
        names.retain(|it| self.is_own(it));
        names.sort();
        names
    }

    /// Returns the number of operations for other stores.
    pub(super) fn elsewhere(&self) -> usize {
        self.all_names().iter().filter(|it| !self.is_own(it)).count()
    }

    /// Returns whether an operation is for this store. An earlier version wrote names without a store.
    fn is_own(&self, name: &str) -> bool {
        let store = name.trim_end_matches(".json").split('-').nth(3);
        store.is_none_or(|it| it == self.store)
    }

    fn all_names(&self) -> Vec<String> {
        let mut names = self.world.list(&self.folder).unwrap_or_default();
        names.retain(|it| it.ends_with(".json") && !it.starts_with('.'));
        names
    }

    /// Reads an operation. `None` if another process removed it.
    ///
    /// # Errors
    /// The file is not an operation, a newer version of policyd wrote it, or it cannot be read now.
    pub(super) fn read(&self, name: &str) -> Result<Option<QueuedOperation>, UnreadOperation> {
        let document = self.document(name);
        let unread = |why: String| UnreadOperation { why, waits: false };
        match document.load() {
            Ok(Some(operation)) => Ok(Some(operation)),
            // An empty file, or a link without a target.
            Ok(None) if self.world.entry(document.path()).is_ok() => {
                Err(unread("the file is empty, or a link to nothing".to_owned()))
            }
            Ok(None) => Ok(None),
            Err(DocumentError::Damaged { why, .. }) => Err(unread(format!("damaged: {why}"))),
            Err(DocumentError::Io {
                source: source @ (WorldError::TooLarge(_) | WorldError::NotAFile),
                ..
            }) => Err(unread(source.to_string())),
            Err(problem) => Err(UnreadOperation { why: problem.note(), waits: true }),
        }
    }

    /// Removes an operation that the server applied. If it stays, its id prevents that it is applied twice.
    pub(super) fn remove(&self, name: &str) {
        drop(self.world.remove(&self.folder.join(name)));
    }

    /// Removes what was saved for the case that the answer to a question does not come.
    pub(super) fn settle(&self, name: &str) -> Result<(), WorldError> {
        match self.world.remove(&self.folder.join(format!("{name}.json"))) {
            Ok(()) | Err(WorldError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sets an operation apart that the server rejected for good, or that cannot be read.
    pub(super) fn reject(&self, name: &str, why: &str) -> Result<(), WorldError> {
        let folder = self.folder.join(REJECTED);
        self.world.create_folder(&folder)?;
        self.world.rename(&self.folder.join(name), &folder.join(name))?;
        // Only the list of rejected operations contains it.
        drop(self.world.write(&folder.join(reason_of(name)), why.as_bytes()));
        Ok(())
    }

    /// Returns the rejected operations, oldest first.
    pub(super) fn rejected(&self) -> Vec<RejectedOperation> {
        let folder = self.folder.join(REJECTED);
        let mut names = self.world.list(&folder).unwrap_or_default();
        names.retain(|it| it.ends_with(".json") && !it.starts_with('.'));
        names.sort();
        let read = |name: String| {
            let why = self.world.read(&folder.join(reason_of(&name)), SHARED_FILE_BYTES_MAX);
            let why = String::from_utf8_lossy(&why.unwrap_or_default()).trim().to_owned();
            let path = folder.join(&name);
            let document =
                StoredDocument::new(self.world, path, OPERATION_BYTES_MAX, DamageAction::Refuse);
            let operation = document.load().unwrap_or_default();
            RejectedOperation { name: name.trim_end_matches(".json").to_owned(), why, operation }
        };
        names.into_iter().map(read).collect()
    }

    /// Returns whether the server rejected an earlier operation of the same answer.
    pub(super) fn is_answer_rejected(&self, name: &str, operation: &QueuedOperation) -> bool {
        let Some(answer) = &operation.answer else { return false };
        let name = name.trim_end_matches(".json");
        self.rejected().iter().filter(|it| it.name.as_str() < name).any(|it| {
            let earlier = it.operation.as_ref();
            earlier.is_some_and(|it| it.answer.as_ref() == Some(answer))
        })
    }

    /// Removes the later operations of the answer that an operation belongs to. Returns whether there were any.
    pub(super) fn remove_rest_of_answer(&self, name: &str, operation: &QueuedOperation) -> bool {
        let Some(answer) = &operation.answer else { return false };
        let mut names = self.names();
        names.retain(|it| {
            let later = if it.as_str() > name { self.read(it).ok().flatten() } else { None };
            later.is_some_and(|it| it.answer.as_ref() == Some(answer))
        });
        names.iter().for_each(|it| self.remove(it));
        !names.is_empty()
    }

    /// Puts a rejected operation back, so that it is sent again.
    pub(super) fn restore(&self, name: &str) -> Result<(), WorldError> {
        let (file, folder) = (format!("{name}.json"), self.folder.join(REJECTED));
        self.world.rename(&folder.join(&file), &self.folder.join(&file))?;
        drop(self.world.remove(&folder.join(reason_of(&file))));
        Ok(())
    }

    /// Removes a rejected operation.
    pub(super) fn discard(&self, name: &str) -> Result<(), WorldError> {
        let (file, folder) = (format!("{name}.json"), self.folder.join(REJECTED));
        let path = folder.join(&file);
        match self.world.remove(&path) {
            Ok(()) => {}
            // A directory is not an operation.
            Err(_) => self.world.remove_folder(&path)?,
        }
        drop(self.world.remove(&folder.join(reason_of(&file))));
        Ok(())
    }

    /// Moves the operations that wait for another store to this one. Their ids stay. Returns their number.
    pub(super) fn take_from(&self, store: &str) -> Result<usize, WorldError> {
        let mut moved: usize = 0;
        for name in self.all_names() {
            let Some(start) = name.strip_suffix(&format!("-{store}.json")) else { continue };
            let next = format!("{start}-{}.json", self.store);
            self.world.rename(&self.folder.join(&name), &self.folder.join(next))?;
            moved = moved.saturating_add(1);
        }
        Ok(moved)
    }
}

/// Returns the name of the file that says why an operation was rejected.
fn reason_of(name: &str) -> String {
    format!("{}.txt", name.trim_end_matches(".json"))
}
