//! Sessions on a fake machine: effects in order, recovery, foreign and newer files.

use super::*;
use crate::validate::Corruption;
use policyd_world::fake::{FakeWorld, Op};
use serde_json::json;

const WAIT: Duration = Duration::from_millis(50);
const FOLDER: &str = "/work/.policyd/sessions/s1";

fn id() -> SessionId {
    SessionId::parse("s1").unwrap()
}

fn store(world: &FakeWorld) -> SessionStore<'_> {
    SessionStore::new(world, "/work/.policyd", Layout::policyd())
}

fn at(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// Blocks once more.
fn block(world: &FakeWorld) -> SaveOutcome {
    let store = store(world);
    let mut locked = store.lock(&id(), WAIT).unwrap();
    let mut state = locked.load().state;
    state.main.consecutive_blocks += 1;
    state.main.total_blocks += 1;
    state.main.episode = "p1".to_owned();
    locked.commit(&state)
}

fn peek(world: &FakeWorld) -> LoadedSession {
    store(world).peek(&id())
}

fn load(world: &FakeWorld) -> LoadedSession {
    store(world).lock(&id(), WAIT).unwrap().load()
}

fn log_of(world: &FakeWorld) -> Vec<Value> {
    log::read_all(world, Path::new(&at("diagnostic.jsonl")))
}

#[test]
fn effects_of_the_first_and_of_a_later_block() {
    let world = FakeWorld::new();
    assert_eq!(block(&world), SaveOutcome::Durable { retries: 0 });
    let short = |world: &FakeWorld| -> Vec<String> {
        let numbers = |word: &&str| word.parse::<u32>().is_err();
        let log = world.log();
        let line = |line: &String| line.split(' ').filter(numbers).collect::<Vec<_>>().join(" ");
        log.iter().map(|it| line(it).replace(".policyd/sessions", "$")).collect()
    };
    let first = [
        "create_folder $/s1",
        "write .policyd/.gitignore",
        "lock $/s1/.state.lock",
        "list $",
        "read $/s1/state.json",
        "sync_folder $",
        "sync_folder .policyd",
        "sync_folder ",
        "remove $/s1/.state.json.tmp",
        "write $/s1/.state.json.tmp",
        "sync_file $/s1/.state.json.tmp",
        "read $/s1/.state.json.tmp",
        "rename $/s1/.state.json.tmp $/s1/state.json",
        "sync_folder $/s1",
        "read $/s1/diagnostic.jsonl",
        "append $/s1/diagnostic.jsonl",
    ];
    assert_eq!(short(&world), first);
    assert_eq!(block(&world), SaveOutcome::Durable { retries: 0 });
    world.clear_log();
    assert_eq!(block(&world), SaveOutcome::Durable { retries: 0 });
    let later = [
        "lock $/s1/.state.lock",
        "read $/s1/state.json",
        "write $/s1/.state.json.tmp",
        "sync_file $/s1/.state.json.tmp",
        "read $/s1/.state.json.tmp",
        "exchange $/s1/.state.json.tmp $/s1/state.json",
        "sync_folder $/s1",
        "read $/s1/diagnostic.jsonl",
        "append $/s1/diagnostic.jsonl",
    ];
    assert_eq!(short(&world), later);
    assert_eq!(world.get("/work/.policyd/.gitignore").unwrap(), layout::GITIGNORE.as_bytes());
    assert_eq!(load(&world).state.revision, 3);
}

#[test]
fn an_unchanged_state_is_not_written() {
    let world = FakeWorld::new();
    let _ = block(&world);
    world.clear_log();
    let store = store(&world);
    let mut locked = store.lock(&id(), WAIT).unwrap();
    let state = locked.load().state;
    assert_eq!(locked.commit(&state), SaveOutcome::Durable { retries: 0 });
    assert_eq!(world.log().len(), 2, "{:?}", world.log());
}

#[test]
fn a_locked_session_is_busy_and_free_again_after_drop() {
    let world = FakeWorld::new();
    let store = store(&world);
    let locked = store.lock(&id(), WAIT).unwrap();
    assert!(matches!(store.lock(&id(), WAIT).err(), Some(LockError::Busy(_))));
    drop(locked);
    assert!(store.lock(&id(), WAIT).is_ok());
}

#[test]
fn a_corrupt_counter_is_recovered_from_the_log() {
    for garbage in ["CORRUPTED JSON{{{", "", "[]", "5", "{\"consecutive_blocks\": -1}"] {
        let world = FakeWorld::new();
        for _ in 0..3 {
            let _ = block(&world);
        }
        world.put(at("state.json"), garbage);
        world.put(at(".state.json.tmp"), "{");
        let origin = |it: LoadedSession| {
            let StateOrigin::Recovered { from, .. } = it.origin else { panic!("{:?}", it.origin) };
            (from, it.state.main.consecutive_blocks)
        };
        assert_eq!(origin(peek(&world)), (RecoverySource::Log, 3), "{garbage}");
        assert_eq!(world.get(at("state.json")).unwrap(), garbage.as_bytes());
        assert_eq!(origin(load(&world)), (RecoverySource::Log, 3), "{garbage}");
        let again = load(&world);
        assert_eq!((again.origin, again.state.main.consecutive_blocks), (StateOrigin::File, 3));
        assert_eq!(again.state.main.episode, "p1");
        assert_eq!(again.state.revision, 3);
    }
}

#[test]
fn a_torn_file_is_recovered_from_its_sibling_and_the_log_says_how_far_it_was() {
    let world = FakeWorld::new();
    for _ in 0..3 {
        let _ = block(&world);
    }
    world.put(at("state.json"), "{\"consecutive_bl");
    let found = load(&world);
    let reason = Corruption::InvalidJson;
    assert_eq!(found.origin, StateOrigin::Recovered { reason, from: RecoverySource::Log });
    assert_eq!((found.state.main.consecutive_blocks, found.state.revision), (3, 3));
    world.put(at("state.json"), "{\"consecutive_bl");
    world.remove(Path::new(&at("diagnostic.jsonl"))).unwrap();
    let found = load(&world);
    assert_eq!(found.origin, StateOrigin::Recovered { reason, from: RecoverySource::Backup });
    assert_eq!(found.state.main.consecutive_blocks, 2);
    assert_eq!(load(&world).origin, StateOrigin::File);
}

#[test]
fn without_log_and_sibling_the_counter_begins_at_zero_as_in_the_seed() {
    let world = FakeWorld::new();
    world.put(at("state.json"), "CORRUPTED JSON{{{");
    let found = load(&world);
    let reason = Corruption::InvalidJson;
    assert_eq!(found.origin, StateOrigin::Recovered { reason, from: RecoverySource::Nothing });
    assert_eq!(found.state.main.consecutive_blocks, 0);
    let operations: Vec<Value> = log_of(&world).iter().map(|it| it["operation"].clone()).collect();
    assert_eq!(operations, ["state_load", "validation", "state_reset", "state_save"]);
}

#[test]
fn three_corrupt_files_are_kept() {
    let world = FakeWorld::new();
    for number in 0..5 {
        world.put(at("state.json"), format!("bad {number}"));
        load(&world);
        world.advance(Duration::from_secs(1));
    }
    let kept: Vec<_> = world
        .files()
        .into_iter()
        .filter(|it| it.to_string_lossy().contains("corrupt-"))
        .map(|it| String::from_utf8(world.get(it).unwrap()).unwrap())
        .collect();
    assert_eq!(kept, ["bad 2", "bad 3", "bad 4"]);
}

#[test]
fn a_pipe_in_place_of_the_state_is_put_aside() {
    let world = FakeWorld::new();
    world.put_special(at("state.json"));
    let found = load(&world);
    assert!(matches!(
        found.origin,
        StateOrigin::Recovered { reason: Corruption::NotAFile, from: RecoverySource::Nothing }
    ));
    assert_eq!(block(&world), SaveOutcome::Durable { retries: 0 });
}

#[test]
fn a_deleted_state_is_a_fresh_session_even_with_a_sibling() {
    let world = FakeWorld::new();
    for _ in 0..3 {
        let _ = block(&world);
    }
    world.remove(Path::new(&at("state.json"))).unwrap();
    let found = load(&world);
    assert_eq!((found.origin, found.state.main.consecutive_blocks), (StateOrigin::Fresh, 0));
}

#[test]
fn a_newer_file_is_read_and_never_written() {
    let world = FakeWorld::new();
    let newer = "{\"version\": 99, \"consecutive_blocks\": 2, \"session_id\": \"s1\"}";
    world.put(at("state.json"), newer);
    assert_eq!(load(&world).origin, StateOrigin::Newer { version: 99 });
    let saved = block(&world);
    assert!(matches!(saved, SaveOutcome::NotSaved { retries: 0, .. }), "{saved:?}");
    assert_eq!(world.get(at("state.json")).unwrap(), newer.as_bytes());
}

#[test]
fn a_file_of_another_session_keeps_its_counters_and_gets_our_id() {
    let world = FakeWorld::new();
    world.put(at("state.json"), "{\"consecutive_blocks\": 2, \"session_id\": \"20251217_193000\"}");
    let found = load(&world);
    assert_eq!(found.foreign_id.as_deref(), Some("20251217_193000"));
    assert_eq!((found.state.session_id, found.state.main.consecutive_blocks), (id(), 2));
    let _ = block(&world);
    assert_eq!(log_of(&world)[0]["foreign_session_id"], "20251217_193000");
}

#[test]
fn a_failed_save_is_logged_attempt_by_attempt() {
    let world = FakeWorld::new();
    let _ = block(&world);
    world.refuse_times(Op::SyncFile, "", 1, WorldError::Io("disk full".to_owned()));
    assert_eq!(block(&world), SaveOutcome::Durable { retries: 1 });
    world.refuse_always(Op::SyncFile, "", WorldError::Io("disk full".to_owned()));
    assert!(matches!(block(&world), SaveOutcome::NotSaved { retries: 2, .. }));
    let rows: Vec<Value> = log_of(&world)
        .iter()
        .map(|it| json!([it["operation"], it["retry_count"], it["code"], it["success"]]))
        .collect();
    let expected = [
        json!(["state_save", 0, 0, null]),
        json!(["state_load", null, 0, null]),
        json!(["state_save", 0, 1, false]),
        json!(["state_save", 1, 0, null]),
        json!(["state_save_retry", 1, null, true]),
        json!(["state_load", null, 0, null]),
        json!(["state_save", 0, 1, false]),
        json!(["state_save", 1, 1, false]),
        json!(["state_save", 2, 1, false]),
        json!(["state_save", 2, 4, false]),
    ];
    assert_eq!(rows, expected);
}
