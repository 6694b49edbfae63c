//! A simulated server of documents, which several simulated machines share. Each call can fail in the ways
//! that real servers fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{FakeWorld, open};
use crate::World as _;
use crate::server::{
    ChangeResult, ChangedDocument, DocumentChange, DocumentServer, DocumentStep, LogEntry,
    NewContent, ServerAddress, ServerChanges, ServerError, ServerStatus,
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
    /// The connection is lost before the next change is committed.
    ChangeLost,
}

#[derive(Debug, Default)]
struct DocumentGroup {
    version: i64,
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
            Some(ServerFault::ReadOnly | ServerFault::AnswerLost | ServerFault::ChangeLost)
            | None => {}
        }
        let mut state = open(&server.0);
        state.connections = state.connections.saturating_add(1);
        drop(state);
        let group = address.group.clone();
        Ok(Box::new(FakeConnection { world: self.clone(), server, group, limit }))
    }
}

/// Version of the schema that is simulated.
const SCHEMA: i32 = 4;
/// Documents in one answer.
const PAGE: usize = 20;

struct FakeConnection {
    world: FakeWorld,
    server: FakeServer,
    group: String,
    limit: Duration,
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
                self.world.advance(self.limit);
                Err(ServerError::TimedOut(self.limit))
            }
            Some(ServerFault::ReadOnly | ServerFault::AnswerLost | ServerFault::ChangeLost)
            | None => Ok(()),
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
    }

    fn change(
        &mut self,
        change: DocumentChange<'_>,
        step: &mut DocumentStep<'_>,
    ) -> Result<ChangeResult, ServerError> {
        self.check()?;
        let fault = open(&self.server.0).fault;
        let lost = || Err(ServerError::Lost("connection reset".to_owned()));
        match fault {
            Some(ServerFault::ReadOnly) => {
                return Err(ServerError::ReadOnly("read-only transaction".to_owned()));
            }
            Some(ServerFault::ChangeLost) => {
                self.server.set_fault(None);
                return lost();
            }
            Some(ServerFault::Down | ServerFault::Silent | ServerFault::AnswerLost) | None => {}
        }
        let now = self.now();
        let result = self.with_group(|group| {
            if !group.applied.insert(change.operation.to_owned()) {
                return ChangeResult::AppliedBefore;
            }
            let key = (change.document.kind.to_owned(), change.document.name.to_owned());
            let known = group.documents.get(&key).and_then(|(_, text)| text.clone());
            let text = match step(known.as_deref(), now) {
                NewContent::Unchanged => return ChangeResult::Committed,
                NewContent::Text(text) => Some(text),
                NewContent::Removed => None,
            };
            group.version = group.version.saturating_add(1);
            group.documents.insert(key, (group.version, text));
            ChangeResult::Committed
        })?;
        if fault == Some(ServerFault::AnswerLost) {
            self.server.set_fault(None);
            return lost();
        }
        Ok(result)
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
            ServerChanges { documents, version, has_more, schema: SCHEMA, now }
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
