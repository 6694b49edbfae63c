//! Environment variables, the seed's names as aliases, and what the debug log says.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::machine::{Machine, asked, edited, ran, read_log};

#[test]
fn the_number_of_attempts_is_the_environments() {
    for (name, value, attempts) in [
        ("POLICYD_MAX_RETRIES", "2", 2),
        ("AMPLIHACK_PS_MAX_RETRIES", "1", 1),
        ("AMPLIHACK_PS_MAX_RETRIES", "many", 3),
        ("AMPLIHACK_PS_MAX_RETRIES", "0", 1),
        ("POLICYD_MAX_RETRIES", "4000000000", 10),
    ] {
        let machine = Machine::new();
        machine.untested();
        fs::create_dir_all(machine.session().join(".state.json.tmp/in the way")).unwrap();
        let said = if attempts == 10 {
            // Waits double; they are switched off here by a manifest.
            machine.put(
                ".policyd/policies/policyd.yaml",
                "version: 1\nextends: [builtin]\ndurability: {retry_delays: [1ms]}\n",
            );
            machine.stop_where(&[(name, OsStr::new(value))])
        } else {
            machine.stop_where(&[(name, OsStr::new(value))])
        };
        assert!(said.blocks() && said.notice().contains("could not"), "{said:?}");
        let failed = read_log(&machine.session().join("diagnostic.jsonl"));
        let failed = failed.iter().filter(|it| it["save_success"] == false);
        assert_eq!(failed.count(), attempts + 1, "{name}={value}: each attempt, and the end");
    }
}

#[test]
fn without_forcing_to_the_disk_it_still_saves() {
    for name in ["POLICYD_NO_FSYNC", "AMPLIHACK_PS_NO_FSYNC"] {
        let machine = Machine::new();
        machine.untested();
        assert!(machine.stop_where(&[(name, OsStr::new("1"))]).blocks());
        assert_eq!(machine.state()["revision"], 1);
    }
}

/// A session that pushed, a user who merges himself, and a `gh` that answers.
fn published() -> (Machine, OsString) {
    let machine = Machine::new();
    machine.record(&[asked("p1", "Add a parser")]).record(&edited("a.py"));
    machine.record(&ran("pytest -q", "3 passed in 0.1s")).record(&ran("git push", "ok"));
    machine.put(
        ".claude/context/USER_PREFERENCES.md",
        "NEVER Merge a PR Without Explicit Permission\n",
    );
    let answer = r#"{"number":123,"state":"OPEN","isDraft":false,"mergeable":"UNKNOWN",
        "statusCheckRollup":[{"conclusion":"SUCCESS","status":"COMPLETED"}]}"#;
    machine.put("../bin/gh", &format!("#!/bin/sh\ncat <<'X'\n{answer}\nX\n"));
    fs::set_permissions(machine.path("bin/gh"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = machine.path("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    (machine, path)
}

#[test]
fn the_debug_log_says_what_was_read_asked_and_found() {
    for name in ["POLICYD_DEBUG", "AMPLIHACK_PS_DEBUG"] {
        let (machine, path) = published();
        let secret = OsStr::new("ghp_0123456789");
        let said = machine.stop_where(&[
            (name, OsStr::new("1")),
            ("PATH", path.as_os_str()),
            ("GH_TOKEN", secret),
        ]);
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""), "a hook says nothing");
        let path = machine.file(".policyd/logs/debug.jsonl");
        let lines = read_log(&path);
        let lines: Vec<_> = lines.iter().map(|it| it["debug"].as_str().unwrap()).collect();
        for wanted in [
            "USER_PREFERENCES.md",
            "Preference pattern: ",
            "Preference detected: no_auto_merge = true",
            "Executing: gh pr view --json",
            "\"state\":\"OPEN\"",
            "ci_status satisfied: PR #123 ready (CI passing, awaiting user approval)",
        ] {
            assert!(lines.iter().any(|it| it.contains(wanted)), "{wanted}: {lines:#?}");
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for file in machine.tree().iter().filter(|it| it.is_file()) {
            let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
            assert!(!text.contains("ghp_0123456789"), "{} holds a secret", file.display());
        }
    }
}

/// The rows of seed 001's error table, with a program of that behaviour on the path: what is said,
/// and that nobody is held.
#[test]
fn whatever_gh_does_is_told_with_its_cure() {
    const ROWS: [(&str, &str); 8] = [
        (
            "echo 'To get started with GitHub CLI, please run:  gh auth login' >&2; exit 4",
            "the pull request could not be checked: the GitHub CLI is not logged in; run `gh auth login`",
        ),
        (
            "echo 'no pull requests found for branch \"x\"' >&2; exit 1",
            "the pull request could not be checked: no pull request was found for this branch; run `gh pr create`",
        ),
        (
            "echo 'fatal: not a git repository' >&2; exit 1",
            "the pull request could not be checked: this directory is not a git repository",
        ),
        ("echo '<html>'", "did not answer with JSON: expected value at line 1 column 1"),
        (
            "echo null",
            "the pull request could not be checked: the output of `gh` contains no state",
        ),
        ("echo 'HTTP 502' >&2; exit 1", "exited with 1: HTTP 502"),
        ("kill -9 $$", "exited with -1: no output"),
        ("sleep 60", "did not answer within 500ms"),
    ];
    for (script, expected) in ROWS {
        let (machine, path) = published();
        let pack = "- {id: pr, override: true, timeout: 500ms}\n";
        machine.put(".policyd/policies/probes.yaml", pack);
        machine.put("../bin/gh", &format!("#!/bin/sh\n{script}\n"));
        let mut command = machine.command(&["eval", "--hook", "stop", "--format", "json"]);
        command.env("PATH", &path);
        let called =
            crate::machine::run(command, machine.payload(&json!({})).to_string().as_bytes());
        let report: serde_json::Value = serde_json::from_str(&called.stdout).unwrap();
        let verdicts = report["considerations"].as_array().unwrap();
        let ci = verdicts.iter().find(|it| it["id"] == "ci_status").unwrap();
        assert!(ci["details"].as_str().unwrap().ends_with(expected), "{script}: {ci:#}");
        assert_eq!((&ci["status"], &ci["consequence"]), (&json!("unsatisfied"), &json!("warns")));
        assert_eq!((called.code, &report["decision"]), (Some(0), &json!("none")), "{script}");
    }
    let (machine, _) = published();
    fs::remove_file(machine.path("bin/gh")).unwrap();
    let empty = machine.path("bin").into_os_string();
    let said = machine.stop_where(&[("PATH", empty.as_os_str())]);
    assert!(said.notice().contains("the GitHub CLI is not installed; install `gh`"), "{said:?}");
}

#[test]
fn a_probe_that_hangs_holds_no_lock_and_ends() {
    let (machine, path) = published();
    machine.put(
        ".policyd/policies/policyd.yaml",
        "version: 1\nextends: [builtin]\ndeadline: 1500ms\n",
    );
    machine.put("../bin/gh", "#!/bin/sh\ntouch asked\nsleep 60\n");
    let slow = || machine.stop_where(&[("PATH", path.as_os_str())]);
    std::thread::scope(|scope| {
        let asking = scope.spawn(slow);
        // The probe is running: another stop of the same session is not held up by it.
        while !machine.file("asked").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(!asking.is_finished(), "the probe was not run");
        }
        machine.record(&edited("b.py"));
        assert!(!machine.session().join(".state.lock").exists(), "the lock comes after the probes");
        assert!(!asking.is_finished(), "a lock was held while a probe ran");
        assert!(!asking.join().unwrap().blocks());
    });
}

#[test]
fn a_transcript_that_cannot_be_read_ends_no_episode() {
    let machine = Machine::new();
    machine.untested();
    assert!(machine.stop().blocks());
    let before = machine.state();
    assert!(!machine.stop_with(&json!({"transcript_path": "/no/such"})).blocks());
    assert_eq!(machine.state(), before, "nothing was checked, so nothing is remembered");
    machine.work();
    let said: [bool; 2] = [(); 2].map(|()| machine.stop().blocks());
    assert_eq!(said, [true, false]);
    let notices = |it: &Value| it["problems"].as_array().unwrap().len();
    let log = read_log(&machine.file(".policyd/logs/decisions.jsonl"));
    assert_eq!(log.iter().map(notices).collect::<Vec<_>>(), [0, 1, 0, 0]);
}

#[test]
fn a_broken_pack_is_told_and_logged() {
    let machine = Machine::new();
    machine.untested().put(".policyd/policies/considerations.yaml", "- id: mine\n  severty: x\n");
    assert!(machine.stop().notice().contains("considerations.yaml"));
    let log = read_log(&machine.file(".policyd/logs/decisions.jsonl"));
    assert_eq!((log.len(), &log[0]["decision"]), (1, &json!("none")));
    assert!(log[0]["problems"][0].as_str().unwrap().contains("severty"), "{log:?}");
}

/// A client gives the variables of a file in the project to its hooks.
#[test]
fn a_variable_of_a_file_in_the_project_does_not_turn_the_gate_off() {
    let off = [("POLICYD_DISABLED", OsStr::new("1"))];
    let machine = Machine::new();
    machine.untested();
    assert!(!machine.stop_where(&off).blocks(), "the shell of the user can");
    machine.put(".claude/settings.json", "{\"env\": {\"POLICYD_DISABLED\": \"1\"}}");
    let said = machine.stop_where(&off);
    assert!(said.blocks() && said.notice().contains("`POLICYD_DISABLED` is ignored"), "{said:?}");
}
