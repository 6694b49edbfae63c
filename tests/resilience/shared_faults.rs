//! Questions whose answer is lost, servers that lose changes, and subjects that are shared later, on simulated hosts.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use policyd::state::approval::{ApprovalEffect, BlockedCall};
use policyd::state::breaker::BreakerEvent;
use policyd::state::dead_letter::{Attempt, Task, TaskQueue};
use policyd::state::escalation::{Escalation, EscalationEvent};
use policyd::state::signal::SignalEvent;
use policyd::store::breakers::BreakerStore;
use policyd::store::escalations::{EscalationStore, EscalationSubject};
use policyd::store::file::Durability;
use policyd::store::queues::QueueStore;
use policyd::store::shared::action::{SharedAction, TaskChange};
use policyd::store::shared::{
    AnswerResult, COMMAND, QUICK, SharedSignal, SharedSignalEnd, SharedStore, SignalResponse,
    SyncError,
};
use policyd::world::World;
use policyd::world::fake::{FakeServer, FakeWorld, ServerFault, Survival};
use policyd::world::server::ServerError;
use serde_json::Value;

use crate::chance::Chance;
use crate::shared_store::LIMITS;
use crate::shared_store::{GROUP, KEY, ROOT, configure, counted, counting, host, shared};
use crate::support::rounds;

const SIGNALS: &str = "store: {url: \"postgres://db/x\", share: [signals]}\n";
const EVERYTHING: &str =
    "store: {url: \"postgres://db/x\", share: [tasks, escalations, approvals, signals]}\n";
const CONFIG: &str = "/home/me/.config/policyd/config.yaml";

/// Hosts that share signals.
fn hosts(server: &FakeServer) -> [FakeWorld; 2] {
    let hosts = ["a", "b"].map(|name| host(server, name));
    hosts.iter().for_each(|it| it.put(CONFIG, SIGNALS));
    shared(&hosts[0]).server(Duration::from_secs(1)).unwrap().migrate().unwrap();
    hosts
}

/// Emits a signal on a host and synchronizes it. Returns the name of its document.
fn emit(world: &FakeWorld) -> String {
    let signal = SharedSignal {
        id: "s1".to_owned(),
        signal: "TESTS_PASSED".to_owned(),
        created: world.now(),
        ..SharedSignal::default()
    };
    shared(world).share_signal(signal, world.now()).unwrap();
    shared(world).sync(LIMITS).unwrap();
    shared(world).document_of("s1").unwrap().unwrap()
}

fn consume(world: &FakeWorld, document: &str) -> Result<SignalResponse, SyncError> {
    shared(world).decide_signal(document, SignalEvent::Consume { by: "agent" }, LIMITS)
}

/// The end of the signal on the server.
fn ended(server: &FakeServer, document: &str) -> Value {
    let text = server.document(GROUP, "signal", document).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["ended"].clone()
}

#[test]
fn a_refused_question_is_never_asked_again() {
    for (fault, is_unknown) in [
        (ServerFault::RolledBack, false),
        (ServerFault::ReadOnly, false),
        (ServerFault::ChangeLost, false),
        (ServerFault::CommitLost, true),
        (ServerFault::AnswerLost, true),
    ] {
        let server = FakeServer::default();
        let [one, other] = hosts(&server);
        let document = emit(&one);
        shared(&other).sync(LIMITS).unwrap();
        server.set_fault(Some(fault));
        let refused = consume(&other, &document).unwrap_err();
        let SyncError::Server(error) = refused else { panic!("{fault:?}: {refused:?}") };
        assert_eq!(error.is_commit_unknown(), is_unknown, "{fault:?}");
        server.set_fault(None);
        assert_eq!(shared(&other).has_waiting(), is_unknown, "{fault:?}: only a void waits");
        other.advance(Duration::from_secs(60));
        // The answer to the void can be lost, too.
        if is_unknown {
            server.set_fault(Some(ServerFault::AnswerLost));
            assert!(shared(&other).sync(LIMITS).is_err());
            other.advance(Duration::from_secs(60));
        }
        let result = shared(&other).sync(LIMITS).unwrap();
        let notes = result.notes.join(" ");
        let is_taken_back = fault == ServerFault::AnswerLost;
        assert_eq!(notes.contains("was taken back"), is_taken_back, "{fault:?}: {notes}");
        assert_eq!((result.waiting, result.rejected.len()), (0, 0), "{fault:?}");
        assert_eq!(ended(&server, &document), Value::Null, "{fault:?}");
        // It is there for the next one.
        assert_eq!(consume(&one, &document).unwrap(), SignalResponse::Changed, "{fault:?}");
        let again = consume(&other, &document).unwrap();
        assert!(matches!(again, SignalResponse::Refused(_)), "{fault:?}: {again:?}");
    }
}

#[test]
fn a_process_that_ends_while_it_asks_consumes_nothing() {
    let mut taken_back = 0;
    for step in 0..40 {
        let server = FakeServer::default();
        let [one, other] = hosts(&server);
        let document = emit(&one);
        shared(&other).sync(LIMITS).unwrap();
        let store = shared(&other);
        other.crash_at(step);
        let event = SignalEvent::Consume { by: "agent" };
        let answered = store.decide_signal(&document, event, LIMITS);
        drop(store);
        let other = other.reboot(Survival::EVERYTHING);
        other.put(CONFIG, SIGNALS);
        other.set_env("HOME", "/home/me");
        other.advance(Duration::from_secs(60));
        taken_back += shared(&other).sync(LIMITS).unwrap().notes.len();
        if answered.is_err() {
            let next = consume(&one, &document).unwrap();
            assert_eq!(next, SignalResponse::Changed, "step {step}");
        }
    }
    assert!(taken_back > 0, "some process ended after the commit");
}

/// Hosts record failures, the server loses the last of them, and one host goes on first.
fn lose(seed: u64, is_noticed: bool) {
    let mut chance = Chance::new(seed);
    let server = FakeServer::default();
    let hosts: Vec<FakeWorld> = ["a", "b", "c"].map(|it| host(&server, it)).into();
    shared(&hosts[0]).server(Duration::from_secs(1)).unwrap().migrate().unwrap();
    let mut recorded = 0;
    let mut fail = |world: &FakeWorld| {
        let store = BreakerStore::new(world, Path::new(ROOT), Durability::default());
        store.record(KEY, BreakerEvent::failure("529"), &counting(), world.now()).unwrap();
        shared(world).sync(LIMITS).unwrap();
        recorded += 1;
    };
    let mut some = |count: u64, chance: &mut Chance| {
        for _ in 0..count {
            fail(&hosts[usize::try_from(chance.below(3)).unwrap()]);
        }
    };
    some(10, &mut chance);
    let backup = server.backup();
    let lost = chance.below(10);
    some(lost, &mut chance);
    server.restore(&backup, is_noticed);
    // Others make the versions again, with other contents.
    let more = chance.below(20);
    some(more, &mut chance);
    for world in hosts.iter().chain(&hosts) {
        world.advance(Duration::from_secs(2));
        shared(world).sync(LIMITS).unwrap();
    }
    let count = counted(server.document(GROUP, "breaker", KEY));
    assert_eq!(count, recorded, "seed {seed}: what the server lost was sent again, once");
    for world in &hosts {
        let store = BreakerStore::new(world, Path::new(ROOT), Durability::default());
        let local = store.peek(KEY).unwrap().failures().count() as u64;
        assert_eq!(local, count, "seed {seed}: every copy is complete");
    }
}

#[test]
fn a_server_that_lost_changes_gets_them_again() {
    for seed in 1..=rounds(300) {
        lose(seed, false);
        lose(seed, true);
    }
}

/// Asks the humans about one question of each kind on a host, and records a task. Returns the names of the documents.
fn ask_everything(world: &FakeWorld) -> [String; 2] {
    let (root, at) = (Path::new(ROOT), world.now());
    let call = BlockedCall { digest: "d".repeat(64), ..BlockedCall::default() };
    let approval = shared(world).ask(&call, root, at).unwrap().id;
    questions(world)
        .open(EscalationSubject::Task("e"), at, |id| {
            let asked = Escalation { id: id.to_owned(), created: at, ..Escalation::default() };
            (asked, "# Question\n".to_owned())
        })
        .unwrap();
    let attempt = Attempt { at, error: "E".to_owned(), counts: true, ..Attempt::default() };
    let task = Task { id: "t".to_owned(), ..Task::default() };
    for change in
        [TaskChange::reported(&task, attempt), TaskChange::Entered { strategy: "x".to_owned() }]
    {
        tasks(world)
            .change(at, |lists| {
                lists.apply("t", change, at);
                Ok(())
            })
            .unwrap();
    }
    [approval, emit(world)]
}

fn questions(world: &FakeWorld) -> EscalationStore<'_> {
    EscalationStore::new(world, Path::new(ROOT), Durability::default(), Duration::ZERO)
}

fn tasks(world: &FakeWorld) -> QueueStore<'_> {
    QueueStore::new(world, Path::new(ROOT), Durability::default(), Duration::ZERO)
}

/// Answers the question of the escalation, and returns whether it is approved.
fn answer(world: &FakeWorld, approved: bool) -> bool {
    let (decision, by) = (String::new(), "ada".to_owned());
    let id = questions(world).all().unwrap()[0].id.clone();
    let event = EscalationEvent::Closed { approved, decision, by };
    questions(world).step(&id, event, world.now()).unwrap().0.closed.unwrap().approved
}

/// Synchronizes a host after its copy became old.
fn sync_later(world: &FakeWorld) {
    world.advance(Duration::from_secs(2));
    shared(world).sync(LIMITS).unwrap();
}

#[test]
fn an_answer_that_the_server_lost_stays_final() {
    for is_noticed in [false, true] {
        let server = FakeServer::default();
        let [one, other] = hosts(&server);
        [&one, &other].into_iter().for_each(|it| it.put(CONFIG, EVERYTHING));
        let [approval, signal] = ask_everything(&one);
        [&one, &other].into_iter().for_each(sync_later);
        let backup = server.backup();
        let end = |outcome: &str| SharedSignalEnd {
            outcome: outcome.to_owned(),
            ..SharedSignalEnd::default()
        };
        // A first host answers no to everything, and works on the task.
        assert!(!answer(&one, false));
        shared(&one).answer(&approval, false, "ada", LIMITS).unwrap();
        shared(&one).answer_signal(&signal, end("rejected"), LIMITS).unwrap();
        let claim = TaskChange::Claimed { holder: "a".to_owned(), lease: Duration::from_secs(600) };
        let claim = SharedAction::Task { id: "t".to_owned(), change: claim };
        let claimed = shared(&one).decide(claim, LIMITS).unwrap();
        assert!(format!("{claimed:?}").contains("[Claimed]"), "{claimed:?}");
        [&one, &other].into_iter().for_each(sync_later);
        server.restore(&backup, is_noticed);
        // The other one knows that, and is the first that meets the restored server.
        other.advance(Duration::from_secs(2));
        let again = shared(&other).answer(&approval, true, "eve", LIMITS).unwrap();
        assert_eq!(again, AnswerResult::Sent(ApprovalEffect::AlreadyAnswered));
        let again = shared(&other).answer_signal(&signal, end("approved"), LIMITS).unwrap();
        assert!(matches!(again, SignalResponse::Refused(_)), "{again:?}");
        [&other, &other].into_iter().for_each(sync_later);
        assert!(!answer(&other, true), "the first answer is final");
        let lists = tasks(&other).peek();
        assert!(lists.find("t").unwrap().is_claimed(other.now()), "one holder");
        drop(lists);
        // A host that joins now does not get another answer either.
        let third = host(&server, "c");
        third.put(CONFIG, EVERYTHING);
        sync_later(&third);
        assert!(!answer(&third, true), "is_noticed: {is_noticed}");
        [&one, &other, &one].into_iter().for_each(sync_later);
        for (kind, name, field) in [("approval", &approval, "answer"), ("signal", &signal, "ended")]
        {
            let text = server.document(GROUP, kind, name).unwrap();
            let found = serde_json::from_str::<Value>(&text).unwrap()[field].to_string();
            assert!(found.contains("false") || found.contains("rejected"), "{kind}: {found}");
        }
    }
}

#[test]
fn an_answer_stays_final_although_its_question_comes_back_later() {
    let server = FakeServer::default();
    let [one, other] = hosts(&server);
    [&one, &other].into_iter().for_each(|it| it.put(CONFIG, EVERYTHING));
    let backup = server.backup();
    let [approval, _] = ask_everything(&one);
    sync_later(&other);
    assert!(!answer(&other, false));
    shared(&other).answer(&approval, false, "ada", LIMITS).unwrap();
    server.restore(&backup, true);
    // The server knows the answer before the question, and then the question of a host that knows no answer.
    [&other, &one, &other, &one, &other].into_iter().for_each(sync_later);
    assert!(!answer(&other, true) && !answer(&one, true));
    let text = server.document(GROUP, "escalation", &questions(&one).all().unwrap()[0].id).unwrap();
    assert!(text.contains("rejected"), "{text}");
}

#[test]
fn a_call_that_is_asked_about_again_is_open_after_a_failover() {
    let server = FakeServer::default();
    let [one, other] = hosts(&server);
    [&one, &other].into_iter().for_each(|it| it.put(CONFIG, EVERYTHING));
    let [approval, _] = ask_everything(&one);
    let sync = |world: &FakeWorld| {
        [&one, &other].into_iter().for_each(|it| it.advance(Duration::from_secs(2)));
        shared(world).sync(LIMITS).unwrap();
    };
    sync(&other);
    shared(&other).answer(&approval, true, "ada", LIMITS).unwrap();
    // The answer is taken over, and the same call is blocked again later.
    [&one, &other].into_iter().for_each(sync);
    let hour = Duration::from_secs(3_600);
    [&one, &other].into_iter().for_each(|it| it.advance(hour));
    let call = BlockedCall { digest: "d".repeat(64), ..BlockedCall::default() };
    assert!(shared(&one).ask(&call, Path::new(ROOT), one.now()).unwrap().is_new);
    sync(&one);
    server.restore(&server.backup(), true);
    sync(&other);
    let open = shared(&other).approvals().unwrap();
    assert!(open.iter().any(|it| it.id == approval && it.request.is_open(other.now())), "{open:?}");
}

#[test]
fn a_human_whose_answer_comes_too_late_learns_it() {
    for second in [true, false] {
        let server = FakeServer::default();
        let [one, other] = hosts(&server);
        [&one, &other].into_iter().for_each(|it| it.put(CONFIG, EVERYTHING));
        let [approval, _] = ask_everything(&one);
        other.advance(Duration::from_secs(2));
        shared(&other).sync(LIMITS).unwrap();
        server.set_fault(Some(ServerFault::Down));
        answer(&other, second);
        let queued = shared(&other).answer(&approval, second, "eve", LIMITS).unwrap();
        assert_eq!(queued, AnswerResult::Queued);
        server.set_fault(None);
        answer(&one, false);
        shared(&one).answer(&approval, false, "ada", LIMITS).unwrap();
        shared(&one).sync(LIMITS).unwrap();
        other.advance(Duration::from_secs(60));
        let said = shared(&other).sync(LIMITS).unwrap().rejected;
        let late = said.iter().filter(|it| it.contains("ada answered no before")).count();
        assert_eq!(late, if second { 2 } else { 0 }, "{said:?}");
        assert!(!answer(&other, true), "the copy has the first answer");
    }
}

/// Closes the question of the escalation with a no, and abandons the task, as one answer.
fn give_up(world: &FakeWorld) {
    let (at, store) = (world.now(), questions(world).in_answer("a1"));
    let (decision, by) = (String::new(), "eve".to_owned());
    let id = store.all().unwrap()[0].id.clone();
    store.step(&id, EscalationEvent::Closed { approved: false, decision, by }, at).unwrap();
    let change = TaskChange::GivenUp { reason: "human".to_owned() };
    tasks(world)
        .in_answer("a1", &["t".to_owned()])
        .change(at, |lists| {
            lists.apply("t", change, at);
            Ok(())
        })
        .unwrap();
}

#[test]
fn an_answer_that_comes_too_late_moves_no_task() {
    let server = FakeServer::default();
    let [one, other] = hosts(&server);
    [&one, &other].into_iter().for_each(|it| it.put(CONFIG, EVERYTHING));
    ask_everything(&one);
    sync_later(&other);
    let queue = |world: &FakeWorld| tasks(world).peek().find("t").unwrap().place;
    server.set_fault(Some(ServerFault::Down));
    give_up(&other);
    assert_eq!(queue(&other), TaskQueue::Abandoned);
    server.set_fault(None);
    answer(&one, true);
    sync_later(&one);
    other.advance(Duration::from_secs(60));
    let said = shared(&other).sync(LIMITS).unwrap().rejected;
    assert!(said.iter().any(|it| it.contains("ada answered yes before")), "{said:?}");
    assert!(!shared(&other).has_waiting());
    sync_later(&one);
    for world in [&one, &other] {
        assert_eq!(queue(world), TaskQueue::DeadLetter, "the copy is that of the server");
    }
}

#[test]
fn a_subject_that_is_shared_later_arrives() {
    let server = FakeServer::default();
    let [one, other] = hosts(&server);
    configure(&other);
    let document = emit(&one);
    shared(&other).sync(LIMITS).unwrap();
    assert_eq!(shared(&other).signals_of_others().unwrap(), []);
    other.put(CONFIG, SIGNALS);
    other.advance(Duration::from_secs(2));
    shared(&other).sync(LIMITS).unwrap();
    let others = shared(&other).signals_of_others().unwrap();
    assert_eq!(others.iter().map(|it| it.document.as_str()).collect::<Vec<_>>(), [document]);
}

#[test]
fn a_process_of_the_same_host_is_no_outage() {
    let server = FakeServer::default();
    let [one, _] = hosts(&server);
    let document = emit(&one);
    let folder = policyd::store::user::state_folder(&one, Path::new(ROOT)).unwrap();
    let held = one.lock(&folder.join("shared/.sync.lock"), Duration::ZERO).unwrap();
    one.advance(Duration::from_secs(2));
    let began = one.elapsed();
    assert_eq!(shared(&one).sync(QUICK).unwrap().sent, 0);
    assert!(one.elapsed() - began < QUICK.wait, "the rest of the time is for the server");
    let busy = shared(&one).decide_signal(&document, SignalEvent::Consume { by: "x" }, QUICK);
    assert_eq!(busy, Err(SyncError::Busy));
    assert!(!shared(&one).notify_once());
    drop(held);
    assert_eq!(shared(&one).position().unwrap().failures, 0);
    assert_eq!(consume(&one, &document).unwrap(), SignalResponse::Changed, "no delay");
}

#[test]
fn a_command_shares_one_time_limit() {
    let server = FakeServer::default();
    let [one, _] = hosts(&server);
    let document = emit(&one);
    server.set_fault(Some(ServerFault::Silent));
    let began = one.elapsed();
    let left = Cell::new(COMMAND.wait);
    let limits = COMMAND.within(&left);
    let store: SharedStore<'_> = shared(&one);
    assert!(store.sync(limits).is_err());
    for limits in [limits, limits.and_then()] {
        let event = SignalEvent::Consume { by: "x" };
        assert!(store.decide_signal(&document, event, limits).is_err());
        assert!(store.sync(limits).is_err());
    }
    assert_eq!(one.elapsed() - began, COMMAND.wait);
    let problem = store.position().unwrap().problem.unwrap();
    assert!(!problem.contains(" 0 ms"), "{problem}");
    drop(store);
    let silent = SyncError::Server(ServerError::TimedOut(COMMAND.wait)).to_string();
    assert!(silent.contains("3000 ms"), "{silent}");
}
