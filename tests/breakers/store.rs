//! The file of the breakers: what others wrote into it, damage, faults.

use std::time::Duration;

use policyd::state::breaker::{Answer, Event, Phase, Settings};
use policyd::time::Timestamp;
use policyd::world::fake::{FakeWorld, Op};
use policyd::world::{World, WorldError};
use serde_json::json;

use crate::{FILE, record, store};

#[test]
fn the_seeds_own_walk_through_the_states() {
    let settings = Settings::default();
    let (world, start) = (FakeWorld::new(), Timestamp::parse("2025-01-20T10:30:00Z").unwrap());
    let store = store(&world);
    let at = |seconds: u64| start.plus(Duration::from_secs(seconds));
    for second in [0, 20, 52] {
        let failure = Event::failure("529 overloaded");
        store.record("api/claude", failure, &settings, at(second)).unwrap();
    }
    let (breaker, answer) = store.request("api/claude", &settings, at(53));
    assert_eq!(answer, Answer::Rejected { wait: Some(Duration::from_secs(299)) });
    assert_eq!(breaker.last_error, "529 overloaded");
    for (request, success) in [(352, 353), (362, 363), (372, 373)] {
        assert_eq!(store.request("api/claude", &settings, at(request)).1, Answer::Admitted);
        store.record("api/claude", Event::success(), &settings, at(success)).unwrap();
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
    store(&world).record("api/x", Event::failure("e"), &settings, now).unwrap();
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
        store.record("api/x", Event::failure("e"), &settings, world.now()).unwrap();
        assert_eq!(record(&world, "api/x")["failure_count"], 1);
        let aside = format!("{FILE}.corrupt-{}", world.now().millis());
        assert_eq!(world.get(aside).unwrap(), torn);
    }
}

#[test]
fn a_file_that_cannot_be_read_now_is_left_alone() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), Settings::default());
    store.record("k", Event::failure("e"), &settings, world.now()).unwrap();
    let before = world.get(FILE).unwrap();
    world.refuse_always(Op::Read, "circuit-breakers.json", WorldError::Refused("EIO".to_owned()));
    assert!(store.record("k", Event::failure("e"), &settings, world.now()).is_err());
    assert_eq!(world.get(FILE).unwrap(), before);
}

#[test]
fn times_are_in_the_form_that_the_seeds_recipes_read() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), Settings { threshold: 1, ..Settings::default() });
    let now = Timestamp::parse("2025-01-20T10:30:00.400Z").unwrap();
    store.record("k", Event::failure("a\nb"), &settings, now).unwrap();
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
    store.record("k", Event::failure("e"), &settings, world.now()).unwrap();
    world.advance(Duration::from_secs(301));
    world.refuse_always(Op::Lock, ".lock", WorldError::TimedOut);
    assert_eq!(store.request("k", &settings, world.now()).1, Answer::Admitted);
    assert!(store.record("k", Event::failure("e"), &settings, world.now()).is_err());
}

#[test]
fn nothing_is_written_where_nothing_changes() {
    let world = FakeWorld::new();
    let (store, settings) = (store(&world), Settings::default());
    assert_eq!(store.request("k", &settings, world.now()).1, Answer::Admitted);
    store.record("k", Event::success(), &settings, world.now()).unwrap();
    assert!(world.get(FILE).is_none());
}
