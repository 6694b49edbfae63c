//! Shape of a case file: one table for each map. The loader, the JSON Schema and the documentation
//! use it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use policyd_policy::approval::ApprovalLevel;
use policyd_policy::field_value::Word;
use policyd_policy::shapes::FileShape;
use policyd_yaml::schema::json_schema;
use policyd_yaml::shape::{Field, Kind, field, required};

const TEXTS: Kind = Kind::List(&Kind::Text);
const TEXT_OR_TEXTS: Kind = Kind::OneOrList(&Kind::Text);
const COUNT: Kind = Kind::Int { min: 0, max: 1_000_000_000 };

const MATCH: &[Field] = &[
    field("equals", Kind::Text, "The whole text; `\"\"` for an empty text."),
    field("contains", TEXT_OR_TEXTS, "Texts that must occur."),
    field("lacks", TEXT_OR_TEXTS, "Texts that must not occur."),
    field("matches", Kind::Regex, "A regex that must match somewhere in the text."),
];
/// Condition of a text: required parts, or a map of conditions.
const SAID: Kind = Kind::Either(&[Kind::Text, TEXTS, Kind::Record(MATCH)]);

const USAGE: &[Field] = &[
    field("model", Kind::Text, "Model of the call; without it, the tokens cost nothing."),
    field("input", COUNT, "Uncached input tokens."),
    field("output", COUNT, "Output tokens."),
    field("cache_read", COUNT, "Tokens read from the cache."),
    field("cache_creation", COUNT, "Tokens written to the cache."),
];

const TODO_STATES: Kind = Kind::Choice(&["pending", "in_progress", "completed"]);

/// One happening in a session. [`HAPPENINGS`] lists its main keys.
pub(super) const HAPPENING: &[Field] = &[
    field("user", Kind::Text, "Prompt of the user."),
    field("branch", Kind::Text, "The git branch from this prompt on."),
    field("assistant", Kind::Text, "Text of the agent."),
    field("edit", Kind::Text, "File that the agent writes, relative to the project."),
    field("text", Kind::Text, "Content of the written file."),
    field("ran", Kind::Text, "Shell command that the agent runs."),
    field("prints", Kind::Text, "Output of the command."),
    field("failed", Kind::Bool, "Whether the command, or the tool, failed."),
    field("todos", Kind::Map(&TODO_STATES), "New content of the agent's todo list."),
    field("tool", Kind::Text, "Tool that the agent calls."),
    field("input", Kind::Map(&Kind::Any), "Input of the tool."),
    field("result", Kind::Text, "Result of the tool; `ok` by default."),
    field("pending", Kind::Bool, "Whether the tool has no result yet."),
    field("usage", Kind::Record(USAGE), "Token usage of a turn."),
    field("compacted", Kind::Bool, "Whether the client compacted the conversation."),
    field("record", Kind::Map(&Kind::Any), "A line of the transcript, unchanged."),
    field(
        "times",
        Kind::Int { min: 1, max: 500 },
        "Number of repetitions; `{{n}}` is the number of each.",
    ),
];

/// Main keys of a happening, of which it has exactly one, each with its optional keys.
pub const HAPPENINGS: &[(&str, &[&str])] = &[
    ("user", &["branch"]),
    ("assistant", &["usage"]),
    ("edit", &["text"]),
    ("ran", &["prints", "failed"]),
    ("todos", &[]),
    ("tool", &["input", "result", "failed", "pending"]),
    ("usage", &[]),
    ("compacted", &[]),
    ("record", &[]),
];

const READING: &[Field] = &[
    field("prints", Kind::Any, "Output of the program; a map or a list becomes JSON."),
    field("code", Kind::Int { min: 0, max: 255 }, "Exit code; 0 by default."),
    field("stderr", Kind::Text, "Standard error of the program."),
    field("missing", Kind::Bool, "Whether the program is not installed."),
    field("timeout", Kind::Bool, "Whether the program exceeds its time limit."),
    field("takes", Kind::Duration, "Duration of the program."),
];

const STATE_BEFORE: &[Field] = &[
    field("total_blocks", COUNT, "Number of blocks in the session."),
    field("consecutive_blocks", COUNT, "Number of blocks since the last prompt of the user."),
    field("turns", COUNT, "Number of stops that changed the state."),
];

const PACK_CHANGES: &[Field] = &[
    field("enable", TEXTS, "Checks and probes to enable."),
    field("disable", TEXTS, "Checks, probes and guards to disable."),
    field("voice", Kind::Text, "Voice of the messages."),
    field("preferences", Kind::Map(&Kind::Bool), "Fixed values of preferences."),
];

const GIVEN: &[Field] = &[
    field("files", Kind::Map(&Kind::Text), "Files by path, relative to the project."),
    field("removed", TEXTS, "Paths of files that are removed."),
    field("now", Kind::Date, "The wall clock."),
    field("env", Kind::Map(&Kind::Text), "Environment variables."),
    field("branch", Kind::Text, "The git branch that is checked out."),
    field("remote", Kind::Text, "URL of the git remote `origin`."),
    field(
        "tree_clean",
        Kind::Bool,
        "Whether the git work tree has no changes; `false` by default.",
    ),
    field("tracked", TEXTS, "Paths that git tracks, relative to the project; none by default."),
    field(
        "uncommitted",
        TEXTS,
        "Paths with changes that are not committed, relative to the project; none by default.",
    ),
    field(
        "approvals",
        Kind::Choice(ApprovalLevel::NAMES),
        "Which permission prompts policyd answers, as in the user's `config.yaml`; `none` by default.",
    ),
    field("interactive", Kind::Bool, "Whether a user is present; `true` by default."),
    field(
        "probes",
        Kind::Map(&Kind::OneOrList(&Kind::Either(&[Kind::Text, Kind::Record(READING)]))),
        "Probe results, by id. A list is used in order, and its last result repeats.",
    ),
    field("state", Kind::Record(STATE_BEFORE), "Saved state of the session."),
    field(
        "breakers",
        Kind::Map(&Kind::Choice(&["open"])),
        "Circuit breakers that opened just now, by name.",
    ),
    field("disk_full", Kind::Bool, "Whether writes fail."),
    field("pack", Kind::Record(PACK_CHANGES), "Changes of the pack."),
];

const TASK: &[Field] = &[
    required("id", Kind::Text, "Id of the task."),
    field("type", Kind::Text, "`shell`, `subagent`, …"),
    field("status", Kind::Text, "`running`, or another status of the client."),
    field("description", Kind::Text, "Description of the task."),
];

const PAYLOAD: &[Field] = &[
    field("event", Kind::Text, "The event; `stop` by default."),
    field("session", Kind::Text, "Id of the session; `session-1` by default."),
    field("agent", Kind::Text, "Id of the subagent in which the event happens."),
    field("agent_type", Kind::Text, "Type of that subagent."),
    field("prompt", Kind::Text, "Id of the current prompt."),
    field("permission_mode", Kind::Text, "`default`, `plan`, `acceptEdits`, …"),
    field("last_message", Kind::Text, "The agent's last text, as the client sends it."),
    field("background", Kind::List(&Kind::Record(TASK)), "Background tasks."),
    field("command", Kind::Text, "Command line of the tool `Bash`."),
    field("tool", Kind::Text, "Tool that is about to run, or that ran."),
    field("input", Kind::Map(&Kind::Any), "Input of the tool."),
    field("said", Kind::Text, "Prompt of the user, at `user_prompt_submit`."),
    field("fields", Kind::Map(&Kind::Any), "Further fields of the payload, or of the signal."),
    field("table", Kind::Text, "Instead of an event: id of a decision table to evaluate."),
    field("inputs", Kind::Map(&Kind::Any), "Inputs of the table."),
    field(
        "run",
        Kind::Map(&Kind::Any),
        "Instead: values of a run, for which the triggers of signals are evaluated.",
    ),
    field("signal", Kind::Text, "Instead: name of a signal to create."),
    field("task", Kind::Text, "Instead: id of a task with a failed attempt."),
    field("title", Kind::Text, "Title of the task."),
    field("approach", Kind::Text, "Description of the attempt."),
    field("failure", Kind::Text, "Error of the attempt. Without `task`: the error to classify."),
    field("named", Kind::Text, "Name of the error in a hook payload."),
];

/// Keys that can be used with `event`.
pub(super) const EVENT: &[&str] = &[
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

/// Result of a check, one word.
const VERDICT: Kind = Kind::Choice(&[
    "passed",
    "fired",
    "skipped",
    "unknown",
    "block",
    "warn",
    "log",
    "satisfied",
    "unsatisfied",
    "blocks",
    "warns",
    "recorded",
]);

const VERDICT_PARTS: &[Field] = &[
    field(
        "status",
        Kind::Choice(&["passed", "fired", "skipped", "unknown", "satisfied", "unsatisfied"]),
        "Result; `satisfied` is an alias of `passed`, and `unsatisfied` of `fired`.",
    ),
    field(
        "consequence",
        Kind::Choice(&["none", "log", "warn", "block", "recorded", "warns", "blocks"]),
        "Effect; `recorded` is an alias of `log`, `warns` of `warn`, and `blocks` of `block`.",
    ),
    field("why", SAID, "Reason why it was skipped or is unknown."),
    field("softened", SAID, "Reason why a blocker only warns."),
    field("details", SAID, "The sentence that explains the result."),
    field("evidence", SAID, "Evidence, one line each."),
    field("error", SAID, "Error of a probe or of another external input."),
];

const LOGGED: &[Field] = &[
    field("decision", Kind::Text, "The decision."),
    field("spoken", Kind::Bool, "Whether a block was sent."),
    field("release", Kind::Text, "Reason of a release."),
    field("saved", Kind::Text, "Result of the save."),
];

const EFFECTS: &[Field] = &[
    field("probes", TEXTS, "Probes that ran, in order; `[]` for none."),
    field(
        "saved",
        Kind::Choice(&["durable", "degraded", "not saved", "unchanged"]),
        "Result of the save.",
    ),
    field(
        "logged",
        Kind::Either(&[Kind::Bool, Kind::Record(LOGGED)]),
        "Whether the decision log has a new entry, or the entry.",
    ),
];

const STATE_AFTER: &[Field] = &[
    field("total_blocks", COUNT, "Number of blocks in the session."),
    field("consecutive_blocks", COUNT, "Number of blocks in this episode."),
    field("turns", COUNT, "Number of stops that changed the state."),
    field("releases", COUNT, "Number of releases."),
    field("quality_score", COUNT, "Share of passed checks, 0 to 100."),
    field("workflow_compliant", Kind::Bool, "Whether no blocker failed."),
];

const EXPECT: &[Field] = &[
    field(
        "decision",
        Kind::Choice(&["none", "allow", "defer", "ask", "block", "deny", "halt"]),
        "Decision; `none` lets the agent stop, `deny` is an alias of `block`.",
    ),
    field("reason", SAID, "Reason for the agent."),
    field(
        "release",
        Kind::Choice(&["none", "max_blocks", "same_failure", "no_progress", "already_released"]),
        "Reason of a release.",
    ),
    field("session_type", Kind::Text, "Type of the session."),
    field("no_opinion", SAID, "Reason why no rule was evaluated."),
    field(
        "considerations",
        Kind::Map(&Kind::Either(&[VERDICT, Kind::Record(VERDICT_PARTS)])),
        "Results of checks, by id.",
    ),
    field("notice", SAID, "Text for the user."),
    field("context", SAID, "Additional text for the agent."),
    field("summary", SAID, "The line about the check results."),
    field("problems", SAID, "Problems that are reported to the user, one line each."),
    field(
        "guards",
        Kind::Map(&Kind::Choice(&["passed", "fired", "unknown", "silent"])),
        "Results of guards, by id.",
    ),
    field("classes", TEXTS, "Classes of the vocabulary that the command of the call belongs to."),
    field("decided_by", TEXTS, "Guards that determine the decision, in order."),
    field(
        "updated_input",
        Kind::Either(&[Kind::Choice(&["none"]), Kind::Map(&Kind::Any)]),
        "Changed fields of the tool's input; `none` if it is unchanged.",
    ),
    field("updated_output", Kind::Any, "Changed result of the tool; `none` if it is unchanged."),
    field("preferences", Kind::Map(&Kind::Bool), "Preferences that were searched for."),
    field("effects", Kind::Record(EFFECTS), "Effects on the machine."),
    field("state", Kind::Record(STATE_AFTER), "Saved state of the session after the step."),
    field(
        "breakers",
        Kind::Map(&Kind::Choice(&["closed", "open", "half_open"])),
        "States of circuit breakers after the step, by name.",
    ),
    field(
        "tasks",
        Kind::Map(&Kind::Choice(&[
            "pending",
            "in-progress",
            "blocked",
            "dead-letter",
            "abandoned",
            "gone",
        ])),
        "Queues of tasks after the step, by id; `gone` is in no queue.",
    ),
    field("signals", TEXTS, "Names of pending signals, sorted."),
    field("questions", SAID, "Requests to humans, one line each: severity, trigger, title."),
    field("answer", Kind::Text, "Answer of the table."),
    field("why", SAID, "Reason of the answer."),
    field("class", Kind::Text, "Class of the failure."),
    field("due", TEXTS, "Names of due signals, sorted."),
];

const EXPECTATION: Kind =
    Kind::Either(&[Kind::Choice(&["snapshot", "snapshot_json"]), Kind::Record(EXPECT)]);
const ON: Kind = Kind::Either(&[Kind::Text, Kind::Record(PAYLOAD)]);
const TRANSCRIPT: Kind = Kind::Either(&[Kind::Text, Kind::List(&Kind::Record(HAPPENING))]);

const STEP: &[Field] = &[
    field("given", Kind::Record(GIVEN), "Changes before the action."),
    field("after", Kind::Duration, "Time that passes before the action."),
    field("transcript", TRANSCRIPT, "Additions to the transcript before the action."),
    field("on", ON, "The event: its name, or a map with its payload."),
    required("expect", EXPECTATION, "Expected result."),
];

/// A case.
pub const CASE: &[Field] = &[
    required("name", Kind::Text, "Name of the situation, unique in the file."),
    field("reason", Kind::Text, "Why the case matters."),
    field("skip", Kind::Text, "Reason why the case is skipped."),
    field(
        "each",
        Kind::List(&Kind::Map(&Kind::Any)),
        "Maps of values. The case runs once for each map; `{{key}}` is its value.",
    ),
    field("given", Kind::Record(GIVEN), "State before the first step."),
    field("transcript", TRANSCRIPT, "Transcript: a list of happenings, or a file beside this one."),
    field("on", ON, "The event: its name, or a map with its payload."),
    field("expect", EXPECTATION, "Expected result; `snapshot` compares the whole report."),
    field("steps", Kind::List(&Kind::Record(STEP)), "Several events of one session, in order."),
];

/// Returns the JSON Schema of a case file: the schema of its shape, with `{{name}}` wherever a
/// value of `each` is possible. The filled value is checked later.
#[must_use]
pub fn schema() -> Value {
    let mut schema = json_schema(&FILE.kind, FILE.file.trim_end_matches(".yaml"));
    if let Some(Value::Object(keys)) = schema.pointer_mut("/items/properties") {
        for (key, value) in keys.iter_mut().filter(|(key, _)| *key != "each") {
            with_placeholders(value, key != "name");
        }
    }
    let mut definitions = Map::new();
    SharedSchemas::of(&schema).share(&mut schema, "case", &mut definitions);
    if let Value::Object(fields) = &mut schema {
        let placeholder = json!({"type": "string", "pattern": PLACEHOLDER_PATTERN});
        definitions.insert("placeholder".to_owned(), placeholder);
        fields.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Length of a schema as text above which it is written once.
const SHARED_BYTES_MIN: usize = 200;

/// How often each schema occurs, without its description.
struct SharedSchemas {
    times: BTreeMap<String, usize>,
    /// Names of the definitions so far.
    names: BTreeMap<String, String>,
}

impl SharedSchemas {
    fn of(schema: &Value) -> Self {
        let mut shared = Self { times: BTreeMap::new(), names: BTreeMap::new() };
        shared.count(&mut schema.clone());
        shared
    }

    fn count(&mut self, schema: &mut Value) {
        let times = self.times.entry(body(schema)).or_default();
        *times = times.saturating_add(1);
        if *times == 1 {
            parts(schema).into_iter().for_each(|(_, it)| self.count(it));
        }
    }

    /// Moves schemas that occur several times to definitions, named by the key where they occur first.
    fn share(&mut self, schema: &mut Value, key: &str, definitions: &mut Map<String, Value>) {
        let text = body(schema);
        let is_shared = text.len() >= SHARED_BYTES_MIN && self.times.get(&text) > Some(&1);
        if let Some(name) = self.names.get(&text).filter(|_| is_shared) {
            refer(schema, name);
            return;
        }
        for (name, part) in parts(schema) {
            self.share(part, name.unwrap_or(key), definitions);
        }
        if is_shared {
            let numbered = (2..).map(|number: usize| format!("{key}_{number}"));
            let mut names = std::iter::once(key.to_owned()).chain(numbered);
            let Some(name) = names.find(|it| !definitions.contains_key(it)) else { return };
            let mut definition = schema.clone();
            if let Value::Object(fields) = &mut definition {
                fields.remove("description");
            }
            definitions.insert(name.clone(), definition);
            refer(schema, &name);
            self.names.insert(text, name);
        }
    }
}

/// Returns a schema as text, without its description.
fn body(schema: &Value) -> String {
    let mut schema = schema.clone();
    if let Value::Object(fields) = &mut schema {
        fields.remove("description");
    }
    schema.to_string()
}

/// Replaces a schema by a reference to its definition. The description stays.
fn refer(schema: &mut Value, name: &str) {
    let description = schema.get("description").cloned();
    let mut fields = Map::new();
    fields.extend(description.map(|it| ("description".to_owned(), it)));
    fields.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
    *schema = Value::Object(fields);
}

/// Returns the schemas in a schema, those of keys with the key.
fn parts(schema: &mut Value) -> Vec<(Option<&str>, &mut Value)> {
    let mut found = Vec::new();
    let Value::Object(fields) = schema else { return found };
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(keys)) => {
                found.extend(keys.iter_mut().map(|(key, it)| (Some(key.as_str()), it)));
            }
            ("anyOf", Value::Array(kinds)) => found.extend(kinds.iter_mut().map(|it| (None, it))),
            ("items" | "additionalProperties", value @ Value::Object(_)) => {
                found.push((None, value));
            }
            _ => {}
        }
    }
    found
}

/// Extends a schema and its parts to accept placeholders, unless they accept any text.
fn with_placeholders(schema: &mut Value, itself: bool) {
    let Value::Object(fields) = schema else { return };
    for (key, value) in fields.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(keys)) => {
                keys.values_mut().for_each(|it| with_placeholders(it, true));
            }
            ("items" | "additionalProperties", value) => with_placeholders(value, true),
            ("anyOf", Value::Array(kinds)) => {
                kinds.iter_mut().for_each(|it| with_placeholders(it, false));
            }
            _ => {}
        }
    }
    let any_text = fields.get("type").is_some_and(|it| it == "string")
        && !fields.contains_key("pattern")
        && !fields.contains_key("format");
    let anything = !["type", "enum", "anyOf"].iter().any(|it| fields.contains_key(*it));
    if itself && !any_text && !anything {
        let doc = fields.remove("description");
        let strict = Value::Object(std::mem::take(fields));
        fields.extend(doc.map(|it| ("description".to_owned(), it)));
        let placeholder = json!({"$ref": "#/$defs/placeholder"});
        fields.insert("anyOf".to_owned(), json!([strict, placeholder]));
    }
}

/// Pattern of a text with a placeholder.
const PLACEHOLDER_PATTERN: &str = r"\{\{[A-Za-z0-9_]+\}\}";

pub use policyd_policy::shapes::CASES_FOLDER as FOLDER;

/// Shape of a case file.
pub const FILE: FileShape = FileShape { file: "cases.yaml", kind: Kind::List(&Kind::Record(CASE)) };
