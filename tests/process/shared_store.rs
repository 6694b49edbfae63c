//! Several hosts share one PostgreSQL: each host is a machine with its own directories and processes.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};

use crate::machine::{Called, Machine};
use crate::shared_answers::blocked_call;
use crate::support::postgres::{self, Postgres, query};

/// A machine that shares a store.
pub(crate) fn host(url: &str, more: &str) -> Machine {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("config/policyd")).unwrap();
    let text = format!("store:\n  url: {url}\n  group: team\n{more}");
    fs::write(machine.path("config/policyd/config.yaml"), text).unwrap();
    machine
}

/// Creates the tables. Returns the URL of an account of agents, and that of an account of humans.
pub(crate) fn accounts(url: &str) -> [String; 2] {
    done(&host(url, "").run(&["store", "init"], b""));
    let (_, name) = url.rsplit_once('/').unwrap();
    let name = name.split('?').next().unwrap();
    ["agent", "human"].map(|role| {
        let account = format!("{role}_{name}");
        let sql = format!(
            "DROP ROLE IF EXISTS {account}; CREATE ROLE {account} LOGIN; GRANT policyd_{role} TO {account}"
        );
        postgres::execute(url, &sql).unwrap();
        url.replace("postgres@", &format!("{account}@"))
    })
}

/// Hosts of agents.
fn hosts(url: &str) -> [Machine; 3] {
    let [agent, _] = accounts(url);
    [host(&agent, ""), host(&agent, ""), host(&agent, "")]
}

/// A turn that ended because the model was overloaded.
pub(crate) fn overloaded(machine: &Machine) -> Called {
    let payload = json!({
        "session_id": "s1", "cwd": machine.project.to_str(), "hook_event_name": "StopFailure",
        "error": "overloaded", "last_assistant_message": "API Error: 529 overloaded",
    });
    machine.run(&["eval", "--hook", "stop-failure"], payload.to_string().as_bytes())
}

pub(crate) fn begin_of(machine: &Machine) -> Called {
    let payload = json!({
        "session_id": "s1", "cwd": machine.project.to_str(), "hook_event_name": "SessionStart",
        "source": "startup",
    });
    machine.run(&["eval", "--hook", "session-start"], payload.to_string().as_bytes())
}

pub(crate) fn status(machine: &Machine) -> Value {
    serde_json::from_str(&machine.run(&["store", "status", "--format", "json"], b"").stdout)
        .unwrap()
}

/// Longest time until all hosts know that a breaker is open: 2 s, and the processor time of a few calls on this machine, which
/// other tests use at the same time.
pub(crate) fn opening_max(machine: &Machine) -> Duration {
    let call = machine.run(&["breaker", "allow", "api/claude"], b"");
    assert_eq!(call.code, Some(0), "{call:?}");
    Duration::from_secs(2) + call.took * 6
}

fn state(machine: &Machine) -> String {
    let shown = machine.run(&["breaker", "show", "api/claude", "--format", "json"], b"");
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    shown["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_failure_on_one_host_opens_the_breaker_of_all_hosts() {
    let Some(server) = postgres::server("a_failure_on_one_host_opens_the_breaker_of_all_hosts")
    else {
        return;
    };
    let url = server.database();
    let [one, other, third] = hosts(&url);
    let opening_max = opening_max(&other);
    // The three failures that open the breaker happen on two hosts.
    overloaded(&one).answer();
    overloaded(&other).answer();
    overloaded(&one).answer();
    let opened = Instant::now();
    for host in [&other, &third] {
        // A copy is current for one second.
        while host.run(&["breaker", "allow", "api/claude"], b"").code != Some(1) {
            assert!(opened.elapsed() < Duration::from_secs(20), "the breaker stays closed");
        }
    }
    let took = opened.elapsed();
    eprintln!("all hosts know after {took:?}");
    assert!(took < opening_max, "{took:?} of {opening_max:?}");
    // The start of a session refreshes the copy that tool calls read.
    begin_of(&third).answer();
    assert_eq!(state(&third), "OPEN");
    let states =
        query(&url, "SELECT body ->> 'state' FROM policyd.document WHERE name = 'api/claude'");
    assert_eq!(states, ["OPEN"]);
    let failures = query(
        &url,
        "SELECT body ->> 'failure_count' FROM policyd.document WHERE name = 'api/claude'",
    );
    assert_eq!(failures, ["3"], "each failure counts once");
}

#[test]
fn breakers_of_one_machine_and_other_groups_are_not_shared() {
    let Some(server) = postgres::server("breakers_of_one_machine_and_other_groups_are_not_shared")
    else {
        return;
    };
    let url = server.database();
    let [one, other, _] = hosts(&url);
    for _ in 0..3 {
        let failed = one.run(&["breaker", "record", "tool/x", "failure"], b"");
        assert_eq!((failed.code, failed.stderr.as_str()), (Some(0), ""));
    }
    assert_eq!(other.run(&["breaker", "allow", "tool/x"], b"").code, Some(0));
    assert_eq!(query(&url, "SELECT name FROM policyd.document"), [""; 0]);
    let stranger = Machine::new();
    fs::create_dir_all(stranger.path("config/policyd")).unwrap();
    let text = format!("store: {{url: \"{url}\", group: strangers}}\n");
    fs::write(stranger.path("config/policyd/config.yaml"), text).unwrap();
    let refused = stranger.run(&["store", "sync"], b"");
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("the group `strangers` does not exist"), "{refused:?}");
}

#[test]
fn a_dead_server_blocks_no_agent_and_loses_nothing() {
    let Some(mut server) = postgres::server("a_dead_server_blocks_no_agent_and_loses_nothing")
    else {
        return;
    };
    if !server.is_own() {
        eprintln!(
            "SKIPPED a_dead_server_blocks_no_agent_and_loses_nothing: the server is not ours to kill"
        );
        return;
    }
    let url = server.database();
    let [one, other, _] = hosts(&url);
    overloaded(&one).answer();
    server.kill();
    let mut slowest = Duration::ZERO;
    let mut notices = 0;
    for _ in 0..2 {
        let called = overloaded(&one);
        called.answer();
        slowest = slowest.max(called.took);
        let called = begin_of(&one);
        notices += usize::from(called.notice().contains("shared store"));
        slowest = slowest.max(called.took);
    }
    eprintln!("slowest hook without a server: {slowest:?}");
    assert_eq!(notices, 1, "the user is notified once");
    // The files decide while the server is away.
    assert_eq!(one.run(&["breaker", "allow", "api/claude"], b"").code, Some(1));
    let offline = status(&one);
    assert_eq!((&offline["reachable"], &offline["waiting"]), (&json!(false), &json!(2)));
    server.restart();
    let drained = one.run(&["store", "sync"], b"");
    assert_eq!(drained.code, Some(0), "{drained:?}");
    assert_eq!(status(&one)["waiting"], 0);
    assert_eq!(other.run(&["breaker", "allow", "api/claude"], b"").code, Some(1));
    let failures = query(
        &url,
        "SELECT body ->> 'failure_count' FROM policyd.document WHERE name = 'api/claude'",
    );
    assert_eq!(failures, ["3"], "nothing is lost, and nothing counts twice");
    assert_eq!(state(&one), "OPEN");
}

/// What is shared besides breakers.
pub(crate) const ALL: &str = "  share: [tasks, escalations]\n";

pub(crate) fn done(called: &Called) -> &Called {
    assert_eq!(called.code, Some(0), "{called:?}");
    called
}

#[test]
fn a_dead_letter_is_claimed_once_by_all_hosts() {
    let Some(server) = postgres::server("a_dead_letter_is_claimed_once_by_all_hosts") else {
        return;
    };
    let url = server.database();
    let hosts: Vec<Machine> = (0..3).map(|_| host(&url, ALL)).collect();
    done(&hosts[0].run(&["store", "init"], b""));
    // Tasks that fail alike would wait for one human.
    for (number, error) in ["no space", "no route", "bad key", "wrong answer"].iter().enumerate() {
        let id = format!("task-{number}");
        done(&hosts[0].run(&["dlq", "add", &id, "--error", error, "--immediately"], b""));
    }
    let listed = hosts[1].run(&["dlq", "list", "--format", "json"], b"");
    assert_eq!(listed.stdout.lines().count(), 4, "{listed:?}");
    let claim = |host: &Machine, name: &str| {
        let words = ["dlq", "claim", "--holder", name, "--format", "json"];
        let called = host.run(&words, b"");
        let claimed: Option<Value> = serde_json::from_str(&called.stdout).ok();
        claimed.map(|it| it["task_id"].as_str().unwrap().to_owned())
    };
    // Six agents on three hosts, four tasks.
    let claims: Vec<Option<String>> = thread::scope(|scope| {
        let agents: Vec<_> = (0..6)
            .map(|number| {
                let host = &hosts[number % 3];
                scope.spawn(move || claim(host, &format!("agent-{number}")))
            })
            .collect();
        agents.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let mut ids: Vec<String> = claims.into_iter().flatten().collect();
    ids.sort();
    assert_eq!(ids, ["task-0", "task-1", "task-2", "task-3"], "each task once");
    // Only the holder of the current generation can finish the task.
    let stale = hosts[2].run(&["dlq", "finish", "task-0", "--generation", "7"], b"");
    assert_eq!(stale.code, Some(1), "{stale:?}");
    done(&hosts[2].run(&["dlq", "finish", "task-0", "--generation", "1"], b""));
    let left = hosts[0].run(&["dlq", "list", "--format", "json"], b"");
    assert_eq!(left.stdout.lines().count(), 3, "{left:?}");
    // A task that was given back gets a higher generation.
    done(&hosts[1].run(&["dlq", "unclaim", "task-1", "--generation", "1"], b""));
    let again = hosts[0].run(&["dlq", "claim", "task-1", "--format", "json"], b"");
    let again: Value = serde_json::from_str(&done(&again).stdout).unwrap();
    assert_eq!(again["generation"], 2);
}

#[test]
fn a_question_is_answered_on_another_host_and_the_server_is_cut_off_in_between() {
    let test = "a_question_is_answered_on_another_host_and_the_server_is_cut_off_in_between";
    let Some(mut server) = postgres::server(test) else { return };
    if !server.is_own() {
        eprintln!("SKIPPED {test}: the server is not ours to kill");
        return;
    }
    let url = server.database();
    let [one, other] = [host(&url, ALL), host(&url, ALL)];
    done(&one.run(&["store", "init"], b""));
    done(&one.run(&["dlq", "add", "task-1", "--error", "no space", "--immediately"], b""));
    let words = ["escalation", "open", "--task", "task-1", "--reason", "Buy a disk?", "--blocking"];
    done(&one.run(&words, b""));
    let asked = other.run(&["escalation", "list", "--format", "json"], b"");
    let asked: Value = serde_json::from_str(&asked.stdout).unwrap();
    let id = asked["id"].as_str().unwrap().to_owned();
    let document = other.run(&["escalation", "show", &id], b"");
    assert!(done(&document).stdout.contains("Buy a disk?"), "{document:?}");

    server.kill();
    // Nothing is blocked: a task is recorded, and the question is answered.
    done(&one.run(&["dlq", "add", "task-2", "--error", "no route", "--immediately"], b""));
    let claimed = other.run(&["dlq", "claim", "task-1"], b"");
    assert_eq!(claimed.code, Some(3), "only the server knows who is first: {claimed:?}");
    done(&other.human(&["escalation", "resolve", &id, "--decision", "yes"]));

    server.restart();
    done(&other.run(&["store", "sync"], b""));
    done(&one.run(&["store", "sync"], b""));
    let answered = one.run(&["escalation", "list", "--all", "--format", "json"], b"");
    let answered: Value = serde_json::from_str(&answered.stdout).unwrap();
    assert_eq!((&answered["status"], &answered["decision"]), (&json!("approved"), &json!("yes")));
    let tasks = one.run(&["dlq", "show", "task-1", "--format", "json"], b"");
    let task: Value = serde_json::from_str(&done(&tasks).stdout).unwrap();
    assert_eq!(task["waits_for"], "", "{task}");
    assert_eq!(other.run(&["dlq", "show", "task-2"], b"").code, Some(0));
    for host in [&one, &other] {
        let verified = host.run(&["store", "verify"], b"");
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

#[test]
fn an_agent_reports_and_a_human_resets() {
    let Some(server) = postgres::server("an_agent_reports_and_a_human_resets") else { return };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let (agents, humans) = (host(&agent, ALL), host(&human, ALL));
    for _ in 0..3 {
        done(&agents.run(&["breaker", "record", "api/claude", "failure"], b""));
    }
    // On its own host an agent's user could write any file; the server refuses.
    let reset = agents.human(&["breaker", "reset", "api/claude"]);
    assert_eq!(reset.code, Some(3), "{reset:?}");
    assert!(reset.stderr.contains("only a human resets a breaker"), "{reset:?}");
    let log = agents.run(&["log"], b"").stdout;
    let refusal = log.lines().find(|it| it.contains("refusal"));
    assert!(refusal.is_some_and(|it| it.contains("only a human resets a breaker")), "{log}");
    assert_eq!(agents.run(&["breaker", "allow", "api/claude"], b"").code, Some(1));
    assert_eq!(status(&agents)["rejected"], 1);
    done(&humans.human(&["breaker", "reset", "api/claude"]));
    done(&agents.run(&["store", "sync"], b""));
    assert_eq!(agents.run(&["breaker", "allow", "api/claude"], b"").code, Some(0));
    // A human holds it open, and agents still report failures.
    done(&humans.human(&["breaker", "trip", "api/claude", "--for", "10m"]));
    done(&agents.run(&["breaker", "record", "api/claude", "failure"], b""));
    assert_eq!(status(&agents)["rejected"], 1);
    assert_eq!(agents.run(&["breaker", "allow", "api/claude"], b"").code, Some(1));
    // A cooldown cannot be ended or shortened by SQL either.
    for change in ["'{state}', '\"HALF_OPEN\"'", "'{cooldown_until}', '\"2026-01-01T00:00:00Z\"'"] {
        let update = format!(
            "SELECT policyd.save_document('team', kind, name, jsonb_set(body::jsonb, {change})::text) \
             FROM policyd.read_changes('team', 0, 100, 1000000) WHERE kind = 'breaker'"
        );
        let refused = postgres::execute(&agent, &update).unwrap_err();
        assert!(refused.contains("only a human ends a cooldown early"), "{refused}");
    }
    // A group with members is closed to all others. What they report waits until they are let in.
    postgres::execute(&url, "INSERT INTO policyd.member VALUES ('team', 'other')").unwrap();
    assert_eq!(agents.run(&["breaker", "record", "api/other", "failure"], b"").code, Some(0));
    let refused = agents.run(&["store", "sync"], b"");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert_eq!(agents.run(&["store", "status"], b"").code, Some(1));
    assert_eq!((&status(&agents)["rejected"], &status(&agents)["waiting"]), (&json!(1), &json!(1)));
    postgres::execute(&url, "DELETE FROM policyd.member").unwrap();
    done(&agents.run(&["store", "sync"], b""));
    assert_eq!(status(&agents)["waiting"], 0);
}

#[test]
fn agents_claim_and_finish_tasks_under_any_name() {
    let test = "agents_claim_and_finish_tasks_under_any_name";
    let Some(server) = postgres::server(test) else { return };
    let [agent, _] = accounts(&server.database());
    let [one, other] = [host(&agent, ALL), host(&agent, ALL)];
    done(&one.run(&["dlq", "add", "t1", "--error", "x", "--immediately"], b""));
    // A container sets no `USER`.
    done(&one.run(&["dlq", "claim", "t1"], b""));
    assert_eq!(other.run(&["dlq", "claim", "t1"], b"").code, Some(1));
    done(&one.run(&["dlq", "finish", "t1", "--generation", "1"], b""));
    assert_eq!(other.run(&["dlq", "claim"], b"").code, Some(1));
    assert_eq!(status(&one)["rejected"], 0);
}

#[test]
fn each_project_has_its_group_and_operations_wait_for_theirs() {
    let test = "each_project_has_its_group_and_operations_wait_for_theirs";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let machine = host(&url, ALL);
    done(&machine.run(&["store", "init"], b""));
    let config = machine.path("config/policyd/config.yaml");
    let before = fs::read_to_string(&config).unwrap();
    let groups = format!("  groups: {{{:?}: own, /: all}}\n", machine.project.to_str().unwrap());
    // The operation is made for the first group, which cannot be reached.
    fs::write(&config, before.replace(&url, "postgres://127.0.0.1:1/none")).unwrap();
    machine.run(&["dlq", "add", "t1", "--error", "x", "--immediately"], b"");
    let queued = status(&machine)["waiting"].clone();
    assert_ne!(queued, 0);
    fs::write(&config, format!("{before}{groups}")).unwrap();
    assert_eq!(status(&machine)["group"], "own");
    assert_eq!(machine.run(&["store", "status"], b"").code, Some(1), "the group does not exist");
    done(&machine.run(&["store", "init"], b""));
    done(&machine.run(&["store", "sync"], b""));
    let now = status(&machine);
    assert_eq!((&now["waiting"], &now["waiting_elsewhere"]), (&json!(0), &queued), "{now}");
    assert_eq!(query(&url, "SELECT count(*)::text FROM policyd.document"), ["0"]);
}

#[test]
fn clients_and_schemas_of_other_versions_work_or_say_so() {
    let test = "clients_and_schemas_of_other_versions_work_or_say_so";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    postgres::execute(&url, include_str!("../../src/net/postgres/1.sql")).unwrap();
    let first = "INSERT INTO policyd.migration (version, client_min) VALUES (1, 1); \
                 INSERT INTO policyd.project_group (name) VALUES ('team')";
    postgres::execute(&url, first).unwrap();
    let machine = host(&url, ALL);
    let fail = || done(&machine.run(&["breaker", "record", "api/claude", "failure"], b"")).code;
    assert_eq!(fail(), Some(0), "a client works with an older schema");
    assert_eq!((&status(&machine)["schema"], &status(&machine)["waiting"]), (&json!(1), &json!(0)));
    let migrated = machine.run(&["store", "migrate"], b"");
    assert!(done(&migrated).stdout.contains("schema version 1 updated to 5"), "{migrated:?}");
    // A later version of policyd changed the schema.
    postgres::execute(&url, "INSERT INTO policyd.migration (version, client_min) VALUES (9, 9)")
        .unwrap();
    assert_eq!(fail(), Some(0), "it is saved for later");
    let shown = machine.run(&["store", "status"], b"");
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.stdout.contains("needs policyd with schema version 9"), "{shown:?}");
    assert_eq!(machine.run(&["store", "migrate"], b"").code, Some(3));
    assert_eq!(status(&machine)["waiting"], 1);
    postgres::execute(&url, "DELETE FROM policyd.migration WHERE version = 9").unwrap();
    done(&machine.run(&["store", "sync"], b""));
    assert_eq!(status(&machine)["waiting"], 0);
    assert_eq!(query(&url, "SELECT count(*)::text FROM policyd.applied"), ["2"]);
}

#[test]
fn a_slow_password_command_does_not_delay_a_hook() {
    let test = "a_slow_password_command_does_not_delay_a_hook";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let machine = host(&url, "  password_command: [sleep, '60']\n");
    let called = overloaded(&machine);
    called.answer();
    assert!(called.took < Duration::from_secs(20), "{called:?}");
    let notice = machine.stop().notice();
    assert!(notice.contains("password command did not end within"), "{notice}");
}

#[test]
fn a_silent_read_only_or_full_server_blocks_no_agent() {
    let test = "a_silent_read_only_or_full_server_blocks_no_agent";
    let Some(server) = postgres::server(test) else { return };
    if !server.is_own() {
        eprintln!("SKIPPED {test}: the server is not ours to stop");
        return;
    }
    let url = server.database();
    let name = url.rsplit('/').next().unwrap();
    let set = |sql: &str| postgres::execute(&url, sql).unwrap();
    for (state, begin, end) in [
        ("silent", String::new(), String::new()),
        (
            "read-only",
            format!("ALTER DATABASE {name} SET default_transaction_read_only = on"),
            format!("ALTER DATABASE {name} RESET ALL"),
        ),
        (
            "full",
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
             $$BEGIN RAISE 'no space left on device' USING ERRCODE = '53100'; END$$; \
             CREATE TRIGGER full_disk BEFORE INSERT ON policyd.applied EXECUTE FUNCTION full_disk()"
                .to_owned(),
            "DROP TRIGGER full_disk ON policyd.applied; DROP FUNCTION full_disk()".to_owned(),
        ),
    ] {
        let machine = host(&url, "");
        done(&machine.run(&["store", "init"], b""));
        let before = query(&url, "SELECT count(*)::text FROM policyd.applied");
        if begin.is_empty() {
            server.set_silent(true)
        } else {
            set(&begin)
        }
        let called = overloaded(&machine);
        called.answer();
        eprintln!("{state}: {:?}", called.took);
        assert!(called.took < Duration::from_secs(5), "{state}: {:?}", called.took);
        let notice = begin_of(&machine).notice();
        assert!(notice.contains("shared store"), "{state}: {notice}");
        match state {
            "silent" => server.set_silent(false),
            // The database itself refuses to be changed now.
            "read-only" => server.administer(&end),
            _ => set(&end),
        }
        done(&machine.run(&["store", "sync"], b""));
        let after = query(&url, "SELECT count(*)::text FROM policyd.applied");
        let number = |it: &[String]| it[0].parse::<u64>().unwrap();
        assert_eq!(number(&after), number(&before) + 1, "{state}: sent afterwards");
    }
}

#[test]
fn local_documents_are_copied_and_decisions_are_sent_once() {
    let test = "local_documents_are_copied_and_decisions_are_sent_once";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let machine = Machine::new();
    done(&machine.run(&["breaker", "record", "api/claude", "failure"], b""));
    done(&machine.run(&["dlq", "add", "task-1", "--error", "no space", "--immediately"], b""));
    machine.stop().answer();
    // Only now the user configures a store.
    let text = format!("store: {{url: \"{url}\", share: [tasks, escalations, decisions]}}\n");
    fs::write(machine.path("config/policyd/config.yaml"), text).unwrap();
    done(&machine.run(&["store", "init"], b""));
    let differs = machine.run(&["store", "verify"], b"");
    assert_eq!(differs.code, Some(1), "{differs:?}");
    assert!(differs.stdout.contains("task `task-1`: only in the local files"), "{differs:?}");
    let copied = machine.run(&["store", "copy", "--from", "files", "--to", "postgres"], b"");
    assert_eq!(done(&copied).stdout, "documents copied to the server: 2\n");
    done(&machine.run(&["store", "verify"], b""));
    let again = machine.run(&["store", "copy", "--from", "files", "--to", "postgres"], b"");
    assert_eq!(done(&again).stdout, "documents copied to the server: 0\n");
    let count = || query(&url, "SELECT count(*)::text FROM policyd.decision");
    done(&machine.run(&["store", "sync"], b""));
    let sent = count();
    assert_ne!(sent, ["0"]);
    done(&machine.run(&["store", "sync"], b""));
    assert_eq!(count(), sent, "no decision is sent twice");
    machine.stop().answer();
    done(&machine.run(&["store", "sync"], b""));
    assert_ne!(count(), sent);
}

#[test]
fn a_crowd_loses_nothing_while_the_server_is_killed_and_restarted() {
    let test = "a_crowd_loses_nothing_while_the_server_is_killed_and_restarted";
    let Some(mut server) = postgres::server(test) else { return };
    if !server.is_own() {
        eprintln!("SKIPPED {test}: the server is not ours to kill");
        return;
    }
    let url = server.database();
    let hosts = hosts(&url);
    let rounds = 8;
    let slowest = thread::scope(|scope| {
        let agents: Vec<_> = hosts
            .iter()
            .map(|host| {
                scope.spawn(move || {
                    let took = (0..rounds).map(|_| {
                        let called = overloaded(host);
                        called.answer();
                        called.took
                    });
                    took.max().unwrap()
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(300));
        server.kill();
        thread::sleep(Duration::from_millis(300));
        server.restart();
        agents.into_iter().map(|it| it.join().unwrap()).max().unwrap()
    });
    eprintln!("slowest hook while the server is killed and restarted: {slowest:?}");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    for host in &hosts {
        done(&host.run(&["store", "sync"], b""));
        assert_eq!(status(host)["waiting"], 0);
    }
    let failures = "SELECT count(*)::text FROM policyd.applied";
    // Each turn fails one breaker; the operations are counted by their ids.
    assert_eq!(query(&url, failures), [(rounds * hosts.len()).to_string()]);
    for host in &hosts {
        done(&host.run(&["store", "verify"], b""));
    }
}

#[test]
fn a_connection_is_encrypted_and_its_certificate_is_verified() {
    let test = "a_connection_is_encrypted_and_its_certificate_is_verified";
    let names = || vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names()).unwrap();
    let Some(server) = Postgres::with_certificate(&cert.pem(), &signing_key.serialize_pem()) else {
        // Another test fails where CI requires PostgreSQL.
        eprintln!("SKIPPED {test}: install PostgreSQL");
        return;
    };
    let url = format!("{}?sslmode=require", server.database());
    let trusting = |pem: &str| {
        let machine = host(&url, "");
        let path = machine.path("authority.pem");
        fs::write(&path, pem).unwrap();
        let text = format!("store:\n  url: {url}\n  ca_file: {}\n", path.display());
        fs::write(machine.path("config/policyd/config.yaml"), text).unwrap();
        machine
    };
    let machine = trusting(&cert.pem());
    done(&machine.run(&["store", "init"], b""));
    assert_eq!(status(&machine)["encrypted"], true);
    // Neither the certificates of the machine nor those of a stranger vouch for this server.
    let stranger = generate_simple_self_signed(names()).unwrap().cert.pem();
    for refused in [host(&url, ""), trusting(&stranger)] {
        let called = refused.run(&["store", "sync"], b"");
        assert_eq!(called.code, Some(3), "{called:?}");
        assert!(called.stderr.contains("certificate"), "{called:?}");
    }
    // The certificate is for another name.
    let other = url.replace("localhost", "127.0.0.1");
    let machine = trusting(&cert.pem());
    let config = machine.path("config/policyd/config.yaml");
    let text = fs::read_to_string(&config).unwrap().replace(&url, &other);
    fs::write(&config, text).unwrap();
    let called = machine.run(&["store", "sync"], b"");
    assert!(called.code == Some(3) && called.stderr.contains("certificate"), "{called:?}");
}

#[test]
fn the_end_of_a_session_sends_its_decisions() {
    let test = "the_end_of_a_session_sends_its_decisions";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let machine = host(&url, "  share: [decisions]\n");
    done(&machine.run(&["store", "init"], b""));
    blocked_call(&machine);
    let end = json!({
        "session_id": "s1", "cwd": machine.project.to_str(), "hook_event_name": "SessionEnd",
        "reason": "exit",
    });
    let ended = || machine.run(&["eval", "--hook", "session-end"], end.to_string().as_bytes());
    ended().answer();
    let sent = query(&url, "SELECT entry ->> 'tool' FROM policyd.decision");
    assert_eq!(sent, ["Bash"]);
    ended().answer();
    assert_eq!(query(&url, "SELECT count(*)::text FROM policyd.decision"), ["1"]);
}
