//! A breaker as a record of `state/circuit-breakers.json`: the keys of loki-mode, and a few more.
//!
//! A record that has only loki-mode's keys is read as if all its failures had happened at `last_failure_time`.
//! Reading is tolerant: a value of another type counts as absent. Foreign keys and the order of keys are kept.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use policyd_base::limits::{BREAKER_CALLS_MAX, EVIDENCE_CHARS_MAX};
use policyd_state::breaker::{
    self, Breaker, BreakerEvent, BreakerPhase, BreakerResponse, BreakerSettings, CallOutcome,
    CountedCall,
};
use policyd_state::stored::{count, fields, is_default, items, or_default};
use policyd_yaml::time::Timestamp;

/// Key of the reason why a user forced a breaker open.
pub(super) const FORCED: &str = "forced";

/// Keys that are absent if their value is empty.
const OPTIONAL: [&str; 11] = [
    "cooldown_until",
    "failure_window_start",
    "last_probe_time",
    "success_times",
    "slow_times",
    "generation",
    "openings",
    "open_until",
    "recovered_at",
    FORCED,
    "needs_human",
];

/// `state/circuit-breakers.json`: breakers by name.
pub type BreakerFile = BTreeMap<String, BreakerRecord>;

/// State of one breaker.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["state", "failure_count"]))]
pub struct BreakerRecord {
    /// State.
    #[serde(deserialize_with = "or_default")]
    state: BreakerPhase,
    /// Failures within the window.
    #[serde(deserialize_with = "count")]
    failure_count: u32,
    /// Consecutive successes while half open.
    #[serde(deserialize_with = "count")]
    success_count: u32,
    /// Last failure.
    #[serde(deserialize_with = "or_default", serialize_with = "down_to_seconds")]
    last_failure_time: Option<Timestamp>,
    /// Last change of the state.
    #[serde(deserialize_with = "or_default", serialize_with = "down_to_seconds")]
    last_state_change: Option<Timestamp>,
    /// End of the open state.
    #[serde(
        deserialize_with = "or_default",
        serialize_with = "up_to_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    cooldown_until: Option<Timestamp>,
    /// Oldest failure within the window.
    #[serde(
        deserialize_with = "or_default",
        serialize_with = "down_to_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    failure_window_start: Option<Timestamp>,
    /// Failures within the window.
    #[serde(deserialize_with = "times")]
    failure_times: Option<Vec<Timestamp>>,
    /// Last trial call while half open.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    last_probe_time: Option<Timestamp>,
    /// Message of the last failure.
    #[serde(deserialize_with = "or_default")]
    last_error: String,
    /// Successes within the window.
    #[serde(deserialize_with = "items", skip_serializing_if = "Vec::is_empty")]
    success_times: Vec<Timestamp>,
    /// Slow successes within the window.
    #[serde(deserialize_with = "items", skip_serializing_if = "Vec::is_empty")]
    slow_times: Vec<Timestamp>,
    /// Number of changes of the state.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    generation: u64,
    /// Number of times it opened since it last stayed closed.
    #[serde(deserialize_with = "count", skip_serializing_if = "is_default")]
    openings: u32,
    /// End of the delay that the server requested.
    #[serde(
        deserialize_with = "or_default",
        serialize_with = "up_to_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    open_until: Option<Timestamp>,
    /// When it closed after it was open.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    recovered_at: Option<Timestamp>,
    /// Why a user forced it open; absent if no user did.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    forced: Option<String>,
    /// Whether the last failures need a human to fix their cause.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    needs_human: bool,
}

/// Returns the record of one breaker in a file, and the version of the format; `None` if the file is damaged.
pub(super) fn one(bytes: &[u8], key: &str) -> Option<(Option<Value>, Option<u64>)> {
    let mut file = serde_json::Deserializer::from_slice(bytes);
    let found = serde::Deserializer::deserialize_map(&mut file, One { key }).ok()?;
    file.end().ok().map(|()| found)
}

/// Finds one key of a map and skips the values of the others.
struct One<'k> {
    key: &'k str,
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = (Option<Value>, Option<u64>);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("breakers by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut found, mut version) = (None, None);
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key == self.key {
                found = Some(map.next_value()?);
            } else if key == "version" {
                version = map.next_value::<Value>()?.as_u64();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok((found, version))
    }
}

/// Returns the breaker of a record that has a known state.
pub(super) fn known_breaker(record: &Value) -> Option<Breaker> {
    BreakerPhase::deserialize(record.get("state")?).is_ok().then(|| breaker_of(record))
}

/// Returns the breaker of a record.
pub(super) fn breaker_of(record: &Value) -> Breaker {
    let record = BreakerRecord::deserialize(record).unwrap_or_default();
    Breaker {
        phase: record.state,
        generation: record.generation,
        calls: calls_of(&record),
        successes: record.success_count,
        last_failure: record.last_failure_time,
        last_error: record.last_error,
        last_change: record.last_state_change,
        cooldown_until: record.cooldown_until,
        open_until: record.open_until,
        last_probe: record.last_probe_time,
        openings: record.openings,
        recovered_at: record.recovered_at,
        // A closed breaker is not forced open.
        forced: record.forced.filter(|_| record.state == BreakerPhase::Open),
        needs_human: record.needs_human,
    }
}

/// Returns the breaker after an event, its record, and the response. Without a record, nothing changed.
#[must_use]
pub fn step(
    known: Option<&Value>,
    event: BreakerEvent<'_>,
    settings: &BreakerSettings,
    now: Timestamp,
) -> (Breaker, Option<Value>, BreakerResponse) {
    let before = known.map(breaker_of).unwrap_or_default();
    let (mut next, response) = breaker::step(&before, event, settings, now);
    if next == before {
        return (next, None, response);
    }
    next.last_change = next.last_change.or(Some(now));
    let record = record_of(&next, known);
    (next, Some(record), response)
}

/// Returns a record with times of another clock, which is that far ahead.
pub(super) fn moved(record: &Value, ahead_ms: i64) -> Value {
    if ahead_ms == 0 {
        return record.clone();
    }
    let mut breaker = breaker_of(record);
    let moved = |at: Timestamp| Timestamp::from_millis(at.millis().saturating_sub(ahead_ms));
    for at in [
        &mut breaker.last_failure,
        &mut breaker.last_change,
        &mut breaker.cooldown_until,
        &mut breaker.open_until,
        &mut breaker.last_probe,
        &mut breaker.recovered_at,
    ] {
        *at = at.map(moved);
    }
    breaker.calls.iter_mut().for_each(|it| it.at = moved(it.at));
    record_of(&breaker, Some(record))
}

/// Returns the calls within the window, oldest first.
fn calls_of(record: &BreakerRecord) -> Vec<CountedCall> {
    let failures = record.failure_times.clone().unwrap_or_else(|| {
        let count = usize::try_from(record.failure_count).unwrap_or(usize::MAX);
        let count = count.min(BREAKER_CALLS_MAX);
        record.last_failure_time.map(|at| vec![at; count]).unwrap_or_default()
    });
    let mut calls = Vec::new();
    for (outcome, times) in [
        (CallOutcome::Failed, &failures),
        (CallOutcome::Slow, &record.slow_times),
        (CallOutcome::Worked, &record.success_times),
    ] {
        calls.extend(times.iter().map(|at| CountedCall { at: *at, outcome }));
    }
    calls.sort_by_key(|call| call.at);
    let surplus = calls.len().saturating_sub(BREAKER_CALLS_MAX);
    calls.drain(..surplus);
    calls
}

/// Returns the record of a breaker, written over the `known` one.
pub(super) fn record_of(breaker: &Breaker, known: Option<&Value>) -> Value {
    let failures: Vec<Timestamp> = breaker.failures().collect();
    let record = BreakerRecord {
        state: breaker.phase,
        failure_count: u32::try_from(failures.len()).unwrap_or(u32::MAX),
        success_count: breaker.successes,
        last_failure_time: breaker.last_failure,
        last_state_change: breaker.last_change,
        cooldown_until: breaker.cooldown_until,
        failure_window_start: failures.first().copied(),
        failure_times: Some(failures),
        last_probe_time: breaker.last_probe,
        last_error: one_line(&breaker.last_error),
        success_times: breaker.of(CallOutcome::Worked).collect(),
        slow_times: breaker.of(CallOutcome::Slow).collect(),
        generation: breaker.generation,
        openings: breaker.openings,
        open_until: breaker.open_until,
        recovered_at: breaker.recovered_at,
        forced: breaker.forced.as_deref().map(one_line),
        needs_human: breaker.needs_human,
    };
    let mut all = known.and_then(Value::as_object).cloned().unwrap_or_default();
    for key in OPTIONAL {
        all.shift_remove(key);
    }
    all.extend(fields(&record));
    Value::Object(all)
}

/// Returns a foreign text as one short line.
fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(EVIDENCE_CHARS_MAX).collect()
}

/// Reads a list of times; `None` if the value is not a list.
fn times<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Timestamp>>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if value.is_array() {
        items(value).map(Some).map_err(serde::de::Error::custom)
    } else {
        Ok(None)
    }
}

/// Writes a time without a fraction: recipes of loki-mode read it with `jq`.
pub(super) fn whole_seconds(at: Timestamp) -> String {
    let whole = Timestamp::from_millis(at.millis().div_euclid(1000).saturating_mul(1000));
    whole.to_string().replace(".000Z", "Z")
}

fn down_to_seconds<S: Serializer>(
    at: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    at.map(whole_seconds).serialize(serializer)
}

/// Rounds up, so that a delay is never shorter than requested.
fn up_to_seconds<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    down_to_seconds(&at.map(|at| at.plus(Duration::from_millis(999))), serializer)
}
