//! A simulated server of documents, which several simulated machines share. Each call can fail in the ways
//! that real servers fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{FakeWorld, open};
use crate::World as _;
use crate::server::{
    ChangeResult, ChangedDocument, DocumentChange, DocumentServer, DocumentStep, LogEntry,
    NewContent, ServerAddress, ServerChanges, ServerError, ServerState, ServerStatus,
};
use policyd_yaml::time::Timestamp;

/// How the server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFault {
    /// No connection is accepted, and open ones are lost.
    Down,
    /// No answer comes within any time limit.
    Silent,
    /// Connections are accepted, and writes fail.
    ReadOnly,
    /// The next change is committed, but its answer is lost.
    AnswerLost,
    /// The connection is lost before the client commits the next change.
    ChangeLost,
    /// The connection is lost after the client commits the next change, and before the server does.
    CommitLost,
    /// The server ends the transaction of each change, as after a lock timeout.
    RolledBack,
}

/// What the server has at one moment. A restore brings it back.
#[derive(Debug, Clone, Default)]
pub struct ServerBackup(BTreeMap<String, DocumentGroup>);

#[derive(Debug, Clone, Default)]
struct DocumentGroup {
    version: i64,
    /// Operations by the version that they made.
    history: BTreeMap<i64, String>,
    documents: BTreeMap<(String, String), (i64, Option<String>)>,
    applied: BTreeSet<String>,
    decisions: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct SimulatedServer {
    groups: BTreeMap<String, DocumentGroup>,
    fault: Option<ServerFault>,
    connections: u32,
    ahead: Duration,
    epoch: u32,
}

/// A simulated server. Clones are the same server.
#[derive(Debug, Clone, Default)]
pub struct FakeServer(Arc<Mutex<SimulatedServer>>);

impl FakeServer {
    /// Sets how the server fails from now on; `None`: not at all.
    pub fn set_fault(&self, fault: Option<ServerFault>) {
        open(&self.0).fault = fault;
    }

    /// Sets how far the clock of the server is ahead of the clocks of the machines.
    pub fn set_ahead(&self, ahead: Duration) {
        open(&self.0).ahead = ahead;
    }

    /// Returns what the server has now.
    #[must_use]
    pub fn backup(&self) -> ServerBackup {
        ServerBackup(open(&self.0).groups.clone())
    }

    /// Brings back what the server had: later changes are lost. `is_noticed`: the server has another epoch.
    pub fn restore(&self, backup: &ServerBackup, is_noticed: bool) {
        let server = &mut *open(&self.0);
        server.groups = backup.0.clone();
        server.epoch = server.epoch.saturating_add(u32::from(is_noticed));
    }

    /// Returns the number of accepted connections.
    #[must_use]
    pub fn connections(&self) -> u32 {
        open(&self.0).connections
    }

    /// Returns the text of a document.
    #[must_use]
    pub fn document(&self, group: &str, kind: &str, name: &str) -> Option<String> {
        let server = open(&self.0);
        let documents = &server.groups.get(group)?.documents;
        documents.get(&(kind.to_owned(), name.to_owned()))?.1.clone()
    }
}

impl FakeWorld {
    /// Puts the machine into the network of a server.
    pub fn join(&self, server: &FakeServer) {
        open(&self.machine).server = Some(server.clone());
    }

    pub(super) fn document_server(
        &self,
        address: &ServerAddress,
        limit: Duration,
    ) -> Result<Box<dyn DocumentServer>, ServerError> {
        let server = open(&self.machine).server.clone();
        let server = server.ok_or_else(|| ServerError::Unreachable("no server".to_owned()))?;
        let fault = open(&server.0).fault;
        match fault {
            Some(ServerFault::Down) => {
                return Err(ServerError::Unreachable("connection refused".to_owned()));
            }
            Some(ServerFault::Silent) => {
                self.advance(limit);
                return Err(ServerError::Unreachable("no connection in time".to_owned()));
            }
            Some(_) | None => {}
        }
        let mut state = open(&server.0);
        state.connections = state.connections.saturating_add(1);
        drop(state);
        let group = address.group.clone();
        let end = self.elapsed().saturating_add(limit);
        Ok(Box::new(FakeConnection { world: self.clone(), server, group, limit, end }))
    }
}

/// Version of the schema that is simulated.
const SCHEMA: i32 = 5;
/// Documents in one answer.
const PAGE: usize = 20;

struct FakeConnection {
    world: FakeWorld,
    server: FakeServer,
    group: String,
    limit: Duration,
    /// End of the time limit.
    end: Duration,
}

impl FakeConnection {
    fn now(&self) -> Timestamp {
        self.world.now().plus(open(&self.server.0).ahead)
    }

    /// Fails as the server does at every call.
    fn check(&self) -> Result<(), ServerError> {
        let fault = open(&self.server.0).fault;
        match fault {
            Some(ServerFault::Down) => Err(ServerError::Lost("connection reset".to_owned())),
            Some(ServerFault::Silent) => {
                self.world.advance(self.end.saturating_sub(self.world.elapsed()));
                Err(ServerError::TimedOut(self.limit))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn with_group<T>(&self, work: impl FnOnce(&mut DocumentGroup) -> T) -> Result<T, ServerError> {
        let server = &mut *open(&self.server.0);
        server.groups.get_mut(&self.group).map(work).ok_or(ServerError::NoSchema)
    }
}

impl DocumentServer for FakeConnection {
    fn limit(&mut self, limit: Duration) {
        self.limit = limit;
        self.end = self.world.elapsed().saturating_add(limit);
    }

    fn change(
        &mut self,
        change: DocumentChange<'_>,
        step: &mut DocumentStep<'_>,
    ) -> Result<ChangeResult, ServerError> {
        self.check()?;
        let fault = open(&self.server.0).fault;
        let reset = || "connection reset".to_owned();
        match fault {
            Some(ServerFault::ReadOnly) => {
                return Err(ServerError::ReadOnly("read-only transaction".to_owned()));
            }
            Some(ServerFault::RolledBack) => {
                return Err(ServerError::RolledBack("lock timeout".to_owned()));
            }
            Some(ServerFault::ChangeLost) => {
                self.server.set_fault(None);
                return Err(ServerError::Lost(reset()));
            }
            Some(_) | None => {}
        }
        let now = self.now();
        let (mut before, mut result) = (None, ChangeResult::AppliedBefore);
        // Without the lock of the server: the step can use the machine.
        let known = self.with_group(|group| {
            before = Some(group.clone());
            if !group.applied.insert(change.operation.to_owned()) {
                return None;
            }
            result = ChangeResult::Committed;
            let key = (change.document.kind.to_owned(), change.document.name.to_owned());
            Some((group.documents.get(&key).and_then(|(_, text)| text.clone()), key))
        })?;
        if let Some((known, key)) = known {
            let text = match step(known.as_deref(), now) {
                NewContent::Unchanged => None,
                NewContent::Text(text) => Some(Some(text)),
                NewContent::Removed => Some(None),
            };
            self.with_group(|group| {
                if let Some(text) = text {
                    group.version = group.version.saturating_add(1);
                    group.history.insert(group.version, change.operation.to_owned());
                    group.documents.insert(key, (group.version, text));
                }
            })?;
        }
        match fault {
            Some(ServerFault::AnswerLost) => {
                self.server.set_fault(None);
                Err(ServerError::CommitUnknown(reset()))
            }
            Some(ServerFault::CommitLost) => {
                self.server.set_fault(None);
                self.with_group(|group| *group = before.unwrap_or_default())?;
                Err(ServerError::CommitUnknown(reset()))
            }
            Some(_) | None => Ok(result),
        }
    }

    fn changes(&mut self, since: i64) -> Result<ServerChanges, ServerError> {
        self.check()?;
        let now = self.now();
        self.with_group(|group| {
            let document =
                |((kind, name), (version, text)): (&(String, String), &(i64, Option<String>))| {
                    let (kind, name) = (kind.clone(), name.clone());
                    let (version, text) = (*version, text.clone());
                    ChangedDocument { kind, name, version, text, is_large: false }
                };
            let mut documents: Vec<_> = group.documents.iter().map(document).collect();
            documents.retain(|it| it.version > since);
            documents.sort_by_key(|it| it.version);
            documents.truncate(PAGE);
            let version = documents.last().map_or(group.version, |it| it.version);
            let has_more = version < group.version;
            let mark = group.history.get(&version).cloned();
            ServerChanges { documents, version, mark, has_more, schema: SCHEMA, now }
        })
    }

    fn state(&mut self, version: i64) -> Result<ServerState, ServerError> {
        self.check()?;
        let now = self.now();
        let epoch = format!("epoch {}", open(&self.server.0).epoch);
        self.with_group(|group| {
            let mark = group.history.get(&version).cloned();
            ServerState { schema: SCHEMA, version: group.version, epoch, mark, now }
        })
    }

    fn status(&mut self) -> Result<ServerStatus, ServerError> {
        self.check()?;
        let now = self.now();
        let found = self.with_group(|group| {
            let mut counts: BTreeMap<String, i64> = BTreeMap::new();
            for ((kind, _), _) in group.documents.iter().filter(|(_, (_, text))| text.is_some()) {
                let count = counts.entry(kind.clone()).or_default();
                *count = count.saturating_add(1);
            }
            (group.version, counts)
        });
        let (schema, version, counts) = match found {
            Ok((version, counts)) => (Some(SCHEMA), Some(version), counts),
            Err(_) => (None, None, BTreeMap::new()),
        };
        Ok(ServerStatus {
            program: "simulated".to_owned(),
            schema,
            role: "agent".to_owned(),
            encrypted: false,
            documents: counts.into_iter().collect(),
            version,
            read_only: open(&self.server.0).fault == Some(ServerFault::ReadOnly),
            now,
        })
    }

    fn migrate(&mut self) -> Result<(i32, i32), ServerError> {
        self.check()?;
        let server = &mut *open(&self.server.0);
        let known = server.groups.contains_key(&self.group);
        server.groups.entry(self.group.clone()).or_default();
        Ok((if known { SCHEMA } else { 0 }, SCHEMA))
    }

    fn append(&mut self, entries: &[LogEntry]) -> Result<(), ServerError> {
        self.check()?;
        self.with_group(|group| {
            group.decisions.extend(entries.iter().map(|it| (it.id.clone(), it.text.clone())));
        })
    }

    fn wait(&mut self, wait_max: Duration) -> Result<bool, ServerError> {
        self.check()?;
        self.world.advance(wait_max);
        Ok(true)
    }
}
