//! Three hosts on a network share one PostgreSQL: each has its own network namespace, its own directories, and an
//! agent that works all the time. The server is cut off in between.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::machine::{Called, Machine};
use crate::shared_store::{ALL, accounts, begin_of, done, host, opening_max, overloaded, status};
use crate::support::full;
use crate::support::network::Network;
use crate::support::postgres::{Postgres, query};

const HOSTS: usize = 3;
/// Longest hook while the server is cut off, on a busy machine. policyd itself waits 250 ms.
const HOOK_MAX: Duration = Duration::from_secs(5);
/// Longest time until a healed network has routes again.
const ROUTE_WAIT: Duration = Duration::from_secs(20);

/// The hosts, each with its number on the network.
struct Fleet {
    network: Network,
    machines: Vec<Machine>,
}

impl Fleet {
    /// Runs a command on a host.
    fn run(&self, number: usize, words: &[&str]) -> Called {
        self.on(number, |it| it.run(words, b""))
    }

    fn on<T: Send>(&self, number: usize, work: impl FnOnce(&Machine) -> T + Send) -> T {
        let machine = &self.machines[number - 1];
        self.network.on(number, || work(machine))
    }

    /// Does work on all hosts at once, and returns the results in their order.
    fn everywhere<T: Send>(&self, work: impl Fn(usize, &Machine) -> T + Sync) -> Vec<T> {
        let work = &work;
        thread::scope(|scope| {
            let hosts: Vec<_> = (1..=HOSTS)
                .map(|number| scope.spawn(move || self.on(number, |it| work(number, it))))
                .collect();
            hosts.into_iter().map(|it| it.join().unwrap()).collect()
        })
    }
}

/// An agent: it asks before a tool call, its turns fail because the model is overloaded, and it stops. Returns the
/// number of failed turns and the longest hook.
fn work(machine: &Machine, ends: &AtomicBool) -> (usize, Duration) {
    let (mut failures, mut slowest) = (0, Duration::ZERO);
    while !ends.load(Ordering::Relaxed) {
        let call = json!({
            "session_id": "s1", "cwd": machine.project.to_str(), "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": "ls"},
        });
        let call = machine.run(&["eval", "--hook", "pre-tool-use"], call.to_string().as_bytes());
        let hooks = [begin_of(machine), call, overloaded(machine), machine.stop()];
        for called in &hooks {
            assert!(!called.blocks(), "{called:?}");
            slowest = slowest.max(called.took);
        }
        failures += 1;
    }
    (failures, slowest)
}

/// Waits until a host does not permit calls of the service.
fn wait_until_open(machine: &Machine, began: Instant) {
    while machine.run(&["breaker", "allow", "api/claude"], b"").code != Some(1) {
        assert!(began.elapsed() < Duration::from_secs(20), "the breaker stays closed");
    }
}

fn claims(fleet: &Fleet) -> Vec<String> {
    let claimed = fleet.everywhere(|_, machine| {
        // Agents of two hosts can have the same name.
        let words = ["dlq", "claim", "--holder", "agent", "--format", "json"];
        let claimed: Value = serde_json::from_str(&machine.run(&words, b"").stdout).ok()?;
        Some(claimed["task_id"].as_str()?.to_owned())
    });
    claimed.into_iter().flatten().collect()
}

#[test]
fn three_hosts_work_on_while_the_server_is_cut_off() {
    let test = "three_hosts_work_on_while_the_server_is_cut_off";
    let Some(network) = Network::new(test, HOSTS) else { return };
    let hub = Network::address(0);
    let Some(server) = network.on(0, || Postgres::on_network(&hub)) else {
        let required = std::env::var("POLICYD_REQUIRE_POSTGRES").is_ok_and(|it| it == "1");
        assert!(!required, "{test}: POLICYD_REQUIRE_POSTGRES is set, and there is no PostgreSQL");
        eprintln!("SKIPPED {test}: install PostgreSQL");
        return;
    };
    let url = network.on(0, || server.database());
    // The address is that of another host: a connection would be encrypted.
    let plain = format!("{url}?sslmode=disable");
    // A human sits at the second host. Agents have an account of their own.
    let [agent, human] = network.on(1, || accounts(&plain));
    let machines = [&agent, &human, &agent].map(|it| host(it, ALL)).into();
    let fleet = Fleet { network, machines };

    // A 529 on one host opens the breaker of all.
    let opening_max =
        fleet.everywhere(|_, machine| opening_max(machine)).into_iter().max().unwrap();
    for _ in 0..3 {
        fleet.on(1, overloaded).answer();
    }
    let opened = Instant::now();
    fleet.everywhere(|_, machine| wait_until_open(machine, opened));
    let took = opened.elapsed();
    eprintln!("all hosts know after {took:?}");
    assert!(took < opening_max, "{took:?} of {opening_max:?}");

    // Two dead letters, three agents.
    for (id, error) in [("task-1", "no space"), ("task-2", "no route")] {
        done(&fleet.run(1, &["dlq", "add", id, "--error", error, "--immediately"]));
    }
    let mut claimed = claims(&fleet);
    claimed.sort();
    assert_eq!(claimed, ["task-1", "task-2"], "each dead letter once");

    let asks = ["escalation", "open", "--task", "task-1", "--reason", "Buy a disk?", "--blocking"];
    done(&fleet.run(1, &asks));
    let asked = fleet.run(2, &["escalation", "list", "--format", "json"]);
    let asked: Value = serde_json::from_str(&asked.stdout).unwrap();
    let question = asked["id"].as_str().unwrap().to_owned();

    cut_off(&fleet, &question);

    let answered = fleet.run(1, &["escalation", "list", "--all", "--format", "json"]);
    let answered: Value = serde_json::from_str(&answered.stdout).unwrap();
    assert_eq!((&answered["status"], &answered["decision"]), (&json!("approved"), &json!("yes")));
    let tasks = fleet.everywhere(|_, machine| {
        let listed = machine.run(&["dlq", "list", "--format", "json"], b"");
        done(&listed).stdout.lines().count()
    });
    assert_eq!(tasks, [5; HOSTS], "every host sees the tasks of all");
    let applied =
        network_query(&fleet, &url, "SELECT count(DISTINCT id)::text FROM policyd.applied");
    assert_eq!(applied, network_query(&fleet, &url, "SELECT count(*)::text FROM policyd.applied"));
}

/// Sends what waits. For a moment, the network of the machine remembers that it had no route.
fn synced(machine: &Machine) -> Called {
    let began = Instant::now();
    loop {
        let called = machine.run(&["store", "sync"], b"");
        if called.code == Some(0) || began.elapsed() > ROUTE_WAIT {
            return called;
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Cuts the server off while agents work, a task fails on each host, and a human answers on the second host.
/// Then everything is sent, and all hosts agree with the server.
fn cut_off(fleet: &Fleet, question: &str) {
    let length = Duration::from_secs(if full() { 60 } else { 5 });
    let ends = AtomicBool::new(false);
    fleet.network.cut();
    let worked = thread::scope(|scope| {
        let agents = scope.spawn(|| fleet.everywhere(|_, machine| work(machine, &ends)));
        let failed = fleet.everywhere(|number, machine| {
            let id = format!("task-of-host-{number}");
            let error = format!("disk {number} is full");
            machine.run(&["dlq", "add", &id, "--error", &error, "--immediately"], b"")
        });
        let words = ["escalation", "resolve", question, "--decision", "yes"];
        let resolved = fleet.on(2, |it| it.human(&words));
        thread::sleep(length);
        ends.store(true, Ordering::Relaxed);
        for called in failed.iter().chain([&resolved]) {
            done(called);
        }
        agents.join().unwrap()
    });
    let waiting = fleet.everywhere(|_, machine| status(machine)["waiting"].as_u64().unwrap());
    fleet.network.heal();
    for ((failures, slowest), waiting) in worked.iter().zip(waiting) {
        eprintln!("{failures} failed turns, slowest hook {slowest:?}, {waiting} operations wait");
        assert!(*slowest < HOOK_MAX, "{slowest:?}");
        assert!(*failures > 0 && waiting > *failures as u64, "{failures} {waiting}");
    }
    // Twice: the first host also receives what the last one sent.
    for _ in 0..2 {
        for called in fleet.everywhere(|_, machine| synced(machine)) {
            done(&called);
        }
    }
    for called in fleet.everywhere(|_, machine| machine.run(&["store", "verify"], b"")) {
        done(&called);
    }
    let waiting = fleet.everywhere(|_, machine| status(machine)["waiting"].as_u64().unwrap());
    assert_eq!(waiting, [0; HOSTS], "nothing is lost");
}

/// A query of the administrator.
fn network_query(fleet: &Fleet, url: &str, sql: &str) -> Vec<String> {
    fleet.network.on(0, || query(url, sql))
}
