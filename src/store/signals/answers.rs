//! How requests to humans ended, for the agent that asked.

use serde_json::{Map, Value};

use super::SignalStore;
use super::found::message_of;
use super::ledger::SignalEnd;
use crate::document::DocumentError;
use policyd_state::signal::End;
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

/// How a request to a human ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestAnswer {
    /// Id of the request.
    pub id: String,
    /// Name of the request.
    pub signal: String,
    /// What was asked. Can be empty.
    pub question: String,
    /// How it ended.
    pub end: End,
    /// What the human said, or why it ended without one. Can be empty.
    pub text: String,
    /// Name of the human. Empty if none answered.
    pub by: String,
    /// When it ended.
    pub at: Timestamp,
    /// Whether the agent waited for it.
    pub is_blocking: bool,
}

impl RequestAnswer {
    /// Returns the answer of an entry. `None` if the entry has no id or no end.
    fn of(entry: &Value) -> Option<Self> {
        let entry = SignalEnd::read(entry);
        let fields = entry.fields.unwrap_or_default();
        Some(Self {
            id: entry.id?,
            signal: entry.signal.unwrap_or_default(),
            question: message_of(&fields).to_owned(),
            end: End::find(&entry.outcome)?,
            text: entry.decision.or(entry.reason).unwrap_or_default(),
            by: entry.by.unwrap_or_default(),
            at: entry.time,
            is_blocking: is_blocking(&fields),
        })
    }
}

/// Returns whether the sender of a request waits for its answer. A request without the field blocks.
#[must_use]
pub fn is_blocking(fields: &Map<String, Value>) -> bool {
    fields.get("blocking").and_then(Value::as_bool) != Some(false)
}

impl SignalStore<'_> {
    /// Returns the results of requests that the agent has not received yet, oldest first.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn unreceived_answers(&self) -> Result<Vec<RequestAnswer>, DocumentError> {
        Ok(self.ledger()?.answers.iter().filter_map(RequestAnswer::of).collect())
    }

    /// Removes results that the agent received, by the ids of their requests.
    ///
    /// # Errors
    /// The lock was not free, or the ledger could not be written.
    pub fn remove_answers(&self, ids: &[&str], now: Timestamp) -> Result<(), WorldError> {
        let mut open = self.open(now)?;
        let is_received =
            |it: &Value| it.get("id").and_then(Value::as_str).is_some_and(|it| ids.contains(&it));
        open.ledger.answers.retain(|it| !is_received(it));
        self.save(&open.ledger)
    }
}
