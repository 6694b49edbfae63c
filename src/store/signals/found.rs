//! One file of the directory of signals as a signal. Reading is tolerant, because users and agents write these
//! files: an empty file is a signal without fields, and text that is not JSON is kept as text.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use policyd_base::limits::{EVIDENCE_CHARS_MAX, SIGNAL_FILE_BYTES_MAX};
use policyd_policy::records::SEVERITIES;
use policyd_policy::signals::{SignalKind, SignalStorage};
use policyd_state::signal::{Signal, SignalPhase};
use policyd_state::stored::fields;
use policyd_world::{FileKind, FileStat};
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::time::Timestamp;

/// Digits of an id.
const ID_DIGITS: usize = 12;

/// Age below which another process might still be writing a file.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Keys of a signal's file that are not what it says.
const OWN_KEYS: [&str; 6] = ["id", "signal", "sender", "expires", "request", "timestamp"];

/// A pending or claimed signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSignal {
    /// Id of the signal; derived from the file if policyd did not write it.
    pub id: String,
    /// Name of the signal.
    pub name: String,
    /// Sender. Can be empty.
    pub sender: String,
    /// Id of the request that it answers; may be empty.
    pub request: String,
    /// Fields of the signal.
    pub fields: Map<String, Value>,
    /// Where it stands.
    pub signal: Signal,
    /// Problem of the file that does not make it unusable. Can be empty.
    pub note: String,
    /// Whether the file was not written by this program.
    pub foreign: bool,
    /// The name of its file.
    pub file: String,
}

/// `signals/<name>`. Other programs write these files, too, with any of these keys.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("required" = []))]
pub(crate) struct SignalFile<'a> {
    /// When the signal was created.
    timestamp: Timestamp,
    /// Fields of the signal.
    #[serde(flatten)]
    #[schemars(with = "SignalFields")]
    fields: &'a Map<String, Value>,
    /// Name of the signal.
    signal: &'a str,
    /// Id of the signal; a signal without one is named after its file.
    id: &'a str,
    /// Sender of the signal.
    #[serde(skip_serializing_if = "str::is_empty")]
    sender: &'a str,
    /// Id of the request that the signal answers.
    #[serde(skip_serializing_if = "str::is_empty")]
    request: &'a str,
    /// When the signal expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

/// Fields of the built-in signals; a pack can define others.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "a signal has any fields; the schema describes these")]
struct SignalFields {
    /// Why the signal was created.
    reason: Option<String>,
    /// Task that the signal is about.
    task_id: Option<String>,
    /// Context for the human.
    context: Option<String>,
    /// Severity.
    #[schemars(extend("enum" = SEVERITIES))]
    severity: Option<String>,
    /// Agent that sent the signal.
    agent: Option<String>,
    /// Whether the task waits for the answer.
    blocking: Option<bool>,
    /// Alternatives that the agent considered.
    alternatives_considered: Option<Vec<String>>,
    /// Decision of the human.
    decision: Option<String>,
    /// A plan, or its location.
    plan: Option<String>,
    /// Planned action.
    planned_action: Option<String>,
    /// Action that deviates from the plan.
    detected_drift: Option<String>,
    /// Goal of the task.
    original_goal: Option<String>,
    /// Number of steps off the plan.
    #[schemars(range(min = 0.0, max = 1e6))]
    drift_distance: Option<f64>,
}

/// Classification of a file in the signal directory.
pub(super) enum SignalFileState {
    /// A signal.
    Signal(Box<StoredSignal>),
    /// Nothing that can be used, and why.
    Unusable(&'static str),
    /// Another process might still be writing it.
    Unsettled,
}

/// One file as the machine shows it.
pub(super) struct SignalFileBytes<'f> {
    pub(super) name: &'f str,
    pub(super) stat: FileStat,
    pub(super) bytes: &'f [u8],
}

impl StoredSignal {
    /// Returns the text of a field; empty if the field is absent.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns what the signal says; empty if it has fields of other names only.
    #[must_use]
    pub fn message(&self) -> &str {
        message_of(&self.fields)
    }

    /// Returns the content of the file.
    pub(super) fn to_json(&self) -> Value {
        Value::Object(fields(&SignalFile {
            timestamp: self.signal.created,
            fields: &self.fields,
            signal: &self.name,
            id: &self.id,
            sender: &self.sender,
            request: &self.request,
            expires: self.signal.expires,
        }))
    }

    /// Returns the machine-readable form for `policyd signal list --format json`.
    #[must_use]
    pub fn shown(&self) -> Value {
        let (state, by, until) = match &self.signal.phase {
            SignalPhase::Pending => ("pending", None, None),
            SignalPhase::Claimed { by, until } => ("claimed", Some(by), Some(until.to_string())),
            SignalPhase::Ended(end) => (end.as_str(), None, None),
        };
        json!({
            "id": self.id, "signal": self.name, "state": state, "claimed_by": by,
            "claimed_until": until, "sender": self.sender, "request": self.request,
            "created": self.signal.created.to_string(),
            "answer_by": self.signal.answer_by.map(|it| it.to_string()),
            "expires": self.signal.expires.map(|it| it.to_string()),
            "fields": self.fields, "note": self.note, "file": self.file,
        })
    }

    /// Reads a file; what it says of times that are still to come is not believed.
    pub(super) fn read(
        file: &SignalFileBytes<'_>,
        name: &str,
        kind: &SignalKind,
        now: Timestamp,
    ) -> SignalFileState {
        if file.stat.kind != FileKind::File {
            return SignalFileState::Unusable("it is not a file");
        }
        if file.stat.length > SIGNAL_FILE_BYTES_MAX as u64 {
            return SignalFileState::Unusable("it is too large");
        }
        let text = String::from_utf8_lossy(file.bytes);
        let text = text.trim_start_matches('\u{feff}').trim().trim_matches('\0');
        let (mut body, note) = match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(body)) => (body, ""),
            Ok(value) => (said(&value.to_string()), ""),
            Err(_) if text.is_empty() => (Map::new(), ""),
            Err(_) => (said(text), "its content is not JSON"),
        };
        let odd = !note.is_empty() || (text.is_empty() && kind.form == SignalStorage::Json);
        let age = now.since(file.stat.modified);
        if odd && age < SETTLED_AFTER {
            return SignalFileState::Unsettled;
        }
        if !note.is_empty() && !kind.approves.is_empty() {
            return SignalFileState::Unusable(
                "it should approve something, and its content is not JSON",
            );
        }
        let note = if kind.form == SignalStorage::Presence { "" } else { note };
        let take = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
        let time = |key: &str| take(key).and_then(|it| Timestamp::parse(&it));
        let own =
            take("id").filter(|it| is_id(it)).filter(|_| take("signal").as_deref() == Some(name));
        let created = time("timestamp").filter(|it| *it <= now).unwrap_or(file.stat.modified);
        let expires = time("expires").or_else(|| kind.expires.map(|it| created.plus(it)));
        let (sender, request) = (take("sender").or_else(|| take("agent")), take("request"));
        let foreign = own.is_none();
        body.retain(|key, _| !OWN_KEYS.contains(&key.as_str()) || (foreign && key == "id"));
        SignalFileState::Signal(Box::new(Self {
            id: own.unwrap_or_else(|| id_of_file(file)),
            name: name.to_owned(),
            sender: sender.unwrap_or_default(),
            request: request.unwrap_or_default(),
            fields: body,
            signal: Signal {
                phase: SignalPhase::Pending,
                created,
                expires,
                answer_by: kind.answer_within.map(|it| created.plus(it)),
                late_since: None,
            },
            note: note.to_owned(),
            foreign,
            file: file.name.to_owned(),
        }))
    }
}

/// Returns what the fields of a signal say; empty if they have other names.
pub(in super::super) fn message_of(fields: &Map<String, Value>) -> &str {
    let names = ["text", "reason", "message", "input", "plan", "decision"];
    let text = |it: &&str| fields.get(*it).and_then(Value::as_str).unwrap_or_default();
    names.iter().map(text).find(|it| !it.is_empty()).unwrap_or_default()
}

/// Returns the beginning of a text that is not a JSON object, as a field.
fn said(text: &str) -> Map<String, Value> {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.take(EVIDENCE_CHARS_MAX).collect();
    let mut body = Map::new();
    body.insert("text".to_owned(), plain.into());
    body
}

/// Returns the id of a foreign file: a changed file has another id.
fn id_of_file(file: &SignalFileBytes<'_>) -> String {
    let modified = file.stat.modified.millis().to_le_bytes();
    let identity = file.stat.identity.to_le_bytes();
    id_of(&[file.name.as_bytes(), &modified, &identity, file.bytes])
}

/// An id made of what tells a signal from others.
pub(super) fn id_of(parts: &[&[u8]]) -> String {
    let mut digits = hex(&checksum(parts));
    digits.truncate(ID_DIGITS);
    digits
}

pub(super) fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}
