//! What a case file may hold: one table per map, read by the loader, the JSON Schema and people.

use serde_json::{Value, json};

use crate::policy::shapes::FileShape;
use crate::source::schema::json_schema;
use crate::source::shape::{Field, Kind, field, required};

const TEXTS: Kind = Kind::List(&Kind::Text);
const TEXT_OR_TEXTS: Kind = Kind::OneOrList(&Kind::Text);
const COUNT: Kind = Kind::Int { min: 0, max: 1_000_000_000 };

const MATCH: &[Field] = &[
    field("equals", Kind::Text, "The whole text; `\"\"` for nothing at all."),
    field("contains", TEXT_OR_TEXTS, "Texts that must be in it."),
    field("lacks", TEXT_OR_TEXTS, "Texts that must not be in it."),
    field("matches", Kind::Regex, "A regex that must match somewhere in it."),
];
/// What a text must be: texts it must contain, or more exactly.
const SAID: Kind = Kind::Either(&[Kind::Text, TEXTS, Kind::Record(MATCH)]);

const USAGE: &[Field] = &[
    field("input", COUNT, "Tokens read anew."),
    field("output", COUNT, "Tokens written."),
    field("cache_read", COUNT, "Tokens read from the cache."),
    field("cache_creation", COUNT, "Tokens put into the cache."),
];

const TODO_STATES: Kind = Kind::Choice(&["pending", "in_progress", "completed"]);

/// One thing that happened in a session; the keys that say what are in [`HAPPENINGS`].
pub(super) const HAPPENING: &[Field] = &[
    field("user", Kind::Text, "The human says this."),
    field("branch", Kind::Text, "The git branch from here on."),
    field("assistant", Kind::Text, "The agent says this."),
    field("edit", Kind::Text, "The agent writes this file; relative to the project."),
    field("text", Kind::Text, "What the file holds then."),
    field("ran", Kind::Text, "The agent runs this shell command."),
    field("prints", Kind::Text, "What the command prints."),
    field("failed", Kind::Bool, "Whether the command, or the tool, failed."),
    field("todos", Kind::Map(&TODO_STATES), "The agent's todo list becomes this."),
    field("tool", Kind::Text, "The agent calls this tool."),
    field("input", Kind::Map(&Kind::Any), "Input of the tool."),
    field("result", Kind::Text, "What the tool answers; `ok` by default."),
    field("pending", Kind::Bool, "The tool has not answered yet."),
    field("usage", Kind::Record(USAGE), "Tokens of a turn."),
    field("compacted", Kind::Bool, "The client compacted the conversation."),
    field("record", Kind::Map(&Kind::Any), "A line of the transcript as it is."),
    field("times", Kind::Int { min: 1, max: 500 }, "How often; `{{n}}` is the number."),
];

/// The keys of which a happening has exactly one, each with those that may stand beside it.
pub(super) const HAPPENINGS: &[(&str, &[&str])] = &[
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
    field("prints", Kind::Any, "What the program prints; a map or a list becomes JSON."),
    field("code", Kind::Int { min: 0, max: 255 }, "Its exit code; 0 by default."),
    field("stderr", Kind::Text, "What it writes to its standard error."),
    field("missing", Kind::Bool, "The program is not installed."),
    field("timeout", Kind::Bool, "It does not answer in time."),
    field("takes", Kind::Duration, "Time it takes."),
];

const STATE_BEFORE: &[Field] = &[
    field("total_blocks", COUNT, "Blocks of the session so far."),
    field("consecutive_blocks", COUNT, "Blocks since the human last said something."),
    field("turns", COUNT, "Stops that moved the state."),
];

const PACK_CHANGES: &[Field] = &[
    field("enable", TEXTS, "Considerations and probes that are switched on."),
    field("disable", TEXTS, "Considerations, probes and guards that are switched off."),
    field("voice", Kind::Text, "Voice of the messages."),
    field("preferences", Kind::Map(&Kind::Bool), "Fixed answers of preferences."),
];

const GIVEN: &[Field] = &[
    field("files", Kind::Map(&Kind::Text), "Files by path, relative to the project."),
    field("now", Kind::Date, "The wall clock."),
    field("env", Kind::Map(&Kind::Text), "Variables of the environment."),
    field("branch", Kind::Text, "The git branch that is checked out."),
    field("remote", Kind::Text, "Address of the git remote `origin`."),
    field(
        "tree_clean",
        Kind::Bool,
        "Whether the git work tree has no changes; `false` by default.",
    ),
    field("interactive", Kind::Bool, "Whether a human watches; `true` by default."),
    field(
        "probes",
        Kind::Map(&Kind::OneOrList(&Kind::Either(&[Kind::Text, Kind::Record(READING)]))),
        "What probes answer, by id; of a list each is given once, the last one for ever.",
    ),
    field("state", Kind::Record(STATE_BEFORE), "What the session remembers."),
    field(
        "breakers",
        Kind::Map(&Kind::Choice(&["open"])),
        "Circuit breakers that tripped just now, by name.",
    ),
    field("disk_full", Kind::Bool, "Nothing can be written any more."),
    field("pack", Kind::Record(PACK_CHANGES), "What is set otherwise than in the pack."),
];

const TASK: &[Field] = &[
    required("id", Kind::Text, "Its id."),
    field("type", Kind::Text, "`shell`, `subagent`, …"),
    field("status", Kind::Text, "`running` or another word of the client's."),
    field("description", Kind::Text, "What it does."),
];

const PAYLOAD: &[Field] = &[
    field("event", Kind::Text, "The event; `stop` by default."),
    field("session", Kind::Text, "Id of the session; `session-1` by default."),
    field("agent", Kind::Text, "Id of the subagent it happens in."),
    field("agent_type", Kind::Text, "Type of that subagent."),
    field("prompt", Kind::Text, "Id of the prompt that is worked on."),
    field("permission_mode", Kind::Text, "`default`, `plan`, `acceptEdits`, …"),
    field("last_message", Kind::Text, "The agent's last text, as the client tells it."),
    field("background", Kind::List(&Kind::Record(TASK)), "Tasks in the background."),
    field("command", Kind::Text, "The command line that the tool `Bash` is to run."),
    field("tool", Kind::Text, "The tool that is to run, or that ran."),
    field("input", Kind::Map(&Kind::Any), "Its input."),
    field("said", Kind::Text, "What the human just said, at `user_prompt_submit`."),
    field("fields", Kind::Map(&Kind::Any), "Further fields of the payload, or of the signal."),
    field("table", Kind::Text, "Instead of an event: a decision table is asked."),
    field("inputs", Kind::Map(&Kind::Any), "What the table is asked."),
    field("run", Kind::Map(&Kind::Any), "Instead: a run of which this is known; signals are due."),
    field("signal", Kind::Text, "Instead: a signal of this name is created."),
    field("task", Kind::Text, "Instead: an attempt at the task of this id fails."),
    field("title", Kind::Text, "Title of the task."),
    field("approach", Kind::Text, "What was tried."),
    field("failure", Kind::Text, "What it failed with; alone, a failure is classified."),
    field("named", Kind::Text, "The name that a hook gives the error."),
];

/// The keys that stand beside `event`.
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

/// What can happen, each with the keys that may stand beside it; the first that is there counts.
pub(super) const DEEDS: &[(&str, &[&str])] = &[
    ("event", EVENT),
    ("table", &["inputs"]),
    ("run", &[]),
    ("signal", &["fields"]),
    ("task", &["title", "approach", "failure", "named"]),
    ("failure", &["named"]),
];

/// What a consideration comes to, in one word.
const VERDICT: Kind = Kind::Choice(&[
    "satisfied",
    "unsatisfied",
    "skipped",
    "unknown",
    "blocks",
    "warns",
    "recorded",
]);

const VERDICT_PARTS: &[Field] = &[
    field("status", Kind::Choice(&["satisfied", "unsatisfied", "skipped", "unknown"]), "Status."),
    field(
        "consequence",
        Kind::Choice(&["none", "recorded", "warns", "blocks"]),
        "What that leads to.",
    ),
    field("why", SAID, "Why it was skipped or could not be judged."),
    field("softened", SAID, "Why a blocker only warns."),
    field("details", SAID, "The sentence that explains the result."),
    field("evidence", SAID, "What decided, one line each."),
    field("error", SAID, "What went wrong outside."),
];

const LOGGED: &[Field] = &[
    field("decision", Kind::Text, "The decision."),
    field("spoken", Kind::Bool, "Whether it was a block that was spoken."),
    field("release", Kind::Text, "Why the agent was let go."),
    field("saved", Kind::Text, "What became of the state."),
];

const EFFECTS: &[Field] = &[
    field("probes", TEXTS, "Probes that were run, in order; `[]` for none."),
    field(
        "saved",
        Kind::Choice(&["durable", "degraded", "not saved", "unchanged"]),
        "What became of the state.",
    ),
    field(
        "logged",
        Kind::Either(&[Kind::Bool, Kind::Record(LOGGED)]),
        "Whether there is a new entry in the decision log, or what it says.",
    ),
];

const STATE_AFTER: &[Field] = &[
    field("total_blocks", COUNT, "Blocks of the session."),
    field("consecutive_blocks", COUNT, "Blocks in this episode."),
    field("turns", COUNT, "Stops that moved the state."),
    field("releases", COUNT, "Stops that were let go although something was amiss."),
    field("quality_score", COUNT, "Share of satisfied checks, 0 to 100."),
    field("workflow_compliant", Kind::Bool, "Whether nothing stood against the stop."),
];

const EXPECT: &[Field] = &[
    field(
        "decision",
        Kind::Choice(&["none", "allow", "defer", "ask", "block", "deny", "halt"]),
        "What the client is told; `none` lets the agent stop, `deny` is `block`.",
    ),
    field(
        "release",
        Kind::Choice(&["none", "max_blocks", "same_failure", "no_progress", "already_released"]),
        "Why the agent was let go although something is amiss.",
    ),
    field("session_type", Kind::Text, "What kind of work the session is."),
    field("no_opinion", SAID, "Why nothing was judged."),
    field(
        "considerations",
        Kind::Map(&Kind::Either(&[VERDICT, Kind::Record(VERDICT_PARTS)])),
        "What single considerations come to, by id.",
    ),
    field("reason", SAID, "What the agent is told."),
    field("notice", SAID, "What the user is told."),
    field("context", SAID, "What the agent is told beside what it does."),
    field("summary", SAID, "The line about the last check."),
    field("problems", SAID, "What the user should know besides, one line each."),
    field(
        "guards",
        Kind::Map(&Kind::Choice(&["fired", "silent", "unknown"])),
        "What single guards come to, by id.",
    ),
    field("decided_by", TEXTS, "Guards whose answer the decision is, in their order."),
    field(
        "updated_input",
        Kind::Either(&[Kind::Choice(&["none"]), Kind::Map(&Kind::Any)]),
        "Fields of the input that the tool is to run with; `none` where it stays as it is.",
    ),
    field(
        "updated_output",
        Kind::Any,
        "The result that the agent reads in place of the tool's own; `none` where it stays as it is.",
    ),
    field("preferences", Kind::Map(&Kind::Bool), "Preferences that were looked for."),
    field("effects", Kind::Record(EFFECTS), "What was done outside."),
    field("state", Kind::Record(STATE_AFTER), "What the session remembers now."),
    field(
        "breakers",
        Kind::Map(&Kind::Choice(&["closed", "open", "half_open"])),
        "Where circuit breakers stand now, by name.",
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
        "Where tasks are now, by id; `gone` is on no list.",
    ),
    field("signals", TEXTS, "Names of the signals that wait, in order of their names."),
    field("questions", SAID, "What humans are asked, a line each: severity, trigger, title."),
    field("answer", Kind::Text, "What the table answers."),
    field("why", SAID, "Why it does."),
    field("class", Kind::Text, "What the failure is."),
    field("due", TEXTS, "Names of the signals that are due, in order of their names."),
];

const EXPECTATION: Kind =
    Kind::Either(&[Kind::Choice(&["snapshot", "snapshot_json"]), Kind::Record(EXPECT)]);
const ON: Kind = Kind::Either(&[Kind::Text, Kind::Record(PAYLOAD)]);
const TRANSCRIPT: Kind = Kind::Either(&[Kind::Text, Kind::List(&Kind::Record(HAPPENING))]);

const STEP: &[Field] = &[
    field("given", Kind::Record(GIVEN), "What changes before it."),
    field("after", Kind::Duration, "Time that passes before it."),
    field("transcript", TRANSCRIPT, "What happens before it."),
    field("on", ON, "The event: its name, or a map with its payload."),
    required("expect", EXPECTATION, "What must come of it."),
];

/// A case.
pub const CASE: &[Field] = &[
    required("name", Kind::Text, "The situation in a few words; its own in the file."),
    field("reason", Kind::Text, "Why it matters; for people."),
    field("skip", Kind::Text, "Why it is not run."),
    field(
        "each",
        Kind::List(&Kind::Map(&Kind::Any)),
        "Runs it once for each; `{{key}}` is filled.",
    ),
    field("given", Kind::Record(GIVEN), "What there is before."),
    field("transcript", TRANSCRIPT, "What happened: a list, or a file beside this one."),
    field("on", ON, "The event: its name, or a map with its payload."),
    field("expect", EXPECTATION, "What must come of it; `snapshot` compares the whole report."),
    field("steps", Kind::List(&Kind::Record(STEP)), "Several events of one session, in order."),
];

/// The JSON Schema of a case file: that of its shape, and `{{name}}` wherever a value of `each` may
/// come, which is checked once it is filled.
#[must_use]
pub fn schema() -> Value {
    let mut schema = json_schema(&FILE.kind, FILE.file.trim_end_matches(".yaml"));
    if let Some(Value::Object(keys)) = schema.pointer_mut("/items/properties") {
        for (key, value) in keys.iter_mut().filter(|(key, _)| *key != "each") {
            with_placeholders(value, key != "name");
        }
    }
    if let Value::Object(fields) = &mut schema {
        let placeholder = json!({"type": "string", "pattern": PLACEHOLDER_PATTERN});
        fields.insert("$defs".to_owned(), json!({"placeholder": placeholder}));
    }
    schema
}

/// Lets a schema, and those of what is in it, take a placeholder, unless any text fits anyway.
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

/// A text with a placeholder in it.
const PLACEHOLDER_PATTERN: &str = r"\{\{[A-Za-z0-9_]+\}\}";

/// Case files lie in this folder of a pack.
pub const FOLDER: &str = "tests";

/// A case file.
pub const FILE: FileShape = FileShape { file: "cases.yaml", kind: Kind::List(&Kind::Record(CASE)) };
