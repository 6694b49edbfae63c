//! A project with an agent's session in a temporary folder, and calls of the binary in it.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use policyd::store::{choice_record, user};
use policyd::world::real::RealWorld;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::human::HumanWorld;

/// A call that takes longer hangs: seconds are lost where a busy disk stalls.
pub(crate) const BOUND: Duration = Duration::from_secs(30);
/// Kibibytes of address space a call may take.
const MEMORY: u32 = 256 * 1024;

/// Tests that keep every core busy, or that measure, do so one after the other.
static BUSY: Mutex<()> = Mutex::new(());

/// Waits until no other such test runs; keeps the others away while it is held.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    BUSY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A machine of one user with one project.
pub(crate) struct Machine {
    folder: TempDir,
    pub(crate) project: PathBuf,
}

/// What a call of the binary gave.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Called {
    /// The answer of a hook, checked: exit 0, nothing or one object with known keys, in time.
    pub(crate) fn answer(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert!(self.took < BOUND, "took {:?}", self.took);
        checked(&self.stdout)
    }

    /// Whether the answer is a block.
    pub(crate) fn blocks(&self) -> bool {
        self.answer()["decision"] == "block"
    }

    /// What the user is told, or nothing.
    pub(crate) fn notice(&self) -> String {
        self.answer()["systemMessage"].as_str().unwrap_or_default().to_owned()
    }
}

/// A hook's stdout as a value: nothing, or one JSON object that every client takes.
pub(crate) fn checked(stdout: &str) -> Value {
    if stdout.is_empty() {
        return json!({});
    }
    let value: Value = serde_json::from_str(stdout).expect("stdout is one JSON value");
    for (key, value) in value.as_object().expect("stdout is an object") {
        if key == "hookSpecificOutput" {
            let said = value.as_object().expect("what is said to the agent is an object");
            assert!(said.contains_key("hookEventName") && said.len() > 1, "{stdout}");
            continue;
        }
        let text = value.as_str().expect("every value is a text");
        assert!(["decision", "reason", "systemMessage"].contains(&key.as_str()), "{stdout}");
        assert!(!text.trim().is_empty() && text.chars().count() <= 9_000, "{key}: {text}");
    }
    if let Some(decision) = value.get("decision") {
        assert_eq!(decision, "block");
        assert!(value.get("reason").is_some());
    }
    value
}

/// Says that a test, or a part of it, is skipped. The message is not captured, so that it is seen.
pub(crate) fn skipped(test: &str, why: &str) {
    drop(writeln!(std::io::stderr(), "SKIPPED {test}: {why}"));
}

/// Makes a directory a checkout, as far as policyd looks at it.
pub(crate) fn git_directory(project: &Path) {
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with_project("project")
    }

    /// The project is called `name`, whatever bytes that are.
    pub(crate) fn with_project(name: impl AsRef<OsStr>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join(name.as_ref());
        git_directory(&project);
        for name in ["home", "config", "cache", "state"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        // What a test writes into the project is its user's.
        let machine = Self { folder, project };
        if let Some(pack) = machine.project.join(".policyd/policies").to_str() {
            let since = "2025-01-01T00:00:00Z";
            let packs = json!([{"folder": pack, "hash": "any", "since": since}]);
            let trust = json!({"version": 1, "packs": packs});
            let (path, text) = (machine.path("config/policyd/trust.json"), trust.to_string());
            fs::create_dir(machine.path("config/policyd")).unwrap();
            fs::write(&path, &text).unwrap();
            choice_record::record(&machine.human_world(), &path, text.as_bytes());
        }
        machine
    }

    /// A path outside the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path in the project.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }

    /// Writes a file of the project.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Lets the user honor the switch files of the project.
    pub(crate) fn honor_switch_files(&self) {
        let key = user::key(&RealWorld::new(), &self.file(".policyd"));
        let folder = self.path("config/policyd/projects");
        fs::create_dir_all(&folder).unwrap();
        let text = "{\"version\": 1, \"switch_files\": true}";
        fs::write(folder.join(format!("{key}.json")), text).unwrap();
    }

    pub(crate) fn transcript(&self) -> PathBuf {
        self.path("transcript.jsonl")
    }

    /// The records of the transcript as a subagent's own file has them.
    pub(crate) fn subagents_records(&self) -> String {
        let text = fs::read_to_string(self.transcript()).unwrap();
        let line = |line: &str| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record["isSidechain"] = true.into();
            format!("{record}\n")
        };
        text.lines().map(line).collect()
    }

    /// Adds records to the transcript.
    pub(crate) fn record(&self, records: &[Value]) -> &Self {
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(self.transcript()).unwrap();
        let lines: String = records.iter().map(|it| format!("{it}\n")).collect();
        file.write_all(lines.as_bytes()).unwrap();
        self
    }

    /// Adds a tool call: a stop without one after a block is released.
    pub(crate) fn work(&self) -> &Self {
        let id = format!("work-{}", fs::metadata(self.transcript()).unwrap().len());
        let input = json!({"file_path": "/work/a.py"});
        let call = json!({"type": "tool_use", "id": id, "name": "Read", "input": input});
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "x = 1"});
        self.record(&[
            json!({"type": "assistant", "message": {"id": id, "role": "assistant", "content": [call]}}),
            json!({"type": "user", "message": {"role": "user", "content": [result]}}),
        ])
    }

    /// A session that is blocked: code was edited and no test was run.
    pub(crate) fn untested(&self) -> &Self {
        self.record(&[asked("p1", "Add a parser")]).record(&edited("a.py"))
    }

    /// A usual stop payload; `changes` replace fields.
    pub(crate) fn payload(&self, changes: &Value) -> Value {
        let mut payload = json!({
            "session_id": "s1", "transcript_path": self.transcript(),
            "cwd": self.project.to_str(), "prompt_id": "p1", "permission_mode": "default",
            "hook_event_name": "Stop", "stop_hook_active": false,
            "background_tasks": [], "session_crons": []
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload
    }

    /// The binary in this project, with nothing of our own environment but the search path.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.dressed(Command::new(env!("CARGO_BIN_EXE_policyd")), arguments)
    }

    /// Another program in this project, with the same environment.
    pub(crate) fn program(&self, name: &str, arguments: &[&str]) -> Command {
        self.dressed(Command::new(name), arguments)
    }

    /// The same binary under another name in this folder of the machine, with `policyd-tools` beside it.
    pub(crate) fn renamed(&self, name: &str, arguments: &[&str]) -> Command {
        let copy = self.path(name);
        if !copy.exists() {
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            // By another process: while this one writes a file, a fork of it keeps the file from being run.
            let front = Path::new(env!("CARGO_BIN_EXE_policyd"));
            let tools = front.with_file_name("policyd-tools");
            for (from, to) in
                [(&tools, &copy.with_file_name("policyd-tools")), (&front.into(), &copy)]
            {
                assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
            }
        }
        self.dressed(Command::new(copy), arguments)
    }

    /// The same, with bounded memory; `limits` is more shell before the program begins.
    pub(crate) fn confined(&self, limits: &str, arguments: &[&str]) -> Command {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -v {MEMORY} 2>/dev/null; {limits} exec \"$0\" \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_policyd")]);
        self.dressed(shell, arguments)
    }

    fn dressed(&self, mut command: Command, arguments: &[&str]) -> Command {
        let tools = Path::new(env!("CARGO_BIN_EXE_policyd")).with_file_name("policyd-tools");
        assert!(tools.exists(), "build the program beside policyd: cargo build -p policyd-tools");
        command.args(arguments).current_dir(&self.project).env_clear();
        command.envs(std::env::var_os("PATH").map(|it| ("PATH", it)));
        let own = [("HOME", "home"), ("XDG_CONFIG_HOME", "config"), ("XDG_CACHE_HOME", "cache")];
        command.envs(own.map(|(name, folder)| (name, self.path(folder))));
        command.env("XDG_STATE_HOME", self.path("state"));
        command
    }

    /// Calls the binary.
    pub(crate) fn run(&self, arguments: &[&str], stdin: &[u8]) -> Called {
        run(self.command(arguments), stdin)
    }

    /// A command that only a human may run.
    pub(crate) fn human(&self, arguments: &[&str]) -> Called {
        self.human_with(env!("CARGO_BIN_EXE_policyd").into(), arguments)
    }

    /// The same by the program of this path.
    pub(crate) fn human_with(&self, program: PathBuf, arguments: &[&str]) -> Called {
        let mut world = self.human_world();
        world.program = program;
        let began = Instant::now();
        let (code, stdout, stderr) = world.call(arguments);
        Called { code: Some(code.into()), stdout, stderr, took: began.elapsed() }
    }

    /// This machine with a human at its terminal.
    pub(crate) fn human_world(&self) -> HumanWorld {
        let [home, config, cache, state] =
            ["home", "config", "cache", "state"].map(|it| self.path(it));
        let own: [(&str, &Path); 4] = [
            ("HOME", &home),
            ("XDG_CONFIG_HOME", &config),
            ("XDG_CACHE_HOME", &cache),
            ("XDG_STATE_HOME", &state),
        ];
        HumanWorld::new(&self.project, &own)
    }

    /// A stop, `changes` in its payload.
    pub(crate) fn stop_with(&self, changes: &Value) -> Called {
        self.run(&["eval", "--hook", "stop"], self.payload(changes).to_string().as_bytes())
    }

    /// A stop.
    pub(crate) fn stop(&self) -> Called {
        self.stop_with(&json!({}))
    }

    /// A stop with more variables set.
    pub(crate) fn stop_where(&self, variables: &[(&str, &OsStr)]) -> Called {
        let mut command = self.command(&["eval", "--hook", "stop"]);
        command.envs(variables.iter().copied());
        run(command, self.payload(&json!({})).to_string().as_bytes())
    }

    /// The folder of the session `s1`.
    pub(crate) fn session(&self) -> PathBuf {
        self.file(".policyd/sessions/s1")
    }

    /// The state of the session `s1`.
    pub(crate) fn state(&self) -> Value {
        read_json(&self.session().join("state.json"))
    }

    /// Every path of this machine, sorted.
    pub(crate) fn tree(&self) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.folder.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                found.push(entry.path());
                folders.extend(entry.file_type().unwrap().is_dir().then(|| entry.path()));
            }
        }
        found.sort();
        found
    }
}

pub(crate) fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    serde_json::from_str(&text).expect("the file is JSON")
}

/// The entries of a log.
pub(crate) fn read_log(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    let lines = text.lines().filter(|it| !it.is_empty());
    lines.map(|it| serde_json::from_str(it).expect("a line of a log is JSON")).collect()
}

pub(crate) fn asked(prompt: &str, text: &str) -> Value {
    json!({"type": "user", "uuid": format!("u-{prompt}"), "promptId": prompt,
        "message": {"role": "user", "content": text}})
}

/// A tool call and its result.
pub(crate) fn used(tool: &str, input: &Value, output: &str, failed: bool) -> [Value; 2] {
    let id = format!("toolu_{}", input.to_string().len());
    let call = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
    let result =
        json!({"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed});
    [
        json!({"type": "assistant", "message": {"id": id, "role": "assistant", "content": [call]}}),
        json!({"type": "user", "message": {"role": "user", "content": [result]}}),
    ]
}

pub(crate) fn edited(file: &str) -> [Value; 2] {
    let input = json!({"file_path": format!("/work/{file}"), "content": "x = 1\n"});
    used("Write", &input, "File created successfully", false)
}

pub(crate) fn ran(command: &str, output: &str) -> [Value; 2] {
    used("Bash", &json!({"command": command}), output, false)
}

/// Runs a command to its end; one that hangs is killed and fails the test.
pub(crate) fn run(mut command: Command, stdin: &[u8]) -> Called {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    thread::scope(|scope| {
        // A program that does not read all of its input is not an error.
        scope.spawn(move || pipe.write_all(stdin).ok());
        let (out, err) = (scope.spawn(|| text(out)), scope.spawn(|| text(err)));
        let code = ended(&mut child);
        let took = began.elapsed();
        Called { code, stdout: out.join().unwrap(), stderr: err.join().unwrap(), took }
    })
}

fn text(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).expect("output is UTF-8")
}

/// The exit code of a program, which must end in time.
pub(crate) fn ended(child: &mut Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        // Tests of other processes may use all cores meanwhile.
        if began.elapsed() > BOUND * 6 {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("a call hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
}
