//! Rules that are tried while they are written: `lint --watch`, `test --watch`, and the prompt of `policyd try`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::machine::{Machine, asked, ended, run, used};

const PACK: &str = ".policyd/policies";
const GUARD: &str = "\
- id: no_force
  commands: [git]
  when: program.has([\"--force\"])
  decision: block
  message: Do not force-push.
";
const CASE: &str = "\
- name: a force push is blocked
  on: {event: pre_tool_use, command: git push --force}
  expect: {decision: block, guards: {no_force: fired}}
";

/// The end of what the prompt shows while it waits: the terminal reports pasted text from then on.
const PROMPT: &str = "try> ";

/// Longest wait for an output: the machine may be busy.
const OUTPUT_WAIT: Duration = Duration::from_secs(60);

fn with_pack() -> Machine {
    let machine = Machine::new();
    machine.put(&format!("{PACK}/policyd.yaml"), "version: 1\n");
    machine.put(&format!("{PACK}/guards.yaml"), GUARD);
    machine.put(&format!("{PACK}/tests/push.yaml"), CASE);
    machine
}

/// A command that runs until it is interrupted.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(machine: &Machine, arguments: &[&str]) -> Self {
        Self::spawn(Self::command(machine, arguments))
    }

    /// Both streams go into one, so that their lines keep their order.
    fn command(machine: &Machine, arguments: &[&str]) -> Command {
        let script = ["-c", "exec \"$0\" \"$@\" 2>&1", env!("CARGO_BIN_EXE_policyd")];
        machine.program("sh", &[&script[..], arguments].concat())
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let output = child.stdout.take().unwrap();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).for_each(|it| {
                let _test_ended = sender.send(it);
            });
        });
        Self { child, lines }
    }

    /// Returns the output up to a line that contains a text.
    fn until(&self, text: &str) -> String {
        let (began, mut seen) = (Instant::now(), String::new());
        while let Some(left) = OUTPUT_WAIT.checked_sub(began.elapsed()) {
            let Ok(line) = self.lines.recv_timeout(left) else { break };
            seen.push_str(&format!("{line}\n"));
            if line.contains(text) {
                return seen;
            }
        }
        panic!("`{text}` was not printed: {seen}");
    }

    fn interrupt(mut self) {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::INT).unwrap();
        assert_eq!(ended(&mut self.child), Some(0));
    }
}

#[test]
fn lint_watches_a_pack() {
    let machine = with_pack();
    let watching = Watching::start(&machine, &["lint", "--watch", "--format", "compact"]);
    let first = watching.until("Ctrl-C ends");
    assert!(!first.contains("unknown-fact"), "{first}");
    // Editors write a new file and rename it.
    let (new, file) =
        (machine.file(&format!("{PACK}/guards.new")), machine.file(&format!("{PACK}/guards.yaml")));
    fs::write(&new, GUARD.replace("program.has", "program.hass")).unwrap();
    fs::rename(&new, &file).unwrap();
    let broken = watching.until("hass");
    assert!(broken.contains("guards.yaml:3:"), "{broken}");
    watching.until("Ctrl-C ends");
    fs::write(&file, GUARD).unwrap();
    let mended = watching.until("Ctrl-C ends");
    assert!(!mended.contains("hass"), "{mended}");
    watching.interrupt();
}

#[test]
fn test_watches_a_pack() {
    let machine = with_pack();
    let watching = Watching::start(&machine, &["test", "--watch"]);
    watching.until("1 passed");
    watching.until("Ctrl-C ends");
    machine.put(&format!("{PACK}/tests/push.yaml"), &CASE.replace("push --force", "push"));
    watching.until("1 failed");
    watching.interrupt();
}

#[test]
fn the_variable_names_the_watched_pack() {
    let machine = with_pack();
    machine.put("named/policyd.yaml", "version: 1\n");
    machine.put("named/guards.yaml", &GUARD.replace("no_force", "named_guard"));
    let mut command = Watching::command(&machine, &["lint", "--watch", "--format", "compact"]);
    command.current_dir(machine.file(PACK)).env("POLICYD_POLICIES", machine.file("named"));
    let watching = Watching::spawn(command);
    let watched = watching.until("Ctrl-C ends");
    assert!(watched.contains("/named; Ctrl-C ends"), "{watched}");
    machine.put("named/guards.yaml", &GUARD.replace("program.has", "program.hass"));
    watching.until("hass");
    watching.interrupt();
}

#[test]
fn a_watch_of_a_case_file_follows_the_rules_of_its_pack() {
    let machine = with_pack();
    let file = format!("{PACK}/tests/push.yaml");
    let watching = Watching::start(&machine, &["test", "--watch", &file]);
    watching.until("1 passed");
    watching.until("Ctrl-C ends");
    machine.put(&format!("{PACK}/guards.yaml"), &GUARD.replace("--force", "--delete"));
    watching.until("1 failed");
    watching.interrupt();
}

#[test]
fn a_watch_follows_a_pack_that_is_removed_and_created_again() {
    let machine = with_pack();
    let watching = Watching::start(&machine, &["lint", "--watch", "--format", "compact", PACK]);
    watching.until("Ctrl-C ends");
    fs::rename(machine.file(PACK), machine.file("elsewhere")).unwrap();
    watching.until("waiting for it");
    fs::rename(machine.file("elsewhere"), machine.file(PACK)).unwrap();
    watching.until("Ctrl-C ends");
    machine.put(&format!("{PACK}/guards.yaml"), &GUARD.replace("program.has", "program.hass"));
    watching.until("hass");
    watching.interrupt();
}

#[test]
fn a_watch_needs_a_pack() {
    let called = Machine::new().run(&["test", "--watch"], b"");
    assert_eq!(called.code, Some(2), "{}", called.stderr);
    assert!(called.stderr.contains("help: run `policyd init`"), "{}", called.stderr);
}

/// Types lines at the prompt of `policyd try` on a terminal, each when the terminal shows a text and then the prompt.
/// Returns what the terminal shows.
fn typed(machine: &Machine, lines: &[(&str, &str)]) -> Option<String> {
    let command = format!("{} try", env!("CARGO_BIN_EXE_policyd"));
    let mut script = machine.program("script", &["-qfec", &command, "/dev/null"]);
    script.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = script.spawn() else {
        eprintln!("skipped: a_prompt_tries_expressions: `script` is not installed");
        return None;
    };
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    for (expected, line) in lines {
        let began = Instant::now();
        while !seen.split(expected).skip(1).last().is_some_and(|it| it.contains(PROMPT)) {
            assert!(began.elapsed() < OUTPUT_WAIT, "no `{expected}`: {seen}");
            let count = output.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "the prompt ended before `{expected}`: {seen}");
            seen += &String::from_utf8_lossy(&buffer[..count]);
        }
        input.write_all(line.as_bytes()).unwrap();
        input.flush().unwrap();
    }
    output.read_to_string(&mut seen).unwrap();
    assert_eq!(ended(&mut child), Some(0));
    Some(seen)
}

#[test]
fn a_prompt_tries_expressions() {
    let machine = with_pack();
    let lines = [
        ("Ctrl-D ends", "1 + 2\n"),
        ("  3\r\n", "files.cou\t > 3\n"),
        ("false\r\n", "files.cuont\n"),
        ("did you mean", ":sesion\n"),
        ("`:help` lists the commands", ":quit\n"),
    ];
    let Some(shown) = typed(&machine, &lines) else { return };
    assert!(shown.contains("try> files.count"), "Tab completes the name: {shown}");
    let history = fs::read_to_string(machine.path("state/policyd/try-history")).unwrap();
    assert!(history.contains("files.count > 3\n"), "{history}");
}

/// A session that pushes, edits, deploys, and writes a secret.
fn session(machine: &Machine) {
    let path = |name: &str| machine.file(name).display().to_string();
    let token = token();
    machine.record(&[asked("p1", &format!("The token is {token}"))]);
    let calls = [
        ("Bash", json!({"command": format!("git push --force {}", path("x"))})),
        ("Write", json!({"file_path": path("a.rs"), "content": "x"})),
        ("Bash", json!({"command": "make deploy"})),
        ("Write", json!({"file_path": path("b.rs"), "content": token})),
    ];
    for ((tool, input), number) in calls.into_iter().zip(1..) {
        let mut records = used(tool, &input, "ok", false);
        for record in &mut records {
            let id = format!("\"toolu_{}\"", input.to_string().len());
            let text = record.to_string().replace(&id, &format!("\"toolu_{number}\""));
            *record = serde_json::from_str(&text).unwrap();
            record["cwd"] = machine.file("").to_str().into();
            record["timestamp"] = format!("2026-11-20T10:00:0{number}Z").into();
        }
        machine.record(&records);
    }
}

/// A secret, which no case contains.
fn token() -> String {
    format!("gh{}_{}", 'p', "A".repeat(36))
}

#[test]
fn a_recorded_call_becomes_a_case_that_passes() {
    let machine = with_pack();
    machine.put(
        &format!("{PACK}/guards.yaml"),
        &format!("{GUARD}- id: edited\n  commands: [make]\n  when: files.count > 0\n  decision: block\n  message: Test first.\n"),
    );
    session(&machine);
    let transcript = machine.transcript().display().to_string();
    let record =
        |call: &str| machine.run(&["test", "--record", &format!("{transcript}:{call}")], b"");
    for call in ["toolu_1", "2", "3"] {
        let called = record(call);
        assert_eq!(called.code, Some(0), "{called:?}");
    }
    let file = |name: &str| {
        let path = machine.file(&format!("{PACK}/tests/recorded/transcript-{name}"));
        fs::read_to_string(path).unwrap()
    };
    // The second call fires no guard, and the third is blocked because of the second.
    insta::assert_snapshot!(["toolu-1.yaml", "2.yaml", "3.yaml"].map(file).concat(), @"
    - name: git push --force /work/x
      on:
        event: pre_tool_use
        command: git push --force /work/x
      expect:
        decision: block
        guards:
          git_push_force: fired
          no_force: fired
    - name: Write /work/a.rs
      on:
        event: pre_tool_use
        tool: Write
        input:
          file_path: /work/a.rs
          content: x
      expect:
        decision: none
    - name: make deploy
      transcript: recorded/transcript-3.jsonl
      on:
        event: pre_tool_use
        command: make deploy
      expect:
        decision: block
        guards:
          edited: fired
    ");
    let lines = file("3.jsonl");
    assert_eq!(lines.lines().count(), 5, "what came before the call: {lines}");
    let home = machine.file("").display().to_string();
    assert!(!lines.contains(&home) && !lines.contains(&token()), "{lines}");
    assert_eq!(machine.run(&["test"], b"").code, Some(0));
    let again = record("2");
    assert!(again.code == Some(1) && again.stderr.contains("exists already"), "{again:?}");
    let secret = record("4");
    assert!(
        secret.stderr.contains("cannot repeat this decision"),
        "its secret is masked: {secret:?}"
    );
    let none = record("toolu_9");
    assert!(
        none.code == Some(1) && none.stderr.contains("no such tool call (calls: 4)"),
        "{none:?}"
    );
}

#[test]
fn a_recorded_case_contains_no_password() {
    let machine = with_pack();
    let input = json!({"command": "git push --force --password=hunter2secretpw now"});
    machine.record(&used("Bash", &input, "ok", false));
    let input = json!({"host": "db", "password": "hunter2secretpw", "argv": ["mysql", "--password", "hunter2secretpw"]});
    machine.record(&used("mcp__db__query", &input, "ok", false));
    let transcript = machine.transcript().display().to_string();
    for call in ["1", "2"] {
        let called = machine.run(&["test", "--record", &format!("{transcript}:{call}"), PACK], b"");
        assert_eq!(called.code, Some(0), "{called:?}");
        let file = machine.file(&format!("{PACK}/tests/recorded/transcript-{call}.yaml"));
        let case = fs::read_to_string(file).unwrap();
        assert!(case.contains("«masked»") && !case.contains("hunter2"), "{case}");
    }
}

#[test]
fn a_call_is_recorded_into_an_untrusted_pack_only_if_the_user_names_it() {
    let machine = with_pack();
    session(&machine);
    let record = format!("{}:1", machine.transcript().display());
    let stranger = machine.path("stranger");
    let mut command = machine.command(&["test", "--record", &record]);
    command.env("XDG_STATE_HOME", &stranger).env("XDG_CONFIG_HOME", &stranger);
    let called = run(command, b"");
    assert_eq!(called.code, Some(3), "{called:?}");
    assert!(called.stderr.contains("is not trusted"), "{called:?}");
    assert!(!machine.file(&format!("{PACK}/tests/recorded")).exists());
}

#[test]
fn two_prompts_keep_each_other_s_history() {
    let machine = with_pack();
    for line in ["files.count + 1\n", "files.count + 2\n"] {
        if typed(&machine, &[("Ctrl-D ends", line), ("files.count", ":quit\n")]).is_none() {
            return;
        }
    }
    let history = machine.path("state/policyd/try-history");
    let history = fs::read_to_string(history).unwrap();
    assert!(history.contains("+ 1") && history.contains("+ 2"), "{history}");
}

#[test]
fn a_transcript_lies_beside_its_case() {
    let machine = with_pack();
    machine.put(&format!("{PACK}/tests/moved/session.jsonl"), "");
    let case = "- name: a stop after a session\n  transcript: session.jsonl\n  on: {event: stop}\n  expect: {decision: none}\n";
    machine.put(&format!("{PACK}/tests/moved/stop.yaml"), case);
    let tested = machine.run(&["test", "--filter", "moved"], b"");
    assert!(tested.stdout.contains("1 passed"), "{tested:?}");
    machine.put(
        &format!("{PACK}/tests/moved/stop.yaml"),
        &case.replace("session.jsonl", "none.jsonl"),
    );
    let tested = machine.run(&["test", "--filter", "moved"], b"");
    assert!(tested.stdout.contains("stop.yaml:2:15"), "{tested:?}");
}

#[test]
fn a_replay_saves_its_examples_as_cases() {
    let machine = with_pack();
    session(&machine);
    let transcript = machine.transcript().display().to_string();
    let directory = format!("{PACK}/tests/replayed");
    let arguments = ["replay", &transcript, "--save-cases", &directory, "--rule", "no_force"];
    let called = machine.run(&arguments, b"");
    assert!(called.stderr.ends_with("tests/replayed: 1\n"), "{called:?}");
    let tested = machine.run(&["test", "--filter", "replayed"], b"");
    assert!(tested.code == Some(0) && tested.stdout.contains("1 passed"), "{tested:?}");
}
