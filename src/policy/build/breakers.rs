//! Circuit breakers by the glob over their names, and the chains of fallbacks over them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Builder, place, text, texts};
use crate::facts::glob::{specificity, word_matches};
use crate::policy::layers::Entry;
use crate::policy::shapes::BREAKER;
use crate::policy::{Place, Route, Tier};
use crate::source::node::Node;
use crate::state::breaker::{Mode, OnPermanent, Settings, Window};

/// Circuit breakers by the glob over their names. What an entry leaves out it takes from the longest
/// other glob that matches its name, at last the seed's number.
pub(super) fn breakers(entries: &[Arc<Entry>]) -> Vec<(String, Settings)> {
    let mut known: Vec<(String, Settings)> = Vec::new();
    for entry in narrowing(entries) {
        let base = wider(&known, &entry.id).cloned().unwrap_or_default();
        known.push((entry.id.clone(), settings(entry, base)));
    }
    known
}

/// Where the settings of each glob are written, those that it takes from wider ones too.
pub(super) fn origins(entries: &[Arc<Entry>]) -> Vec<(String, BTreeMap<String, Place>)> {
    let mut known: Vec<(String, BTreeMap<String, Place>)> = Vec::new();
    for entry in narrowing(entries) {
        let mut places = wider(&known, &entry.id).cloned().unwrap_or_default();
        let written = BREAKER.iter().filter_map(|it| Some((it.name, entry.get(it.name)?)));
        let told = |name: &str| !matches!(name, "description" | "override");
        let written = written.filter(|(name, _)| told(name));
        places.extend(written.map(|(name, node)| (name.to_owned(), place(&node.span))));
        known.push((entry.id.clone(), places));
    }
    known
}

/// Entries from the least specific glob to the most specific one.
fn narrowing(entries: &[Arc<Entry>]) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = entries.iter().map(AsRef::as_ref).collect();
    entries.sort_by_key(|it| specificity(&it.id));
    entries
}

/// What the longest glob says that takes this one in.
fn wider<'k, T>(known: &'k [(String, T)], id: &str) -> Option<&'k T> {
    known.iter().rev().find(|(glob, _)| word_matches(glob, id)).map(|(_, it)| it)
}

fn settings(entry: &Entry, base: Settings) -> Settings {
    let number = |key: &str| {
        let found = entry.get(key).and_then(Node::int);
        found.and_then(|it| u32::try_from(it).ok())
    };
    let count = |key: &str, base: u32| number(key).unwrap_or(base);
    let span = |key: &str, base: Duration| entry.get(key).and_then(Node::duration).unwrap_or(base);
    let classes = |key: &str, base: Vec<String>| match entry.get(key) {
        Some(node) => texts(Some(node)),
        None => base,
    };
    // Who writes a number of failures does not mean the share that a wider entry writes.
    let inherited_rate = base.failure_rate.filter(|_| entry.get("threshold").is_none());
    Settings {
        mode: match text(entry.get("mode")).as_str() {
            "enforce" => Mode::Enforce,
            "observe" => Mode::Observe,
            "off" => Mode::Off,
            _ => base.mode,
        },
        window: window(entry, number("window_calls"), base.window),
        threshold: count("threshold", base.threshold),
        failure_rate: number("failure_rate").or(inherited_rate),
        slow_call: span("slow_call", base.slow_call),
        slow_rate: number("slow_rate").or(base.slow_rate),
        min_calls: count("min_calls", base.min_calls),
        cooldown: span("cooldown", base.cooldown),
        cooldown_growth: entry
            .get("cooldown_factor")
            .and_then(Node::number)
            .map_or(base.cooldown_growth, percent),
        cooldown_max: span("cooldown_max", base.cooldown_max),
        cooldown_jitter: count("cooldown_jitter", base.cooldown_jitter),
        retry_after_max: span("retry_after_max", base.retry_after_max),
        half_open_interval: span("half_open_interval", base.half_open_interval),
        recovery_threshold: count("recovery_threshold", base.recovery_threshold),
        ramp_start: count("ramp_start", base.ramp_start),
        ramp_step: count("ramp_step", base.ramp_step),
        ramp_every: span("ramp_every", base.ramp_every),
        parallelism: count("parallelism", base.parallelism),
        parallelism_reduced: count("parallelism_reduced", base.parallelism_reduced),
        ignore: classes("ignore", base.ignore),
        permanent: classes("permanent", base.permanent),
        on_permanent: match text(entry.get("on_permanent")).as_str() {
            "open" => OnPermanent::Open,
            "note" => OnPermanent::Note,
            _ => base.on_permanent,
        },
        salt: base.salt,
    }
}

/// What counts: the entry's own words come before those of wider ones.
fn window(entry: &Entry, calls: Option<u32>, base: Window) -> Window {
    let time = entry.get("window").and_then(Node::duration).map(Window::Time);
    let consecutive = entry.get("consecutive").and_then(Node::bool);
    let own = if consecutive == Some(true) {
        Some(Window::Consecutive)
    } else {
        calls.map(Window::Calls).or(time)
    };
    match (own, consecutive, base) {
        (Some(own), _, _) => own,
        (None, Some(false), Window::Consecutive) => Settings::default().window,
        (None, _, base) => base,
    }
}

/// A factor of at most 100 in percent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the shape of the file keeps it between 1 and 100"
)]
fn percent(factor: f64) -> u32 {
    (factor * 100.0).round().clamp(100.0, 10_000.0) as u32
}

impl Builder<'_> {
    pub(super) fn route(&mut self, entry: &Entry) -> Option<Route> {
        let tiers = entry.get("tiers").and_then(Node::items).unwrap_or_default();
        if tiers.is_empty() {
            self.missing(entry, "tiers", "a chain says what is tried, one after the other");
            return None;
        }
        let tier = |node: &Node| {
            let name = text(node.get("name"));
            let breaker = match text(node.get("breaker")) {
                none if none.is_empty() => format!("{}/{name}", entry.id),
                named => named,
            };
            Tier { name, breaker, models: texts(node.get("models")) }
        };
        Some(Route { id: entry.id.clone(), tiers: tiers.iter().map(tier).collect() })
    }
}
