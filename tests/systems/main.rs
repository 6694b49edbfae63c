//! What must hold on every system of a release: hooks, saves, locks, settings, and packs, with the paths and line ends of the
//! system. `.packaging/emulate.py` runs these tests for ARM64 in QEMU and for Windows in Wine.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "the program is tried with real files; a failure fails the test"
)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// The program that runs a program of this system, if it is emulated and its programs cannot start each other.
const RUNNER: &str = "POLICYD_TEST_RUNNER";

/// A user with a home directory and one project.
struct User {
    folder: tempfile::TempDir,
    /// The pack that replaces the one of the project.
    pack: Option<PathBuf>,
}

impl User {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "project"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, pack: None }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Writes a file in the project, with the line ends of Windows.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text.replace('\n', "\r\n")).unwrap();
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let front = Path::new(env!("CARGO_BIN_EXE_policyd"));
        let mut command = match std::env::var_os(RUNNER) {
            Some(runner) => {
                let is_hook = arguments.first() == Some(&"eval");
                let name = if is_hook { "policyd" } else { "policyd-tools" };
                let mut command = Command::new(runner);
                command.arg(front.with_file_name(name));
                command
            }
            None => Command::new(front),
        };
        let home = self.home();
        command.args(arguments).current_dir(self.project());
        // Windows has no programs without its own variables.
        command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        command.env(if cfg!(windows) { "USERPROFILE" } else { "HOME" }, &home);
        command.envs(self.pack.iter().map(|it| ("POLICYD_POLICIES", it)));
        command.env("APPDATA", home.join("AppData").join("Roaming"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs a command, which must succeed, and returns its output.
    fn printed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, "");
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}\n{text}{errors}", output.status);
        text
    }

    /// Returns the answer to an event. `Null` if there is none.
    fn answer(&self, hook: &str, fields: Value) -> Value {
        let mut event = json!({"session_id": "s", "cwd": self.project()});
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let output = self.run(&["eval", "--hook", hook], &event.to_string());
        assert!(output.status.success(), "{event}: {}", output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }

    /// Returns the decision on a call of a tool: `deny`, `ask`, or nothing.
    fn decision(&self, tool: &str, input: Value) -> String {
        let answer = self.answer("pre-tool-use", json!({"tool_name": tool, "tool_input": input}));
        let decision = &answer["hookSpecificOutput"]["permissionDecision"];
        decision.as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn both_programs_say_their_version() {
    let version = format!("policyd {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(User::new().printed(&["--version"]).replace("\r\n", "\n"), version);
}

#[test]
fn dangerous_lines_are_blocked_and_harmless_ones_pass() {
    let user = User::new();
    let line = |tool: &str, line: &str| user.decision(tool, json!({"command": line}));
    for dangerous in ["rm -rf ~", "X=rm; sudo $X -rf /", "git push --force origin main"] {
        assert_eq!(line("Bash", dangerous), "deny", "{dangerous}");
    }
    for harmless in ["ls -la", "git status", "cargo test 2>&1 | tail -5"] {
        assert_eq!(line("Bash", harmless), "", "{harmless}");
    }
    for dangerous in ["Remove-Item -Recurse -Force $HOME", "rm -r -Force ~", "rd /s /q C:\\Users"] {
        assert_ne!(line("PowerShell", dangerous), "", "{dangerous}");
    }
    assert_eq!(line("PowerShell", "Get-ChildItem"), "");
    // The shells of Windows: Git Bash, PowerShell, and `cmd`, each with its own spelling of the home directory.
    let home = user.home().join("Documents");
    let home = home.to_str().unwrap();
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    assert_eq!(line("Bash", &format!("rm -rf \"${variable}/Documents\"")), "deny");
    assert_eq!(line("Bash", &format!("rm -rf '{home}'")), "deny");
    assert_ne!(line("PowerShell", &format!("Remove-Item -Recurse -Force '{home}'")), "");
    if cfg!(windows) {
        assert_ne!(line("PowerShell", "Remove-Item -Recurse $env:USERPROFILE\\Documents"), "");
        assert_ne!(line("Bash", "cmd //c rd //s //q \"C:\\Users\""), "");
    }
}

#[test]
fn a_path_is_one_path_in_each_spelling() {
    let user = User::new();
    let settings = user.file(".claude/settings.json", "{}\n");
    let written = settings.to_str().unwrap().to_owned();
    let mut spellings = vec![written.clone(), ".claude/settings.json".to_owned()];
    if cfg!(windows) {
        spellings.extend([written.replace('\\', "/"), written.to_uppercase()]);
        spellings.push(".claude\\settings.json".to_owned());
    }
    for path in spellings {
        let input = json!({"file_path": path, "content": "{\"hooks\": {}}"});
        assert_eq!(user.decision("Write", input), "deny", "{path}");
    }
    let own = user.file("src/main.rs", "fn main() {}\n");
    assert_eq!(user.decision("Write", json!({"file_path": own, "content": "x"})), "");
}

#[test]
fn a_script_that_a_line_runs_is_read() {
    let user = User::new();
    user.file("clean.sh", "#!/bin/sh\nrm -rf ~/Documents\n");
    user.file("list.sh", "#!/bin/sh\nls -la\n");
    let line = |line: &str| user.decision("Bash", json!({"command": line}));
    assert_eq!(line("bash clean.sh"), "deny");
    assert_eq!(line("bash list.sh"), "");
}

#[test]
fn a_stop_is_blocked_and_the_block_is_remembered() {
    let user = User::new();
    let transcript = user.file("t.jsonl", include_str!("../samples/transcript.jsonl"));
    let stop = |active: bool| {
        let event = json!({"transcript_path": transcript, "stop_hook_active": active});
        user.answer("stop", event)
    };
    let blocked = stop(false);
    assert_eq!(blocked["decision"], "block", "{blocked}");
    assert!(blocked["reason"].as_str().unwrap().contains("local_testing"), "{blocked}");
    // The agent answered and called no tool: only what was saved can tell this.
    let released = stop(true);
    assert_ne!(released["decision"], "block", "{released}");
}

#[test]
fn hooks_are_installed_once_and_only_a_human_removes_them() {
    let user = User::new();
    let file = user.home().join(".claude").join("settings.json");
    let before = "{\r\n  \"model\": \"opus\", \"x\": \"C:\\\\a\"\r\n}\r\n";
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, before).unwrap();
    user.printed(&["install", "--harness", "claude-code"]);
    let installed = fs::read_to_string(&file).unwrap();
    let settings: Value = serde_json::from_str(&installed).unwrap();
    let line = &settings["hooks"]["Stop"][0]["hooks"][0];
    let program = line["command"].as_str().unwrap();
    assert!(Path::new(program).is_absolute(), "{line}");
    user.printed(&["install", "--harness", "claude-code"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), installed);
    let kept = file.with_file_name("settings.json.before-policyd");
    assert_eq!(fs::read_to_string(kept).unwrap(), before);
    let refused = user.run(&["uninstall", "--harness", "claude-code"], "");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), installed);
}

const PACK: &str = "\
- id: no_prod
  commands: [deploy]
  when: program.has([\"--prod\"])
  decision: deny
  message: \"`${program.line}` deploys to production. Ask the user to do this.\"
";

#[test]
fn a_pack_with_the_line_ends_of_windows_is_read() {
    let mut user = User::new();
    user.file("pack/policyd.yaml", "version: 1\nname: own\n");
    let pack = user.file("pack/guards.yaml", PACK).with_file_name("");
    user.printed(&["lint", pack.to_str().unwrap()]);
    user.pack = Some(pack);
    // In QEMU, a hook cannot start the program that compiles the pack.
    user.printed(&["check", "ls"]);
    assert_eq!(user.decision("Bash", json!({"command": "deploy --prod"})), "deny");
    assert_eq!(user.decision("Bash", json!({"command": "deploy --dev"})), "");
}

#[test]
fn commands_at_the_same_time_lose_no_record() {
    let user = User::new();
    let record = ["breaker", "record", "api/x", "failure", "--error", "timeout"];
    let children: Vec<_> = (0..2).map(|_| user.command(&record).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let shown = user.printed(&["breaker", "show", "api/x"]);
    assert!(shown.contains("2 failures"), "{shown}");
}

#[test]
fn what_is_not_a_terminal_gets_no_escape_codes() {
    let user = User::new();
    let output = user.run(&["check", "rm -rf ~"], "");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("block") && !text.contains('\u{1b}'), "{text}");
}
