//! Instructions of hooks: those of the standard calls may grow by 3% over `instructions.txt`. Time is noisy, this number
//! is not. The program of the tests is not optimized, so the numbers are not those of a release.
//! `POLICYD_REGEN=1 cargo test --test process instructions` records them again.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::machine::{Machine, run};

const BASELINE: &str = "tests/process/instructions.txt";
/// Growth that is accepted, in percent.
const GROWTH_MAX: u64 = 3;

/// The standard calls: a name, the hook, and what its payload adds.
fn calls() -> [(&'static str, &'static str, Value); 6] {
    let bash = |command: &str| json!({"tool_name": "Bash", "tool_input": {"command": command}});
    let path = "src/lib.rs";
    let edit = json!({"file_path": path, "old_string": "a", "new_string": "b"});
    [
        ("tests and git", "pre-tool-use", bash("cargo test --all 2>&1 | tail -5 && git status")),
        ("ls", "pre-tool-use", bash("ls -la")),
        ("denied", "pre-tool-use", bash("git push --force origin main")),
        ("read", "pre-tool-use", json!({"tool_name": "Read", "tool_input": {"file_path": path}})),
        ("edit", "pre-tool-use", json!({"tool_name": "Edit", "tool_input": edit})),
        ("prompt", "user-prompt-submit", json!({"prompt": "Fix the parser, please."})),
    ]
}

/// Where the numbers hold: other machines and compilers have other ones.
fn place() -> String {
    let compiler = Command::new("rustc").arg("--version").output().unwrap().stdout;
    let compiler = String::from_utf8(compiler).unwrap();
    let version = compiler.split(' ').nth(1).unwrap_or_default();
    format!("{} {} {version}", std::env::consts::ARCH, std::env::consts::OS)
}

/// Instructions of one call, as Valgrind counts them. The call before it leaves what the first one writes.
fn instructions(machine: &Machine, hook: &str, payload: &Value) -> u64 {
    let event = payload.to_string();
    let mut counted = 0;
    for _ in 0..2 {
        let mut command = machine.program("valgrind", &["--tool=callgrind"]);
        command.arg("--callgrind-out-file=/dev/null").arg(env!("CARGO_BIN_EXE_policyd"));
        let called = run(
            {
                command.args(["eval", "--hook", hook]);
                command
            },
            event.as_bytes(),
        );
        let number = called.stderr.lines().find_map(|it| it.split_once("Collected : "));
        counted = number.unwrap_or_else(|| panic!("{called:?}")).1.trim().parse().unwrap();
    }
    counted
}

#[test]
fn the_standard_calls_execute_no_more_instructions_than_recorded() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("== valgrind is not installed: instructions are not counted");
        return;
    }
    let machine = Machine::new();
    let mut lines = vec![place()];
    for (name, hook, changes) in calls() {
        let mut payload = json!({"session_id": "s", "cwd": machine.file("")});
        payload.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        lines.push(format!("{name}: {}", instructions(&machine, hook, &payload)));
    }
    let path = machine_root().join(BASELINE);
    if std::env::var_os("POLICYD_REGEN").is_some() {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(&path).unwrap();
    let recorded: Vec<&str> = recorded.lines().collect();
    if recorded[0] != lines[0] {
        println!("== instructions were recorded for {}, not for {}", recorded[0], lines[0]);
        return;
    }
    let number = |line: &str| line.split(": ").last().unwrap().parse::<u64>().unwrap();
    let grown = recorded
        .iter()
        .zip(&lines)
        .skip(1)
        .filter(|(before, now)| number(now) * 100 > number(before) * (100 + GROWTH_MAX));
    let grown: Vec<String> = grown.map(|(before, now)| format!("{before} -> {now}")).collect();
    assert!(
        grown.is_empty(),
        "hooks became slower: {grown:#?}. Find out why; if it must be, record the new numbers: \
         POLICYD_REGEN=1 cargo test --test process instructions"
    );
}

fn machine_root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}
