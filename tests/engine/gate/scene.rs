//! A simulated machine with an agent's session on it: events in short form become a transcript,
//! and hook payloads run through the whole program on the fake World.

use std::path::Path;

use policyd::store::user_choices::UserChoiceStore;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console::{self, Terminal};

/// Where the transcript of the session lies.
pub(crate) const TRANSCRIPT: &str = "/t/session.jsonl";

/// One session on one machine.
pub(crate) struct Scene {
    pub(crate) world: FakeWorld,
    lines: Vec<String>,
    calls: usize,
    prompts: usize,
}

/// What a call of the program gave.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) code: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Called {
    /// The answer as JSON; an empty answer is an empty object.
    pub(crate) fn json(&self) -> Value {
        if self.stdout.trim().is_empty() {
            return json!({});
        }
        serde_json::from_str(&self.stdout).expect("stdout is one JSON value")
    }

    /// `block`, or `approve` where nothing is said.
    pub(crate) fn decision(&self) -> String {
        self.json()["decision"].as_str().unwrap_or("approve").to_owned()
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let world = FakeWorld::new();
        world.put("/work/.git/HEAD", "ref: refs/heads/main\n");
        world.put("/work/tests/test_project.py", "");
        crate::support::machine::trusting(&world);
        Self { world, lines: Vec::new(), calls: 0, prompts: 0 }
    }

    /// Lets the user honor the switch files of the project.
    pub(crate) fn honor_switch_files(&self) {
        let store = UserChoiceStore::new(&self.world, Path::new("/work/.policyd"));
        store.change(|it| it.switch_files = true).unwrap();
    }

    /// Adds events: `user` (with `branch` and `folder`), `assistant`, `tool` with `input` and `id`, `tool_result` with `id`
    /// (a flat line), `claude_user_tool_result` with `id` (as Claude Code writes it), `record` (a
    /// line as it is).
    pub(crate) fn events(&mut self, events: &[Value]) -> &mut Self {
        for event in events {
            // A result comes from a call: one without any is what `git status` printed.
            let orphan = self.calls == 0 && event.get("tool_result").is_some();
            if orphan {
                let call = self.line(&json!({"tool": "Bash", "input": {"command": "git status"}}));
                self.lines.push(call.to_string());
            }
            let line = self.line(event);
            self.lines.push(line.to_string());
        }
        let mut text = self.lines.join("\n");
        text.push('\n');
        self.world.put(TRANSCRIPT, text);
        self
    }

    /// What an edit wrote stands on the disk.
    fn carry_out(&self, input: &Value) {
        let written = input["content"].as_str().or(input["new_string"].as_str());
        if let (Some(path), Some(text)) = (input["file_path"].as_str(), written) {
            self.world.put(std::path::Path::new("/work").join(path), text);
        }
    }

    /// Adds a tool call: a stop without one after a block is released.
    pub(crate) fn work(&mut self) -> &mut Self {
        self.events(&[
            json!({"tool": "Read", "input": {"file_path": "/work/a.py"}}),
            json!({"claude_user_tool_result": "x = 1"}),
        ])
    }

    /// Adds a record as it is.
    pub(crate) fn raw(&mut self, record: &Value) -> &mut Self {
        self.lines.push(record.to_string());
        self.events(&[])
    }

    fn line(&mut self, event: &Value) -> Value {
        let id = |given: &Value, number: usize| {
            given.as_str().map_or_else(|| format!("toolu_{number}"), str::to_owned)
        };
        if event["record"].is_object() {
            return event["record"].clone();
        }
        if let Some(text) = event["user"].as_str() {
            self.prompts += 1;
            return json!({"type": "user", "uuid": format!("u{}", self.lines.len()),
                "promptId": format!("p{}", self.prompts), "gitBranch": event["branch"], "cwd": event["folder"],
                "message": {"role": "user", "content": text}});
        }
        if let Some(text) = event["assistant"].as_str() {
            return json!({"type": "assistant", "message": {"id": format!("m{}", self.lines.len()),
                "role": "assistant", "content": [{"type": "text", "text": text}]}});
        }
        if let Some(name) = event["tool"].as_str() {
            self.calls += 1;
            self.carry_out(&event["input"]);
            return json!({"type": "assistant", "message": {"id": format!("m{}", self.lines.len()),
                "role": "assistant", "content": [{"type": "tool_use", "id": id(&event["id"], self.calls),
                "name": name, "input": event["input"]}]}});
        }
        if event.get("claude_user_tool_result").is_some() {
            return json!({"type": "user", "message": {"role": "user", "content": [{
                "type": "tool_result", "tool_use_id": id(&event["id"], self.calls),
                "content": event["claude_user_tool_result"], "is_error": event["is_error"] == true}]}});
        }
        json!({"type": "tool_result", "tool_use_id": id(&event["id"], self.calls),
            "content": event["tool_result"]})
    }

    /// Lines of the transcript so far.
    pub(crate) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// A usual stop payload; `changes` replace fields.
    pub(crate) fn payload(&self, changes: &Value) -> Value {
        let mut payload = json!({
            "session_id": "session-1", "transcript_path": TRANSCRIPT, "cwd": "/work",
            "prompt_id": format!("p{}", self.prompts.max(1)), "permission_mode": "default",
            "hook_event_name": "Stop", "stop_hook_active": false,
            "background_tasks": [], "session_crons": []
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        payload
    }

    /// A stop in hook format.
    pub(crate) fn stop(&self) -> Called {
        self.call("stop", &self.payload(&json!({})).to_string(), &[])
    }

    /// A stop with the full report.
    pub(crate) fn report(&self) -> Value {
        self.call("stop", &self.payload(&json!({})).to_string(), &["--format", "json"]).json()
    }

    /// Runs `policyd eval --hook <event>` with a payload.
    pub(crate) fn call(&self, event: &str, stdin: &str, more: &[&str]) -> Called {
        let arguments = [&["policyd", "eval", "--hook", event], more].concat();
        self.run(&arguments, stdin.as_bytes())
    }

    /// Runs the program.
    pub(crate) fn run(&self, arguments: &[&str], stdin: &[u8]) -> Called {
        self.run_at(Terminal::default(), arguments, stdin)
    }

    /// Runs the program with these streams on a terminal.
    pub(crate) fn run_at(&self, at: Terminal, arguments: &[&str], stdin: &[u8]) -> Called {
        let said = console::call_at(&self.world, at, &arguments[1..], stdin);
        Called { code: said.code, stdout: said.out, stderr: said.err }
    }

    /// The state file as JSON.
    pub(crate) fn state(&self) -> Value {
        let bytes = self.world.get("/work/.policyd/sessions/session-1/state.json");
        serde_json::from_slice(&bytes.expect("there is a state")).expect("the state is JSON")
    }
}
