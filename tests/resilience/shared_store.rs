//! The shared store: files, a simulated server, and PostgreSQL pass one suite; simulated hosts lose nothing while the
//! server fails in every way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use policyd::net::RealNetwork;
use policyd::state::breaker::{BreakerEvent, BreakerFailure, BreakerSettings, Window};
use policyd::state::dead_letter::{Attempt, Task};
use policyd::state::escalation::{Escalation, EscalationEvent};
use policyd::store::breakers::BreakerStore;
use policyd::store::escalations::{EscalationStore, EscalationSubject, escalation_of, record_of};
use policyd::store::file::Durability;
use policyd::store::queues::{Lists, QueueStore};
use policyd::store::shared::action::{
    EscalationChange, SharedAction, SharedBreakerEvent, TaskChange, task_document,
};
use policyd::store::shared::{SharedStore, SyncLimits};
use policyd::time::Timestamp;
use policyd::world::World;
use policyd::world::fake::{FakeServer, FakeWorld, ServerFault, Survival};
use policyd::world::real::RealWorld;
use policyd::world::server::{
    ChangeResult, DocumentChange, DocumentServer, NewContent, ServerAddress, ServerError,
};
use serde_json::Value;

use crate::chance::Chance;
use crate::support::postgres;
use crate::support::rounds;

pub(crate) const ROOT: &str = "/work/.policyd";
pub(crate) const KEY: &str = "api/claude";
pub(crate) const GROUP: &str = "default";
pub(crate) const LIMITS: SyncLimits<'_> = SyncLimits {
    wait: Duration::from_millis(250),
    left: None,
    age_max: Duration::ZERO,
    at_once: true,
};

/// A place that keeps documents.
trait Backend {
    fn apply(&mut self, number: usize, action: &SharedAction, at: Timestamp);
    /// Documents by kind and name.
    fn documents(&mut self) -> Documents;
}

type Documents = BTreeMap<(String, String), Value>;

/// The files of a state directory.
struct Files(FakeWorld);

impl Backend for Files {
    fn apply(&mut self, _number: usize, action: &SharedAction, at: Timestamp) {
        let (root, durability) = (Path::new(ROOT), Durability::default());
        match action {
            SharedAction::Breaker { key, event, settings } => {
                let store = BreakerStore::new(&self.0, root, durability);
                match event {
                    SharedBreakerEvent::Request => drop(store.request(key, settings, at)),
                    _ => drop(store.record(key, event.as_event(), settings, at).unwrap()),
                }
            }
            SharedAction::Task { id, change } => {
                let store = QueueStore::new(&self.0, root, durability, Duration::ZERO);
                let work = |lists: &mut Lists| {
                    lists.apply(id, change.clone(), at);
                    Ok(())
                };
                store.change(at, work).unwrap();
            }
            SharedAction::Escalation { id, change } => {
                let store = EscalationStore::new(&self.0, root, durability, Duration::ZERO);
                let event = match change.clone() {
                    EscalationChange::Opened { record, text } => {
                        let subject = EscalationSubject::Task(id);
                        let asked = escalation_of(&record).unwrap();
                        drop(store.open(subject, at, |_| (asked, text)).unwrap());
                        return;
                    }
                    EscalationChange::Notified => EscalationEvent::Told,
                    EscalationChange::Answered { approved, decision, by } => {
                        EscalationEvent::Closed { approved, decision, by }
                    }
                };
                drop(store.step(id, event, at));
            }
            // Files contain no such documents of their own.
            SharedAction::Approval { .. }
            | SharedAction::Run { .. }
            | SharedAction::Signal { .. }
            | SharedAction::Void(_) => {}
        }
    }

    fn documents(&mut self) -> Documents {
        let (root, durability) = (Path::new(ROOT), Durability::default());
        let bytes = self.0.read(&root.join("state/circuit-breakers.json"), 1 << 20);
        let breakers: BTreeMap<String, Value> =
            bytes.map(|it| serde_json::from_slice(&it).unwrap()).unwrap_or_default();
        let breakers = breakers.into_iter().map(|(key, it)| (("breaker".to_owned(), key), it));
        let queues = QueueStore::new(&self.0, root, durability, Duration::ZERO).peek();
        let tasks = queues.tasks.into_iter();
        let tasks = tasks.map(|it| (("task".to_owned(), it.id.clone()), task_document(&it, None)));
        let store = EscalationStore::new(&self.0, root, Durability::default(), Duration::ZERO);
        let asked = store.all().unwrap().into_iter().map(|it| {
            let mut document = record_of(&it, None);
            document["text"] = store.question(&it.id).into();
            (("escalation".to_owned(), it.id), document)
        });
        breakers.chain(tasks).chain(asked).collect()
    }
}

/// A server.
struct Server(Box<dyn DocumentServer>);

impl Backend for Server {
    fn apply(&mut self, number: usize, action: &SharedAction, at: Timestamp) {
        let operation = format!("operation-{number}");
        let change = DocumentChange { operation: &operation, document: action.document() };
        let mut step = |text: Option<&str>, _: Timestamp| {
            let known: Option<Value> = text.map(|it| serde_json::from_str(it).unwrap());
            action.apply(known.as_ref(), at).0
        };
        assert_eq!(self.0.change(change, &mut step), Ok(ChangeResult::Committed));
        // A repeated operation has no effect.
        let again = self.0.change(change, &mut |_, _| NewContent::Removed);
        assert_eq!(again, Ok(ChangeResult::AppliedBefore));
    }

    fn documents(&mut self) -> Documents {
        let (mut since, mut documents) = (0, Vec::new());
        loop {
            let changes = self.0.changes(since).unwrap();
            let versions: Vec<i64> = changes.documents.iter().map(|it| it.version).collect();
            assert!(versions.is_sorted() && versions.iter().all(|it| *it <= changes.version));
            assert!(versions.iter().all(|it| *it > since));
            documents.extend(changes.documents);
            if !changes.has_more {
                break;
            }
            assert!(changes.version > since, "each answer goes on");
            since = changes.version;
        }
        let left = documents.into_iter().filter_map(|it| Some((it.kind, it.name, it.text?)));
        left.map(|(kind, name, text)| ((kind, name), serde_json::from_str(&text).unwrap()))
            .collect()
    }
}

fn address(url: &str) -> ServerAddress {
    let group = GROUP.to_owned();
    ServerAddress { url: url.to_owned(), password: None, authorities: None, group }
}

fn fake_server() -> Box<dyn DocumentServer> {
    let world = FakeWorld::new();
    world.join(&FakeServer::default());
    let mut server = world.connect(&address("postgres://x"), Duration::from_secs(1)).unwrap();
    server.migrate().unwrap();
    server
}

fn task_change(chance: &mut Chance, id: &str, at: Timestamp) -> TaskChange {
    let attempt = Attempt { at, error: "E\u{0}".to_owned(), counts: true, ..Attempt::default() };
    let generation = 1 + chance.below(3);
    let text = "x".to_owned();
    match chance.below(11) {
        0..3 => TaskChange::reported(&Task { id: id.to_owned(), ..Task::default() }, attempt),
        3 => TaskChange::Entered { strategy: text },
        4 => TaskChange::Claimed { holder: text, lease: Duration::from_secs(chance.below(200)) },
        5 => TaskChange::Unclaimed { generation },
        6 => TaskChange::Finished { generation },
        7 => TaskChange::Blocked { by: text },
        8 => TaskChange::Answered { by: text },
        9 => TaskChange::GivenUp { reason: text },
        _ => TaskChange::Released,
    }
}

fn escalation_change(chance: &mut Chance, id: &str, at: Timestamp) -> EscalationChange {
    match chance.below(5) {
        0 | 1 => {
            let asked = Escalation {
                id: id.to_owned(),
                title: "T".to_owned(),
                created: at,
                ..Escalation::default()
            };
            EscalationChange::Opened { record: record_of(&asked, None), text: format!("# {id}\n") }
        }
        2 | 3 => EscalationChange::Notified,
        _ => {
            let (decision, by) = ("yes".to_owned(), "ada".to_owned());
            EscalationChange::Answered { approved: chance.one_in(2), decision, by }
        }
    }
}

/// Plays random events on every backend; all of them end with the same documents.
fn conform(backends: &mut [(&str, &mut dyn Backend)], seeds: u64) {
    let mut number = 0;
    let mut asked = BTreeSet::new();
    for seed in 1..=seeds {
        let mut chance = Chance::new(seed);
        let mut now = Timestamp::from_millis(1_767_225_600_000);
        let key = format!("api/{seed}");
        for _ in 0..40 {
            now = now.plus(Duration::from_millis(chance.below(90_000)));
            let event = match chance.below(8) {
                0..4 => BreakerEvent::failure("529\u{0} overloaded"),
                4 => BreakerEvent::success(),
                5 => BreakerEvent::Failure(BreakerFailure {
                    retry_after: Some(Duration::from_secs(chance.below(400))),
                    ..BreakerFailure::new("429")
                }),
                6 => BreakerEvent::Reset,
                _ => BreakerEvent::Request,
            };
            let action = SharedAction::Breaker {
                key: key.clone(),
                event: event.into(),
                settings: Box::default(),
            };
            let id = format!("task-{seed}");
            let change = task_change(&mut chance, &id, now);
            let task = SharedAction::Task { id, change };
            // A second question of the same id would be a new document in the files.
            let id = format!("question-{seed}");
            let change = escalation_change(&mut chance, &id, now);
            let is_repeated =
                matches!(change, EscalationChange::Opened { .. }) && !asked.insert(seed);
            let question = (!is_repeated).then_some(SharedAction::Escalation { id, change });
            for action in [Some(action), Some(task), question].into_iter().flatten() {
                number += 1;
                backends.iter_mut().for_each(|(_, it)| it.apply(number, &action, now));
            }
        }
    }
    let mut all = backends.iter_mut().map(|(name, it)| (*name, it.documents()));
    let (_, first) = all.next().unwrap();
    assert!(first.keys().filter(|(kind, _)| kind == "breaker").count() as u64 == seeds);
    assert!(first.keys().any(|(kind, _)| kind == "task"));
    let answered = |it: &Value| it["status"] == "approved" || it["status"] == "rejected";
    assert!(first.iter().any(|((kind, _), it)| kind == "escalation" && answered(it)));
    for (name, breakers) in all {
        assert_eq!(breakers, first, "{name}");
    }
}

#[test]
fn files_and_a_simulated_server_agree() {
    let mut files = Files(FakeWorld::new());
    files.0.set_env("HOME", "/home/me");
    let mut server = Server(fake_server());
    conform(&mut [("files", &mut files), ("simulated server", &mut server)], rounds(100));
}

#[test]
#[ignore = "second tier: PostgreSQL"]
fn files_and_postgresql_agree() {
    let Some(postgres) = postgres::server("files_and_postgresql_agree") else { return };
    let mut files = Files(FakeWorld::new());
    files.0.set_env("HOME", "/home/me");
    let connected = RealWorld::new()
        .with_network(&RealNetwork)
        .connect(&address(&postgres.database()), Duration::from_secs(300));
    let mut server = connected.unwrap();
    assert_eq!(server.changes(0), Err(ServerError::NoSchema));
    assert_eq!(server.migrate(), Ok((0, 5)));
    assert_eq!(server.migrate(), Ok((5, 5)), "a second migration changes nothing");
    conform(&mut [("files", &mut files), ("PostgreSQL", &mut Server(server))], rounds(20));
}

/// A simulated host.
pub(crate) fn host(server: &FakeServer, name: &str) -> FakeWorld {
    let world = FakeWorld::new();
    world.set_env("HOSTNAME", name);
    configure(&world);
    world.join(server);
    world
}

pub(crate) fn configure(world: &FakeWorld) {
    world.set_env("HOME", "/home/me");
    world.put("/home/me/.config/policyd/config.yaml", "store: {url: \"postgres://db/x\"}\n");
}

pub(crate) fn shared(world: &FakeWorld) -> SharedStore<'_> {
    SharedStore::find(world, Path::new(ROOT), &Durability::default()).unwrap().unwrap()
}

/// Every failure counts, and none opens the breaker.
pub(crate) fn counting() -> BreakerSettings {
    let window = Window::Time(Duration::from_secs(10_000_000));
    BreakerSettings { threshold: u32::MAX, window, ..BreakerSettings::default() }
}

pub(crate) fn counted(text: Option<String>) -> u64 {
    let record: Value = text.map(|it| serde_json::from_str(&it).unwrap()).unwrap_or_default();
    record["failure_count"].as_u64().unwrap_or(0)
}

/// Plays one simulation: hosts record failures while the server fails, power is lost, and clocks jump.
fn play(seed: u64) {
    let mut chance = Chance::new(seed);
    let server = FakeServer::default();
    let mut hosts: Vec<FakeWorld> = ["a", "b", "c"].map(|it| host(&server, it)).into();
    shared(&hosts[0]).server(Duration::from_secs(1)).unwrap().migrate().unwrap();
    // Recorded for certain, and recorded perhaps.
    let (mut recorded, mut tried) = (0_u64, 0_u64);
    for _ in 0..60 {
        let at = usize::try_from(chance.below(3)).unwrap();
        let world = hosts[at].clone();
        world.advance(Duration::from_millis(chance.below(20_000)));
        match chance.below(10) {
            0..5 => {
                if chance.one_in(6) {
                    world.crash_at(u32::try_from(chance.below(30)).unwrap());
                }
                let store = BreakerStore::new(&world, Path::new(ROOT), Durability::default());
                let event = BreakerEvent::failure("529");
                tried += 1;
                let saved = store.record(KEY, event, &counting(), world.now());
                recorded += u64::from(saved.is_ok());
            }
            5..8 => {
                if chance.one_in(6) {
                    world.crash_at(u32::try_from(chance.below(40)).unwrap());
                }
                drop(shared_or_none(&world).map(|it| it.sync(LIMITS)));
            }
            8 => server.set_fault(match chance.below(10) {
                0 => Some(ServerFault::Down),
                1 => Some(ServerFault::Silent),
                2 => Some(ServerFault::ReadOnly),
                3 | 4 => Some(ServerFault::AnswerLost),
                5 => Some(ServerFault::ChangeLost),
                6 => Some(ServerFault::CommitLost),
                7 => Some(ServerFault::RolledBack),
                _ => None,
            }),
            _ => world.set_now(world.now().plus(Duration::from_secs(chance.below(900)))),
        }
        if world.stat(Path::new("/work")).is_err() {
            let survival = if chance.one_in(2) { Survival::EVERYTHING } else { Survival::NOTHING };
            hosts[at] = world.reboot(survival);
            configure(&hosts[at]);
        }
    }
    server.set_fault(None);
    for world in hosts.iter().chain(&hosts) {
        world.revive();
        let result = shared(world).sync(LIMITS).unwrap();
        assert_eq!((result.waiting, result.rejected.len()), (0, 0), "seed {seed}");
    }
    let document = server.document(GROUP, "breaker", KEY);
    let count = counted(document.clone());
    assert!((recorded..=tried).contains(&count), "seed {seed}: {recorded} <= {count} <= {tried}");
    for world in &hosts {
        let store = BreakerStore::new(world, Path::new(ROOT), Durability::default());
        let local = store.peek(KEY).unwrap().failures().count() as u64;
        assert_eq!(local, count, "seed {seed}: every copy is complete");
    }
}

fn shared_or_none(world: &FakeWorld) -> Option<SharedStore<'_>> {
    SharedStore::find(world, Path::new(ROOT), &Durability::default()).ok().flatten()
}

#[test]
fn nothing_is_lost_or_doubled_while_the_server_fails() {
    for seed in 1..=rounds(300) {
        play(seed);
    }
}

#[test]
fn a_dead_server_is_asked_rarely_and_the_user_is_notified_once() {
    let server = FakeServer::default();
    let world = host(&server, "a");
    shared(&world).server(Duration::from_secs(1)).unwrap().migrate().unwrap();
    server.set_fault(Some(ServerFault::Silent));
    let began = world.elapsed();
    let mut notified = 0;
    for _ in 0..20 {
        let store = BreakerStore::new(&world, Path::new(ROOT), Durability::default());
        store.record(KEY, BreakerEvent::failure("529"), &counting(), world.now()).unwrap();
        let limits = SyncLimits { at_once: false, ..LIMITS };
        assert!(shared(&world).sync(limits).is_err());
        notified += usize::from(shared(&world).notify_once());
    }
    let waited = world.elapsed() - began;
    assert_eq!((waited, notified), (LIMITS.wait, 1), "one attempt, then a pause");
    world.advance(Duration::from_secs(61));
    server.set_fault(None);
    let result = shared(&world).sync(SyncLimits { at_once: false, ..LIMITS }).unwrap();
    assert_eq!(result.sent, 20);
    assert!(!shared(&world).notify_once());
}

#[test]
fn times_of_another_clock_are_converted() {
    let server = FakeServer::default();
    server.set_ahead(Duration::from_secs(3_600));
    let (one, other) = (host(&server, "a"), host(&server, "b"));
    shared(&one).server(Duration::from_secs(1)).unwrap().migrate().unwrap();
    let settings = BreakerSettings { threshold: 1, ..BreakerSettings::default() };
    let store = BreakerStore::new(&one, Path::new(ROOT), Durability::default());
    store.record(KEY, BreakerEvent::failure("529"), &settings, one.now()).unwrap();
    shared(&one).sync(LIMITS).unwrap();
    shared(&other).sync(LIMITS).unwrap();
    let store = BreakerStore::new(&other, Path::new(ROOT), Durability::default());
    let wait = store.peek(KEY).unwrap().wait(&settings, other.now()).unwrap();
    assert!(wait > Duration::from_secs(290) && wait <= Duration::from_secs(301), "{wait:?}");
    // An hour later by the same clock, a trial call is permitted.
    let later = other.now().plus(Duration::from_secs(302));
    assert_eq!(store.peek(KEY).unwrap().wait(&settings, later), Some(Duration::ZERO));
}

#[test]
fn the_password_of_the_environment_is_used_if_nothing_else_has_one() {
    let world = host(&FakeServer::default(), "a");
    world.put("/work/ca.pem", "PEM");
    let password = |url: &str, more: &str| {
        let config = format!("store: {{url: \"{url}\"{more}}}\n");
        world.put("/home/me/.config/policyd/config.yaml", config);
        let settings = shared(&world).settings().clone();
        let address = settings.address(&world, Duration::ZERO).unwrap();
        let other = settings.address_of(&world, "postgres://admin@db/x").unwrap();
        (address.password, address.authorities.is_some(), other.password)
    };
    let text = |it: &str| Some(it.to_owned());
    assert_eq!(password("postgres://me@db/x", ""), (None, false, None));
    world.set_env("PGPASSWORD", "env");
    world.set_env("OTHER", "configured");
    assert_eq!(password("postgres://me@db/x", ""), (text("env"), false, text("env")));
    assert_eq!(password("postgres://me:url@db/x", "").0, None, "the URL has its own");
    assert_eq!(password("postgres://db/x?password=url", "").0, None);
    let configured = password("postgres://me@db/x", ", password_env: OTHER");
    assert_eq!(configured, (text("configured"), false, text("env")), "of another account");
    assert!(password("postgres://me@db/x?sslrootcert=/work/ca.pem", "").1);
}
