//! Benches that are not programs of Cargo: their runners work with the program of today.
#![cfg(unix)]

use std::process::Command;

use super::packages::{has_python, text};
use super::readme::{PROGRAM, root};

/// The sets are not part of the repository, so that only the two calls of the runner itself are judged.
#[test]
fn the_bench_of_guards_judges_its_own_calls() {
    if !has_python() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut run = Command::new("python3");
    run.args(["-B", "tests/bench/guards/run.py", "self-test"]).current_dir(root());
    let output = run.env("POLICYD_BIN", PROGRAM).env("HOME", home.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}
