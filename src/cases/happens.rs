//! Actions of steps: an event, or another action that a pack has rules for. Reads the map under
//! `on`.

use serde_json::{Map, Value, json};

use super::names::{NameKind, NameTable, check_name};
use super::shape::DEEDS;
use policyd_facts::event::{EVENT_NAMES, EventKind, PROMPT_EVENTS, TOOL_CALL_EVENTS};
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;

/// Action of a step.
#[derive(Debug)]
pub enum StepAction {
    /// The client reports an event.
    Event {
        /// Neutral name of the event.
        name: String,
        /// Fields of Claude Code's payload that differ from the defaults.
        fields: Map<String, Value>,
    },
    /// A decision table is evaluated.
    Table {
        id: String,
        /// Inputs as `name=value`.
        inputs: Vec<String>,
    },
    /// Signal triggers are evaluated for a run, whose values are given as `name=value`.
    Run(Vec<String>),
    /// A signal is created.
    Signal { name: String, fields: Map<String, Value> },
    /// An attempt at a task fails.
    Task(FailedTask),
    /// A failure is classified.
    Failure {
        /// Name of the error in a hook payload. Can be empty.
        named: String,
        /// Text of the error.
        text: String,
    },
}

impl StepAction {
    /// Returns the called tool. Empty if none is called.
    #[must_use]
    pub fn tool(&self) -> &str {
        let Self::Event { fields, .. } = self else { return "" };
        fields.get("tool_name").and_then(Value::as_str).unwrap_or_default()
    }
}

/// A failed attempt at a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedTask {
    /// Id of the task.
    pub id: String,
    /// Title of the task.
    pub title: String,
    /// Description of the attempt.
    pub approach: String,
    /// Name of the error in a hook payload. Can be empty.
    pub named: String,
    /// Error of the attempt.
    pub failure: String,
}

/// Reads the map under `on`. A stop by default.
pub(super) fn read(
    node: Option<&Node>,
    known: &NameTable,
    findings: &mut Vec<Diagnostic>,
) -> StepAction {
    let Some(map) = node.filter(|it| it.entries().is_some()) else {
        return event(node, None, findings);
    };
    let keys: Vec<&Node> = map.entries().unwrap_or_default().iter().map(|(key, _)| key).collect();
    let has = |name: &str| keys.iter().any(|it| it.text() == Some(name));
    let (leading, beside) =
        DEEDS.iter().find(|(name, _)| has(name)).copied().unwrap_or(("event", super::shape::EVENT));
    for key in keys {
        let name = key.text().unwrap_or_default();
        if name != leading && !beside.contains(&name) {
            let message = format!("`{name}` cannot be used with `{leading}`");
            let finding = Diagnostic::error("misplaced-key", key.span.clone(), message);
            findings.push(finding.with_help("a step has one action; add another step"));
        }
    }
    let text = |key: &str| map.get(key).and_then(Node::text).unwrap_or_default().to_owned();
    let mut named = |known: &[String], code: &'static str| {
        map.get(leading)
            .into_iter()
            .for_each(|it| check_name(it, NameKind { noun: leading, code }, known, findings));
        text(leading)
    };
    match leading {
        "table" => StepAction::Table {
            id: named(&known.tables, "unknown-table"),
            inputs: map.get("inputs").map(words).unwrap_or_default(),
        },
        "run" => StepAction::Run(map.get("run").map(words).unwrap_or_default()),
        "signal" => StepAction::Signal {
            name: named(&known.signals, "unknown-name"),
            fields: object(map.get("fields")),
        },
        "task" => StepAction::Task(FailedTask {
            id: text("task"),
            title: text("title"),
            approach: text("approach"),
            named: text("named"),
            failure: text("failure"),
        }),
        "failure" => StepAction::Failure { named: text("named"), text: text("failure") },
        _ => event(map.get("event"), Some(map), findings),
    }
}

/// Reads an event with its payload.
fn event(name: Option<&Node>, map: Option<&Node>, findings: &mut Vec<Diagnostic>) -> StepAction {
    let kind = match name {
        // A tool without an event is about to run.
        None if ["command", "tool"]
            .iter()
            .any(|key| map.is_some_and(|it| it.get(key).is_some())) =>
        {
            Some(EventKind::PreToolUse)
        }
        None => Some(EventKind::Stop),
        Some(node) => EventKind::find(node.text().unwrap_or_default()),
    };
    if let (None, Some(node)) = (kind, name) {
        let name = node.text().unwrap_or_default();
        let message = format!("unknown event `{name}`");
        let found = Diagnostic::error("unknown-name", node.span.clone(), message);
        findings.push(found.with_meant(name, EVENT_NAMES));
    }
    if let (Some(kind), Some(map)) = (kind, map) {
        complain_of_idle(kind, map, findings);
    }
    let client = kind.map(EventKind::client_name).unwrap_or_default();
    let mut fields = Map::new();
    fields.insert("hook_event_name".to_owned(), client.into());
    for (key, field) in [
        ("session", "session_id"),
        ("agent", "agent_id"),
        ("agent_type", "agent_type"),
        ("prompt", "prompt_id"),
        ("permission_mode", "permission_mode"),
        ("last_message", "last_assistant_message"),
        ("background", "background_tasks"),
        ("tool", "tool_name"),
        ("input", "tool_input"),
        ("said", "prompt"),
    ] {
        if let Some(value) = map.and_then(|it| it.get(key)) {
            fields.insert(field.to_owned(), with_defaults(key, value.json()));
        }
    }
    if let Some(command) = map.and_then(|it| it.get("command")) {
        fields.entry("tool_name").or_insert_with(|| "Bash".into());
        fields.insert("tool_input".to_owned(), serde_json::json!({"command": command.json()}));
    }
    fields.extend(object(map.and_then(|it| it.get("fields"))));
    StepAction::Event { name: kind.map(|it| it.name().to_owned()).unwrap_or_default(), fields }
}

/// Keys that only some events support.
const PARTIAL: [(&str, &[EventKind]); 4] = [
    ("command", TOOL_CALL_EVENTS),
    ("tool", TOOL_CALL_EVENTS),
    ("input", TOOL_CALL_EVENTS),
    ("said", PROMPT_EVENTS),
];

/// Reports keys that an event does not support, because they would have no effect.
fn complain_of_idle(kind: EventKind, map: &Node, findings: &mut Vec<Diagnostic>) {
    for (key, events) in PARTIAL {
        let entries = map.entries().unwrap_or_default();
        let found = entries.iter().find(|(it, _)| it.says(key));
        if let Some((node, _)) = found.filter(|_| !events.contains(&kind)) {
            let message = format!("`{key}` is not supported by `{}`", kind.name());
            let found = Diagnostic::error("misplaced-key", node.span.clone(), message);
            let names: Vec<&str> = events.iter().map(|it| it.name()).collect();
            findings.push(found.with_help(format!("write `event: {}`", names.join("` or `"))));
        }
    }
    let shell = |it: &Node| it.says("Bash") || it.says("PowerShell");
    if let (Some(tool), Some(command)) = (map.get("tool"), map.get("command"))
        && !shell(tool)
    {
        let message = "`command` is for the tool `Bash` only";
        let found = Diagnostic::error("misplaced-key", command.span.clone(), message);
        findings.push(found.with_help("use `input:` for the input of another tool"));
    }
}

fn object(node: Option<&Node>) -> Map<String, Value> {
    match node.map(Node::json) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Converts a map to `name=value` words. A list gives one word for each item.
fn words(node: &Node) -> Vec<String> {
    let plain = |it: &Node| it.text().map_or_else(|| it.json().to_string(), str::to_owned);
    let entries = node.entries().unwrap_or_default().iter();
    let named = entries.flat_map(|(key, value)| {
        let name = key.text().unwrap_or_default().to_owned();
        value.one_or_items().iter().map(move |it| format!("{name}={}", plain(it)))
    });
    named.collect()
}

/// Adds defaults to a background task: its status is `running`.
fn with_defaults(key: &str, mut value: Value) -> Value {
    let tasks = value.as_array_mut().filter(|_| key == "background");
    for task in tasks.into_iter().flatten().filter_map(Value::as_object_mut) {
        task.entry("type").or_insert_with(|| json!("subagent"));
        task.entry("status").or_insert_with(|| json!("running"));
    }
    value
}
