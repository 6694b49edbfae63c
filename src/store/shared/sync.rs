//! Sends the outbox to the server in order, and takes over what others changed. The only code that waits for the
//! server, always within a limit.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::SharedStore;
use super::action::{SharedAction, SharedResponse};
use super::document_kind::{APPROVAL, BREAKER, ESCALATION, KINDS, RUN, SIGNAL, TASK};
use super::mirror::{RUNS, SIGNALS};
use super::outbox::{QueuedOperation, UnreadOperation};
use super::position::SyncPosition;
use super::sent::SentLog;
use super::settings::SharedSettingsError;
use super::signal_document::{is_answer_lost, on_local_clock};
use super::void::VoidQuestion;
use crate::breakers::BreakerStore;
use crate::decision_log::log_decision;
use crate::document::DocumentError;
use crate::escalations::EscalationStore;
use crate::queues::QueueStore;
use policyd_base::limits::{
    HOOK_LOCK_WAIT, SHARED_AGE_MAX, SHARED_CALL_TIME, SHARED_CLOCK_TOLERANCE, SHARED_COMMAND_WAIT,
    SHARED_HOOK_WAIT, SHARED_STORE_WAIT,
};
use policyd_record::mask::mask;
use policyd_record::notice::{SwitchKind, switch_entry};
use policyd_world::server::{
    ChangeResult, ChangedDocument, DocumentChange, DocumentName, DocumentServer, NewContent,
    ServerChanges, ServerError, ServerState,
};
use policyd_world::{HeldLock, World, WorldError};
use policyd_yaml::time::Timestamp;

/// Schema version whose server lets only a human answer approvals and signals. Before it, an account of an agent could
/// change every row.
const ANSWERS_SCHEMA: i32 = 4;
/// Kinds that humans answer.
const ANSWERED: [&str; 2] = [APPROVAL, SIGNAL];
/// Why an operation is not sent whose answer the server refused.
const OF_REJECTED_ANSWER: &str = "not changed, because it belongs to an answer that was refused";
/// Lock of the process that exchanges changes.
const LOCK: &str = ".sync.lock";
/// The server limits a document to this size.
const DOCUMENT_MIB: usize = 1;

/// How long a synchronization may take, and when none is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncLimits<'t> {
    /// Longest time for the whole synchronization.
    pub wait: Duration,
    /// What is left of a time that several synchronizations and questions share.
    pub left: Option<&'t Cell<Duration>>,
    /// Age up to which the local files count as current.
    pub age_max: Duration,
    /// Whether to try although the last attempt failed a moment ago.
    pub at_once: bool,
}

impl SyncLimits<'_> {
    /// Returns limits that share a time with others.
    #[must_use]
    pub const fn within(self, left: &Cell<Duration>) -> SyncLimits<'_> {
        let Self { wait, age_max, at_once, .. } = self;
        SyncLimits { wait, left: Some(left), age_max, at_once }
    }

    /// Returns the limits of what follows: a server that did not answer a moment ago is not waited for again.
    #[must_use]
    pub const fn and_then(self) -> Self {
        Self { at_once: false, ..self }
    }

    /// Returns the time that is left.
    fn time(self) -> Duration {
        self.left.map_or(self.wait, |it| it.get().min(self.wait))
    }

    /// Does work whose time counts.
    fn measured<T>(self, world: &dyn World, work: impl FnOnce() -> T) -> T {
        let began = world.elapsed();
        let done = work();
        if let Some(left) = self.left {
            left.set(left.get().saturating_sub(world.elapsed().saturating_sub(began)));
        }
        done
    }
}

/// Limits of a hook, and of a command that scripts call often: a copy of a moment ago is current.
pub const QUICK: SyncLimits<'static> =
    SyncLimits { wait: SHARED_HOOK_WAIT, left: None, age_max: SHARED_AGE_MAX, at_once: false };
/// Limits of a command, which can wait longer than a hook and always works on a current copy.
pub const COMMAND: SyncLimits<'static> =
    SyncLimits { wait: SHARED_COMMAND_WAIT, left: None, age_max: Duration::ZERO, at_once: true };
/// Limits of a command about the store itself.
pub const STORE_COMMAND: SyncLimits<'static> = SyncLimits { wait: SHARED_STORE_WAIT, ..COMMAND };

/// Result of a synchronization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncResult {
    /// Operations that the server applied.
    pub sent: usize,
    /// What does not count: operations that the server rejected for good, answers that came after another one, and what cannot
    /// be read.
    pub rejected: Vec<String>,
    /// Those of them that the server refused, although an entry of the log can say that this host made the change.
    refused: Vec<String>,
    /// Documents that others changed.
    pub received: usize,
    /// Operations that still wait.
    pub waiting: usize,
    /// What happened to questions whose answer was lost.
    pub notes: Vec<String>,
    /// Files of the outbox that wait because this program cannot read them.
    pub unread: Vec<String>,
    /// Whether the time ended before everything was sent and read, so that the local files can be old.
    pub is_partial: bool,
}

/// What was taken over from the server.
#[derive(Debug, Clone, Default)]
struct ReceivedChanges {
    /// Number of documents.
    documents: usize,
    /// What is wrong with them.
    problems: Vec<String>,
    /// Whether there are more.
    is_partial: bool,
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
    /// Another process of this host uses the connection, or more changes wait than there is time for. The server is fine.
    #[error("shared store: this host is busy with other changes; try again")]
    Busy,
}

/// Whether an operation still counts if the process does not learn what the server did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfUnknown {
    /// A question is void: no process waits for the answer anymore.
    Void,
    /// The answer of a human is sent later.
    Send,
}

/// The right of this process to exchange changes, among those of the host.
struct SyncTurn {
    _held: Box<dyn HeldLock>,
    /// Elapsed time at which it ends.
    end: Duration,
    /// Whether other processes took a part of the time. A failure then says nothing about the server.
    is_short: bool,
}

/// A connection in use.
struct ServerSession<'s, 'a> {
    store: &'s SharedStore<'a>,
    server: Box<dyn DocumentServer>,
    /// Elapsed time at which the session must end.
    end: Duration,
    /// Time that it had.
    wait: Duration,
    /// What the server said of itself.
    state: ServerState,
    /// When the server was asked for that, and when it answered.
    asked: Timestamp,
    met: Timestamp,
    /// Whether this session changed nothing on the server since then.
    is_unchanged: bool,
    /// Operations that were sent again.
    resent: usize,
    /// Id of the question whose answer came. Its void is still in the outbox.
    answered: Option<String>,
}

/// What the user learns of an operation that the server applied.
#[derive(Default)]
struct AppliedNotes {
    /// What happened to a question whose answer was lost.
    note: Option<String>,
    /// Why an answer does not count.
    late: Option<String>,
}

impl SharedStore<'_> {
    /// Sends what waits, and takes over what others changed.
    ///
    /// # Errors
    /// The server did not answer in time, or local files could not be written. What waits is sent later.
    pub fn sync(&self, limits: SyncLimits<'_>) -> Result<SyncResult, SyncError> {
        limits.measured(self.world, || self.sync_within(limits))
    }

    fn sync_within(&self, limits: SyncLimits<'_>) -> Result<SyncResult, SyncError> {
        let position = self.position()?;
        if self.is_current(&position, limits) {
            return Ok(SyncResult::default());
        }
        if !limits.at_once && !position.may_try(self.world.now()) {
            return Err(SyncError::Deferred(position.problem.unwrap_or_default()));
        }
        let busy = || {
            let waiting = self.outbox().names().len();
            SyncResult { waiting, is_partial: true, ..SyncResult::default() }
        };
        let Some(turn) = self.turn(limits)? else { return Ok(busy()) };
        // Another process can have done it in between.
        let mut position = self.position()?;
        if self.is_current(&position, limits) {
            return Ok(SyncResult::default());
        }
        let session = self.connect(turn.end, &mut position);
        let mut result = session.and_then(|mut it| it.sync(&mut position));
        if let Ok(result) = &mut result {
            let unreported = position.take_unreported();
            result.refused.extend(unreported.iter().cloned());
            result.rejected.extend(unreported);
        }
        let is_busy = result.as_ref().is_err_and(|it| it.is_contention(turn.is_short));
        let now = self.world.now();
        match &result {
            Ok(_) => position.succeed(now),
            Err(_) if is_busy => {}
            Err(error) => position.fail(error.to_string(), now),
        }
        position.save(self.world, &self.folder)?;
        if let Ok(result) = &result {
            self.log_refusals(&result.refused);
        }
        if is_busy { Ok(busy()) } else { result }
    }

    /// Logs that changes do not count, because earlier entries of this host say that they were made.
    fn log_refusals(&self, refused: &[String]) {
        if refused.is_empty() {
            return;
        }
        let by = format!("the shared store {}", self.settings().shown_url());
        let text = mask(&refused.join("; ")).0.into_owned();
        let entry = switch_entry(self.world.now(), SwitchKind::Refusal, None, text, by);
        // The outbox lists it, too.
        let _unlogged = log_decision(self.world, &self.root, entry);
    }

    /// Returns whether nothing is to be sent, and the local files are young enough.
    fn is_current(&self, position: &SyncPosition, limits: SyncLimits<'_>) -> bool {
        position.is_fresh(self.world.now(), limits.age_max) && self.outbox().names().is_empty()
    }

    /// Waits for the other processes of this host, at most half of the time. `None` if they need longer.
    fn turn(&self, limits: SyncLimits<'_>) -> Result<Option<SyncTurn>, SyncError> {
        let time = limits.time();
        if time.is_zero() {
            return Err(ServerError::TimedOut(limits.wait).into());
        }
        let half = |it: Duration| it.checked_div(2).unwrap_or_default();
        let began = self.world.elapsed();
        self.world.create_folder(&self.folder)?;
        match self.world.lock(&self.folder.join(LOCK), half(time)) {
            Ok(held) => {
                let waited = self.world.elapsed().saturating_sub(began);
                let rest = time.saturating_sub(waited);
                let is_short =
                    waited > time.checked_div(10).unwrap_or_default() || rest < half(limits.wait);
                Ok(Some(SyncTurn { _held: held, end: began.saturating_add(time), is_short }))
            }
            Err(WorldError::Locked(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the server decide about a question, after everything that waits was sent. If the answer is lost, the question
    /// is void.
    ///
    /// # Errors
    /// As for [`SharedStore::sync`]. Nothing was changed, or it is taken back by the next synchronization where that is
    /// possible.
    pub fn decide(
        &self,
        action: SharedAction,
        limits: SyncLimits<'_>,
    ) -> Result<SharedResponse, SyncError> {
        limits.measured(self.world, || self.ask_server(action, limits, IfUnknown::Void))
    }

    /// Lets the server decide about an answer of a human. If it is unknown whether the server has it, it waits in the outbox
    /// and is not applied twice.
    ///
    /// # Errors
    /// As for [`SharedStore::sync`].
    pub(super) fn submit(
        &self,
        action: SharedAction,
        limits: SyncLimits<'_>,
    ) -> Result<SharedResponse, SyncError> {
        limits.measured(self.world, || self.ask_server(action, limits, IfUnknown::Send))
    }

    fn ask_server(
        &self,
        action: SharedAction,
        limits: SyncLimits<'_>,
        if_unknown: IfUnknown,
    ) -> Result<SharedResponse, SyncError> {
        let now = self.world.now();
        let position = self.position()?;
        if !limits.at_once && !position.may_try(now) {
            return Err(SyncError::Deferred(position.problem.unwrap_or_default()));
        }
        let turn = self.turn(limits)?.ok_or(SyncError::Busy)?;
        let mut position = self.position()?;
        let client = super::position::client(self.world, &self.folder)?;
        let question = self.outbox().make(&client, action, now);
        let session = self.connect(turn.end, &mut position);
        let decided =
            session.and_then(|mut it| it.ask(&question.0, &question.1, if_unknown, &mut position));
        match &decided {
            Ok(_) => position.succeed(self.world.now()),
            // The server answered, so it is not avoided from now on.
            Err(SyncError::Server(error)) if error.is_commit_unknown() || !error.is_temporary() => {
            }
            Err(error) if error.is_contention(turn.is_short) => {}
            Err(error) => position.fail(error.to_string(), self.world.now()),
        }
        let saved = position.save(self.world, &self.folder);
        let applied_before = || WorldError::Io("the operation was applied before".to_owned());
        let response = decided?.ok_or_else(applied_before)?;
        // The answer counts although the position was not saved: what it says can be read again.
        drop(saved);
        // From here on, the asker has the answer.
        self.outbox().settle(&question.0)?;
        Ok(response)
    }

    /// Records that the user was notified of a problem. Returns whether that was still to be done.
    pub fn notify_once(&self) -> bool {
        // Of two processes, one notifies. Another one that holds the lock for long does it itself.
        let lock = self.world.lock(&self.folder.join(LOCK), SHARED_CALL_TIME);
        if matches!(lock, Err(WorldError::Locked(_))) {
            return false;
        }
        let Ok(mut position) = self.position() else { return true };
        if position.problem.is_none() || position.notified {
            return false;
        }
        position.notified = true;
        position.save(self.world, &self.folder).is_ok()
    }

    /// Connects, and learns where the server is before anything is sent. A server whose schema is too new is not used.
    fn connect(
        &self,
        end: Duration,
        position: &mut SyncPosition,
    ) -> Result<ServerSession<'_, '_>, SyncError> {
        let wait = end.saturating_sub(self.world.elapsed());
        let address = self.settings.address(self.world, wait)?;
        let left = end.saturating_sub(self.world.elapsed());
        let server = self.world.connect(&address, left)?;
        let state = ServerState::default();
        let (is_unchanged, answered) = (true, None);
        let (asked, store) = (self.world.now(), self);
        let met = asked;
        let mut session = ServerSession {
            store,
            server,
            end,
            wait,
            state,
            asked,
            met,
            is_unchanged,
            resent: 0,
            answered,
        };
        session.limit()?;
        session.state = session.server.state(position.version)?;
        session.met = self.world.now();
        position.meet(&session.state, session.kinds(), self.world.now());
        session.send_again(position)?;
        Ok(session)
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

impl SyncError {
    /// Returns whether other processes of this host are the cause; `is_short`: they took a part of the time.
    const fn is_contention(&self, is_short: bool) -> bool {
        match self {
            Self::Busy | Self::Local(WorldError::Locked(_)) => true,
            Self::Server(ServerError::TimedOut(_) | ServerError::Unreachable(_)) => is_short,
            Self::Server(_)
            | Self::Local(_)
            | Self::Settings(_)
            | Self::Document(_)
            | Self::TooLarge(_)
            | Self::Deferred(_) => false,
        }
    }
}

/// Returns whether the server refused a signal that only humans send to other hosts.
fn is_for_humans(operation: &QueuedOperation, error: &ServerError) -> bool {
    matches!(error, ServerError::NotPermitted(_)) && operation.action.interrupts().is_some()
}

impl ServerSession<'_, '_> {
    fn sync(&mut self, position: &mut SyncPosition) -> Result<SyncResult, SyncError> {
        let mut result = SyncResult::default();
        let is_complete = self.send(&mut result, position)?;
        if !is_complete || position.resend.is_some() {
            result.sent = result.sent.saturating_add(self.resent);
            result.is_partial = true;
            return Ok(result);
        }
        let received = self.receive(position)?;
        if position.may_lack_changes(self.store.world.now()) {
            // Answers that the server lost are in the outbox now.
            if self.left() >= SHARED_CALL_TIME {
                self.send(&mut result, position)?;
            }
            result.waiting = self.store.outbox().names().len();
        }
        result.received = received.documents;
        result.is_partial = received.is_partial;
        result.rejected.extend(received.problems);
        Ok(result)
    }

    /// Asks the server, after everything that waits was sent.
    fn ask(
        &mut self,
        name: &str,
        operation: &QueuedOperation,
        if_unknown: IfUnknown,
        position: &mut SyncPosition,
    ) -> Result<Option<SharedResponse>, SyncError> {
        let mut sent = SyncResult::default();
        let mut is_complete = self.send(&mut sent, position)?;
        if is_complete && position.is_restored {
            // What this host knows and the server lost is known to it before it decides.
            is_complete = !self.receive(position)?.is_partial && self.send(&mut sent, position)?;
        }
        position.report_later(sent.rejected);
        if !is_complete || position.resend.is_some() {
            return Err(SyncError::Busy);
        }
        self.limit()?;
        self.is_unchanged = false;
        let outbox = self.store.outbox();
        let mut not_saved = None;
        // Saved before the commit, so that it is there if the process does not learn what the server did.
        let response = self.apply(operation, |_, response, content| {
            let left = match if_unknown {
                IfUnknown::Send => Some(operation.clone()),
                IfUnknown::Void => {
                    VoidQuestion::of(&operation.id, &operation.action, response, content)
                        .map(|void| operation.voided(void))
                }
            };
            not_saved = left.and_then(|it| outbox.save(name, &it).err());
            not_saved.is_none()
        });
        if let Some(error) = not_saved {
            return Err(error.into());
        }
        if matches!(&response, Err(error) if !error.is_commit_unknown()) {
            outbox.remove(&format!("{name}.json"));
        }
        let response = response?;
        self.answered = Some(operation.id.clone());
        self.store.sent().add(operation, self.store.world.now());
        // The decision is made. What others changed can follow later.
        drop(self.receive(position));
        Ok(response)
    }

    /// Returns the kinds that the local files take over. An older schema does not check who answered.
    fn kinds(&self) -> BTreeSet<String> {
        let checks = self.state.schema >= ANSWERS_SCHEMA;
        let is_adopted = |kind: &&str| {
            self.store.settings.shares_kind(kind) && (checks || !ANSWERED.contains(kind))
        };
        KINDS.into_iter().filter(is_adopted).map(str::to_owned).collect()
    }

    /// Sends again what a server that lost changes may not have, as much as there is time for.
    fn send_again(&mut self, position: &mut SyncPosition) -> Result<(), SyncError> {
        let sent = self.store.sent();
        let now = self.store.world.now();
        while let Some(mut from) = position.resend {
            for operation in sent.read(from) {
                if self.left() < SHARED_CALL_TIME {
                    return Ok(());
                }
                self.limit()?;
                self.is_unchanged = false;
                self.resent = self.resent.saturating_add(1);
                // A torn line is not an operation.
                if let Some(operation) = operation {
                    match self.send_one(&operation) {
                        Err(error) if error.is_temporary() => return Err(error.into()),
                        Ok(AppliedNotes { late, .. }) => position.report_later(late),
                        Err(_) if operation.is_again => {}
                        Err(error) => {
                            let DocumentName { kind, name } = operation.action.document();
                            let text = "the server lost a change, and rejects it now";
                            position.report_later([format!("{kind} `{name}`: {text}: {error}")]);
                        }
                    }
                }
                from.lines = from.lines.saturating_add(1);
                position.resend = Some(from);
            }
            position.resend = SentLog::next(from, now);
        }
        Ok(())
    }

    fn left(&self) -> Duration {
        self.end.saturating_sub(self.store.world.elapsed())
    }

    /// Takes over what others changed, as much as there is time for. Only one page is in memory at a time.
    fn receive(&mut self, position: &mut SyncPosition) -> Result<ReceivedChanges, SyncError> {
        let mut received = ReceivedChanges::default();
        if position.version == self.state.version && self.is_unchanged {
            position.notice_time(self.state.now, self.asked, self.met);
            position.is_restored = false;
            return Ok(received);
        }
        loop {
            self.limit()?;
            let asked = self.store.world.now();
            let changes = match self.server.changes(position.version) {
                // The server answered before, and only has more than there is time for.
                Err(ServerError::TimedOut(_)) if received.documents > 0 => {
                    received.is_partial = true;
                    return Ok(received);
                }
                changes => changes?,
            };
            position.notice_time(changes.now, asked, self.store.world.now());
            received.documents = received.documents.saturating_add(changes.documents.len());
            let large = changes.documents.iter().filter(|it| it.is_large);
            received.problems.extend(large.map(|it| {
                format!("{} `{}`: larger than {DOCUMENT_MIB} MiB; not read", it.kind, it.name)
            }));
            let complete = self.adopt(&changes, position, &mut received)?;
            let is_page_complete = complete >= changes.version;
            position.version = complete.min(changes.version);
            position.mark = changes.mark.filter(|_| is_page_complete);
            // The next synchronization continues from here.
            if !changes.has_more || !is_page_complete || self.left() < SHARED_CALL_TIME {
                received.is_partial = changes.has_more || !is_page_complete;
                position.is_restored = position.is_restored && received.is_partial;
                return Ok(received);
            }
        }
    }

    /// Sends the operations in order, as many as there is time for. Returns whether all were sent that can be.
    fn send(
        &mut self,
        result: &mut SyncResult,
        position: &mut SyncPosition,
    ) -> Result<bool, SyncError> {
        let outbox = self.store.outbox();
        let mut kept: BTreeSet<String> = BTreeSet::new();
        loop {
            let mut names = outbox.names();
            names.retain(|it| !kept.contains(it));
            if names.is_empty() {
                if result.sent > 0 && position.resend.is_none() {
                    self.store.sent().prune(self.store.world.now());
                }
                result.waiting = kept.len();
                return Ok(true);
            }
            for name in names {
                if result.sent > 0 && self.left() < SHARED_CALL_TIME {
                    // The next process continues.
                    result.waiting = outbox.names().len();
                    return Ok(false);
                }
                let Some(operation) = self.read_waiting(&name, result, &mut kept)? else {
                    continue;
                };
                if outbox.is_answer_rejected(&name, &operation) {
                    self.reject(&name, &operation, OF_REJECTED_ANSWER, result, position)?;
                    continue;
                }
                self.limit()?;
                self.is_unchanged = false;
                match self.send_one(&operation) {
                    Ok(AppliedNotes { note, late }) => {
                        // Another answer counts, so the changes that belong to this one are not made.
                        if late.is_some() && outbox.remove_rest_of_answer(&name, &operation) {
                            position.forget();
                        }
                        result.sent = result.sent.saturating_add(1);
                        result.notes.extend(note);
                        result.refused.extend(late.iter().cloned());
                        result.rejected.extend(late);
                        self.store.sent().add(&operation, self.store.world.now());
                        outbox.remove(&name);
                    }
                    Err(error) if error.is_temporary() => {
                        result.waiting = outbox.names().len();
                        return Err(error.into());
                    }
                    // This host only knows the answer; it did not give it.
                    Err(_) if operation.is_again => outbox.remove(&name),
                    Err(error) if is_for_humans(&operation, &error) => {
                        result.notes.extend(self.keep_local(&operation)?);
                        outbox.remove(&name);
                    }
                    Err(error) => {
                        self.reject(&name, &operation, &error.to_string(), result, position)?;
                    }
                }
            }
        }
    }

    /// Reads an operation that waits. `None`: there is nothing to send, and `result` contains what the user should know.
    fn read_waiting(
        &self,
        name: &str,
        result: &mut SyncResult,
        kept: &mut BTreeSet<String>,
    ) -> Result<Option<QueuedOperation>, WorldError> {
        let outbox = self.store.outbox();
        match outbox.read(name) {
            Ok(operation) => Ok(operation),
            Err(UnreadOperation { why, waits: true }) => {
                result.unread.push(format!("`{name}` of the outbox waits: {why}"));
                kept.insert(name.to_owned());
                Ok(None)
            }
            Err(UnreadOperation { why, waits: false }) => {
                outbox.reject(name, &why)?;
                result.rejected.push(format!("`{name}` of the outbox: {why}"));
                Ok(None)
            }
        }
    }

    /// Sets an operation apart that does not count. The local change was wrong: the document is read again.
    fn reject(
        &self,
        name: &str,
        operation: &QueuedOperation,
        why: &str,
        result: &mut SyncResult,
        position: &mut SyncPosition,
    ) -> Result<(), WorldError> {
        position.forget();
        self.store.outbox().reject(name, why)?;
        let DocumentName { kind, name } = operation.action.document();
        let text = format!("{kind} `{name}`: {why}");
        result.refused.push(text.clone());
        result.rejected.push(text);
        Ok(())
    }

    /// Keeps a signal that interrupts runs on this host, because the account must not send it to others. Returns what the user
    /// should know.
    fn keep_local(&self, operation: &QueuedOperation) -> Result<Option<String>, WorldError> {
        let document = operation.action.document().name;
        self.store.mirror(SIGNALS).change(|all| {
            all.remove(document);
            Ok(())
        })?;
        let name = operation.action.interrupts();
        Ok(name.map(|it| {
            format!(
                "{it} applies to this host only; an account with the role `policyd_human` sends it to all hosts"
            )
        }))
    }

    /// Sends an operation. Returns what the user should know.
    fn send_one(&mut self, operation: &QueuedOperation) -> Result<AppliedNotes, ServerError> {
        let SharedAction::Void(void) = &operation.action else {
            let mut late = None;
            self.apply(operation, |known, _, _| {
                late = known.and_then(|it| operation.action.first_answer(it));
                true
            })?;
            return Ok(AppliedNotes { note: None, late });
        };
        let change = DocumentChange { operation: &void.operation, document: void.asked.document() };
        let result = self.server.change(change, &mut |_, _| NewContent::Unchanged)?;
        let Some(undo) = &void.undo else {
            let note = (result == ChangeResult::AppliedBefore).then(|| void.note());
            return Ok(AppliedNotes { note, late: None });
        };
        if result == ChangeResult::Committed {
            return Ok(AppliedNotes::default());
        }
        let mut is_made = false;
        let change = DocumentChange { operation: &operation.id, ..change };
        self.server.change(change, &mut |text, now| {
            let known: Option<Value> = text.and_then(|it| serde_json::from_str(it).ok());
            is_made = undo.applies(known.as_ref());
            match is_made {
                true => undo.action.apply(known.as_ref(), now).0,
                false => NewContent::Unchanged,
            }
        })?;
        Ok(AppliedNotes { note: is_made.then(|| void.note()), late: None })
    }

    /// Fails if no time is left.
    fn limit(&self) -> Result<(), ServerError> {
        match self.left().is_zero() {
            true => Err(ServerError::TimedOut(self.wait)),
            false => Ok(()),
        }
    }

    /// Applies an operation. Times of events are moved to the clock of the server. `prepare` gets the known document, the
    /// response, and the content before the commit, and returns whether they may be committed.
    fn apply(
        &mut self,
        operation: &QueuedOperation,
        mut prepare: impl FnMut(Option<&Value>, &SharedResponse, &NewContent) -> bool,
    ) -> Result<Option<SharedResponse>, ServerError> {
        let world = self.store.world;
        let mut response = None;
        let document = operation.action.document();
        let change = DocumentChange { operation: &operation.id, document };
        let result = self.server.change(change, &mut |text, server_now| {
            let known: Option<Value> = text.and_then(|it| serde_json::from_str(it).ok());
            let age = world.now().since(operation.at);
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            let at = Timestamp::from_millis(server_now.millis().saturating_sub(age));
            let (content, said) = operation.action.apply(known.as_ref(), at);
            let is_prepared = prepare(known.as_ref(), &said, &content);
            response = Some(said);
            if is_prepared { content } else { NewContent::Unchanged }
        })?;
        Ok(response.filter(|_| result == ChangeResult::Committed))
    }

    /// Takes over what others changed. Returns the version up to which that is complete: a document with a waiting
    /// operation is taken over after the operation was sent.
    fn adopt(
        &self,
        changes: &ServerChanges,
        position: &SyncPosition,
        received: &mut ReceivedChanges,
    ) -> Result<i64, SyncError> {
        let ahead_ms = position.ahead_ms;
        let is_restored = position.may_lack_changes(self.store.world.now());
        let SharedStore { world, root, durability, settings, .. } = self.store;
        let wait = self.left().min(HOOK_LOCK_WAIT);
        let documents = changes.documents.as_slice();
        let mut complete = i64::MAX;
        let kinds = self.kinds();
        let has = |kind: &str| kinds.contains(kind) && documents.iter().any(|it| it.kind == kind);
        let tolerance = i64::try_from(SHARED_CLOCK_TOLERANCE.as_millis()).unwrap_or(i64::MAX);
        let ahead = if ahead_ms.abs() < tolerance { 0 } else { ahead_ms };
        if has(BREAKER) {
            let local = BreakerStore::new(*world, root, durability.clone()).patient(wait);
            local.adopt(|| self.current(documents, BREAKER, &mut complete), ahead)?;
        }
        if has(TASK) {
            let local = QueueStore::new(*world, root, durability.clone(), wait);
            local.adopt(|| self.current(documents, TASK, &mut complete), is_restored)?;
        }
        if has(ESCALATION) {
            let local = EscalationStore::new(*world, root, durability.clone(), wait);
            let current = || self.current(documents, ESCALATION, &mut complete);
            received.problems.extend(local.adopt(current, is_restored)?);
        }
        let is_left_out = |it: &ChangedDocument| {
            settings.shares_kind(&it.kind) && !kinds.contains(it.kind.as_str())
        };
        if documents.iter().any(is_left_out) {
            received.problems.push(format!(
                "approvals and signals: the schema has version {}, in which agents can forge answers; \
                 run `policyd store migrate` with the URL of the administrator",
                changes.schema
            ));
        }
        if has(APPROVAL) {
            let current = || self.current(documents, APPROVAL, &mut complete);
            let taken = self.store.adopt_approvals(current, ahead, is_restored, wait)?;
            received.problems.extend(taken);
        }
        if has(RUN) {
            self.store
                .mirror_within(RUNS, wait)
                .adopt(|| self.current(documents, RUN, &mut complete), |_, _, _| false)?;
        }
        if has(SIGNAL) {
            let current = || on_local_clock(self.current(documents, SIGNAL, &mut complete), ahead);
            let own = format!("{}-", super::position::client(*world, &self.store.folder)?);
            let keeps = |name: &str, known: &Value, next: &Value| {
                is_restored && !name.starts_with(&own) && is_answer_lost(known, next)
            };
            self.store.mirror_within(SIGNALS, wait).adopt(current, keeps)?;
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
        let mut waiting = self.store.waiting();
        waiting.retain(|it| self.answered.as_ref() != Some(it.question()));
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
