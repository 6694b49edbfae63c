//! Operations that wait for the server: one file each, written before the local change and removed after the
//! server applied the operation. Names are in the order of the operations, and contain which server and group they are for.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::action::SharedAction;
use crate::document::{DamageAction, DocumentError, StoredDocument, with_version};
use crate::file::Durability;
use policyd_base::limits::{OPERATION_BYTES_MAX, OUTBOX_MAX};
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
    /// Appends an operation durably.
    pub(super) fn push(
        &self,
        client: &str,
        action: SharedAction,
        at: Timestamp,
    ) -> Result<(), WorldError> {
        let (name, operation) = self.make(client, action, at);
        self.save(&name, &operation)
    }

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
        let operation = QueuedOperation { id: format!("{client}-{name}"), at, action };
        (name, operation)
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

    /// Reads an operation. `None` if another process removed it, or if the file is damaged. A damaged file is moved to
    /// the rejected operations.
    ///
    /// # Errors
    /// A newer version of policyd wrote the operation, or it cannot be read. It waits, and so do those behind it.
    pub(super) fn read(&self, name: &str) -> Result<Option<QueuedOperation>, DocumentError> {
        let document = self.document(name);
        match document.load() {
            Err(problem @ DocumentError::Damaged { .. }) => {
                self.reject(name).map(|()| None).map_err(|_| problem)
            }
            loaded => loaded,
        }
    }

    /// Removes an operation that the server applied. If it stays, its id prevents that it is applied twice.
    pub(super) fn remove(&self, name: &str) {
        drop(self.world.remove(&self.folder.join(name)));
    }

    /// Sets an operation apart that the server rejected for good.
    pub(super) fn reject(&self, name: &str) -> Result<(), WorldError> {
        let folder = self.folder.join(REJECTED);
        self.world.create_folder(&folder)?;
        self.world.rename(&self.folder.join(name), &folder.join(name))
    }

    /// Returns whether an operation was rejected.
    pub(super) fn is_rejected(&self, name: &str) -> bool {
        self.world.stat(&self.folder.join(REJECTED).join(name)).is_ok()
    }

    /// Returns the number of rejected operations.
    pub(super) fn rejected(&self) -> usize {
        let names = self.world.list(&self.folder.join(REJECTED)).unwrap_or_default();
        names.iter().filter(|it| it.ends_with(".json")).count()
    }
}
