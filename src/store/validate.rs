//! amplihack's validation of a state file. Does not contain: recovery, files.

use std::fmt;

use serde_json::{Map, Value};

use policyd_base::limits::COUNTER_MAX;

/// Why a state file is not a state. The first six are those of amplihack's `_validate_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corruption {
    /// JSON, but not an object.
    StateNotDict,
    /// No `consecutive_blocks`, or it is null.
    MissingCounter,
    /// `consecutive_blocks` is not an integer; true, 4.5 and "5" are not.
    CounterNotInt,
    /// `consecutive_blocks` is below 0.
    NegativeCounter,
    /// `consecutive_blocks` is above 1000.
    CounterTooLarge,
    /// `session_id` is missing, empty or not text.
    InvalidSessionId,
    /// Not JSON: torn, edited badly.
    InvalidJson,
    /// Not text.
    InvalidUtf8,
    /// Larger than a state file can be.
    TooLarge,
    /// A pipe, a folder, a device.
    NotAFile,
    /// The machine did not let us read it.
    Unreadable,
}

impl Corruption {
    /// The reason as the logs carry it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StateNotDict => "state_not_dict",
            Self::MissingCounter => "missing_counter",
            Self::CounterNotInt => "counter_not_int",
            Self::NegativeCounter => "negative_counter",
            Self::CounterTooLarge => "counter_too_large",
            Self::InvalidSessionId => "invalid_session_id",
            Self::InvalidJson => "invalid_json",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::TooLarge => "too_large",
            Self::NotAFile => "not_a_file",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Validates a state as amplihack does, and the counters of subagents.
///
/// # Errors
/// The first thing that is wrong, in the seed's order.
pub fn validate_state(state: &Value) -> Result<&Map<String, Value>, Corruption> {
    let state = state.as_object().ok_or(Corruption::StateNotDict)?;
    validate_counter(state)?;
    match state.get("session_id") {
        Some(Value::String(id)) if !id.is_empty() => {}
        Some(_) | None => return Err(Corruption::InvalidSessionId),
    }
    for agent in state.get("agents").and_then(Value::as_object).into_iter().flat_map(Map::values) {
        validate_counter(agent.as_object().ok_or(Corruption::StateNotDict)?)?;
    }
    Ok(state)
}

fn validate_counter(guard: &Map<String, Value>) -> Result<(), Corruption> {
    match guard.get("consecutive_blocks") {
        None | Some(Value::Null) => Err(Corruption::MissingCounter),
        Some(Value::Number(number)) if number.is_u64() || number.is_i64() => {
            match number.as_i64() {
                Some(..0) => Err(Corruption::NegativeCounter),
                Some(0..=COUNTER_MAX) => Ok(()),
                Some(_) | None => Err(Corruption::CounterTooLarge),
            }
        }
        Some(_) => Err(Corruption::CounterNotInt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_reason_of_the_seed() {
        let with = |counter: Value| json!({"consecutive_blocks": counter, "session_id": "s"});
        let cases = [
            (json!([]), "state_not_dict"),
            (json!(null), "state_not_dict"),
            (json!({"session_id": "s"}), "missing_counter"),
            (with(Value::Null), "missing_counter"),
            (with(json!("5")), "counter_not_int"),
            (with(json!(4.5)), "counter_not_int"),
            (with(json!(5.0)), "counter_not_int"),
            (with(json!(true)), "counter_not_int"),
            (with(json!(-1)), "negative_counter"),
            (with(json!(1001)), "counter_too_large"),
            (with(json!(u64::MAX)), "counter_too_large"),
            (json!({"consecutive_blocks": 0}), "invalid_session_id"),
            (json!({"consecutive_blocks": 0, "session_id": ""}), "invalid_session_id"),
            (json!({"consecutive_blocks": 0, "session_id": 7}), "invalid_session_id"),
            (
                json!({"consecutive_blocks": 0, "session_id": "s",
                    "agents": {"a": {"consecutive_blocks": -4}}}),
                "negative_counter",
            ),
        ];
        for (state, reason) in cases {
            let found = validate_state(&state).map(|_| "").unwrap_or_else(Corruption::as_str);
            assert_eq!(found, reason, "{state}");
        }
        for counter in [0, 1, 1000] {
            assert!(validate_state(&with(json!(counter))).is_ok());
        }
    }
}
