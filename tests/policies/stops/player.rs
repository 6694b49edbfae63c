//! Plays the steps of a session on a simulated machine as Claude Code does: the transcript grows, the tools
//! change files, and the hooks of `policyd install` are called.

use std::path::Path;
use std::time::Duration;

use policyd::world::World;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::{console, machine};

/// The project directory.
const PROJECT: &str = "/work";
/// The transcript of the session.
const TRANSCRIPT: &str = "/home/me/.claude/projects/-work/session-1.jsonl";
/// Session identifier.
const SESSION: &str = "session-1";

/// Files of the project of a session that lists no files.
const FILES: &[(&str, &str)] = &[
    ("README.md", "# Calc\n"),
    ("package.json", "{\"name\":\"calc\",\"scripts\":{\"test\":\"jest\"}}\n"),
    ("src/a.ts", "export const x = 1;\n"),
    ("src/b.ts", "export const tax = 1;\n"),
    ("tests/a.test.ts", "test('adds', () => {})\n"),
    ("pyproject.toml", "[tool.pytest.ini_options]\n"),
    ("src/calc.py", "def add(a, b):\n    return a - b\n"),
    ("tests/test_calc.py", "def test_add():\n    assert add(1, 2) == 3\n"),
    ("tests/test_legacy.py", "def test_tz():\n    assert 1 == 2\n"),
    ("Cargo.toml", "[package]\nname = \"calc\"\n"),
    ("src/lib.rs", "// export\n"),
    ("tests/calc.rs", "#[test]\nfn adds() {}\n"),
    ("go.mod", "module example.com/calc\n"),
    ("calc.go", "package calc\n\n// export\n"),
    ("calc_test.go", "package calc\n\nfunc TestAdd(t *testing.T) {}\n"),
];

/// A session in progress.
pub(super) struct Player {
    world: FakeWorld,
    lines: Vec<String>,
    calls: usize,
    prompts: usize,
    /// The agent's last text.
    said: String,
    attended: bool,
    /// Whether each tool call calls its hooks.
    hooks: bool,
}

/// A tool call and what its transcript entry contains.
struct Call<'a> {
    tool: &'a str,
    input: Value,
}

impl Player {
    /// A project with its files. Without `hooks`, only stops call policyd.
    pub(super) fn new(files: Option<&Value>, attended: bool, hooks: bool) -> Self {
        let world = machine::machine();
        world.put("/work/.git/HEAD", "ref: refs/heads/main\n");
        world.set_env("CLAUDE_PROJECT_DIR", PROJECT);
        world.set_env("CLAUDE_CODE_ENTRYPOINT", if attended { "cli" } else { "sdk-cli" });
        world.set_env("CLAUDE_CODE_SESSION_ATTENDED", if attended { "1" } else { "0" });
        match files.and_then(Value::as_object) {
            Some(files) => {
                files
                    .iter()
                    .for_each(|(path, text)| world.put(absolute(path), text.as_str().unwrap()));
            }
            None => FILES.iter().for_each(|(path, text)| world.put(absolute(path), text)),
        }
        let (lines, said) = (Vec::new(), String::new());
        Self { world, lines, calls: 0, prompts: 0, said, attended, hooks }
    }

    /// Plays a step: its name, then its arguments.
    pub(super) fn step(&mut self, step: &Value) {
        let text = |at: usize| step[at].as_str().unwrap_or_default();
        match text(0) {
            "user" => self.user(text(1)),
            "say" => self.say(text(1)),
            "read" => self.read(text(1)),
            "edit" => self.edit(text(1), step[2].as_str(), step[3].as_str()),
            "write" => self.write(text(1), text(2)),
            "bash" => self.bash(text(1), text(2), step[3].as_i64().unwrap_or(0), &step[4]),
            "todo" => self.todo(&step[1]),
            "notebook" => self.notebook(text(1), text(2)),
            "mcp" => self.mcp(text(1), &step[2]),
            "deny" => self.deny(text(1), text(2), text(3)),
            "interrupt" => {
                let content = json!([{"type": "text", "text": "[Request interrupted by user]"}]);
                self.line("user", json!({"message": {"role": "user", "content": content}}));
            }
            other => panic!("unknown step: {other}"),
        }
    }

    /// The response of the stop hook: the reason of the block, if it blocks.
    pub(super) fn stop(&mut self) -> Option<String> {
        let fields = json!({"stop_hook_active": false, "last_assistant_message": self.said,
            "background_tasks": [], "session_crons": []});
        let answer = &self.hook("stop", fields);
        let blocks = answer["decision"] == "block";
        blocks.then(|| answer["reason"].as_str().unwrap().to_owned())
    }

    /// The end of a turn before the next prompt. The agent reads the reason of a block, and the user
    /// speaks before the agent goes on.
    fn end_of_turn(&mut self) {
        let interrupted = self.lines.last().is_none_or(|it| it.contains("[Request interrupted"));
        if interrupted {
            return;
        }
        if let Some(reason) = self.stop() {
            let content = format!("Stop hook feedback:\n{reason}");
            let message = json!({"role": "user", "content": content});
            self.line("user", json!({"message": message, "isMeta": true}));
        }
    }

    fn user(&mut self, text: &str) {
        self.end_of_turn();
        self.prompts += 1;
        self.hook("user-prompt-submit", json!({"prompt": text}));
        let source = if self.attended { "typed" } else { "sdk" };
        self.line(
            "user",
            json!({"message": {"role": "user", "content": text}, "permissionMode": "default",
                "promptSource": source, "turnOrigin": source}),
        );
    }

    fn say(&mut self, text: &str) {
        text.clone_into(&mut self.said);
        let content = json!([{"type": "text", "text": text}]);
        self.agent(&content);
    }

    fn agent(&mut self, content: &Value) {
        let usage = json!({"input_tokens": 900, "output_tokens": 90});
        let message = json!({"id": format!("msg_{}", self.lines.len()), "type": "message",
            "role": "assistant", "content": content, "stop_reason": null, "usage": usage});
        self.line("assistant", json!({"message": message}));
    }

    fn read(&mut self, path: &str) {
        let path = absolute(path);
        let content = self.text(&path).unwrap_or_default();
        let call = Call { tool: "Read", input: json!({"file_path": path}) };
        let file = json!({"filePath": path, "content": content, "startLine": 1});
        self.start(&call);
        self.end(&call, &format!("1\t{content}"), &json!({"type": "text", "file": file}));
    }

    /// Edits a file. A file that lacks the old text contains only that.
    fn edit(&mut self, path: &str, new: Option<&str>, old: Option<&str>) {
        let path = absolute(path);
        let (new, old) = (new.unwrap_or("x = 2"), old.unwrap_or("x = 1"));
        let before = self.text(&path).filter(|it| it.contains(old));
        let before = before.unwrap_or_else(|| format!("{old}\n"));
        self.world.put(&path, &before);
        let input = json!({"file_path": path, "old_string": old, "new_string": new,
            "replace_all": false});
        let call = Call { tool: "Edit", input };
        self.start(&call);
        self.world.put(&path, before.replacen(old, new, 1));
        let response = json!({"filePath": path, "oldString": old, "newString": new,
            "originalFile": before, "structuredPatch": [], "userModified": false,
            "replaceAll": false});
        self.end(&call, &format!("The file {path} has been updated successfully."), &response);
    }

    fn write(&mut self, path: &str, content: &str) {
        let path = absolute(path);
        let before = self.text(&path);
        let call = Call { tool: "Write", input: json!({"file_path": path, "content": content}) };
        self.start(&call);
        self.world.put(&path, content);
        let kind = if before.is_some() { "update" } else { "create" };
        let response = json!({"type": kind, "filePath": path, "content": content,
            "structuredPatch": [], "originalFile": before, "userModified": false});
        self.end(&call, &format!("File created successfully at: {path}"), &response);
    }

    /// Runs a command with its output, and writes or removes files.
    fn bash(&mut self, command: &str, output: &str, code: i64, files: &Value) {
        let call = Call { tool: "Bash", input: json!({"command": command}) };
        self.start(&call);
        for (path, text) in files.as_object().into_iter().flatten() {
            match text.as_str() {
                Some(text) => self.world.put(absolute(path), text),
                None => self.world.remove(Path::new(&absolute(path))).unwrap(),
            }
        }
        if code == 0 {
            let shown = if output.is_empty() { "(Bash completed with no output)" } else { output };
            let response = json!({"stdout": output, "stderr": "", "interrupted": false,
                "isImage": false});
            self.end(&call, shown, &response);
        } else {
            self.fail(&call, &format!("Exit code {code}\n{output}"));
        }
    }

    fn todo(&mut self, todos: &Value) {
        let todo = |it: &Value| json!({"content": it[0], "status": it[1], "activeForm": it[0]});
        let todos: Vec<_> = todos.as_array().unwrap().iter().map(todo).collect();
        let call = Call { tool: "TodoWrite", input: json!({"todos": todos}) };
        self.start(&call);
        self.end(&call, "Todos have been modified successfully.", &json!({"newTodos": todos}));
    }

    fn notebook(&mut self, path: &str, source: &str) {
        let path = absolute(path);
        let input = json!({"notebook_path": path, "new_source": source, "cell_type": "code",
            "edit_mode": "insert"});
        let call = Call { tool: "NotebookEdit", input };
        self.start(&call);
        let cell = json!({"cell_type": "code", "source": [source]});
        self.world.put(&path, json!({"cells": [cell], "nbformat": 4}).to_string());
        self.end(&call, "Inserted cell 0", &json!({"new_source": source, "error": ""}));
    }

    /// A tool of an MCP server that reads, writes, or edits a file.
    fn mcp(&mut self, tool: &str, input: &Value) {
        let call = Call { tool, input: input.clone() };
        self.start(&call);
        let path = input["path"].as_str().or_else(|| input["relative_path"].as_str());
        let path = path.map(absolute).unwrap();
        if let Some(text) = input["content"].as_str().or_else(|| input["body"].as_str()) {
            self.world.put(&path, text);
        }
        for edit in input["edits"].as_array().into_iter().flatten() {
            self.world.put(&path, edit["newText"].as_str().unwrap());
        }
        self.end(&call, "ok", &json!([{"type": "text", "text": "ok"}]));
    }

    /// A command that the user, or a permission rule, denies.
    fn deny(&mut self, tool: &str, command: &str, by: &str) {
        let call = Call { tool, input: json!({"command": command}) };
        self.start(&call);
        let (text, kind) = if by == "rule" {
            let text = format!("Permission to use {tool} with command {command} has been denied.");
            (text, "permission-rule")
        } else {
            ("This command requires approval".to_owned(), "user-rejected")
        };
        let fields = json!({"toolDenialKind": kind, "toolUseResult": format!("Error: {text}")});
        self.result(&text, true, fields);
    }

    fn start(&mut self, call: &Call<'_>) {
        self.calls += 1;
        let id = self.call_id();
        let content = json!([{"type": "tool_use", "id": id, "name": call.tool,
            "input": call.input}]);
        self.agent(&content);
        if self.hooks {
            let fields = json!({"tool_name": call.tool, "tool_input": call.input,
                "tool_use_id": id});
            self.hook("pre-tool-use", fields);
        }
    }

    fn end(&mut self, call: &Call<'_>, text: &str, response: &Value) {
        if self.hooks {
            let fields = json!({"tool_name": call.tool, "tool_input": call.input,
                "tool_response": response, "tool_use_id": self.call_id()});
            self.hook("post-tool-use", fields);
        }
        self.result(text, false, json!({"toolUseResult": response}));
    }

    fn fail(&mut self, call: &Call<'_>, text: &str) {
        if self.hooks {
            let fields = json!({"tool_name": call.tool, "tool_input": call.input, "error": text,
                "is_interrupt": false, "tool_use_id": self.call_id()});
            self.hook("post-tool-use-failure", fields);
        }
        self.result(text, true, json!({"toolUseResult": format!("Error: {text}")}));
    }

    /// Appends the result of the last call, with the fields that the client puts beside it.
    fn result(&mut self, text: &str, failed: bool, fields: Value) {
        let content = json!([{"type": "tool_result", "tool_use_id": self.call_id(),
            "content": text, "is_error": failed}]);
        let mut line = json!({"message": {"role": "user", "content": content}});
        extend(&mut line, fields);
        self.line("user", line);
    }

    fn call_id(&self) -> String {
        format!("toolu_{}", self.calls)
    }

    fn text(&self, path: &str) -> Option<String> {
        self.world.get(path).map(|it| String::from_utf8(it).unwrap())
    }

    /// Appends a line to the transcript.
    fn line(&mut self, kind: &str, fields: Value) {
        self.world.advance(Duration::from_secs(2));
        let entrypoint = if self.attended { "cli" } else { "sdk-cli" };
        let mut line = json!({"type": kind, "isSidechain": false, "cwd": PROJECT,
            "uuid": format!("line-{}", self.lines.len()), "promptId": self.prompt_id(),
            "timestamp": self.world.now().to_string(), "userType": "external",
            "entrypoint": entrypoint, "sessionId": SESSION, "version": "2.1.329",
            "gitBranch": "main"});
        extend(&mut line, fields);
        self.lines.push(line.to_string());
        let text: String = self.lines.iter().map(|it| format!("{it}\n")).collect();
        self.world.put(TRANSCRIPT, text);
    }

    fn prompt_id(&self) -> String {
        format!("prompt-{}", self.prompts)
    }

    /// Calls a hook and returns its answer; null if it prints nothing.
    fn hook(&self, event: &str, fields: Value) -> Value {
        let mut payload = json!({"session_id": SESSION, "transcript_path": TRANSCRIPT,
            "cwd": PROJECT, "prompt_id": self.prompt_id(), "permission_mode": "default"});
        extend(&mut payload, fields);
        let words = ["eval", "--hook", event, "--harness", "claude-code"];
        let said = console::call(&self.world, &words, payload.to_string().as_bytes());
        assert_eq!(said.code, 0, "{event}: {}", said.err);
        if said.out.trim().is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&said.out).unwrap()
        }
    }
}

/// A path in the project, or an absolute path unchanged.
fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{PROJECT}/{path}") }
}

/// Adds the fields of one map to another.
fn extend(map: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else { panic!("fields are a map") };
    map.as_object_mut().unwrap().extend(fields);
}
