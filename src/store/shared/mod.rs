//! The shared store: documents of all hosts of a group on one server. The files of the state directory stay the
//! local copy, and the truth while the server cannot be reached. Approvals and the registry of runs have a local copy of
//! their own.
//!
//! A change is first saved in the outbox, then applied to the local files. `sync` sends the outbox in order, and
//! takes over what others changed. The step functions of `state` decide at both places. Nothing here waits for a
//! server outside of `sync`.
//!
//! The outbox and the position are below the user's state directory: a repository cannot contain them.

pub mod action;
mod approvals;
mod copy;
mod decisions;
mod document_kind;
mod mirror;
mod outbox;
mod position;
mod run_record;
mod runs;
mod sent;
pub mod settings;
mod signal_document;
mod signals;
mod sync;
mod void;

use std::path::{Path, PathBuf};

use super::document::DocumentError;
use super::file::Durability;
use super::user;
use action::SharedAction;
pub use approvals::{AnswerResult, AskedCall, NamedRequest};
pub use copy::{CopyResult, Difference, DifferenceKind};
use outbox::Outbox;
pub use outbox::{QueuedOperation, RejectedOperation};
use policyd_base::limits::SHARED_FILE_BYTES_MAX;
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;
pub use position::SyncPosition;
pub use run_record::SharedRun;
use sent::SentLog;
use settings::{SharedSettingsError, SharedStoreSettings};
pub use signal_document::{SharedSignal, SharedSignalEnd, SignalResponse};
pub use signals::NamedSignal;
pub use sync::{COMMAND, QUICK, STORE_COMMAND, SyncError, SyncLimits, SyncResult};

/// Directory below the user's state of a project.
const FOLDER: &str = "shared";

/// Directory of the operations that were sent.
const SENT: &str = "sent";

/// Name of the host on Linux.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// The shared store as one state directory uses it.
pub struct SharedStore<'a> {
    world: &'a dyn World,
    /// State directory of the project.
    root: PathBuf,
    folder: PathBuf,
    durability: Durability,
    settings: SharedStoreSettings,
}

impl<'a> SharedStore<'a> {
    /// Returns the shared store of a state directory; `None` if the user configured none.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn find(
        world: &'a dyn World,
        root: &Path,
        durability: &Durability,
    ) -> Result<Option<Self>, SharedSettingsError> {
        let Some(settings) = SharedStoreSettings::load(world, root)? else { return Ok(None) };
        let Some(folder) = user::state_folder(world, root) else { return Ok(None) };
        let (root, durability) = (root.to_owned(), durability.clone());
        Ok(Some(Self { world, root, folder: folder.join(FOLDER), durability, settings }))
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &SharedStoreSettings {
        &self.settings
    }

    /// Saves a change for the server. The caller holds the lock of the local document.
    ///
    /// # Errors
    /// The change was not saved.
    pub fn push(&self, action: SharedAction, at: Timestamp) -> Result<(), WorldError> {
        self.push_in_answer(None, action, at)
    }

    /// Saves a change that can belong to an answer of a human, by the id of the answer. If the server refuses an earlier
    /// change of the answer, this one is not sent.
    ///
    /// # Errors
    /// The change was not saved.
    pub(super) fn push_in_answer(
        &self,
        answer: Option<&str>,
        action: SharedAction,
        at: Timestamp,
    ) -> Result<(), WorldError> {
        let (client, outbox) = (position::client(self.world, &self.folder)?, self.outbox());
        let (name, operation) = outbox.make(&client, action, at);
        let answer = answer.map(str::to_owned);
        outbox.save(&name, &QueuedOperation { answer, ..operation })
    }

    /// Saves a change that this host knows, and that the server lost.
    ///
    /// # Errors
    /// The change was not saved.
    pub(super) fn push_again(&self, action: SharedAction, at: Timestamp) -> Result<(), WorldError> {
        let (client, outbox) = (position::client(self.world, &self.folder)?, self.outbox());
        let (name, operation) = outbox.make(&client, action, at);
        outbox.save(&name, &QueuedOperation { is_again: true, ..operation })
    }

    /// Returns the operations that wait for the server, oldest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<QueuedOperation> {
        let outbox = self.outbox();
        let operations =
            outbox.names().into_iter().filter_map(|it| outbox.read(&it).ok().flatten());
        operations.collect()
    }

    /// Returns whether operations wait for the server.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.outbox().names().is_empty()
    }

    /// Returns the number of operations that wait for another server or group. They are sent once it is configured again.
    #[must_use]
    pub fn waiting_elsewhere(&self) -> usize {
        self.outbox().elsewhere()
    }

    /// Returns the operations that the server rejected for good, oldest first.
    #[must_use]
    pub fn rejected(&self) -> Vec<RejectedOperation> {
        self.outbox().rejected()
    }

    /// Puts a rejected operation back into the outbox, so that it is sent again.
    ///
    /// # Errors
    /// The file cannot be moved.
    pub fn restore_rejected(&self, operation: &RejectedOperation) -> Result<(), WorldError> {
        self.outbox().restore(&operation.name)
    }

    /// Removes a rejected operation.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn discard_rejected(&self, operation: &RejectedOperation) -> Result<(), WorldError> {
        self.outbox().discard(&operation.name)
    }

    /// Moves what waits for another server or group to the configured ones. Returns the number of operations.
    ///
    /// # Errors
    /// A file cannot be moved.
    pub fn take_waiting_of(&self, url: &str, group: &str) -> Result<usize, WorldError> {
        let from = settings::fingerprint(url, group);
        if from == self.settings.fingerprint() { Ok(0) } else { self.outbox().take_from(&from) }
    }

    /// Returns what is known of the server.
    ///
    /// # Errors
    /// A newer version of policyd wrote it, or it cannot be read.
    pub fn position(&self) -> Result<SyncPosition, DocumentError> {
        SyncPosition::load(self.world, &self.folder, &self.settings.fingerprint())
    }

    /// Returns the URL that the environment chooses, if the configuration does not contain it.
    #[must_use]
    pub fn ignored_url(&self) -> Option<String> {
        let chosen = self.world.env(settings::VARIABLE);
        chosen.filter(|it| *it != self.settings.url)
    }

    /// Returns the name of this host, as humans on other hosts see it.
    #[must_use]
    pub fn host_name(&self) -> String {
        let bytes =
            self.world.read(Path::new(HOST_NAME), SHARED_FILE_BYTES_MAX).unwrap_or_default();
        let name = String::from_utf8_lossy(&bytes).trim().to_owned();
        let variables = ["HOSTNAME", "COMPUTERNAME"];
        let named = || variables.iter().find_map(|it| self.world.env(it)).unwrap_or_default();
        if name.is_empty() { named() } else { name }
    }

    /// Returns the time of this host.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn sent(&self) -> SentLog<'a> {
        let (folder, store) = (self.folder.join(SENT), self.settings.fingerprint());
        SentLog { world: self.world, folder, store }
    }

    fn outbox(&self) -> Outbox<'a> {
        let folder = self.folder.join(position::OUTBOX);
        let store = self.settings.fingerprint();
        Outbox { world: self.world, folder, store, durability: self.durability.clone() }
    }
}

#[cfg(test)]
mod tests;
