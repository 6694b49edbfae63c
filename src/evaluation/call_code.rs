//! Identity of a tool call: its digest, and the short code by which the user names it.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use policyd_facts::event::Event;
use policyd_yaml::checksum::hex;

/// Crockford's base 32: without letters that look like digits.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Digits of a code, 5 bits each.
const CODE_DIGITS: usize = 8;

/// Returns the SHA-256 of a tool call in hexadecimal digits: over its session, its directory, its tool, and its whole
/// input, and over the texts of the files that made guards fire. `None` if the event has no tool.
#[must_use]
pub fn digest(event: &Event, folder: &str, scripts: &[&str]) -> Option<String> {
    let tool = event.tool_name.as_deref()?;
    let input = canonical(&event.tool_input);
    let mut hash = Sha256::new();
    let parts = [event.session_id.as_str(), folder, tool, &input];
    for part in parts.iter().chain(scripts) {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    Some(hex(&hash.finalize()))
}

/// Returns the code of a digest. Empty if the text is not a digest.
#[must_use]
pub fn code(digest: &str) -> String {
    let head = digest.get(..CODE_DIGITS * 5 / 4).unwrap_or_default();
    let Ok(bits) = u64::from_str_radix(head, 16) else { return String::new() };
    let digit = |at: usize| {
        let value = usize::try_from(bits >> (5 * at) & 31).unwrap_or_default();
        char::from(DIGITS.get(value).copied().unwrap_or(b'0'))
    };
    (0..CODE_DIGITS).rev().map(digit).collect()
}

/// Returns a code as it was printed, from what the user typed.
#[must_use]
pub fn normalized(typed: &str) -> String {
    let digit = |c: char| match c.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    };
    typed.chars().filter(|it| *it != '-').map(digit).collect()
}

/// JSON with sorted keys and without spaces.
fn canonical(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(",");
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let field = |(key, it): (&String, &Value)| {
                format!("{}:{}", Value::from(key.as_str()), canonical(it))
            };
            format!("{{{}}}", joined(sorted.into_iter().map(field).collect()))
        }
        Value::Array(items) => format!("[{}]", joined(items.iter().map(canonical).collect())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_base::id::SessionId;
    use policyd_facts::event::EventKind;
    use serde_json::json;

    fn call(session: &str, folder: &str, tool: &str, input: Value) -> String {
        let event = Event {
            tool_name: Some(tool.to_owned()),
            tool_input: input,
            ..Event::of(EventKind::PreToolUse, SessionId::parse(session).unwrap())
        };
        digest(&event, folder, &[]).unwrap()
    }

    #[test]
    fn an_allowed_call_runs_the_file_as_it_is() {
        let event = Event {
            tool_name: Some("Bash".to_owned()),
            tool_input: json!({"command": "bash x.sh"}),
            ..Event::of(EventKind::PreToolUse, SessionId::parse("s").unwrap())
        };
        let of = |text: &str| digest(&event, "/w", &[text]);
        assert_eq!(of("rm -rf a"), of("rm -rf a"));
        assert_ne!(of("rm -rf a"), of("rm -rf b"));
    }

    #[test]
    fn each_part_of_a_call_changes_its_digest_and_the_order_of_keys_does_not() {
        let one = call("s", "/w", "Bash", json!({"command": "ls", "timeout": 1}));
        assert_eq!(one, call("s", "/w", "Bash", json!({"timeout": 1, "command": "ls"})));
        for other in [
            call("t", "/w", "Bash", json!({"command": "ls", "timeout": 1})),
            call("s", "/wB", "ash", json!({"command": "ls", "timeout": 1})),
            call("s", "/w", "bash", json!({"command": "ls", "timeout": 1})),
            call("s", "/w", "Bash", json!({"command": "ls", "timeout": "1"})),
            call("s", "/w", "Bash", json!({"command": "ls "})),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_code_has_eight_digits_and_is_read_as_it_is_typed() {
        assert_eq!(code(&"f".repeat(64)), "ZZZZZZZZ");
        assert_eq!(code(&format!("0000000001{}", "0".repeat(54))), "00000001");
        assert_eq!(code("x"), "");
        assert_eq!(normalized("k7q2-m4xo"), "K7Q2M4X0");
    }
}
