//! Many processes stop one session at once: no update is lost, no line is torn.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::hostile::AGENTS_TOO;
use crate::machine::{Machine, alone, checked, read_json, read_log};
use crate::support::rounds;

const WRITERS: usize = 16;
/// Stops of each writer: the entries of all of them fit into the files that a log keeps.
const STOPS: usize = 120;

/// The entries of a log and of what it was rotated to.
fn rotated_too(path: &Path) -> Vec<Value> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|it| it.unwrap().path());
    let logs = names.filter(|it| {
        let own = it.file_name().unwrap().to_str().unwrap();
        own == name || own.strip_prefix(name).is_some_and(|end| end.starts_with('.'))
    });
    logs.flat_map(|it| read_log(&it)).collect()
}

/// Stops that did not get the lock of their session in time.
fn blocked_locks(machine: &Machine) -> usize {
    let decisions = rotated_too(&machine.file(".policyd/logs/decisions.jsonl"));
    decisions.iter().filter(|it| it["problems"].to_string().contains("could not lock")).count()
}

/// However slow disk and processors are: what is asked of a crowd is that nothing gets lost.
const PATIENT: &str = "version: 1\ndurability: {lock_wait: 120s}\n";

#[test]
fn sixteen_writers_lose_no_update() {
    let (_alone, stops) = (alone(), rounds(STOPS));
    let machine = Machine::new();
    machine.put(".policyd/policies/policyd.yaml", PATIENT);
    machine.untested();
    assert!(machine.stop().blocks());
    let before = machine.state();
    let (began, payload) = (Instant::now(), machine.payload(&json!({})).to_string());
    let blocks: usize = thread::scope(|scope| {
        let writer = || {
            let call = || machine.run(&["eval", "--hook", "stop"], payload.as_bytes());
            let stop = || checked(&call().stdout);
            (0..stops).filter(|_| stop()["decision"] == "block").count()
        };
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(writer)).collect();
        writers.into_iter().map(|it| it.join().unwrap()).sum()
    });
    let (after, all) = (machine.state(), u64::try_from(WRITERS * stops).unwrap());
    eprintln!("{all} evaluations by {WRITERS} writers in {:?}", began.elapsed());
    let number = |state: &Value, key: &str| state[key].as_u64().unwrap();
    eprintln!("{} stops waited for the lock in vain", blocked_locks(&machine));
    assert_eq!(number(&after, "revision"), number(&before, "revision") + all);
    assert_eq!(number(&after, "turn_count"), number(&before, "turn_count") + all);
    // One block before the crowd came: no stop of the crowd follows a tool call.
    assert_eq!((blocks, number(&after, "total_blocks")), (0, 1));
    assert_eq!(number(&after, "releases"), all);

    let decisions = rotated_too(&machine.file(".policyd/logs/decisions.jsonl"));
    assert_eq!(decisions.len(), WRITERS * stops + 1, "every decision is logged, on its own line");
    assert!(decisions.iter().all(|it| it["saved"] == "durable" && it["problems"] == json!([])));
    let saves = rotated_too(&machine.session().join("diagnostic.jsonl"));
    let revisions: BTreeSet<_> = saves.iter().filter_map(|it| it["revision"].as_u64()).collect();
    assert_eq!(revisions, (1..=all + 1).collect());
}

#[test]
fn concurrent_sessions_do_not_see_each_other() {
    let machine = Machine::new();
    machine.untested();
    thread::scope(|scope| {
        for number in 0..8 {
            let machine = &machine;
            scope.spawn(move || {
                let id = json!({"session_id": format!("own-{number}")});
                let blocks: Vec<_> = (0..4).map(|_| machine.stop_with(&id).blocks()).collect();
                assert_eq!(blocks, [true, false, false, false]);
            });
        }
    });
    let listed = machine.run(&["state", "list"], b"");
    assert_eq!(listed.stdout.matches("blocks:   1 now,    1 in total").count(), 8, "{listed:?}");
}

#[test]
fn a_subagent_has_counters_of_its_own() {
    let machine = Machine::new();
    machine.untested();
    machine.put(".policyd/policies/considerations.yaml", AGENTS_TOO);
    let blocked = |id: &str| {
        machine.work();
        let own = machine.path(&format!("agent-{id}.jsonl"));
        fs::write(&own, machine.subagents_records()).unwrap();
        let payload = machine.payload(&json!({"hook_event_name": "SubagentStop",
            "agent_id": id, "agent_type": "coder", "agent_transcript_path": own}));
        machine.run(&["eval", "--hook", "subagent-stop"], payload.to_string().as_bytes()).blocks()
    };
    let ids = ["one", "two", "one", "one", "two", "two"];
    assert_eq!(ids.map(blocked), [true, true, true, false, true, false]);
    assert!(machine.stop().blocks(), "what subagents were told does not count for the main agent");
    let state = machine.state();
    let counters = ["/total_blocks", "/agents/one/total_blocks", "/agents/two/total_blocks"];
    assert_eq!(counters.map(|it| state.pointer(it).unwrap().as_u64().unwrap()), [1, 2, 2]);
}

/// Processes that hammer one breaker at once.
const CALLERS: usize = 64;

#[test]
fn one_of_many_callers_is_the_probe_and_no_failure_is_lost() {
    let (_alone, callers) = (alone(), rounds(CALLERS));
    let machine = Machine::new();
    let crowd = |arguments: &[&str]| -> usize {
        thread::scope(|scope| {
            let call = || usize::from(machine.run(arguments, b"").code == Some(0));
            let crowd: Vec<_> = (0..callers).map(|_| scope.spawn(call)).collect();
            crowd.into_iter().map(|it| it.join().unwrap()).sum()
        })
    };
    let settings = "api/x: {threshold: 1000, window: 1h, cooldown: 1s, half_open_interval: 1h}\n";
    machine.put(".policyd/policies/policyd.yaml", PATIENT);
    machine.put(".policyd/policies/breakers.yaml", settings);
    assert_eq!(crowd(&["breaker", "record", "api/x", "failure", "--error", "529"]), callers);
    let file = machine.file(".policyd/state/circuit-breakers.json");
    assert_eq!(read_json(&file)["api/x"]["failure_count"], callers, "no failure is lost");
    // With the threshold reached, it opens; once cooled, one caller in an hour is the probe.
    machine.put(".policyd/policies/breakers.yaml", &settings.replace("1000", "2"));
    assert_eq!(crowd(&["breaker", "record", "api/x", "failure"]), callers);
    assert_eq!(read_json(&file)["api/x"]["state"], "OPEN");
    let rejected = machine.run(&["breaker", "allow", "api/x"], b"");
    assert!(rejected.code == Some(0) || rejected.stdout.contains("retry after"), "{rejected:?}");
    let mut record = read_json(&file);
    record["api/x"]["cooldown_until"] = "2020-01-01T00:00:00Z".into();
    record["api/x"]["state"] = "OPEN".into();
    fs::write(&file, record.to_string()).unwrap();
    assert_eq!(crowd(&["breaker", "allow", "api/x"]), 1, "one probe");
    // What was admitted before it opened tells nothing about the probe, however many come.
    let late = ["breaker", "record", "api/x", "failure", "--generation", "0", "--error", "late"];
    assert_eq!(crowd(&late), callers);
    let probing = read_json(&file)["api/x"].clone();
    assert_eq!((&probing["state"], &probing["last_error"]), (&json!("HALF_OPEN"), &json!("late")));
    let generation = probing["generation"].to_string();
    let success = ["breaker", "record", "api/x", "success", "--generation", &generation];
    assert_eq!(crowd(&success), callers);
    let closed = read_json(&file)["api/x"].clone();
    assert_eq!((&closed["state"], &closed["failure_count"]), (&json!("CLOSED"), &json!(0)));
    let log = fs::read_to_string(machine.file(".policyd/logs/circuit-recovery.log")).unwrap();
    assert_eq!(log.lines().count(), 1, "it recovers once, whoever says so: {log}");
    assert_eq!(machine.human(&["breaker", "reset", "api/x"]).code, Some(0));
    assert_eq!(crowd(&["breaker", "allow", "api/x"]), callers);
}

#[test]
fn of_parallel_calls_exactly_one_uses_an_allowance() {
    let _alone = alone();
    let machine = Machine::new();
    let payload = json!({"session_id": "s", "hook_event_name": "PreToolUse", "cwd": machine.project,
        "tool_name": "Bash", "tool_input": {"command": "git push --force origin topic"}});
    let payload = payload.to_string();
    let denied = || {
        let called = machine.run(&["eval", "--hook", "pre-tool-use"], payload.as_bytes());
        called.answer()["hookSpecificOutput"]["permissionDecision"] == "deny"
    };
    assert!(denied(), "the call is blocked");
    for round in 0..5 {
        let allowed = machine.human(&["allow", "git_push_force", "--once"]);
        assert_eq!(allowed.code, Some(0), "{allowed:?}");
        let passed = thread::scope(|scope| {
            let calls: Vec<_> = (0..2).map(|_| scope.spawn(denied)).collect();
            calls.into_iter().map(|it| it.join().unwrap()).filter(|it| !it).count()
        });
        assert_eq!(passed, 1, "round {round}");
    }
}
