//! Turns the layers of the resilience files into meaning.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::layers::{FAILURES, Layers, wanted};
use super::super::rationalizations::Rationalizations;
use super::super::records;
use super::super::resilience::{
    Alarm, Channel, DeadLetter, Enter, Escalation, Reaction, Review, ReviewAction, Trigger,
};
use super::super::shapes::resilience::REVIEW_GROUPS;
use super::{Builder, Entry, Expression, Foundation, Shared, failures, text, texts};
use crate::facts::event::EventKind;
use crate::policy::breakers;
use crate::policy::run::RunPolicy;
use crate::policy::signals::Signals;
use crate::policy::{Place, Route};
use crate::script::types::Type;
use crate::source::Diagnostic;
use crate::source::node::Node;
use crate::state::breaker;
use crate::state::failure::Failures;

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
        let tops = self.layers.top(self.file);
        tops.iter().find_map(|it| it.get(key)).filter(|it| !it.is_null())
    }

    fn part(&self, section: &str, key: &str) -> Option<&'l Node> {
        let tops = self.layers.top(self.file);
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

/// What the files of the resilience systems mean.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Resilience {
    pub(in crate::policy) breakers: Vec<(String, breaker::Settings)>,
    /// Where the settings of breakers are written.
    pub(in crate::policy) origins: Vec<(String, BTreeMap<String, Place>)>,
    pub(in crate::policy) routes: Vec<Route>,
    pub(in crate::policy) failures: Failures,
    pub(in crate::policy) rationalizations: Rationalizations,
    pub(in crate::policy) dead_letter: DeadLetter,
    pub(in crate::policy) escalation: Escalation,
    pub(in crate::policy) reactions: Vec<Reaction>,
    pub(in crate::policy) signals: Signals,
    pub(in crate::policy) run: RunPolicy,
}

/// The group of a rule that names none.
fn group_of(action: ReviewAction) -> String {
    let action = if action == ReviewAction::Split { ReviewAction::Retry } else { action };
    action.as_str().to_owned()
}

/// Their files.
const FILES: [&str; 9] = [
    "breakers.yaml",
    "routes.yaml",
    "reactions.yaml",
    "dead_letter.yaml",
    "escalation.yaml",
    "signals.yaml",
    "rationalizations.yaml",
    "run.yaml",
    FAILURES,
];

impl Builder<'_> {
    /// What the files of the resilience systems mean; what the base has where nothing is said over
    /// it. The signals that considerations create must be among them.
    pub(super) fn resilience_over(
        &mut self,
        layers: &Layers,
        base: Option<&Foundation>,
    ) -> Shared<Resilience> {
        let resilience = match base.filter(|_| !layers.owns(&FILES)) {
            Some(base) => base.resilience.clone(),
            None => Shared::new(self.resilience(layers)),
        };
        let considerations = wanted(&layers.considerations, self.own_only);
        for node in considerations.filter_map(|it| it.get("emit")) {
            self.known_signal(node, &resilience.signals);
        }
        resilience
    }

    /// What the files of the resilience systems mean.
    pub(super) fn resilience(&mut self, layers: &Layers) -> Resilience {
        let signals = self.signals(layers);
        let routes = wanted(&layers.routes, self.own_only);
        let failures = failures::failures(layers, self.diagnostics);
        Resilience {
            run: self.run(layers, failures.pause),
            breakers: self.breakers(&layers.breakers),
            origins: breakers::origins(&layers.breakers),
            routes: routes.filter_map(|it| self.route(it)).collect(),
            failures,
            rationalizations: self.rationalizations(layers),
            dead_letter: self.dead_letter(layers),
            escalation: self.escalation(layers),
            reactions: self.reactions(layers, &signals),
            signals,
        }
    }

    /// Entries of a section that are in use, built by `make` while expressions see its record.
    pub(super) fn section_by<T>(
        &mut self,
        layers: &Layers,
        (file, section): (&'static str, &'static str),
        must: &[&str],
        mut make: impl FnMut(&mut Self, &Entry, Expression) -> Option<T>,
    ) -> Vec<T> {
        let entries = layers.section(file, section);
        self.speaking_of(records::names(file, section), |builder| {
            let made = wanted(entries, builder.own_only).filter_map(|entry| {
                builder.must_have_keys(entry, must);
                let when = match entry.get("when") {
                    Some(node) => builder.expression(Some(node), Type::Bool)?,
                    None => Expression::default(),
                };
                let built = make(builder, entry, when);
                built.filter(|_| entry.is_used())
            });
            made.collect()
        })
    }

    /// What `reactions.yaml` means.
    fn reactions(&mut self, layers: &Layers, signals: &Signals) -> Vec<Reaction> {
        self.speaking_of(records::names("reactions.yaml", ""), |builder| {
            let made = wanted(&layers.reactions, builder.own_only)
                .filter_map(|entry| builder.reaction(entry, signals).filter(|_| entry.is_used()));
            made.collect()
        })
    }

    /// Complains about keys that an entry must have once it is put over what it changes.
    fn must_have_keys(&mut self, entry: &Entry, keys: &[&str]) {
        for key in keys.iter().filter(|it| entry.get(it).is_none()) {
            self.missing(entry, key, "every entry of this list has it");
        }
    }

    /// The signal that a reaction creates.
    fn emitted(&mut self, entry: &Entry, signals: &Signals) -> (String, Vec<(String, String)>) {
        let node = entry.get("signal");
        let name = node.and_then(|it| it.get("name"));
        if let Some(name) = name {
            self.known_signal(name, signals);
        }
        let fields = node.and_then(|it| it.get("fields")).and_then(Node::entries);
        let fields = fields.unwrap_or_default().iter();
        let fields = fields
            .filter_map(|(key, value)| Some((key.text()?.to_owned(), self.template(value)?)))
            .collect();
        (text(name), fields)
    }

    /// Complains about a signal that there is not.
    pub(super) fn known_signal(&mut self, node: &Node, signals: &Signals) {
        let name = node.text().unwrap_or_default();
        if signals.kind(name).is_none() {
            let known: Vec<&str> = signals.kinds.iter().map(|it| it.id.as_str()).collect();
            self.unknown("unknown-signal", "signal", node, &known);
        }
    }

    fn reaction(&mut self, entry: &Entry, signals: &Signals) -> Option<Reaction> {
        self.must_have_keys(entry, &["on"]);
        let mut part = |section: &str, key: &str| {
            let node = entry.get(section).and_then(|it| it.get(key));
            node.and_then(|it| self.template(it)).unwrap_or_default()
        };
        let task = [part("task", "id"), part("task", "title"), part("task", "approach")];
        let reason = part("ask_human", "reason");
        let asked = entry.get("ask_human");
        let signal = self.emitted(entry, signals);
        let mut template =
            |key: &str| entry.get(key).and_then(|it| self.template(it)).unwrap_or_default();
        let (breaker, say) = (template("breaker"), template("say"));
        let result = text(entry.get("result"));
        if !breaker.is_empty() && result.is_empty() {
            self.missing(entry, "result", "say `failure` or `success`: what the breaker is told");
        }
        let when = match entry.get("when") {
            Some(node) => Some(self.expression(Some(node), Type::Bool)?),
            None => None,
        };
        Some(Reaction {
            id: entry.id.clone(),
            on: texts(entry.get("on")).iter().filter_map(|it| EventKind::find(it)).collect(),
            when,
            breaker,
            worked: result == "success",
            task,
            signal,
            reason,
            severity: asked
                .and_then(|it| it.get("severity"))
                .and_then(Node::text)
                .unwrap_or("high")
                .to_owned(),
            options: texts(asked.and_then(|it| it.get("options"))),
            say,
        })
    }

    /// What `dead_letter.yaml` means.
    fn dead_letter(&mut self, layers: &Layers) -> DeadLetter {
        const FILE: &str = "dead_letter.yaml";
        let settings = Settings { layers, file: FILE };
        let enter = self.section_by(layers, (FILE, "enter"), &["when"], |_, entry, when| {
            Some(Enter { id: entry.id.clone(), when, strategy: or(entry, "strategy", "") })
        });
        let review =
            self.section_by(layers, (FILE, "review"), &["when", "do"], |_, entry, when| {
                let action = ReviewAction::find(&text(entry.get("do")))?;
                Some(Review {
                    id: entry.id.clone(),
                    group: or(entry, "group", &group_of(action)),
                    when,
                    action,
                    strategy: or(entry, "strategy", ""),
                    reason: or(entry, "reason", &entry.id),
                    fresh: entry.get("fresh").and_then(Node::bool).unwrap_or(false),
                })
            });
        let alarms =
            self.section_by(layers, (FILE, "alarms"), &["when", "text"], |builder, entry, when| {
                let text = builder.choices(entry.get("text")).into_iter().next()?;
                Some(Alarm { id: entry.id.clone(), when, text })
            });
        let order = self.order(&settings, layers);
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
    fn order(&mut self, settings: &Settings<'_>, layers: &Layers) -> Vec<String> {
        let Some(node) = settings.get("order") else {
            return REVIEW_GROUPS.iter().map(|it| (*it).to_owned()).collect();
        };
        let order = texts(Some(node));
        let mut rules = layers.section("dead_letter.yaml", "review").iter();
        let left_out = rules.find_map(|it| {
            let group = it.get("group").and_then(Node::text).map(str::to_owned);
            let group =
                group.or_else(|| Some(group_of(ReviewAction::find(&text(it.get("do")))?)))?;
            (!order.contains(&group)).then_some((it, group))
        });
        if let Some((rule, group)) = left_out {
            let message = format!("`order` leaves out `{group}`");
            let mut found = Diagnostic::error("incomplete-order", node.span.clone(), message);
            if let Some(place) = rule.span() {
                found = found.with_related(place.clone(), "this rule would never be judged");
            }
            let help = format!("name all groups: {}", REVIEW_GROUPS.join(", "));
            self.diagnostics.push(found.with_help(help));
        }
        order
    }

    /// What `escalation.yaml` means.
    fn escalation(&mut self, layers: &Layers) -> Escalation {
        const FILE: &str = "escalation.yaml";
        let triggers =
            self.section_by(layers, (FILE, "triggers"), &["when", "reason"], |_, entry, when| {
                Some(Trigger {
                    id: entry.id.clone(),
                    when,
                    severity: or(entry, "severity", "high"),
                    blocking: entry.get("blocking").and_then(Node::bool).unwrap_or(false),
                    for_each_cause: or(entry, "for_each", "task") == "cause",
                    answer_within: entry.get("answer_within").and_then(Node::duration),
                    reason: text(entry.get("reason")),
                    options: texts(entry.get("options")),
                })
            });
        let channels = self.section_by(layers, (FILE, "channels"), &[], |_, entry, _| {
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
