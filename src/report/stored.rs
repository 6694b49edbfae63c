//! Shapes of what the program writes: stored files, logs, and the JSON of lint. Readers of them are
//! lenient: an unknown key is kept, and what may be absent may be null.

mod queues;
mod runs;

use crate::source::schema::{Writer, json_schema};
use crate::source::shape::{Field, Kind, field, required};
use serde_json::Value;

const COUNT: Kind = Kind::Int { min: 0, max: i64::MAX };
const EXIT_CODE: Kind = Kind::Int { min: -0x8000_0000, max: 0x7fff_ffff };
const TEXTS: Kind = Kind::List(&Kind::Text);

const DIAGNOSTIC: &[Field] = &[
    required("timestamp", Kind::Date, "When."),
    required(
        "operation",
        Kind::Text,
        "`state_load`, `state_save`, `state_save_retry`, `verification_read`, `validation`, \
         `state_reset`.",
    ),
    field("session_id", Kind::Text, "The session."),
    field("file_path", Kind::Text, "The state file."),
    field("success", Kind::Bool, "`false` where it failed."),
    field("reason", Kind::Text, "Why."),
    field("error", Kind::Text, "Why, by the seed's name."),
    field("code", COUNT, "The seed's error code."),
    field("counter_before", COUNT, "Blocks before."),
    field("counter_after", COUNT, "Blocks after."),
    field("retry_count", COUNT, "Attempts after the first one."),
];

const FILE: Field = required("file", Kind::Text, "The file.");
const LINE: Field = required("line", COUNT, "First line, from 1.");
const COLUMN: Field = required("column", COUNT, "First column in characters, from 1.");
const END_LINE: Field = required("end_line", COUNT, "Last line.");
const END_COLUMN: Field = required("end_column", COUNT, "One past the last column.");

const RELATED: &[Field] = &[
    required("message", Kind::Any, "What it has to do with the finding; may be empty."),
    FILE,
    LINE,
    COLUMN,
    END_LINE,
    END_COLUMN,
];

const EDIT: &[Field] = &[
    required("text", Kind::Any, "What comes there; may be empty."),
    FILE,
    LINE,
    COLUMN,
    END_LINE,
    END_COLUMN,
];

const FIX: &[Field] = &[
    required("safe", Kind::Bool, "Whether it changes no decision."),
    required("edits", Kind::List(&Kind::Record(EDIT)), "What is put where."),
];

const FINDING: &[Field] = &[
    required("code", Kind::Text, "Code of the rule."),
    required("name", Kind::Text, "Name of the rule."),
    required("level", Kind::Choice(&["note", "warning", "error"]), "How bad it is."),
    required("message", Kind::Text, "What is wrong."),
    FILE,
    LINE,
    COLUMN,
    END_LINE,
    END_COLUMN,
    field("help", Kind::Text, "The cure."),
    field("note", Kind::Text, "What it does to decisions."),
    required("related", Kind::List(&Kind::Record(RELATED)), "Other places."),
    field("fix", Kind::Record(FIX), "The cure as an edit."),
    field("fingerprint", Kind::Text, "What it is recognised by when lines move."),
    field("reason", Kind::Text, "Why a comment silences it."),
];

const SUMMARY: &[Field] = &[
    required("errors", COUNT, "Errors."),
    required("warnings", COUNT, "Warnings."),
    required("notes", COUNT, "Notes."),
];

const FINDINGS: Kind = Kind::List(&Kind::Record(FINDING));

const LINT: &[Field] = &[
    required("version", Kind::Int { min: 1, max: 1 }, "Version of the form; 1."),
    required("policyd", Kind::Text, "Version of the program."),
    required("files", TEXTS, "Files that were read."),
    required("unreadable", TEXTS, "What could not be read, and why."),
    required("findings", FINDINGS, "What stands."),
    required("ignored", FINDINGS, "What comments silence."),
    required("known", FINDINGS, "What the baseline knows."),
    required("summary", Kind::Record(SUMMARY), "How many of each level."),
];

const KNOWN: &[Field] = &[
    required("fingerprint", Kind::Text, "What it is recognised by."),
    required("code", Kind::Text, "Code of the rule."),
    required("file", Kind::Text, "The file."),
    required("message", Kind::Text, "What it said."),
];

const BASELINE: &[Field] = &[
    required("version", Kind::Int { min: 1, max: 1 }, "Version of the format; 1."),
    required("findings", Kind::List(&Kind::Record(KNOWN)), "Findings that are known."),
];

/// What is stored or printed, by name: a whole file, or one line of a log.
pub const SHAPES: [(&str, Kind); 5] = [
    ("diagnostic-log", Kind::Record(DIAGNOSTIC)),
    ("task-log", Kind::Record(queues::TASK_LOG)),
    ("event-log", Kind::Record(runs::EVENT_LOG)),
    ("lint", Kind::Record(LINT)),
    ("lint-baseline", Kind::Record(BASELINE)),
];

/// The schema of what is stored: unknown keys are allowed, and null stands for absent.
#[must_use]
pub fn schema(kind: &Kind, title: &str) -> Value {
    let mut schema = json_schema(kind, title, Writer::Program);
    open(&mut schema);
    schema
}

fn open(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if object.get("additionalProperties") == Some(&Value::Bool(false)) {
        object.remove("additionalProperties");
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            open(property);
            if !required.iter().any(|it| it == name) {
                *property = serde_json::json!({ "anyOf": [property.take(), { "type": "null" }] });
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            open(inner);
        }
    }
}
