//! Whatever happens to the state between two stops, the block limiter ends the blocks. The agent works after
//! each block, and its work is never good enough.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::machine::{Machine, asked, ran};

/// `max_consecutive_blocks` of the built-in pack.
const BLOCKS_MAX: usize = 5;
const STOPS: usize = 12;

/// How the client reports a block.
#[derive(Clone, Copy, PartialEq)]
enum Client {
    /// The reason is in the transcript, and a flag in the payload.
    Shows,
    /// Neither.
    Hides,
}

fn git(machine: &Machine, words: &[&str]) {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let mut git = machine.program("git", &[&own[..], words].concat());
    let done = git.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(done.success(), "git {words:?}");
}

/// A repository with one commit, in which an agent edits code and never tests it.
fn repository() -> Machine {
    let machine = Machine::new();
    git(&machine, &["init", "-q"]);
    machine.put("readme", "x\n");
    git(&machine, &["add", "readme"]);
    git(&machine, &["commit", "-q", "-m", "begin"]);
    machine.untested();
    machine
}

fn feedback(reason: &Value) -> Value {
    let text = format!("Stop hook feedback:\n{}", reason.as_str().unwrap());
    json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": text}})
}

/// Stops a dozen times, and returns which stops were blocked. `between` happens after each stop.
fn stops(machine: &Machine, client: Client, between: impl Fn(&Machine, usize)) -> Vec<bool> {
    let mut blocked = Vec::new();
    for number in 0..STOPS {
        let follows_block = client == Client::Shows && blocked.last() == Some(&true);
        let answer = machine.stop_with(&json!({"stop_hook_active": follows_block})).answer();
        blocked.push(answer["decision"] == "block");
        if answer["decision"] == "block" && client == Client::Shows {
            machine.record(&[feedback(&answer["reason"])]);
        }
        machine.record(&ran(&format!("ls {}", "x".repeat(number)), "a.py"));
        between(machine, number);
    }
    blocked
}

/// The first stop is blocked, at most `BLOCKS_MAX` are, and none after a release.
fn assert_ends(name: &str, blocked: &[bool]) {
    let count = blocked.iter().filter(|it| **it).count();
    assert!((1..=BLOCKS_MAX).contains(&count), "{name}: {blocked:?}");
    assert!(blocked[..count].iter().all(|it| *it), "{name}: {blocked:?}");
}

fn both(name: &str, between: impl Fn(&Machine, usize)) {
    for client in [Client::Shows, Client::Hides] {
        let machine = repository();
        assert_ends(name, &stops(&machine, client, &between));
    }
}

#[test]
fn git_clean_between_stops() {
    both("git clean", |machine, _| {
        git(machine, &["clean", "-ffdxq"]);
        assert!(!machine.file(".policyd").exists());
    });
}

#[test]
fn git_stash_between_stops() {
    both("git stash", |machine, _| {
        git(machine, &["stash", "--all", "-q"]);
        assert!(!machine.session().exists());
    });
}

#[test]
fn a_removed_state_directory() {
    both("rm", |machine, _| fs::remove_dir_all(machine.file(".policyd")).unwrap());
}

/// Copies a directory as a backup program does.
fn copy(from: &Path, to: &Path) {
    let mut cp = std::process::Command::new("cp");
    assert!(cp.arg("-R").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn a_restored_backup_of_the_first_block() {
    both("backup", |machine, number| {
        let backup = machine.path("backup");
        if number == 0 {
            copy(&machine.file(".policyd"), &backup);
        } else {
            fs::remove_dir_all(machine.file(".policyd")).unwrap();
            copy(&backup, &machine.file(".policyd"));
        }
    });
}

#[test]
fn a_sync_that_puts_old_state_back() {
    both("sync", |machine, number| {
        let (state, old) = (machine.session().join("state.json"), machine.path("old.json"));
        if number == 0 {
            fs::copy(&state, &old).unwrap();
        } else {
            fs::copy(&old, &state).unwrap();
        }
    });
}

#[test]
fn a_container_without_a_volume() {
    // The client's transcript is all that stays.
    let machine = repository();
    let blocked = stops(&machine, Client::Shows, |machine, _| {
        fs::remove_dir_all(machine.file(".policyd")).unwrap();
        for name in ["home", "cache", "state"] {
            fs::remove_dir_all(machine.path(name)).unwrap();
            fs::create_dir(machine.path(name)).unwrap();
        }
    });
    assert_ends("container", &blocked);
    assert_eq!(blocked.iter().filter(|it| **it).count(), BLOCKS_MAX);
}

#[test]
fn a_state_that_stays_ends_the_same_finding_sooner() {
    let machine = repository();
    let blocked = stops(&machine, Client::Shows, |_, _| {});
    assert_eq!(&blocked[..3], [true, true, false]);
    assert_ends("nothing happens", &blocked);
}

#[test]
fn a_new_prompt_of_the_user_begins_again() {
    let machine = repository();
    stops(&machine, Client::Shows, |machine, _| {
        fs::remove_dir_all(machine.file(".policyd")).unwrap();
    });
    let edit = crate::machine::edited("b.py");
    machine.record(&[asked("p2", "Add a formatter")]).record(&edit);
    assert!(machine.stop_with(&json!({"prompt_id": "p2"})).blocks());
}

#[test]
fn the_copy_of_the_limiter_is_one_small_file_that_a_clean_stop_and_a_reset_remove() {
    let machine = repository();
    let copies = || {
        let names = fs::read_dir(machine.path("state/policyd/blocks")).unwrap();
        let files = names.map(|it| it.unwrap().path());
        files.filter(|it| it.extension().is_some_and(|it| it == "json")).collect::<Vec<_>>()
    };
    assert!(machine.stop().blocks());
    let [copy] = <[_; 1]>::try_from(copies()).unwrap();
    assert!(fs::metadata(&copy).unwrap().len() < 4096);
    assert!(!fs::read_to_string(&copy).unwrap().contains("evidence"));
    assert_eq!(machine.human(&["state", "reset", "s1"]).code, Some(0));
    assert!(copies().is_empty());
    assert!(machine.stop().blocks());
    machine.record(&ran("python -m pytest", "12 passed in 0.31s"));
    assert!(!machine.stop().blocks());
    assert!(copies().is_empty());
}
