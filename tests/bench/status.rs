//! How long `policyd status --all`, `log --all`, `metrics`, and `explain --last` take with 40 projects that have runs,
//! failures, questions, transcripts, and decision logs: `cargo bench --bench status`. Other binaries, each in every round:
//! `-- --binary PATH --binary PATH`; number of projects: `-- --projects N`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that cannot run stops; it measures real processes, files and time"
)]

#[expect(dead_code, reason = "other benchmarks use the rest of it")]
mod measure;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use measure::median;
use policyd::time::Timestamp;
use serde_json::json;

const ROUNDS: usize = 7;
/// Time from which a command is slow.
const SLOW: Duration = Duration::from_secs(2);
/// Goal for `policyd status --all`, in seconds.
const GOAL: f64 = 1.0;
/// The list of projects below a home directory.
const REGISTRY: &str = ".local/state/policyd/projects";
/// Bytes of one file of a decision log at which it is rotated.
const LOG_BYTES: usize = 4 * 1024 * 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let values = |name: &str| -> Vec<String> {
        let pairs = arguments.iter().zip(arguments.iter().skip(1));
        pairs.filter(|(it, _)| *it == name).map(|(_, value)| value.clone()).collect()
    };
    let mut binaries = values("--binary");
    if binaries.is_empty() {
        binaries.push(env!("CARGO_BIN_EXE_policyd").to_owned());
    }
    let projects = values("--projects").first().map_or(40, |it| it.parse().unwrap());
    println!(
        "\n{projects} projects{:>14}{:>12}{:>12}{:>12}",
        "MB of logs", "minimum", "median", "goal"
    );
    for (entries, files) in [(200, 1), (2_000, 1), (usize::MAX, 1), (usize::MAX, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine { binaries: &binaries, folder: folder.path() };
        let bytes = machine.fill(projects, entries, files);
        let megabytes = bytes / 1_000_000;
        for (arguments, goal) in [
            (vec!["status", "--all"], format!("{GOAL:.1}")),
            (vec!["log", "--all", "--notable", "--since", "12h"], "-".to_owned()),
            (vec!["metrics"], "-".to_owned()),
            (vec!["explain", "--last"], "-".to_owned()),
        ] {
            for (binary, mut took) in machine.rounds(&arguments).into_iter().enumerate() {
                let seconds = median(&mut took);
                let least = took.first().unwrap().as_secs_f64();
                let name = arguments.join(" ");
                let name = name.split(" --notable").next().unwrap();
                let name = if binaries.len() > 1 {
                    format!("{name} ({})", binary + 1)
                } else {
                    name.to_owned()
                };
                println!("{name:<24}{megabytes:>6}{least:>12.3}{seconds:>12.3}{goal:>12}");
            }
        }
    }
}

struct Machine<'a> {
    binaries: &'a [String],
    folder: &'a Path,
}

impl Machine<'_> {
    /// The home directory of a binary: results that one keeps are not those of another one.
    fn home(&self, binary: usize) -> PathBuf {
        self.folder.join(format!("home-{binary}"))
    }

    fn command(&self, binary: usize, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.binaries.get(binary).unwrap());
        command.args(arguments).current_dir(directory).env_clear();
        command.envs(std::env::var_os("PATH").map(|it| ("PATH", it)));
        command.env("HOME", self.home(binary));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Measures a command with each binary, one after the other in each round. The first round does not count.
    fn rounds(&self, arguments: &[&str]) -> Vec<Vec<Duration>> {
        let all = || (0..self.binaries.len()).map(|it| self.time(it, arguments));
        let first: Vec<Duration> = all().collect();
        // A slow command is measured once more, so that the benchmark ends.
        let rounds = if first.iter().any(|it| *it > SLOW) { 1 } else { ROUNDS };
        let mut took = vec![Vec::new(); self.binaries.len()];
        for _ in 0..rounds {
            took.iter_mut().zip(all()).for_each(|(all, it)| all.push(it));
        }
        took
    }

    fn time(&self, binary: usize, arguments: &[&str]) -> Duration {
        let began = Instant::now();
        let directory = self.folder.join("work/project-0");
        let status = self.command(binary, &directory, arguments).status().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{arguments:?}: {status}");
        began.elapsed()
    }

    /// Makes projects that are alike, each with a decision log. Returns the bytes of all logs.
    fn fill(&self, projects: usize, entries: usize, files: usize) -> u64 {
        let template = self.folder.join("template");
        fs::create_dir_all(template.join(".git")).unwrap();
        fs::write(template.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        (0..self.binaries.len()).for_each(|it| fs::create_dir_all(self.home(it)).unwrap());
        let transcript = self.folder.join("transcript.jsonl");
        fs::write(&transcript, messages(500)).unwrap();
        let call = |arguments: &[&str]| {
            let _code = self.command(0, &template, arguments).status().unwrap();
        };
        call(&["run", "--goal", "Build it", "--max-iterations", "2", "--", "true"]);
        call(&["escalation", "open", "--gate", "review", "--reason", "May I?"]);
        call(&["dlq", "add", "T-1", "--error", "disk full", "--immediately"]);
        for _ in 0..5 {
            call(&["breaker", "record", "api/x", "failure", "--error", "HTTP 500"]);
        }
        let logs = template.join(".policyd/logs");
        let path = logs.join("decisions.jsonl");
        let newest = fs::read_to_string(&path).unwrap();
        let mut number = 0;
        for file in (0..files).rev() {
            let mut text = if file == 0 { newest.clone() } else { String::new() };
            let mut count = 0;
            while text.len() < LOG_BYTES && count < entries {
                text.push_str(&entry(number, &transcript));
                (number, count) = (number + 1, count + 1);
            }
            let name =
                if file == 0 { path.clone() } else { logs.join(format!("decisions.jsonl.{file}")) };
            fs::write(name, text).unwrap();
        }
        let registries = (0..self.binaries.len()).map(|it| self.home(it).join(REGISTRY));
        let registries: Vec<PathBuf> = registries.collect();
        registries.iter().for_each(|it| fs::create_dir_all(it).unwrap());
        let mut bytes = 0;
        for number in 0..projects {
            let directory = self.folder.join(format!("work/project-{number}"));
            bytes += copy(&template, &directory);
            let entry = json!({"directory": directory, "state_dir": directory.join(".policyd"),
                "since": "2026-01-01T00:00:00Z"});
            for registry in &registries {
                fs::write(registry.join(format!("{number:024x}.json")), entry.to_string()).unwrap();
            }
        }
        bytes
    }
}

/// A transcript with so many answers.
fn messages(count: usize) -> String {
    let message = |number: usize| {
        let asked = json!({"type": "user", "message": {"role": "user", "content": format!("step {number}")}});
        let answered = json!({"type": "assistant", "message": {"role": "assistant", "model": "claude-opus-4-5",
            "usage": {"input_tokens": 1_000 + number, "output_tokens": 100},
            "content": [{"type": "text", "text": "The step is done. ".repeat(30)}]}});
        format!("{asked}\n{answered}\n")
    };
    (0..count).map(message).collect()
}

/// A line of the log: each fourth one is of a stop, the others of tool calls.
fn entry(number: usize, transcript: &Path) -> String {
    // One entry a second, within the last hours: `--since` skips none of them.
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(36_000);
    let at = began + Duration::from_secs(u64::try_from(number).unwrap());
    let time = Timestamp::from_millis(i64::try_from(at.as_millis()).unwrap()).to_string();
    let verdict = |id: usize| json!({"id": format!("check_{id}"), "status": "satisfied", "consequence": "none", "micros": 12});
    let entry = if number.is_multiple_of(4) {
        let verdicts: Vec<_> = (0..24).map(verdict).collect();
        json!({"version": 1, "timestamp": time, "id": format!("{number:08x}"), "event": "stop",
            "session_id": format!("s{}", number / 100), "decision": "block", "spoken": true,
            "release": "", "session_type": "DEVELOPMENT", "verdicts": verdicts, "micros": 9_000,
            "inputs": {"transcript": {"path": transcript, "subagent": false}}, "saved": "durable"})
    } else {
        json!({"version": 1, "timestamp": time, "id": format!("{number:08x}"), "event": "pre_tool_use",
            "session_id": format!("s{}", number / 100), "decision": "block", "spoken": true,
            "guards": [{"id": "rm_recursive", "status": "fired", "decision": "block",
            "mode": "enforce", "message": "This deletes a directory tree."}], "tool": "Bash",
            "call": {"tool": "Bash", "input": {"command": "rm -rf /srv/data"}}, "micros": 4_000,
            "saved": "unchanged", "verdicts": []})
    };
    format!("{entry}\n")
}

/// Copies a directory. Returns the bytes of its decision logs.
fn copy(from: &Path, to: &Path) -> u64 {
    fs::create_dir_all(to).unwrap();
    let mut bytes = 0;
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            bytes += copy(&entry.path(), &target);
        } else {
            let copied = fs::copy(entry.path(), target).unwrap();
            let is_log = entry.file_name().to_string_lossy().starts_with("decisions.jsonl");
            bytes += if is_log { copied } else { 0 };
        }
    }
    bytes
}
