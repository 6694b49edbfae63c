//! The local copy of documents that only the shared store contains: one file for each kind, below the user's state.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::SharedStore;
use super::document_kind::{APPROVAL, RUN, SIGNAL};
use crate::document::{DocumentError, Documents};
use policyd_base::limits::{
    APPROVALS_KEPT, HOOK_LOCK_WAIT, MIRROR_BYTES_MAX, SHARED_RUNS_KEPT, SHARED_SIGNALS_KEPT,
};
use policyd_world::WorldError;

/// Documents of one kind by name.
pub(super) type MirrorDocuments = BTreeMap<String, Value>;

/// A kind of document that only the shared store contains.
pub(super) struct MirroredKind {
    /// Name of the kind.
    pub(super) name: &'static str,
    /// Field with the time of a document.
    time_field: &'static str,
    /// Documents in the local copy, the newest.
    kept: usize,
}

/// Requests to let blocked calls pass.
pub(super) const APPROVALS: MirroredKind =
    MirroredKind { name: APPROVAL, time_field: "asked", kept: APPROVALS_KEPT };
/// The registry of runs.
pub(super) const RUNS: MirroredKind =
    MirroredKind { name: RUN, time_field: "updated", kept: SHARED_RUNS_KEPT };
/// Signals.
pub(super) const SIGNALS: MirroredKind =
    MirroredKind { name: SIGNAL, time_field: "created", kept: SHARED_SIGNALS_KEPT };

/// The local copy of one kind.
pub(super) struct Mirror<'a> {
    documents: Documents<'a>,
    kind: MirroredKind,
    file: String,
}

impl SharedStore<'_> {
    /// Returns the local copy of a kind.
    pub(super) fn mirror(&self, kind: MirroredKind) -> Mirror<'_> {
        self.mirror_within(kind, HOOK_LOCK_WAIT)
    }

    /// Returns the local copy of a kind, whose lock is waited for at most this long.
    pub(super) fn mirror_within(&self, kind: MirroredKind, lock_wait: Duration) -> Mirror<'_> {
        let (folder, durability) = (self.folder.as_path(), self.durability.clone());
        let documents = Documents::new(self.world, folder, durability, lock_wait, MIRROR_BYTES_MAX);
        let file = format!("{}.json", kind.name);
        Mirror { documents, kind, file }
    }
}

impl Mirror<'_> {
    /// Reads all documents without a lock. A damaged copy is empty; the next change quarantines it.
    ///
    /// # Errors
    /// The copy cannot be read.
    pub(super) fn all(&self) -> Result<MirrorDocuments, DocumentError> {
        Ok(self.documents.fields(&self.file)?.unwrap_or_default().into_iter().collect())
    }

    /// Changes documents under a lock; the oldest beyond the limit are removed. Nothing is written if nothing changed.
    pub(super) fn change<T>(
        &self,
        work: impl FnOnce(&mut MirrorDocuments) -> Result<T, WorldError>,
    ) -> Result<T, WorldError> {
        self.documents.world.create_folder(&self.documents.root)?;
        let _held = self.documents.lock(&format!(".{}.lock", self.file), &[])?;
        let known = self.documents.read_to_change(&self.file)?;
        let known: MirrorDocuments = known.unwrap_or_default().into_iter().collect();
        let mut next = known.clone();
        let result = work(&mut next)?;
        self.forget_oldest(&mut next);
        if next != known {
            self.documents.save(&self.file, &format!("{}\n", json!(next)))?;
        }
        Ok(result)
    }

    /// Takes over documents of the server. `current` returns them under the lock; `None` removes one. `keeps` decides whether the
    /// known document of a name stays instead.
    pub(super) fn adopt(
        &self,
        current: impl FnOnce() -> Vec<(String, Option<Value>)>,
        keeps: impl Fn(&str, &Value, &Value) -> bool,
    ) -> Result<(), WorldError> {
        self.change(|all| {
            for (name, document) in current() {
                match document {
                    Some(next) if all.get(&name).is_some_and(|it| keeps(&name, it, &next)) => {}
                    Some(document) => drop(all.insert(name, document)),
                    None => drop(all.remove(&name)),
                }
            }
            Ok(())
        })
    }

    fn forget_oldest(&self, all: &mut MirrorDocuments) {
        let surplus = all.len().saturating_sub(self.kind.kept);
        if surplus > 0 {
            let time = |it: &Value| {
                it.get(self.kind.time_field).and_then(Value::as_str).map(str::to_owned)
            };
            let mut oldest: Vec<_> =
                all.iter().map(|(name, it)| (time(it), name.clone())).collect();
            oldest.sort_unstable();
            oldest.iter().take(surplus).for_each(|(_, name)| drop(all.remove(name)));
        }
        // The largest are removed first: one host must not displace the documents of the others.
        let mut sizes: Vec<(usize, String)> =
            all.iter().map(|(name, it)| (it.to_string().len(), name.clone())).collect();
        let mut bytes: usize = sizes.iter().map(|(size, _)| size).sum();
        sizes.sort_unstable();
        while bytes > MIRROR_BYTES_MAX / 2
            && let Some((size, name)) = sizes.pop()
        {
            all.remove(&name);
            bytes = bytes.saturating_sub(size);
        }
    }
}
