//! Each stored document in one table: what a change does if the document is missing, damaged, newer, or without a
//! version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::block_copies::BlockCopy;
use crate::breakers::BreakerStore;
use crate::choice_files::ChoiceFiles;
use crate::choice_record;
use crate::daily_costs;
use crate::enforcement::EnforcementStore;
use crate::escalations::{EscalationStore, EscalationSubject};
use crate::foreign_choices;
use crate::memory::MemoryStore;
use crate::pack_history::PackHistoryStore;
use crate::pack_lock::PackLock;
use crate::queues::QueueStore;
use crate::runs::RunStore;
use crate::session_projects::{SessionProject, SessionProjects};
use crate::signals::SignalStore;
use crate::summaries::{Summaries, Summary};
use crate::trust::{TrustStore, TrustedPack};
use crate::trusted_texts::{TrustedTextStore, TrustedTexts};
use crate::user_choices::UserChoiceStore;
use crate::user_state::UserStateFile;
use policyd_base::id::SessionId;
use policyd_facts::event::{Event, EventKind};
use policyd_policy::EnforcementMode;
use policyd_policy::builtin;
use policyd_state::BlockLimiterState;
use policyd_state::breaker::{BreakerEvent, BreakerSettings};
use policyd_state::dead_letter::{Task, TaskQueue};
use policyd_state::escalation::Escalation;
use policyd_state::memory::MemoryEntry;
use policyd_state::run::Run;
use policyd_world::fake::FakeWorld;

const ROOT: &str = "/work/.policyd";
const WAIT: Duration = Duration::ZERO;

/// A document, and a change of it. Numbers make different changes.
pub(crate) struct StoredCase {
    pub(crate) name: &'static str,
    pub(crate) if_damaged: DamageAction,
    /// Changes the document. The result does not matter: the file does.
    pub(crate) change: fn(&FakeWorld, u32),
}

use DamageAction::{Quarantine, Refuse};

const DOCUMENTS: [StoredCase; 18] = [
    StoredCase { name: "projects/work-", if_damaged: Refuse, change: choose },
    StoredCase { name: "policyd/choices.json", if_damaged: Refuse, change: record_choice },
    StoredCase { name: "enforcement.json", if_damaged: Refuse, change: enforce },
    StoredCase { name: "trust.json", if_damaged: Refuse, change: trust },
    StoredCase { name: "history.json", if_damaged: Refuse, change: fetch },
    StoredCase { name: "policies.lock", if_damaged: Refuse, change: lock_packs },
    StoredCase { name: "numbers.json", if_damaged: Refuse, change: save_user_state },
    StoredCase { name: "runs/r/state.json", if_damaged: Refuse, change: continue_run },
    StoredCase { name: "policyd/trusted/", if_damaged: Quarantine, change: save_texts },
    StoredCase { name: "memory.json", if_damaged: Quarantine, change: remember_text },
    StoredCase { name: "daily-costs.json", if_damaged: Quarantine, change: spend },
    StoredCase { name: "policyd/blocks/", if_damaged: Quarantine, change: block },
    StoredCase { name: "session-projects/", if_damaged: Quarantine, change: remember },
    StoredCase { name: "circuit-breakers.json", if_damaged: Quarantine, change: fail },
    StoredCase { name: "queue/dead-letter.json", if_damaged: Quarantine, change: add_task },
    StoredCase { name: "escalations/index.json", if_damaged: Quarantine, change: ask },
    StoredCase { name: "state/signals.json", if_damaged: Quarantine, change: acknowledge },
    StoredCase { name: "context-summaries.json", if_damaged: Quarantine, change: summarize },
];

fn choose(world: &FakeWorld, number: u32) {
    let store = UserChoiceStore::new(world, Path::new(ROOT));
    drop(store.change(|it| it.add_approval(&number.to_string())));
}

fn record_choice(world: &FakeWorld, number: u32) {
    choice_record::record(world, Path::new("/x"), &number.to_le_bytes());
}

fn enforce(world: &FakeWorld, number: u32) {
    let store = EnforcementStore::new(world);
    drop(store.change(|it| {
        it.mode = EnforcementMode::Observe;
        it.enforced.insert(number.to_string())
    }));
}

fn trust(world: &FakeWorld, number: u32) {
    let store = TrustStore::new(world, Path::new("/home/me/.config/policyd"));
    let trusted = TrustedPack { folder: number.to_string(), hash: None, since: world.now() };
    drop(store.add(trusted));
}

fn save_texts(world: &FakeWorld, number: u32) {
    let files = BTreeMap::from([("guards.yaml".to_owned(), number.to_string())]);
    let (folder, hash) = ("/work/pack".to_owned(), "1".to_owned());
    let texts = TrustedTexts { folder, hash, files };
    drop(TrustedTextStore::new(world, Path::new("/home/me/.config/policyd")).save(&texts));
}

fn fetch(world: &FakeWorld, number: u32) {
    let store = PackHistoryStore::new(world, Path::new("/home/me/packs"));
    drop(store.change(|it| it.replace("a", Some(&format!("{number}.0.0")))));
}

fn lock_packs(world: &FakeWorld, number: u32) {
    world.put_folder("/work/pack");
    world.put("/work/pack/number", number.to_string());
    drop(PackLock::new(Vec::new()).save(world, Path::new("/work/pack")));
}

fn save_user_state(world: &FakeWorld, number: u32) {
    let opened = UserStateFile::open::<BTreeMap<String, u32>>(world, "numbers.json", Refuse, WAIT);
    if let Ok((file, mut numbers)) = opened {
        numbers.insert("number".to_owned(), number);
        file.save(&numbers, &Durability::default()).unwrap();
    }
}

fn continue_run(world: &FakeWorld, number: u32) {
    let store = RunStore::new(world, Path::new(ROOT), Durability::default());
    let run = match store.load("r") {
        Err(crate::runs::Unusable::Document(_)) => return,
        Err(crate::runs::Unusable::None) => Run { id: "r".to_owned(), ..Run::default() },
        Ok(run) => run,
    };
    store.save(&Run { iteration: number, ..run }).unwrap();
}

fn block(world: &FakeWorld, number: u32) {
    let event = Event::of(EventKind::Stop, SessionId::sanitize("s"));
    let limiter = BlockLimiterState { total_blocks: number.into(), ..BlockLimiterState::default() };
    BlockCopy::of(world, &event).save(&limiter);
}

fn remember(world: &FakeWorld, number: u32) {
    let directory = PathBuf::from(format!("/work/{number}"));
    let (root, main) = (directory.clone(), directory.clone());
    let mut known = SessionProjects::load(world, &SessionId::sanitize("s"));
    known.remember(SessionProject { directory, root, main });
}

fn remember_text(world: &FakeWorld, number: u32) {
    let store = MemoryStore::new(world, Path::new(ROOT), &Durability::default());
    drop(store.change(WAIT, |it| drop(it.insert(number.to_string(), MemoryEntry::default()))));
}

fn spend(world: &FakeWorld, number: u32) {
    drop(daily_costs::change(world, &Durability::default(), WAIT, |mut it| {
        it.record("/work", &number.to_string(), 1, world.now());
        it
    }));
}

fn fail(world: &FakeWorld, number: u32) {
    let store = BreakerStore::new(world, Path::new(ROOT), Durability::default());
    let why = number.to_string();
    let (event, settings) = (BreakerEvent::failure(&why), BreakerSettings::default());
    drop(store.record("api", event, &settings, world.now()));
}

fn add_task(world: &FakeWorld, number: u32) {
    let store = QueueStore::new(world, Path::new(ROOT), Durability::default(), WAIT);
    let task = Task { id: number.to_string(), place: TaskQueue::DeadLetter, ..Task::default() };
    drop(store.change(world.now(), |lists| {
        lists.put(task, &[]);
        Ok(())
    }));
}

fn ask(world: &FakeWorld, number: u32) {
    let store = EscalationStore::new(world, Path::new(ROOT), Durability::default(), WAIT);
    let title = number.to_string();
    drop(store.open(EscalationSubject::Task("t"), world.now(), |id| {
        (Escalation { id: id.to_owned(), title, ..Escalation::default() }, String::new())
    }));
}

fn acknowledge(world: &FakeWorld, number: u32) {
    let pack = builtin::pack();
    let policy = policyd_policy::load::load(&pack, &pack).policy.unwrap();
    let store = SignalStore::new(world, Path::new(ROOT), &policy.signals, Durability::default());
    drop(store.remove_answers(&[&number.to_string()], world.now()));
}

fn summarize(world: &FakeWorld, number: u32) {
    let store = Summaries::new(world, Path::new(ROOT), Durability::default(), WAIT);
    let session = number.to_string();
    drop(store.keep(Summary { session, at: world.now(), ..Summary::default() }));
}

fn machine() -> FakeWorld {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    world.put_folder("/work");
    world
}

/// Returns the files whose path contains a text, without siblings and locks.
fn files(world: &FakeWorld, part: &str) -> Vec<PathBuf> {
    let is_hidden =
        |it: &Path| it.file_name().is_some_and(|it| it.to_string_lossy().starts_with('.'));
    let found = world.files().into_iter();
    found
        .filter(|it| it.to_string_lossy().replace('\\', "/").contains(part) && !is_hidden(it))
        .collect()
}

/// Returns the only file of a document that a first change created.
fn create(world: &FakeWorld, case: &StoredCase) -> PathBuf {
    (case.change)(world, 1);
    let found = files(world, case.name);
    assert_eq!(found.len(), 1, "{}: {found:?}", case.name);
    found.into_iter().next().unwrap()
}

/// Checks a document in each state that a file can have before a change.
pub(crate) fn check(case: &StoredCase, machine: fn() -> FakeWorld) {
    let name = case.name;
    // A torn file reads as its sibling, of which these machines have none.
    for damaged in ["{\"version\": 1, \"x", "17", "\"text\"", "[]"] {
        if damaged == "[]" && name.starts_with("queue/") {
            continue; // A queue of loki-mode can be a list.
        }
        let world = machine();
        let path = create(&machine(), case);
        world.put(&path, damaged);
        (case.change)(&world, 2);
        let all = files(&world, name);
        let is_aside = |it: &&PathBuf| it.to_string_lossy().contains(".corrupt-");
        match case.if_damaged {
            Refuse => {
                assert_eq!(world.get(&path).unwrap(), damaged.as_bytes(), "{name}: {damaged}");
                assert_eq!(all, [path], "{name}: {damaged}");
            }
            Quarantine => {
                let aside =
                    all.iter().find(is_aside).unwrap_or_else(|| panic!("{name}: {damaged}"));
                assert_eq!(world.get(aside).unwrap(), damaged.as_bytes(), "{name}");
                assert!(file::is_whole(&world.get(&path).unwrap()), "{name}: {damaged}");
            }
        }
    }
    let newer = "{\"version\": 2, \"unknown\": [1]}";
    let world = machine();
    let path = create(&world, case);
    world.remove(&file::sibling(&path)).ok();
    world.put(&path, newer);
    (case.change)(&world, 2);
    assert_eq!(world.get(&path).unwrap(), newer.as_bytes(), "{name}: newer");
    assert_eq!(files(&world, name), [path], "{name}: newer");
    let world = machine();
    let path = create(&world, case);
    let mut fields: Map<String, Value> =
        serde_json::from_slice(&world.get(&path).unwrap()).unwrap();
    fields.shift_remove("version");
    let unversioned = format!("{}\n\n", Value::Object(fields));
    world.put(&path, &unversioned);
    (case.change)(&world, 2);
    assert_ne!(world.get(&path).unwrap(), unversioned.as_bytes(), "{name}: without a version");
    assert_eq!(files(&world, name), [path], "{name}: without a version");
}

#[test]
fn no_change_overwrites_what_it_cannot_read() {
    for case in &DOCUMENTS {
        check(case, machine);
    }
}

#[test]
fn an_error_names_the_file_and_the_fix() {
    let world = machine();
    let path = PathBuf::from("/work/x.json");
    for (text, if_damaged, words) in [
        ("{", Refuse, ["is damaged", "remove it to begin again"]),
        ("{", Quarantine, ["is damaged", "leave it to policyd"]),
        (
            "{\"version\": 2}",
            Refuse,
            ["a newer version of policyd wrote it (format 2)", "update policyd"],
        ),
        ("{\"version\": 2}", Quarantine, ["format 2", "move the file away"]),
        ("{\"x\": \"too large for the limit\"}", Refuse, ["too large", "repair the file"]),
    ] {
        world.put(&path, text);
        let document = StoredDocument::new(&world, path.clone(), 20, if_damaged);
        let problem = document.load::<Value>().unwrap_err();
        for text in [problem.to_string(), problem.note()] {
            assert!(text.contains("/work/x.json"), "{text}");
            assert!(words.iter().all(|it| text.contains(it)), "{text}");
        }
        assert!(!problem.note().contains('\n'));
    }
    for text in ["", " \n", "\u{feff}"] {
        world.put(&path, text);
        let document = StoredDocument::new(&world, path.clone(), 20, Refuse);
        assert_eq!(document.load::<Value>(), Ok(None), "{text:?}");
    }
}

#[test]
fn a_record_that_cannot_be_used_is_an_error_at_each_event() {
    let world = machine();
    let path = "/home/me/.local/state/policyd/choices.json";
    for text in ["{", "{\"version\": 2}"] {
        world.put(path, text);
        choose(&world, 1);
        for _ in 0..2 {
            let files = ChoiceFiles::read(&world, Path::new(ROOT));
            assert!(foreign_choices::take_foreign_changes(&world, &files).is_err(), "{text}");
            assert_eq!(world.get(path).unwrap(), text.as_bytes());
        }
    }
}
