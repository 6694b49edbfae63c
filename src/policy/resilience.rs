//! What the resilience files mean: when a task enters the dead-letter queue, what its review does,
//! when a human is needed and how they are told.

use crate::facts::event::EventKind;
use std::path::{Component, Path};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Choice, Expression};

/// `dead_letter.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Time after which the queue is due for review.
    pub review_every: Duration,
    /// Failed attempts after which a simpler approach is asked for.
    pub simplify_after: u32,
    /// Groups of review rules, the first judged first.
    pub order: Vec<String>,
    /// Abandoned tasks are kept for that long.
    pub retention_age: Duration,
    /// Abandoned tasks kept at most.
    pub retention_count: usize,
    /// Tasks put back within `redrive_per`, at most.
    pub redrive_rate: usize,
    /// The time that `redrive_rate` counts in.
    pub redrive_per: Duration,
    /// How often one task is put back before a human must look at it.
    pub redrive_times: u32,
    /// When a failing task enters; any that holds.
    pub enter: Vec<Enter>,
    /// What a review does, by group in `order`, then as written; the first that holds.
    pub review: Vec<Review>,
    /// When the queue itself needs a human.
    pub alarms: Vec<Alarm>,
}

impl DeadLetter {
    /// The review rules in the order in which they are judged.
    pub fn in_order(&self) -> impl Iterator<Item = &Review> {
        self.order.iter().flat_map(|group| self.review.iter().filter(move |it| it.group == *group))
    }
}

/// When a failing task enters the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enter {
    /// Its id.
    pub id: String,
    /// Over `task`.
    pub when: Expression,
    /// What is to be tried next.
    pub strategy: String,
}

/// What a review does with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReviewAction {
    /// It stays where it is, whatever else holds.
    Wait,
    /// It goes back to work.
    Retry,
    /// A smaller task goes to work, linked to it.
    Split,
    /// A human is asked; it stays.
    Escalate,
    /// It is given up.
    Abandon,
}

impl ReviewAction {
    /// The action of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let all = [Self::Wait, Self::Retry, Self::Split, Self::Escalate, Self::Abandon];
        all.into_iter().find(|it| it.as_str() == name)
    }

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Retry => "retry",
            Self::Split => "split",
            Self::Escalate => "escalate",
            Self::Abandon => "abandon",
        }
    }
}

/// A rule of the review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Its id.
    pub id: String,
    /// Its place in `order`.
    pub group: String,
    /// Over `task`.
    pub when: Expression,
    /// What becomes of the task.
    pub action: ReviewAction,
    /// The strategy that is written down; empty to keep the one there is.
    pub strategy: String,
    /// Why, in one word.
    pub reason: String,
    /// Whether failures count from 0 again, and the new approach is written down.
    pub fresh: bool,
}

/// When the queue itself needs a human.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// Its id.
    pub id: String,
    /// Over `queue`.
    pub when: Expression,
    /// What is said.
    pub text: Choice,
}

/// `escalation.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// When a human is needed; the first that holds.
    pub triggers: Vec<Trigger>,
    /// How humans are told.
    pub channels: Vec<Channel>,
}

/// What is noted when something happens: an entry of `reactions.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    /// Its id.
    pub id: String,
    /// Events at which it is evaluated.
    pub on: Vec<EventKind>,
    /// Over `event`; always, where absent.
    pub when: Option<Expression>,
    /// Template of the name of a circuit breaker; empty for none.
    pub breaker: String,
    /// Whether the breaker is told of a success.
    pub worked: bool,
    /// Templates of id, title and approach of a task; none, where the id is empty.
    pub task: [String; 3],
    /// The signal that is created, with templates of its fields; none, where the name is empty.
    pub signal: (String, Vec<(String, String)>),
    /// Template of why a human is needed; empty for none.
    pub reason: String,
    /// How much that matters.
    pub severity: String,
    /// What a human may decide.
    pub options: Vec<String>,
    /// Template of what is said; empty for nothing.
    pub say: String,
}

impl Reaction {
    /// Whether nothing comes of it but a breaker that is told of a success.
    #[must_use]
    pub fn only_tells_success(&self) -> bool {
        let [task, ..] = &self.task;
        let else_nothing = [task, &self.signal.0, &self.reason, &self.say];
        self.worked && else_nothing.iter().all(|it| it.is_empty())
    }
}

/// When a human is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Its id.
    pub id: String,
    /// Over `task`.
    pub when: Expression,
    /// `low`, `medium`, `high` or `critical`.
    pub severity: String,
    /// Whether the task stands still until a human answered.
    pub blocking: bool,
    /// Whether tasks that failed alike are one question; else each is one of its own.
    pub for_each_cause: bool,
    /// Time after which the alert is repeated.
    pub answer_within: Option<Duration>,
    /// Why a human is needed.
    pub reason: String,
    /// What may be decided.
    pub options: Vec<String>,
}

impl Trigger {
    /// What stands for a trigger where a rule asks for a human and none holds.
    #[must_use]
    pub fn unnamed() -> Self {
        Self {
            id: "review".to_owned(),
            when: Expression::default(),
            severity: "high".to_owned(),
            blocking: false,
            for_each_cause: false,
            answer_within: None,
            reason: "A rule of the review asks for a human.".to_owned(),
            options: Vec::new(),
        }
    }
}

/// How humans are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Its id.
    pub id: String,
    /// Program and arguments; none for a folder alone.
    pub command: Vec<String>,
    /// Folder that gets a copy of each alert; empty for none.
    pub folder: String,
    /// Time the program may take.
    pub timeout: Duration,
    /// Name of its circuit breaker.
    pub breaker: String,
}

impl Channel {
    /// Whether copies of alerts may be written to a folder: one below policyd's own, or none at all.
    #[must_use]
    pub fn may_write_to(folder: &str) -> bool {
        Path::new(folder).components().all(|it| matches!(it, Component::Normal(_)))
    }
}
