//! Signals on the shared store: which are shared, who consumes one first, and how one ended on another host.

use super::{EndDetails, SignalOutcome, SignalStore, StoredSignal, is_meant};
use crate::limits::{SHARED_AGE_MAX, SHARED_HOOK_WAIT};
use crate::policy::signals::{CLAIM, SignalKind, SignalStorage};
use crate::state::signal::{End, SignalEvent};
use crate::store::shared::settings::SharedSubject;
use crate::store::shared::{
    SharedSignal, SharedSignalEnd, SharedStore, SignalResponse, SyncError, SyncLimits,
};
use crate::time::Timestamp;
use crate::world::WorldError;

/// Outcome of a signal that its own host ended.
const CLOSED: &str = "closed";
const LIMITS: SyncLimits =
    SyncLimits { wait: SHARED_HOOK_WAIT, age_max: SHARED_AGE_MAX, at_once: false };

impl SignalStore<'_> {
    /// Returns the shared store; `None` if signals are not shared.
    fn shared(&self) -> Option<SharedStore<'_>> {
        let documents = &self.documents;
        // An invalid configuration shares nothing. The next synchronization reports it.
        let found = SharedStore::find(documents.world, &documents.root, &documents.durability);
        found.ok().flatten().filter(|it| it.settings().shares(SharedSubject::Signals))
    }

    /// Shares a new signal. Logs, approvals, and what an agent tells its own supervisor stay on this host.
    pub(super) fn share(&self, made: &StoredSignal, now: Timestamp) -> Result<(), WorldError> {
        let Some(kind) = self.kinds.kind(&made.name).filter(|it| is_shared(it)) else {
            return Ok(());
        };
        let Some(shared) = self.shared() else { return Ok(()) };
        let signal = SharedSignal {
            id: made.id.clone(),
            signal: made.name.clone(),
            sender: made.sender.clone(),
            fields: made.fields.clone(),
            asks: kind.awaits_human(self.kinds),
            interrupts: kind.interrupts.clone(),
            created: made.signal.created,
            expires: made.signal.expires,
            ..SharedSignal::default()
        };
        shared.share_signal(signal, now)
    }

    /// Tells other hosts that a signal ended here. If that fails, they see it until it expires.
    pub(super) fn share_end(&self, found: &StoredSignal, by: &str, now: Timestamp) {
        if !self.kinds.kind(&found.name).is_some_and(is_shared) {
            return;
        }
        let end = SharedSignalEnd {
            outcome: CLOSED.to_owned(),
            by: by.to_owned(),
            ..SharedSignalEnd::default()
        };
        if let Some(shared) = self.shared() {
            drop(shared.end_signal(&found.id, &end, now));
        }
    }

    /// Claims, consumes, or releases a signal. The server decides about one that is shared: another host can have
    /// consumed it.
    ///
    /// # Errors
    /// The lock was not free, or the ledger could not be written; the signal is unchanged.
    pub fn take(
        &self,
        which: &str,
        event: SignalEvent<'_>,
        now: Timestamp,
    ) -> Result<SignalOutcome, WorldError> {
        let Some(shared) = self.shared() else { return self.take_here(which, event, now) };
        let mut last = SignalOutcome::Nothing;
        let meant = self.view(now).signals.into_iter().filter(|it| is_meant(it, which));
        for found in meant {
            if let Some(why) = self.refusal(&shared, &found, event) {
                last = SignalOutcome::Refused(Box::new(found), why);
                continue;
            }
            match self.take_here(&found.id, event, now)? {
                SignalOutcome::Nothing => {}
                SignalOutcome::Refused(found, why) => last = SignalOutcome::Refused(found, why),
                answer @ SignalOutcome::Ended(_, End::Expired, _) => last = answer,
                answer @ (SignalOutcome::Held(..)
                | SignalOutcome::GivenBack(_)
                | SignalOutcome::Ended(..)) => return Ok(answer),
            }
        }
        Ok(last)
    }

    /// Asks the server about a signal of this host. Returns why it must not be taken.
    fn refusal(
        &self,
        shared: &SharedStore<'_>,
        found: &StoredSignal,
        event: SignalEvent<'_>,
    ) -> Option<String> {
        let document = shared.document_of(&found.id)?;
        match shared.decide_signal(&document, event, LIMITS) {
            Ok(SignalResponse::Changed | SignalResponse::Unknown) => None,
            Ok(SignalResponse::Refused(why)) => Some(why),
            // A run stops also without the server.
            Err(_) if self.kinds.kind(&found.name).is_some_and(|it| !it.interrupts.is_empty()) => {
                None
            }
            Err(error) => Some(unknown_consumer(&error)),
        }
    }

    /// Takes over how signals of this host ended on other hosts, and tells them which of its files are gone.
    ///
    /// # Errors
    /// The lock was not free, or something could not be written; the next call completes it.
    pub fn take_over_ends(&self, now: Timestamp) -> Result<(), WorldError> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let ended = shared.ended_signals();
        let is_known = |it: &SharedSignal, view: &super::View| {
            view.signals.iter().any(|local| local.id == it.id)
        };
        let view = self.view(now);
        for it in ended.iter().filter(|it| is_known(it, &view)) {
            let Some(end) = &it.ended else { continue };
            match End::find(&end.outcome) {
                Some(End::Approved) => drop(self.approve(&it.id, &end.by, &end.text, now)?),
                Some(End::Rejected) => drop(self.reject(&it.id, &end.by, &end.text, now)?),
                Some(End::Consumed) => {
                    let mut open = self.open(now)?;
                    if let Some(found) = open.find(&it.id).cloned() {
                        let details = EndDetails { by: &end.by, ..EndDetails::default() };
                        self.end(&mut open.ledger, &found, End::Consumed, details, now)?;
                    }
                }
                Some(End::Expired | End::TimedOut) | None => {}
            }
        }
        if view.incomplete || view.cut {
            return Ok(());
        }
        let end = SharedSignalEnd { outcome: CLOSED.to_owned(), ..SharedSignalEnd::default() };
        for it in shared.open_signals().iter().filter(|it| !is_known(it, &view)) {
            shared.end_signal(&it.id, &end, now)?;
        }
        Ok(())
    }
}

/// Returns whether signals of a kind are shared.
fn is_shared(kind: &SignalKind) -> bool {
    kind.form != SignalStorage::Log
        && kind.approves.is_empty()
        && !kind.ends_drift
        && kind.id != CLAIM
}

/// Why a signal cannot be consumed without the server.
fn unknown_consumer(error: &SyncError) -> String {
    format!("only the server knows whether another host consumed it: {error}")
}
