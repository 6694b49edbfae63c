//! Signals on the shared store: which are shared, who consumes one first, and how one ended on another host.

use std::fmt::Display;

use super::{EndDetails, SignalOutcome, SignalStore, StoredSignal, is_meant};
use crate::shared::settings::SharedSubject;
use crate::shared::{QUICK, SharedSignal, SharedSignalEnd, SharedStore, SignalResponse};
use policyd_policy::signals::{CLAIM, SignalKind, SignalStorage};
use policyd_state::signal::{End, SignalEvent};
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

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
        if let Some(shared) = self.shared() {
            drop(shared.end_signal(&found.id, &SharedSignalEnd::closed(by), now));
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
        // A run stops also without the server.
        let interrupts = self.kinds.kind(&found.name).is_some_and(|it| !it.interrupts.is_empty());
        let document = match shared.document_of(&found.id) {
            Ok(document) => document?,
            Err(_) if interrupts => return None,
            Err(problem) => return Some(unknown_consumer(&problem)),
        };
        match shared.decide_signal(&document, event, QUICK) {
            Ok(SignalResponse::Changed | SignalResponse::Unknown) => None,
            Ok(SignalResponse::Refused(why)) => Some(why),
            Err(_) if interrupts => None,
            Err(error) => Some(unknown_consumer(&error)),
        }
    }

    /// Takes over how signals of this host ended on other hosts, and tells them which of its files are gone.
    ///
    /// # Errors
    /// The lock was not free, or something could not be written; the next call completes it.
    pub fn take_over_ends(&self, now: Timestamp) -> Result<(), WorldError> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let view = self.view(now);
        for it in shared.own_signals()? {
            let is_known = view.signals.iter().any(|local| local.id == it.id);
            match &it.ended {
                Some(end) if is_known => self.take_over_end(&it.id, end, now)?,
                None if !is_known && !view.incomplete && !view.cut => {
                    shared.end_signal(&it.id, &SharedSignalEnd::closed(""), now)?;
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Ends a signal of this host as it ended on another host.
    fn take_over_end(
        &self,
        id: &str,
        end: &SharedSignalEnd,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        match End::find(&end.outcome) {
            Some(End::Approved) => drop(self.approve(id, &end.by, &end.text, now)?),
            Some(End::Rejected) => drop(self.reject(id, &end.by, &end.text, now)?),
            Some(End::Consumed) => {
                let mut open = self.open(now)?;
                if let Some(found) = open.find(id).cloned() {
                    let details = EndDetails { by: &end.by, ..EndDetails::default() };
                    self.end(&mut open.ledger, &found, End::Consumed, details, now)?;
                }
            }
            // This host ended it, or its own clock does.
            Some(End::Expired | End::TimedOut) | None => {}
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
fn unknown_consumer(error: &impl Display) -> String {
    format!("only the server knows whether another host consumed it: {error}")
}
