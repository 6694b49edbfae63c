//! Actions of steps: an event, or another action that a pack has rules for. Reads the map under
//! `on`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::given::text_or_json;
use super::names::{NameKind, NameTable, check_names};
use policyd_facts::event::{EVENT_NAMES, EventKind, PROMPT_EVENTS, TOOL_CALL_EVENTS};
use policyd_policy::record;
use policyd_policy::record::Conversion;
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;
use policyd_yaml::shape::{Field, Kind, field, required};

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

/// The values of a map under `on`.
#[derive(Default)]
struct ActionKeys {
    payload: EventPayload,
    command: Option<String>,
    fields: Map<String, Value>,
    table: String,
    inputs: Vec<String>,
    run: Vec<String>,
    signal: String,
    task: FailedTask,
}

/// Fields of Claude Code's payload that differ from the defaults.
#[derive(Default, Serialize)]
struct EventPayload {
    hook_event_name: &'static str,
    session_id: Option<String>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    prompt_id: Option<String>,
    permission_mode: Option<String>,
    last_assistant_message: Option<String>,
    background_tasks: Option<Value>,
    tool_name: Option<String>,
    tool_input: Option<Value>,
    prompt: Option<String>,
}

record! {
    /// Keys under `on`.
    const ACTION: RecordType<ActionKeys> = {
        event: Kind::Text, "The event; `stop` by default.";
        session: Kind::Text => payload.session_id, "Id of the session; `session-1` by default.";
        agent: Kind::Text => payload.agent_id, "Id of the subagent in which the event happens.";
        agent_type: Kind::Text => payload.agent_type, "Type of that subagent.";
        prompt: Kind::Text => payload.prompt_id, "Id of the current prompt.";
        permission_mode: Kind::Text => payload.permission_mode, "`default`, `plan`, `acceptEdits`, …";
        last_message: Kind::Text => payload.last_assistant_message,
            "The agent's last text, as the client sends it.";
        background: Kind::List(&Kind::Record(TASK)) => payload.background_tasks by TASKS,
            "Background tasks.";
        command: Kind::Text => command, "Command line of the tool `Bash`.";
        tool: Kind::Text => payload.tool_name, "Tool that is about to run, or that ran.";
        input: Kind::Map(&Kind::Any) => payload.tool_input, "Input of the tool.";
        said: Kind::Text => payload.prompt, "Prompt of the user, at `user_prompt_submit`.";
        fields: Kind::Map(&Kind::Any) => fields, "Further fields of the payload, or of the signal.";
        table: Kind::Text => table, "Instead of an event: id of a decision table to evaluate.";
        inputs: Kind::Map(&Kind::Any) => inputs by WORDS, "Inputs of the table.";
        run: Kind::Map(&Kind::Any) => run by WORDS,
            "Instead: values of a run, for which the triggers of signals are evaluated.";
        signal: Kind::Text => signal, "Instead: name of a signal to create.";
        task: Kind::Text => task.id, "Instead: id of a task with a failed attempt.";
        title: Kind::Text => task.title, "Title of the task.";
        approach: Kind::Text => task.approach, "Description of the attempt.";
        failure: Kind::Text => task.failure,
            "Error of the attempt. Without `task`: the error to classify.";
        named: Kind::Text => task.named, "Name of the error in a hook payload.";
    }
}

/// The kind of the value of `on`.
pub(super) const ON: Kind = Kind::Either(&[Kind::Text, ACTION.map]);

/// Keys of a background task, which are those of the payload.
const TASK: &[Field] = &[
    required("id", Kind::Text, "Id of the task."),
    field("type", Kind::Text, "`shell`, `subagent`, …"),
    field("status", Kind::Text, "`running`, or another status of the client."),
    field("description", Kind::Text, "Description of the task."),
];

/// Background tasks. By default, a task is a running subagent.
const TASKS: Conversion<Option<Value>> = Conversion::reading(|node, _| {
    let mut tasks = node.json();
    for task in tasks.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        task.entry("type").or_insert_with(|| json!("subagent"));
        task.entry("status").or_insert_with(|| json!("running"));
    }
    Some(Some(tasks))
});

/// A map as `name=value` words. A list gives one word for each item.
const WORDS: Conversion<Vec<String>> = Conversion::reading(|node, _| {
    let words = node.entries()?.iter().flat_map(|(key, value)| {
        let name = key.text().unwrap_or_default();
        value.one_or_items().iter().map(move |it| format!("{name}={}", text_or_json(it)))
    });
    Some(words.collect())
});

/// Keys that can be used with `event`.
const EVENT: &[&str] = &[
    "session",
    "agent",
    "agent_type",
    "prompt",
    "permission_mode",
    "last_message",
    "background",
    "command",
    "tool",
    "input",
    "said",
    "fields",
];

/// Main keys of an action, each with its optional keys. The first key that is present counts.
pub const DEEDS: &[(&str, &[&str])] = &[
    ("event", EVENT),
    ("table", &["inputs"]),
    ("run", &[]),
    ("signal", &["fields"]),
    ("task", &["title", "approach", "failure", "named"]),
    ("failure", &["named"]),
];

/// Reads the value of `on`. A stop by default.
pub(super) fn read(
    node: Option<&Node>,
    known: &NameTable,
    findings: &mut Vec<Diagnostic>,
) -> StepAction {
    let map = node.filter(|it| it.entries().is_some());
    let names = map.and_then(Node::entries).unwrap_or_default().iter().map(|(key, _)| key);
    let leading = DEEDS.iter().find(|(name, _)| names.clone().any(|it| it.text() == Some(name)));
    let (leading, beside) = leading.copied().unwrap_or(("event", EVENT));
    for key in names {
        let name = key.text().unwrap_or_default();
        if name != leading && !beside.contains(&name) {
            let message = format!("`{name}` cannot be used with `{leading}`");
            let finding = Diagnostic::error("misplaced-key", key.span.clone(), message);
            findings.push(finding.with_help("a step has one action; add another step"));
        }
    }
    let keys = map.map(|it| ACTION.read_node(it)).unwrap_or_default();
    let value = map.map_or(node, |it| it.get(leading));
    let kind = |code| NameKind { noun: leading, code };
    match leading {
        "table" => {
            check_names(value, kind("unknown-table"), &known.tables, findings);
            StepAction::Table { id: keys.table, inputs: keys.inputs }
        }
        "run" => StepAction::Run(keys.run),
        "signal" => {
            check_names(value, kind("unknown-name"), &known.signals, findings);
            StepAction::Signal { name: keys.signal, fields: keys.fields }
        }
        "task" => StepAction::Task(keys.task),
        "failure" => StepAction::Failure { named: keys.task.named, text: keys.task.failure },
        _ => event(value, map, keys, findings),
    }
}

/// Returns an event with its payload.
fn event(
    name: Option<&Node>,
    map: Option<&Node>,
    keys: ActionKeys,
    findings: &mut Vec<Diagnostic>,
) -> StepAction {
    let mut payload = keys.payload;
    let kind = match name {
        Some(name) => EventKind::find(name.text().unwrap_or_default()),
        // A tool without an event is about to run.
        None if keys.command.is_some() || payload.tool_name.is_some() => {
            Some(EventKind::PreToolUse)
        }
        None => Some(EventKind::Stop),
    };
    if kind.is_none() {
        check_names(name, NameKind::EVENT, EVENT_NAMES, findings);
    }
    if let Some((kind, map)) = kind.zip(map) {
        complain_of_idle(kind, map, findings);
    }
    payload.hook_event_name = kind.map(EventKind::client_name).unwrap_or_default();
    if let Some(command) = keys.command {
        payload.tool_name.get_or_insert_with(|| "Bash".to_owned());
        payload.tool_input = Some(json!({"command": command}));
    }
    let mut fields = Map::new();
    if let Value::Object(payload) = json!(payload) {
        fields.extend(payload.into_iter().filter(|(_, value)| !value.is_null()));
    }
    fields.extend(keys.fields);
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
