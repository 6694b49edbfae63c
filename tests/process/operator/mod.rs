//! What an operator of many projects sees: one log over all of them, with what happened beside decisions.

mod export;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::{fs, thread};

use serde_json::{Value, json};

use crate::machine::{BOUND, Machine, git_directory, skipped};

/// An entry of the registry of projects.
fn register(machine: &Machine, name: &str, directory: &Path) {
    let folder = machine.path("state/policyd/projects");
    fs::create_dir_all(&folder).unwrap();
    let entry = json!({"directory": directory, "state_dir": directory.join(".policyd"),
        "since": "2026-01-01T00:00:00Z"});
    fs::write(folder.join(format!("{name}.json")), entry.to_string()).unwrap();
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
#[cfg(unix)]
fn every_user_can_read_the_metrics_file() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let file = machine.path("policyd.prom");
    for _ in 0..2 {
        let written = machine.run(&["metrics", "--textfile", file.to_str().unwrap()], b"");
        assert_eq!(written.code, Some(0), "{written:?}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
        assert!(fs::read_to_string(&file).unwrap().contains("policyd_breakers_half_open"));
    }
}

#[test]
fn a_directory_counts_before_and_behind_the_command() {
    let machine = Machine::new();
    let other = machine.path("other");
    git_directory(&other);
    let there = other.to_str().unwrap();
    for words in [["-C", there, "status"], ["status", "-C", there]] {
        let called = machine.run(&words, b"");
        assert_eq!(called.code, Some(0), "{called:?}");
        assert!(called.stdout.contains("\nother "), "{called:?}");
    }
    let called = machine.run(&["status", "-C", "/no/such"], b"");
    assert_eq!(called.code, Some(2), "{called:?}");
    assert!(called.stderr.contains("/no/such cannot be used"), "{called:?}");
}

#[test]
fn one_log_shows_what_happened_in_all_projects() {
    let machine = Machine::new();
    assert!(machine.untested().stop().blocks());
    let other = machine.path("other");
    git_directory(&other);
    register(&machine, "other", &other);
    let there = other.to_str().unwrap();
    let call = |arguments: &[&str], code: i32| {
        let called = machine.run(&[&["-C", there], arguments].concat(), b"");
        assert_eq!(called.code, Some(code), "{called:?}");
    };
    call(&["run", "--goal", "Build it", "--max-iterations", "1", "--", "true"], 11);
    call(&["escalation", "open", "--gate", "review", "--reason", "May I?"], 0);
    call(&["dlq", "add", "T-1", "--error", "disk full", "--immediately"], 0);
    for _ in 0..20 {
        call(&["breaker", "record", "api/x", "failure", "--error", "HTTP 500"], 0);
    }
    let log = ["log", "--all", "--notable", "--since", "1h", "--format", "json"];
    let entries = lines(&machine.run(&log, b"").stdout);
    let seen: Vec<(&str, &str)> = entries
        .iter()
        .map(|it| (it["project"].as_str().unwrap(), it["event"].as_str().unwrap()))
        .collect();
    let here = machine.project.canonicalize().unwrap();
    let here = here.to_str().unwrap();
    let expected = [
        (here, "stop"),
        (there, "run_end"),
        (there, "escalation"),
        (there, "dead_letter"),
        (there, "breaker_open"),
    ];
    assert_eq!(seen, expected);
    let run = &entries[1]["notice"];
    assert_eq!(run["run"]["goal"], "Build it");
    assert_eq!(run["run"]["turns"], 1, "{run}");
    let text = machine.run(&["log", "--all", "--since", "1h"], b"").stdout;
    assert!(text.contains("  other  ") && text.contains("  api/x: HTTP 500\n"), "{text}");
    // The metrics count the same entries.
    let metrics = machine.run(&["metrics"], b"").stdout;
    let ended = format!("policyd_notices_total{{project=\"{there}\",event=\"run_end\"}} 1\n");
    assert!(metrics.contains(&ended), "{metrics}");
    check_metrics(&metrics);
}

/// Lets Prometheus check the format and the names of metrics.
fn check_metrics(metrics: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut promtool) = promtool.stdout(Stdio::piped()).spawn() else {
        skipped("one_log_shows_what_happened_in_all_projects", "`promtool` is not installed");
        return;
    };
    promtool.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// A server that keeps the bodies and headers of requests.
fn receiver() -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, received) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                let line = line.to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(b"HTTP/1.1 204 X\r\nconnection: close\r\n\r\n").unwrap();
            if sender.send((head, String::from_utf8(body).unwrap())).is_err() {
                return;
            }
        }
    });
    (url, received)
}

#[test]
fn a_breaker_explains_that_it_was_asked_to_wait() {
    let machine = Machine::new();
    let failure = ["failure", "--class", "overloaded", "--retry-after", "90"];
    machine.run(&[&["breaker", "record", "api/x"], &failure[..]].concat(), b"");
    let explained = machine.run(&["breaker", "explain", "api/x"], b"").stdout;
    assert!(explained.contains("it was asked to wait (`Retry-After`)"), "{explained}");
}

#[test]
fn a_run_that_waits_for_a_human_is_not_resumed_without_turns() {
    let machine = Machine::new();
    let git = machine.program("git", &["init", "-q"]).status();
    assert!(git.unwrap().success());
    let program = env!("CARGO_BIN_EXE_policyd");
    let agent = format!("echo hello > new.txt; {program} signal emit COMPLETION_REQUESTED");
    let run = ["run", "--goal", "Build it", "--max-iterations", "3", "--", "sh", "-c", &agent];
    let ended = machine.run(&run, b"");
    assert_eq!(ended.code, Some(14), "unverified: {ended:?}");
    let refused = machine.run(&["run", "--resume"], b"");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--max-iterations 4"), "{refused:?}");
    assert!(machine.run(&["status"], b"").stdout.contains("needs you"));
}

#[test]
fn a_resumed_run_is_counted_once() {
    let machine = Machine::new();
    let result = json!({"type": "result", "subtype": "success", "result": "ok", "session_id": "s",
        "total_cost_usd": 1.0, "usage": {"input_tokens": 100, "output_tokens": 50}});
    machine.put("agent.sh", &format!("echo '{result}'\n"));
    let run = ["run", "--goal", "Build it", "--max-iterations", "1", "--", "sh", "agent.sh"];
    assert_eq!(machine.run(&run, b"").code, Some(11));
    for turns in ["2", "3"] {
        let resumed = machine.run(&["run", "--resume", "--max-iterations", turns], b"");
        assert_eq!(resumed.code, Some(11), "{resumed:?}");
    }
    let log = machine.run(&["log", "--notable", "--format", "json"], b"").stdout;
    let ends: Vec<Value> = log.lines().filter_map(|it| serde_json::from_str(it).ok()).collect();
    let end = ends.iter().rfind(|it| it["event"] == "run_end").unwrap_or_else(|| panic!("{log}"));
    let explained = machine.run(&["explain", end["id"].as_str().unwrap()], b"").stdout;
    assert!(explained.contains("(max_iterations): Build it"), "{explained}");
    assert!(!explained.contains("not evaluated"), "{explained}");
    // A stop adds the project to the list of projects.
    machine.stop();
    let report = machine.run(&["report", "--since", "12h", "--format", "text"], b"").stdout;
    assert!(report.contains("cost of runs in USD: 3.00"), "{report}");
    assert!(report.contains("runs ended otherwise: 1"), "{report}");
    let metrics = machine.run(&["metrics"], b"").stdout;
    let values = |name: &str| -> Vec<&str> {
        let lines = metrics.lines().filter(|it| it.starts_with(name));
        lines.filter_map(|it| it.rsplit(' ').next()).collect()
    };
    assert_eq!(values("policyd_runs_cost_usd_total{"), ["3"], "{metrics}");
    assert_eq!(values("policyd_runs_tokens_total{"), ["0", "300", "150"], "{metrics}");
}

#[test]
fn a_run_tells_its_end_to_a_channel_and_a_hook_tells_nobody() {
    let machine = Machine::new();
    let (url, received) = receiver();
    let folder = machine.path("config/policyd");
    fs::write(folder.join("key"), "secret key\n").unwrap();
    let config = format!(
        "channels: [{{id: ops, kind: webhook, url: '{url}', secret_file: key}}]\n\
         reports: [{{id: morning, at: '00:00', file: 'night.html'}}]\n"
    );
    fs::write(folder.join("config.yaml"), config).unwrap();
    // There is something to send, and hooks do not send it.
    let open = ["escalation", "open", "--gate", "review", "--reason", "May I?"];
    assert_eq!(machine.run(&open, b"").code, Some(0));
    assert!(machine.untested().stop().blocks());
    let end = json!({"hook_event_name": "SessionEnd"});
    let end = machine.payload(&end).to_string();
    machine.run(&["eval", "--hook", "session-end"], end.as_bytes()).answer();
    assert!(received.try_recv().is_err(), "a hook sends no alert");
    let run = ["run", "--goal", "Build it", "--max-iterations", "1", "--", "true"];
    assert_eq!(machine.run(&run, b"").code, Some(11));
    let (_, asked) = received.recv_timeout(BOUND).unwrap();
    assert!(asked.contains("policyd.escalation"), "{asked}");
    let (head, body) = received.recv_timeout(BOUND).unwrap();
    for header in ["webhook-id: ", "webhook-timestamp: ", "webhook-signature: v1,"] {
        assert!(head.contains(header), "{head}");
    }
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&body["type"], &body["data"]["severity"]),
        (&json!("policyd.run_end"), &json!("medium"))
    );
    let report = fs::read_to_string(machine.path("state/policyd/reports/night.html")).unwrap();
    assert!(report.contains("Blocked and released") && report.contains("<svg"), "{report}");
    // A channel in the pack of a repository has no address.
    machine.put(".policyd/policies/escalation.yaml", "channels: [{id: x, kind: slack}]\n");
    assert_ne!(machine.run(&["lint", ".policyd/policies"], b"").code, Some(0));
    assert!(received.try_recv().is_err(), "each alert is sent once");
    assert_eq!(machine.run(&["escalation", "test", "ops"], b"").code, Some(0));
    assert!(received.recv_timeout(BOUND).unwrap().1.contains("policyd.test"));
}

#[test]
fn what_is_ignored_of_a_configuration_is_reported_where_alerts_are_sent() {
    let machine = Machine::new();
    let text = "channels: [{id: a, kind: slak, url: 'https://x.example'}]\n";
    fs::write(machine.path("config/policyd/config.yaml"), text).unwrap();
    let run = ["run", "--goal", "Build it", "--max-iterations", "1", "--", "true"];
    for arguments in [&["escalation", "notify"][..], &["report", "--due"], &run] {
        let called = machine.run(arguments, b"");
        let said = [called.stdout.as_str(), &called.stderr].concat();
        assert!(said.contains("unknown value `slak`"), "{arguments:?}: {called:?}");
    }
}

/// Lines that a process prints, as they come.
fn following(machine: &Machine, arguments: &[&str]) -> (std::process::Child, Receiver<Value>) {
    let mut child = machine.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let value = serde_json::from_str(&line).unwrap();
            if sender.send(value).is_err() {
                return;
            }
        }
    });
    (child, receiver)
}

#[test]
fn following_survives_rotations_and_finds_new_projects() {
    let machine = Machine::new();
    register(&machine, "here", &machine.project);
    let log = machine.file(".policyd/logs/decisions.jsonl");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    let entry = |number: u32| {
        let time = format!("2026-01-01T00:00:{number:02}Z");
        json!({"timestamp": time, "id": number.to_string(), "event": "stop", "decision": "none"})
    };
    fs::write(&log, format!("{}\n", entry(1))).unwrap();
    let (mut child, received) = following(&machine, &["log", "--all", "-f", "--format", "json"]);
    let next = || received.recv_timeout(BOUND).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(next(), "1");
    // Two rotations at once, with entries in each file; the last line is not complete.
    fs::write(&log, format!("{}\n{}\n", entry(1), entry(2))).unwrap();
    fs::rename(&log, log.with_extension("jsonl.2")).unwrap();
    fs::write(log.with_extension("jsonl.1"), format!("{}\n", entry(3))).unwrap();
    let torn = entry(5).to_string();
    let (begin, _) = torn.split_at(9);
    fs::write(&log, format!("{}\n{}", entry(4), begin)).unwrap();
    assert_eq!([next(), next(), next()], ["2", "3", "4"]);
    fs::write(&log, format!("{}\n{torn}\n", entry(4))).unwrap();
    assert_eq!(next(), "5");
    let other = machine.path("other");
    fs::create_dir_all(other.join(".policyd/logs")).unwrap();
    fs::write(other.join(".policyd/logs/decisions.jsonl"), format!("{}\n", entry(6))).unwrap();
    register(&machine, "other", &other);
    assert_eq!(next(), "6");
    child.kill().unwrap();
    child.wait().unwrap();
}
