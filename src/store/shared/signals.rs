//! Signals of all hosts. A host shares its own signals, and reads those of others from the local copy. The server
//! decides who consumes one, and the host of a signal takes over how it ended.

use serde_json::json;

use super::action::{SharedAction, SharedResponse};
use super::mirror::SIGNALS;
use super::signal_document::{
    SharedSignal, SharedSignalEnd, SignalChange, SignalResponse, signal_of,
};
use super::{SharedStore, SyncError, SyncLimits, position};
use crate::document::DocumentError;
use policyd_state::signal::SignalEvent;
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// A signal of another host, and the name of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedSignal {
    pub document: String,
    pub signal: SharedSignal,
}

impl SharedStore<'_> {
    /// Shares a new signal of this host.
    ///
    /// # Errors
    /// The change was not saved.
    pub fn share_signal(&self, signal: SharedSignal, now: Timestamp) -> Result<(), WorldError> {
        let client = position::client(self.world, &self.folder)?;
        let id = format!("{client}-{}", signal.id);
        let host = self.host_name();
        let signal = SharedSignal { host, project: self.root.display().to_string(), ..signal };
        self.mirror(SIGNALS).change(|all| {
            let change = SignalChange::Emitted(Box::new(signal.clone()));
            self.push(SharedAction::Signal { id: id.clone(), change }, now)?;
            all.insert(id, json!(signal));
            Ok(())
        })
    }

    /// Records the end of a signal of this host for the others. A signal that is not shared, or that another host
    /// ended, stays as it is.
    ///
    /// # Errors
    /// The change was not saved.
    pub fn end_signal(
        &self,
        id: &str,
        end: &SharedSignalEnd,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        let id = format!("{}-{id}", position::client(self.world, &self.folder)?);
        self.mirror(SIGNALS).change(|all| {
            let Some(known) = all.get(&id).and_then(signal_of) else { return Ok(()) };
            let change = SignalChange::Ended(end.clone());
            if let (Some(next), SignalResponse::Changed) = change.apply(Some(&known), now) {
                self.push(SharedAction::Signal { id: id.clone(), change }, now)?;
                all.insert(id, json!(next));
            }
            Ok(())
        })
    }

    /// Returns the signals of other hosts that wait, oldest first.
    ///
    /// # Errors
    /// The local copy cannot be read.
    pub fn signals_of_others(&self) -> Result<Vec<NamedSignal>, DocumentError> {
        let now = self.world.now();
        let mut all = self.signals(false)?;
        all.retain(|it| it.signal.is_pending(now));
        all.sort_by(|one, other| {
            (one.signal.created, &one.document).cmp(&(other.signal.created, &other.document))
        });
        Ok(all)
    }

    /// Returns the shared signals of this host.
    ///
    /// # Errors
    /// The local copy cannot be read.
    pub fn own_signals(&self) -> Result<Vec<SharedSignal>, DocumentError> {
        Ok(self.signals(true)?.into_iter().map(|it| it.signal).collect())
    }

    /// Returns the document of a signal of this host; `None` if it is not shared.
    ///
    /// # Errors
    /// The local copy cannot be read.
    pub fn document_of(&self, id: &str) -> Result<Option<String>, DocumentError> {
        let own = self.signals(true)?.into_iter().find(|it| it.signal.id == id);
        Ok(own.map(|it| it.document))
    }

    fn signals(&self, own: bool) -> Result<Vec<NamedSignal>, DocumentError> {
        let Ok(client) = position::client(self.world, &self.folder) else { return Ok(Vec::new()) };
        let prefix = format!("{client}-");
        let all = self.mirror(SIGNALS).all()?.into_iter();
        let all = all.filter(|(document, _)| document.starts_with(&prefix) == own);
        let named = all
            .filter_map(|(document, it)| Some(NamedSignal { document, signal: signal_of(&it)? }));
        Ok(named.collect())
    }

    /// Lets the server decide about a change of a signal. The name of a consumer becomes unique among all hosts.
    ///
    /// # Errors
    /// The server cannot be reached, or the role of this process must not make the change.
    pub fn decide_signal(
        &self,
        document: &str,
        event: SignalEvent<'_>,
        limits: SyncLimits<'_>,
    ) -> Result<SignalResponse, SyncError> {
        let client = position::client(self.world, &self.folder)?;
        let named = |by: &str| format!("{by}@{client}");
        let change = match event {
            SignalEvent::Claim { by, lease } => SignalChange::Claimed { by: named(by), lease },
            SignalEvent::Release { by } => SignalChange::Released { by: named(by) },
            SignalEvent::Consume { by } => SignalChange::Consumed { by: named(by) },
            // Humans answer by `answer_signal`, and each host looks at its own clock.
            SignalEvent::Approve { .. } | SignalEvent::Reject | SignalEvent::Tick => {
                return Ok(SignalResponse::Unknown);
            }
        };
        self.change_signal(document, change, limits)
    }

    /// Answers a request of another host.
    ///
    /// # Errors
    /// As for [`SharedStore::decide_signal`].
    pub fn answer_signal(
        &self,
        document: &str,
        end: SharedSignalEnd,
        limits: SyncLimits<'_>,
    ) -> Result<SignalResponse, SyncError> {
        self.change_signal(document, SignalChange::Ended(end), limits)
    }

    fn change_signal(
        &self,
        document: &str,
        change: SignalChange,
        limits: SyncLimits<'_>,
    ) -> Result<SignalResponse, SyncError> {
        let known = self.mirror(SIGNALS).all()?.get(document).and_then(signal_of);
        // A server that was restored may not know how the signal ended.
        let has_ended =
            |it: &SharedSignal| it.ended.as_ref().is_some_and(SharedSignalEnd::is_final);
        if let Some(ended) = known.filter(has_ended) {
            return Ok(change.apply(Some(&ended), self.world.now()).1);
        }
        let action = SharedAction::Signal { id: document.to_owned(), change };
        match self.decide(action, limits)? {
            SharedResponse::Signal(response) => Ok(response),
            SharedResponse::Breaker(_)
            | SharedResponse::Task(_)
            | SharedResponse::Escalation(_)
            | SharedResponse::Approval(_)
            | SharedResponse::Run
            | SharedResponse::Void => Ok(SignalResponse::Unknown),
        }
    }
}
