//! Applies approvals, times out late requests, expires signals, and quarantines unusable files. Any process does
//! what is due.

use std::time::Duration;

use serde_json::Value;

use super::follow_up::{FollowUpHandler, FollowUpResult, SignalFollowUp};
use super::found::StoredSignal;
use super::ledger::{QUARANTINED, SignalEnd};
use super::{EndDetails, LockedSignals, SignalOutcome, SignalStore, View, file_names};
use crate::log;
use policyd_policy::signals::TimeoutAction;
use policyd_state::signal::{End, SignalEvent, SignalPhase, step};
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// Holder of the lease while the follow-ups of a timeout run.
const PROCESS: &str = "policyd";
/// Longest duration of the follow-up of a timeout; then another process tries again.
const FOLLOW_UP_LEASE: Duration = Duration::from_secs(60);

/// Maximum backward step of the clock between the creation of two files.
const CLOCK_SLACK: Duration = Duration::from_secs(5);

/// The request that an approval is bound to.
enum ApprovalTarget {
    /// This request, which waits.
    Waits(Box<StoredSignal>),
    /// A request that ended by this approval.
    Done(Box<SignalEnd>),
    /// Nothing, and why.
    Nothing(String),
    /// Unknown at this time, and why.
    Unknown(String),
}

impl SignalStore<'_> {
    /// Consumes an approval, and with it the request that it approves. One that approves nothing is
    /// rejected, so that it never approves what comes later.
    pub(super) fn take_in(
        &self,
        open: &mut LockedSignals,
        approval: &StoredSignal,
        by: &str,
        now: Timestamp,
    ) -> Result<SignalOutcome, WorldError> {
        let (_, effects) = step(&approval.signal, SignalEvent::Consume { by }, now);
        if !effects.contains(&policyd_state::signal::SignalEffect::Closed(End::Consumed)) {
            return self.move_on(&mut open.ledger, approval, SignalEvent::Consume { by }, now);
        }
        let request = match self.bound(&open.view, approval, now) {
            ApprovalTarget::Nothing(why) => {
                let details = EndDetails { by, reason: &why, ..EndDetails::default() };
                self.end(&mut open.ledger, approval, End::Rejected, details, now)?;
                return Ok(SignalOutcome::Refused(Box::new(approval.clone()), why));
            }
            ApprovalTarget::Unknown(why) => {
                return Ok(SignalOutcome::Refused(Box::new(approval.clone()), why));
            }
            ApprovalTarget::Done(entry) => request_of(*entry, approval),
            ApprovalTarget::Waits(request) => {
                let details = EndDetails {
                    by: &approval.sender,
                    decision: approval.text("decision"),
                    answer: &approval.id,
                    ..EndDetails::default()
                };
                self.end(&mut open.ledger, &request, End::Approved, details, now)?;
                *request
            }
        };
        let approval = StoredSignal { request: request.id.clone(), ..approval.clone() };
        let details = EndDetails { by, ..EndDetails::default() };
        self.end(&mut open.ledger, &approval, End::Consumed, details, now)?;
        Ok(SignalOutcome::Ended(Box::new(approval), End::Consumed, Some(Box::new(request))))
    }

    /// The request that an approval is bound to: the one it names, else the only one that waited
    /// when it was made.
    fn bound(&self, view: &View, approval: &StoredSignal, now: Timestamp) -> ApprovalTarget {
        match self.choices.load() {
            Ok(choices) if choices.approvals.contains(&approval.id) => {}
            Ok(_) => {
                let why = "the user did not give it with `policyd signal approve` on this machine";
                return ApprovalTarget::Nothing(why.to_owned());
            }
            Err(error) => return ApprovalTarget::Unknown(error.to_string()),
        }
        let kind = self.kinds.kind(&approval.name);
        let wanted = kind.map(|it| it.approves.as_str()).unwrap_or_default();
        let made = approval.signal.created;
        let waits = |it: &&StoredSignal| it.name == wanted && !it.signal.is_over(now);
        let waiting: Vec<&StoredSignal> = view.signals.iter().filter(waits).collect();
        if !approval.request.is_empty() {
            let named = waiting.iter().find(|it| it.id == approval.request);
            return match named {
                Some(it) if made < it.signal.created => ApprovalTarget::Nothing(format!(
                    "it is older than the {wanted} {} it names",
                    it.id
                )),
                Some(it) => ApprovalTarget::Waits(Box::new((*it).clone())),
                None => self.ended_by(approval, wanted),
            };
        }
        let history = log::read_certainly(self.world, &self.history_path());
        let Some(history) = history.ok().filter(|_| !view.incomplete && !view.cut) else {
            let why = "the request that it approves is unknown: not all signals can be read";
            return ApprovalTarget::Unknown(why.to_owned());
        };
        let task = approval.text("task_id");
        let of_task = |it: &&&StoredSignal| task.is_empty() || it.text("task_id") == task;
        let waiting: Vec<&StoredSignal> = waiting.iter().filter(of_task).copied().collect();
        let asked = waiting.iter().filter(|it| it.signal.created <= made).copied();
        let asked: Vec<&StoredSignal> = asked.collect();
        match (asked.as_slice(), waiting.len()) {
            ([], 0) => ApprovalTarget::Nothing(format!("no {wanted} waits for an answer")),
            ([], _) => {
                ApprovalTarget::Nothing(format!("it is older than every {wanted} that waits"))
            }
            ([only], _) if !others_waited_at(&history, wanted, made) => {
                ApprovalTarget::Waits(Box::new((*only).clone()))
            }
            _ => ApprovalTarget::Nothing(format!(
                "several {wanted} waited when it was made, and it names none; `policyd signal \
                 approve ID` does"
            )),
        }
    }

    /// A request that is over: it may have ended by this very approval.
    fn ended_by(&self, approval: &StoredSignal, wanted: &str) -> ApprovalTarget {
        let Ok(history) = log::read_certainly(self.world, &self.history_path()) else {
            return ApprovalTarget::Unknown("the history cannot be read now".to_owned());
        };
        let endings = history.iter().rev().map(SignalEnd::read);
        let entry = endings.into_iter().find(|it| it.id.as_ref() == Some(&approval.request));
        match entry {
            Some(entry) if entry.answer.as_ref() == Some(&approval.id) => {
                ApprovalTarget::Done(Box::new(entry))
            }
            Some(entry) => {
                let outcome = entry.outcome.replace('_', " ");
                ApprovalTarget::Nothing(format!(
                    "the {wanted} {} it names was {outcome}",
                    approval.request
                ))
            }
            None => {
                ApprovalTarget::Nothing(format!("{wanted} {} does not exist", approval.request))
            }
        }
    }

    /// Does what is due. `act` is called without the lock.
    ///
    /// # Errors
    /// The lock was not free, or something could not be written; what was done is done.
    pub fn process(
        &self,
        now: Timestamp,
        act: &mut FollowUpHandler<'_>,
    ) -> Result<FollowUpResult, WorldError> {
        let mut done = FollowUpResult::default();
        let mut due = Vec::new();
        self.take_over_ends(now)?;
        let drifts;
        {
            let mut open = self.open(now)?;
            drifts = self.claim_drifts(&mut open, now)?;
            self.quarantine(&open.view, &mut done, now);
            let signals = open.view.signals.clone();
            for found in &signals {
                let approves =
                    self.kinds.kind(&found.name).is_some_and(|it| !it.approves.is_empty());
                if approves && found.signal.is_pending(now) {
                    self.process_approval(&mut open, found, &mut done, &mut *act, now)?;
                    open.view = self.look(&open.ledger, now);
                }
            }
            self.drop_late(&mut open)?;
            for found in open.view.signals.clone() {
                if step(&found.signal, SignalEvent::Tick, now).0.phase
                    == SignalPhase::Ended(End::TimedOut)
                {
                    let claim = SignalEvent::Claim { by: PROCESS, lease: FOLLOW_UP_LEASE };
                    self.move_on(&mut open.ledger, &found, claim, now)?;
                    due.push(found);
                    continue;
                }
                match self.move_on(&mut open.ledger, &found, SignalEvent::Tick, now)? {
                    SignalOutcome::Ended(found, end, _) => done.ended.push((*found, end)),
                    SignalOutcome::GivenBack(found) => done.given_back.push(*found),
                    SignalOutcome::Nothing
                    | SignalOutcome::Refused(..)
                    | SignalOutcome::Held(..) => {}
                }
            }
        }
        for found in due {
            self.time_out(found, &mut done, &mut *act, now)?;
        }
        self.follow_drifts(drifts, &mut done, &mut *act, now)?;
        Ok(done)
    }

    /// Removes from the ledger which signals are late whose files are gone.
    fn drop_late(&self, open: &mut LockedSignals) -> Result<(), WorldError> {
        if open.view.incomplete || open.view.cut {
            return Ok(());
        }
        let (view, before) = (&open.view, open.ledger.late.len());
        open.ledger.late.retain(|id, _| view.signals.iter().any(|it| it.id == *id));
        if open.ledger.late.len() == before { Ok(()) } else { self.save(&open.ledger) }
    }

    fn process_approval(
        &self,
        open: &mut LockedSignals,
        found: &StoredSignal,
        done: &mut FollowUpResult,
        act: &mut FollowUpHandler<'_>,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        // The follow-up is done first: if this process dies, the next one repeats it.
        let request = match self.bound(&open.view, found, now) {
            ApprovalTarget::Waits(request) => Some(*request),
            ApprovalTarget::Done(entry) => Some(request_of(*entry, found)),
            ApprovalTarget::Nothing(_) => None,
            ApprovalTarget::Unknown(why) => {
                done.failed.push((found.clone(), why));
                return Ok(());
            }
        };
        if let Some(request) = request {
            let deed = SignalFollowUp::Unblock {
                request: Box::new(request),
                approval: Box::new(found.clone()),
            };
            if let Err(error) = act(&deed) {
                done.failed.push((found.clone(), error.to_string()));
                return Ok(());
            }
        }
        match self.take_in(open, found, PROCESS, now)? {
            SignalOutcome::Ended(approval, end, request) => {
                if let Some(request) = &request {
                    let answer = SignalEnd {
                        time: now,
                        signal: Some(request.name.clone()),
                        id: Some(request.id.clone()),
                        outcome: End::Approved.as_str().to_owned(),
                        fields: Some(request.fields.clone()),
                        by: Some(approval.sender.clone()),
                        decision: Some(approval.text("decision").to_owned()),
                        ..SignalEnd::default()
                    };
                    open.ledger.answered(answer.to_json());
                    self.save(&open.ledger)?;
                }
                done.ended.extend(request.map(|it| (*it, End::Approved)));
                done.ended.push((*approval, end));
            }
            SignalOutcome::Refused(approval, why) => done.stale.push((*approval, why)),
            SignalOutcome::Nothing | SignalOutcome::Held(..) | SignalOutcome::GivenBack(_) => {}
        }
        Ok(())
    }

    fn time_out(
        &self,
        found: StoredSignal,
        done: &mut FollowUpResult,
        act: &mut FollowUpHandler<'_>,
        now: Timestamp,
    ) -> Result<(), WorldError> {
        let actions = self.kinds.kind(&found.name).map(|it| it.on_timeout.clone());
        let deeds = actions.unwrap_or_default().into_iter().filter_map(|it| match it {
            TimeoutAction::DeadLetter => {
                Some(SignalFollowUp::DeadLetter { request: Box::new(found.clone()) })
            }
            TimeoutAction::Alert => {
                Some(SignalFollowUp::Alert { request: Box::new(found.clone()) })
            }
            TimeoutAction::Discard => None,
        });
        let failure = deeds.into_iter().find_map(|it| act(&it).err());
        let mut open = self.open(now)?;
        let Some(still) = open.find(&found.id).cloned() else { return Ok(()) };
        match failure {
            None => {
                let details = EndDetails { by: PROCESS, ..EndDetails::default() };
                self.end(&mut open.ledger, &still, End::TimedOut, details, now)?;
                done.ended.push((found, End::TimedOut));
            }
            Some(error) => {
                let release = SignalEvent::Release { by: PROCESS };
                self.move_on(&mut open.ledger, &still, release, now)?;
                done.failed.push((found, error.to_string()));
            }
        }
        Ok(())
    }

    /// Quarantines unusable files. A file that cannot be moved stays and is reported.
    fn quarantine(&self, view: &View, done: &mut FollowUpResult, now: Timestamp) {
        let aside = self.folder().join(file_names::QUARANTINE);
        for (file, why) in &view.unusable {
            // An existing directory is not an error; any other error shows below.
            self.world.create_folder(&aside).ok();
            let name = format!("{file}-{}", now.millis());
            let moved = self.world.rename(&self.folder().join(file), &aside.join(&name));
            let why = match moved {
                Ok(()) => why.clone(),
                Err(error) => format!("{why}, and it could not be quarantined: {error}"),
            };
            let entry = SignalEnd {
                time: now,
                outcome: QUARANTINED.to_owned(),
                file: Some(file.clone()),
                aside: Some(name),
                reason: Some(why.clone()),
                ..SignalEnd::default()
            };
            // The file itself is kept; the history records that it was moved.
            log::append(self.world, &self.history_path(), &[entry.to_json()]);
            done.quarantined.push((file.clone(), why));
        }
    }
}

/// The request of an entry of the history, as far as that tells.
fn request_of(entry: SignalEnd, approval: &StoredSignal) -> StoredSignal {
    StoredSignal {
        id: entry.id.unwrap_or_default(),
        name: entry.signal.unwrap_or_default(),
        sender: entry.sender.unwrap_or_default(),
        request: String::new(),
        fields: entry.fields.unwrap_or_default(),
        signal: policyd_state::signal::Signal {
            phase: SignalPhase::Ended(End::Approved),
            created: entry.created.unwrap_or(approval.signal.created),
            expires: None,
            answer_by: None,
            late_since: None,
        },
        note: String::new(),
        foreign: false,
        file: entry.file.unwrap_or_default(),
    }
}

/// Whether a request that is over now waited at that moment, too.
fn others_waited_at(history: &[Value], wanted: &str, made: Timestamp) -> bool {
    history.iter().map(SignalEnd::read).any(|ending| {
        ending.signal.as_deref() == Some(wanted)
            && ending.created.is_some_and(|at| at <= made)
            && ending.time.plus(CLOCK_SLACK) >= made
    })
}
