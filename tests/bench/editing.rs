//! How fast the language server follows keystrokes in the built-in pack: `cargo bench --bench editing`. Another binary:
//! `-- --binary PATH`; a pack with a multiple of its guards and checks: `-- --rules N`. The recorded session writes a guard,
//! a check, and a vocabulary entry, character by character, and asks for completion after each.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark that cannot run stops; it measures real processes, files and time"
)]

use std::fs;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request, RequestId};
use serde_json::{Value, json};

/// Files whose rules are multiplied.
const MULTIPLIED: [&str; 5] = [
    "considerations.yaml",
    "destructive-commands.yaml",
    "git-discipline.yaml",
    "network-exfiltration.yaml",
    "protected-paths.yaml",
];

/// What the user types at the end of a file.
const SESSION: [(&str, &str); 3] = [
    (
        "destructive-commands.yaml",
        "\n- id: drop_table\n  commands: [psql, mysql]\n  when: action.command.matches(\"(?i)drop +table\")\n  \
         decision: ask\n  message: Drop a table with ${program.name}?\n",
    ),
    (
        "considerations.yaml",
        "\n- id: migration_tested\n  category: Testing & Local Validation\n  question: Was the migration tested?\n  \
         severity: warning\n  applicable_session_types: [DEVELOPMENT]\n  when: files.matching(\"**/migrations/**\").count > 0\n  \
         satisfied: commands.kind(\"test\").count > 0 && todos.open == 0\n  guidance: Run the tests of the migration.\n",
    ),
    ("vocabulary.yaml", "\n# Words.\n"),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| arguments.iter().skip_while(|it| *it != name).nth(1).cloned();
    let binary = value("--binary").unwrap_or_else(|| env!("CARGO_BIN_EXE_policyd").to_owned());
    let rules: usize = value("--rules").map_or(1, |it| it.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/policies")), folder.path());
    for file in MULTIPLIED {
        multiply(&folder.path().join(file), rules);
    }
    let mut editor = Editor::start(&binary, folder.path());
    let (mut completions, mut findings) = (Vec::new(), Vec::new());
    for (file, typed) in SESSION {
        editor.write(&folder.path().join(file), typed, &mut completions, &mut findings);
    }
    let title = format!("keystroke, {rules} times the built-in pack");
    println!("\n{title:<40}{:>10}{:>10}{:>10}{:>10}  goal of p95", "min", "p50", "p95", "max");
    line("completion, ms", &mut completions, "<= 20");
    line("keystroke to findings, ms", &mut findings, if rules > 1 { "<= 150" } else { "<= 50" });
    println!("{:<40}{:>10}  goal <= 150", "memory, MB", editor.memory());
}

fn line(name: &str, took: &mut [Duration], goal: &str) {
    took.sort();
    let at = |percent: usize| {
        let at = (took.len() * percent / 100).min(took.len() - 1);
        took.get(at).unwrap().as_secs_f64() * 1e3
    };
    let percents = [0, 50, 95, 100].map(|it| format!("{:>10.1}", at(it)));
    println!("{name:<40}{}  {goal}", percents.concat());
}

/// Adds copies of the rules of a file, each with an id and programs of its own.
fn multiply(path: &Path, times: usize) {
    let text = fs::read_to_string(path).unwrap();
    let (_, rules) = text.split_once("\n- id: ").unwrap();
    let mut all = text.clone();
    for number in 1..times {
        for line in format!("- id: {}", rules.trim_end()).lines() {
            match line.split_once(": ") {
                Some(("- id", id)) => all.push_str(&format!("\n- id: {id}_{number}\n")),
                Some(("  commands", list)) => {
                    let renamed = renamed(list, number);
                    all.push_str(&format!("  commands: {renamed}\n"));
                }
                Some(("  formerly", _)) => {}
                _ => all.push_str(&format!("{line}\n")),
            }
        }
    }
    fs::write(path, all).unwrap();
}

/// Adds a number to the program of each pattern of a list.
fn renamed(list: &str, number: usize) -> String {
    let (mut text, mut is_program) = (String::new(), false);
    for c in list.chars() {
        if is_program && !(c.is_alphanumeric() || "._-".contains(c)) {
            text.push_str(&number.to_string());
        }
        is_program = c.is_alphanumeric()
            && (is_program || text.ends_with(['[', '"']) || text.ends_with(", "))
            || is_program && "._-".contains(c);
        text.push(c);
    }
    text
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A client that waits for each answer.
struct Editor {
    child: Child,
    stdin: BufWriter<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    requests: i32,
    version: i32,
}

impl Editor {
    fn start(binary: &str, folder: &Path) -> Self {
        let mut command = Command::new(binary);
        command.arg("lsp").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = BufWriter::new(child.stdin.take().unwrap());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut editor = Self { child, stdin, stdout, requests: 0, version: 0 };
        editor
            .request("initialize", json!({"processId": null, "rootUri": null, "capabilities": {}}));
        editor.notify("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Message) {
        message.write(&mut self.stdin).unwrap();
        self.stdin.flush().unwrap();
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&Notification::new(method.to_owned(), params).into());
    }

    fn request(&mut self, method: &str, params: Value) {
        self.requests += 1;
        let id = RequestId::from(self.requests);
        self.send(&Request::new(id.clone(), method.to_owned(), params).into());
        while !matches!(self.read(), Message::Response(it) if it.id == id) {}
    }

    fn read(&mut self) -> Message {
        Message::read(&mut self.stdout).unwrap().unwrap()
    }

    /// Waits for the findings of this version of a file.
    fn findings(&mut self, uri: &str) {
        loop {
            if let Message::Notification(it) = self.read()
                && it.method == "textDocument/publishDiagnostics"
                && it.params.get("uri").and_then(Value::as_str) == Some(uri)
                && it.params.get("version").and_then(Value::as_i64) == Some(i64::from(self.version))
            {
                return;
            }
        }
    }

    fn write(
        &mut self,
        path: &PathBuf,
        typed: &str,
        completions: &mut Vec<Duration>,
        findings: &mut Vec<Duration>,
    ) {
        let uri = format!("file://{}", path.display());
        let text = fs::read_to_string(path).unwrap();
        self.version = 1;
        let item = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": item}));
        self.findings(&uri);
        let (mut line, mut column) = (text.matches('\n').count(), 0);
        for c in typed.chars() {
            let at = json!({"line": line, "character": column});
            if c == '\n' {
                (line, column) = (line + 1, 0);
            } else {
                column += 1;
            }
            self.version += 1;
            let document = json!({"uri": uri, "version": self.version});
            let change = json!({"range": {"start": at, "end": at}, "text": c.to_string()});
            let began = Instant::now();
            self.notify(
                "textDocument/didChange",
                json!({"textDocument": document, "contentChanges": [change]}),
            );
            let asked = Instant::now();
            let at = json!({"line": line, "character": column});
            self.request(
                "textDocument/completion",
                json!({"textDocument": {"uri": uri}, "position": at}),
            );
            completions.push(asked.elapsed());
            self.findings(&uri);
            findings.push(began.elapsed());
        }
    }

    /// Resident memory of the server, in megabytes; 0 where the system does not tell.
    fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap_or_default();
        let kilobytes = line.split_whitespace().next().and_then(|it| it.parse::<usize>().ok());
        kilobytes.unwrap_or_default() / 1024
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
