//! A task of the queues, with its attempts.

use std::collections::BTreeSet;

use crate::time::Timestamp;

/// The list a task is on: one file each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Waits for somebody to take it.
    #[default]
    Pending,
    /// Somebody works on it.
    InProgress,
    /// Failed again and again.
    DeadLetter,
    /// Given up.
    Abandoned,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::DeadLetter, Self::Abandoned];

    /// The seed's name of it, which its file has too.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in-progress",
            Self::DeadLetter => "dead-letter",
            Self::Abandoned => "abandoned",
        }
    }

    /// Finds the queue with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    pub(super) const fn is_work(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// One attempt at a task that failed, or a note of what is tried next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// When.
    pub at: Timestamp,
    /// What was tried.
    pub approach: String,
    /// `test_failure`, `timeout`, `dependency`, `validation` or another class of failures.
    pub error_type: String,
    /// What it ended with.
    pub error: String,
    /// Who tried.
    pub agent: String,
    /// Whether it counts: a rate limit says nothing about the task, a plan is no attempt.
    pub counts: bool,
    /// Names the report of it: the same one is taken in once.
    pub key: String,
}

/// What was learned since a task failed; using it up puts the task back to work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// What else could be tried.
    pub new_approach: String,
    /// A smaller scope.
    pub simpler_scope: String,
    /// The commit that fixed what blocked it.
    pub fix_commit: String,
    /// What is the case, by the names of [`MARKS`].
    pub marks: BTreeSet<String>,
}

/// Marks that a task's hints can contain.
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

/// A task and all that became of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Where it is.
    pub place: Place,
    /// Where it was when it failed.
    pub original_queue: Place,
    /// Failures since the last fresh start.
    pub failures: u32,
    /// The first failure of all.
    pub first_failure: Option<Timestamp>,
    /// The last one.
    pub last_failure: Option<Timestamp>,
    /// What fails, in one line.
    pub summary: String,
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// What is to be done about it (seed 003, `recovery_strategy`).
    pub strategy: String,
    /// Title.
    pub title: String,
    /// Description.
    pub description: String,
    /// Ids of the tasks it needs.
    pub dependencies: Vec<String>,
    /// `high`, `medium`, `low`, or empty.
    pub priority: String,
    /// What was learned.
    pub hints: Hints,
    /// How sure the agent is that it knows what to do, 0 to 1.
    pub confidence: Option<f64>,
    /// How often it was put back to work.
    pub redrives: u32,
    /// When it was last put back.
    pub redriven: Option<Timestamp>,
    /// What it waits for: the id of an escalation; empty where it waits for nothing.
    pub waits_for: String,
    /// The task it is a part of, or empty.
    pub parent: String,
    /// Smaller tasks made of it.
    pub children: Vec<String>,
    /// The scope that is left of its parent's, or empty.
    pub scope: String,
    /// The commit it was put back for, or empty.
    pub fix_commit: String,
    /// Why it was given up, or empty.
    pub reason: String,
    /// When it was given up.
    pub abandoned: Option<Timestamp>,
    /// Changes so far: of two copies the one with more is the newer.
    pub revision: u64,
}
