//! The project of a session is decided at its first event: what appears in the directories above it does not move the
//! session to another project.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::machine::{Called, Machine};

const GUARD: &str = "
- id: no_deploy
  commands: [make deploy]
  decision: block
  message: Not now.
";

/// A project without git, with a trusted pack.
fn without_git() -> Machine {
    let machine = Machine::new();
    fs::remove_dir_all(machine.file(".git")).unwrap();
    machine.put(".policyd/policies/guards.yaml", GUARD);
    machine.put(".policyd/policies/policyd.yaml", "version: 1\nextends: [builtin]\n");
    machine.untested();
    machine
}

/// A call that the guard of the project's pack blocks.
fn deploy(machine: &Machine, session: &str, directory: &str) -> Called {
    let cwd = machine.file(directory);
    let payload = json!({"session_id": session, "cwd": cwd, "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "make deploy"}});
    machine.run(&["eval", "--hook", "pre-tool-use"], payload.to_string().as_bytes())
}

fn is_blocked(machine: &Machine, session: &str, directory: &str) -> bool {
    let called = deploy(machine, session, directory);
    assert_eq!(called.code, Some(0), "{called:?}");
    called.stdout.contains("Not now.")
}

fn git_init_above(machine: &Machine) {
    let above = machine.path("");
    let done = Command::new("git").args(["init", "-q"]).arg(above).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn an_empty_git_directory_above_is_no_checkout() {
    let machine = without_git();
    let block = |number: u32| {
        let reason =
            machine.work().stop().answer()["reason"].as_str().unwrap_or_default().to_owned();
        assert!(reason.contains(&format!("Block {number}")), "{number}: {reason}");
    };
    block(1);
    fs::create_dir(machine.path(".git")).unwrap();
    assert!(is_blocked(&machine, "s1", ""));
    assert!(is_blocked(&machine, "another", ""), "without a memory, too");
    block(2);
    fs::remove_dir(machine.path(".git")).unwrap();
    assert!(!machine.stop().blocks());
    assert!(!machine.path(".policyd").exists(), "no state above the project");
}

#[test]
fn a_checkout_above_does_not_end_the_rules_of_a_session() {
    let machine = without_git();
    assert!(is_blocked(&machine, "s1", ""));
    assert!(machine.stop().blocks());
    git_init_above(&machine);
    fs::create_dir(machine.file("sub")).unwrap();
    assert!(is_blocked(&machine, "s1", ""));
    assert!(is_blocked(&machine, "s1", "sub"), "the session changed its directory");
    assert!(machine.work().stop().answer()["reason"].as_str().unwrap().contains("Block 2"));
    assert!(!machine.path(".policyd").exists(), "no state above the project");
    assert!(!is_blocked(&machine, "next", ""), "a new session has the project that git names");
}

#[test]
fn a_memory_that_cannot_be_used_fails_no_hook() {
    let machine = without_git();
    assert!(is_blocked(&machine, "s1", ""));
    let folder = machine.path("state/policyd/session-projects");
    for file in fs::read_dir(&folder).unwrap() {
        fs::write(file.unwrap().path(), "{").unwrap();
    }
    assert!(is_blocked(&machine, "s1", ""));
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    assert!(is_blocked(&machine, "s1", ""));
    assert!(machine.stop().blocks());
}

#[test]
fn a_checkout_inside_of_a_project_is_a_project_of_its_own() {
    let machine = without_git();
    assert!(is_blocked(&machine, "s1", ""));
    let inner = machine.file("inner");
    let done = Command::new("git").args(["init", "-q"]).arg(&inner).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert!(is_blocked(&machine, "s1", "inner"), "packs of outer directories apply");
    assert!(inner.join(".policyd/logs").exists(), "its state is its own");
    assert!(is_blocked(&machine, "s1", ""));
}
