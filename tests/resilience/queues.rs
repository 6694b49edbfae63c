//! The lists of tasks on disk: every form is read, what is foreign is kept, and no task is lost
//! whenever power is lost and whatever is refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use policyd::state::dead_letter::{Attempt, Task, TaskEvent, TaskQueue, step};
use policyd::store::file::Durability;
use policyd::store::queues::QueueStore;
use policyd::world::fake::{FakeWorld, Op, Survival};
use policyd::world::{World, WorldError};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::support::{rounds, snapshot};

const FULL: &str = r#"{
  "tasks": [{"task_id": "t1", "original_queue": "in-progress", "failure_count": 5,
    "attempts": [{"attempt_number": 1, "timestamp": "2026-01-25T10:00:00Z", "error_message": "E"}],
    "recovery_strategy": "dependency_blocked", "owner": "me",
    "task_data": {"title": "T", "dependencies": ["t0"], "estimate": 3}}, "a note"],
  "metadata": {"last_reviewed": "2026-01-25T08:00:00Z", "total_abandoned": 2, "note": "kept"},
  "format": 7
}"#;

#[test]
fn every_form_of_the_file_is_read() {
    for (text, count) in [
        ("[]", 0),
        ("", 0),
        ("{\"tasks\":[]}", 0),
        ("[{\"id\": \"a\"}, 5, null, {\"no\": \"id\"}]", 1),
        (
            "\u{feff}{\"tasks\": [{\"task_id\": \"a\", \"failure_count\": \"many\", \"attempts\": {}}]}",
            1,
        ),
        (FULL, 1),
    ] {
        let desk = Desk::new();
        desk.world.put("/work/.policyd/queue/dead-letter.json", text);
        let said = desk.call("dlq list --format json");
        assert_eq!((said.code, said.lines().len()), (0, count), "{text}: {said:?}");
        assert_eq!(said.err, "", "{text}");
        let added = desk.call("dlq add new --error E --immediately");
        assert_eq!(added.code, 0, "{added:?}");
        assert_eq!(desk.call("dlq list").out.lines().count(), count + 1, "{text}");
    }
}

#[test]
fn what_is_foreign_is_kept() {
    let desk = Desk::new();
    desk.world.put("/work/.policyd/queue/dead-letter.json", FULL);
    desk.put("queue/completed.json", &json!({"tasks": [{"id": "t0"}]}));
    assert_eq!(desk.call("dlq add t1 --error again").code, 0);
    assert_eq!(desk.call("dlq review").code, 0);
    let lists = ["pending", "dead-letter"].map(|it| desk.file(&format!("queue/{it}.json")));
    let text = format!("{:#}\n{:#}", lists[0], lists[1]);
    snapshot("resilience", "dead_letter__a_foreign_file_after_a_review", text);
}

#[test]
fn a_damaged_list_is_put_aside_and_said_so() {
    let desk = Desk::new();
    desk.world.put("/work/.policyd/queue/dead-letter.json", "{\"tasks\": [{]");
    let said = desk.call("dlq list");
    assert!(said.err.contains("queue/dead-letter.json` is damaged"), "{said:?}");
    assert_eq!(desk.call("dlq add t --error E --immediately").code, 0);
    let aside = desk.names("queue").into_iter().find(|it| it.contains(".corrupt-")).unwrap();
    let kept = desk.world.get(format!("/work/.policyd/queue/{aside}")).unwrap();
    assert_eq!(kept, b"{\"tasks\": [{]");
    assert_eq!(desk.call("dlq list").out.lines().count(), 1);
}

/// The lists that hold a task.
fn places(world: &FakeWorld, id: &str) -> Vec<TaskQueue> {
    let of = |place: &TaskQueue| {
        let path = format!("/work/.policyd/queue/{}.json", place.as_str());
        let bytes = world.get(path).unwrap_or_default();
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let tasks = value["tasks"].as_array().cloned().unwrap_or_default();
        tasks.iter().any(|it| it["task_id"] == id)
    };
    TaskQueue::ALL.into_iter().filter(of).collect()
}

/// A desk with one dead letter, and the call that moves it.
fn with_dead_letter() -> Desk {
    let desk = Desk::new();
    let words = ["dlq", "add", "t", "--title", "T", "--error", "E", "--immediately"];
    assert_eq!(desk.words(&words).code, 0);
    desk
}

fn store(world: &FakeWorld) -> QueueStore<'_> {
    let root = Path::new("/work/.policyd");
    QueueStore::new(world, root, Durability::default(), Duration::ZERO)
}

/// One event of one task, made where it is not there yet.
fn happen(world: &FakeWorld, id: &str, event: TaskEvent<'_>) -> Result<(), WorldError> {
    let store = store(world);
    store.change(world.now(), |lists| {
        let known = lists.find(id).cloned();
        let task = known.unwrap_or_else(|| Task { id: id.to_owned(), ..Task::default() });
        let (next, effects) = step(&task, event, world.now());
        lists.put(next, &effects);
        Ok(())
    })?;
    // What may be undone by a loss of power is not done.
    store.degraded().map_or(Ok(()), |why| Err(WorldError::Io(why)))
}

fn attempt() -> Attempt {
    Attempt { error: "E".to_owned(), counts: true, ..Attempt::default() }
}

/// A machine with one dead letter.
fn machine(exchanges: bool) -> FakeWorld {
    let world = FakeWorld::new();
    world.put_folder("/work");
    if !exchanges {
        world.without_exchange();
    }
    happen(&world, "t", TaskEvent::Failed(attempt())).unwrap();
    happen(&world, "t", TaskEvent::Entered { strategy: "" }).unwrap();
    world
}

#[test]
fn a_task_is_on_a_list_whenever_power_is_lost() {
    let events =
        [TaskEvent::Released, TaskEvent::GivenUp { reason: "no" }, TaskEvent::Failed(attempt())];
    let mut crashes = 0;
    for (event, exchanges) in events.into_iter().flat_map(|it| [(it.clone(), true), (it, false)]) {
        let whole = machine(exchanges);
        let before = whole.ops();
        happen(&whole, "t", event.clone()).unwrap();
        for op in before..whole.ops() {
            let world = machine(exchanges);
            world.crash_at(op);
            let done = happen(&world, "t", event.clone());
            for survival in Survival::all(2) {
                let after = world.reboot(survival);
                let found = places(&after, "t");
                let note = format!("{event:?}, op {op}, {survival:?}: on {found:?}");
                let lists = store(&after).peek();
                assert_eq!(lists.tasks.len(), 1, "{note}");
                if done.is_ok() {
                    assert_eq!(lists.tasks[0].place, store(&whole).peek().tasks[0].place, "{note}");
                }
                // The next change mends what is left.
                happen(&after, "other", TaskEvent::Failed(attempt())).unwrap();
                assert_eq!(places(&after, "t").len(), 1, "{note}");
                crashes += 1;
            }
        }
    }
    assert!(crashes > 500, "{crashes} crashes");
}

#[test]
fn a_change_that_cannot_be_saved_is_said_and_loses_nothing() {
    for op in [Op::Write, Op::SyncFile, Op::Rename, Op::Lock] {
        let desk = with_dead_letter();
        desk.world.without_exchange();
        let before = places(&desk.world, "t");
        desk.world.refuse_always(op, "", WorldError::Io("disk full".to_owned()));
        let said = desk.call("dlq retry t");
        desk.world.refuse_nothing();
        if said.code == 3 {
            assert!(said.err.contains("could not change"), "{op:?}: {said:?}");
            assert!(said.err.contains("no data is lost"), "{op:?}");
        }
        let after = places(&desk.world, "t");
        assert!(after == before || after.contains(&TaskQueue::Pending), "{op:?}: {after:?}");
        assert_eq!(desk.call("dlq list --in all").out.lines().count(), 1, "{op:?}");
    }
}

#[test]
fn an_abandoned_task_is_kept_for_its_time() {
    let rules = "retention: {max_age: 10d, max_count: 2}\n";
    let desk = Desk::new().with_pack("dead_letter.yaml", rules);
    for id in ["a", "b", "c"] {
        assert_eq!(desk.words(&["dlq", "add", id, "--error", "E", "--immediately"]).code, 0);
        assert_eq!(desk.words(&["dlq", "abandon", id, "--reason", "no"]).code, 0);
        desk.advance(1);
    }
    assert_eq!(desk.call("dlq review").code, 0);
    let ids = |desk: &Desk| -> BTreeSet<String> {
        let said = desk.call("dlq list --in abandoned --format json").lines();
        said.iter().map(|it| it["task_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&desk), ["b", "c"].map(str::to_owned).into());
    desk.advance(240);
    assert_eq!(desk.call("dlq review").code, 0);
    assert_eq!(ids(&desk), BTreeSet::new());
    let log = String::from_utf8(desk.world.get("/work/.policyd/logs/dead-letter.jsonl").unwrap())
        .unwrap();
    let whats: Vec<Value> =
        log.lines().map(|it| serde_json::from_str::<Value>(it).unwrap()["what"].clone()).collect();
    let expired = whats.iter().filter(|it| **it == json!("expired")).count();
    assert_eq!(expired, 3, "what is forgotten is written down: {whats:?}");
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What is known for sure of one task: attempts that were acknowledged, and those that may be there.
#[derive(Debug, Clone, Copy, Default)]
struct Model {
    sure: usize,
    maybe: usize,
    /// It may be done, and gone.
    may_be_gone: bool,
}

/// Many processes on one machine, which loses power, has a clock that jumps and a disk that refuses:
/// what was acknowledged is there, and every task is on one list.
#[test]
fn no_task_and_no_attempt_is_lost_in_a_thousand_histories() {
    let (mut acknowledged, histories) = (0, rounds(1_000));
    for seed in 0..histories {
        let mut dice = Dice(seed);
        let mut world = FakeWorld::new();
        world.put_folder("/work");
        let mut model = std::collections::BTreeMap::<String, Model>::new();
        for _ in 0..25 {
            match dice.below(12) {
                0 => world.crash_at(world.ops() + u32::try_from(dice.below(40)).unwrap()),
                1 => world.refuse_at(
                    world.ops() + u32::try_from(dice.below(20)).unwrap(),
                    WorldError::Io("disk full".to_owned()),
                ),
                2 => world.advance(Duration::from_secs(dice.below(100_000))),
                3 => world.set_now(policyd::time::Timestamp::from_millis(1_700_000_000_000)),
                _ => {}
            }
            let id = format!("t{}", dice.below(3));
            let event = match dice.below(8) {
                0 => TaskEvent::Started,
                1 => TaskEvent::Entered { strategy: "dependency_blocked" },
                2 => TaskEvent::Released,
                3 => TaskEvent::GivenUp { reason: "no" },
                4 => TaskEvent::Resolved,
                _ => TaskEvent::Failed(attempt()),
            };
            let known = model.entry(id.clone()).or_default();
            let (fails, ends) =
                (matches!(event, TaskEvent::Failed(_)), event == TaskEvent::Resolved);
            match happen(&world, &id, event) {
                Ok(()) if ends => *known = Model::default(),
                Ok(()) => {
                    known.sure += usize::from(fails);
                    known.maybe += usize::from(fails);
                    acknowledged += 1;
                }
                Err(_) => {
                    known.maybe += usize::from(fails);
                    known.may_be_gone |= ends;
                    let all = Survival::all(2);
                    let at = usize::try_from(dice.below(all.len() as u64)).unwrap();
                    world = world.reboot(all[at]);
                }
            }
            // Looking is no part of the history.
            let seen = world.reboot(Survival::EVERYTHING);
            let lists = store(&seen).peek();
            for (id, known) in &model {
                let found = lists.find(id).map_or(0, |it| it.attempts.len());
                let gone = known.may_be_gone && found < known.sure;
                assert!(
                    gone || (known.sure..=known.maybe).contains(&found),
                    "seed {seed}: {id} has {found}, {known:?}"
                );
            }
        }
    }
    assert!(acknowledged > histories * 10, "{acknowledged} events were taken in");
}
