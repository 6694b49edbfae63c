//! Compares the local copy with the server, and copies documents that the server lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::action::{TEXT, task_document};
use super::approvals::sent_document;
use super::document_kind::{BREAKER, ESCALATION, TASK};
use super::mirror::{APPROVALS, RUNS, SIGNALS};
use super::outbox::QueuedOperation;
use super::settings::{SharedStoreSettings, SharedSubject};
use super::{SharedStore, SyncError, position};
use crate::breakers::BreakerStore;
use crate::escalation_record;
use crate::escalations::EscalationStore;
use crate::queues::QueueStore;
use policyd_base::limits::{HOOK_LOCK_WAIT, SHARED_CLOCK_TOLERANCE, SHARED_COMPARED_BYTES_MAX};
use policyd_world::server::{
    ChangeResult, ChangedDocument, DocumentChange, DocumentName, NewContent, ServerError,
};
use policyd_yaml::checksum::hex;
use policyd_yaml::time::Timestamp;

/// Documents by kind and name.
type SharedDocuments = BTreeMap<(String, String), Value>;

/// A document that is not the same at both places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub kind: String,
    pub name: String,
    pub difference: DifferenceKind,
}

/// How a document differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Only the local files contain it.
    OnlyLocal,
    /// Only the server contains it.
    OnlyServer,
    /// The contents differ.
    Content,
    /// A change of this host waits in the outbox.
    NotSent,
    /// The server changed it since this host read it.
    NotRead,
    /// The text on the server is not JSON.
    Unreadable,
}

impl DifferenceKind {
    /// Returns the difference in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnlyLocal => "only in the local files",
            Self::OnlyServer => "only on the server",
            Self::Content => "the contents differ",
            Self::NotSent => "a change of this host waits to be sent",
            Self::NotRead => "changed on the server since this host read it",
            Self::Unreadable => "unreadable on the server",
        }
    }

    /// Returns whether the next synchronization ends it.
    #[must_use]
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::NotSent | Self::NotRead)
    }
}

/// Result of copying documents to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyResult {
    /// Number of copied documents.
    pub copied: usize,
    /// Documents that were not copied, and why.
    pub left: Vec<String>,
}

/// Returns whether the local copy of a document is that of the server. Times of a copy are converted to the clock of this
/// host; `ahead_ms`: how far the clock of the server is ahead.
fn is_same(server: &Value, local: &Value, ahead_ms: i64) -> bool {
    match (server, local) {
        (Value::String(server), Value::String(local)) => {
            server == local || is_same_time(server, local, ahead_ms)
        }
        (Value::Array(server), Value::Array(local)) => {
            server.len() == local.len()
                && server.iter().zip(local).all(|(server, local)| is_same(server, local, ahead_ms))
        }
        (Value::Object(server), Value::Object(local)) => {
            let is_same = |(key, value): (&String, &Value)| {
                local.get(key).is_some_and(|it| is_same(value, it, ahead_ms))
            };
            server.len() == local.len() && server.iter().all(is_same)
        }
        _ => server == local,
    }
}

/// Difference between two measurements of clocks that agree.
const CLOCK_NOISE: Duration = Duration::from_millis(500);

/// The difference of the clocks is measured at each synchronization, so a converted time is not exact.
fn is_same_time(server: &str, local: &str, ahead_ms: i64) -> bool {
    let millis = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
    let times = (Timestamp::parse(server), Timestamp::parse(local));
    let (Some(server), Some(local)) = times else { return false };
    let difference = server.millis().saturating_sub(local.millis());
    let tolerance = millis(SHARED_CLOCK_TOLERANCE);
    let agree = ahead_ms.unsigned_abs() < tolerance;
    difference.abs_diff(ahead_ms) <= if agree { millis(CLOCK_NOISE) } else { tolerance }
}

impl SharedStore<'_> {
    /// Compares the local copy with the server. Changes nothing: what waits is not sent.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn compare(&self, wait: Duration) -> Result<Vec<Difference>, SyncError> {
        let (documents, server_now) = self.all_documents(wait)?;
        let ahead_ms = server_now.millis().saturating_sub(self.world.now().millis());
        let mut local = self.local()?;
        let waiting = self.waiting_documents();
        let seen = self.position()?.version;
        let named = |kind: String, name: String, version: i64, difference| {
            let is_known = difference == DifferenceKind::Unreadable;
            let is_sent = is_known || !waiting.contains(&(kind.clone(), name.clone()));
            let difference = match is_sent {
                true if version > seen && !is_known => DifferenceKind::NotRead,
                true => difference,
                false => DifferenceKind::NotSent,
            };
            Difference { kind, name, difference }
        };
        let mut found = Vec::new();
        for document in documents {
            let text = match document.text {
                Some(text) => text,
                None if document.is_large => String::new(),
                None => continue,
            };
            let shares = self.settings.shares_kind(&document.kind);
            let known = local.remove(&(document.kind.clone(), document.name.clone()));
            let server: Result<Value, _> = serde_json::from_str(&text);
            let difference = match (server, known) {
                _ if !shares => continue,
                (Err(_), _) => DifferenceKind::Unreadable,
                (Ok(_), None) => DifferenceKind::OnlyServer,
                (Ok(server), Some(known)) if is_same(&server, &known, ahead_ms) => continue,
                (Ok(_), Some(_)) => DifferenceKind::Content,
            };
            found.push(named(document.kind, document.name, document.version, difference));
        }
        let only_local = local.into_keys();
        found
            .extend(only_local.map(|(kind, name)| named(kind, name, 0, DifferenceKind::OnlyLocal)));
        Ok(found)
    }

    /// Returns the documents that operations change which wait for the server.
    fn waiting_documents(&self) -> BTreeSet<(String, String)> {
        let document = |it: &QueuedOperation| {
            let DocumentName { kind, name } = it.action.document();
            (kind.to_owned(), name.to_owned())
        };
        self.waiting().iter().map(document).collect()
    }

    /// Reads every document of the server, and its time.
    fn all_documents(
        &self,
        wait: Duration,
    ) -> Result<(Vec<ChangedDocument>, Timestamp), SyncError> {
        let end = self.world.elapsed().saturating_add(wait);
        let mut server = self.server(wait)?;
        let mut documents = BTreeMap::new();
        let (mut version, mut bytes) = (0, 0_usize);
        loop {
            let changes = server.changes(version)?;
            version = changes.version;
            for it in changes.documents {
                bytes = bytes.saturating_add(it.text.as_ref().map_or(0, String::len));
                // A document that changes in between is in a later answer again.
                documents.insert((it.kind.clone(), it.name.clone()), it);
            }
            if bytes > SHARED_COMPARED_BYTES_MAX {
                return Err(SyncError::TooLarge(SHARED_COMPARED_BYTES_MAX));
            }
            if !changes.has_more {
                return Ok((documents.into_values().collect(), changes.now));
            }
            let left = end.saturating_sub(self.world.elapsed());
            if left.is_zero() {
                return Err(ServerError::TimedOut(wait).into());
            }
            server.limit(left);
        }
    }

    /// Copies the documents to the server that it does not have. A document that was removed there stays removed.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn copy_to_server(&self, wait: Duration) -> Result<CopyResult, SyncError> {
        let client = position::client(self.world, &self.folder)?;
        let (known, _) = self.all_documents(wait)?;
        let removed = known.into_iter().filter(|it| it.text.is_none() && !it.is_large);
        let removed: BTreeSet<(String, String)> = removed.map(|it| (it.kind, it.name)).collect();
        let mut server = self.server(wait)?;
        let mut result = CopyResult::default();
        for ((kind, name), document) in self.local()? {
            if removed.contains(&(kind.clone(), name.clone())) {
                result.left.push(format!("{kind} `{name}`: removed on the server before"));
                continue;
            }
            let text = document.to_string();
            let mut digest = hex(&Sha256::digest(format!("{kind}\n{name}\n{text}").as_bytes()));
            digest.truncate(24);
            let operation = format!("{client}-copy-{digest}");
            let document = DocumentName { kind: &kind, name: &name };
            let mut is_new = false;
            server.limit(wait);
            let changed = server.change(
                DocumentChange { operation: &operation, document },
                &mut |known, _| match known {
                    Some(_) => NewContent::Unchanged,
                    None => {
                        is_new = true;
                        NewContent::Text(text.clone())
                    }
                },
            );
            match changed {
                Ok(ChangeResult::Committed) if is_new => {
                    result.copied = result.copied.saturating_add(1);
                }
                Ok(_) => {}
                Err(error) if error.is_temporary() => return Err(error.into()),
                Err(error) => result.left.push(format!("{kind} `{name}`: {error}")),
            }
        }
        Ok(result)
    }

    /// Forgets the position, so that the next synchronization reads every document.
    ///
    /// # Errors
    /// The position was not saved.
    pub fn forget_position(&self) -> Result<(), SyncError> {
        let mut position = self.position()?;
        position.forget();
        Ok(position.save(self.world, &self.folder)?)
    }

    /// Returns the shared documents of the local files.
    fn local(&self) -> Result<SharedDocuments, SyncError> {
        let (world, root) = (self.world, self.root.as_path());
        let durability = || self.durability.clone();
        let mut all = SharedDocuments::new();
        let breakers = BreakerStore::new(world, root, durability());
        for (key, record) in breakers.records_for_copy()? {
            if SharedStoreSettings::shares_breaker(&key) {
                all.insert((BREAKER.to_owned(), key), record);
            }
        }
        if self.settings.shares(SharedSubject::Tasks) {
            let queues = QueueStore::new(world, root, durability(), HOOK_LOCK_WAIT);
            let lists = queues.peek();
            if let Some(error) = lists.unreadable.into_iter().next() {
                return Err(error.into());
            }
            for task in lists.tasks {
                all.insert((TASK.to_owned(), task.id.clone()), task_document(&task, None));
            }
        }
        if self.settings.shares(SharedSubject::Escalations) {
            let store = EscalationStore::new(world, root, durability(), HOOK_LOCK_WAIT);
            for it in store.all()? {
                let mut document = escalation_record::record_of(&it, None);
                if let Some(fields) = document.as_object_mut() {
                    fields.insert(TEXT.to_owned(), store.question(&it.id).into());
                }
                all.insert((ESCALATION.to_owned(), it.id), document);
            }
        }
        for kind in [APPROVALS, RUNS, SIGNALS] {
            if self.settings.shares_kind(kind.name) {
                let name = kind.name;
                let documents = self.mirror(kind).all()?.into_iter();
                all.extend(documents.map(|(id, it)| ((name.to_owned(), id), sent_document(&it))));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn converted_times_are_the_same_only_if_the_clocks_differ() {
        let document = |time: &str| json!({"state": "OPEN", "times": [time], "count": 1});
        let server = document("2026-01-02T10:00:00.000Z");
        let local = document("2026-01-02T08:00:00.400Z");
        let two_hours = 2 * 60 * 60 * 1_000;
        assert!(is_same(&server, &server, 0) && is_same(&server, &local, two_hours));
        assert!(!is_same(&server, &local, 0) && !is_same(&server, &local, -two_hours));
        let later = document("2026-01-02T08:10:00.000Z");
        assert!(!is_same(&server, &later, two_hours), "another time");
        assert!(!is_same(&server, &document("2026-01-02T10:00:01.000Z"), 0));
        let near = document("2026-01-02T10:00:00.001Z");
        assert!(is_same(&server, &near, 0) && is_same(&near, &server, 0), "a millisecond");
        let other = json!({"state": "CLOSED", "times": [], "count": 1});
        assert!(!is_same(&server, &other, two_hours));
    }
}
