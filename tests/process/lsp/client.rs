//! A small client of the Language Server Protocol. It knows the texts of its files, and positions by words in them.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

use crate::machine::{BOUND, Machine};

/// A client with its server.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Message>,
    requests: i32,
    texts: BTreeMap<PathBuf, (i32, String)>,
    /// The last published findings of each file.
    pub(crate) findings: BTreeMap<PathBuf, Vec<Value>>,
    /// Requests and notifications of the server besides findings.
    pub(crate) heard: Vec<(String, Value)>,
    pub(crate) capabilities: Value,
}

/// A pack with a guard, a check, and a case, in which lint finds nothing.
pub(crate) const PACK: [(&str, &str); 4] = [
    ("policyd.yaml", "version: 1\nname: team\nextends: [builtin]\n"),
    (
        "considerations.yaml",
        "- id: changelog\n  category: Documentation\n  question: Is the change in the changelog?\n  \
         severity: warning\n  applicable_session_types: [DEVELOPMENT]\n  when: files.kind(\"code\").count > 0\n  \
         satisfied: files.matching(\"**/CHANGELOG.md\").count > 0\n  guidance: Add a line to CHANGELOG.md.\n",
    ),
    (
        "guards.yaml",
        "- id: no_deploy\n  commands: [deploy]\n  decision: ask\n  message: Deploy ${action.command}?\n",
    ),
    (
        "tests/cases.yaml",
        "- name: a deployment is asked about\n  on: {event: pre_tool_use, command: deploy now}\n  expect:\n    \
         guards: {no_deploy: fired}\n",
    ),
];

/// Writes files into the pack of the project.
pub(crate) fn put_pack(machine: &Machine, files: &[(&str, &str)]) {
    for (file, text) in files {
        machine.put(&format!(".policyd/policies/{file}"), text);
    }
}

/// A file of the pack of the project.
pub(crate) fn pack_file(machine: &Machine, name: &str) -> PathBuf {
    machine.file(&format!(".policyd/policies/{name}"))
}

impl Client {
    /// Starts a server that answered `initialize`.
    pub(crate) fn start(machine: &Machine, options: &Value) -> Self {
        let mut command = machine.command(&["lsp", "--stdio"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            // Standard output contains messages only.
            while let Some(message) = Message::read(&mut reader).unwrap() {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let (texts, findings) = (BTreeMap::new(), BTreeMap::new());
        let mut client = Self {
            child,
            stdin,
            messages,
            requests: 0,
            texts,
            findings,
            heard: vec![],
            capabilities: Value::Null,
        };
        let answer = client.request(
            "initialize",
            json!({
                "processId": null, "rootUri": null, "initializationOptions": options,
                "capabilities": {
                    "workspace": {
                        "workspaceEdit": {"documentChanges": true},
                        "didChangeWatchedFiles": {"dynamicRegistration": true},
                        "codeLens": {"refreshSupport": true},
                        "inlayHint": {"refreshSupport": true},
                    },
                    "window": {"workDoneProgress": true},
                    "textDocument": {"codeLens": {}, "completion": {"completionItem": {"snippetSupport": true}}},
                },
            }),
        );
        client.capabilities = answer["capabilities"].clone();
        client.notify("initialized", json!({}));
        client
    }

    /// Writes the pack into the project, and starts a server.
    pub(crate) fn in_pack(machine: &Machine) -> Self {
        put_pack(machine, &PACK);
        Self::start(machine, &Value::Null)
    }

    fn send(&mut self, message: &Message) {
        message.write(self.stdin.as_mut().unwrap()).unwrap();
    }

    /// Writes bytes that are no message.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&Notification::new(method.to_owned(), params).into());
    }

    /// The result of a request, or the error.
    pub(crate) fn try_request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.requests += 1;
        let wanted = RequestId::from(self.requests);
        self.send(&Request::new(wanted.clone(), method.to_owned(), params).into());
        let deadline = Instant::now() + BOUND;
        loop {
            match self.next(deadline).unwrap_or_else(|| panic!("no answer to {method}")) {
                Message::Response(Response { id, response_result }) => {
                    assert_eq!(id, wanted);
                    return response_result.map_err(|it| serde_json::to_value(it).unwrap());
                }
                other @ (Message::Request(_) | Message::Notification(_)) => self.take(other),
            }
        }
    }

    /// The result of a request.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.try_request(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn next(&mut self, deadline: Instant) -> Option<Message> {
        match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the server ended"),
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Notification(it) if it.method == "textDocument/publishDiagnostics" => {
                let path = path_of(it.params["uri"].as_str().unwrap());
                let found = it.params["diagnostics"].as_array().unwrap().clone();
                // Positions are those of the version that is named.
                let version = it.params["version"].as_i64();
                let own = self.texts.get(&path).map(|it| i64::from(it.0));
                if version.is_none() || version == own {
                    if let Some((_, text)) = self.texts.get(&path) {
                        // Every position is inside of the text.
                        for it in &found {
                            offset(text, &it["range"]["start"]);
                            offset(text, &it["range"]["end"]);
                        }
                    }
                    self.findings.insert(path, found);
                }
            }
            Message::Notification(it) => self.heard.push((it.method, it.params)),
            Message::Request(it) => {
                self.heard.push((it.method.clone(), it.params));
                let response = Response::new_ok(it.id, Value::Null);
                self.send(&response.into());
            }
            Message::Response(it) => panic!("a response without a request: {it:?}"),
        }
    }

    /// Waits for a message after which the condition is true.
    pub(crate) fn wait(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + BOUND;
        while !done(self) {
            let message = self.next(deadline);
            let message = message.unwrap_or_else(|| panic!("{what}: {:?}", self.findings));
            self.take(message);
        }
    }

    /// Takes the messages of a while.
    pub(crate) fn listen(&mut self, while_: Duration) {
        let deadline = Instant::now() + while_;
        while let Some(message) = self.next(deadline) {
            self.take(message);
        }
    }

    /// Codes of the findings of a file, once they are these.
    pub(crate) fn expect_codes(&mut self, path: &Path, codes: &[&str]) {
        let found = |it: &Self| -> Option<Vec<String>> {
            let found = it.findings.get(path)?.iter();
            Some(found.map(|it| it["code"].as_str().unwrap().to_owned()).collect())
        };
        let text = format!("{codes:?} in {}", path.display());
        self.wait(&text, |it| found(it).is_some_and(|it| it == codes));
    }

    /// Opens a file with its text on the disk.
    pub(crate) fn open(&mut self, path: &Path) {
        let text = std::fs::read_to_string(path).unwrap();
        self.open_with(path, &text);
    }

    pub(crate) fn open_with(&mut self, path: &Path, text: &str) {
        self.texts.insert(path.to_path_buf(), (1, text.to_owned()));
        self.notify(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": uri(path), "languageId": "yaml", "version": 1, "text": text}}),
        );
    }

    /// The text of an open file.
    pub(crate) fn text(&self, path: &Path) -> &str {
        &self.texts[path].1
    }

    /// Replaces a word by another one, as a keystroke does.
    pub(crate) fn replace(&mut self, path: &Path, old: &str, new: &str) {
        let (start, text) = (self.find(path, old), self.texts[path].1.clone());
        self.replace_bytes(path, start, start + old.len(), new);
        assert_ne!(text, self.texts[path].1);
    }

    pub(crate) fn replace_bytes(&mut self, path: &Path, start: usize, end: usize, new: &str) {
        let (version, text) = self.texts.get_mut(path).unwrap();
        let range = json!({"start": position(text, start), "end": position(text, end)});
        text.replace_range(start..end, new);
        *version += 1;
        let params = json!({
            "textDocument": {"uri": uri(path), "version": *version},
            "contentChanges": [{"range": range, "text": new}],
        });
        self.notify("textDocument/didChange", params);
    }

    /// First byte of a word in an open file.
    pub(crate) fn find(&self, path: &Path, word: &str) -> usize {
        let text = self.text(path);
        text.find(word).unwrap_or_else(|| panic!("{word} is not in {text}"))
    }

    /// Parameters of a request at a byte of the file.
    pub(crate) fn at_byte(&self, path: &Path, at: usize) -> Value {
        json!({"textDocument": {"uri": uri(path)}, "position": position(self.text(path), at)})
    }

    /// Parameters of a request at the place of `|` in a text of the file: `when: fi|les`.
    pub(crate) fn at(&self, path: &Path, place: &str) -> Value {
        let (before, after) = place.split_once('|').unwrap();
        let start = self.find(path, &format!("{before}{after}")) + before.len();
        self.at_byte(path, start)
    }

    /// The text of a range in an open file.
    pub(crate) fn slice(&self, path: &Path, range: &Value) -> String {
        let text = self.text(path);
        text[offset(text, &range["start"])..offset(text, &range["end"])].to_owned()
    }

    /// Applies a workspace edit to the open files, and returns the files that it changes.
    pub(crate) fn apply(&mut self, edit: &Value) -> Vec<PathBuf> {
        let mut changed = vec![];
        for it in edit["documentChanges"].as_array().unwrap() {
            let path = path_of(it["textDocument"]["uri"].as_str().unwrap());
            let mut edits = it["edits"].as_array().unwrap().clone();
            if !self.texts.contains_key(&path) {
                assert_eq!(it["textDocument"]["version"], Value::Null);
                self.open(&path);
            }
            let text = self.text(&path).to_owned();
            edits.sort_by_key(|it| std::cmp::Reverse(offset(&text, &it["range"]["start"])));
            for it in edits {
                let range = &it["range"];
                let (start, end) = (offset(&text, &range["start"]), offset(&text, &range["end"]));
                self.replace_bytes(&path, start, end, it["newText"].as_str().unwrap());
            }
            changed.push(path);
        }
        changed
    }

    /// Shuts the server down; it ends with success.
    pub(crate) fn stop(mut self) {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    /// Ends the input; returns the exit code.
    pub(crate) fn leave(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn path_of(uri: &str) -> PathBuf {
    PathBuf::from(uri.strip_prefix("file://").unwrap())
}

/// First bytes of the lines of a text, which `\n`, `\r\n`, and `\r` end; computed without the program.
fn line_starts(text: &str) -> Vec<usize> {
    let ends = text
        .char_indices()
        .filter(|(at, c)| *c == '\n' || (*c == '\r' && !text[at + 1..].starts_with('\n')));
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}

/// The position of a byte.
pub(crate) fn position(text: &str, offset: usize) -> Value {
    let starts = line_starts(text);
    let line = starts.iter().rposition(|it| *it <= offset).unwrap();
    let column: usize = text[starts[line]..offset].chars().map(char::len_utf16).sum();
    json!({"line": line, "character": column})
}

/// The byte of a position, which must be inside of the text.
pub(crate) fn offset(text: &str, position: &Value) -> usize {
    let inside = offset_inside(text, position);
    inside.unwrap_or_else(|| panic!("{position} is outside of its line or within a character"))
}

/// The byte of a position; `None` if it is not at the beginning of a character of a line, or at its end.
pub(crate) fn offset_inside(text: &str, position: &Value) -> Option<usize> {
    let line = usize::try_from(position["line"].as_u64()?).ok()?;
    let column = usize::try_from(position["character"].as_u64()?).ok()?;
    let start = *line_starts(text).get(line)?;
    let content = text[start..].split(['\n', '\r']).next()?;
    let mut units = 0;
    for (at, c) in content.char_indices() {
        if units == column {
            return Some(start + at);
        }
        units += c.len_utf16();
    }
    (units == column).then_some(start + content.len())
}
