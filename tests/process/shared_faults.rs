//! Faults of the shared server, on PostgreSQL: refused and lost commits, lost changes, a schema that is too new, and
//! subjects that are shared later.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::machine::{Called, Machine};
use crate::shared_store::{accounts, done, host, status};
use crate::support::postgres::{self, query};
use crate::support::proxy::{CutAt, Proxy};

const SHARED: &str = "  share: [tasks, signals]\n";

/// Records a dead letter and emits a signal.
fn prepare(machine: &Machine) {
    let added = machine.run(&["dlq", "add", "t1", "--error", "no space", "--immediately"], b"");
    done(&added);
    done(&machine.run(&["signal", "emit", "TESTS_PASSED_X"], b""));
    done(&machine.run(&["store", "sync"], b""));
}

fn claim(machine: &Machine) -> Called {
    machine.run(&["dlq", "claim", "t1"], b"")
}

fn consume(machine: &Machine) -> Called {
    machine.run(&["signal", "consume", "TESTS_PASSED_X"], b"")
}

/// The directory of the host with the outbox and the position.
pub(crate) fn shared_folder(machine: &Machine) -> PathBuf {
    let projects = fs::read_dir(machine.path("state/policyd")).unwrap();
    let folders = projects.map(|it| it.unwrap().path().join("shared"));
    folders.into_iter().find(|it| it.exists()).unwrap()
}

/// Claims and ends on the server.
fn held(url: &str) -> Vec<String> {
    query(
        url,
        "SELECT kind || coalesce(body -> 'claim' ->> 'holder', '') || coalesce(body -> 'ended' ->> 'outcome', '') \
         FROM policyd.document WHERE kind IN ('task', 'signal') ORDER BY 1",
    )
}

#[test]
fn a_refused_claim_is_never_made() {
    let test = "a_refused_claim_is_never_made";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, _] = accounts(&url);
    let [one, two, three] = [(); 3].map(|()| host(&agent, SHARED));
    prepare(&one);
    for it in [&two, &three] {
        done(&it.run(&["store", "sync"], b""));
    }
    thread::scope(|scope| {
        scope.spawn(|| postgres::hold_group(&url, "team", Duration::from_secs(6)));
        thread::sleep(Duration::from_millis(700));
        let asked = [scope.spawn(|| claim(&two)), scope.spawn(|| consume(&three))];
        for called in asked.map(|it| it.join().unwrap()) {
            assert_eq!(called.code, Some(3), "{called:?}");
            assert!(!called.stderr.contains("connection lost"), "{called:?}");
        }
    });
    for it in [&two, &three] {
        assert_eq!(status(it)["waiting"], 0, "a refused question does not wait");
        done(&it.run(&["store", "sync"], b""));
    }
    assert_eq!(held(&url), ["signal", "task"]);
    done(&claim(&three));
    done(&consume(&two));
}

#[test]
fn a_claim_whose_answer_is_lost_is_taken_back() {
    let test = "a_claim_whose_answer_is_lost_is_taken_back";
    let Some(server) = postgres::server(test) else { return };
    for cut_at in [CutAt::Answer, CutAt::Commit] {
        let url = server.database();
        let [agent, _] = accounts(&url);
        let proxy = Proxy::start(&agent, cut_at);
        let [one, two] = [host(&agent, SHARED), host(&proxy.url(&agent), SHARED)];
        prepare(&one);
        done(&two.run(&["store", "sync"], b""));
        for ask in [claim, consume] {
            proxy.cut_next();
            let called = ask(&two);
            assert_eq!(called.code, Some(3), "{cut_at:?}: {called:?}");
            assert!(called.stderr.contains("no answer to the commit"), "{cut_at:?}: {called:?}");
            // The command asks the server again at its end.
            let is_taken_back = called.stderr.contains("was taken back");
            assert_eq!(is_taken_back, cut_at == CutAt::Answer, "{called:?}");
            assert_eq!(status(&two)["waiting"], 0, "{cut_at:?}");
        }
        assert_eq!(held(&url), ["signal", "task"], "{cut_at:?}");
        done(&claim(&one));
        done(&consume(&one));
    }
}

#[test]
fn a_finish_whose_answer_is_lost_is_reported() {
    let test = "a_finish_whose_answer_is_lost_is_reported";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, _] = accounts(&url);
    let proxy = Proxy::start(&agent, CutAt::Answer);
    let one = host(&proxy.url(&agent), SHARED);
    prepare(&one);
    done(&claim(&one));
    proxy.cut_next();
    let called = one.run(&["dlq", "finish", "t1", "--generation", "1"], b"");
    assert_eq!(called.code, Some(3), "{called:?}");
    for text in
        ["whether the claim ended", "task `t1`: a change whose answer did not come was made"]
    {
        assert!(called.stderr.contains(text), "{text}: {called:?}");
    }
    let gone = one.run(&["dlq", "show", "t1"], b"");
    assert_eq!(gone.code, Some(1), "{gone:?}");
}

#[test]
fn changes_that_a_server_lost_are_sent_again() {
    let test = "changes_that_a_server_lost_are_sent_again";
    let Some(server) = postgres::server(test) else { return };
    if !server.is_own() {
        eprintln!("SKIPPED {test}: the server is not ours to change");
        return;
    }
    let url = server.database();
    let [agent, _] = accounts(&url);
    let hosts = [(); 3].map(|()| host(&agent, SHARED));
    let [one, two, three] = &hosts;
    let add = |machine: &Machine, id: &str| {
        let error = format!("error of {id}");
        done(&machine.run(&["dlq", "add", id, "--error", &error, "--immediately"], b""));
    };
    add(one, "kept");
    for it in &hosts {
        done(&it.run(&["store", "sync"], b""));
    }
    let standby = server.back_up(&url);
    for id in ["lost1", "lost2"] {
        add(one, id);
    }
    for _ in 0..3 {
        done(&one.run(&["breaker", "record", "api/lost", "failure"], b""));
    }
    done(&two.run(&["dlq", "claim", "lost1"], b""));
    server.fail_over(&url, &standby);
    // Another host goes on first, and makes the same versions again.
    for number in 0..12 {
        add(three, &format!("new{number}"));
    }
    for it in hosts.iter().chain(&hosts) {
        done(&it.run(&["store", "sync"], b""));
    }
    for it in &hosts {
        let listed = it.run(&["dlq", "list", "--format", "json"], b"");
        assert_eq!(done(&listed).stdout.lines().count(), 15, "{listed:?}");
        assert_eq!(it.run(&["breaker", "allow", "api/lost"], b"").code, Some(1), "it is open");
        done(&it.run(&["store", "verify"], b""));
    }
    let claimed = three.run(&["dlq", "claim", "lost1"], b"");
    assert_eq!(claimed.code, Some(1), "the claim survived: {claimed:?}");
}

#[test]
fn a_subject_that_is_shared_later_arrives() {
    let test = "a_subject_that_is_shared_later_arrives";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, _] = accounts(&url);
    let [one, two] = [host(&agent, SHARED), host(&agent, "")];
    prepare(&one);
    done(&two.run(&["breaker", "record", "api/claude", "failure"], b""));
    let config = two.path("config/policyd/config.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}{SHARED}")).unwrap();
    let listed = two.run(&["dlq", "list", "--format", "json"], b"");
    assert_eq!(done(&listed).stdout.lines().count(), 1, "{listed:?}");
    let listed = two.run(&["signal", "list"], b"");
    assert!(done(&listed).stdout.contains("TESTS_PASSED_X"), "{listed:?}");
    done(&two.run(&["store", "verify"], b""));
}

#[test]
fn a_client_that_is_too_old_reads_and_writes_nothing() {
    let test = "a_client_that_is_too_old_reads_and_writes_nothing";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, _] = accounts(&url);
    let [one, two] = [host(&agent, SHARED), host(&agent, SHARED)];
    prepare(&one);
    postgres::execute(&url, "INSERT INTO policyd.migration (version, client_min) VALUES (9, 9)")
        .unwrap();
    let content = || {
        query(
            &url,
            "SELECT (SELECT count(*) FROM policyd.applied) || ' ' || (SELECT count(*) FROM policyd.document)",
        )
    };
    let before = content();
    done(&two.run(&["dlq", "add", "t2", "--error", "no route", "--immediately"], b""));
    let asked = [claim(&two), two.run(&["store", "sync"], b""), two.run(&["store", "verify"], b"")];
    for called in &asked {
        assert_ne!(called.code, Some(0), "{called:?}");
    }
    assert!(asked[1].stderr.contains("needs policyd with schema version 9"), "{asked:?}");
    let copy = two.run(&["store", "copy", "--from", "files", "--to", "postgres"], b"");
    assert_eq!(copy.code, Some(3), "{copy:?}");
    assert_eq!(content(), before, "nothing was written");
    let local = two.run(&["dlq", "list", "--format", "json"], b"");
    assert_eq!(local.stdout.lines().count(), 1, "nothing was read: {local:?}");
    let notices: usize =
        (0..3).map(|_| usize::from(two.stop().notice().contains("schema version 9"))).sum();
    assert_eq!(notices, 1, "the user is told once");
}

#[test]
fn another_process_of_the_host_is_no_outage() {
    let test = "another_process_of_the_host_is_no_outage";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, _] = accounts(&url);
    let machine = host(&agent, "");
    done(&machine.run(&["store", "sync"], b""));
    let path = shared_folder(&machine).join(".sync.lock");
    let lock = fs::File::options().write(true).open(path).unwrap();
    let ends = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        // Agents beside this one synchronize most of the time.
        scope.spawn(|| {
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                lock.lock().unwrap();
                thread::sleep(Duration::from_millis(230));
                lock.unlock().unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        });
        for _ in 0..6 {
            thread::sleep(Duration::from_millis(1_100));
            let notice = machine.stop().notice();
            assert!(!notice.contains("shared store"), "{notice}");
        }
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let sync = &status(&machine);
    assert_eq!(sync["reachable"], true, "{sync}");
    let position = fs::read_to_string(shared_folder(&machine).join("sync.json")).unwrap();
    let position: Value = serde_json::from_str(&position).unwrap();
    assert_eq!(position["failures"], json!(0), "{position}");
}
