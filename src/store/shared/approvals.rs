//! Requests to let blocked tool calls pass, and their answers. Any host can answer; only the host of the call takes
//! the answer over, and only if the request on the server is the one that it made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::action::{ApprovalChange, SharedAction, SharedResponse};
use super::mirror::APPROVALS;
use super::{SharedStore, SyncError, SyncLimits, position};
use crate::allowance::{Allowance, AllowanceTarget};
use crate::document::DocumentError;
use crate::user_choices::UserChoiceStore;
use policyd_base::id::SessionId;
use policyd_base::limits::ALLOWANCE_ONCE;
use policyd_evaluation::call_code;
use policyd_state::approval::{ApprovalEffect, ApprovalEvent, BlockedCall, CallRequest, step};
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// Key of the state directory in a request that this host made. It is not sent.
const STATE_DIR: &str = "state_dir";

/// A request, and the name of its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRequest {
    pub id: String,
    pub request: CallRequest,
}

/// A request that a blocked call made or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedCall {
    pub id: String,
    pub request: CallRequest,
    /// Whether it was opened now.
    pub is_new: bool,
}

/// Result of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerResult {
    /// The server has it.
    Sent(ApprovalEffect),
    /// The server cannot be reached. It is sent later.
    Queued,
}

impl SharedStore<'_> {
    /// Returns the requests of the local copy, oldest first.
    ///
    /// # Errors
    /// The local copy cannot be read.
    pub fn approvals(&self) -> Result<Vec<NamedRequest>, DocumentError> {
        let all = self.mirror(APPROVALS).all()?.into_iter();
        let mut all: Vec<NamedRequest> = all
            .filter_map(|(id, it)| {
                Some(NamedRequest { id, request: serde_json::from_value(it).ok()? })
            })
            .collect();
        all.sort_by(|one, other| {
            (one.request.asked, &one.id).cmp(&(other.request.asked, &other.id))
        });
        Ok(all)
    }

    /// Asks the humans of the group to let a blocked call pass. Returns the request; one that is open stays as it is.
    ///
    /// # Errors
    /// The request was not saved.
    pub fn ask(
        &self,
        call: &BlockedCall,
        state_dir: &Path,
        now: Timestamp,
    ) -> Result<AskedCall, WorldError> {
        let client = position::client(self.world, &self.folder)?;
        let id = format!("{client}-{}", call_code::code(&call.digest));
        self.mirror(APPROVALS).change(|all| {
            let known = all.get(&id).and_then(request_of);
            let (request, effect) = step(known.as_ref(), &ApprovalEvent::Asked(call), now);
            let request = request.unwrap_or_default();
            if effect == ApprovalEffect::Opened {
                let change = ApprovalChange::Asked(Box::new(call.clone()));
                self.push(SharedAction::Approval { id: id.clone(), change }, now)?;
                let place = state_dir.to_str().map(Value::from);
                all.insert(id.clone(), with_place(json!(request), place.as_ref()));
            }
            let is_new = effect == ApprovalEffect::Opened;
            Ok(AskedCall { id, request, is_new })
        })
    }

    /// Answers a request. The server decides which answer is the first.
    ///
    /// # Errors
    /// The role of this process must not answer, or the answer could not be saved.
    pub fn answer(
        &self,
        id: &str,
        allowed: bool,
        by: &str,
        limits: SyncLimits<'_>,
    ) -> Result<AnswerResult, SyncError> {
        let change = ApprovalChange::Answered { allowed, by: by.to_owned() };
        // A server that was restored may not know the first answer.
        let known = self.mirror(APPROVALS).all()?.get(id).and_then(request_of);
        let (_, effect) = step(known.as_ref(), &change.as_event(), self.world.now());
        if effect == ApprovalEffect::AlreadyAnswered {
            return Ok(AnswerResult::Sent(effect));
        }
        let action = SharedAction::Approval { id: id.to_owned(), change };
        match self.submit(action.clone(), limits) {
            Ok(SharedResponse::Approval(effect)) => Ok(AnswerResult::Sent(effect)),
            Ok(_) => Ok(AnswerResult::Sent(ApprovalEffect::Unknown)),
            Err(SyncError::Server(error)) if !error.is_temporary() => Err(error.into()),
            Err(SyncError::Server(error)) => {
                // It is in the outbox if it is unknown whether the server applied it.
                if !error.is_commit_unknown() {
                    self.push(action, self.world.now())?;
                }
                Ok(AnswerResult::Queued)
            }
            Err(SyncError::Deferred(_) | SyncError::Busy) => {
                self.push(action, self.world.now())?;
                Ok(AnswerResult::Queued)
            }
            Err(
                error @ (SyncError::Settings(_)
                | SyncError::Local(_)
                | SyncError::Document(_)
                | SyncError::TooLarge(_)),
            ) => Err(error),
        }
    }

    /// Withdraws the open request of a call that the user of this host let pass.
    ///
    /// # Errors
    /// The change was not saved.
    pub fn withdraw(&self, digest: &str, now: Timestamp) -> Result<(), WorldError> {
        let client = position::client(self.world, &self.folder)?;
        let id = format!("{client}-{}", call_code::code(digest));
        self.mirror(APPROVALS).change(|all| {
            let Some(known) = all.get_mut(&id) else { return Ok(()) };
            let request = request_of(known);
            let (next, effect) = step(request.as_ref(), &ApprovalEvent::Withdrawn, now);
            if effect == ApprovalEffect::Noted {
                let change = ApprovalChange::Withdrawn;
                self.push(SharedAction::Approval { id: id.clone(), change }, now)?;
                *known = with_place(json!(next), known.get(STATE_DIR));
            }
            Ok(())
        })
    }

    /// Takes over requests of the server, and the answers to the requests of this host. Returns what is wrong with
    /// them. `ahead_ms` is subtracted from times, which are those of the server.
    pub(super) fn adopt_approvals(
        &self,
        current: impl FnOnce() -> Vec<(String, Option<Value>)>,
        ahead_ms: i64,
        is_restored: bool,
        lock_wait: Duration,
    ) -> Result<Vec<String>, WorldError> {
        let now = self.world.now();
        let own = format!("{}-", position::client(self.world, &self.folder)?);
        let mut problems = Vec::new();
        let mut taken: Vec<(PathBuf, NamedRequest)> = Vec::new();
        self.mirror_within(APPROVALS, lock_wait).change(|all| {
            for (id, document) in current() {
                let Some(mut request) = document.as_ref().and_then(request_of) else {
                    all.remove(&id);
                    continue;
                };
                shift(&mut request, ahead_ms);
                if !id.starts_with(&own) {
                    let known = all.get(&id).and_then(request_of).and_then(|it| it.answer);
                    let is_lost =
                        request.answer.is_none() && known.is_some_and(|it| it.at >= request.asked);
                    if !(is_restored && is_lost) {
                        all.insert(id, json!(request));
                    }
                    continue;
                }
                // What this host did not ask, or does not know anymore, it does not take over.
                let Some(known) = all.get_mut(&id) else { continue };
                let Some(mut asked) = request_of(known) else { continue };
                if asked.call != request.call {
                    problems.push(format!("approval `{id}`: the server contains another call"));
                    continue;
                }
                if asked.answer.is_some() {
                    continue;
                }
                let is_takeable = request.takeable(now).is_some();
                asked = request;
                if let Some(answer) = asked.answer.as_mut().filter(|_| is_takeable) {
                    answer.taken = true;
                }
                let state_dir = known.get(STATE_DIR).cloned();
                *known = with_place(json!(asked), state_dir.as_ref());
                let path = state_dir.as_ref().and_then(Value::as_str);
                if let Some(path) = path.filter(|_| is_takeable) {
                    taken.push((PathBuf::from(path), NamedRequest { id, request: asked }));
                }
            }
            Ok(())
        })?;
        // The copy says that the answer is taken before the call may pass, so that it passes once.
        for (state_dir, it) in taken {
            let problem = self.take_over(&state_dir, &it, now).err();
            problems.extend(problem.map(|problem| format!("approval `{}`: {problem}", it.id)));
        }
        Ok(problems)
    }

    /// Lets an answered call pass once.
    fn take_over(
        &self,
        state_dir: &Path,
        taken: &NamedRequest,
        now: Timestamp,
    ) -> Result<(), DocumentError> {
        let NamedRequest { id, request } = taken;
        let Some(answer) = &request.answer else { return Ok(()) };
        let action = SharedAction::Approval { id: id.clone(), change: ApprovalChange::Taken };
        // Without it, others see an answer that was not taken.
        drop(self.push(action, now));
        if !answer.allowed {
            return Ok(());
        }
        let allowance = Allowance {
            target: AllowanceTarget::Call(request.call.digest.clone()),
            session: SessionId::parse(&request.call.session),
            // A clock that differs a little must not delay the start.
            since: answer.at.min(now),
            until: answer.at.min(now).plus(ALLOWANCE_ONCE),
            once: true,
            by: answer.by.clone(),
        };
        let store = UserChoiceStore::new(self.world, state_dir);
        store.change(|choices| choices.add_allowance(allowance, now))
    }
}

/// Reads a request. `None` if the document is not one.
pub(super) fn request_of(document: &Value) -> Option<CallRequest> {
    serde_json::from_value(document.clone()).ok()
}

/// Adds the state directory to the document of a request that this host made.
fn with_place(document: Value, state_dir: Option<&Value>) -> Value {
    let mut document = document;
    if let (Some(fields), Some(state_dir)) = (document.as_object_mut(), state_dir) {
        fields.insert(STATE_DIR.to_owned(), state_dir.clone());
    }
    document
}

/// Returns the document of a request without what only this host knows.
pub(super) fn sent_document(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(fields) = document.as_object_mut() {
        fields.remove(STATE_DIR);
    }
    document
}

/// Moves the times of a request to the clock of this host.
fn shift(request: &mut CallRequest, ahead_ms: i64) {
    let moved = |at: Timestamp| Timestamp::from_millis(at.millis().saturating_sub(ahead_ms));
    request.asked = moved(request.asked);
    if let Some(answer) = &mut request.answer {
        answer.at = moved(answer.at);
    }
}
