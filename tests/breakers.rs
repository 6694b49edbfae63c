//! Circuit breakers: the seed's sequences, its file, and their memory under faults and crowds.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a failing case is a failing test; tables are printed; case files are real"
)]

use std::path::Path;
use std::time::Duration;

use policyd::state::breaker::{Answer, Event, Phase, Settings};
use policyd::store::breakers::BreakerStore;
use policyd::store::file::Durability;
use policyd::time::Timestamp;
use policyd::world::fake::{FakeWorld, Op};
use policyd::world::{World, WorldError};
use serde_json::{Value, json};

const FILE: &str = "/w/.policyd/state/circuit-breakers.json";

fn store(world: &FakeWorld) -> BreakerStore<'_> {
    BreakerStore::new(world, Path::new("/w/.policyd"), Durability::default())
}

fn record(world: &FakeWorld, key: &str) -> Value {
    let bytes = world.get(FILE).unwrap();
    serde_json::from_slice::<Value>(&bytes).unwrap()[key].clone()
}

/// Operations at given seconds on one breaker: its state after each, and its record at the end.
fn sequence(input: &Value) -> Value {
    let config = &input["config"];
    let span = |key: &str| Duration::from_secs(config[key].as_u64().unwrap());
    let count = |key: &str| u32::try_from(config[key].as_u64().unwrap()).unwrap();
    let settings = Settings {
        threshold: count("threshold"),
        window: span("window_s"),
        cooldown: span("cooldown_s"),
        half_open_interval: span("half_open_interval_s"),
        recovery_threshold: count("recovery_threshold"),
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
                    let (_, answer) = store.request("api/claude", &settings, now);
                    row["allowed"] = (answer == Answer::Admitted).into();
                }
                "success" => {
                    store.record("api/claude", Event::Success, &settings, now).unwrap();
                }
                other => {
                    assert_eq!(other, "failure");
                    store
                        .record("api/claude", Event::Failure("overloaded"), &settings, now)
                        .unwrap();
                }
            }
            row["state"] = store.peek("api/claude").phase.as_str().into();
            row
        })
        .collect();
    let mut last = record(&world, "api/claude");
    for own in ["failure_times", "last_probe_time", "last_error"] {
        last.as_object_mut().unwrap().remove(own);
    }
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
        for (key, breaker) in store.all() {
            got[moment][key] = breaker.phase_at(&Settings::default(), now).as_str().into();
        }
    }
    got
}

#[test]
fn the_sequences_of_the_replaced_system_agree() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases");
    let Ok(text) = std::fs::read_to_string(shared.join("loki_shipwright_cases.json")) else {
        println!("skipped: ../shared is absent");
        return;
    };
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut ran = 0;
    for case in cases {
        let got = match case["kind"].as_str().unwrap() {
            "breaker_sequence" => sequence(&case["input"]),
            "breaker_state_file" => state_file(&case["input"], &case["expected"]),
            _ => continue,
        };
        println!("{} {}", case["name"], if got == case["expected"] { "agrees" } else { "WRONG" });
        assert_eq!(got, case["expected"], "{}", case["name"]);
        ran += 1;
    }
    assert!(ran > 10, "{ran} cases");
}

#[test]
fn the_seeds_own_walk_through_the_states() {
    let settings = Settings::default();
    let (world, start) = (FakeWorld::new(), Timestamp::parse("2025-01-20T10:30:00Z").unwrap());
    let store = store(&world);
    let at = |seconds: u64| start.plus(Duration::from_secs(seconds));
    for second in [0, 20, 52] {
        let failure = Event::Failure("529 overloaded");
        store.record("api/claude", failure, &settings, at(second)).unwrap();
    }
    let (breaker, answer) = store.request("api/claude", &settings, at(53));
    assert_eq!(answer, Answer::Rejected { wait: Duration::from_secs(299) });
    assert_eq!(breaker.last_error, "529 overloaded");
    for (request, success) in [(352, 353), (362, 363), (372, 373)] {
        assert_eq!(store.request("api/claude", &settings, at(request)).1, Answer::Admitted);
        store.record("api/claude", Event::Success, &settings, at(success)).unwrap();
    }
    assert_eq!(store.peek("api/claude").phase, Phase::Closed);
    let log =
        String::from_utf8(world.get("/w/.policyd/logs/circuit-recovery.log").unwrap()).unwrap();
    assert_eq!(log, "2025-01-20T10:36:13Z Circuit recovered: api/claude\n");
}

#[test]
fn what_others_wrote_into_the_file_is_kept() {
    let world = FakeWorld::new();
    let foreign = json!({"api/x": {"state": "CLOSED", "failure_count": 2, "owner": "me",
        "last_failure_time": "2025-01-20T10:30:00Z", "last_state_change": null}, "note": "hello"});
    world.put(FILE, foreign.to_string());
    let now = Timestamp::parse("2025-01-20T10:30:30Z").unwrap();
    let settings = Settings::default();
    store(&world).record("api/x", Event::Failure("e"), &settings, now).unwrap();
    assert_eq!(record(&world, "api/x")["state"], "OPEN", "its two failures count");
    assert_eq!(record(&world, "api/x")["owner"], "me");
    assert_eq!(record(&world, "note"), "hello");
}

#[test]
fn a_torn_file_is_put_aside_and_admits() {
    for torn in [&b"{ \"api/x\": {"[..], b"[]", b"", &[0xff; 9]] {
        let world = FakeWorld::new();
        world.put(FILE, torn);
        let (store, settings) = (store(&world), Settings::default());
        assert_eq!(store.request("api/x", &settings, world.now()).1, Answer::Admitted);
        store.record("api/x", Event::Failure("e"), &settings, world.now()).unwrap();
        assert_eq!(record(&world, "api/x")["failure_count"], 1);
        let aside = format!("{FILE}.corrupt-{}", world.now().millis());
        assert_eq!(world.get(aside).unwrap(), torn);
    }
}

#[test]
fn a_file_that_cannot_be_read_now_is_left_alone() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), Settings::default());
    store.record("k", Event::Failure("e"), &settings, world.now()).unwrap();
    let before = world.get(FILE).unwrap();
    world.refuse_always(Op::Read, "circuit-breakers.json", WorldError::Refused("EIO".to_owned()));
    assert!(store.record("k", Event::Failure("e"), &settings, world.now()).is_err());
    assert_eq!(world.get(FILE).unwrap(), before);
}

#[test]
fn times_are_in_the_form_that_the_seeds_recipes_read() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), Settings { threshold: 1, ..Settings::default() });
    let now = Timestamp::parse("2025-01-20T10:30:00.400Z").unwrap();
    store.record("k", Event::Failure("a\nb"), &settings, now).unwrap();
    let kept = record(&world, "k");
    assert_eq!(kept["last_failure_time"], "2025-01-20T10:30:00Z");
    assert_eq!(kept["cooldown_until"], "2025-01-20T10:35:01Z", "not sooner than it was said");
    assert_eq!(kept["last_error"], "a b");
    let (_, answer) = store.request("k", &settings, now);
    assert!(matches!(answer, Answer::Rejected { .. }));
    assert_eq!(record(&world, "k"), kept, "a rejected call moves nothing");
}

#[test]
fn a_breaker_that_cannot_be_written_admits() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), Settings { threshold: 1, ..Settings::default() });
    store.record("k", Event::Failure("e"), &settings, world.now()).unwrap();
    world.advance(Duration::from_secs(301));
    world.refuse_always(Op::Lock, ".lock", WorldError::TimedOut);
    assert_eq!(store.request("k", &settings, world.now()).1, Answer::Admitted);
    assert!(store.record("k", Event::Failure("e"), &settings, world.now()).is_err());
}

#[test]
fn nothing_is_written_where_nothing_changes() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), Settings::default());
    assert_eq!(store.request("k", &settings, world.now()).1, Answer::Admitted);
    store.record("k", Event::Success, &settings, world.now()).unwrap();
    assert!(world.get(FILE).is_none());
}
