//! `context.yaml`: windows and prices of models, tiers of context usage, and what is reported at each tier.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Choice;
use super::builder::{Builder, text};
use super::field_value::words;
use super::fields::{CHOICES, DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS};
use super::layers::Layers;
use super::record::{TEMPLATE, record, words};
use super::records;
use policyd_facts::glob::{specificity, word_matches};
use policyd_facts::meters::{Meters, Prices, Usage};
use policyd_state::context::{ContextSettings, MeterKind, Tier, WINDOW};
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::{Diagnostic, Span};

pub(super) const FILE: &str = "context.yaml";
/// The list of tiers in the file.
pub(super) const TIERS: &str = "tiers";
const TOKENS: Kind = Kind::Int { min: 1, max: 1_000_000_000 };
const PRICE: Kind = Kind::Number { min: 0.0, max: 1_000_000.0 };

/// Events at which a tier can be reported to the agent.
const TOLD_AT: &[&str] = &["user_prompt_submit", "post_tool_use", "post_tool_use_failure"];

/// How a session can begin.
const SOURCES: &[&str] = &["startup", "clear", "compact", "resume", "fork"];

/// Billionths of a US dollar per token, for one US dollar per million tokens.
const NANO_PER_TOKEN: f64 = 1000.0;

/// Windows, prices, and tiers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextRules {
    /// Window of models that no glob matches, in tokens.
    pub window: u64,
    /// Windows of variants by the suffix of the model name, the smallest first.
    pub variants: Vec<(String, u64)>,
    /// Models by globs over names.
    pub models: Vec<(String, Model)>,
    /// The meter and its tiers.
    pub settings: ContextSettings,
    /// Texts of the tiers, in the order of the tiers.
    pub say: Vec<(String, Vec<Choice>)>,
    /// Globs over files with notes about the state of the work.
    pub notes: Vec<String>,
    /// Instruction to the summarizer of a compaction; a template over `context`.
    pub compact: String,
    /// Sessions that request a fresh context.
    pub clear_requests: ClearRequests,
    /// Kinds of session starts that receive the summary of the previous session.
    pub inject: Vec<String>,
    /// Maximum age of such a summary.
    pub summary_max_age: Duration,
}

impl Default for ContextRules {
    fn default() -> Self {
        Self {
            window: WINDOW,
            variants: Vec::new(),
            models: Vec::new(),
            settings: ContextSettings { hysteresis: 5.0, ..ContextSettings::default() },
            say: Vec::new(),
            notes: Vec::new(),
            compact: String::new(),
            clear_requests: ClearRequests::default(),
            inject: Vec::new(),
            // loki-mode ignores summaries that are older than a day.
            summary_max_age: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Sessions that request a fresh context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClearRequests {
    /// No session.
    Never,
    /// Sessions of a driver that can provide one.
    #[default]
    Loop,
    /// All sessions.
    Always,
}

words! {
    ClearRequests { Never = "never", Loop = "loop", Always = "always" }
    MeterKind { Occupancy = "occupancy", Cumulative = "cumulative" }
}

impl ClearRequests {
    /// Whether a session requests one. `driven`: whether a driver runs the session.
    #[must_use]
    pub const fn holds(self, driven: bool) -> bool {
        match self {
            Self::Never => false,
            Self::Loop => driven,
            Self::Always => true,
        }
    }
}

/// Window and prices of the models that match a glob.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Window in tokens, if known.
    pub window: Option<u64>,
    /// Prices of tokens, if known.
    pub prices: Option<Prices>,
}

/// The content of `context.yaml`.
#[derive(Debug, Clone, Default)]
pub(super) struct ContextFile {
    pub(super) rules: ContextRules,
    /// Events at which tiers are reported.
    pub(super) told_at: Vec<String>,
}

/// An entry of the list of tiers.
#[derive(Debug, Default)]
struct TierEntry {
    id: String,
    at: Option<f64>,
    say: Vec<Choice>,
    span: Option<Span>,
}

/// Keys of a model. Prices are in US dollars per million tokens.
#[derive(Debug, Default)]
struct ModelKeys {
    window: Option<u64>,
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl ModelKeys {
    fn model(&self) -> Model {
        let prices = self.input.map(|input| Prices {
            input: nano(input),
            output: nano(self.output.unwrap_or(input)),
            cache_read: nano(self.cache_read.unwrap_or(input / 10.0)),
            cache_creation: nano(self.cache_write.unwrap_or(input * 1.25)),
        });
        Model { window: self.window, prices }
    }
}

record! {
    const MODEL: RecordType<ModelKeys> = {
        window: TOKENS => window, "Tokens it can hold.";
        input: PRICE => input, "US dollars for a million tokens of input.";
        output: PRICE => output, "US dollars for a million tokens of output.";
        cache_read: PRICE => cache_read,
            "The same read from the cache; a tenth of the input by default.";
        cache_write: PRICE => cache_write, "The same written to it; 1.25 of the input by default.";
    }

    const TIER: RecordType<TierEntry> = {
        use ID => id;
        at [needed()]: Kind::Number { min: 0.0, max: 1000.0 } => at,
            "Percentage from which on it is reached.";
        say [needed()]: CHOICES => say, "Message to the agent when it is reached.";
        use DESCRIPTION;
        use ENABLED;
        use OVERRIDE;
    }

    const SUMMARY: RecordType<ContextFile> = {
        inject: Kind::List(&Kind::Choice(SOURCES)) => rules.inject,
            "Beginnings of a session that receive the summary of the previous session.";
        max_age: Kind::Duration => rules.summary_max_age, "Older summaries are not delivered.";
    }

    pub(super) const CONTEXT: RecordType<ContextFile> = {
        window: TOKENS => rules.window,
            "Tokens that a model can hold of which nothing else is said.";
        variants: Kind::Map(&TOKENS),
            "Windows of variants of models, by what their names end with.";
        models: Kind::Map(&MODEL.map), "Windows and prices, by globs over names.";
        meter: words::<MeterKind>() => rules.settings.measured, "What the tiers are measured on.";
        hysteresis: Kind::Number { min: 0.0, max: 100.0 } => rules.settings.hysteresis,
            "Points that a tier holds below its own percentage.";
        on: Kind::List(&Kind::Choice(TOLD_AT)) => told_at, "Events at which tiers are reported.";
        tiers: TIER.list,
            "Percentages at which the agent receives a message; `act` is the one at which a run \
             restarts.";
        notes: TEXTS => rules.notes,
            "Globs over files that hold where the work stands, the best one first.";
        compact: Kind::Template => rules.compact by TEMPLATE,
            "Instruction to the summarizer of the client.";
        clear_requests: words::<ClearRequests>() => rules.clear_requests,
            "Which sessions ask for a fresh context by the triggers of `signals.yaml`.";
        summary: section SUMMARY, "What is carried over into the next context.";
    }
}

impl Builder<'_> {
    pub(super) fn context(&mut self, layers: &Layers) -> ContextFile {
        let own_only = std::mem::take(&mut self.own_only);
        let tiers = self.section_with(layers, FILE, TIERS, &TIER, |_, entry, tier| TierEntry {
            span: entry.span().cloned(),
            ..tier
        });
        self.own_only = own_only;
        let (tiers, say) = self.rising(tiers);
        let names = records::names(FILE, "");
        let tops = layers.top(FILE);
        let below = |key: &'static str| tops.iter().filter_map(move |file| file.get(key));
        let ContextFile { rules, told_at } =
            self.speaking_of(names, |builder| CONTEXT.read(&layers.top_map(FILE), builder));
        let (variants, models) = (variants(below("variants")), models(below("models"), self));
        let settings = ContextSettings { tiers, ..rules.settings };
        ContextFile { rules: ContextRules { variants, models, settings, say, ..rules }, told_at }
    }

    /// Returns the tiers in ascending order, and the texts of each. Reports tiers with the same percentage.
    fn rising(&mut self, tiers: Vec<TierEntry>) -> (Vec<Tier>, Vec<(String, Vec<Choice>)>) {
        let with_tier = |entry: TierEntry| {
            let tier = Tier { id: entry.id, at: entry.at? };
            Some((tier, entry.say, entry.span))
        };
        let mut tiers: Vec<_> = tiers.into_iter().filter_map(with_tier).collect();
        tiers.sort_by(|one, other| one.0.at.total_cmp(&other.0.at));
        for pair in tiers.windows(2) {
            let [(lower, ..), (higher, _, Some(span))] = pair else { continue };
            if lower.at >= higher.at {
                let message =
                    format!("`{}` and `{}` are reached at one percentage", lower.id, higher.id);
                let found = Diagnostic::error("duplicate-id", span.clone(), message);
                self.diagnostics.push(found.with_help("give one of them another `at`"));
            }
        }
        let say = tiers.iter().map(|(tier, say, _)| (tier.id.clone(), say.clone())).collect();
        (tiers.into_iter().map(|(tier, ..)| tier).collect(), say)
    }
}

/// Returns windows by suffix, the smallest first. The topmost pack that has a suffix decides.
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

/// Returns models by glob. The topmost pack that has a glob decides.
fn models<'n>(
    layers: impl Iterator<Item = &'n Node>,
    builder: &mut Builder<'_>,
) -> Vec<(String, Model)> {
    let mut known: Vec<(String, Model)> = Vec::new();
    for (key, value) in layers.filter_map(Node::entries).flatten() {
        let glob = text(Some(key));
        if known.iter().all(|(it, _)| *it != glob) {
            let keys = MODEL.read(&LayeredMap::from_iter([value]), builder);
            known.push((glob, keys.model()));
        }
    }
    known
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the shape keeps prices between 0 and a million"
)]
fn nano(dollars_per_million: f64) -> u64 {
    (dollars_per_million * NANO_PER_TOKEN).round() as u64
}

impl ContextRules {
    /// Returns the window of a model in tokens. A model that already `holds` more is a larger variant.
    #[must_use]
    pub fn window(&self, model: &str, holds: u64) -> u64 {
        let variant = self.variants.iter().find(|(ending, _)| model.ends_with(ending.as_str()));
        if let Some((_, window)) = variant {
            return *window;
        }
        let named = self.known(model, |it| it.window);
        let plain = named.unwrap_or(self.window);
        let larger = self.variants.iter().map(|(_, window)| *window);
        let larger = larger.filter(|it| *it > plain && *it >= holds).min();
        larger.filter(|_| holds > plain).unwrap_or(plain)
    }

    /// Returns the prices of a model, if known.
    #[must_use]
    pub fn prices(&self, model: &str) -> Option<Prices> {
        self.known(model, |it| it.prices)
    }

    /// Returns the cost of tokens in billionths of a US dollar; 0 if the price is unknown.
    #[must_use]
    pub fn cost(&self, model: &str, usage: &Usage) -> u64 {
        self.prices(model).map_or(0, |it| it.cost(usage))
    }

    /// Returns the cost of all counted tokens in billionths of a US dollar.
    #[must_use]
    pub fn spent(&self, meters: &Meters) -> u64 {
        let costs = meters.spent.iter().map(|(model, usage)| self.cost(model, usage));
        costs.fold(0, u64::saturating_add)
    }

    /// Returns the used models whose prices are unknown.
    #[must_use]
    pub fn unpriced<'m>(&self, meters: &'m Meters) -> Vec<&'m str> {
        let models = meters.spent.keys().map(String::as_str);
        models.filter(|it| self.prices(it).is_none()).collect()
    }

    /// Returns the value of the most specific glob that matches a model and has a value.
    fn known<T>(&self, model: &str, look: impl Fn(&Model) -> Option<T>) -> Option<T> {
        let endings = self.variants.iter().map(|(ending, _)| ending.as_str());
        let base = endings.fold(model, |name, ending| name.strip_suffix(ending).unwrap_or(name));
        let said = self.models.iter().filter_map(|(glob, it)| Some((glob, look(it)?)));
        let fitting = said.filter(|(glob, _)| word_matches(glob, base));
        fitting.max_by_key(|(glob, _)| specificity(glob)).map(|(_, it)| it)
    }
}
