//! Commands that wait at a terminal end by Ctrl-C, by a signal, and when the terminal is closed.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::machine::{Machine, ended};

/// Longest wait for the end of a command: the machine may be busy.
const END_WAIT: Duration = Duration::from_secs(20);
/// What a command shows once it waits, by its arguments.
const COMMANDS: [(&str, &str); 2] =
    [("dashboard --read-only", "http://"), ("top", "\u{1b}[?1049h")];

/// A command on a pseudo-terminal of `script`.
struct TerminalRun {
    script: Child,
    output: ChildStdout,
    /// Process of the command.
    id: i32,
}

impl TerminalRun {
    fn start(machine: &Machine, arguments: &str, shown: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_policyd");
        let line = format!("stty cols 100 rows 20; echo id $$; exec {program} {arguments}");
        let mut command = machine.program("script", &["-qfec", &line, "/dev/null"]);
        command.env("TERM", "xterm").env("SHELL", "/bin/sh");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut script = command.spawn().unwrap();
        let mut output = script.stdout.take().unwrap();
        let (mut seen, mut buffer) = (String::new(), [0; 4096]);
        while !seen.contains(shown) {
            let count = output.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "{arguments}: {seen:?}");
            seen += &String::from_utf8_lossy(&buffer[..count]);
        }
        let id = seen.split("id ").nth(1).unwrap().split_whitespace().next().unwrap();
        Self { id: id.parse().unwrap(), script, output }
    }

    /// Waits for the end of the command, and returns the exit code of `script`, which is that of the command.
    fn ends(mut self) -> Option<i32> {
        thread::spawn(move || {
            let mut rest = Vec::new();
            let _closed = self.output.read_to_end(&mut rest);
        });
        ended(&mut self.script)
    }
}

fn has_script() -> bool {
    let script = Command::new("script").arg("--version").stdout(Stdio::null()).status();
    let is_there = script.is_ok_and(|it| it.success());
    if !is_there {
        eprintln!("skipped: waits: `script` is not installed");
    }
    is_there
}

#[test]
fn ctrl_c_and_signals_end_a_wait() {
    if !has_script() {
        return;
    }
    let machine = Machine::new();
    for (arguments, shown) in COMMANDS {
        let mut run = TerminalRun::start(&machine, arguments, shown);
        run.script.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
        assert_eq!(run.ends(), Some(0), "{arguments}: Ctrl-C");
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let run = TerminalRun::start(&machine, arguments, shown);
            kill_process(Pid::from_raw(run.id).unwrap(), signal).unwrap();
            assert_eq!(run.ends(), Some(0), "{arguments}: {signal:?}");
        }
    }
}

/// The list of processes is read from `/proc`.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_terminal_ends_a_wait() {
    if !has_script() {
        return;
    }
    let machine = Machine::new();
    for (arguments, shown) in COMMANDS {
        let TerminalRun { mut script, output, id } = TerminalRun::start(&machine, arguments, shown);
        script.kill().unwrap();
        script.wait().unwrap();
        drop(output);
        let process = format!("/proc/{id}");
        let began = Instant::now();
        while Path::new(&process).exists() {
            assert!(began.elapsed() < END_WAIT, "{arguments} runs on without a terminal");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
