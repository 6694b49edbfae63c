//! A breaker as a record of `state/circuit-breakers.json`: the seed's keys, and a few more beside
//! them.
//!
//! `failure_times` (the sliding window), `last_error` and `last_probe_time` are always there; the
//! others only where they say something. A record that has only the seed's keys is read as if its
//! failures had all been at `last_failure_time`. Keys that are not ours are kept.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::limits::{BREAKER_CALLS_MAX, EVIDENCE_CHARS_MAX};
use crate::state::breaker::{Breaker, Counted, Outcome, PHASES, Phase};
use crate::time::Timestamp;

/// Key of the reason why a user forced a breaker open.
pub(super) const FORCED: &str = "forced";

/// Keys that are left out where they say nothing.
const RARE: [&str; 8] = [
    "success_times",
    "slow_times",
    "generation",
    "openings",
    "open_until",
    "recovered_at",
    FORCED,
    "needs_human",
];

/// The record of one breaker in a whole file; nothing where the file is damaged.
pub(super) fn one(bytes: &[u8], key: &str) -> Option<Value> {
    let mut file = serde_json::Deserializer::from_slice(bytes);
    let found = serde::Deserializer::deserialize_map(&mut file, One { key }).ok()?;
    file.end().ok().and(found)
}

/// Looks for one key of a map and skips the values of the others.
struct One<'k> {
    key: &'k str,
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("breakers by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key == self.key {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// The breaker of a record, where it is one: an object with a state of ours.
pub(super) fn known_breaker(record: &Value) -> Option<Breaker> {
    let state = record.get("state")?.as_str()?;
    PHASES.contains(&state).then(|| breaker_of(record))
}

/// The breaker of a record. Anything missing or odd reads as if it had not happened.
pub(super) fn breaker_of(record: &Value) -> Breaker {
    let time = |key: &str| record.get(key).and_then(Value::as_str).and_then(Timestamp::parse);
    let count = |key: &str| record.get(key).and_then(Value::as_u64).unwrap_or(0);
    let small = |key: &str| u32::try_from(count(key)).unwrap_or(u32::MAX);
    let text = |key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
    let phase = match record.get("state").and_then(Value::as_str) {
        Some("OPEN") => Phase::Open,
        Some("HALF_OPEN") => Phase::HalfOpen,
        _ => Phase::Closed,
    };
    Breaker {
        phase,
        generation: count("generation"),
        calls: calls_of(record, time("last_failure_time")),
        successes: small("success_count"),
        last_failure: time("last_failure_time"),
        last_error: text("last_error").unwrap_or_default(),
        last_change: time("last_state_change"),
        cooldown_until: time("cooldown_until"),
        open_until: time("open_until"),
        last_probe: time("last_probe_time"),
        openings: small("openings"),
        recovered_at: time("recovered_at"),
        // One that is closed is not held open.
        forced: text(FORCED).filter(|_| phase == Phase::Open),
        needs_human: record.get("needs_human").and_then(Value::as_bool) == Some(true),
    }
}

/// The calls that count, oldest first.
fn calls_of(record: &Value, last_failure: Option<Timestamp>) -> Vec<Counted> {
    let times = |key: &str| -> Option<Vec<Timestamp>> {
        let items = record.get(key)?.as_array()?.iter();
        Some(items.filter_map(Value::as_str).filter_map(Timestamp::parse).collect())
    };
    let failures = times("failure_times").unwrap_or_else(|| {
        let count = record.get("failure_count").and_then(Value::as_u64).unwrap_or(0);
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(BREAKER_CALLS_MAX);
        last_failure.map(|at| vec![at; count]).unwrap_or_default()
    });
    let slow = times("slow_times").unwrap_or_default();
    let worked = times("success_times").unwrap_or_default();
    let mut calls = Vec::new();
    for (outcome, times) in
        [(Outcome::Failed, failures), (Outcome::Slow, slow), (Outcome::Worked, worked)]
    {
        calls.extend(times.into_iter().map(|at| Counted { at, outcome }));
    }
    calls.sort_by_key(|it| it.at);
    let surplus = calls.len().saturating_sub(BREAKER_CALLS_MAX);
    calls.drain(..surplus);
    calls
}

/// The record of a breaker, over what the file knew beside it.
pub(super) fn record_of(breaker: &Breaker, known: Option<&Value>) -> Value {
    let time = |at: Option<Timestamp>| at.map_or(Value::Null, |at| whole_seconds(at).into());
    // Never sooner than it was said.
    let end = |at: Option<Timestamp>| time(at.map(|at| at.plus(Duration::from_millis(999))));
    let precise = |at: Timestamp| Value::from(at.to_string());
    let times = |outcome| breaker.of(outcome).map(precise).collect::<Vec<_>>();
    let failures = times(Outcome::Failed);
    let ours = json!({
        "state": breaker.phase.as_str(),
        "failure_count": failures.len(),
        "success_count": breaker.successes,
        "last_failure_time": time(breaker.last_failure),
        "last_state_change": time(breaker.last_change),
        "cooldown_until": end(breaker.cooldown_until),
        "failure_window_start": time(breaker.failures().next()),
        "failure_times": failures,
        "last_probe_time": breaker.last_probe.map(precise),
        "last_error": plain(&breaker.last_error),
    });
    let rare = json!({
        "success_times": times(Outcome::Worked),
        "slow_times": times(Outcome::Slow),
        "generation": breaker.generation,
        "openings": breaker.openings,
        "open_until": end(breaker.open_until),
        "recovered_at": breaker.recovered_at.map(precise),
        "forced": breaker.forced.as_deref().map(plain),
        "needs_human": breaker.needs_human,
    });
    let mut record = known.and_then(Value::as_object).cloned().unwrap_or_default();
    // Its order is kept: others read the file, too.
    RARE.iter().for_each(|key| drop(record.shift_remove(*key)));
    let says = |value: &Value| {
        let empty = value.as_array().is_some_and(Vec::is_empty);
        !(empty || value.is_null() || *value == json!(0) || *value == json!(false))
    };
    let ours = ours.as_object().into_iter().flatten();
    let rare: Map<String, Value> = rare.as_object().cloned().unwrap_or_default();
    record.extend(ours.map(|(key, value)| (key.clone(), value.clone())));
    record.extend(rare.into_iter().filter(|(_, value)| says(value)));
    Value::Object(record)
}

/// A text of somebody else as one short line.
fn plain(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(EVIDENCE_CHARS_MAX).collect()
}

/// The seed's form of a time, which its recipes read with `jq`: without a fraction.
pub(super) fn whole_seconds(at: Timestamp) -> String {
    let whole = Timestamp::from_millis(at.millis().div_euclid(1000).saturating_mul(1000));
    whole.to_string().replace(".000Z", "Z")
}
