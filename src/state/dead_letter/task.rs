//! A task of the queue, with its failed attempts.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::stored::{count, items, or_default};
use policyd_base::limits::TASK_TEXT_CHARS_MAX;
use policyd_yaml::time::Timestamp;

/// The queue that a task is in: one file each.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TaskQueue {
    /// Waits for an agent.
    #[default]
    Pending,
    /// An agent works on it.
    InProgress,
    /// Failed repeatedly.
    DeadLetter,
    /// Abandoned.
    Abandoned,
}

impl TaskQueue {
    /// All queues.
    pub const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::DeadLetter, Self::Abandoned];

    /// Returns the name of the queue and of its file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in-progress",
            Self::DeadLetter => "dead-letter",
            Self::Abandoned => "abandoned",
        }
    }

    /// Returns the queue of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    pub(super) const fn is_work(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// A failed attempt at a task, or a note of the next approach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["attempt_number"]))]
pub struct Attempt {
    /// Number of the attempt, from 1.
    #[serde(rename = "attempt_number", deserialize_with = "count")]
    pub number: u32,
    /// Time of the attempt.
    #[serde(rename = "timestamp", deserialize_with = "or_default")]
    pub at: Timestamp,
    /// Approach of the attempt.
    #[serde(deserialize_with = "or_default", serialize_with = "cut")]
    pub approach: String,
    /// `test_failure`, `timeout`, `dependency`, `validation`, or another class of `failures.yaml`.
    #[serde(deserialize_with = "or_default")]
    pub error_type: String,
    /// Error of the attempt.
    #[serde(rename = "error_message", deserialize_with = "or_default", serialize_with = "cut")]
    pub error: String,
    /// Agent that made the attempt.
    #[serde(rename = "agent_id", deserialize_with = "or_default")]
    pub agent: String,
    /// Whether the attempt counts as a failure. A rate limit and a plan do not.
    #[serde(default = "yes", deserialize_with = "or_yes", skip_serializing_if = "is_yes")]
    pub counts: bool,
    /// Idempotency key of the report: a second report with the same key is ignored.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// A claim: one agent works on a dead letter until the lease ends. A claim that ended stays, so that the next one has
/// a higher generation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskClaim {
    /// Agent that works on the task; empty after a release.
    #[serde(deserialize_with = "or_default")]
    pub holder: String,
    /// End of the lease.
    #[serde(deserialize_with = "or_default")]
    pub until: Timestamp,
    /// Number of claims of the task. A result with an older number is rejected.
    #[serde(deserialize_with = "or_default")]
    pub generation: u64,
}

/// Information that arrived after a task failed. A requeue consumes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hints {
    /// Another approach.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub new_approach: String,
    /// A smaller scope.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub simpler_scope: String,
    /// Commit that fixed the cause of the failure.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub fix_commit: String,
    /// Labels of the task.
    #[serde(
        deserialize_with = "items",
        serialize_with = "known_marks",
        skip_serializing_if = "has_no_known_mark"
    )]
    #[schemars(extend("items" = json!({ "enum": MARKS })))]
    pub marks: BTreeSet<String>,
}

impl Hints {
    /// Returns whether nothing was learned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let texts = [&self.new_approach, &self.simpler_scope, &self.fix_commit];
        texts.iter().all(|text| text.is_empty()) && has_no_known_mark(&self.marks)
    }
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_yes(value: &bool) -> bool {
    *value
}

fn or_yes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    or_default(deserializer).map(|value: Option<bool>| value.unwrap_or(true))
}

fn known(marks: &BTreeSet<String>) -> impl Iterator<Item = &String> {
    marks.iter().filter(|mark| MARKS.contains(&mark.as_str()))
}

fn has_no_known_mark(marks: &BTreeSet<String>) -> bool {
    known(marks).next().is_none()
}

fn known_marks<S: Serializer>(marks: &BTreeSet<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(known(marks))
}

/// Writes the beginning of a long text.
///
/// # Errors
/// Only those of the serializer.
pub fn cut<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let end = text.char_indices().nth(TASK_TEXT_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    serializer.serialize_str(text.get(..end).unwrap_or(text))
}

/// Labels of a task: `marks` of its hints.
pub const MARKS: &[&str] = &[
    "dependency_available",
    "dependency_never",
    "scope_obsolete",
    "human_abandoned",
    "human_approved",
    "security",
    "data_loss",
    "irreversible",
    "external",
    "ambiguous",
    "permanent",
];

/// A task with its failed attempts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Task {
    /// Id of the task.
    pub id: String,
    /// Queue that the task is in.
    pub place: TaskQueue,
    /// Queue that the task was in when it failed.
    pub original_queue: TaskQueue,
    /// Failures since the last fresh start.
    pub failures: u32,
    /// Failures before it that are not among the attempts.
    pub unlisted: u32,
    /// The first failure of all.
    pub first_failure: Option<Timestamp>,
    /// The last failure.
    pub last_failure: Option<Timestamp>,
    /// Error in one line.
    pub summary: String,
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Planned recovery (loki-mode: `recovery_strategy`).
    pub strategy: String,
    /// One line that names the task, or empty.
    pub title: String,
    /// What is to be done, or empty.
    pub description: String,
    /// Ids of the tasks that this one depends on.
    pub dependencies: Vec<String>,
    /// `high`, `medium`, `low`, or empty.
    pub priority: String,
    /// Information that arrived after the task failed.
    pub hints: Hints,
    /// Confidence of the agent, from 0 to 1.
    pub confidence: Option<f64>,
    /// Number of requeues.
    pub redrives: u32,
    /// Last requeue.
    pub redriven: Option<Timestamp>,
    /// Id of the escalation that the task waits for; empty for none.
    pub waits_for: String,
    /// The task that this one is a part of; empty for none.
    pub parent: String,
    /// Smaller tasks split from this one.
    pub children: Vec<String>,
    /// Part of the parent's scope; empty for all of it.
    pub scope: String,
    /// Commit because of which the task was requeued; empty for none.
    pub fix_commit: String,
    /// Why the task was abandoned, or empty.
    pub reason: String,
    /// When the task was abandoned.
    pub abandoned: Option<Timestamp>,
    /// Number of changes. Of two copies, the one with more is newer.
    pub revision: u64,
    /// The last claim of the dead letter.
    pub claim: Option<TaskClaim>,
}
