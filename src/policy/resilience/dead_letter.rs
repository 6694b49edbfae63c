//! `dead_letter.yaml`: when a task enters the dead-letter queue, and what a review of the queue does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::builder::Builder;
use crate::field_value::{FieldValue, Word, words};
use crate::fields::{DESCRIPTION, ENABLED, ID, OVERRIDE, WHEN};
use crate::layers::{LayerEntry, Layers};
use crate::record::{Conversion, record, words};
use crate::records::STRATEGIES;
use crate::{Choice, Expression};
use policyd_yaml::Diagnostic;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;

const FILE: &str = "dead_letter.yaml";
const COUNT: Kind = Kind::Int { min: 1, max: 1_000_000 };
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The groups of review rules, in their default order.
const REVIEW_GROUPS: &[&str] = &["human", "wait", "retry", "escalate", "abandon"];

/// Settings and rules of the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Time between two reviews of the queue.
    pub review_every: Duration,
    /// Number of failed attempts after which a simpler approach is requested. loki-mode uses 3.
    pub simplify_after: u32,
    /// Groups of review rules in the order of their evaluation.
    pub order: Vec<String>,
    /// Retention of abandoned tasks. Half a year is Sidekiq's retention of dead jobs.
    pub retention_age: Duration,
    /// Maximum number of abandoned tasks; the newest are kept.
    pub retention_count: usize,
    /// Maximum number of tasks that are redriven within `redrive_per`.
    pub redrive_rate: usize,
    /// Period of `redrive_rate`.
    pub redrive_per: Duration,
    /// Number of redrives of one task after which a human must review the task.
    pub redrive_times: u32,
    /// Rules that move a failing task to the queue; one must be true.
    pub enter: Vec<Enter>,
    /// Review rules. The first true rule of the first group in `order` decides.
    pub review: Vec<Review>,
    /// Conditions of the queue that need a human.
    pub alarms: Vec<Alarm>,
}

impl Default for DeadLetter {
    fn default() -> Self {
        Self {
            review_every: DAY,
            simplify_after: 3,
            order: REVIEW_GROUPS.iter().map(|group| (*group).to_owned()).collect(),
            retention_age: 180 * DAY,
            retention_count: 10_000,
            redrive_rate: 10,
            redrive_per: DAY,
            redrive_times: 3,
            enter: Vec::new(),
            review: Vec::new(),
            alarms: Vec::new(),
        }
    }
}

impl DeadLetter {
    /// Returns the review rules in the order of their evaluation.
    pub fn in_order(&self) -> impl Iterator<Item = &Review> {
        self.order.iter().flat_map(|group| self.review.iter().filter(move |it| it.group == *group))
    }
}

/// A rule that moves a failing task to the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enter {
    /// Id, unique in the list.
    pub id: String,
    /// Condition of the rule, over `task`.
    pub when: Expression,
    /// Strategy of the next attempt. Empty: none.
    pub strategy: String,
}

/// Effect of a review rule on a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReviewAction {
    /// The task stays in the queue.
    #[default]
    Wait,
    /// The task is requeued.
    Retry,
    /// A smaller, linked task is queued.
    Split,
    /// A human is asked; the task stays in the queue.
    Escalate,
    /// The task is abandoned.
    Abandon,
}

words! {
    ReviewAction {
        Wait = "wait", Retry = "retry", Split = "split", Escalate = "escalate", Abandon = "abandon",
    }
}

impl ReviewAction {
    /// Returns the word of the action in `dead_letter.yaml`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.name()
    }

    /// Returns the group of a rule with this action that names no group.
    fn group(self) -> &'static str {
        if self == Self::Split { Self::Retry.name() } else { self.name() }
    }
}

/// A review rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Id, unique in the list.
    pub id: String,
    /// Group of the rule in `order`.
    pub group: String,
    /// Condition of the rule, over `task`.
    pub when: Expression,
    /// Effect of the rule.
    pub action: ReviewAction,
    /// Strategy that is recorded. Empty: the recorded strategy stays.
    pub strategy: String,
    /// Reason, in one word.
    pub reason: String,
    /// Whether failures are counted from 0 again and the new approach is recorded.
    pub fresh: bool,
}

/// A condition of the queue that needs a human.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// Id, unique in the list.
    pub id: String,
    /// Condition of the alarm, over `queue`.
    pub when: Expression,
    /// Text of the alarm.
    pub text: Choice,
}

/// The text of an alarm.
const ALARM_TEXT: Conversion<Choice> =
    Conversion::reading(|node, builder| builder.choices(Some(node)).into_iter().next());

record! {
    const ENTER: RecordType<Enter> = {
        use ID => id;
        use WHEN => when;
        strategy: Kind::Choice(STRATEGIES) => strategy, "What is to be tried next.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }

    const REVIEW: RecordType<Review> = {
        use ID => id;
        use WHEN => when;
        do [needed()]: words::<ReviewAction>() => action, "Action for the task.";
        group: Kind::Choice(REVIEW_GROUPS) => group,
            "Its place in `order`; what it does by default.";
        strategy: Kind::Choice(STRATEGIES) => strategy, "Strategy that is recorded.";
        reason: Kind::Text => reason, "Why, in one word; its id by default.";
        fresh: Kind::Bool => fresh,
            "A retry counts failures from 0 again, and names the new approach.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }

    const ALARM: RecordType<Alarm> = {
        use ID => id;
        use WHEN => when;
        text [needed()]: Kind::Template => text by ALARM_TEXT, "What is said where it holds.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }

    const RETENTION: RecordType<DeadLetter> = {
        max_age: Kind::Duration => retention_age, "Abandoned tasks are kept for that long.";
        max_count: COUNT => retention_count, "Abandoned tasks kept at most, the newest.";
    }

    const REDRIVE: RecordType<DeadLetter> = {
        rate: COUNT => redrive_rate, "Tasks put back within `per`, at most.";
        per: Kind::Duration => redrive_per, "The time that `rate` counts in.";
        max_times: COUNT => redrive_times,
            "How often one task is put back before a human must look at it.";
    }

    pub(in crate) const DEAD_LETTER: RecordType<DeadLetter> = {
        review_every: Kind::Duration => review_every,
            "Time after which the queue is due for review.";
        simplify_after: COUNT => simplify_after,
            "Failed attempts after which a simpler approach is asked for.";
        order: Kind::List(&Kind::Choice(REVIEW_GROUPS)) => order,
            "Which review rules are judged first.";
        retention: section RETENTION, "How long abandoned tasks are kept.";
        redrive: section REDRIVE, "How fast tasks are put back to work.";
        enter: ENTER.list, "When a failing task enters; any that holds.";
        review: REVIEW.list, "Actions for it; the first that applies.";
        alarms: ALARM.list, "When the queue itself needs a human.";
    }
}

impl Builder<'_> {
    pub(crate) fn dead_letter(&mut self, layers: &Layers) -> DeadLetter {
        let enter = self.section(layers, FILE, "enter", &ENTER);
        let review = self.section_with(layers, FILE, "review", &REVIEW, |_, entry, rule| {
            let group = group_of(entry).unwrap_or_default().to_owned();
            let reason = if rule.reason.is_empty() { rule.id.clone() } else { rule.reason };
            Review { group, reason, ..rule }
        });
        let alarms = self.section(layers, FILE, "alarms", &ALARM);
        self.report_missing_group(layers);
        let settings = DEAD_LETTER.read(&layers.top_map(FILE), self);
        DeadLetter { enter, review, alarms, ..settings }
    }

    /// Reports a group of rules that `order` lacks: its rules would never be evaluated.
    fn report_missing_group(&mut self, layers: &Layers) {
        let Some(node) = layers.top_map(FILE).get("order") else { return };
        let order = node.items().unwrap_or_default();
        let is_listed = |group: &str| order.iter().any(|item| item.says(group));
        let mut rules = layers.section(FILE, "review").iter();
        let left_out =
            rules.find_map(|rule| Some((rule, group_of(rule).filter(|group| !is_listed(group))?)));
        if let Some((rule, group)) = left_out {
            let message = format!("`order` leaves out `{group}`");
            let mut found = Diagnostic::error("incomplete-order", node.span.clone(), message);
            if let Some(place) = rule.span() {
                found = found.with_related(place.clone(), "this rule would never be judged");
            }
            let help = format!("name all groups: {}", REVIEW_GROUPS.join(", "));
            self.diagnostics.push(found.with_help(help));
        }
    }
}

/// Returns the group of a review rule. `None` if the rule has neither a group nor an action.
fn group_of(rule: &LayerEntry) -> Option<&str> {
    let own = rule.get("group").and_then(Node::text);
    own.or_else(|| Some(ReviewAction::from_node(rule.get("do")?)?.group()))
}
