//! Turns the layers of `context.yaml` into meaning.

use std::time::Duration;

use super::{Builder, Foundation, Shared, text, texts};
use crate::facts::meters::Prices;
use crate::policy::Choice;
use crate::policy::context::{ClearRequests, ContextRules, Model};
use crate::policy::layers::Layers;
use crate::policy::records;
use crate::source::node::Node;
use crate::source::{Diagnostic, Span};
use crate::state::context::{Measured, Settings, Tier, WINDOW};

/// The file.
pub(super) const FILE: &str = "context.yaml";
/// Its list of tiers.
pub(super) const TIERS: &str = "tiers";
/// Points that a tier holds below its own, where the pack does not say.
const HYSTERESIS: f64 = 5.0;
/// Older summaries are not told, where the pack does not say (seed 003).
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Billionths of a US dollar for one token, of a US dollar for a million.
const NANO_PER_TOKEN: f64 = 1000.0;

impl Builder<'_> {
    /// What `context.yaml` means; what the base has where nothing is said over it.
    pub(super) fn context_over(
        &mut self,
        layers: &Layers,
        base: Option<&Foundation>,
    ) -> Shared<(ContextRules, Vec<String>)> {
        match base.filter(|_| !layers.owns(&[FILE])) {
            Some(base) => base.context.clone(),
            None => Shared::new(self.context(layers)),
        }
    }

    /// What `context.yaml` means, and the events at which tiers are told.
    pub(super) fn context(&mut self, layers: &Layers) -> (ContextRules, Vec<String>) {
        let tops = layers.top(FILE);
        let top = |key: &str| tops.iter().find_map(|it| it.get(key)).filter(|it| !it.is_null());
        let part = |section: &str, key: &str| {
            tops.iter().filter_map(|it| it.get(section)).find_map(|it| it.get(key))
        };
        let own_only = std::mem::take(&mut self.own_only);
        let tiers = self.section_by(layers, (FILE, TIERS), &["at", "say"], |it, entry, _| {
            let tier = Tier { id: entry.id.clone(), at: entry.get("at").and_then(Node::number)? };
            Some((tier, it.choices(entry.get("say")), entry.span().cloned()))
        });
        self.own_only = own_only;
        let (tiers, say) = self.rising(tiers);
        let names = records::names(FILE, "");
        let compact =
            top("compact").and_then(|node| self.speaking_of(names, |it| it.template(node)));
        let whole = |key: &str| top(key).and_then(Node::int).and_then(|it| u64::try_from(it).ok());
        let rules = ContextRules {
            window: whole("window").unwrap_or(WINDOW),
            variants: variants(tops.iter().filter_map(|it| it.get("variants"))),
            models: models(tops.iter().filter_map(|it| it.get("models"))),
            settings: Settings {
                measured: match text(top("meter")).as_str() {
                    "cumulative" => Measured::Cumulative,
                    _ => Measured::Occupancy,
                },
                tiers,
                hysteresis: top("hysteresis").and_then(Node::number).unwrap_or(HYSTERESIS),
            },
            say,
            notes: texts(top("notes")),
            compact: compact.unwrap_or_default(),
            clear_requests: ClearRequests::find(&text(top("clear_requests"))).unwrap_or_default(),
            inject: texts(part("summary", "inject")),
            summary_max_age: part("summary", "max_age").and_then(Node::duration).unwrap_or(MAX_AGE),
        };
        (rules, texts(top("on")))
    }

    /// The tiers in rising order, with what is said at each. Two at one percentage are one too many.
    fn rising(
        &mut self,
        mut tiers: Vec<(Tier, Vec<Choice>, Option<Span>)>,
    ) -> (Vec<Tier>, Vec<(String, Vec<Choice>)>) {
        tiers.sort_by(|one, other| one.0.at.total_cmp(&other.0.at));
        for pair in tiers.windows(2) {
            let [(lower, ..), (higher, _, Some(span))] = pair else { continue };
            if lower.at >= higher.at {
                let message =
                    format!("`{}` and `{}` are reached at one percentage", lower.id, higher.id);
                let found = Diagnostic::error("same-tier", span.clone(), message);
                self.diagnostics.push(found.with_help("give one of them another `at`"));
            }
        }
        let say = tiers.iter().map(|(tier, say, _)| (tier.id.clone(), say.clone())).collect();
        (tiers.into_iter().map(|(tier, ..)| tier).collect(), say)
    }
}

/// Windows by endings, the smallest first; the topmost pack that has an ending decides.
fn variants<'n>(layers: impl Iterator<Item = &'n Node>) -> Vec<(String, u64)> {
    let mut known: Vec<(String, u64)> = Vec::new();
    for (key, value) in layers.filter_map(Node::entries).flatten() {
        let ending = text(Some(key));
        if let Some(window) = value.int().and_then(|it| u64::try_from(it).ok())
            && known.iter().all(|(it, _)| *it != ending)
        {
            known.push((ending, window));
        }
    }
    known.sort_by_key(|(_, window)| *window);
    known
}

/// Models by globs; the topmost pack that has a glob decides.
fn models<'n>(layers: impl Iterator<Item = &'n Node>) -> Vec<(String, Model)> {
    let mut known: Vec<(String, Model)> = Vec::new();
    for (key, value) in layers.filter_map(Node::entries).flatten() {
        let glob = text(Some(key));
        if known.iter().all(|(it, _)| *it != glob) {
            known.push((glob, model(value)));
        }
    }
    known
}

fn model(node: &Node) -> Model {
    let price = |key: &str| node.get(key).and_then(Node::number);
    let prices = price("input").map(|input| Prices {
        input: nano(input),
        output: nano(price("output").unwrap_or(input)),
        cache_read: nano(price("cache_read").unwrap_or(input / 10.0)),
        cache_creation: nano(price("cache_write").unwrap_or(input * 1.25)),
    });
    let window = node.get("window").and_then(Node::int).and_then(|it| u64::try_from(it).ok());
    Model { window, prices }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the shape keeps prices between 0 and a million"
)]
fn nano(dollars_per_million: f64) -> u64 {
    (dollars_per_million * NANO_PER_TOKEN).round() as u64
}
