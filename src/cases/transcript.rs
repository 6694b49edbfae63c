//! Writes transcripts in Claude Code's format from the short form of cases.

use serde::Serialize;
use serde_json::{Value, json};

use super::kinds::COUNT;
use super::placeholders::{NUMBER, PlaceholderValues};
use policyd_policy::record;
use policyd_yaml::node::{Node, NodeKind, Scalar, ScalarStyle};
use policyd_yaml::shape::Kind;

/// Directory of a case's project.
pub const PROJECT: &str = "/work";

/// Token usage of a turn, as the client writes it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TokenUsage {
    #[serde(skip)]
    model: Option<String>,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
}

record! {
    /// Keys of the token usage of a turn.
    pub(super) const USAGE: RecordType<TokenUsage> = {
        model: Kind::Text => model, "Model of the call; without it, the tokens cost nothing.";
        input: COUNT => input_tokens, "Uncached input tokens.";
        output: COUNT => output_tokens, "Output tokens.";
        cache_read: COUNT => cache_read_input_tokens, "Tokens read from the cache.";
        cache_creation: COUNT => cache_creation_input_tokens, "Tokens written to the cache.";
    }
}

/// Writer of a session's transcript.
#[derive(Debug, Default)]
pub struct Recorder {
    lines: Vec<String>,
    calls: usize,
    prompts: usize,
    /// Whether the transcript contains recorded lines.
    recorded: bool,
    branch: Option<String>,
}

impl Recorder {
    /// Returns the transcript.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines.iter().map(|it| format!("{it}\n")).collect()
    }

    /// Returns the id of the current prompt: `p1`, `p2`, …. `None` if all prompts are in recorded
    /// lines, which have ids of their own.
    #[must_use]
    pub fn prompt_id(&self) -> Option<String> {
        let recorded = self.recorded && self.prompts == 0;
        (!recorded).then(|| format!("p{}", self.prompts.max(1)))
    }

    /// Sets the git branch of later prompts.
    pub fn set_branch(&mut self, branch: &str) {
        self.branch = Some(branch.to_owned());
    }

    /// Appends recorded lines.
    pub fn recorded(&mut self, text: &str) {
        self.recorded = true;
        self.lines.extend(text.lines().map(str::to_owned));
    }

    /// Appends a line unchanged.
    pub fn record(&mut self, line: &Value) {
        self.lines.push(line.to_string());
    }

    /// Appends a prompt of the user.
    pub fn user(&mut self, text: &str) {
        self.prompts = self.prompts.saturating_add(1);
        let line = json!({"type": "user", "uuid": format!("u{}", self.lines.len()),
            "promptId": self.prompt_id(), "gitBranch": self.branch,
            "message": {"role": "user", "content": text}});
        self.record(&line);
    }

    /// Appends a text of the agent, with token usage if it is known.
    pub fn assistant(&mut self, text: &str, usage: Option<TokenUsage>) {
        self.agent(json!([{"type": "text", "text": text}]), usage);
    }

    fn agent(&mut self, content: Value, usage: Option<TokenUsage>) {
        let mut message = json!({"id": format!("m{}", self.lines.len()), "role": "assistant",
            "content": content});
        if let (Value::Object(fields), Some(usage)) = (&mut message, usage) {
            fields.extend(usage.model.as_ref().map(|it| ("model".to_owned(), json!(it))));
            fields.insert("usage".to_owned(), json!(usage));
        }
        self.record(&json!({"type": "assistant", "message": message}));
    }

    /// Appends a tool call.
    pub fn call(&mut self, tool: &str, input: Value) {
        self.calls = self.calls.saturating_add(1);
        let id = format!("toolu_{}", self.calls);
        self.agent(json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]), None);
    }

    /// Appends the result of the last tool call.
    pub fn result(&mut self, text: &str, failed: bool) {
        let id = format!("toolu_{}", self.calls);
        let content = json!([{"type": "tool_result", "tool_use_id": id, "content": text,
            "is_error": failed}]);
        self.record(&json!({"type": "user", "message": {"role": "user", "content": content}}));
    }

    /// Appends a happening of a case, with its repetitions. Returns the files that it wrote.
    pub fn happening(&mut self, node: &Node) -> Vec<(String, String)> {
        let times = node.get("times").and_then(Node::int).unwrap_or(1);
        (1..=times).flat_map(|number| self.once(&numbered(node, number))).collect()
    }

    fn once(&mut self, node: &Node) -> Option<(String, String)> {
        let text = |key: &str| node.get(key).and_then(Node::text);
        let failed = node.get("failed").and_then(Node::bool).unwrap_or(false);
        text("branch").into_iter().for_each(|it| self.set_branch(it));
        let usage = node.get("usage").map(|it| USAGE.read_node(it));
        if let Some(said) = text("user") {
            self.user(said);
        } else if let Some(said) = text("assistant") {
            self.assistant(said, usage);
        } else if let Some(path) = text("edit") {
            let path = absolute(path);
            let content = text("text").unwrap_or("x = 1\n").to_owned();
            self.call("Write", json!({"file_path": path, "content": content}));
            self.result("File created successfully", false);
            return Some((path, content));
        } else if let Some(command) = text("ran") {
            self.call("Bash", json!({"command": command}));
            self.result(text("prints").unwrap_or_default(), failed);
        } else if let Some(todos) = node.get("todos").and_then(Node::entries) {
            let todos = todos
                .iter()
                .map(|(what, state)| json!({"content": what.text(), "status": state.text()}));
            self.call("TodoWrite", json!({"todos": todos.collect::<Vec<_>>()}));
            self.result("Todos have been modified", false);
        } else if let Some(tool) = text("tool") {
            let input = node.get("input").map_or_else(|| json!({}), Node::json);
            let written = written(&input);
            self.call(tool, input);
            if !node.get("pending").and_then(Node::bool).unwrap_or(false) {
                self.result(text("result").unwrap_or("ok"), failed);
            }
            return written;
        } else if node.get("compacted").and_then(Node::bool) == Some(true) {
            self.record(&json!({"type": "system", "subtype": "compact_boundary"}));
        } else if let Some(line) = node.get("record") {
            self.record(&line.json());
        } else if usage.is_some() {
            self.agent(json!([]), usage);
        }
        None
    }
}

/// Returns a path in the project, or an absolute path unchanged.
#[must_use]
pub fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{PROJECT}/{path}") }
}

/// Returns the path and the content that a tool call writes, if its input contains them.
fn written(input: &Value) -> Option<(String, String)> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let content = text("content").or_else(|| text("new_string"))?;
    Some((absolute(text("file_path")?), content.to_owned()))
}

/// Fills the number of the repetition into a node.
fn numbered(node: &Node, number: i64) -> Node {
    let scalar = |text: String| Node {
        span: node.span.clone(),
        kind: NodeKind::Scalar(Scalar { text, style: ScalarStyle::DoubleQuoted, indent: 0 }),
    };
    let values = [(scalar(NUMBER.to_owned()), scalar(number.to_string()))];
    PlaceholderValues::new(&values).fill(node)
}
