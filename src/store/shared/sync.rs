//! Sends the outbox to the server in order, and takes over what others changed. The only code that waits for the
//! server, always within a limit.

use std::time::Duration;

use serde_json::Value;

use super::SharedStore;
use super::action::{
    APPROVAL, BREAKER, ESCALATION, RUN, SIGNAL, SharedAction, SharedResponse, TASK,
};
use super::mirror::{RUNS, SIGNALS};
use super::outbox::QueuedOperation;
use super::position::SyncPosition;
use super::settings::SharedSettingsError;
use crate::breakers::BreakerStore;
use crate::document::DocumentError;
use crate::escalations::EscalationStore;
use crate::queues::QueueStore;
use policyd_base::limits::{
    HOOK_LOCK_WAIT, SHARED_AGE_MAX, SHARED_CALL_TIME, SHARED_CLOCK_TOLERANCE, SHARED_COMMAND_WAIT,
    SHARED_HOOK_WAIT, SHARED_STORE_WAIT,
};
use policyd_world::WorldError;
use policyd_world::server::{
    ChangeResult, ChangedDocument, DocumentChange, DocumentName, DocumentServer, ServerChanges,
    ServerError,
};
use policyd_yaml::time::Timestamp;

/// Schema version whose server lets only a human answer approvals and signals. Before it, an account of an agent could
/// change every row.
const ANSWERS_SCHEMA: i32 = 4;
/// The server limits a document to this size.
const DOCUMENT_MIB: usize = 1;

/// How long a synchronization may take, and when none is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncLimits {
    /// Longest time for the whole synchronization.
    pub wait: Duration,
    /// Age up to which the local files count as current.
    pub age_max: Duration,
    /// Whether to try although the last attempt failed a moment ago.
    pub at_once: bool,
}

/// Limits of a hook, and of a command that scripts call often: a copy of a moment ago is current.
pub const QUICK: SyncLimits =
    SyncLimits { wait: SHARED_HOOK_WAIT, age_max: SHARED_AGE_MAX, at_once: false };
/// Limits of a command, which can wait longer than a hook and always works on a current copy.
pub const COMMAND: SyncLimits =
    SyncLimits { wait: SHARED_COMMAND_WAIT, age_max: Duration::ZERO, at_once: true };
/// Limits of a command about the store itself.
pub const STORE_COMMAND: SyncLimits = SyncLimits { wait: SHARED_STORE_WAIT, ..COMMAND };

/// Result of a synchronization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncResult {
    /// Operations that the server applied.
    pub sent: usize,
    /// Operations that the server rejected for good.
    pub rejected: Vec<String>,
    /// Documents that others changed.
    pub received: usize,
    /// Operations that still wait.
    pub waiting: usize,
}

/// What was taken over from the server.
#[derive(Debug, Clone, Default)]
struct ReceivedChanges {
    /// Number of documents.
    documents: usize,
    /// What is wrong with them.
    problems: Vec<String>,
}

/// Why the local files are not synchronized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    #[error(transparent)]
    Settings(#[from] SharedSettingsError),
    #[error("shared store: {0}")]
    Server(#[from] ServerError),
    #[error("shared store: {0}")]
    Local(#[from] WorldError),
    #[error("shared store: {}", .0.note())]
    Document(#[from] DocumentError),
    /// The documents of the group do not fit into memory at once.
    #[error("shared store: the documents of the group have more than {0} bytes")]
    TooLarge(usize),
    /// An attempt failed a moment ago; the next one follows later.
    #[error("{0}")]
    Deferred(String),
}

/// A connection in use.
struct ServerSession<'s, 'a> {
    store: &'s SharedStore<'a>,
    server: Box<dyn DocumentServer>,
    /// Elapsed time at which the session must end.
    end: Duration,
}

impl SharedStore<'_> {
    /// Sends what waits, and takes over what others changed.
    ///
    /// # Errors
    /// The server did not answer in time, or local files could not be written. What waits is sent later.
    pub fn sync(&self, limits: SyncLimits) -> Result<SyncResult, SyncError> {
        let now = self.world.now();
        let position = self.position()?;
        let idle = self.outbox().names().is_empty();
        if idle && position.is_fresh(now, limits.age_max) {
            return Ok(SyncResult::default());
        }
        if !limits.at_once && !position.may_try(now) {
            return Err(SyncError::Deferred(position.problem.unwrap_or_default()));
        }
        let end = self.world.elapsed().saturating_add(limits.wait);
        self.world.create_folder(&self.folder)?;
        let lock = self.world.lock(&self.folder.join(".sync.lock"), limits.wait);
        let _held = match lock {
            Ok(held) => held,
            // Another process synchronizes.
            Err(WorldError::Locked(_)) => {
                return Ok(SyncResult {
                    waiting: self.outbox().names().len(),
                    ..SyncResult::default()
                });
            }
            Err(error) => return Err(error.into()),
        };
        // Another process can have done it in between.
        let mut position = self.position()?;
        if self.outbox().names().is_empty() && position.is_fresh(now, limits.age_max) {
            return Ok(SyncResult::default());
        }
        let result = self.connect(end).and_then(|mut session| session.sync(&mut position));
        let now = self.world.now();
        match &result {
            Ok(_) => position.succeed(now),
            Err(error) => position.fail(error.to_string(), now),
        }
        position.save(self.world, &self.folder)?;
        result
    }

    /// Lets the server decide about an operation, after everything that waits was sent.
    ///
    /// # Errors
    /// As for [`SharedStore::sync`]. If it is unknown whether the server applied the operation, it waits in the
    /// outbox and is not applied twice.
    pub fn decide(
        &self,
        action: SharedAction,
        limits: SyncLimits,
    ) -> Result<SharedResponse, SyncError> {
        let now = self.world.now();
        let position = self.position()?;
        if !limits.at_once && !position.may_try(now) {
            return Err(SyncError::Deferred(position.problem.unwrap_or_default()));
        }
        let end = self.world.elapsed().saturating_add(limits.wait);
        self.world.create_folder(&self.folder)?;
        let _held = self.world.lock(&self.folder.join(".sync.lock"), limits.wait)?;
        let mut position = self.position()?;
        let outbox = self.outbox();
        let client = super::position::client(self.world, &self.folder)?;
        let (name, operation) = outbox.make(&client, action, now);
        let decided = self.connect(end).and_then(|mut session| {
            session.send(&mut SyncResult::default(), &mut position)?;
            session.limit()?;
            let response = session.apply(&operation).inspect_err(|error| {
                if error.is_commit_unknown() {
                    // If it cannot be saved, either the server has it or nothing happened.
                    let _not_saved = outbox.save(&name, &operation);
                }
            })?;
            // The decision is made. What others changed can follow later.
            drop(session.receive(&mut position));
            Ok(response)
        });
        match &decided {
            Ok(_) => position.succeed(self.world.now()),
            // The server answered, so it is not avoided from now on.
            Err(SyncError::Server(error)) if !error.is_temporary() => {}
            Err(error) => position.fail(error.to_string(), self.world.now()),
        }
        position.save(self.world, &self.folder)?;
        let applied_before = || WorldError::Io("the operation was applied before".to_owned());
        decided?.ok_or_else(|| applied_before().into())
    }

    /// Records that the user was notified of a problem. Returns whether that was still to be done.
    pub fn notify_once(&self) -> bool {
        let Ok(mut position) = self.position() else { return true };
        if position.problem.is_none() || position.notified {
            return false;
        }
        position.notified = true;
        position.save(self.world, &self.folder).is_ok()
    }

    fn connect(&self, end: Duration) -> Result<ServerSession<'_, '_>, SyncError> {
        let left = || end.saturating_sub(self.world.elapsed());
        let address = self.settings.address(self.world, left())?;
        let server = self.world.connect(&address, left())?;
        Ok(ServerSession { store: self, server, end })
    }

    /// Connects for a command.
    ///
    /// # Errors
    /// The settings are invalid, or the server cannot be reached.
    pub fn server(&self, wait: Duration) -> Result<Box<dyn DocumentServer>, SyncError> {
        let address = self.settings.address(self.world, wait)?;
        Ok(self.world.connect(&address, wait)?)
    }
}

impl ServerSession<'_, '_> {
    fn sync(&mut self, position: &mut SyncPosition) -> Result<SyncResult, SyncError> {
        let mut result = SyncResult::default();
        self.send(&mut result, position)?;
        if result.waiting == 0 {
            let received = self.receive(position)?;
            result.received = received.documents;
            result.rejected.extend(received.problems);
        }
        Ok(result)
    }

    /// Takes over what others changed, as much as there is time for. Only one page is in memory at a time.
    fn receive(&mut self, position: &mut SyncPosition) -> Result<ReceivedChanges, SyncError> {
        let mut received = ReceivedChanges::default();
        loop {
            self.limit()?;
            let changes = self.server.changes(position.version)?;
            let now = self.store.world.now();
            position.ahead_ms = changes.now.millis().saturating_sub(now.millis());
            received.documents = received.documents.saturating_add(changes.documents.len());
            let large = changes.documents.iter().filter(|it| it.is_large);
            received.problems.extend(large.map(|it| {
                format!("{} `{}`: larger than {DOCUMENT_MIB} MiB; not read", it.kind, it.name)
            }));
            let complete = self.adopt(&changes, position.ahead_ms, &mut received)?;
            let is_page_complete = complete >= changes.version;
            position.version = complete.min(changes.version);
            let left = self.end.saturating_sub(self.store.world.elapsed());
            // The next synchronization continues from here.
            if !changes.has_more || !is_page_complete || left < SHARED_CALL_TIME {
                return Ok(received);
            }
        }
    }

    /// Sends the operations in order, as many as there is time for.
    fn send(
        &mut self,
        result: &mut SyncResult,
        position: &mut SyncPosition,
    ) -> Result<(), SyncError> {
        let outbox = self.store.outbox();
        loop {
            let names = outbox.names();
            if names.is_empty() {
                return Ok(());
            }
            for name in names {
                let Some(operation) = outbox.read(&name)? else {
                    if outbox.is_rejected(&name) {
                        result.rejected.push(format!("the operation `{name}` is damaged"));
                    }
                    continue;
                };
                let left = self.end.saturating_sub(self.store.world.elapsed());
                if result.sent > 0 && left < SHARED_CALL_TIME {
                    // The next process continues.
                    result.waiting = outbox.names().len();
                    return Ok(());
                }
                self.limit()?;
                match self.apply(&operation) {
                    Ok(_) => result.sent = result.sent.saturating_add(1),
                    Err(error) if error.is_temporary() => {
                        result.waiting = outbox.names().len();
                        return Err(error.into());
                    }
                    Err(error) => {
                        let document = operation.action.document();
                        let text = format!("{} `{}`: {error}", document.kind, document.name);
                        result.rejected.push(text);
                        // The local change was wrong: the document is read again.
                        position.version = 0;
                        outbox.reject(&name)?;
                    }
                }
                outbox.remove(&name);
            }
        }
    }

    /// Sets the limit of the next call to the time that is left.
    fn limit(&mut self) -> Result<(), ServerError> {
        let left = self.end.saturating_sub(self.store.world.elapsed());
        if left.is_zero() {
            return Err(ServerError::TimedOut(left));
        }
        self.server.limit(left);
        Ok(())
    }

    /// Applies an operation. Times of events are moved to the clock of the server.
    fn apply(
        &mut self,
        operation: &QueuedOperation,
    ) -> Result<Option<SharedResponse>, ServerError> {
        let now = self.store.world.now();
        let age = now.since(operation.at);
        let mut response = None;
        let document = operation.action.document();
        let change = DocumentChange { operation: &operation.id, document };
        let result = self.server.change(change, &mut |text, server_now| {
            let known: Option<Value> = text.and_then(|it| serde_json::from_str(it).ok());
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            let at = Timestamp::from_millis(server_now.millis().saturating_sub(age));
            let (content, said) = operation.action.apply(known.as_ref(), at);
            response = Some(said);
            content
        })?;
        Ok(response.filter(|_| result == ChangeResult::Committed))
    }

    /// Takes over what others changed. Returns the version up to which that is complete: a document with a waiting
    /// operation is taken over after the operation was sent.
    fn adopt(
        &self,
        changes: &ServerChanges,
        ahead_ms: i64,
        received: &mut ReceivedChanges,
    ) -> Result<i64, SyncError> {
        let SharedStore { world, root, durability, settings, .. } = self.store;
        let documents = changes.documents.as_slice();
        let mut complete = i64::MAX;
        let has =
            |kind: &str| settings.shares_kind(kind) && documents.iter().any(|it| it.kind == kind);
        let tolerance = i64::try_from(SHARED_CLOCK_TOLERANCE.as_millis()).unwrap_or(i64::MAX);
        let ahead = if ahead_ms.abs() < tolerance { 0 } else { ahead_ms };
        if has(BREAKER) {
            let local = BreakerStore::new(*world, root, durability.clone()).patient(HOOK_LOCK_WAIT);
            local.adopt(|| self.current(documents, BREAKER, &mut complete), ahead)?;
        }
        if has(TASK) {
            let local = QueueStore::new(*world, root, durability.clone(), HOOK_LOCK_WAIT);
            local.adopt(|| self.current(documents, TASK, &mut complete))?;
        }
        if has(ESCALATION) {
            let local = EscalationStore::new(*world, root, durability.clone(), HOOK_LOCK_WAIT);
            local.adopt(|| self.current(documents, ESCALATION, &mut complete))?;
        }
        // An older schema does not check who answered.
        let checks = changes.schema >= ANSWERS_SCHEMA;
        if !checks && (has(APPROVAL) || has(SIGNAL)) {
            received.problems.push(format!(
                "approvals and signals: the schema has version {}, in which agents can forge answers; \
                 run `policyd store migrate` with the URL of the administrator",
                changes.schema
            ));
        }
        if has(APPROVAL) && checks {
            let current = || self.current(documents, APPROVAL, &mut complete);
            received.problems.extend(self.store.adopt_approvals(current, ahead)?);
        }
        if has(RUN) {
            self.store.mirror(RUNS).adopt(|| self.current(documents, RUN, &mut complete))?;
        }
        if has(SIGNAL) && checks {
            self.store.mirror(SIGNALS).adopt(|| self.current(documents, SIGNAL, &mut complete))?;
        }
        Ok(complete)
    }

    /// Returns the documents of one kind for which no operation waits.
    fn current(
        &self,
        documents: &[ChangedDocument],
        kind: &str,
        complete: &mut i64,
    ) -> Vec<(String, Option<Value>)> {
        let waiting = self.store.waiting();
        let is_waiting = |name: &str| {
            waiting.iter().any(|it| it.action.document() == DocumentName { kind, name })
        };
        let mut current = Vec::new();
        for it in documents.iter().filter(|it| it.kind == kind) {
            if is_waiting(&it.name) {
                *complete = (*complete).min(it.version.saturating_sub(1));
                continue;
            }
            if it.is_large {
                continue;
            }
            let document = it.text.as_ref().map(|text| serde_json::from_str(text));
            if let Ok(document) = document.transpose() {
                current.push((it.name.clone(), document));
            }
        }
        current
    }
}
