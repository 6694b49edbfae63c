//! A task of a queue file: the keys of loki-mode, and policyd's own.
//!
//! Reading is tolerant: a value of another type counts as absent. Foreign keys and the order of keys are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use policyd_base::limits::TASK_ATTEMPTS_MAX;
use policyd_state::dead_letter::{Attempt, Hints, Task, TaskClaim, TaskQueue, cut};
use policyd_state::stored::{count, fields, is_default, items, or_default, records};
use policyd_yaml::time::Timestamp;

/// Keys that are absent if their value is empty.
const OPTIONAL: [&str; 15] = [
    "claim",
    "unlisted_failures",
    STATUS,
    "waits_for",
    "hints",
    "confidence",
    "redrives",
    "redriven_at",
    "parent",
    "children",
    "scope",
    "fix_commit",
    "reason",
    "abandoned_at",
    "revision",
];
const STATUS: &str = "status";
/// Status of a task that waits for a human. Other values of the key are foreign.
const BLOCKED: &str = "blocked";

/// A task and its failed attempts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["task_id"]))]
pub(super) struct TaskRecord {
    /// Id of the task.
    #[schemars(length(min = 1))]
    task_id: String,
    /// `pending` or `in-progress`.
    #[serde(deserialize_with = "or_default")]
    original_queue: TaskQueue,
    /// Failures since the last fresh start.
    #[serde(deserialize_with = "count")]
    failure_count: u32,
    /// Failures before the last fresh start that are not among the attempts.
    #[serde(deserialize_with = "count", skip_serializing_if = "is_default")]
    unlisted_failures: u32,
    /// The first failure of all.
    #[serde(deserialize_with = "or_default")]
    first_failure: Option<Timestamp>,
    /// The last failure.
    #[serde(deserialize_with = "or_default")]
    last_failure: Option<Timestamp>,
    /// Error in one line.
    #[serde(deserialize_with = "or_default", serialize_with = "cut")]
    error_summary: String,
    /// Attempts, oldest first.
    #[serde(deserialize_with = "records")]
    attempts: Vec<Attempt>,
    /// Planned recovery, or empty.
    #[serde(deserialize_with = "or_default")]
    recovery_strategy: String,
    /// Description of the task.
    task_data: TaskData,
    /// `blocked` if the task waits for a human.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    status: String,
    /// Id of the escalation that the task waits for.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    waits_for: String,
    /// Information that arrived after the task failed.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Hints::is_empty")]
    hints: Hints,
    /// Confidence of the agent.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    confidence: Option<f64>,
    /// Number of requeues.
    #[serde(deserialize_with = "count", skip_serializing_if = "is_default")]
    redrives: u32,
    /// Last requeue.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    redriven_at: Option<Timestamp>,
    /// The task that this one is a part of.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    parent: String,
    /// Smaller tasks split from this one.
    #[serde(deserialize_with = "items", skip_serializing_if = "Vec::is_empty")]
    children: Vec<String>,
    /// Part of the parent's scope.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    scope: String,
    /// Commit because of which the task was requeued.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    fix_commit: String,
    /// Why the task was abandoned.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    reason: String,
    /// When the task was abandoned.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    abandoned_at: Option<Timestamp>,
    /// The last claim of the dead letter.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Option::is_none")]
    claim: Option<TaskClaim>,
    /// Number of changes. Of two copies, the one with more is newer.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    revision: u64,
}

/// Description of a task.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct TaskData {
    /// One line that names the task, or empty.
    #[serde(deserialize_with = "or_default")]
    title: String,
    /// What is to be done, or empty.
    #[serde(deserialize_with = "or_default")]
    description: String,
    /// Ids of the tasks that this one depends on.
    #[serde(deserialize_with = "items")]
    dependencies: Vec<String>,
    /// `high`, `medium`, `low`, or empty.
    #[serde(deserialize_with = "or_default")]
    priority: String,
}

/// Returns the id of an item of a queue file if the item is a task.
pub(super) fn id_of(item: &Value) -> Option<&str> {
    item.get("task_id").or_else(|| item.get("id"))?.as_str().filter(|id| !id.is_empty())
}

/// Returns the task of an item of a queue file if the item is an object with an id.
pub(super) fn task_of(item: &Value, place: TaskQueue) -> Option<Task> {
    let id = id_of(item)?.to_owned();
    let mut fields = item.as_object()?.clone();
    fields.remove("task_id");
    fields.insert("task_data".to_owned(), Value::Object(data_of(item)));
    let record: TaskRecord = serde_json::from_value(Value::Object(fields)).ok()?;
    let data = record.task_data;
    Some(Task {
        id,
        place,
        original_queue: record.original_queue,
        failures: record.failure_count,
        unlisted: record.unlisted_failures,
        first_failure: record.first_failure,
        last_failure: record.last_failure,
        summary: record.error_summary,
        attempts: record.attempts,
        strategy: record.recovery_strategy,
        title: data.title,
        description: data.description,
        dependencies: data.dependencies,
        priority: data.priority,
        hints: record.hints,
        confidence: record.confidence,
        redrives: record.redrives,
        redriven: record.redriven_at,
        waits_for: record.waits_for,
        parent: record.parent,
        children: record.children,
        scope: record.scope,
        fix_commit: record.fix_commit,
        reason: record.reason,
        abandoned: record.abandoned_at,
        claim: record.claim,
        revision: record.revision,
    })
}

/// Returns the fields of `task_data`; some writers put them beside it.
fn data_of(item: &Value) -> Map<String, Value> {
    let mut data = object(item.get("task_data"));
    for key in fields(&TaskData::default()).keys() {
        if let Some(value) = item.get(key).filter(|_| !data.contains_key(key)) {
            data.insert(key.clone(), value.clone());
        }
    }
    data
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Returns the item of a task, written over the `known` one.
pub(super) fn record_of(task: &Task, known: Option<&Value>) -> Value {
    let mut own = fields(&TaskRecord {
        task_id: task.id.clone(),
        original_queue: task.original_queue,
        failure_count: task.failures,
        unlisted_failures: task.unlisted,
        first_failure: task.first_failure,
        last_failure: task.last_failure,
        error_summary: task.summary.clone(),
        attempts: kept(&task.attempts).cloned().collect(),
        recovery_strategy: task.strategy.clone(),
        task_data: TaskData {
            title: task.title.clone(),
            description: task.description.clone(),
            dependencies: task.dependencies.clone(),
            priority: task.priority.clone(),
        },
        status: if task.waits_for.is_empty() { "" } else { BLOCKED }.to_owned(),
        waits_for: task.waits_for.clone(),
        hints: task.hints.clone(),
        confidence: task.confidence,
        redrives: task.redrives,
        redriven_at: task.redriven,
        parent: task.parent.clone(),
        children: task.children.clone(),
        scope: task.scope.clone(),
        fix_commit: task.fix_commit.clone(),
        reason: task.reason.clone(),
        abandoned_at: task.abandoned,
        claim: task.claim.clone(),
        revision: task.revision,
    });
    let mut record = object(known);
    let mut data = object(record.get("task_data"));
    data.extend(object(own.get("task_data")));
    own.insert("task_data".to_owned(), Value::Object(data));
    record.retain(|key, value| {
        let is_foreign = key == STATUS && value != BLOCKED;
        is_foreign || own.contains_key(key) || !OPTIONAL.contains(&key.as_str())
    });
    record.extend(own);
    Value::Object(record)
}

/// Returns the stored attempts. Of many, the first quarter and the last ones are kept.
fn kept(attempts: &[Attempt]) -> impl Iterator<Item = &Attempt> {
    let over = attempts.len().saturating_sub(TASK_ATTEMPTS_MAX);
    let first = TASK_ATTEMPTS_MAX / 4;
    let middle = first..first.saturating_add(over);
    attempts.iter().enumerate().filter(move |(at, _)| !middle.contains(at)).map(|(_, it)| it)
}
