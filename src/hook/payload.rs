//! Parses payloads of clients: detects the client, and converts the payload to a neutral event. A
//! field of a wrong type counts as absent.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Caller;
use policyd_base::id::SessionId;
use policyd_base::limits;
use policyd_base::text::cut_front;
use policyd_facts::event::{BackgroundTask, ContinuedConversation, Event, EventKind, FailedCall};
use policyd_facts::record::repaired;
use policyd_harness::{self as harness, Harness, claude_code};

/// Reason why a payload is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadError {
    /// Standard input was empty.
    Empty,
    /// The payload exceeds the size limit.
    TooLong,
    /// The payload is not JSON. Contains the error of the parser.
    NotJson(String),
    /// The payload is JSON, but not an object.
    NotAnObject,
    /// The payload was not complete in time.
    Late,
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
            Self::Late => {
                let seconds = limits::STDIN_WAIT_MAX.as_secs();
                write!(f, "the hook payload on stdin was not complete after {seconds} seconds")
            }
        }
    }
}

impl std::error::Error for PayloadError {}

/// Expectations of a payload from the command line and the environment.
pub struct PayloadExpectation<'a> {
    /// Event, by its native or neutral name. Overrides the payload's own name.
    pub hook: &'a str,
    /// Client. Overrides the detected client.
    pub harness: Option<&'static Harness>,
    /// Returns whether an environment variable is set.
    pub is_set: &'a dyn Fn(&str) -> bool,
}

/// Returns the caller as far as the command line and the environment tell it, for a payload that cannot be read.
#[must_use]
pub fn unread_caller(expected: &PayloadExpectation<'_>) -> Caller {
    let harness = expected.harness.unwrap_or_else(|| harness::detect(&Map::new(), expected.is_set));
    Caller::at(harness, expected.hook)
}

/// Parses the payload of any client. The event is `None` if the client's event has no neutral kind;
/// the response is then empty.
///
/// # Errors
/// [`PayloadError`] for an invalid payload.
pub fn read(
    bytes: &[u8],
    expected: &PayloadExpectation<'_>,
) -> Result<(Option<Event>, Caller), PayloadError> {
    let mut fields = fields(bytes)?;
    let detected = || harness::detect(&fields, expected.is_set);
    let harness = expected.harness.unwrap_or_else(detected);
    let mut caller = Caller::at(harness, expected.hook);
    let kind = match caller.moment {
        Some(moment) => {
            let judged = (harness.neutral)(moment, &mut fields);
            neutral_tool(harness, &mut fields);
            moment.kind.filter(|_| judged)
        }
        None => EventKind::find(expected.hook),
    };
    let event = kind.map(|it| event(harness, fields, it));
    let said = event.as_ref().and_then(|it| it.said_kind.filter(|said| *said != it.kind));
    // A tool call is answered as one, also if the hook line names another event.
    if let Some(said) = said.filter(|it| it.is_before_call()) {
        caller.moment = harness.moment_of(said);
    }
    Ok((event, caller))
}

/// Finds the end of the JSON object or array that standard input begins with, over several parts.
#[derive(Debug, Default)]
pub struct JsonExtent {
    open_brackets: usize,
    in_text: bool,
    is_escaped: bool,
    /// Whether the value is a scalar, so that only the end of the input ends it.
    is_other: bool,
}

impl JsonExtent {
    /// Returns whether the value ends in the next part of the input.
    pub fn ends_in(&mut self, part: &[u8]) -> bool {
        part.iter().any(|byte| !self.is_other && self.ends_at(*byte))
    }

    fn ends_at(&mut self, byte: u8) -> bool {
        if self.in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'{' | b'[' => self.open_brackets += 1,
            b'"' if self.open_brackets > 0 => self.in_text = true,
            b'}' | b']' if self.open_brackets > 0 => {
                self.open_brackets -= 1;
                return self.open_brackets == 0;
            }
            // White space, or the mark of UTF-8.
            _ if self.open_brackets > 0 || byte.is_ascii_whitespace() => {}
            0xef | 0xbb | 0xbf => {}
            _ => self.is_other = true,
        }
        false
    }
}

/// Converts the tool and its input to neutral names.
fn neutral_tool(harness: &Harness, fields: &mut Map<String, Value>) {
    let Some(native) = fields.get("tool_name").and_then(Value::as_str) else { return };
    let tool = harness.tool(native).to_owned();
    if Harness::has_own_inputs(&tool)
        && let Some(Value::Object(input)) = fields.get_mut("tool_input")
    {
        for (native, neutral) in harness.inputs {
            if let Some(value) = input.shift_remove(*native) {
                input.entry(*neutral).or_insert(value);
            }
        }
    }
    fields.insert("tool_name".to_owned(), tool.into());
}

/// Parses a payload in the neutral spelling, which is Claude Code's. A field of a wrong type counts
/// as absent.
///
/// # Errors
/// [`PayloadError`] for an invalid payload.
pub fn parse(bytes: &[u8], kind: EventKind) -> Result<Event, PayloadError> {
    Ok(event(&claude_code::HARNESS, fields(bytes)?, kind))
}

fn fields(bytes: &[u8]) -> Result<Map<String, Value>, PayloadError> {
    if bytes.len() > limits::STDIN_BYTES_MAX {
        return Err(PayloadError::TooLong);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(PayloadError::Empty);
    }
    // Clients write unpaired surrogates if they cut a text inside a character.
    let mended = || serde_json::from_slice(&repaired(text.as_bytes())?).ok();
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => mended().ok_or_else(|| PayloadError::NotJson(error.to_string()))?,
    };
    let Value::Object(fields) = value else { return Err(PayloadError::NotAnObject) };
    Ok(fields)
}

fn event(harness: &Harness, mut fields: Map<String, Value>, kind: EventKind) -> Event {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let filled = |key: &str| text(key).filter(|it| !it.is_empty());
    // Ids are keys of the state, so their length is bounded.
    let id = |key: &str| filled(key).map(|it| it.chars().take(limits::NAME_TEXT_MAX).collect());
    let bounded = |key: &str| {
        let all = text(key).unwrap_or_default();
        cut_front(&all, limits::FAILURE_TEXT_BYTES_MAX).to_owned()
    };
    let flag = |key: &str| fields.get(key).and_then(Value::as_bool);
    let session = filled("session_id");
    // A subagent's own transcript shows its work.
    let own = filled("agent_transcript_path").filter(|_| kind == EventKind::SubagentStop);
    let background = fields.get("background_tasks").and_then(Value::as_array);
    Event {
        kind,
        session_id: SessionId::sanitize(session.as_deref().unwrap_or_default()),
        session_known: session.is_some(),
        said_kind: filled("hook_event_name").and_then(|it| harness.moment(&it)?.kind),
        agent_id: id("agent_id"),
        agent_type: text("agent_type"),
        prompt_id: id("prompt_id"),
        subagent_transcript: own.is_some(),
        transcript: own.or_else(|| filled("transcript_path")).map(PathBuf::from),
        folder: filled("cwd").map(PathBuf::from),
        permission_mode: filled("permission_mode"),
        attended: Some(harness.absence.field).filter(|it| !it.is_empty()).and_then(flag),
        stop_active: flag("stop_hook_active").or_else(|| flag("stopHookActive")).unwrap_or(false),
        last_message: text("last_assistant_message")
            .map(|it| cut_front(&it, limits::LAST_MESSAGE_BYTES_MAX).to_owned()),
        background: background.map(|all| all.iter().map(task).collect()).unwrap_or_default(),
        call_id: id("tool_use_id"),
        transcript_final: false,
        stop_recorded_at: fields.get("stop_recorded_at").and_then(Value::as_u64),
        tool_name: filled("tool_name"),
        prompt: text("prompt"),
        failed: kind.is_failure().then(|| FailedCall {
            error: if kind == EventKind::StopFailure {
                claude_code::error_name(&fields, bounded("error"))
            } else {
                bounded("error")
            },
            details: bounded("error_details"),
            interrupted: flag("is_interrupt").unwrap_or(false),
        }),
        source: filled("source"),
        model: id("model").or_else(|| id("to_model")),
        reason: filled("reason"),
        continued: continued(&fields),
        tool_input: fields.remove("tool_input").unwrap_or(Value::Null),
        tool_response: fields
            .remove("tool_response")
            .filter(|_| kind == EventKind::PostToolUse)
            .unwrap_or(Value::Null),
    }
}

fn continued(fields: &Map<String, Value>) -> ContinuedConversation {
    let count = |key: &str| fields.get(key).and_then(Value::as_u64).unwrap_or_default();
    let cost = fields.get("estimated_cache_write_usd").and_then(Value::as_f64);
    let expired = fields.get("prompt_cache_likely_expired").and_then(Value::as_bool);
    ContinuedConversation {
        context_tokens: count("context_tokens"),
        cache_write_usd: cost.filter(|it| it.is_finite() && *it >= 0.0).unwrap_or_default(),
        seconds_since_last_response: count("seconds_since_last_response"),
        cache_expired: expired.unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stop() -> EventKind {
        EventKind::Stop
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
    fn a_session_that_continues_says_what() {
        let start = EventKind::SessionStart;
        let payload = br#"{"session_id":"s","source":"resume","seconds_since_last_response":1,
            "context_tokens":110,"prompt_cache_likely_expired":false,"estimated_cache_write_usd":0.0006}"#;
        let continued = parse(payload, start).unwrap().continued;
        assert_eq!((continued.context_tokens, continued.seconds_since_last_response), (110, 1));
        assert!(continued.cache_write_usd > 0.0005 && !continued.cache_expired);
        let odd = br#"{"session_id":"s","context_tokens":-1,"estimated_cache_write_usd":"x"}"#;
        assert_eq!(parse(odd, start).unwrap().continued, ContinuedConversation::default());
    }

    #[test]
    fn an_overloaded_provider_is_told_by_its_status() {
        let failure = EventKind::StopFailure;
        let error =
            |payload: &str| parse(payload.as_bytes(), failure).unwrap().failed.unwrap().error;
        let said =
            r#"{"error":"server_error","last_assistant_message":"API Error: 529 Overloaded"}"#;
        assert_eq!(error(said), "overloaded");
        assert_eq!(error(r#"{"error":"server_error","api_error_status":529}"#), "overloaded");
        let other = r#"{"error":"server_error","api_error_status":500,
            "last_assistant_message":"API Error: 529 Overloaded"}"#;
        assert_eq!(error(other), "server_error", "the field wins over the text");
        let plain = r#"{"error":"unknown","last_assistant_message":"API Error: 400 scripted 400"}"#;
        assert_eq!(error(plain), "unknown");
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
    fn the_end_of_a_payload_is_seen_in_any_parts() {
        let whole = "\u{feff} \n{\"a\": [\"}\\\"]{\", {}], \"b\": {\"c\": \"\\\\\"}}".as_bytes();
        for size in 1..=whole.len() {
            let mut extent = JsonExtent::default();
            let ends: Vec<bool> = whole.chunks(size).map(|it| extent.ends_in(it)).collect();
            let (last, before) = ends.split_last().unwrap();
            assert!(*last && !before.contains(&true), "{size}: {ends:?}");
        }
        for part in ["", " ", "{", "{\"}", "1", "\"{}\"", "}{}", "x{}"] {
            assert!(!JsonExtent::default().ends_in(part.as_bytes()), "{part}");
        }
        assert!(JsonExtent::default().ends_in(b"[1] x"));
    }

    #[test]
    fn bad_payloads_are_named() {
        assert_eq!(parse(b" \n", stop()), Err(PayloadError::Empty));
        assert_eq!(parse(b"[1]", stop()), Err(PayloadError::NotAnObject));
        assert!(matches!(parse(b"{", stop()), Err(PayloadError::NotJson(_))));
        let deep = "[".repeat(100_000);
        assert!(matches!(parse(deep.as_bytes(), stop()), Err(PayloadError::NotJson(_))));
    }
}
