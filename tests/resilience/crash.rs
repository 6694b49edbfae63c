//! Crash matrix: power is lost at every operation, with every survival of what was not synced, and
//! the value is the old or the new one, never a torn one; what was said to be durable is.
//!
//! Mutants of `store/file.rs` and `store/session.rs` that these tests were seen to catch, each
//! made by hand: content not synced · names not synced · the value written in place · a new sibling
//! not made durable before the exchange · the sibling kept after a degraded save · the last resort
//! without a whole sibling · the last resort without making the sibling durable · a torn file not
//! mended from its sibling · folders of a new session not synced · a corrupt state put aside before
//! it is replaced · the log not asked for the counter.
//! Not caught, because this model of a disk sees no harm in them: a retry that writes over the
//! sibling instead of a new file, or that writes again after a refused folder sync.

use std::path::Path;
use std::time::Duration;

use policyd::id::SessionId;
use policyd::store::file::{Durability, LoadedDocument, SaveOutcome, load, restore, save};
use policyd::store::session::{Layout, RecoverySource, SessionStore, StateOrigin};
use policyd::world::fake::{FakeWorld, Op, Survival};
use policyd::world::{World, WorldError};

use crate::support::full;

const PATH: &str = "/work/state.json";

fn text(value: u32) -> String {
    let pad = "x".repeat(usize::try_from(value).unwrap() * 7);
    format!("{{\"n\": {value}, \"pad\": \"{pad}\"}}")
}

fn put(world: &FakeWorld, value: u32) -> SaveOutcome {
    save(world, Path::new(PATH), text(value).as_bytes(), &Durability::default())
}

/// The value; 0 where there is none. A torn file counts as its sibling.
fn get(world: &FakeWorld) -> u32 {
    let bytes = match load(world, Path::new(PATH), 1 << 20) {
        LoadedDocument::Missing => return 0,
        LoadedDocument::Whole(bytes) => bytes,
        LoadedDocument::Torn { backup: Some(bytes), .. } => bytes,
        lost @ (LoadedDocument::Torn { .. } | LoadedDocument::Unreadable { .. }) => {
            panic!("{lost:?}")
        }
    };
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    u32::try_from(value.get("n").unwrap().as_u64().unwrap()).unwrap()
}

/// What a program does after a restart: put a whole sibling in place of a torn file.
fn mend(world: &FakeWorld) {
    if let LoadedDocument::Torn { backup: Some(_), .. } = load(world, Path::new(PATH), 1 << 20) {
        restore(world, Path::new(PATH)).unwrap();
    }
}

/// A machine on which the values 1 to `values` were saved.
fn machine(values: u32, exchanges: bool) -> FakeWorld {
    let world = FakeWorld::new();
    if !exchanges {
        world.without_exchange();
    }
    for value in 1..=values {
        assert_eq!(put(&world, value), SaveOutcome::Durable { retries: 0 });
    }
    world
}

fn refused() -> WorldError {
    WorldError::Io("refused".to_owned())
}

/// Every file system and every history that matters: no value yet, no sibling yet, one of each.
fn machines() -> impl Iterator<Item = (u32, bool)> {
    (0..=3).flat_map(|values| [true, false].map(|exchanges| (values, exchanges)))
}

/// Checks what is left of `world` after a save of `new` over one of `old`, for every survival, and
/// that life goes on.
fn check(world: &FakeWorld, saved: &SaveOutcome, old: &[u32], new: u32, note: &str) -> u32 {
    let mut cases = 0;
    for survival in Survival::all(3) {
        let after = world.reboot(survival);
        let found = get(&after);
        if matches!(saved, SaveOutcome::Durable { .. }) {
            assert_eq!(found, new, "{note} {survival:?}: said durable, was not");
        }
        assert!(found == new || old.contains(&found), "{note} {survival:?}: {found}");
        mend(&after);
        assert_eq!(
            put(&after, new + 1),
            SaveOutcome::Durable { retries: 0 },
            "{note} {survival:?}"
        );
        assert_eq!(get(&after.reboot(Survival::NOTHING)), new + 1, "{note} {survival:?}");
        cases += 1;
    }
    cases
}

#[test]
fn a_crash_anywhere_leaves_the_old_or_the_new_value() {
    let mut cases = 0;
    for (old, exchanges) in machines() {
        for op in 0..32 {
            let world = machine(old, exchanges);
            world.crash_at(op);
            let saved = put(&world, old + 1);
            world.revive();
            cases += check(&world, &saved, &[old], old + 1, &format!("{old} {exchanges} op {op}"));
            if saved == (SaveOutcome::Durable { retries: 0 }) {
                break;
            }
        }
    }
    assert!(cases > 1_000, "{cases}");
}

#[test]
fn a_second_crash_while_mending_changes_nothing() {
    for (old, exchanges) in machines() {
        let first = (0..9).flat_map(|op| Survival::all(3).into_iter().map(move |it| (op, it)));
        for (op, survival) in first.step_by(if full() { 1 } else { 7 }) {
            let world = machine(old, exchanges);
            world.crash_at(op);
            let _ = put(&world, old + 1);
            for second in 0..9 {
                let world = world.reboot(survival);
                let found = get(&world);
                world.crash_at(second);
                if let LoadedDocument::Torn { .. } = load(&world, Path::new(PATH), 1 << 20) {
                    restore(&world, Path::new(PATH)).ok();
                }
                let saved = put(&world, old + 2);
                world.revive();
                let note = format!("{old} {exchanges} ops {op} {second} {survival:?}");
                check(&world, &saved, &[found], old + 2, &note);
            }
        }
    }
}

#[test]
fn a_killed_process_leaves_nothing_that_a_later_crash_turns_into_a_loss() {
    for (old, exchanges) in machines() {
        for (killed, op) in (0..9).flat_map(|killed| (0..9).map(move |op| (killed, op))) {
            let world = machine(old, exchanges);
            world.crash_at(killed);
            let _ = put(&world, old + 1);
            world.revive();
            mend(&world);
            world.crash_at(op);
            let saved = put(&world, old + 2);
            world.revive();
            let note = format!("{old} {exchanges} killed {killed} op {op}");
            check(&world, &saved, &[old, old + 1], old + 2, &note);
        }
    }
}

#[test]
fn one_refusal_anywhere_is_survived_by_a_retry_and_a_crash_after_it_too() {
    for (old, exchanges) in machines() {
        for refuse in 0..8 {
            let world = machine(old, exchanges);
            world.refuse_at(refuse, refused());
            let saved = put(&world, old + 1);
            assert!(matches!(saved, SaveOutcome::Durable { .. }), "{old} op {refuse}: {saved:?}");
            for op in 0..24 {
                let world = machine(old, exchanges);
                world.refuse_at(refuse, refused());
                world.crash_at(op);
                let saved = put(&world, old + 1);
                world.revive();
                let note = format!("{old} {exchanges} refused {refuse} op {op}");
                check(&world, &saved, &[old], old + 1, &note);
            }
        }
    }
}

#[test]
fn lasting_refusals_with_a_crash_in_this_save_or_the_next() {
    let kinds = [
        (Op::Write, ".tmp"),
        (Op::SyncFile, ""),
        (Op::SyncFile, ".tmp"),
        (Op::Read, ".tmp"),
        (Op::Exchange, ""),
        (Op::Rename, ""),
        (Op::SyncFolder, ""),
        (Op::Remove, ""),
        (Op::Write, "/state.json"),
    ];
    for (old, exchanges) in machines() {
        for ((op, path_end), crash) in kinds.iter().flat_map(|it| (0..28).map(move |at| (it, at))) {
            let world = machine(old, exchanges);
            world.refuse_always(*op, path_end, refused());
            world.crash_at(crash);
            let saved = put(&world, old + 1);
            world.revive();
            world.refuse_nothing();
            let note = format!("{old} {exchanges} {op:?} {path_end} crash {crash}");
            check(&world, &saved, &[old], old + 1, &note);
            for later in 0..9 {
                let world = machine(old, exchanges);
                world.refuse_always(*op, path_end, refused());
                let _ = put(&world, old + 1);
                world.refuse_nothing();
                mend(&world);
                world.crash_at(later);
                let saved = put(&world, old + 2);
                world.revive();
                let note = format!("{note}, later {later}");
                check(&world, &saved, &[old, old + 1], old + 2, &note);
                if crash > 0 {
                    break; // The first save was not crashed: once is enough.
                }
            }
        }
    }
}

#[test]
fn a_refused_rename_is_degraded_and_a_full_disk_is_not_saved() {
    let outcome = |op, path_end, old| {
        let world = machine(old, false);
        world.refuse_always(op, path_end, refused());
        (put(&world, old + 1), get(&world))
    };
    for old in [0, 1, 2] {
        let (saved, value) = outcome(Op::Rename, "", old);
        assert!(matches!(saved, SaveOutcome::Degraded { retries: 2, .. }), "{saved:?}");
        assert_eq!(value, old + 1);
        for op in [Op::Write, Op::SyncFile] {
            let (saved, value) = outcome(op, ".tmp", old);
            assert!(matches!(saved, SaveOutcome::NotSaved { retries: 2, .. }), "{saved:?}");
            assert_eq!(value, old);
        }
    }
}

// The whole commit of a session, with its lock, its folders, its log and its recovery.

fn id() -> SessionId {
    SessionId::parse("s1").unwrap()
}

fn sessions(world: &FakeWorld) -> SessionStore<'_> {
    SessionStore::new(world, "/work/.policyd", Layout::policyd())
}

/// Blocks once more; `None` where the session cannot be locked.
fn block(world: &FakeWorld) -> Option<SaveOutcome> {
    let store = sessions(world);
    let mut locked = store.lock(&id(), Duration::ZERO).ok()?;
    let mut state = locked.load().state;
    state.main.consecutive_blocks += 1;
    state.main.total_blocks += 1;
    Some(locked.commit(&state))
}

/// The counter and where it comes from; it is mended on the way.
fn counter(world: &FakeWorld) -> (u32, StateOrigin) {
    let store = sessions(world);
    let peeked = store.peek(&id()).state.main.consecutive_blocks;
    let found = store.lock(&id(), Duration::ZERO).unwrap().load();
    assert_eq!(peeked, found.state.main.consecutive_blocks);
    (peeked, found.origin)
}

fn session(blocks: u32, exchanges: bool) -> FakeWorld {
    let world = FakeWorld::new();
    if !exchanges {
        world.without_exchange();
    }
    for _ in 0..blocks {
        assert_eq!(block(&world), Some(SaveOutcome::Durable { retries: 0 }));
    }
    world
}

fn check_session(world: &FakeWorld, saved: Option<&SaveOutcome>, old: u32, note: &str) {
    for survival in Survival::all(6) {
        let after = world.reboot(survival);
        let (found, origin) = counter(&after);
        let lost = matches!(origin, StateOrigin::Recovered { from: RecoverySource::Nothing, .. });
        assert!(!lost, "{note} {survival:?}");
        assert!(found == old || found == old + 1, "{note} {survival:?}: {found}");
        if matches!(saved, Some(SaveOutcome::Durable { .. })) {
            assert_eq!(found, old + 1, "{note} {survival:?}: said durable, was not");
        }
        assert_eq!(block(&after), Some(SaveOutcome::Durable { retries: 0 }), "{note} {survival:?}");
        assert_eq!(counter(&after.reboot(Survival::NOTHING)).0, found + 1, "{note}");
    }
}

#[test]
fn a_session_counter_is_the_old_or_the_new_one_after_any_crash() {
    for (old, exchanges) in machines() {
        for op in 0..40 {
            let world = session(old, exchanges);
            world.crash_at(op);
            let saved = block(&world);
            world.revive();
            check_session(&world, saved.as_ref(), old, &format!("{old} {exchanges} op {op}"));
            if world.ops() < op {
                break;
            }
        }
    }
}

#[test]
fn a_session_survives_one_refusal_anywhere() {
    for (old, exchanges) in machines() {
        for op in 0..20 {
            let world = session(old, exchanges);
            world.refuse_at(op, refused());
            let saved = block(&world);
            check_session(&world, saved.as_ref(), old, &format!("{old} {exchanges} refused {op}"));
        }
    }
}

/// Corrupts the state after three blocks, crashes in operation `op` of the next one, and checks
/// that the counter is at least `least` whatever survives.
fn crash_in_repair(garbage: &str, exchanges: bool, with_log: bool, op: u32, least: u32) {
    let folder = Path::new("/work/.policyd/sessions/s1");
    let (state, log) = (folder.join("state.json"), folder.join("diagnostic.jsonl"));
    let world = session(3, exchanges);
    world.write(&state, garbage.as_bytes()).unwrap();
    world.sync_file(&state).unwrap();
    world.sync_file(&log).unwrap();
    if !with_log {
        world.remove(&log).unwrap();
    }
    world.sync_folder(folder).unwrap();
    world.crash_at(op);
    let _ = block(&world);
    world.revive();
    for survival in Survival::all(6) {
        let found = counter(&world.reboot(survival)).0;
        let note = format!("{garbage} {exchanges} {with_log} op {op} {survival:?}");
        assert!((least..=4).contains(&found), "{note}: {found}");
    }
}

#[test]
fn a_corrupt_session_keeps_its_counter_through_a_crash_in_its_repair() {
    for (garbage, op) in
        ["{\"consec", "[]"].into_iter().flat_map(|it| (0..30).map(move |op| (it, op)))
    {
        crash_in_repair(garbage, true, true, op, 3);
        crash_in_repair(garbage, false, true, op, 3);
        // Without a log there is the sibling, one block behind.
        crash_in_repair(garbage, true, false, op, 2);
    }
}

#[test]
fn a_killed_process_then_a_refused_folder_sync_then_a_crash() {
    for (old, exchanges) in machines() {
        for (killed, op) in (0..9).flat_map(|killed| (0..9).map(move |op| (killed, op))) {
            let world = machine(old, exchanges);
            world.crash_at(killed);
            let _ = put(&world, old + 1);
            world.revive();
            mend(&world);
            world.refuse_always(Op::SyncFolder, "", refused());
            let _ = put(&world, old + 2);
            world.refuse_nothing();
            mend(&world);
            world.crash_at(op);
            let saved = put(&world, old + 3);
            world.revive();
            let note = format!("{old} {exchanges} killed {killed} op {op}");
            check(&world, &saved, &[old, old + 1, old + 2], old + 3, &note);
        }
    }
}
