//! Claude Code's hook protocol, measured on 2.1.329: event JSON on stdin, at most one JSON object
//! on stdout, exit 0. Whatever is wrong with the input, the answer is valid.
//!
//! A stop is continued with `{"decision":"block","reason":…}`; the key `reason` must be a text that
//! is not empty. Silence is "no opinion": `approve` or `allow` are never said. `systemMessage`
//! reaches the user. `hookSpecificOutput.additionalContext` at a stop would make the model go on,
//! so advice goes to the user or into the reason of a block.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::facts::event::{BackgroundTask, Event, EventKind, FailedCall};
use crate::facts::fold::cut_front;
use crate::id::SessionId;
use crate::limits;

/// What is wrong with a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadError {
    /// Nothing came on stdin.
    Empty,
    /// It is longer than the bound.
    TooLong,
    /// It is not JSON; the text says where.
    NotJson(String),
    /// It is JSON, but not an object.
    NotAnObject,
}

impl std::fmt::Display for PayloadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("the hook payload on stdin is empty"),
            Self::TooLong => {
                write!(f, "the hook payload is longer than {} bytes", limits::STDIN_BYTES_MAX)
            }
            Self::NotJson(why) => write!(f, "the hook payload is not JSON: {why}"),
            Self::NotAnObject => f.write_str("the hook payload is not a JSON object"),
        }
    }
}

/// Reads a payload. `kind` is what the command line named; it wins over the payload's own name.
///
/// # Errors
/// The payload as a whole; a field of a wrong type counts as absent.
pub fn parse(bytes: &[u8], kind: EventKind) -> Result<Event, PayloadError> {
    if bytes.len() > limits::STDIN_BYTES_MAX {
        return Err(PayloadError::TooLong);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(PayloadError::Empty);
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| PayloadError::NotJson(error.to_string()))?;
    let Value::Object(fields) = value else { return Err(PayloadError::NotAnObject) };
    Ok(event(fields, kind))
}

fn event(mut fields: Map<String, Value>, kind: EventKind) -> Event {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let filled = |key: &str| text(key).filter(|it| !it.is_empty());
    // Ids are keys of the state: no payload makes them as long as it likes.
    let id = |key: &str| filled(key).map(|it| it.chars().take(limits::NAME_TEXT_MAX).collect());
    let bounded = |key: &str| {
        let all = text(key).unwrap_or_default();
        cut_front(&all, limits::FAILURE_TEXT_BYTES_MAX).to_owned()
    };
    let flag = |key: &str| fields.get(key).and_then(Value::as_bool);
    let session = filled("session_id");
    // A subagent's own transcript tells what it did.
    let own = filled("agent_transcript_path").filter(|_| kind.name() == "subagent_stop");
    let background = fields.get("background_tasks").and_then(Value::as_array);
    Event {
        kind,
        session_id: SessionId::sanitise(session.as_deref().unwrap_or_default()),
        session_known: session.is_some(),
        said_kind: filled("hook_event_name").and_then(|it| EventKind::find(&it)),
        agent_id: id("agent_id"),
        agent_type: text("agent_type"),
        prompt_id: id("prompt_id"),
        subagent_transcript: own.is_some(),
        transcript: own.or_else(|| filled("transcript_path")).map(PathBuf::from),
        folder: filled("cwd").map(PathBuf::from),
        permission_mode: filled("permission_mode"),
        stop_active: flag("stop_hook_active").or_else(|| flag("stopHookActive")).unwrap_or(false),
        last_message: text("last_assistant_message")
            .map(|it| cut_front(&it, limits::LAST_MESSAGE_BYTES_MAX).to_owned()),
        background: background.map(|all| all.iter().map(task).collect()).unwrap_or_default(),
        tool_name: filled("tool_name"),
        prompt: text("prompt"),
        failed: kind.name().ends_with("_failure").then(|| FailedCall {
            error: bounded("error"),
            details: bounded("error_details"),
            interrupted: flag("is_interrupt").unwrap_or(false),
        }),
        source: filled("source"),
        tool_input: fields.remove("tool_input").unwrap_or(Value::Null),
    }
}

fn task(value: &Value) -> BackgroundTask {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    BackgroundTask {
        id: text("id"),
        kind: text("type"),
        status: text("status"),
        description: text("description"),
    }
}

/// What is said to Claude Code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The agent goes on, and is told this.
    pub block: Option<String>,
    /// The user is told this.
    pub notice: Option<String>,
    /// The agent is told this beside what it does; for events that take it.
    pub context: Option<Context>,
}

/// What the agent is told beside what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The event it is an answer to.
    pub event: EventKind,
    /// The text.
    pub text: String,
}

impl Context {
    /// Whether the client hands it to the agent at this event: at others it would be lost, or keep
    /// the agent going.
    #[must_use]
    pub fn is_heard(event: EventKind) -> bool {
        matches!(
            event.name(),
            "session_start" | "user_prompt_submit" | "post_tool_use" | "post_tool_use_failure"
        )
    }
}

/// The bytes for stdout: one JSON object, or nothing where there is nothing to say.
#[must_use]
pub fn render(answer: &Answer) -> String {
    let mut fields = Map::new();
    if let Some(reason) = &answer.block {
        let reason = if reason.trim().is_empty() { "policyd: not done yet" } else { reason };
        fields.insert("decision".to_owned(), "block".into());
        fields.insert("reason".to_owned(), reason.into());
    }
    if let Some(notice) = answer.notice.as_ref().filter(|it| !it.trim().is_empty()) {
        fields.insert("systemMessage".to_owned(), notice.as_str().into());
    }
    if let Some(context) = answer.context.as_ref().filter(|it| Context::is_heard(it.event)) {
        let output = serde_json::json!({"hookEventName": context.event.client_name(),
            "additionalContext": context.text});
        fields.insert("hookSpecificOutput".to_owned(), output);
    }
    if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop() -> EventKind {
        EventKind::find("stop").unwrap()
    }

    #[test]
    fn a_stop_payload_is_read() {
        let payload = r#"{"session_id":"s-1","transcript_path":"/t.jsonl","cwd":"/w","prompt_id":"p",
            "permission_mode":"default","stop_hook_active":true,"last_assistant_message":"Done.",
            "background_tasks":[{"id":"b","status":"running"}],"session_crons":[],"new_field":{}}"#;
        let event = parse(payload.as_bytes(), stop()).unwrap();
        assert_eq!(event.session_id.as_str(), "s-1");
        assert!(event.stop_active);
        assert_eq!(event.last_message.as_deref(), Some("Done."));
        assert_eq!(event.running_in_background(), 1);
    }

    #[test]
    fn fields_of_wrong_types_count_as_absent() {
        let payload = br#"{"session_id":5,"transcript_path":null,"stop_hook_active":"yes","background_tasks":{}}"#;
        let event = parse(payload, stop()).unwrap();
        assert!(!event.session_known);
        assert_eq!(event.transcript, None);
        assert!(!event.stop_active);
    }

    #[test]
    fn ids_and_the_last_message_have_a_bound() {
        let long = "x".repeat(300 * 1024);
        let payload = format!(
            r#"{{"agent_id":"{long}","prompt_id":"{long}","last_assistant_message":"{long}end"}}"#
        );
        let event = parse(payload.as_bytes(), stop()).unwrap();
        assert_eq!(event.agent_id.unwrap().len(), limits::NAME_TEXT_MAX);
        assert_eq!(event.prompt_id.unwrap().len(), limits::NAME_TEXT_MAX);
        let message = event.last_message.unwrap();
        assert_eq!(message.len(), limits::LAST_MESSAGE_BYTES_MAX);
        assert!(message.ends_with("end"));
    }

    #[test]
    fn bad_payloads_are_named() {
        assert_eq!(parse(b" \n", stop()), Err(PayloadError::Empty));
        assert_eq!(parse(b"[1]", stop()), Err(PayloadError::NotAnObject));
        assert!(matches!(parse(b"{", stop()), Err(PayloadError::NotJson(_))));
        let deep = "[".repeat(100_000);
        assert!(matches!(parse(deep.as_bytes(), stop()), Err(PayloadError::NotJson(_))));
    }

    #[test]
    fn nothing_to_say_is_silence() {
        assert_eq!(render(&Answer::default()), "");
        let answer = Answer { block: Some("tests fail".into()), ..Answer::default() };
        assert_eq!(render(&answer), r#"{"decision":"block","reason":"tests fail"}"#);
        let empty = Answer { block: Some(String::new()), ..Answer::default() };
        assert!(render(&empty).contains("not done yet"), "an empty reason would not block");
    }
}
