//! A thousand short-lived processes on one breaker and one queue of a shared store: every event counts once, every
//! task is claimed once, and how long a process takes. `cargo bench --bench shared_store`; the number of processes
//! is the first argument.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a measurement of real processes"
)]

#[path = "../support/postgres.rs"]
#[expect(dead_code, reason = "the tests use the rest of it")]
mod postgres;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Processes at one time, on that many hosts.
const HOSTS: usize = 8;

fn host(folder: &Path, url: &str) {
    for name in ["config/policyd", "project/.git", "project/.policyd/policies"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let config = format!("store: {{url: \"{url}\", share: [tasks]}}\n");
    fs::write(folder.join("config/policyd/config.yaml"), config).unwrap();
    // The failures of this bench do not open the breaker, so that each one is counted.
    let pack = folder.join("pack");
    fs::create_dir_all(&pack).unwrap();
    fs::write(pack.join("policyd.yaml"), "version: 1\nextends: [builtin]\n").unwrap();
    let breakers = "api/*: {window: 30d, threshold: 1000}\n";
    fs::write(pack.join("breakers.yaml"), breakers).unwrap();
}

fn call(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_policyd"));
    command.args(words).current_dir(folder.join("project")).env_clear();
    command.envs(std::env::var_os("PATH").map(|it| ("PATH", it)));
    command.env("POLICYD_POLICIES", folder.join("pack"));
    for (name, below) in [
        ("HOME", "home"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_STATE_HOME", "state"),
    ] {
        command.env(name, folder.join(below));
    }
    command.output().unwrap()
}

/// Prints the median and the 99th percentile.
fn print_times(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let (median, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{name}: p50 {median:?}, p99 {slow:?}");
}

fn add_tasks(host: &Path, tasks: usize) {
    for number in 0..tasks {
        let id = format!("task-{number:04}");
        // Tasks that fail alike would wait for one human.
        let word: String =
            number.to_string().bytes().map(|it| char::from(it - b'0' + b'a')).collect();
        let error = format!("no {word}");
        assert!(
            call(host, &["dlq", "add", &id, "--error", &error, "--immediately"]).status.success()
        );
    }
}

fn main() {
    let named = std::env::args().filter_map(|it| it.parse().ok()).next();
    let processes: usize = named.unwrap_or(1_000).min(1_500);
    let Some(server) = postgres::server("bench shared_store") else { return };
    let url = server.database();
    let folder = tempfile::tempdir().unwrap();
    let hosts: Vec<_> = (0..HOSTS).map(|it| folder.path().join(it.to_string())).collect();
    hosts.iter().for_each(|it| host(it, &url));
    assert!(call(&hosts[0], &["store", "init"]).status.success());
    let tasks = processes / 20;
    add_tasks(&hosts[0], tasks);
    let (next, claimed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (records, claims) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let requests = Mutex::new(Vec::new());
    let began = Instant::now();
    thread::scope(|scope| {
        for host in &hosts {
            let (next, claimed, records, claims) = (&next, &claimed, &records, &claims);
            let requests = &requests;
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= processes {
                        return;
                    }
                    let began = Instant::now();
                    if number % 10 == 9 {
                        let output = call(host, &["dlq", "claim", "--holder", "bench"]);
                        claims.lock().unwrap().push(began.elapsed());
                        let text = String::from_utf8_lossy(&output.stdout).into_owned();
                        if let Some((id, _)) = text.split_once(':') {
                            claimed.lock().unwrap().push(id.to_owned());
                        }
                    } else if number % 10 >= 6 {
                        let output = call(host, &["breaker", "allow", "api/bench"]);
                        assert!(output.status.success(), "{output:?}");
                        requests.lock().unwrap().push(began.elapsed());
                    } else {
                        let output = call(host, &["breaker", "record", "api/bench", "failure"]);
                        assert!(output.status.success(), "{output:?}");
                        records.lock().unwrap().push(began.elapsed());
                    }
                }
            });
        }
    });
    let took = began.elapsed();
    for host in &hosts {
        let output = call(host, &["store", "sync"]);
        assert!(output.status.success(), "{output:?}");
    }
    let claimed = claimed.into_inner().unwrap();
    let different: BTreeSet<&String> = claimed.iter().collect();
    assert_eq!(different.len(), claimed.len(), "no task is claimed twice");
    assert_eq!(claimed.len(), tasks.min(processes / 10), "every task is claimed");
    let counted = postgres::query(
        &url,
        "SELECT body ->> 'failure_count' FROM policyd.document WHERE name = 'api/bench'",
    );
    let records = records.into_inner().unwrap();
    let kept = records.len().min(policyd::limits::BREAKER_CALLS_MAX);
    assert_eq!(counted, [kept.to_string()], "no failure is lost or doubled");
    let applied = postgres::query(&url, "SELECT count(*)::text FROM policyd.applied");
    println!(
        "{processes} processes on {HOSTS} hosts in {took:?}; operations applied: {}",
        applied[0]
    );
    print_times("breaker record", records);
    print_times("breaker allow", requests.into_inner().unwrap());
    print_times("dlq claim", claims.into_inner().unwrap());
}
