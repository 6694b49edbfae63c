//! The ledger of signals: claims, endings that are not in the history yet, and answers that the agent has not
//! received. One document, changed under the lock of the signals.
//!
//! A signal ends when its ending is in the ledger. The history and the removal of the file follow; the next
//! process completes them if this one dies. Reading is tolerant: an entry of another type is left out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::appended_drift::AppendedDrift;
use crate::log_position::LogPosition;
use policyd_base::limits::SIGNAL_ANSWERS_MAX;
use policyd_state::signal::End;
use policyd_state::stored::{entries, fields, items, or_default};
use policyd_yaml::time::Timestamp;

const VERSION: u32 = 1;
/// Outcome of a file that is not a signal.
pub(super) const QUARANTINED: &str = "quarantined";

/// A claim of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ClaimEntry {
    /// Holder of the claim.
    pub(super) by: String,
    /// End of the claim.
    pub(super) until: Timestamp,
}

/// `state/signals.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["version"]))]
pub(crate) struct Ledger {
    /// Foreign keys.
    #[serde(flatten)]
    foreign: Map<String, Value>,
    /// Version of the format.
    #[serde(deserialize_with = "or_default")]
    version: u32,
    /// Claimed signals, by id.
    #[serde(deserialize_with = "entries")]
    pub(super) claims: BTreeMap<String, ClaimEntry>,
    /// When a call first saw a signal late, by id.
    #[serde(deserialize_with = "entries")]
    pub(super) late: BTreeMap<String, Timestamp>,
    /// Endings that are not complete yet, by id of the signal.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "BTreeMap<String, SignalEnd>")]
    pub(super) endings: BTreeMap<String, Value>,
    /// Drifts before this time no longer count.
    #[serde(deserialize_with = "or_default")]
    pub(super) drifts_from: Option<Timestamp>,
    /// How far each log was read, by the name of the signal.
    #[serde(deserialize_with = "entries", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) drifts_read: BTreeMap<String, LogPosition>,
    /// Drifts that other programs reported, and whose effects are not done yet, oldest first.
    #[serde(deserialize_with = "items", skip_serializing_if = "Vec::is_empty")]
    pub(super) drifts_due: Vec<AppendedDrift>,
    /// Results of requests that the agent has not received yet, oldest first.
    #[serde(deserialize_with = "items")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub(super) answers: Vec<Value>,
}

/// A line of `signals/history.jsonl`: how a signal ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["time", "outcome", "file"]))]
pub(crate) struct SignalEnd {
    /// When the signal ended.
    #[serde(deserialize_with = "or_default")]
    pub(super) time: Timestamp,
    /// Name of the signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<String>,
    /// Id of the signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// How the signal ended.
    #[serde(deserialize_with = "or_default")]
    #[schemars(extend("enum" = outcomes()))]
    pub(super) outcome: String,
    /// When the signal was created.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) created: Option<Timestamp>,
    /// Sender of the signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) sender: Option<String>,
    /// Id of the request that the signal answered.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    /// Fields of the signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) fields: Option<Map<String, Value>>,
    /// File of the signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub(super) file: Option<String>,
    /// Actor that ended the signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
    /// Decision of the human.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<String>,
    /// Name of a file in `quarantine/` that is not a signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) aside: Option<String>,
    /// Reason of the outcome.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Id of the approval that ended the signal.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
}

fn outcomes() -> Vec<&'static str> {
    End::ALL.iter().map(|end| end.as_str()).chain([QUARANTINED]).collect()
}

impl SignalEnd {
    pub(super) fn read(entry: &Value) -> Self {
        Self::deserialize(entry).unwrap_or_default()
    }

    pub(super) fn to_json(&self) -> Value {
        Value::Object(fields(self))
    }
}

impl Ledger {
    pub(super) fn read(fields: Option<Map<String, Value>>) -> Self {
        let ledger = fields.and_then(|it| Self::deserialize(it).ok());
        let mut ledger = ledger.unwrap_or_default();
        ledger.endings.retain(|_, ending| ending.is_object());
        ledger
    }

    pub(super) fn text(&self) -> String {
        let mut all = fields(self);
        all.insert("version".to_owned(), VERSION.into());
        format!("{:#}\n", Value::Object(all))
    }

    /// Records since when a signal is late, or that it is not.
    pub(super) fn set_late(&mut self, id: &str, since: Option<Timestamp>) {
        match since {
            Some(since) => {
                self.late.insert(id.to_owned(), since);
            }
            None => {
                self.late.remove(id);
            }
        }
    }

    /// Records a result for the agent; the oldest results are dropped.
    pub(super) fn answered(&mut self, answer: Value) {
        self.answers.push(answer);
        let surplus = self.answers.len().saturating_sub(SIGNAL_ANSWERS_MAX);
        self.answers.drain(..surplus);
    }
}
