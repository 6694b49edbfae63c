//! Instructions of tool calls: those of the standard calls may grow by 3% over `instructions.txt`. Time is noisy, this
//! number is not. Valgrind counts them in this program, on a simulated machine whose clock stands still, and with the
//! little optimization that tests have, so they are not those of a release.
//! `POLICYD_REGEN=1 cargo test --test engine instructions` records them again.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::machine::Machine;

const BASELINE: &str = "tests/engine/guards/instructions.txt";
/// Growth that is accepted, in percent.
const GROWTH_MAX: u64 = 3;
/// Calls that each count includes, so that starting the program weighs little.
const REPEATED: usize = 5;
/// Variable with the name of the call that a counted process makes.
const CALL: &str = "POLICYD_TEST_CALL";
/// The test that makes it.
const COUNTED: &str = "guards::instructions::a_counted_process_makes_its_call";

/// The standard calls by their names. The first one is none.
fn calls() -> [(&'static str, &'static str, Value); 6] {
    let bash = |command: &str| json!({"command": command});
    let edit = json!({"file_path": "src/lib.rs", "old_string": "a", "new_string": "b"});
    [
        ("start", "", json!({})),
        ("tests and git", "Bash", bash("cargo test --all 2>&1 | tail -5 && git status")),
        ("ls", "Bash", bash("ls -la")),
        ("denied", "Bash", bash("git push --force origin main")),
        ("read", "Read", json!({"file_path": "src/lib.rs"})),
        ("edit", "Edit", edit),
    ]
}

#[test]
fn a_counted_process_makes_its_call() {
    let Ok(name) = std::env::var(CALL) else { return };
    let calls = calls();
    let (_, tool, input) = calls.iter().find(|it| it.0 == name).unwrap();
    let machine = Machine::new("/home/dev/project");
    if !tool.is_empty() {
        (0..REPEATED).for_each(|_| drop(machine.tool(tool, input)));
    }
}

/// Where the numbers hold: other machines and compilers have other ones.
fn place() -> String {
    let compiler = Command::new("rustc").arg("--version").output().unwrap().stdout;
    let compiler = String::from_utf8(compiler).unwrap();
    let version = compiler.split(' ').nth(1).unwrap_or_default();
    format!("{} {} {version}", std::env::consts::ARCH, std::env::consts::OS)
}

/// Instructions of a process that makes a call.
fn instructions(name: &str) -> u64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", COUNTED, "--test-threads=1"]);
    let output = command.env(CALL, name).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let number = said.lines().find_map(|it| it.split_once("Collected : "));
    number.unwrap_or_else(|| panic!("{said}")).1.trim().parse().unwrap()
}

#[test]
#[ignore = "second tier: Valgrind"]
fn the_standard_calls_execute_no_more_instructions_than_recorded() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("== valgrind is not installed: instructions are not counted");
        return;
    }
    let calls = calls();
    let start = instructions(calls[0].0);
    let counted = calls[1..].iter().map(|(name, ..)| {
        let each = instructions(name).saturating_sub(start) / u64::try_from(REPEATED).unwrap();
        format!("{name}: {each}")
    });
    let lines: Vec<String> = [place()].into_iter().chain(counted).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(BASELINE);
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
    let pairs = recorded.iter().zip(&lines).skip(1);
    let grown = pairs.filter(|(then, now)| number(now) * 100 > number(then) * (100 + GROWTH_MAX));
    let grown: Vec<String> = grown.map(|(then, now)| format!("{then} -> {now}")).collect();
    assert!(
        grown.is_empty(),
        "tool calls became slower: {grown:#?}. Find out why. If it is necessary, record the numbers: \
         POLICYD_REGEN=1 cargo test --test engine instructions"
    );
}
