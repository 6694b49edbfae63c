//! Blocked calls and signals of one host are answered, consumed, and ended on another.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::machine::{Called, Machine};
use crate::shared_store::{ALL, accounts, begin_of, done, host, status};
use crate::support::postgres::{self, query};

/// A tool call that a built-in guard blocks.
pub(crate) fn blocked_call(machine: &Machine) -> Called {
    let payload = json!({
        "session_id": "s1", "cwd": machine.project.to_str(), "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "git push --force origin main"},
    });
    machine.run(&["eval", "--hook", "pre-tool-use"], payload.to_string().as_bytes())
}

pub(crate) fn is_denied(called: &Called) -> bool {
    assert_eq!(called.code, Some(0), "{called:?}");
    called.stdout.contains("\"permissionDecision\":\"deny\"")
}

/// The codes of the blocked calls that wait for an answer.
fn waiting(machine: &Machine) -> Vec<String> {
    let listed = machine.run(&["allow", "--waiting", "--format", "json"], b"");
    let lines = done(&listed).stdout.lines();
    let code = |line: &str| {
        let request: Value = serde_json::from_str(line).unwrap();
        assert_eq!(request["input"], "git push --force origin main");
        request["code"].as_str().unwrap().to_owned()
    };
    lines.map(code).collect()
}

/// The start of a session after more than a second, so that the local copy is not current anymore.
pub(crate) fn begin_later(machine: &Machine) -> Called {
    thread::sleep(Duration::from_millis(1_100));
    begin_of(machine)
}

/// What is shared for blocked calls.
pub(crate) const CALLS: &str = "  share: [approvals, runs]\n";

#[test]
fn a_blocked_call_is_answered_on_another_host_and_passes_once() {
    let test = "a_blocked_call_is_answered_on_another_host_and_passes_once";
    let Some(server) = postgres::server(test) else { return };
    let [agent, human] = accounts(&server.database());
    let [one, other] = [host(&agent, CALLS), host(&human, CALLS)];
    assert!(is_denied(&blocked_call(&one)));
    assert!(is_denied(&blocked_call(&one)), "a repeated call makes no second request");
    assert_eq!(status(&one)["waiting"], 1);
    assert_eq!(waiting(&other), [""; 0], "a tool call does not use the network");
    one.stop().answer();
    let codes = waiting(&other);
    assert_eq!(codes.len(), 1);
    let allowed = other.human(&["allow", "--call", &codes[0]]);
    assert!(done(&allowed).stdout.contains("allowed once"), "{allowed:?}");
    let again = other.human(&["allow", "--deny", &codes[0]]);
    assert_eq!(again.code, Some(1), "the first answer is final: {again:?}");
    // The next event of the host takes the answer over; the same session repeats the call.
    begin_later(&one).answer();
    assert!(!is_denied(&blocked_call(&one)), "the call passes");
    let logged = one.run(&["log", "--format", "json"], b"");
    assert!(logged.stdout.contains("allowed once by"), "{logged:?}");
    assert!(is_denied(&blocked_call(&one)), "it passes once");
    begin_later(&one).answer();
    assert!(is_denied(&blocked_call(&one)), "an answer is not taken over again");
    // It is asked about again, and refused.
    one.stop().answer();
    let codes = waiting(&other);
    assert_eq!(codes.len(), 1);
    done(&other.human(&["allow", "--deny", &codes[0]]));
    begin_later(&one).answer();
    assert!(is_denied(&blocked_call(&one)));
    one.stop().answer();
    assert_eq!(waiting(&other), [""; 0], "a refused call is not asked about again");
    for host in [&one, &other] {
        done(&host.run(&["store", "sync"], b""));
        done(&host.run(&["store", "verify"], b""));
    }
}

#[test]
fn a_call_that_its_own_user_lets_pass_needs_no_answer() {
    let test = "a_call_that_its_own_user_lets_pass_needs_no_answer";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [one, other] = [host(&url, CALLS), host(&url, CALLS)];
    done(&one.run(&["store", "init"], b""));
    blocked_call(&one);
    one.stop().answer();
    let codes = waiting(&other);
    done(&one.human(&["allow", "--call", &codes[0]]));
    assert_eq!(waiting(&other), [""; 0]);
    let late = other.human(&["allow", "--call", &codes[0]]);
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(!is_denied(&blocked_call(&one)));
}

#[test]
fn an_agent_answers_no_blocked_call_and_changes_none() {
    let test = "an_agent_answers_no_blocked_call_and_changes_none";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let admin = host(&url, CALLS);
    let [agent_url, _] = accounts(&url);
    let [one, other] = [host(&agent_url, CALLS), host(&agent_url, CALLS)];
    blocked_call(&one);
    one.stop().answer();
    let codes = waiting(&other);
    // Whoever sits at that host: the account of the server is that of an agent.
    let refused = other.human(&["allow", "--call", &codes[0]]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("only a human answers"), "{refused:?}");
    let inbox = other.run(&["inbox", "--format", "json"], b"");
    let inbox: Value = serde_json::from_str(&done(&inbox).stdout).unwrap();
    let refused =
        other.human(&["inbox", "answer", inbox["items"][0]["id"].as_str().unwrap(), "yes"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains("only a human answers"), "{refused:?}");
    let update = |sql: &str| postgres::execute(&agent_url, sql).unwrap_err();
    let set = |change: &str| {
        update(&format!(
            "SELECT policyd.save_document('team', kind, name, jsonb_set(body::jsonb, {change})::text) \
             FROM policyd.read_changes('team', 0, 100, 1000000) WHERE kind = 'approval'"
        ))
    };
    let answered =
        set("'{answer}', '{\"allowed\": true, \"by\": \"x\", \"at\": \"2026-01-01T00:00:00Z\"}'");
    assert!(answered.contains("only a human answers"), "{answered}");
    let changed = set("'{input}', '\"ls\"'");
    assert!(changed.contains("cannot be changed"), "{changed}");
    // A forged signal that claims to ask nobody, sent before the real one.
    let forged = |ended: &str| {
        let body = json!({"id": "a", "signal": "HUMAN_REVIEW_NEEDED", "asks": false, "interrupts": "",
            "ended": {"outcome": ended, "by": "x", "text": ""}});
        update(&format!("SELECT policyd.save_document('team', 'signal', 'a', '{body}')"))
    };
    assert!(forged("approved").contains("only a human answers a request"));
    assert!(forged("rejected").contains("only a human answers a request"));
    // Even the administrator of the server cannot let another call pass than the one that was asked about.
    postgres::execute(
        &url,
        "ALTER TABLE policyd.document DISABLE TRIGGER check_approval; \
         UPDATE policyd.document SET body = jsonb_set(body::jsonb, '{input}', '\"ls\"')::json WHERE kind = 'approval'; \
         ALTER TABLE policyd.document ENABLE TRIGGER check_approval",
    )
    .unwrap();
    done(&admin.run(&["store", "sync"], b""));
    done(&admin.human(&["allow", "--call", &codes[0]]));
    let told = begin_later(&one).notice();
    assert!(told.contains("the server contains another call"), "{told}");
    assert!(is_denied(&blocked_call(&one)));
}

/// What is shared for signals.
const SIGNALS: &str = "  share: [signals, runs]\n";

/// The ids of the pending signals that a host sees.
fn signals(machine: &Machine) -> Vec<String> {
    let listed = machine.run(&["signal", "list", "--format", "json"], b"");
    let id = |line: &str| {
        let signal: Value = serde_json::from_str(line).unwrap();
        signal["id"].as_str().unwrap().to_owned()
    };
    listed.stdout.lines().map(id).collect()
}

#[test]
fn a_request_is_answered_on_another_host() {
    let test = "a_request_is_answered_on_another_host";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [one, other] = [host(&url, SIGNALS), host(&url, SIGNALS)];
    done(&one.run(&["store", "init"], b""));
    for reason in ["reason=Buy a disk?", "reason=Delete the table?"] {
        done(&one.run(&["signal", "emit", "HUMAN_REVIEW_NEEDED", reason], b""));
    }
    done(&one.run(&["store", "sync"], b""));
    let ids = signals(&other);
    assert_eq!(ids, signals(&one));
    done(&other.human(&["signal", "approve", &ids[0], "--decision", "a small one"]));
    done(&other.human(&["signal", "reject", &ids[1], "--reason", "never"]));
    assert_eq!(other.human(&["signal", "approve", &ids[1], "--decision", "x"]).code, Some(1));
    let told = begin_later(&one).answer().to_string();
    assert!(told.contains("a small one") && told.contains("rejected"), "{told}");
    let history = one.run(&["signal", "history", "--format", "json"], b"").stdout;
    let outcome = |id: &str| {
        let mut lines = history.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
        let entry = lines.find(|it| it["id"] == id).unwrap();
        entry["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!((outcome(&ids[0]).as_str(), outcome(&ids[1]).as_str()), ("approved", "rejected"));
    for host in [&one, &other] {
        done(&host.run(&["store", "sync"], b""));
        assert_eq!(signals(host), [""; 0]);
        done(&host.run(&["store", "verify"], b""));
    }
}

#[test]
fn a_signal_is_consumed_once_by_all_hosts() {
    let test = "a_signal_is_consumed_once_by_all_hosts";
    let Some(mut server) = postgres::server(test) else { return };
    let url = server.database();
    let hosts: Vec<Machine> = (0..3).map(|_| host(&url, SIGNALS)).collect();
    done(&hosts[0].run(&["store", "init"], b""));
    done(&hosts[0].run(&["signal", "emit", "DOCS_NEEDED"], b""));
    done(&hosts[0].run(&["signal", "emit", "COMPLETION_REQUESTED"], b""));
    done(&hosts[0].run(&["store", "sync"], b""));
    assert_eq!(signals(&hosts[1]).len(), 1, "a claim is for the supervisor of its own host");
    // A claim is a lease that the server ends.
    let lease = ["signal", "consume", "DOCS_NEEDED", "--lease", "1s", "--by", "writer"];
    done(&hosts[1].run(&lease, b""));
    assert_eq!(hosts[2].run(&["signal", "consume", "DOCS_NEEDED"], b"").code, Some(1));
    thread::sleep(Duration::from_millis(1_100));
    let codes: Vec<_> = thread::scope(|scope| {
        let consumers: Vec<_> = (0..6)
            .map(|number| {
                let host = &hosts[number % 3];
                let words = ["signal", "consume", "DOCS_NEEDED", "--by", "writer"];
                scope.spawn(move || host.run(&words, b"").code)
            })
            .collect();
        consumers.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|it| **it == Some(0)).count(), 1, "{codes:?}");
    if server.is_own() {
        done(&hosts[0].run(&["signal", "emit", "DOCS_NEEDED"], b""));
        done(&hosts[0].run(&["store", "sync"], b""));
        server.kill();
        let refused = hosts[0].run(&["signal", "consume", "DOCS_NEEDED"], b"");
        server.restart();
        assert_eq!(refused.code, Some(1), "only the server knows who is first: {refused:?}");
        assert!(refused.stderr.contains("only the server knows"), "{refused:?}");
    }
}

#[test]
fn a_pause_of_an_agent_pauses_its_host_only() {
    let test = "a_pause_of_an_agent_pauses_its_host_only";
    let Some(server) = postgres::server(test) else { return };
    let [agent, human] = accounts(&server.database());
    let [one, other] = [host(&agent, SIGNALS), host(&human, SIGNALS)];
    let paused = one.run(&["signal", "emit", "PAUSE"], b"");
    assert!(done(&paused).stderr.contains("PAUSE applies to this host only"), "{paused:?}");
    assert_eq!((status(&one)["rejected"].clone(), signals(&one).len()), (json!(0), 1));
    assert_eq!(signals(&other), Vec::<String>::new());
    done(&one.run(&["signal", "consume", "PAUSE"], b""));
    done(&one.run(&["store", "sync"], b""));
    assert_eq!((status(&one)["rejected"].clone(), signals(&one).len()), (json!(0), 0));
}

#[test]
fn a_run_whose_supervisor_was_killed_is_abandoned() {
    let test = "a_run_whose_supervisor_was_killed_is_abandoned";
    let Some(server) = postgres::server(test) else { return };
    let [agent, _] = accounts(&server.database());
    let one = host(&agent, SIGNALS);
    let state = || {
        let listed = one.run(&["store", "runs", "--format", "json"], b"");
        let run: Value = serde_json::from_str(done(&listed).stdout.trim()).unwrap_or_default();
        run["state"].as_str().unwrap_or_default().to_owned()
    };
    let words = ["run", "--goal", "Wait", "--", "sleep", "300"];
    let mut run = one.command(&words).stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while state() != "working" {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", state());
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(state(), "abandoned");
}

#[test]
fn a_human_on_another_host_stops_a_run() {
    let test = "a_human_on_another_host_stops_a_run";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let [one, other] = [host(&agent, SIGNALS), host(&human, SIGNALS)];
    done(&other.run(&["signal", "emit", "PAUSE"], b""));
    done(&one.run(&["store", "sync"], b""));
    thread::scope(|scope| {
        let run = scope.spawn(|| one.run(&["run", "--goal", "Wait", "--", "true"], b""));
        let began = Instant::now();
        let listed = loop {
            let listed = other.run(&["store", "runs", "--format", "json"], b"");
            if listed.stdout.contains("\"state\":\"paused\"") {
                break serde_json::from_str::<Value>(done(&listed).stdout.trim()).unwrap();
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{listed:?}");
        };
        assert_eq!((&listed["goal"], &listed["ended"]), (&json!("Wait"), &json!(false)));
        done(&other.run(&["signal", "emit", "STOP", "--from", "ada"], b""));
        let ended = run.join().unwrap();
        assert!(format!("{ended:?}").contains("ada"), "{ended:?}");
    });
    let listed = other.run(&["store", "runs", "--format", "json"], b"");
    let listed: Value = serde_json::from_str(done(&listed).stdout.trim()).unwrap();
    assert_eq!(listed["ended"], true, "{listed}");
    assert_eq!(signals(&other), signals(&one), "STOP is consumed, and PAUSE waits");
}

/// Records a dead letter, a breaker that the same error opened, and a question about both. Returns the id of the question.
fn ask_about_a_task(machine: &Machine) -> String {
    let error = "wrong answer";
    done(&machine.run(&["dlq", "add", "task-1", "--error", error, "--immediately"], b""));
    let words = ["--class", "authentication", "--error", error];
    done(&machine.run(&[&["breaker", "record", "api/x", "failure"], &words[..]].concat(), b""));
    let words = ["escalation", "open", "--task", "task-1", "--reason", "Buy a disk?", "--blocking"];
    done(&machine.run(&words, b""));
    let asked = machine.run(&["escalation", "list", "--format", "json"], b"");
    let asked: Value = serde_json::from_str(&done(&asked).stdout).unwrap();
    asked["id"].as_str().unwrap().to_owned()
}

/// The queue of the task on the server.
fn queue_on(url: &str) -> Vec<String> {
    query(url, "SELECT body ->> 'queue' FROM policyd.document WHERE kind = 'task'")
}

/// Whether the task is a dead letter that waits for the question, the question is open, and the breaker rejects calls.
fn waits(machine: &Machine, id: &str) -> bool {
    let dead = machine.run(&["dlq", "list", "--format", "json"], b"").stdout;
    let open = machine.run(&["escalation", "list", "--format", "json"], b"").stdout;
    let task = machine.run(&["dlq", "show", "task-1", "--format", "json"], b"");
    let task: Value = serde_json::from_str(&done(&task).stdout).unwrap();
    let is_rejected = machine.run(&["breaker", "allow", "api/x"], b"").code == Some(1);
    dead.contains("task-1") && open.contains(id) && task["waits_for"] == id && is_rejected
}

#[test]
fn an_answer_that_the_server_refuses_moves_no_task() {
    let test = "an_answer_that_the_server_refuses_moves_no_task";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [agent, human] = accounts(&url);
    let [one, other] = [host(&agent, ALL), host(&human, ALL)];
    let id = ask_about_a_task(&one);
    assert!(waits(&one, &id));
    for verdict in ["yes", "no"] {
        let refused = one.human(&["inbox", "answer", &id, verdict, "x"]);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains("only a human answers"), "{refused:?}");
        assert!(refused.stderr.contains("task `task-1`: not changed"), "{refused:?}");
        assert!(waits(&one, &id), "{verdict}");
        assert_eq!(queue_on(&url), ["dead-letter"], "{verdict}");
        let document = one.run(&["escalation", "show", &id], b"");
        assert!(!done(&document).stdout.contains("### Decision"), "{document:?}");
    }
    let refused = one.human(&["escalation", "resolve", &id, "--decision", "x"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(waits(&one, &id));
    // A later answer, which the server accepts, moves all of them.
    done(&other.run(&["store", "sync"], b""));
    done(&other.human(&["inbox", "answer", &id, "yes", "a small one"]));
    done(&one.run(&["store", "sync"], b""));
    assert!(!waits(&one, &id));
    assert_eq!(queue_on(&url), ["pending"]);
    assert_eq!(one.run(&["breaker", "allow", "api/x"], b"").code, Some(0));
}

#[test]
fn an_answer_that_is_refused_later_moves_no_task_until_it_is_accepted() {
    let test = "an_answer_that_is_refused_later_moves_no_task_until_it_is_accepted";
    let Some(mut server) = postgres::server(test) else { return };
    if !server.is_own() {
        eprintln!("SKIPPED {test}: the server is not ours to kill");
        return;
    }
    let url = server.database();
    let [agent, _] = accounts(&url);
    let one = host(&agent, ALL);
    let id = ask_about_a_task(&one);
    done(&one.run(&["store", "sync"], b""));
    server.kill();
    done(&one.human(&["inbox", "answer", &id, "yes", "x"]));
    server.restart();
    let synced = one.run(&["store", "sync"], b"");
    assert_ne!(synced.code, Some(0), "{synced:?}");
    assert!(synced.stderr.contains("belongs to an answer that was refused"), "{synced:?}");
    assert!(waits(&one, &id), "the copy is that of the server");
    assert_eq!(queue_on(&url), ["dead-letter"]);
    let account = agent.split("//").nth(1).unwrap().split('@').next().unwrap();
    postgres::execute(&url, &format!("GRANT policyd_human TO {account}")).unwrap();
    done(&one.run(&["store", "rejected", "send"], b""));
    assert_eq!((&status(&one)["rejected"], &status(&one)["waiting"]), (&json!(0), &json!(0)));
    assert_eq!(queue_on(&url), ["pending"]);
    assert_eq!(one.run(&["breaker", "allow", "api/x"], b"").code, Some(0));
}

#[test]
fn a_run_is_resumed_right_after_an_answer_of_another_host() {
    let test = "a_run_is_resumed_right_after_an_answer_of_another_host";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let [one, other] = [host(&url, SIGNALS), host(&url, SIGNALS)];
    done(&one.run(&["store", "init"], b""));
    let program = env!("CARGO_BIN_EXE_policyd");
    // The first turn asks a human.
    let agent = format!(
        "echo turn >> turns.txt; test -e asked || {{ touch asked; {program} signal emit HUMAN_REVIEW_NEEDED reason=Disk; }}"
    );
    let run = ["run", "--goal", "Build it", "--max-iterations", "2", "--", "sh", "-c", &agent];
    let ended = one.run(&run, b"");
    assert_eq!(ended.code, Some(14), "{ended:?}");
    done(&one.run(&["store", "sync"], b""));
    let ids = signals(&other);
    done(&other.human(&["signal", "approve", &ids[0], "--decision", "a small one"]));
    let resumed = one.run(&["run", "--resume"], b"");
    assert_eq!(resumed.code, Some(11), "all turns are used: {resumed:?}");
    let turns = fs::read_to_string(one.file("turns.txt")).unwrap();
    assert_eq!(turns.lines().count(), 2, "{resumed:?}");
    let log = one.run(&["log", "--notable", "--format", "json"], b"").stdout;
    let ends = log.lines().filter(|it| it.contains("run_end") && it.contains("human_needed"));
    assert_eq!(ends.count(), 1, "the question was open once: {log}");
}

#[test]
fn the_inbox_has_no_question_that_another_host_answered() {
    let test = "the_inbox_has_no_question_that_another_host_answered";
    let Some(server) = postgres::server(test) else { return };
    let url = server.database();
    let share = "  share: [signals, tasks, escalations]\n";
    let [one, other] = [host(&url, share), host(&url, share)];
    done(&one.run(&["store", "init"], b""));
    let question = ask_about_a_task(&one);
    done(&one.run(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=Buy a disk?"], b""));
    done(&one.run(&["store", "sync"], b""));
    let ids = signals(&other);
    let inbox = || done(&one.run(&["inbox", "--format", "compact"], b"")).stdout.clone();
    let listed = inbox();
    assert!(listed.contains(&question) && listed.contains(&ids[0]), "{listed}");
    done(&other.human(&["signal", "approve", &ids[0], "--decision", "a small one"]));
    done(&other.human(&["inbox", "answer", &question, "yes", "x"]));
    let listed = inbox();
    assert!(!listed.contains(&question) && !listed.contains(&ids[0]), "{listed}");
}
