//! `breakers.yaml` and `routes.yaml`: settings of circuit breakers, and fallback chains over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SourceLocation;
use super::builder::{Builder, place};
use super::field_value::{FieldValue, words};
use super::fields::{DESCRIPTION, OVERRIDE, TEXTS};
use super::layers::LayerEntry;
use super::record::{Conversion, record, words};
use policyd_facts::glob::{specificity, word_matches};
use policyd_state::breaker::{BreakerMode, BreakerSettings, OnPermanent, Window};
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;

const COUNT: Kind = Kind::Int { min: 1, max: 1000 };
const PERCENT: Kind = Kind::Int { min: 1, max: 100 };

/// A fallback chain: the tiers that are tried, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Id, unique in `routes.yaml`.
    pub id: String,
    /// The tiers; the first one whose breaker permits a call is taken.
    pub tiers: Vec<LoadTier>,
}

/// One tier of a fallback chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTier {
    /// Name that `policyd breaker route` prints.
    pub name: String,
    /// Name of its circuit breaker.
    pub breaker: String,
    /// Parts of names of models that belong to the tier, the preferred model first.
    pub models: Vec<String>,
}

words! {
    BreakerMode { Enforce = "enforce", Observe = "observe", Off = "off" }
    OnPermanent { Open = "open", Note = "note" }
}

/// `window`: calls of the last so long count.
const TIME_WINDOW: Conversion<Window> = Conversion {
    read: |node, _| node.duration().map(Window::Time),
    show: |window| match window {
        Window::Time(length) => length.to_json(),
        Window::Calls(_) | Window::Consecutive => None,
    },
};

/// `window_calls`: the last so many calls count.
const CALL_WINDOW: Conversion<Window> =
    Conversion::reading(|node, _| u32::from_node(node).map(Window::Calls));

/// `consecutive`: failures in a row count.
const CONSECUTIVE_WINDOW: Conversion<Window> = Conversion {
    read: |node, _| (node.bool()?).then_some(Window::Consecutive),
    show: |window| Some((*window == Window::Consecutive).into()),
};

/// `cooldown_factor`: a factor from 1 to 100, held in percent.
const FACTOR: Conversion<u32> = Conversion {
    read: |node, _| node.number().map(percent),
    show: |percent| Some((f64::from(*percent) / 100.0).into()),
};

record! {
    /// An entry of `breakers.yaml`. Its key is a glob over names of breakers.
    pub(super) const BREAKER: RecordType<BreakerSettings> = {
        mode: words::<BreakerMode>() => mode,
            "Whether it rejects calls (`enforce`), only tells which ones it would (`observe`), \
             or admits all and records nothing (`off`).";
        threshold [also_known_as(&["failure_threshold", "max_failures", "failureThreshold"])]:
            COUNT => threshold,
            "Failures within the window that open it.";
        window: Kind::Duration => window by TIME_WINDOW, "How long a call counts.";
        window_calls: COUNT => window by CALL_WINDOW,
            "Calls that count, the last ones: in place of `window`.";
        consecutive: Kind::Bool => window by CONSECUTIVE_WINDOW,
            "Counts failures in a row, however old: in place of `window`.";
        failure_rate: PERCENT => failure_rate,
            "Share of failed calls that opens it, in percent: in place of `threshold`.";
        slow_call: Kind::Duration => slow_call_duration, "A call that takes as long is slow.";
        slow_rate: PERCENT => slow_call_rate, "Share of slow calls that opens it, in percent.";
        min_calls: COUNT => minimum_calls, "Calls in the window before a share of them says anything.";
        cooldown [also_known_as(&["reset_timeout", "cooldownSeconds", "open_duration"])]:
            Kind::Duration => cooldown,
            "How long it stays open.";
        cooldown_factor: Kind::Number { min: 1.0, max: 100.0 } => cooldown_multiplier by FACTOR,
            "How many times as long each further cooldown is, until it stayed closed for as long \
             as the longest one.";
        cooldown_max: Kind::Duration => cooldown_max, "Longest cooldown, where they grow.";
        cooldown_jitter: Kind::Int { min: 0, max: 100 } => cooldown_jitter,
            "Up to how many percent are taken off a cooldown, so that not all come back at once.";
        retry_after_max: Kind::Duration => retry_after_max,
            "Longest time for which a `Retry-After` keeps it open.";
        half_open_interval: Kind::Duration => half_open_interval,
            "Time between two trial calls while it is half open, and after which a lost trial call no \
             longer counts.";
        recovery_threshold [also_known_as(&["success_threshold", "halfOpenRequests"])]:
            COUNT => recovery_threshold,
            "Successes in a row that close it.";
        ramp_start: PERCENT => recovery_ramp_start, "Capacity just after it closed again, in percent.";
        ramp_step: PERCENT => recovery_ramp_step,
            "What is added to the capacity each `ramp_every`, in percent.";
        ramp_every: Kind::Duration => recovery_ramp_every, "How long each step of the capacity lasts.";
        parallelism: COUNT => max_concurrent_calls, "Calls that may run side by side: a hint for rules.";
        parallelism_reduced: COUNT => max_concurrent_calls_reduced, "The same while it is not closed.";
        ignore: TEXTS => ignore, "Classes of errors that are noted and do not count.";
        permanent: TEXTS => permanent,
            "Classes of errors that waiting does not cure: they go to a human, and never count.";
        on_permanent: words::<OnPermanent>() => on_permanent,
            "Whether a permanent error opens it at once, or is only noted.";
        use DESCRIPTION;
        use OVERRIDE;
    }

    const TIER: RecordType<LoadTier> = {
        name [mandatory()]: Kind::Text => name, "Its name, as it is answered.";
        breaker: Kind::Text => breaker, "Name of its circuit breaker; `<id>/<name>` by default.";
        models: TEXTS => models, "Models of the provider, the preferred one first.";
    }

    /// An entry of `routes.yaml`.
    pub(super) const ROUTE: RecordType<Route> = {
        id [mandatory()]: Kind::Text => id, "Name of the route.";
        tiers: TIER.list => tiers by TIER.items,
            "What is tried, in this order: the first whose breaker admits a call is taken.";
        use DESCRIPTION;
        use OVERRIDE;
    }
}

/// Entries from the least specific glob to the most specific one.
fn by_specificity(entries: &[Arc<LayerEntry>]) -> Vec<&LayerEntry> {
    let mut entries: Vec<&LayerEntry> = entries.iter().map(AsRef::as_ref).collect();
    entries.sort_by_key(|entry| specificity(&entry.id));
    entries
}

/// Returns the value of the most specific known glob that matches another glob.
fn inherited<'k, T>(known: &'k [(String, T)], glob: &str) -> Option<&'k T> {
    known.iter().rev().find(|(wider, _)| word_matches(wider, glob)).map(|(_, value)| value)
}

/// Returns where the settings of each glob are written, including the inherited ones.
pub(super) fn origins(
    entries: &[Arc<LayerEntry>],
) -> Vec<(String, BTreeMap<String, SourceLocation>)> {
    let mut known: Vec<(String, BTreeMap<String, SourceLocation>)> = Vec::new();
    for entry in by_specificity(entries) {
        let mut places = inherited(&known, &entry.id).cloned().unwrap_or_default();
        let keys = BREAKER.fields.iter().map(|field| field.name);
        let keys = keys.filter(|key| !matches!(*key, "description" | "override"));
        let written = keys.filter_map(|key| Some((key, entry.get(key)?)));
        places.extend(written.map(|(key, node)| (key.to_owned(), place(&node.span))));
        known.push((entry.id.clone(), places));
    }
    known
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kind of the key keeps the factor between 1 and 100"
)]
fn percent(factor: f64) -> u32 {
    (factor * 100.0).round().clamp(100.0, 10_000.0) as u32
}

impl Builder<'_> {
    /// Builds the settings of each glob over names of breakers. An entry inherits missing settings from the most
    /// specific other glob that matches its own glob, and finally the defaults.
    pub(super) fn breakers(
        &mut self,
        entries: &[Arc<LayerEntry>],
    ) -> Vec<(String, BreakerSettings)> {
        let mut known: Vec<(String, BreakerSettings)> = Vec::new();
        for entry in by_specificity(entries) {
            let base = inherited(&known, &entry.id).cloned().unwrap_or_default();
            known.push((entry.id.clone(), self.breaker(entry, base)));
        }
        known
    }

    fn breaker(&mut self, entry: &LayerEntry, base: BreakerSettings) -> BreakerSettings {
        let mut settings = base;
        if entry.get("threshold").is_some() {
            // A number of failures replaces an inherited failure rate.
            settings.failure_rate = None;
        }
        (BREAKER.fill)(&mut settings, &entry.map(), self);
        let counts_all = entry.get("consecutive").and_then(Node::bool) == Some(false);
        if counts_all && settings.window == Window::Consecutive {
            settings.window = BreakerSettings::default().window;
        }
        settings
    }

    pub(super) fn route(&mut self, entry: &LayerEntry) -> Option<Route> {
        let mut route = ROUTE.read(&entry.map(), self);
        if route.tiers.is_empty() {
            self.missing(entry, "tiers", "a chain says what is tried, one after the other");
            return None;
        }
        for tier in route.tiers.iter_mut().filter(|tier| tier.breaker.is_empty()) {
            tier.breaker = format!("{}/{}", entry.id, tier.name);
        }
        Some(route)
    }
}
