//! One value in one file on a fake machine: effects in order, refusals, torn values.

use std::time::Duration;

use super::*;
use policyd_world::fake::{FakeWorld, Op};

const PATH: &str = "/work/state.json";

fn saved(world: &FakeWorld) -> SaveOutcome {
    world.put_folder("/work");
    save(world, Path::new(PATH), b"{\"n\": 2}", &Durability::default())
}

fn no() -> WorldError {
    WorldError::Io("no".to_owned())
}

#[test]
fn effects_of_the_first_second_and_third_save() {
    let world = FakeWorld::new();
    let steps = |world: &FakeWorld| {
        world.clear_log();
        assert_eq!(saved(world), SaveOutcome::Durable { retries: 0 });
        world.log().join("; ")
    };
    let prepare = "write .state.json.tmp 8; sync_file .state.json.tmp; read .state.json.tmp";
    let (remove, exchange) = ("remove .state.json.tmp", "exchange .state.json.tmp state.json");
    let rename = "rename .state.json.tmp state.json";
    assert_eq!(steps(&world), format!("{remove}; {prepare}; {rename}; sync_folder "));
    let second = format!("{remove}; {prepare}; sync_folder ; {exchange}; sync_folder ");
    assert_eq!(steps(&world), second);
    assert_eq!(steps(&world), format!("{prepare}; {exchange}; sync_folder "));
}

#[test]
fn waits_double_on_after_the_listed_ones() {
    let durability = Durability::default();
    let millis: Vec<u128> = (0..6).map(|it| durability.delay_after(it).as_millis()).collect();
    assert_eq!(millis, [100, 200, 400, 800, 1600, 3200]);
    let none = Durability { retry_delays: Vec::new(), ..durability };
    assert_eq!(none.delay_after(5), Duration::ZERO);
}

#[test]
fn a_refused_replacement_is_tried_again_and_then_written_in_place() {
    for (times, expected) in [(1, 1), (2, 2)] {
        let world = FakeWorld::new();
        world.put(PATH, "{}");
        world.refuse_times(Op::Exchange, "", times, no());
        assert_eq!(saved(&world), SaveOutcome::Durable { retries: expected });
    }
    for times in [3, u32::MAX] {
        let world = FakeWorld::new();
        world.put(PATH, "{}");
        world.without_exchange();
        world.refuse_times(Op::Rename, "", times, no());
        let why = "replace: no".to_owned();
        assert_eq!(saved(&world), SaveOutcome::Degraded { retries: 2, why });
        assert_eq!(world.get(PATH).unwrap(), b"{\"n\": 2}");
        assert_eq!(world.elapsed(), Duration::from_millis(300));
    }
}

#[test]
fn a_file_system_that_does_not_sync_degrades_at_once() {
    let world = FakeWorld::new();
    world.put(PATH, "{}");
    world.refuse_always(Op::SyncFile, "", WorldError::Unsupported);
    world.refuse_always(Op::SyncFolder, "", WorldError::Unsupported);
    let why = "sync: not supported by this file system".to_owned();
    let degraded = SaveOutcome::Degraded { retries: 0, why };
    assert_eq!(saved(&world), degraded);
    assert_eq!(world.get(PATH).unwrap(), b"{\"n\": 2}");
    assert_eq!(world.elapsed(), Duration::ZERO, "nothing is tried again");
    assert_eq!(rewrite(&world, Path::new(PATH), b"{\"n\": 3}"), degraded);
    replace(&world, Path::new(PATH), b"{\"n\": 4}", &Durability::default(), None).unwrap();
    assert_eq!(world.get(PATH).unwrap(), b"{\"n\": 4}");
    // What was written is read back all the same.
    world.corrupt_reads(3);
    assert!(matches!(saved(&world), SaveOutcome::NotSaved { .. }));
}

#[test]
fn a_full_disk_leaves_the_old_value() {
    for op in [Op::Write, Op::SyncFile, Op::Read] {
        let world = FakeWorld::new();
        world.put(PATH, "{}");
        world.refuse_always(op, ".tmp", no());
        assert!(matches!(saved(&world), SaveOutcome::NotSaved { retries: 2, .. }), "{op:?}");
        assert_eq!(world.get(PATH).unwrap(), b"{}", "{op:?}");
    }
}

#[test]
fn a_write_that_reads_back_differently_is_a_failure() {
    let world = FakeWorld::new();
    world.put(PATH, "{}");
    world.corrupt_reads(1);
    assert_eq!(saved(&world), SaveOutcome::Durable { retries: 1 });
    world.corrupt_reads(3);
    let why = "data_mismatch".to_owned();
    let code = Code::RetriesExhausted;
    assert_eq!(saved(&world), SaveOutcome::NotSaved { retries: 2, why, code });
}

#[test]
fn without_fsync_and_verification_nothing_is_synced_or_read() {
    let world = FakeWorld::new();
    let durability = Durability { fsync: false, verify: false, ..Durability::default() };
    let outcome = save(&world, Path::new(PATH), b"{}", &durability);
    assert_eq!(outcome, SaveOutcome::Durable { retries: 0 });
    assert!(!world.log().iter().any(|it| it.starts_with("sync") || it.starts_with("read")));
}

#[test]
fn no_beginning_of_a_value_is_whole() {
    let text = "{\n  \"a\": [1, {\"b\": \"}\"}],\n  \"ä\": null\n}\n";
    assert!(is_whole(text.as_bytes()));
    let end = text.trim_end().len();
    for cut in 0..end {
        let mut bytes = text.as_bytes()[..cut].to_vec();
        assert!(!is_whole(&bytes), "{cut}");
        bytes.resize(text.len(), 0);
        assert!(!is_whole(&bytes), "{cut} and zeros");
    }
    for other in ["", "5", "\"x\"", "null", "{} {}", "CORRUPTED"] {
        assert!(!is_whole(other.as_bytes()), "{other}");
    }
}
