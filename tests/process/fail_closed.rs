//! Missing data never means yes: a tool call without an analysis is asked about, a stop without a state uses another
//! state, and each is reported.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use policyd::app::install::places::PLACES;
use serde_json::{Value, json};

use crate::machine::{Called, Machine, ended, ran, run, skipped};

/// A client, its hook line of a tool call, and words in the answer that ask the user or refuse. OpenCode has no hook lines.
const CLIENTS: [(&str, &str, &[&str]); PLACES.len() - 1] = [
    ("claude-code", "pre-tool-use", &["\"permissionDecision\":\"ask\""]),
    ("codex", "pre-tool-use", &["\"permissionDecision\":\"deny\"", "\"decision\":\"block\""]),
    ("gemini", "BeforeTool", &["\"decision\":\"deny\"", "\"decision\":\"ask\""]),
    (
        "copilot",
        "preToolUse",
        &["\"permissionDecision\":\"ask\"", "\"permissionDecision\":\"deny\""],
    ),
    ("cursor", "beforeShellExecution", &["\"permission\":\"ask\"", "\"permission\":\"deny\""]),
    ("droid", "PreToolUse", &["\"permissionDecision\":\"ask\"", "\"permissionDecision\":\"deny\""]),
];

/// One JSON object that asks the user about the call, or refuses it.
fn assert_asked(what: &str, called: &Called, words: &[&str]) {
    assert_eq!(called.code, Some(0), "{what}: {called:?}");
    let answer: Value = serde_json::from_str(&called.stdout).expect(what);
    let text = answer.to_string();
    assert!(words.iter().any(|it| text.contains(it)), "{what}: {text}");
}

fn call(machine: &Machine, command: &str) -> Value {
    json!({"session_id": "s1", "cwd": machine.project, "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": command}})
}

fn start(machine: &Machine) -> Called {
    let payload = json!({"session_id": "s1", "cwd": machine.project, "source": "startup",
        "hook_event_name": "SessionStart"});
    machine.run(&["eval", "--hook", "session-start"], payload.to_string().as_bytes())
}

/// A hook that waits for the rest of its payload.
fn waiting(machine: &Machine, line: &[&str]) -> Child {
    let mut command = machine.command(line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"{\"session_id\": \"s1\", ").unwrap();
    // It is ready when it sleeps in a read.
    let status = format!("/proc/{}/status", child.id());
    let begun = Instant::now();
    let is_ready = || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        text.contains("State:\tS") && !text.contains("SigCgt:\t0000000000000000")
    };
    while !is_ready() && begun.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(100));
    child
}

fn killed(mut child: Child, signal: &str) -> Called {
    let begun = Instant::now();
    let mut kill = Command::new("kill");
    assert!(kill.args(["-s", signal, &child.id().to_string()]).status().unwrap().success());
    let code = ended(&mut child);
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    Called { code, stdout, stderr: String::new(), took: begun.elapsed() }
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_ends_the_analysis_of_a_call_is_an_answer_and_is_reported_once() {
    let machine = Machine::new();
    for signal in ["SEGV", "ABRT", "BUS", "XCPU", "SYS", "TERM"] {
        let said = killed(waiting(&machine, &["eval", "--hook", "pre-tool-use"]), signal);
        assert_asked(signal, &said, CLIENTS[0].2);
        let notice = start(&machine).notice();
        assert!(notice.contains("ended a hook before the analysis"), "{signal}: {notice}");
        assert!(!start(&machine).notice().contains("ended a hook"), "{signal}");
    }
    for (client, hook, words) in CLIENTS {
        let line = ["eval", "--hook", hook, "--harness", client];
        assert_asked(client, &killed(waiting(&machine, &line), "SEGV"), words);
    }
    let notice = start(&machine).notice();
    assert!(notice.contains(&format!("{} hooks", CLIENTS.len())), "{notice}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_at_another_event_answers_nothing_and_is_reported() {
    let machine = Machine::new();
    let said = killed(waiting(&machine, &["eval", "--hook", "stop"]), "ABRT");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    let said = killed(waiting(&machine, &["eval", "--hook", "stop", "--harness", "codex"]), "ABRT");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "{}"));
    let notice = start(&machine).notice();
    assert!(notice.contains("2 hooks before the analysis of `stop`"), "{notice}");
}

#[test]
#[cfg(target_os = "linux")]
fn however_small_the_stack_is_a_call_is_answered() {
    let machine = Machine::new();
    let tower = format!("echo {}a{} ; rm -rf ~", "\"$(".repeat(40), ")\"".repeat(40));
    let payload = call(&machine, &tower).to_string();
    let mut ways = (0, 0);
    for kilobytes in [32, 64, 128, 256, 512, 1024, 8192] {
        let limits = format!("ulimit -s {kilobytes};");
        let line = ["eval", "--hook", "pre-tool-use"];
        let said = run(machine.confined(&limits, &line), payload.as_bytes());
        assert_asked(&limits, &said, &["\"ask\"", "\"deny\""]);
        match said.stdout.contains("ended without a result") {
            true => ways.0 += 1,
            false => ways.1 += 1,
        }
    }
    assert!(ways.0 > 0 && ways.1 > 0, "both ways are tried: {ways:?}");
}

#[test]
fn a_payload_that_cannot_be_read_is_asked_about_in_the_form_of_the_client() {
    let machine = Machine::new();
    let with = |meta: &str| {
        let text = call(&machine, "ls").to_string();
        text.replacen("\"command\":", &format!("\"meta\":{meta},\"command\":"), 1).into_bytes()
    };
    let mut not_text = call(&machine, "cat 'x'").to_string().into_bytes();
    let at = not_text.iter().position(|it| *it == b'x').unwrap();
    not_text[at] = 0xff;
    let payloads: [(&str, Vec<u8>); 9] = [
        ("nesting", with(&format!("{}{}", "[".repeat(200), "]".repeat(200)))),
        ("objects", with(&format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200)))),
        ("number", with("1e999")),
        ("size", with(&format!("\"{}\"", "a".repeat(17_000_000)))),
        ("not UTF-8", not_text),
        ("cut", with("1")[..60].to_vec()),
        ("list", b"[]".to_vec()),
        ("empty", Vec::new()),
        ("text", b"hello".to_vec()),
    ];
    for (name, payload) in &payloads {
        for (client, hook, words) in CLIENTS {
            let said = machine.run(&["eval", "--hook", hook, "--harness", client], payload);
            assert_asked(&format!("{name}, {client}"), &said, words);
        }
        let said = machine.run(&["eval", "--hook", "stop"], payload);
        assert!(!said.blocks(), "{name}: a stop is not a call");
    }
}

#[test]
fn a_hook_whose_directory_cannot_be_entered_is_answered() {
    let machine = Machine::new();
    let payload = call(&machine, "ls").to_string();
    // Each program enters the directory itself; only `policyd-tools` reads the second line.
    for options in [&[][..], &["--explain"]] {
        let line = [&["-C", "/nowhere", "eval", "--hook", "pre-tool-use"], options].concat();
        let called = machine.run(&line, payload.as_bytes());
        assert_asked("-C", &called, &["\"permissionDecision\":\"ask\""]);
    }
    assert_eq!(machine.run(&["-C", "/nowhere", "lint"], b"").code, Some(2));
}

#[test]
fn a_command_that_is_not_a_text_is_asked_about() {
    let machine = Machine::new();
    for command in [json!({"line": "rm -rf /"}), json!([["rm"], "-rf", "/"]), json!(7)] {
        let mut payload = call(&machine, "");
        payload["tool_input"]["command"] = command.clone();
        let called =
            machine.run(&["eval", "--hook", "pre-tool-use"], payload.to_string().as_bytes());
        assert_asked(&command.to_string(), &called, &["\"permissionDecision\":\"ask\""]);
    }
}

#[test]
fn what_denies_a_call_denies_it_also_if_some_bytes_are_unreadable() {
    let machine = Machine::new();
    let mut payload = call(&machine, "rm -rf ~ # x").to_string().into_bytes();
    let at = payload.iter().position(|it| *it == b'#').unwrap();
    payload[at + 2] = 0xff;
    let said = machine.run(&["eval", "--hook", "pre-tool-use"], &payload);
    assert_asked("deny", &said, &["\"permissionDecision\":\"deny\""]);
}

#[test]
fn a_wrong_hook_line_does_not_let_a_call_pass() {
    let machine = Machine::new();
    let payload = call(&machine, "ls").to_string();
    for line in [
        &["eval", "--hook", "stop"][..],
        &["eval", "--hook", "pre-tool-use", "--harness", "nobody"],
        &["eval", "--hook", "pre-tool-use", "--unknown"],
    ] {
        let said = machine.run(line, payload.as_bytes());
        assert_asked(&line.join(" "), &said, CLIENTS[0].2);
    }
}

#[test]
fn a_complete_payload_is_answered_though_standard_input_stays_open() {
    let machine = Machine::new();
    let mut command = machine.command(&["eval", "--hook", "pre-tool-use"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let payload = call(&machine, "rm -rf ~").to_string();
    let (one, other) = payload.split_at(payload.len() / 2);
    stdin.write_all(one.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(50));
    stdin.write_all(other.as_bytes()).unwrap();
    let code = ended(&mut child);
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(code == Some(0) && stdout.contains("\"deny\""), "{code:?}: {stdout}");
    drop(stdin);
}

#[test]
fn a_payload_that_never_ends_is_asked_about_after_the_deadline() {
    let machine = Machine::new();
    let begun = Instant::now();
    let mut child = waiting(&machine, &["eval", "--hook", "pre-tool-use"]);
    let _open = child.stdin.take();
    let code = ended(&mut child);
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(begun.elapsed() > Duration::from_secs(9), "{:?}", begun.elapsed());
    assert!(code == Some(0) && stdout.contains("\"ask\""), "{code:?}: {stdout}");
    assert!(stdout.contains("not complete after 10 seconds"), "{stdout}");
}

fn git(folder: &Path, words: &[&str]) {
    let own =
        ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"];
    let done = Command::new("git").args(own).args(words).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A machine whose project is a clone of a repository that `fill` fills.
fn cloned(fill: impl FnOnce(&Path)) -> Machine {
    let machine = Machine::new();
    let origin = machine.path("origin");
    fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "-q"]);
    fs::write(origin.join("readme"), "x\n").unwrap();
    fill(&origin);
    git(&origin, &["add", "-Af", "."]);
    git(&origin, &["commit", "-qm", "x"]);
    fs::remove_dir_all(&machine.project).unwrap();
    let (from, to) = (origin.to_str().unwrap(), machine.project.to_str().unwrap());
    git(origin.parent().unwrap(), &["clone", "-q", "--recurse-submodules", from, to]);
    machine.untested();
    machine
}

type Fill = fn(&Path);

/// What a repository can have in place of the state directory.
const IN_ITS_PLACE: [(&str, Fill); 6] = [
    ("an empty file", |it| fs::write(it.join(".policyd"), "").unwrap()),
    ("a link to a tracked directory", |it| {
        fs::create_dir_all(it.join("data/signals")).unwrap();
        fs::write(it.join("data/signals/STOP"), "{\"reason\": \"INJECTED\"}").unwrap();
        symlink("data", it.join(".policyd")).unwrap();
    }),
    ("a link to a device", |it| symlink("/dev/null", it.join(".policyd")).unwrap()),
    ("a link that leads nowhere", |it| symlink("/nonexistent/x", it.join(".policyd")).unwrap()),
    ("a link to itself", |it| symlink(".policyd", it.join(".policyd")).unwrap()),
    ("a file in it", |it| {
        fs::create_dir(it.join(".policyd")).unwrap();
        fs::write(it.join(".policyd/sessions"), "").unwrap();
    }),
];

/// The stop is blocked, counted in the directory of the user, and the session start says why.
fn assert_other_state(name: &str, machine: &Machine) {
    let said = start(machine);
    let notice = said.notice();
    assert!(notice.contains("State is kept in `"), "{name}: {notice}");
    assert!(!said.stdout.contains("INJECTED"), "{name}: {said:?}");
    let stop = machine.stop();
    assert!(stop.blocks(), "{name}: {stop:?}");
    assert!(!stop.notice().contains("could not"), "{name}: {stop:?}");
}

#[test]
fn whatever_is_in_the_place_of_the_state_directory_stops_are_evaluated() {
    for (name, fill) in IN_ITS_PLACE {
        assert_other_state(name, &cloned(fill));
    }
}

#[test]
fn a_submodule_is_not_a_state_directory() {
    let machine = cloned(|origin| {
        let evil = origin.with_file_name("evil");
        fs::create_dir_all(evil.join("signals")).unwrap();
        git(&evil, &["init", "-q"]);
        for name in ["HUMAN_REVIEW_NEEDED", "STOP"] {
            fs::write(evil.join("signals").join(name), "{\"reason\": \"INJECTED\"}").unwrap();
        }
        git(&evil, &["add", "-A"]);
        git(&evil, &["commit", "-qm", "x"]);
        git(origin, &["submodule", "--quiet", "add", evil.to_str().unwrap(), ".policyd"]);
    });
    assert!(machine.file(".policyd/signals/STOP").exists());
    assert_other_state("submodule", &machine);
    let begun =
        ["run", "--goal", "x", "--max-iterations", "1", "--", "sh", "-c", "echo ran >> turns"];
    machine.run(&begun, b"");
    assert!(machine.file("turns").exists(), "a signal of the repository ends no run");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_replaced() {
    let machine = Machine::new();
    machine.untested();
    let state = machine.file(".policyd");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(state.join("probe"), "").is_ok() {
        skipped("a_state_directory_that_cannot_be_written_is_replaced", "root writes everywhere");
        return;
    }
    assert_other_state("read-only", &machine);
}

/// Stops a dozen times without any state that can be written. Returns the number of blocks.
fn blocks_without_state(name: &str, call: impl Fn(&Machine, &Value) -> Called) -> usize {
    let machine = Machine::new();
    machine.untested();
    let mut blocks = 0;
    let mut follows_block = false;
    for number in 0..12 {
        let payload = machine.payload(&json!({"stop_hook_active": follows_block}));
        let said = call(&machine, &payload);
        let answer = said.answer();
        follows_block = answer["decision"] == "block";
        if follows_block {
            blocks += 1;
            assert_eq!(blocks, number + 1, "{name}: no block follows a release");
            let text = format!("Stop hook feedback:\n{}", answer["reason"].as_str().unwrap());
            machine.record(&[json!({"type": "user", "isMeta": true,
                "message": {"role": "user", "content": text}})]);
        }
        machine.record(&ran(&format!("ls {}", "x".repeat(number)), "a.py"));
    }
    blocks
}

#[test]
fn without_any_state_the_transcript_bounds_the_blocks() {
    let line = ["eval", "--hook", "stop"];
    let no_files = |machine: &Machine, payload: &Value| {
        run(machine.confined("ulimit -f 0;", &line), payload.to_string().as_bytes())
    };
    let no_home = |machine: &Machine, payload: &Value| {
        fs::remove_dir_all(machine.file(".policyd")).ok();
        fs::write(machine.file(".policyd"), "").unwrap();
        let mut command = machine.command(&line);
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        run(command, payload.to_string().as_bytes())
    };
    for (name, blocks) in [
        ("no files", blocks_without_state("no files", no_files)),
        ("no home", blocks_without_state("no home", no_home)),
    ] {
        assert!((1..=5).contains(&blocks), "{name}: {blocks} blocks");
    }
}

#[test]
fn without_any_state_a_client_that_reports_nothing_is_not_blocked() {
    let machine = Machine::new();
    machine.untested();
    let line = ["eval", "--hook", "AfterAgent", "--harness", "gemini"];
    let payload = machine.payload(&json!({"hook_event_name": "AfterAgent"})).to_string();
    let said = run(machine.confined("ulimit -f 0;", &line), payload.as_bytes());
    assert!(said.code == Some(0) && !said.stdout.contains("\"deny\""), "{said:?}");
}

#[test]
fn a_store_that_is_too_large_is_an_error_and_stays() {
    let machine = Machine::new();
    let breaker = json!({"state": "open", "failure_count": 9, "last_error": "x".repeat(400),
        "cooldown_until": "2999-01-01T00:00:00Z"});
    let breakers: serde_json::Map<String, Value> =
        (0..12_000).map(|it| (format!("api/{it}"), breaker.clone())).collect();
    let file = ".policyd/state/circuit-breakers.json";
    machine.put(file, &Value::from(breakers).to_string());
    let length = fs::metadata(machine.file(file)).unwrap().len();
    for line in [
        &["breaker", "allow", "api/7"][..],
        &["breaker", "list"],
        &["breaker", "status"],
        &["breaker", "show", "api/7"],
        &["breaker", "record", "api/7", "failure"],
        &["breaker", "record", "api/7", "success"],
    ] {
        let said = machine.run(line, b"");
        assert_eq!(said.code, Some(3), "{line:?}: {said:?}");
        assert!(
            said.stderr.contains("circuit-breakers.json") || said.stderr.contains("api/7"),
            "{said:?}"
        );
    }
    assert_eq!(fs::metadata(machine.file(file)).unwrap().len(), length);

    let task = json!({"id": "t", "error": "x".repeat(400)});
    let letters: Vec<Value> = (0..100_000)
        .map(|it| {
            let mut task = task.clone();
            task["id"] = format!("t{it}").into();
            task
        })
        .collect();
    let file = ".policyd/queue/dead-letter.json";
    machine.put(file, &json!({"tasks": letters}).to_string());
    let length = fs::metadata(machine.file(file)).unwrap().len();
    for line in [
        &["dlq", "list"][..],
        &["dlq", "stats"],
        &["dlq", "show", "t7"],
        &["dlq", "add", "new", "--error", "E"],
    ] {
        let said = machine.run(line, b"");
        assert_eq!(said.code, Some(3), "{line:?}: {said:?}");
        assert!(said.stderr.contains("too large") || said.stderr.contains("bytes"), "{said:?}");
    }
    assert_eq!(fs::metadata(machine.file(file)).unwrap().len(), length, "nothing is moved");
}
