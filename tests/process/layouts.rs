//! Where state lies: worktrees, the seed's layout with its recipes, old sessions, roots elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::machine::{Machine, read_json, read_log};

const DAY: Duration = Duration::from_secs(86_400);

/// What a command printed; `None` where it is not installed.
fn printed(machine: &Machine, folder: &Path, line: &[&str]) -> Option<String> {
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).current_dir(folder).env("HOME", machine.path("home"));
    let output = command.output().ok()?;
    assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A machine whose project is a real repository with a worktree beside it.
fn with_worktree() -> Option<(Machine, PathBuf)> {
    let machine = Machine::new();
    machine.untested();
    fs::remove_dir_all(machine.file(".git")).unwrap();
    let git = |line: &[&str]| {
        let own = ["git", "-c", "user.name=T", "-c", "user.email=t@example.com"];
        printed(&machine, &machine.project, &[&own, line].concat())
    };
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: git is not installed");
        return None;
    }
    git(&["init", "-q"])?;
    git(&["commit", "-q", "--allow-empty", "-m", "first"])?;
    let tree = machine.path("tree");
    git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()])?;
    fs::create_dir(tree.join("sub")).unwrap();
    Some((machine, tree))
}

#[test]
fn a_worktree_shares_state_and_switch_with_its_main_checkout() {
    let Some((machine, tree)) = with_worktree() else { return };
    assert!(machine.stop().blocks());
    assert!(machine.work().stop_with(&json!({"cwd": tree.join("sub")})).blocks());
    assert_eq!(machine.state()["consecutive_blocks"], 2, "the count goes on in a worktree");
    assert!(!tree.join(".policyd").exists());
    let status = |folder| printed(&machine, folder, &["git", "status", "--porcelain"]).unwrap();
    assert_eq!((status(&machine.project), status(&tree)), (String::new(), String::new()));
    machine.honor_switch_files();
    for switch in [".disabled", ".policyd/.disabled", ".claude/runtime/power-steering/.disabled"] {
        machine.put(switch, "");
        let id = json!({"session_id": "s2", "cwd": tree.join("sub")});
        let stop = machine.stop_with(&id);
        assert!(!stop.blocks() && stop.notice().contains("disabled"), "{switch}: {stop:?}");
        fs::remove_file(machine.file(switch)).unwrap();
    }
    assert!(machine.stop_with(&json!({"session_id": "s2", "cwd": tree})).blocks());
}

/// Makes a session whose state was written `days` ago.
fn old_session(machine: &Machine, name: &str, days: u32) {
    let path = format!(".policyd/sessions/{name}/state.json");
    machine.put(&path, "{\"consecutive_blocks\": 1, \"session_id\": \"x\"}");
    let file = fs::File::options().write(true).open(machine.file(&path)).unwrap();
    file.set_modified(SystemTime::now() - DAY * days).unwrap();
}

#[test]
fn old_sessions_go_by_age_and_by_count() {
    let machine = Machine::new();
    machine.untested().put(".policyd/sessions/notes/mine.txt", "not a session");
    old_session(&machine, "ancient", 40);
    (1..=6).for_each(|days| old_session(&machine, &format!("day-{days}"), days));
    // A time without any session counts as one day, so that a clock that jumps deletes nothing.
    (7..=39).for_each(|days| old_session(&machine, &format!("old-{days}"), days));
    let names = || {
        let found = fs::read_dir(machine.file(".policyd/sessions")).unwrap();
        let mut names: Vec<_> =
            found.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|it| !it.starts_with("old-"));
        names.sort();
        names.join(" ")
    };
    assert!(machine.stop().blocks());
    assert_eq!(names(), "day-1 day-2 day-3 day-4 day-5 day-6 notes s1");
    for days in 7..=39 {
        fs::remove_dir_all(machine.file(&format!(".policyd/sessions/old-{days}"))).ok();
    }
    machine.put(
        ".policyd/policies/policyd.yaml",
        "version: 1\nextends: [builtin]\nsessions: {max_count: 4}\n",
    );
    assert!(machine.work().stop().blocks());
    assert_eq!(
        names(),
        "day-1 day-2 day-3 day-4 day-5 day-6 notes s1",
        "a known session prunes nothing"
    );
    assert!(machine.stop_with(&json!({"session_id": "s2"})).blocks());
    assert_eq!(names(), "day-1 day-2 notes s1 s2");
}

#[test]
fn the_seeds_layout_is_read_kept_and_its_recipes_work() {
    let machine = Machine::new();
    machine.untested().put(
        ".policyd/policies/policyd.yaml",
        "version: 1\nextends: [builtin]\npaths: {layout: amplihack}\n",
    );
    let folder = ".claude/runtime/power-steering/s1";
    let seed = json!({"consecutive_blocks": 1, "session_id": "s1", "my_key": {"kept": [1, 2]},
        "last_check_timestamp": "2025-11-26T10:30:00Z", "check_results": {"files_modified": []}});
    machine.put(&format!("{folder}/state.json"), &seed.to_string());
    let state = || read_json(&machine.file(&format!("{folder}/state.json")));
    assert!(machine.stop().blocks());
    assert_eq!(state()["my_key"], seed["my_key"], "keys of others are kept");
    // A corrupt file, then a state that cannot be replaced.
    machine.put(
        &format!("{folder}/state.json"),
        "{\"consecutive_blocks\": -5, \"session_id\": \"s1\"}",
    );
    machine.stop().answer();
    assert!(!machine.file(".policyd/sessions").exists());
    let sibling = machine.file(&format!("{folder}/.state.json.tmp"));
    fs::remove_file(&sibling).ok();
    fs::create_dir_all(sibling.join("in the way")).unwrap();
    assert!(!machine.stop().blocks(), "what cannot be remembered is not a block");

    let shell = |script: &str| printed(&machine, &machine.project, &["sh", "-c", script]).unwrap();
    if shell("command -v jq || true").is_empty() {
        eprintln!("skipped: jq is not installed");
        return;
    }
    let failures = shell(
        "cat .claude/runtime/power-steering/*/diagnostic.jsonl | \\
           grep '\"success\": false' | \\
           jq -r '[.timestamp, .operation, .reason] | @tsv'",
    );
    assert_eq!(failures.matches("negative_counter").count(), 2, "{failures}");
    assert_eq!(failures.matches("state_save\t").count(), 4, "three attempts, one end: {failures}");
    let mean = shell(
        "cat .claude/runtime/power-steering/*/diagnostic.jsonl | \\
           grep '\"retry_count\"' | \\
           jq '.retry_count' | \\
           awk '{sum+=$1; count++} END {print sum/count}'",
    );
    assert!(mean.trim().parse::<f64>().unwrap() > 0.5, "{mean}");
    let corruption = shell(
        "cat .claude/runtime/power-steering/*/diagnostic.jsonl | \\
           grep '\"validation_failed\": true'",
    );
    assert_eq!(corruption.lines().count(), 1, "{corruption}");
    assert!(corruption.contains("-5"), "{corruption}");
}

#[test]
fn logs_lie_under_the_root_and_are_hidden_from_git() {
    let Some((machine, _)) = with_worktree() else { return };
    let elsewhere = machine.path("elsewhere");
    let said = machine.stop_where(&[("POLICYD_STATE_DIR", elsewhere.as_os_str())]);
    assert!(said.blocks());
    assert_eq!(read_log(&elsewhere.join("logs/decisions.jsonl")).len(), 1);
    assert!(elsewhere.join("sessions/s1/state.json").exists());
    assert!(!machine.file(".policyd").exists(), "nothing is written into the project");
    // The seed's variable names the folder of the session folders; the log stays in the project.
    let seeds = machine.path("seeds");
    let named = [("AMPLIHACK_PS_STATE_DIR", seeds.as_os_str())];
    assert!(machine.work().stop_where(&named).blocks());
    assert!(seeds.join("s1/state.json").exists());
    assert_eq!(read_log(&machine.file(".policyd/logs/decisions.jsonl")).len(), 1);
    let status = printed(&machine, &machine.project, &["git", "status", "--porcelain"]);
    assert_eq!(status.as_deref(), Some(""));
}
