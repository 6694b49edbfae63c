//! The record of an escalation: its form in the index and in the shared store.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use policyd_state::escalation::{Escalation, Resolution};
use policyd_state::stored::{count, fields, or_default};
use policyd_yaml::time::Timestamp;

/// An escalation of the index. Reading is tolerant: a value of another type counts as absent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["id", "status"]))]
pub(super) struct EscalationRecord {
    /// Id of the escalation and name of its document.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    id: String,
    /// Status.
    #[serde(deserialize_with = "or_default")]
    status: EscalationStatus,
    /// Task that the escalation is about, or empty.
    #[serde(deserialize_with = "or_default")]
    task_id: String,
    /// Title of the task, or of the cause that several tasks share.
    #[serde(deserialize_with = "or_default")]
    title: String,
    /// Id of the trigger.
    #[serde(deserialize_with = "or_default")]
    trigger: String,
    /// Why a human is needed.
    #[serde(deserialize_with = "or_default")]
    reason: String,
    /// `low`, `medium`, `high`, or `critical`.
    #[serde(deserialize_with = "or_default")]
    severity: String,
    /// Whether the task waits for the answer.
    #[serde(deserialize_with = "or_default")]
    blocking: bool,
    /// When the escalation was opened.
    #[serde(deserialize_with = "or_default")]
    created: Timestamp,
    /// Repeat interval of the notifications in seconds.
    #[serde(deserialize_with = "or_default")]
    answer_within_s: Option<u64>,
    /// Last notification.
    #[serde(deserialize_with = "or_default")]
    told_at: Option<Timestamp>,
    /// Number of notifications.
    #[serde(deserialize_with = "count")]
    times_told: u32,
    /// When a human answered.
    #[serde(deserialize_with = "or_default")]
    closed_at: Option<Timestamp>,
    /// Decision of the human.
    #[serde(deserialize_with = "or_default")]
    decision: Option<String>,
    /// Human who answered.
    #[serde(deserialize_with = "or_default")]
    by: Option<String>,
}

/// Status of an escalation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EscalationStatus {
    /// Waits for an answer.
    #[default]
    Open,
    /// A human approved it.
    Approved,
    /// A human rejected it.
    Rejected,
}

/// Returns the escalation of a record.
#[must_use]
pub fn escalation_of(value: &Value) -> Option<Escalation> {
    let record = EscalationRecord::deserialize(value).ok()?;
    let closed = (record.status != EscalationStatus::Open).then(|| Resolution {
        at: record.closed_at.unwrap_or_default(),
        approved: record.status == EscalationStatus::Approved,
        decision: record.decision.unwrap_or_default(),
        by: record.by.unwrap_or_default(),
    });
    (!record.id.is_empty()).then_some(Escalation {
        id: record.id,
        task_id: record.task_id,
        title: record.title,
        trigger: record.trigger,
        reason: record.reason,
        severity: record.severity,
        blocking: record.blocking,
        created: record.created,
        answer_within: record.answer_within_s.map(Duration::from_secs),
        told: record.told_at,
        times_told: record.times_told,
        closed,
    })
}

/// Returns the record of an escalation, written over the `known` one.
#[must_use]
pub fn record_of(escalation: &Escalation, known: Option<&Value>) -> Value {
    let it = escalation.clone();
    let closed = it.closed.as_ref();
    let own = fields(&EscalationRecord {
        id: it.id,
        status: match closed {
            None => EscalationStatus::Open,
            Some(closed) if closed.approved => EscalationStatus::Approved,
            Some(_) => EscalationStatus::Rejected,
        },
        task_id: it.task_id,
        title: it.title,
        trigger: it.trigger,
        reason: it.reason,
        severity: it.severity,
        blocking: it.blocking,
        created: it.created,
        answer_within_s: it.answer_within.map(|within| within.as_secs()),
        told_at: it.told,
        times_told: it.times_told,
        closed_at: closed.map(|closed| closed.at),
        decision: closed.map(|closed| closed.decision.clone()),
        by: closed.map(|closed| closed.by.clone()),
    });
    let mut record = known.and_then(Value::as_object).cloned().unwrap_or_default();
    record.extend(own);
    Value::Object(record)
}
