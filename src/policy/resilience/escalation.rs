//! `escalation.yaml`: when a human is needed, and how humans are notified.

use std::path::{Component, Path};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Expression;
use crate::builder::Builder;
use crate::fields::{DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS, WHEN};
use crate::layers::Layers;
use crate::record::{Conversion, record};
use crate::records::SEVERITIES;
use policyd_yaml::shape::Kind;

const FILE: &str = "escalation.yaml";

/// Triggers and channels of escalations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationPolicy {
    /// Conditions under which a human is needed; the first true one decides.
    pub triggers: Vec<Trigger>,
    /// Notification channels.
    pub channels: Vec<Channel>,
}

/// A condition under which a human is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// Id, unique in the list.
    pub id: String,
    /// Condition of the trigger, over `task`.
    pub when: Expression,
    /// One of [`SEVERITIES`].
    pub severity: String,
    /// Whether the task is blocked until a human answers.
    pub blocking: bool,
    /// Whether tasks with the same cause of failure share one escalation.
    pub for_each_cause: bool,
    /// Repeat interval of the notification. `None`: no repetition.
    pub answer_within: Option<Duration>,
    /// Reason of the escalation, in one sentence.
    pub reason: String,
    /// Options of the human, each with its cost.
    pub options: Vec<String>,
}

impl Default for Trigger {
    fn default() -> Self {
        Self {
            id: String::new(),
            when: Expression::default(),
            severity: "high".to_owned(),
            blocking: false,
            for_each_cause: false,
            answer_within: None,
            reason: String::new(),
            options: Vec::new(),
        }
    }
}

impl Trigger {
    /// Returns the trigger of a review rule that escalates although no trigger is true.
    #[must_use]
    pub fn unnamed() -> Self {
        Self {
            id: "review".to_owned(),
            reason: "A rule of the review asks for a human.".to_owned(),
            ..Self::default()
        }
    }
}

/// A notification channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Id, unique in the list.
    pub id: String,
    /// Program and arguments. Empty: only `folder` is used.
    pub command: Vec<String>,
    /// Directory that receives a copy of each notification. Empty: none.
    pub folder: String,
    /// Timeout of the program.
    pub timeout: Duration,
    /// Name of the circuit breaker of the channel.
    pub breaker: String,
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            id: String::new(),
            command: Vec::new(),
            folder: String::new(),
            timeout: Duration::from_secs(5),
            breaker: String::new(),
        }
    }
}

impl Channel {
    /// Whether notifications can be written to a directory: a relative one without `..`, or none.
    #[must_use]
    pub fn may_write_to(folder: &str) -> bool {
        Path::new(folder).components().all(|it| matches!(it, Component::Normal(_)))
    }
}

/// Whether tasks with the same cause share one escalation: `cause`, else `task`.
const FOR_EACH_CAUSE: Conversion<bool> = Conversion {
    read: |node, _| Some(node.text()? == "cause"),
    show: |by_cause| Some(if *by_cause { "cause" } else { "task" }.into()),
};

record! {
    const TRIGGER: RecordType<Trigger> = {
        use ID => id;
        use WHEN => when;
        severity: Kind::Choice(SEVERITIES) => severity, "How much it matters; `high` by default.";
        blocking: Kind::Bool => blocking, "Whether the task stands still until a human answered.";
        for_each: Kind::Choice(&["task", "cause"]) => for_each_cause by FOR_EACH_CAUSE,
            "Whether each task is one question, or all tasks with the same cause are.";
        answer_within: Kind::Duration => answer_within,
            "Time after which the alert is repeated; never, by default.";
        reason [needed()]: Kind::Text => reason, "Why a human is needed, in one sentence.";
        options: TEXTS => options, "What a human may decide, each with what it costs.";
        use ENABLED;
        use DESCRIPTION;
        use OVERRIDE;
    }

    const CHANNEL: RecordType<Channel> = {
        use ID => id;
        use ENABLED;
        command: TEXTS => command, "Program and arguments that get the document on standard input.";
        folder: Kind::Text => folder,
            "Folder that gets a copy of each alert as JSON, for a webhook.";
        timeout: Kind::Duration => timeout, "Time the program may take; 5 s by default.";
        breaker: Kind::Text => breaker, "Name of its circuit breaker; `alert/<id>` by default.";
        use DESCRIPTION;
        use OVERRIDE;
    }

    pub(in crate) const ESCALATION: RecordType<EscalationPolicy> = {
        triggers: TRIGGER.list, "When a human is needed; the first that holds.";
        channels: CHANNEL.list, "How humans are notified.";
    }
}

impl Builder<'_> {
    pub(crate) fn escalation(&mut self, layers: &Layers) -> EscalationPolicy {
        let triggers = self.section(layers, FILE, "triggers", &TRIGGER);
        let mut channels = self.section(layers, FILE, "channels", &CHANNEL);
        for channel in channels.iter_mut().filter(|channel| channel.breaker.is_empty()) {
            channel.breaker = format!("alert/{}", channel.id);
        }
        EscalationPolicy { triggers, channels }
    }
}
