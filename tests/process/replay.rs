//! Replays by the real binary: recorded transcripts against `eval` of the same, and folders as they
//! are found on disks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::machine::{Called, Machine, asked, edited};
use crate::support::shared;

/// A rule that fires wherever it is asked: its examples are the stops.
const EVERY_STOP: &str = "- id: every_stop\n  category: Own\n  question: Is there no stop?\n  severity: warning\n  mode: shadow\n  applicable_session_types: [\"*\"]\n  satisfied: tools.total < 0\n";

/// The sample of the repository, and recorded transcripts where they lie beside it.
fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("tests/samples/transcript.jsonl")];
    let Some(recorded) = shared::path("samples") else { return found };
    for name in [
        "claude-code/transcript.jsonl",
        "claude-code/transcript.claude-2.1.197.jsonl",
        "codex/rollout.jsonl",
    ] {
        found.push(recorded.join(name));
    }
    found
}

fn report(called: &Called) -> Value {
    assert_eq!(called.code, Some(0), "{called:?}");
    serde_json::from_str(&called.stdout).unwrap()
}

/// Lines with what was found there.
fn places(count: &Value) -> BTreeMap<u64, &str> {
    let examples = count["examples"].as_array().unwrap().iter();
    examples.map(|it| (it["line"].as_u64().unwrap(), it["details"].as_str().unwrap())).collect()
}

/// What `eval` reports of a stop after so many lines of a recording.
fn judged(machine: &Machine, recording: &Path, lines: u64) -> Value {
    let text = fs::read_to_string(recording).unwrap();
    let cut = text.lines().take(usize::try_from(lines).unwrap());
    fs::write(machine.transcript(), cut.map(|it| format!("{it}\n")).collect::<String>()).unwrap();
    let payload = machine.payload(&json!({"cwd": "/home/dev/project"})).to_string();
    let policies = machine.file("policies");
    let arguments = ["eval", "--hook", "stop", "--dry-run", "--format", "json", "--policies"];
    let arguments = [&arguments[..], &[policies.to_str().unwrap()]].concat();
    serde_json::from_str(&machine.run(&arguments, payload.as_bytes()).stdout).unwrap()
}

#[test]
fn a_recorded_stop_comes_to_what_eval_says_of_the_transcript_cut_there() {
    let machine = Machine::new();
    machine.put("policies/considerations.yaml", EVERY_STOP);
    let policies = machine.file("policies");
    let mut compared = 0;
    for recording in recordings() {
        let arguments = ["replay", "--format", "json", "--examples", "1000", "--policies"];
        let more = [policies.to_str().unwrap(), recording.to_str().unwrap()];
        let replayed = report(&machine.run(&[&arguments[..], &more].concat(), b""));
        let rules = replayed["rules"].as_array().unwrap();
        let every_stop = rules.iter().find(|it| it["id"] == "every_stop").unwrap();
        for line in places(&every_stop["fired"]).into_keys() {
            let report = judged(&machine, &recording, line);
            for verdict in report["considerations"].as_array().unwrap() {
                let rule = rules.iter().find(|it| it["id"] == verdict["id"]).unwrap();
                if places(&rule["unknown"]).contains_key(&line) {
                    continue;
                }
                let details = (verdict["status"] == "unsatisfied").then(|| &verdict["details"]);
                let fired = places(&rule["fired"]).remove(&line).map(Value::from);
                let place = format!("{} at {}:{line}", verdict["id"], recording.display());
                assert_eq!(fired.as_ref(), details, "{place}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 20, "{compared}");
}

#[test]
fn a_folder_is_replayed_whatever_lies_in_it() {
    let machine = Machine::new();
    let projects = machine.path("projects");
    let session = projects.join("-work/one");
    fs::create_dir_all(session.join("subagents")).unwrap();
    machine.record(&[asked("p1", "Add it")]).record(&edited("a.py"));
    machine.record(&[
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}}),
    ]);
    fs::copy(machine.transcript(), projects.join("-work/one.jsonl")).unwrap();
    fs::write(session.join("subagents/agent-a1.jsonl"), machine.subagents_records()).unwrap();
    fs::write(session.join("subagents/agent-a1.meta.json"), r#"{"agentType":"general"}"#).unwrap();
    fs::write(projects.join("empty.jsonl"), "").unwrap();
    fs::write(projects.join("notes.jsonl"), "no json\n\u{0}\n{\"a\":1}\n").unwrap();
    fs::write(projects.join("notes.txt"), "not looked at").unwrap();
    std::os::unix::fs::symlink("..", session.join("ring")).unwrap();
    std::os::unix::fs::symlink("../one.jsonl", session.join("again.jsonl")).unwrap();
    std::os::unix::fs::symlink("nowhere", projects.join("gone.jsonl")).unwrap();
    std::os::unix::fs::symlink("nowhere", projects.join("latest")).unwrap();

    // Any command that needs the pack keeps it in its compiled form.
    machine.run(&["rules"], b"");
    let before = machine.tree();
    let called = machine.run(&["replay", projects.to_str().unwrap(), "--format", "json"], b"");
    let replayed = report(&called);
    assert_eq!(machine.tree(), before, "nothing is written");
    assert_eq!((&replayed["sessions"], &replayed["stops"]), (&json!(1), &json!(2)), "{replayed:#}");
    assert_eq!(replayed["subagent_stops"], 1);
    assert_eq!(replayed["reading"]["transcripts"], 2);
    assert_eq!(replayed["reading"]["no_transcripts"], 2);
    let unreadable = replayed["reading"]["unreadable"].as_array().unwrap();
    assert_eq!(unreadable.len(), 1, "{unreadable:?}");
    assert!(called.stderr.contains("gone.jsonl: no such file or folder"), "{}", called.stderr);
    assert!(!called.stderr.contains('\u{1b}'), "no progress bar where nobody watches");
}

#[test]
fn calls_and_stops_before_the_time_that_is_asked_for_are_not_counted() {
    let machine = Machine::new();
    let at = |time: &str, message: Value, kind: &str| {
        json!({"type": kind, "timestamp": time, "sessionId": "s", "cwd": "/w", "message": message})
            .to_string()
    };
    let (old, new) = ("2020-01-01T10:00:00.000Z", "2126-01-01T10:00:00.000Z");
    let call = json!({"id": "m", "role": "assistant", "content":
        [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]});
    let said =
        json!({"id": "n", "role": "assistant", "content": [{"type": "text", "text": "Done."}]});
    let asked = json!({"role": "user", "content": "please go on"});
    let mut lines = Vec::new();
    for time in [old, new] {
        lines.push(at(time, asked.clone(), "user"));
        lines.push(at(time, call.clone(), "assistant"));
        lines.push(at(time, said.clone(), "assistant"));
    }
    fs::write(machine.path("both.jsonl"), lines.join("\n") + "\n").unwrap();
    let count = |more: &[&str]| {
        let path = machine.path("both.jsonl");
        let line = [&["replay", path.to_str().unwrap(), "--format", "json"], more].concat();
        let report = report(&machine.run(&line, b""));
        (report["stops"].clone(), report["tool_calls"].clone())
    };
    assert_eq!(count(&[]), (json!(2), json!(2)));
    assert_eq!(count(&["--since", "1d"]), (json!(1), json!(1)));
}
