//! Turns the layers of the resilience files into meaning.

use std::time::Duration;

use super::super::load::Layers;
use super::super::records;
use super::super::resilience::{
    Alarm, Channel, DeadLetter, Enter, Escalation, Review, ReviewAction, Trigger,
};
use super::super::shapes::resilience::REVIEW_GROUPS;
use super::{Builder, Entry, Expression, text, texts};
use crate::script::types::Type;
use crate::source::Diagnostic;
use crate::source::node::Node;

/// A day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Kept where a pack says nothing: half a year, as Sidekiq keeps its dead.
const RETENTION_AGE: Duration = Duration::from_secs(180 * 24 * 60 * 60);
const RETENTION_COUNT: usize = 10_000;
/// Seed 003: a simpler approach after three attempts.
const SIMPLIFY_AFTER: u32 = 3;
const REDRIVE_RATE: usize = 10;
const REDRIVE_TIMES: u32 = 3;
/// Time an alert's program may take.
const ALERT_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of one file, the topmost pack that has them first.
struct Settings<'l> {
    layers: &'l Layers,
    file: &'static str,
}

impl<'l> Settings<'l> {
    fn get(&self, key: &str) -> Option<&'l Node> {
        let tops = self.layers.tops.get(self.file).map(Vec::as_slice).unwrap_or_default();
        tops.iter().find_map(|it| it.get(key)).filter(|it| !it.is_null())
    }

    fn part(&self, section: &str, key: &str) -> Option<&'l Node> {
        let tops = self.layers.tops.get(self.file).map(Vec::as_slice).unwrap_or_default();
        tops.iter().filter_map(|it| it.get(section)).find_map(|it| it.get(key))
    }
}

fn count<T: TryFrom<i64>>(node: Option<&Node>, default: T) -> T {
    node.and_then(Node::int).and_then(|it| T::try_from(it).ok()).unwrap_or(default)
}

fn span(node: Option<&Node>, default: Duration) -> Duration {
    node.and_then(Node::duration).unwrap_or(default)
}

/// The text of a key, or what stands for it.
fn or(entry: &Entry, key: &str, default: &str) -> String {
    entry.get(key).and_then(Node::text).unwrap_or(default).to_owned()
}

impl Builder<'_> {
    /// Entries of a section that are in use, built by `make` while expressions see its record.
    pub(super) fn section<T>(
        &mut self,
        layers: &Layers,
        (file, section): (&'static str, &'static str),
        mut make: impl FnMut(&mut Self, &Entry, Expression) -> Option<T>,
    ) -> Vec<T> {
        let entries = layers.sections.get(&(file, section)).map(Vec::as_slice).unwrap_or_default();
        self.speaking_of(records::names(file, section), |builder| {
            let used = |it: &&Entry| it.get("enabled").and_then(Node::bool) != Some(false);
            let made = entries.iter().filter_map(|entry| {
                let when = match entry.get("when") {
                    Some(node) => builder.expression(Some(node), Type::Bool)?,
                    None => Expression::default(),
                };
                let built = make(builder, entry, when);
                built.filter(|_| used(&entry))
            });
            made.collect()
        })
    }

    /// What `dead_letter.yaml` means.
    pub(super) fn dead_letter(&mut self, layers: &Layers) -> DeadLetter {
        const FILE: &str = "dead_letter.yaml";
        let settings = Settings { layers, file: FILE };
        let enter = self.section(layers, (FILE, "enter"), |_, entry, when| {
            Some(Enter { id: entry.id.clone(), when, strategy: or(entry, "strategy", "") })
        });
        let review = self.section(layers, (FILE, "review"), |_, entry, when| {
            let action = ReviewAction::find(&text(entry.get("do")))?;
            let group = match action {
                ReviewAction::Split => ReviewAction::Retry.as_str(),
                ReviewAction::Wait
                | ReviewAction::Retry
                | ReviewAction::Escalate
                | ReviewAction::Abandon => action.as_str(),
            };
            Some(Review {
                id: entry.id.clone(),
                group: or(entry, "group", group),
                when,
                action,
                strategy: or(entry, "strategy", ""),
                reason: or(entry, "reason", &entry.id),
                fresh: entry.get("fresh").and_then(Node::bool).unwrap_or(false),
            })
        });
        let alarms = self.section(layers, (FILE, "alarms"), |builder, entry, when| {
            let text = builder.choices(entry.get("text")).into_iter().next()?;
            Some(Alarm { id: entry.id.clone(), when, text })
        });
        let order = self.order(&settings, &review, layers);
        DeadLetter {
            review_every: span(settings.get("review_every"), DAY),
            simplify_after: count(settings.get("simplify_after"), SIMPLIFY_AFTER),
            order,
            retention_age: span(settings.part("retention", "max_age"), RETENTION_AGE),
            retention_count: count(settings.part("retention", "max_count"), RETENTION_COUNT),
            redrive_rate: count(settings.part("redrive", "rate"), REDRIVE_RATE),
            redrive_per: span(settings.part("redrive", "per"), DAY),
            redrive_times: count(settings.part("redrive", "max_times"), REDRIVE_TIMES),
            enter,
            review,
            alarms,
        }
    }

    /// The order of the review's groups; a group that has rules and is not in it would be dead.
    fn order(
        &mut self,
        settings: &Settings<'_>,
        review: &[Review],
        layers: &Layers,
    ) -> Vec<String> {
        let Some(node) = settings.get("order") else {
            return REVIEW_GROUPS.iter().map(|it| (*it).to_owned()).collect();
        };
        let order = texts(Some(node));
        let left_out = review.iter().find(|it| !order.contains(&it.group));
        if let Some(rule) = left_out {
            let message = format!("`order` leaves out `{}`", rule.group);
            let found = Diagnostic::error("incomplete-order", node.span.clone(), message);
            let rules = layers.sections.get(&("dead_letter.yaml", "review"));
            let entry = rules.into_iter().flatten().find(|it| it.id == rule.id);
            let found = match entry.and_then(Entry::span) {
                Some(place) => found.with_related(place.clone(), "this rule would never be judged"),
                None => found,
            };
            self.diagnostics
                .push(found.with_help(format!("name all groups: {}", REVIEW_GROUPS.join(", "))));
        }
        order
    }

    /// What `escalation.yaml` means.
    pub(super) fn escalation(&mut self, layers: &Layers) -> Escalation {
        const FILE: &str = "escalation.yaml";
        let triggers = self.section(layers, (FILE, "triggers"), |_, entry, when| {
            Some(Trigger {
                id: entry.id.clone(),
                when,
                severity: or(entry, "severity", "high"),
                blocking: entry.get("blocking").and_then(Node::bool).unwrap_or(false),
                answer_within: entry.get("answer_within").and_then(Node::duration),
                reason: text(entry.get("reason")),
                options: texts(entry.get("options")),
            })
        });
        let channels = self.section(layers, (FILE, "channels"), |_, entry, _| {
            Some(Channel {
                id: entry.id.clone(),
                command: texts(entry.get("command")),
                folder: or(entry, "folder", ""),
                timeout: span(entry.get("timeout"), ALERT_TIMEOUT),
                breaker: or(entry, "breaker", &format!("alert/{}", entry.id)),
            })
        });
        Escalation { triggers, channels }
    }
}
