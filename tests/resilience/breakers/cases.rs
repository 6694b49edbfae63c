//! The sequences of the replaced systems, by their kind.

use std::time::Duration;

use policyd::state::breaker::{
    Breaker, BreakerEvent, BreakerPhase, BreakerResponse, BreakerSettings, Window, step,
};
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use super::{FILE, record, store};
use crate::support::shared;

/// Keys of a record in seed 003.
const SEED_KEYS: [&str; 7] = [
    "state",
    "failure_count",
    "success_count",
    "last_failure_time",
    "last_state_change",
    "cooldown_until",
    "failure_window_start",
];

/// Operations at given seconds on one breaker: its state after each, and its record at the end.
fn sequence(input: &Value) -> Value {
    let config = &input["config"];
    let span = |key: &str| Duration::from_secs(config[key].as_u64().unwrap());
    let count = |key: &str| u32::try_from(config[key].as_u64().unwrap()).unwrap();
    let settings = BreakerSettings {
        threshold: count("threshold"),
        window: Window::Time(span("window_s")),
        cooldown: span("cooldown_s"),
        half_open_interval: span("half_open_interval_s"),
        recovery_threshold: count("recovery_threshold"),
        ..BreakerSettings::default()
    };
    let start = Timestamp::parse(input["t0"].as_str().unwrap()).unwrap();
    let world = FakeWorld::new();
    // A breaker is there from the start: its record tells when.
    let fresh = json!({"api/claude": {"state": "CLOSED", "failure_count": 0, "success_count": 0,
        "last_failure_time": null, "last_state_change": input["t0"], "cooldown_until": null,
        "failure_window_start": null}});
    world.put(FILE, fresh.to_string());
    let store = store(&world);
    let trace: Vec<Value> = input["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let now = start.plus(Duration::from_secs(it["t"].as_u64().unwrap()));
            let mut row = json!({"t": it["t"], "op": it["op"]});
            match it["op"].as_str().unwrap() {
                "request" => {
                    let (_, answer) = store.request("api/claude", &settings, now).unwrap();
                    row["allowed"] = (answer == BreakerResponse::Permitted).into();
                }
                "success" => {
                    store.record("api/claude", BreakerEvent::success(), &settings, now).unwrap();
                }
                other => {
                    assert_eq!(other, "failure");
                    store
                        .record("api/claude", BreakerEvent::failure("overloaded"), &settings, now)
                        .unwrap();
                }
            }
            row["state"] = store.peek("api/claude").unwrap().phase.as_str().into();
            row
        })
        .collect();
    // Beside the seed's keys there are some of our own.
    let mut last = record(&world, "api/claude");
    last.as_object_mut().unwrap().retain(|key, _| SEED_KEYS.contains(&key.as_str()));
    json!({"trace": trace, "final": last})
}

/// The seed's example file: which state each breaker is in at a moment.
fn state_file(input: &Value, expected: &Value) -> Value {
    let world = FakeWorld::new();
    world.put(FILE, input.to_string());
    let store = store(&world);
    let mut got = json!({"accepted": true});
    for moment in expected.as_object().unwrap().keys().filter(|it| it.starts_with("at_")) {
        let now = Timestamp::parse(moment.trim_start_matches("at_")).unwrap();
        for (key, breaker) in store.all().unwrap() {
            got[moment][key] = breaker.phase_at(&BreakerSettings::default(), now).as_str().into();
        }
    }
    got
}

/// A value without keys that are null: to a reader of the file, an absent key is null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, it)| !it.is_null());
            Value::Object(kept.map(|(key, it)| (key.clone(), without_nulls(it))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_sequences_of_the_replaced_system_agree() {
    let Some(cases) = shared::cases("loki_shipwright_cases.json") else { return };
    let mut ran = 0;
    for case in cases {
        let got = match case["kind"].as_str().unwrap() {
            "breaker_sequence" => sequence(&case["input"]),
            "breaker_state_file" => state_file(&case["input"], &case["expected"]),
            "breaker_counts" => counts(&case["input"], &case["expected"]),
            "breaker_consecutive" => consecutive(&case["input"], &case["expected"]),
            _ => continue,
        };
        let (got, expected) = (without_nulls(&got), without_nulls(&case["expected"]));
        println!("{} {}", case["name"], if got == expected { "agrees" } else { "WRONG" });
        assert_eq!(got, expected, "{}", case["name"]);
        ran += 1;
    }
    assert!(ran > 10, "{ran} cases");
}

/// Settings of a breaker that counts failures in a row, under the names of the two systems that do.
fn in_a_row(config: &Value) -> BreakerSettings {
    let default = BreakerSettings::default();
    let number = |names: &[&str]| names.iter().find_map(|it| config[*it].as_u64());
    let count =
        |names: &[&str], base: u32| number(names).map_or(base, |it| u32::try_from(it).unwrap());
    let seconds = number(&["cooldownSeconds"]).map(Duration::from_secs);
    let cooldown = seconds.or_else(|| number(&["resetTimeoutMs"]).map(Duration::from_millis));
    BreakerSettings {
        window: Window::Consecutive,
        threshold: count(&["failureThreshold"], 5),
        cooldown: cooldown.unwrap_or(default.cooldown),
        recovery_threshold: count(&["halfOpenRequests", "halfOpenMaxCalls"], 1),
        ..default
    }
}

/// The name of a state there: `half-open`.
fn small_name(breaker: &Breaker, settings: &BreakerSettings, now: Timestamp) -> String {
    breaker.phase_at(settings, now).as_str().to_ascii_lowercase().replace('_', "-")
}

/// Failures in groups, from the start or from a state that is given; what is known after each group.
fn counts(input: &Value, expected: &Value) -> Value {
    let settings = in_a_row(&input["config"]);
    let now = Timestamp::from_millis(1_000_000_000);
    let phase = match input["state"].as_str().unwrap_or("closed") {
        "half-open" => BreakerPhase::HalfOpen,
        "open" => BreakerPhase::Open,
        _ => BreakerPhase::Closed,
    };
    let successes = u32::try_from(input["halfOpenAttempts"].as_u64().unwrap_or(0)).unwrap();
    let cooldown_until = (phase == BreakerPhase::Open).then(|| now.plus(settings.cooldown));
    let mut breaker = Breaker { phase, successes, cooldown_until, ..Breaker::default() };
    let mut group = |failures: &Value, wanted: &Value| {
        for _ in 0..failures.as_u64().unwrap() {
            breaker = step(&breaker, BreakerEvent::failure("e"), &settings, now).0;
        }
        for _ in 0..input["successes"].as_u64().unwrap_or(0) {
            breaker = step(&breaker, BreakerEvent::success(), &settings, now).0;
        }
        let known = json!({
            "failures": breaker.failures().count(),
            "state": small_name(&breaker, &settings, now),
            "halfOpenAttempts": breaker.successes,
        });
        asked_for(known, wanted)
    };
    match (input["failures"].as_array(), expected.as_array()) {
        (Some(groups), Some(wanted)) => {
            groups.iter().zip(wanted).map(|(failures, it)| group(failures, it)).collect()
        }
        _ => group(input.get("failures").unwrap_or(&json!(0)), expected),
    }
}

/// Operations in a row: `f`, `s`, `wait<ms>`, `<n> concurrent … calls`.
fn consecutive(input: &Value, expected: &Value) -> Value {
    let settings = in_a_row(input);
    let mut now = Timestamp::from_millis(1_000_000_000);
    let mut breaker = Breaker::default();
    let (mut events, mut admitted, mut rejected) = (Vec::new(), 0, 0);
    for op in input["ops"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()) {
        let before = breaker.phase;
        let mut happens = |event| {
            let (next, answer) = step(&breaker, event, &settings, now);
            breaker = next;
            answer
        };
        // A call that nobody asked about is asked about first, as their `execute` does.
        let mut call = |result| {
            if happens(BreakerEvent::Request) == BreakerResponse::Permitted {
                happens(result);
            }
        };
        if let Some(wait) = op.strip_prefix("wait") {
            now = now.plus(Duration::from_millis(wait.trim().parse().unwrap()));
        } else if let Some(count) = op.split_once(" concurrent").map(|it| it.0) {
            for _ in 0..count.parse().unwrap() {
                let count = if happens(BreakerEvent::Request) == BreakerResponse::Permitted {
                    &mut admitted
                } else {
                    &mut rejected
                };
                *count += 1;
            }
        } else {
            assert!(["f", "s"].contains(&op), "unknown operation {op}");
            call(if op == "f" { BreakerEvent::failure("e") } else { BreakerEvent::success() });
        }
        if breaker.phase != before {
            events.push(small_name(&breaker, &settings, now));
        }
    }
    let known = json!({"state": breaker.phase_at(&settings, now).as_str(), "events": events,
        "failureCount": breaker.failures().count(), "admitted": admitted, "rejected": rejected});
    asked_for(known, expected)
}

/// Of what is known, what a case asks for.
fn asked_for(mut known: Value, wanted: &Value) -> Value {
    let wanted = wanted.as_object().unwrap();
    known.as_object_mut().unwrap().retain(|key, _| wanted.contains_key(key));
    known
}
