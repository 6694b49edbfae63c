//! The file of the breakers: what others wrote into it, damage, faults.

use std::time::Duration;

use policyd::state::breaker::{
    Breaker, BreakerEvent, BreakerFailure, BreakerPhase, BreakerResponse, BreakerSettings,
    CallMetadata, FailureEffect, Window, step,
};
use policyd::time::Timestamp;
use policyd::world::fake::{FakeWorld, Op};
use policyd::world::{World, WorldError};
use serde_json::json;

use super::{FILE, record, store};
use crate::support::snapshot;

fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    world
}

#[test]
fn the_seeds_own_walk_through_the_states() {
    let settings = BreakerSettings::default();
    let (world, start) = (FakeWorld::new(), Timestamp::parse("2025-01-20T10:30:00Z").unwrap());
    let store = store(&world);
    let at = |seconds: u64| start.plus(Duration::from_secs(seconds));
    for second in [0, 20, 52] {
        let failure = BreakerEvent::failure("529 overloaded");
        store.record("api/claude", failure, &settings, at(second)).unwrap();
    }
    let (breaker, answer) = store.request("api/claude", &settings, at(53)).unwrap();
    assert_eq!(answer, BreakerResponse::Rejected { wait: Some(Duration::from_secs(299)) });
    assert_eq!(breaker.last_error, "529 overloaded");
    for (request, success) in [(352, 353), (362, 363), (372, 373)] {
        assert_eq!(
            store.request("api/claude", &settings, at(request)).unwrap().1,
            BreakerResponse::Permitted
        );
        store.record("api/claude", BreakerEvent::success(), &settings, at(success)).unwrap();
    }
    assert_eq!(store.peek("api/claude").unwrap().phase, BreakerPhase::Closed);
    let log =
        String::from_utf8(world.get("/w/.policyd/logs/circuit-recovery.log").unwrap()).unwrap();
    assert_eq!(log, "2025-01-20T10:36:13Z Circuit recovered: api/claude\n");
}

#[test]
fn the_file_has_texts_where_loki_mode_wants_texts() {
    let settings = BreakerSettings::default();
    let world = machine();
    let null = json!({"api/x": {"state": "CLOSED", "failure_count": 0, "success_count": 0,
        "last_failure_time": null, "last_state_change": "2025-01-20T10:30:00Z",
        "cooldown_until": null, "failure_window_start": null}});
    world.put(FILE, null.to_string());
    let start = Timestamp::parse("2025-01-20T10:30:30Z").unwrap();
    let at = |seconds: u64| start.plus(Duration::from_secs(seconds));
    let store = store(&world);
    let texts = |step: &str| {
        let record = record(&world, "api/x");
        for key in ["last_state_change", "cooldown_until", "failure_window_start"] {
            let value = record.get(key);
            assert!(value.is_none_or(|it| it.is_string()), "{step}: {key} of {record}");
        }
        assert!(record.get("last_failure_time").is_some(), "{step}: it is required");
    };
    for second in 0..3 {
        store.record("api/x", BreakerEvent::failure("e"), &settings, at(second)).unwrap();
        texts("failed");
    }
    for second in [310, 325, 340] {
        store.request("api/x", &settings, at(second)).unwrap();
        texts("asked");
        store.record("api/x", BreakerEvent::success(), &settings, at(second + 1)).unwrap();
        texts("worked");
    }
    assert_eq!(record(&world, "api/x")["state"], "CLOSED");
}

#[test]
fn what_others_wrote_into_the_file_is_kept() {
    let world = FakeWorld::new();
    let foreign = json!({"api/x": {"state": "CLOSED", "failure_count": 2, "owner": "me",
        "last_failure_time": "2025-01-20T10:30:00Z", "last_state_change": null}, "note": "hello"});
    world.put(FILE, foreign.to_string());
    let now = Timestamp::parse("2025-01-20T10:30:30Z").unwrap();
    let settings = BreakerSettings::default();
    store(&world).record("api/x", BreakerEvent::failure("e"), &settings, now).unwrap();
    assert_eq!(record(&world, "api/x")["state"], "OPEN", "its two failures count");
    assert_eq!(record(&world, "api/x")["owner"], "me");
    assert_eq!(record(&world, "note"), "hello");
}

#[test]
fn a_torn_file_is_put_aside_and_admits() {
    for torn in [&b"{ \"api/x\": {"[..], b"[]", &[0xff; 9]] {
        let world = FakeWorld::new();
        world.put(FILE, torn);
        let (store, settings) = (store(&world), BreakerSettings::default());
        assert_eq!(
            store.request("api/x", &settings, world.now()).unwrap().1,
            BreakerResponse::Permitted
        );
        store.record("api/x", BreakerEvent::failure("e"), &settings, world.now()).unwrap();
        assert_eq!(record(&world, "api/x")["failure_count"], 1);
        let aside = format!("{FILE}.corrupt-{}", world.now().millis());
        assert_eq!(world.get(aside).unwrap(), torn);
    }
}

#[test]
fn a_file_that_cannot_be_read_now_is_left_alone() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), BreakerSettings::default());
    store.record("k", BreakerEvent::failure("e"), &settings, world.now()).unwrap();
    let before = world.get(FILE).unwrap();
    world.refuse_always(Op::Read, "circuit-breakers.json", WorldError::Io("EIO".to_owned()));
    assert!(store.record("k", BreakerEvent::failure("e"), &settings, world.now()).is_err());
    assert_eq!(world.get(FILE).unwrap(), before);
}

#[test]
fn times_are_in_the_form_that_the_seeds_recipes_read() {
    let world = FakeWorld::new();
    let (store, settings) =
        (store(&world), BreakerSettings { threshold: 1, ..BreakerSettings::default() });
    let now = Timestamp::parse("2025-01-20T10:30:00.400Z").unwrap();
    store.record("k", BreakerEvent::failure("a\nb"), &settings, now).unwrap();
    let kept = record(&world, "k");
    assert_eq!(kept["last_failure_time"], "2025-01-20T10:30:00Z");
    assert_eq!(kept["cooldown_until"], "2025-01-20T10:35:01Z", "not sooner than it was said");
    assert_eq!(kept["last_error"], "a b");
    let (_, answer) = store.request("k", &settings, now).unwrap();
    assert!(matches!(answer, BreakerResponse::Rejected { .. }));
    assert_eq!(record(&world, "k"), kept, "a rejected call moves nothing");
}

#[test]
fn a_breaker_that_cannot_be_written_admits() {
    let world = FakeWorld::new();
    let (store, settings) =
        (store(&world), BreakerSettings { threshold: 1, ..BreakerSettings::default() });
    store.record("k", BreakerEvent::failure("e"), &settings, world.now()).unwrap();
    world.advance(Duration::from_secs(301));
    world.refuse_always(Op::Lock, ".lock", WorldError::TimedOut);
    assert_eq!(store.request("k", &settings, world.now()).unwrap().1, BreakerResponse::Permitted);
    assert!(store.record("k", BreakerEvent::failure("e"), &settings, world.now()).is_err());
}

#[test]
fn nothing_is_written_where_nothing_changes() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), BreakerSettings::default());
    assert_eq!(store.request("k", &settings, world.now()).unwrap().1, BreakerResponse::Permitted);
    store.record("k", BreakerEvent::success(), &settings, world.now()).unwrap();
    assert!(world.get(FILE).is_none());
}

/// What can happen to a breaker, with the seconds since the last one.
fn happenings() -> Vec<(u64, BreakerEvent<'static>)> {
    let failure = BreakerFailure::new("529");
    let took =
        |seconds| CallMetadata { generation: None, took: Some(Duration::from_secs(seconds)) };
    let retry_after = Some(Duration::from_secs(900));
    vec![
        (1, BreakerEvent::success()),
        (1, BreakerEvent::Success(took(90))),
        (1, BreakerEvent::failure("500")),
        (1, BreakerEvent::Failure(BreakerFailure { effect: FailureEffect::Ignore, ..failure })),
        (1, BreakerEvent::Failure(BreakerFailure { retry_after, ..failure })),
        (5, BreakerEvent::Request),
        (900, BreakerEvent::Request),
        (1, BreakerEvent::success()),
        (10, BreakerEvent::Request),
        (1, BreakerEvent::success()),
        (10, BreakerEvent::Request),
        (1, BreakerEvent::success()),
        (1, BreakerEvent::failure("500")),
        (1, BreakerEvent::Trip { length: Some(Duration::from_secs(60)), reason: "maintenance" }),
        (90, BreakerEvent::Request),
        (1, BreakerEvent::Failure(BreakerFailure { effect: FailureEffect::Permanent, ..failure })),
        (1, BreakerEvent::Reset),
        (1, BreakerEvent::Trip { length: None, reason: "" }),
    ]
}

#[test]
fn what_is_written_is_read_as_it_was() {
    let rates = BreakerSettings {
        window: Window::Calls(20),
        failure_rate: Some(90),
        slow_call_rate: Some(90),
        ..BreakerSettings::default()
    };
    for settings in [BreakerSettings::default(), rates] {
        let world = machine();
        let (store, mut pure) = (store(&world), Breaker::default());
        for (seconds, event) in happenings() {
            world.advance(Duration::from_secs(seconds));
            pure = step(&pure, event, &settings, world.now()).0;
            store.record("k", event, &settings, world.now()).unwrap();
            let read = store.peek("k").unwrap();
            // A record tells from its first change on when that was.
            pure.last_change = pure.last_change.or(read.last_change);
            assert_eq!(read, pure, "{event:?}");
        }
    }
}

#[test]
fn the_file_is_the_seeds_with_a_few_keys_more() {
    let world = machine();
    let store = store(&world);
    let settings = BreakerSettings { slow_call_rate: Some(90), ..BreakerSettings::default() };
    let put = |key: &str, settings: &BreakerSettings, events: &[(u64, BreakerEvent<'static>)]| {
        for (seconds, event) in events {
            world.advance(Duration::from_secs(*seconds));
            store.record(key, *event, settings, world.now()).unwrap();
        }
    };
    let all = happenings();
    put("api/asked-to-wait", &settings, &all[..5]);
    put("api/opened-by-hand", &settings, &all[17..]);
    put("api/recovered", &settings, &all[..12]);
    put("api/needs-a-human", &settings, &all[15..16]);
    put("api/seed", &BreakerSettings::default(), &[(1, BreakerEvent::failure("529 overloaded"))]);
    snapshot(
        "breakers",
        "file__a_few_keys_more",
        String::from_utf8(world.get(FILE).unwrap()).unwrap(),
    );
}

#[test]
fn a_breaker_that_the_user_did_not_force_open_is_not_forced() {
    let world = machine();
    let (store, settings) = (store(&world), BreakerSettings::default());
    let trip = BreakerEvent::Trip { length: None, reason: "maintenance" };
    store.record("k", trip, &settings, world.now()).unwrap();
    assert!(store.peek("k").unwrap().forced.is_some());
    // The same file in the project of another user, or brought by a repository.
    world.set_env("HOME", "/home/other");
    let foreign = store.peek("k").unwrap();
    assert_eq!(foreign.forced, None);
    let (_, answer) =
        store.request("k", &settings, world.now().plus(Duration::from_secs(3600))).unwrap();
    assert!(!matches!(answer, BreakerResponse::Rejected { .. }), "{answer:?}");
    world.set_env("HOME", "/home/me");
    store.record("k", BreakerEvent::Reset, &settings, world.now()).unwrap();
    assert_eq!(store.peek("k").unwrap().forced, None);
}

#[test]
fn a_damaged_or_oversized_file_is_reported() {
    let world = FakeWorld::new();
    assert_eq!(store(&world).damage(), None, "there is no file");
    world.put(FILE, "{}");
    assert_eq!(store(&world).damage(), None);
    let oversized = " ".repeat(policyd::limits::BREAKER_FILE_BYTES_MAX + 1);
    for content in ["{", "[]"] {
        world.put(FILE, content);
        let damage = store(&world).damage().unwrap();
        assert!(damage.contains("circuit-breakers.json is damaged"), "{damage}");
    }
    world.put(FILE, &oversized);
    let damage = store(&world).damage().unwrap();
    assert!(
        damage.contains("cannot be used") && damage.contains("no call is permitted"),
        "{damage}"
    );
    // Nothing is moved, and nothing counts as closed.
    let (key, settings, now) = ("api/x", BreakerSettings::default(), world.now());
    assert!(store(&world).peek(key).is_err() && store(&world).all().is_err());
    assert!(store(&world).request(key, &settings, now).is_err());
    assert!(store(&world).record(key, BreakerEvent::failure("E"), &settings, now).is_err());
    assert_eq!(world.get(FILE), Some(oversized.into_bytes()));
}
