//! `policyd` and `policyd-tools` belong together: what happens if one of them is missing, or if another account can
//! change one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::machine::{Called, Machine, run};

const FRONT: &str = "policyd";
const TOOLS: &str = "policyd-tools";

/// Copies programs into one directory of the machine.
fn installed(machine: &Machine, names: &[&str]) -> PathBuf {
    let folder = machine.path("installed");
    fs::create_dir(&folder).unwrap();
    for name in names {
        let built = Path::new(env!("CARGO_BIN_EXE_policyd")).with_file_name(name);
        // By another process: while this one writes a file, a fork of it keeps the file from being run.
        assert!(Command::new("cp").arg(built).arg(&folder).status().unwrap().success());
    }
    folder
}

fn call(machine: &Machine, program: &Path, arguments: &[&str]) -> Called {
    let input = json!({"command": "rm -rf /"});
    let event = json!({"session_id": "s", "cwd": machine.file(""), "tool_name": "Bash", "tool_input": input});
    let mut command = machine.program(program.to_str().unwrap(), arguments);
    command.env("POLICYD_TOOLS_BESIDE", "1");
    run(command, event.to_string().as_bytes())
}

fn decision(called: &Called) -> Value {
    called.answer()["hookSpecificOutput"]["permissionDecision"].clone()
}

#[test]
fn hooks_are_answered_without_policyd_tools() {
    let machine = Machine::new();
    let front = installed(&machine, &[FRONT]).join(FRONT);
    let hook = ["eval", "--hook", "pre-tool-use"];
    assert_eq!(decision(&call(&machine, &front, &hook)), "deny");
    // Only `policyd-tools` reads a line with another option.
    let called = call(&machine, &front, &[&hook[..], &["--explain"]].concat());
    assert_eq!(decision(&called), "ask", "{called:?}");
    assert!(called.stdout.contains("policyd-tools` is missing"), "{called:?}");
    let called = call(&machine, &front, &["status"]);
    assert_eq!(called.code, Some(3), "{called:?}");
    assert!(called.stderr.contains("install policyd again"), "{called:?}");
}

#[test]
#[cfg(unix)]
fn a_hook_is_answered_if_policyd_tools_crashes() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let folder = installed(&machine, &[FRONT]);
    let tools = folder.join(TOOLS);
    for script in ["exit 1", "kill -SEGV $$", "exit 2"] {
        fs::write(&tools, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&tools, fs::Permissions::from_mode(0o755)).unwrap();
        let hook = ["eval", "--hook", "pre-tool-use", "--explain"];
        let called = call(&machine, &folder.join(FRONT), &hook);
        assert_eq!(
            (called.code, decision(&called)),
            (Some(0), "ask".into()),
            "{script}: {called:?}"
        );
        assert!(called.stdout.contains("ended without an answer"), "{called:?}");
    }
}

#[test]
fn what_scripts_and_clients_start_often_runs_without_policyd_tools() {
    let machine = Machine::new();
    let folder = installed(&machine, &[FRONT, TOOLS]);
    let front = folder.join(FRONT);
    let fail = ["breaker", "record", "api/x", "failure", "--error", "503"];
    for _ in 0..5 {
        assert_eq!(call(&machine, &front, &fail).code, Some(0));
    }
    let allow = ["breaker", "allow", "api/x", "--format", "json"];
    let by_tools = call(&machine, &folder.join(TOOLS), &allow);
    fs::remove_file(folder.join(TOOLS)).unwrap();
    let called = call(&machine, &front, &allow);
    assert_eq!(called.code, Some(1), "{called:?}");
    assert_eq!(called.stdout, by_tools.stdout);
    assert_eq!(call(&machine, &front, &["breaker", "allow", "api/y"]).code, Some(0));
    assert_eq!(call(&machine, &front, &["breaker", "show", "api/x"]).code, Some(3));

    let told = json!({"session_id": "s", "transcript_path": machine.file("none.jsonl"),
        "context_window": {"used_percentage": 41, "context_window_size": 200_000}});
    let line = machine.program(front.to_str().unwrap(), &["context", "line"]);
    let called = run(line, told.to_string().as_bytes());
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stdout.contains("41 %"), "{called:?}");
}

#[test]
fn policyd_tools_compiles_a_pack_once_and_without_it_a_call_is_asked_about() {
    let machine = Machine::new();
    let folder = installed(&machine, &[FRONT, TOOLS]);
    let pack = machine.path("pack");
    fs::create_dir(&pack).unwrap();
    fs::write(pack.join("policyd.yaml"), "name: own\nextends: [builtin]\n").unwrap();
    let event = json!({"session_id": "s", "cwd": machine.file(""), "tool_name": "Bash",
        "tool_input": {"command": "rm -rf /"}});
    let called = || {
        let hook = ["eval", "--hook", "pre-tool-use"];
        let mut command = machine.program(folder.join(FRONT).to_str().unwrap(), &hook);
        command.env("POLICYD_TOOLS_BESIDE", "1").env("POLICYD_POLICIES", &pack);
        run(command, event.to_string().as_bytes())
    };
    assert_eq!(decision(&called()), "deny");
    fs::remove_file(folder.join(TOOLS)).unwrap();
    assert_eq!(decision(&called()), "deny", "the compiled form is kept");
    fs::write(pack.join("policyd.yaml"), "name: other\nextends: [builtin]\n").unwrap();
    let answer = called();
    assert_eq!(decision(&answer), "ask", "{answer:?}");
    assert!(answer.stdout.contains("policyd-tools` is missing"), "{answer:?}");
}

#[test]
#[cfg(unix)]
fn policyd_tools_that_compiles_no_pack_in_time_is_not_waited_for() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let folder = installed(&machine, &[FRONT]);
    let tools = folder.join(TOOLS);
    fs::write(&tools, "#!/bin/sh\nsleep 60\n").unwrap();
    fs::set_permissions(&tools, fs::Permissions::from_mode(0o755)).unwrap();
    machine.put(".policyd/policies/policyd.yaml", "name: own\nextends: [builtin]\n");
    let called = call(&machine, &folder.join(FRONT), &["eval", "--hook", "pre-tool-use"]);
    assert_eq!(decision(&called), "ask", "{called:?}");
    // Clients end a hook after 20 seconds, and then nothing is checked.
    assert!(called.took.as_secs() < 20, "{called:?}");
}

#[test]
#[cfg(unix)]
fn policyd_tools_that_another_account_can_change_is_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let folder = installed(&machine, &[FRONT, TOOLS]);
    let version = ["--version"];
    assert_eq!(call(&machine, &folder.join(FRONT), &version).code, Some(0));
    fs::set_permissions(folder.join(TOOLS), fs::Permissions::from_mode(0o777)).unwrap();
    let called = call(&machine, &folder.join(FRONT), &version);
    assert_eq!(called.code, Some(3), "{called:?}");
    assert!(called.stderr.contains("others may write to it"), "{called:?}");
}

#[test]
fn the_doctor_and_uninstall_name_both_programs() {
    let machine = Machine::new();
    let folder = installed(&machine, &[FRONT, TOOLS]);
    let program = |called: &Called| {
        let report: Value = serde_json::from_str(&called.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|it| it["about"] == "program").unwrap();
        ["health", "text"].map(|it| check[it].as_str().unwrap().to_owned())
    };
    let doctor = ["doctor", "--format", "json"];
    let called = call(&machine, &folder.join(FRONT), &doctor);
    let [health, text] = program(&called);
    assert_eq!(health, "ok");
    assert!(text.ends_with("installed/policyd-tools"), "{text}");
    assert!(!called.stdout.contains("POLICYD_FRONT_RELEASE"), "{called:?}");
    let planned = ["uninstall", "--harness", "claude-code", "--dry-run"];
    let planned = call(&machine, &folder.join(FRONT), &planned);
    assert_eq!(planned.stdout.matches("stays      program: ").count(), 2, "{planned:?}");
    fs::remove_file(folder.join(FRONT)).unwrap();
    let [health, text] = program(&call(&machine, &folder.join(TOOLS), &doctor));
    assert_eq!(health, "failed");
    assert!(text.contains("`policyd` is missing"), "{text}");
}

#[test]
fn a_copy_of_policyd_finds_the_programs_of_its_build() {
    let machine = Machine::new();
    let copy = installed(&machine, &[FRONT]).join(FRONT);
    let called = run(machine.program(copy.to_str().unwrap(), &["doctor", "--format", "json"]), b"");
    let report: Value = serde_json::from_str(&called.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let program = checks.iter().find(|it| it["about"] == "program").unwrap();
    assert!(program["text"].as_str().unwrap().contains("installed/policyd"), "{program}");
}
