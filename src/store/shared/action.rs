//! A change of a shared document: recorded locally, and applied by the step functions wherever the document is.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::document_kind::{APPROVAL, BREAKER, ESCALATION, RUN, SIGNAL, TASK};
use super::run_record::SharedRun;
use super::signal_document::{SignalChange, SignalResponse, signal_of};
use super::void::VoidQuestion;
use crate::breakers::record;
use crate::escalation_record::{self, escalation_of};
use crate::task_record::{record_of, task_of};
use policyd_state::approval::{self, ApprovalEffect, ApprovalEvent, BlockedCall, CallRequest};
use policyd_state::breaker::{
    BreakerEvent, BreakerFailure, BreakerResponse, BreakerSettings, CallMetadata, FailureEffect,
};
use policyd_state::dead_letter::{
    Attempt, ReviewDecision, Task, TaskEffect, TaskEvent, TaskQueue, step,
};
use policyd_state::escalation::{self, EscalationEffect, EscalationEvent};
use policyd_world::server::{DocumentName, NewContent};
use policyd_yaml::time::Timestamp;

/// Key of the queue in the document of a task.
const QUEUE: &str = "queue";
/// Key of the Markdown text in the document of an escalation.
pub const TEXT: &str = "text";

/// A change of one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SharedAction {
    /// An event of a circuit breaker, with the settings of the host where it happened.
    Breaker { key: String, event: SharedBreakerEvent, settings: Box<BreakerSettings> },
    /// A change of a task.
    Task { id: String, change: TaskChange },
    /// A change of an escalation.
    Escalation { id: String, change: EscalationChange },
    /// A change of a request to let a blocked call pass.
    Approval { id: String, change: ApprovalChange },
    /// A run started, ended a turn, or ended. The host of the run alone writes it.
    Run { id: String, record: Box<SharedRun> },
    /// A change of a signal.
    Signal { id: String, change: SignalChange },
    /// A question whose asker did not get the answer.
    Void(VoidQuestion),
}

/// A change of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskChange {
    /// An attempt failed. `task` is what the report says about the task.
    Reported {
        task: Value,
        attempt: Box<Attempt>,
    },
    /// Something was learned about the task.
    Learned {
        task: Value,
    },
    /// The task is a part of another one.
    Created {
        task: Value,
    },
    /// The request that the task waits for can no longer be answered.
    Unanswered {
        by: String,
    },
    /// The retention of an abandoned task ended.
    Expired,
    Started,
    Entered {
        strategy: String,
    },
    Reviewed(SharedReview),
    Released,
    Redriven,
    GivenUp {
        reason: String,
    },
    Blocked {
        by: String,
    },
    Answered {
        by: String,
    },
    Resolved,
    Claimed {
        holder: String,
        lease: Duration,
    },
    Unclaimed {
        generation: u64,
    },
    Finished {
        generation: u64,
    },
}

/// Decision of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedReview {
    Wait,
    Retry { fresh: bool, strategy: String },
    Split { id: String },
    Escalate { strategy: String, id: String },
    Abandon { reason: String },
}

/// A change of an escalation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationChange {
    /// A human is asked. `record` is that of the index, and `text` the document.
    Opened { record: Value, text: String },
    /// A human was notified.
    Notified,
    /// A human answered.
    Answered { approved: bool, decision: String, by: String },
}

/// A change of a request to let a blocked call pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalChange {
    /// The call was blocked.
    Asked(Box<BlockedCall>),
    /// A human answered.
    Answered { allowed: bool, by: String },
    /// The host of the call took the answer over.
    Taken,
    /// The host of the call needs no answer anymore.
    Withdrawn,
}

impl ApprovalChange {
    pub(super) fn as_event(&self) -> ApprovalEvent<'_> {
        match self {
            Self::Asked(call) => ApprovalEvent::Asked(call),
            Self::Answered { allowed, by } => ApprovalEvent::Answered { allowed: *allowed, by },
            Self::Taken => ApprovalEvent::Taken,
            Self::Withdrawn => ApprovalEvent::Withdrawn,
        }
    }
}

impl From<TaskEvent<'_>> for TaskChange {
    fn from(event: TaskEvent<'_>) -> Self {
        let text = str::to_owned;
        match event {
            TaskEvent::Started => Self::Started,
            TaskEvent::Failed(attempt) => Self::reported(&Task::default(), attempt),
            TaskEvent::Entered { strategy } => Self::Entered { strategy: text(strategy) },
            TaskEvent::Reviewed(decision) => Self::Reviewed(match decision {
                ReviewDecision::Wait => SharedReview::Wait,
                ReviewDecision::Retry { fresh, strategy } => {
                    SharedReview::Retry { fresh, strategy: text(strategy) }
                }
                ReviewDecision::Split { id } => SharedReview::Split { id: text(id) },
                ReviewDecision::Escalate { strategy, id } => {
                    SharedReview::Escalate { strategy: text(strategy), id: text(id) }
                }
                ReviewDecision::Abandon { reason } => {
                    SharedReview::Abandon { reason: text(reason) }
                }
            }),
            TaskEvent::Released => Self::Released,
            TaskEvent::Redriven => Self::Redriven,
            TaskEvent::GivenUp { reason } => Self::GivenUp { reason: text(reason) },
            TaskEvent::Blocked { by } => Self::Blocked { by: text(by) },
            TaskEvent::Answered { by } => Self::Answered { by: text(by) },
            TaskEvent::Resolved => Self::Resolved,
            TaskEvent::Claimed { holder, lease } => Self::Claimed { holder: text(holder), lease },
            TaskEvent::Unclaimed { generation } => Self::Unclaimed { generation },
            TaskEvent::Finished { generation } => Self::Finished { generation },
        }
    }
}

impl TaskChange {
    /// Returns the report of a failed attempt.
    #[must_use]
    pub fn reported(task: &Task, attempt: Attempt) -> Self {
        let mut attempt = attempt;
        for text in [&mut attempt.error, &mut attempt.approach, &mut attempt.error_type] {
            remove_nul(text);
        }
        Self::Reported { task: record_of(task, None), attempt: Box::new(attempt) }
    }

    /// Returns what was learned about a task.
    #[must_use]
    pub fn learned(task: &Task) -> Self {
        Self::Learned { task: record_of(task, None) }
    }

    /// Returns the creation of a part.
    #[must_use]
    pub fn created(task: &Task) -> Self {
        Self::Created { task: record_of(task, None) }
    }

    /// Returns the task after the change, and its effects; `None` if the task does not exist.
    #[must_use]
    pub fn apply(
        &self,
        id: &str,
        known: Option<&Task>,
        now: Timestamp,
    ) -> Option<(Task, Vec<TaskEffect>)> {
        let said = |record: &Value| {
            let mut record = record.clone();
            if let Some(fields) = record.as_object_mut() {
                fields.insert("task_id".to_owned(), id.into());
            }
            task_of(&record, TaskQueue::Pending).unwrap_or_else(|| task_with(id))
        };
        let event = match self {
            Self::Reported { task, attempt } => {
                let said = said(task);
                let before = known.cloned().map_or_else(|| said.clone(), |it| it.with(&said));
                return Some(step(&before, TaskEvent::Failed((**attempt).clone()), now));
            }
            Self::Created { task } => {
                return Some((known.cloned().unwrap_or_else(|| said(task)), Vec::new()));
            }
            Self::Learned { task } => {
                return Some((known?.clone().learned(&said(task)), Vec::new()));
            }
            Self::Unanswered { by } => {
                let (mut next, effects) = step(known?, TaskEvent::Answered { by }, now);
                next.hints.marks.remove("human_approved");
                return Some((next, effects));
            }
            Self::Expired => {
                let gone = known?.place == TaskQueue::Abandoned;
                let effects = if gone { vec![TaskEffect::Done] } else { Vec::new() };
                return Some((known?.clone(), effects));
            }
            Self::Started => TaskEvent::Started,
            Self::Entered { strategy } => TaskEvent::Entered { strategy },
            Self::Reviewed(review) => TaskEvent::Reviewed(review.as_decision()),
            Self::Released => TaskEvent::Released,
            Self::Redriven => TaskEvent::Redriven,
            Self::GivenUp { reason } => TaskEvent::GivenUp { reason },
            Self::Blocked { by } => TaskEvent::Blocked { by },
            Self::Answered { by } => TaskEvent::Answered { by },
            Self::Resolved => TaskEvent::Resolved,
            Self::Claimed { holder, lease } => TaskEvent::Claimed { holder, lease: *lease },
            Self::Unclaimed { generation } => TaskEvent::Unclaimed { generation: *generation },
            Self::Finished { generation } => TaskEvent::Finished { generation: *generation },
        };
        Some(step(known?, event, now))
    }
}

fn task_with(id: &str) -> Task {
    Task { id: id.to_owned(), ..Task::default() }
}

impl SharedReview {
    fn as_decision(&self) -> ReviewDecision<'_> {
        match self {
            Self::Wait => ReviewDecision::Wait,
            Self::Retry { fresh, strategy } => ReviewDecision::Retry { fresh: *fresh, strategy },
            Self::Split { id } => ReviewDecision::Split { id },
            Self::Escalate { strategy, id } => ReviewDecision::Escalate { strategy, id },
            Self::Abandon { reason } => ReviewDecision::Abandon { reason },
        }
    }
}

/// Returns the task of a shared document.
#[must_use]
pub fn shared_task(document: &Value) -> Option<Task> {
    let queue = document.get(QUEUE).and_then(Value::as_str).and_then(TaskQueue::find);
    task_of(document, queue.unwrap_or_default())
}

/// Returns the shared document of a task, written over the `known` one.
#[must_use]
pub fn task_document(task: &Task, known: Option<&Value>) -> Value {
    let mut document = record_of(task, known);
    if let Some(fields) = document.as_object_mut() {
        fields.insert(QUEUE.to_owned(), task.place.as_str().into());
    }
    document
}

/// An event of a circuit breaker that is saved until the server applies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedBreakerEvent {
    Request,
    Success {
        #[serde(default)]
        call: CallMetadata,
    },
    Failure {
        error: String,
        effect: FailureEffect,
        #[serde(default)]
        retry_after: Option<Duration>,
        #[serde(default)]
        call: CallMetadata,
    },
    Trip {
        #[serde(default)]
        length: Option<Duration>,
        reason: String,
    },
    Reset,
}

impl From<BreakerEvent<'_>> for SharedBreakerEvent {
    fn from(event: BreakerEvent<'_>) -> Self {
        match event {
            BreakerEvent::Request => Self::Request,
            BreakerEvent::Success(call) => Self::Success { call },
            BreakerEvent::Failure(it) => Self::Failure {
                error: it.error.to_owned(),
                effect: it.effect,
                retry_after: it.retry_after,
                call: it.told,
            },
            BreakerEvent::Trip { length, reason } => {
                Self::Trip { length, reason: reason.to_owned() }
            }
            BreakerEvent::Reset => Self::Reset,
        }
    }
}

impl SharedBreakerEvent {
    /// Returns the event for the step function.
    #[must_use]
    pub fn as_event(&self) -> BreakerEvent<'_> {
        match self {
            Self::Request => BreakerEvent::Request,
            Self::Success { call } => BreakerEvent::Success(*call),
            Self::Failure { error, effect, retry_after, call } => {
                BreakerEvent::Failure(BreakerFailure {
                    error,
                    effect: *effect,
                    retry_after: *retry_after,
                    told: *call,
                })
            }
            Self::Trip { length, reason } => BreakerEvent::Trip { length: *length, reason },
            Self::Reset => BreakerEvent::Reset,
        }
    }
}

/// Response of a step function to a change.
#[derive(Debug, Clone, PartialEq)]
pub enum SharedResponse {
    Breaker(BreakerResponse),
    /// The task after the change, and its effects; `None` if it does not exist.
    Task(Option<(Box<Task>, Vec<TaskEffect>)>),
    /// `None` if the escalation does not exist.
    Escalation(Option<EscalationEffect>),
    Approval(ApprovalEffect),
    /// The run is recorded.
    Run,
    Signal(SignalResponse),
    /// A void changes no document.
    Void,
}

impl SharedAction {
    /// Returns the document that changes.
    #[must_use]
    pub fn document(&self) -> DocumentName<'_> {
        match self {
            Self::Breaker { key, .. } => DocumentName { kind: BREAKER, name: key },
            Self::Task { id, .. } => DocumentName { kind: TASK, name: id },
            Self::Escalation { id, .. } => DocumentName { kind: ESCALATION, name: id },
            Self::Approval { id, .. } => DocumentName { kind: APPROVAL, name: id },
            Self::Run { id, .. } => DocumentName { kind: RUN, name: id },
            Self::Signal { id, .. } => DocumentName { kind: SIGNAL, name: id },
            Self::Void(void) => void.asked.document(),
        }
    }

    /// Returns the name of the signal if the action sends one that interrupts runs, which only humans send to other hosts.
    #[must_use]
    pub(super) fn interrupts(&self) -> Option<&str> {
        match self {
            Self::Signal { change: SignalChange::Emitted(signal), .. }
                if !signal.interrupts.is_empty() =>
            {
                Some(&signal.signal)
            }
            Self::Signal { .. }
            | Self::Breaker { .. }
            | Self::Task { .. }
            | Self::Escalation { .. }
            | Self::Approval { .. }
            | Self::Run { .. }
            | Self::Void(_) => None,
        }
    }

    /// Returns what a human learns whose answer comes after another one with a different decision, `known` being the document.
    #[must_use]
    pub(super) fn first_answer(&self, known: &Value) -> Option<String> {
        let (is_yes, before, by) = if let Self::Escalation { change, .. } = self
            && let EscalationChange::Answered { approved, .. } = change
        {
            let first = escalation_of(known)?.closed?;
            (*approved, first.approved, first.by)
        } else if let Self::Approval { change, .. } = self
            && let ApprovalChange::Answered { allowed, .. } = change
        {
            let first = serde_json::from_value::<CallRequest>(known.clone()).ok()?.answer?;
            (*allowed, first.allowed, first.by)
        } else {
            return None;
        };
        let DocumentName { kind, name } = self.document();
        let first = if before { "yes" } else { "no" };
        (is_yes != before).then(|| {
            format!("{kind} `{name}`: the answer came too late; {by} answered {first} before")
        })
    }

    /// Returns the new content of the document at the time of the event, and the response.
    #[must_use]
    pub fn apply(&self, known: Option<&Value>, at: Timestamp) -> (NewContent, SharedResponse) {
        match self {
            Self::Breaker { event, settings, .. } => {
                let (_, record, response) = record::step(known, event.as_event(), settings, at);
                (content(record), SharedResponse::Breaker(response))
            }
            Self::Task { id, change } => {
                let task = known.and_then(shared_task);
                let Some((next, effects)) = change.apply(id, task.as_ref(), at) else {
                    return (NewContent::Unchanged, SharedResponse::Task(None));
                };
                let content = if effects.contains(&TaskEffect::Done) {
                    NewContent::Removed
                } else if task.as_ref() == Some(&next) {
                    NewContent::Unchanged
                } else {
                    NewContent::Text(text(task_document(&next, known)))
                };
                (content, SharedResponse::Task(Some((Box::new(next), effects))))
            }
            Self::Escalation { change, .. } => {
                let (record, effect) = change.apply(known, at);
                (content(record), SharedResponse::Escalation(effect))
            }
            Self::Approval { change, .. } => {
                let known: Option<CallRequest> =
                    known.and_then(|it| serde_json::from_value(it.clone()).ok());
                let (next, effect) = approval::step(known.as_ref(), &change.as_event(), at);
                let changed = next.filter(|it| known.as_ref() != Some(it));
                (content(changed.map(|it| json!(it))), SharedResponse::Approval(effect))
            }
            Self::Run { record, .. } => {
                let before = known.and_then(|it| it.get("updated")?.as_str());
                let is_old =
                    before.and_then(Timestamp::parse).is_some_and(|it| it > record.updated);
                let next = (!is_old).then(|| json!(record));
                (content(next), SharedResponse::Run)
            }
            Self::Signal { change, .. } => {
                let known = known.and_then(signal_of);
                let (next, response) = change.apply(known.as_ref(), at);
                (content(next.map(|it| json!(it))), SharedResponse::Signal(response))
            }
            Self::Void(_) => (NewContent::Unchanged, SharedResponse::Void),
        }
    }
}

impl EscalationChange {
    /// Returns the changed document, and the effect of the event.
    fn apply(
        &self,
        known: Option<&Value>,
        at: Timestamp,
    ) -> (Option<Value>, Option<EscalationEffect>) {
        let event = match self {
            Self::Opened { record, text } => {
                let mut record = record.clone();
                if let Some(fields) = record.as_object_mut() {
                    fields.insert(TEXT.to_owned(), text.as_str().into());
                }
                return match known {
                    None => (Some(record), Some(EscalationEffect::Noted)),
                    // The same file name on two hosts: the first question stays.
                    Some(_) => (None, Some(EscalationEffect::Nothing)),
                };
            }
            Self::Notified => EscalationEvent::Told,
            Self::Answered { approved, decision, by } => {
                let (approved, decision, by) = (*approved, decision.clone(), by.clone());
                EscalationEvent::Closed { approved, decision, by }
            }
        };
        let Some(escalation) = known.and_then(escalation_of) else { return (None, None) };
        let (next, effect) = escalation::step(&escalation, event, at);
        let changed = (next != escalation).then(|| escalation_record::record_of(&next, known));
        (changed, Some(effect))
    }
}

/// The content that a changed record has; an unchanged document has none.
fn content(record: Option<Value>) -> NewContent {
    record.map_or(NewContent::Unchanged, |it| NewContent::Text(text(it)))
}

/// Formats a document. PostgreSQL cannot read texts with the character NUL.
fn text(document: Value) -> String {
    let mut document = document;
    remove_nul_within(&mut document);
    document.to_string()
}

fn remove_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', " ");
    }
}

fn remove_nul_within(value: &mut Value) {
    match value {
        Value::String(text) => remove_nul(text),
        Value::Array(items) => items.iter_mut().for_each(remove_nul_within),
        Value::Object(fields) => fields.values_mut().for_each(remove_nul_within),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
