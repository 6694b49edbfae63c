//! State transitions of one signal: claim, consume, release, approve, and reject.

use serde_json::Map;

use super::ledger::{ClaimEntry, Ledger};
use super::{Draft, EndDetails, SignalOutcome, SignalStore, StoredSignal, is_meant};
use policyd_policy::signals::SignalKind;
use policyd_state::signal::{End, Refusal, SignalEffect, SignalEvent, step};
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

impl SignalStore<'_> {
    /// Claims, consumes, or releases a signal of this host; of several with the same name, the oldest one that is
    /// free. An approval is consumed only together with the request that it approves.
    ///
    /// # Errors
    /// The lock was not free, or the ledger could not be written; the signal is unchanged.
    pub(super) fn take_here(
        &self,
        which: &str,
        event: SignalEvent<'_>,
        now: Timestamp,
    ) -> Result<SignalOutcome, WorldError> {
        let mut open = self.open(now)?;
        let meant: Vec<StoredSignal> =
            open.view.signals.iter().filter(|it| is_meant(it, which)).cloned().collect();
        let mut last = SignalOutcome::Nothing;
        for found in meant {
            let approves = self.kinds.kind(&found.name).is_some_and(|it| !it.approves.is_empty());
            let answer = match event {
                SignalEvent::Consume { by } if approves => {
                    self.take_in(&mut open, &found, by, now)?
                }
                SignalEvent::Claim { .. }
                | SignalEvent::Consume { .. }
                | SignalEvent::Release { .. }
                | SignalEvent::Approve { .. }
                | SignalEvent::Reject
                | SignalEvent::Tick => self.move_on(&mut open.ledger, &found, event, now)?,
            };
            match answer {
                SignalOutcome::Refused(..) | SignalOutcome::Ended(_, End::Expired, _) => {
                    last = answer
                }
                SignalOutcome::Nothing
                | SignalOutcome::Held(..)
                | SignalOutcome::GivenBack(_)
                | SignalOutcome::Ended(..) => {
                    return Ok(answer);
                }
            }
        }
        Ok(last)
    }

    /// One step of one signal, and what follows from it.
    pub(super) fn move_on(
        &self,
        ledger: &mut Ledger,
        found: &StoredSignal,
        event: SignalEvent<'_>,
        now: Timestamp,
    ) -> Result<SignalOutcome, WorldError> {
        let by = match event {
            SignalEvent::Claim { by, .. }
            | SignalEvent::Consume { by }
            | SignalEvent::Release { by } => by,
            SignalEvent::Approve { .. } | SignalEvent::Reject | SignalEvent::Tick => "",
        };
        let (next, effects) = step(&found.signal, event, now);
        let mut moved = StoredSignal { signal: next, ..found.clone() };
        let mut answer = SignalOutcome::Nothing;
        for effect in effects {
            match effect {
                SignalEffect::Held { until } => {
                    let claim = ClaimEntry { by: by.to_owned(), until };
                    ledger.claims.insert(found.id.clone(), claim);
                    self.save(ledger)?;
                    answer = SignalOutcome::Held(Box::new(moved.clone()), until);
                }
                SignalEffect::GivenBack => {
                    ledger.claims.remove(&found.id);
                    if matches!(event, SignalEvent::Release { .. } | SignalEvent::Tick) {
                        self.save(ledger)?;
                    }
                    answer = SignalOutcome::GivenBack(Box::new(moved.clone()));
                }
                SignalEffect::LateChanged => {
                    ledger.set_late(&found.id, moved.signal.late_since);
                    self.save(ledger)?;
                }
                SignalEffect::Closed(end) => {
                    let details = EndDetails { by, ..EndDetails::default() };
                    self.end(ledger, found, end, details, now)?;
                    answer = SignalOutcome::Ended(Box::new(moved.clone()), end, None);
                }
                // An expiry at this moment is reported as an expiry.
                SignalEffect::Refused(Refusal::Over(End::Expired)) => {}
                SignalEffect::Refused(why) => {
                    moved.signal = found.signal.clone();
                    answer = SignalOutcome::Refused(Box::new(moved.clone()), why.to_string());
                }
            }
        }
        Ok(answer)
    }

    /// A human says yes to a request: an approval that names it is written, then the request ends.
    ///
    /// # Errors
    /// The lock was not free, or something could not be written: the request is as it was, or the
    /// approval waits to be applied.
    pub fn approve(
        &self,
        which: &str,
        by: &str,
        decision: &str,
        now: Timestamp,
    ) -> Result<SignalOutcome, WorldError> {
        let mut open = self.open(now)?;
        let meant = |it: &&StoredSignal| is_meant(it, which) && self.approval(it).is_some();
        let Some(found) = open.view.signals.iter().find(meant).cloned() else {
            return Ok(SignalOutcome::Nothing);
        };
        let (_, effects) = step(&found.signal, SignalEvent::Approve { made: now }, now);
        if !effects.contains(&SignalEffect::Closed(End::Approved)) {
            return self.move_on(&mut open.ledger, &found, SignalEvent::Approve { made: now }, now);
        }
        let mut fields = Map::new();
        let task = found.fields.get("task_id").cloned();
        fields.extend(task.map(|it| ("task_id".to_owned(), it)));
        if !decision.is_empty() {
            fields.insert("decision".to_owned(), decision.into());
        }
        let approval = self.approval(&found).map(|it| it.id.clone()).unwrap_or_default();
        let given = self.choices.load().unwrap_or_default().approvals;
        let same = |it: &&StoredSignal| {
            it.name == approval && it.request == found.id && given.contains(&it.id)
        };
        let written = open.view.signals.iter().find(same).cloned();
        let approval = match written {
            Some(written) => written,
            None => {
                let (sender, request) = (by.to_owned(), found.id.clone());
                let draft =
                    Draft { name: approval, fields, sender, request, expires: None, by_user: true };
                self.create(&open.view, &draft, now)?
            }
        };
        let details = EndDetails { by, decision, answer: &approval.id, ..EndDetails::default() };
        self.end(&mut open.ledger, &found, End::Approved, details, now)?;
        Ok(SignalOutcome::Ended(Box::new(found), End::Approved, Some(Box::new(approval))))
    }

    /// A human says no.
    ///
    /// # Errors
    /// As [`SignalStore::take`].
    pub fn reject(
        &self,
        which: &str,
        by: &str,
        reason: &str,
        now: Timestamp,
    ) -> Result<SignalOutcome, WorldError> {
        let mut open = self.open(now)?;
        let Some(found) = open.view.signals.iter().find(|it| is_meant(it, which)).cloned() else {
            return Ok(SignalOutcome::Nothing);
        };
        let (_, effects) = step(&found.signal, SignalEvent::Reject, now);
        if !effects.contains(&SignalEffect::Closed(End::Rejected)) {
            return self.move_on(&mut open.ledger, &found, SignalEvent::Reject, now);
        }
        let details = EndDetails { by, reason, ..EndDetails::default() };
        self.end(&mut open.ledger, &found, End::Rejected, details, now)?;
        Ok(SignalOutcome::Ended(Box::new(found), End::Rejected, None))
    }

    /// The kind by which a human says yes to this signal.
    fn approval(&self, found: &StoredSignal) -> Option<&SignalKind> {
        self.kinds.approval_of(self.kinds.kind(&found.name)?)
    }
}
