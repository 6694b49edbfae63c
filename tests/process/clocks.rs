//! Hosts whose clocks are wrong share one store: the time of the server decides.

use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use crate::machine::{Called, Machine, run};
use crate::shared_store::{done, host};
use crate::support::postgres;

/// Changes the clock of a process. Debian's package is `libfaketime`.
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];

/// What is shared besides breakers.
const SHARED: &str = "  share: [tasks, escalations, signals]\n";

/// Calls of an agent that wants a task, while others keep the store busy.
const TRIES_MAX: usize = 30;

/// A host whose clock is wrong by this much.
struct SkewedHost {
    machine: Machine,
    library: &'static str,
    skew: &'static str,
}

impl SkewedHost {
    fn run(&self, arguments: &[&str], stdin: &str) -> Called {
        let mut command = self.machine.command(arguments);
        command.env("LD_PRELOAD", self.library).env("FAKETIME", self.skew);
        command.env("DONT_FAKE_MONOTONIC", "1");
        run(command, stdin.as_bytes())
    }

    fn fail(&self) {
        let payload = json!({
            "session_id": "s1", "cwd": self.machine.project.to_str(), "error": "overloaded",
            "hook_event_name": "StopFailure", "last_assistant_message": "API Error: 529 overloaded",
        });
        self.run(&["eval", "--hook", "stop-failure"], &payload.to_string()).answer();
    }
}

#[test]
fn hosts_with_wrong_clocks_share_breakers_and_claims() {
    let test = "hosts_with_wrong_clocks_share_breakers_and_claims";
    let Some(library) = LIBRARIES.into_iter().find(|it| Path::new(it).exists()) else {
        eprintln!("SKIPPED {test}: libfaketime is not installed");
        return;
    };
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let hosts =
        ["-2h", "+0", "+2h"].map(|skew| SkewedHost { machine: host(&url, SHARED), library, skew });
    done(&hosts[1].run(&["store", "init"], ""));
    // Each host reports one of the three failures that open the breaker.
    thread::scope(|scope| hosts.iter().for_each(|it| drop(scope.spawn(|| it.fail()))));
    // A hook that found no time to send its failure left it in the outbox: all send before one looks.
    for host in &hosts {
        done(&host.run(&["store", "sync"], ""));
    }
    for host in &hosts {
        done(&host.run(&["store", "sync"], ""));
        let allowed = host.run(&["breaker", "allow", "api/claude"], "");
        assert_eq!(allowed.code, Some(1), "{}: {allowed:?}", host.skew);
        let shown = host.run(&["breaker", "show", "api/claude", "--format", "json"], "");
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(shown["state"], "OPEN", "{}: {shown}", host.skew);
    }
    // A signal that expires soon is not over on a host in the future.
    let emitted = ["signal", "emit", "TESTS_PASSED_X", "--expires", "10m"];
    for (number, reader) in [(0, 2), (2, 1)] {
        done(&hosts[number].run(&emitted, ""));
        done(&hosts[number].run(&["store", "sync"], ""));
        done(&hosts[reader].run(&["signal", "consume", "TESTS_PASSED_X"], ""));
    }
    // Six agents, four tasks: a lease of a host in the past does not look expired to a host in the future.
    for (number, error) in ["no space", "no route", "bad key", "wrong answer"].iter().enumerate() {
        let id = format!("task-{number}");
        done(&hosts[number % 3].run(&["dlq", "add", &id, "--error", error, "--immediately"], ""));
    }
    let claim = |number: usize| {
        let name = format!("agent-{number}");
        let words = ["dlq", "claim", "--holder", &name, "--format", "json"];
        // An agent tries again until it has a task, or no task is free.
        for _ in 0..TRIES_MAX {
            let called = hosts[number % 3].run(&words, "");
            match called.code {
                Some(0) => {
                    let claimed: Value = serde_json::from_str(&called.stdout).unwrap();
                    return Some(claimed["task_id"].as_str().unwrap().to_owned());
                }
                Some(1) => return None,
                _ => eprintln!("{name}: {}", called.stderr),
            }
        }
        panic!("{name} received no answer");
    };
    let claims: Vec<Option<String>> = thread::scope(|scope| {
        let agents: Vec<_> = (0..6)
            .map(|it| {
                scope.spawn({
                    let claim = &claim;
                    move || claim(it)
                })
            })
            .collect();
        agents.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let mut ids: Vec<String> = claims.into_iter().flatten().collect();
    ids.sort();
    assert_eq!(ids, ["task-0", "task-1", "task-2", "task-3"], "each task once");
    for host in &hosts {
        done(&host.run(&["store", "sync"], ""));
        done(&host.run(&["store", "verify"], ""));
    }
}
