//! A machine with a project, and what the program says to a tool call there.

use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console;

/// A machine with the project of the payloads.
pub(crate) struct Machine {
    pub(crate) world: FakeWorld,
    folder: String,
    transcript: Option<String>,
}

impl Machine {
    /// A machine with a project in this folder.
    pub(crate) fn new(folder: &str) -> Self {
        let world = FakeWorld::new();
        world.put(format!("{folder}/.git/HEAD"), "ref: refs/heads/main\n");
        world.set_env("HOME", "/home/dev");
        Self { world, folder: folder.to_owned(), transcript: None }
    }

    /// The machine with a client that records the session in this file.
    pub(crate) fn recording(self, transcript: &str) -> Self {
        Self { transcript: Some(transcript.to_owned()), ..self }
    }

    /// Gives the project guards of its own, named by the user and so trusted.
    pub(crate) fn guards(&self, text: &str) {
        self.world.put("/home/dev/rules/guards.yaml", text);
        self.world.set_env("POLICYD_POLICIES", "/home/dev/rules");
    }

    /// The answer to an event.
    pub(crate) fn answer(&self, payload: &Value) -> Value {
        let event = payload["hook_event_name"].as_str().unwrap();
        let stdin = payload.to_string();
        let said = console::call(&self.world, &["eval", "--hook", event], stdin.as_bytes());
        assert_eq!(said.code, 0, "{payload}");
        let text = said.out;
        if text.trim().is_empty() { json!({}) } else { serde_json::from_str(&text).unwrap() }
    }

    /// What is decided about a tool call: `deny`, `ask`, `allow`, or nothing.
    pub(crate) fn tool(&self, tool: &str, input: &Value) -> (String, String) {
        let answer = self.answer(&json!({
            "session_id": "s", "cwd": self.folder, "hook_event_name": "PreToolUse",
            "permission_mode": "default", "tool_name": tool, "tool_input": input,
            "transcript_path": self.transcript,
        }));
        decision(&answer)
    }

    /// The same for a command line.
    pub(crate) fn bash(&self, command: &str) -> (String, String) {
        self.tool("Bash", &json!({"command": command}))
    }
}

/// The decision of an answer in one word, empty for none, and its reason.
pub(crate) fn decision(answer: &Value) -> (String, String) {
    let output = &answer["hookSpecificOutput"];
    let said = output["permissionDecision"].as_str().or(answer["decision"].as_str());
    let reason = output["permissionDecisionReason"].as_str().or(answer["reason"].as_str());
    (said.unwrap_or_default().to_owned(), reason.unwrap_or_default().to_owned())
}
