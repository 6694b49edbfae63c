//! State transitions of one signal: claim, consume, release, approve, and reject.

use serde_json::Map;

use super::ledger::{Claim, Ledger};
use super::{Answer, Draft, EndDetails, Found, SignalStore, is_meant};
use crate::policy::signals::SignalKind;
use crate::state::signal::{Effect, End, Event, Refusal, step};
use crate::time::Timestamp;
use crate::world::WorldError;

impl SignalStore<'_> {
    /// Claims, consumes or gives back a signal; of several of a name the oldest that can be had. An
    /// approval is consumed only together with the request that it approves.
    ///
    /// # Errors
    /// The lock was not free, or the ledger could not be written; the signal is as it was.
    pub fn take(
        &self,
        which: &str,
        event: Event<'_>,
        now: Timestamp,
    ) -> Result<Answer, WorldError> {
        let mut open = self.open(now)?;
        let meant: Vec<Found> =
            open.view.signals.iter().filter(|it| is_meant(it, which)).cloned().collect();
        let mut last = Answer::Nothing;
        for found in meant {
            let approves = self.kinds.kind(&found.name).is_some_and(|it| !it.approves.is_empty());
            let answer = match event {
                Event::Consume { by } if approves => self.take_in(&mut open, &found, by, now)?,
                Event::Claim { .. }
                | Event::Consume { .. }
                | Event::Release { .. }
                | Event::Approve { .. }
                | Event::Reject
                | Event::Tick => self.move_on(&mut open.ledger, &found, event, now)?,
            };
            match answer {
                Answer::Refused(..) | Answer::Ended(_, End::Expired, _) => last = answer,
                Answer::Nothing | Answer::Held(..) | Answer::GivenBack(_) | Answer::Ended(..) => {
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
        found: &Found,
        event: Event<'_>,
        now: Timestamp,
    ) -> Result<Answer, WorldError> {
        let by = match event {
            Event::Claim { by, .. } | Event::Consume { by } | Event::Release { by } => by,
            Event::Approve { .. } | Event::Reject | Event::Tick => "",
        };
        let (next, effects) = step(&found.signal, event, now);
        let mut moved = Found { signal: next, ..found.clone() };
        let mut answer = Answer::Nothing;
        for effect in effects {
            match effect {
                Effect::Held { until } => {
                    let claim = Claim { by: by.to_owned(), until };
                    ledger.claims.insert(found.id.clone(), claim);
                    self.save(ledger)?;
                    answer = Answer::Held(Box::new(moved.clone()), until);
                }
                Effect::GivenBack => {
                    ledger.claims.remove(&found.id);
                    if matches!(event, Event::Release { .. } | Event::Tick) {
                        self.save(ledger)?;
                    }
                    answer = Answer::GivenBack(Box::new(moved.clone()));
                }
                Effect::LateChanged => {
                    ledger.set_late(&found.id, moved.signal.late_since);
                    self.save(ledger)?;
                }
                Effect::Closed(end) => {
                    let details = EndDetails { by, ..EndDetails::default() };
                    self.end(ledger, found, end, details, now)?;
                    answer = Answer::Ended(Box::new(moved.clone()), end, None);
                }
                // An expiry at this moment is reported as an expiry.
                Effect::Refused(Refusal::Over(End::Expired)) => {}
                Effect::Refused(why) => {
                    moved.signal = found.signal.clone();
                    answer = Answer::Refused(Box::new(moved.clone()), why.to_string());
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
    ) -> Result<Answer, WorldError> {
        let mut open = self.open(now)?;
        let meant = |it: &&Found| is_meant(it, which) && self.approval(it).is_some();
        let Some(found) = open.view.signals.iter().find(meant).cloned() else {
            return Ok(Answer::Nothing);
        };
        let (_, effects) = step(&found.signal, Event::Approve { made: now }, now);
        if !effects.contains(&Effect::Closed(End::Approved)) {
            return self.move_on(&mut open.ledger, &found, Event::Approve { made: now }, now);
        }
        let mut fields = Map::new();
        let task = found.fields.get("task_id").cloned();
        fields.extend(task.map(|it| ("task_id".to_owned(), it)));
        if !decision.is_empty() {
            fields.insert("decision".to_owned(), decision.into());
        }
        let approval = self.approval(&found).map(|it| it.id.clone()).unwrap_or_default();
        let given = self.choices.load().unwrap_or_default().approvals;
        let same =
            |it: &&Found| it.name == approval && it.request == found.id && given.contains(&it.id);
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
        Ok(Answer::Ended(Box::new(found), End::Approved, Some(Box::new(approval))))
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
    ) -> Result<Answer, WorldError> {
        let mut open = self.open(now)?;
        let Some(found) = open.view.signals.iter().find(|it| is_meant(it, which)).cloned() else {
            return Ok(Answer::Nothing);
        };
        let (_, effects) = step(&found.signal, Event::Reject, now);
        if !effects.contains(&Effect::Closed(End::Rejected)) {
            return self.move_on(&mut open.ledger, &found, Event::Reject, now);
        }
        let details = EndDetails { by, reason, ..EndDetails::default() };
        self.end(&mut open.ledger, &found, End::Rejected, details, now)?;
        Ok(Answer::Ended(Box::new(found), End::Rejected, None))
    }

    /// The kind by which a human says yes to this signal.
    fn approval(&self, found: &Found) -> Option<&SignalKind> {
        self.kinds.approval_of(self.kinds.kind(&found.name)?)
    }
}
