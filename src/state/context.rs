//! Context usage of an agent: percentages of a window, and tiers with their saved state.
//!
//! Contains: arithmetic. Does not contain: token counters (`facts::meters`), the windows of models
//! (the pack).
//!
//! `step(standing, reading, settings) -> (standing, effect)`. A tier is *reached* if the percentage
//! is at least its `at`. A reached tier *holds* until the percentage is more than `hysteresis`
//! below it.
//!
//! | saved tier | compacted since | usage unknown | a higher tier is reached | the tier holds | the tier does not hold |
//! |---|---|---|---|---|---|
//! | none | no tier, then as below | no change | that tier, `Crossed` | (no change) | (no change) |
//! | a tier | no tier, then as below; `Rearmed` if no tier is reached | no change | that tier, `Crossed` | no change | the highest reached tier, or none: `Rearmed` |
//!
//! Each crossing is reported once, and again only after the context was cleared or compacted. A
//! client that reports this before its transcript shows it takes precedence
//! ([`TierState::emptied`]): earlier readings then count as unknown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored::or_default;

/// Tokens in the window of an unknown model.
pub const WINDOW: u64 = 200_000;
/// Percentage at which a context counts as exhausted. shipwright has the same default.
pub const THRESHOLD: f64 = 70.0;
/// Environment variable with the tokens of the window, for any model. shipwright uses it, too.
pub const WINDOW_VARIABLE: &str = "CONTEXT_WINDOW_TOKENS";
/// Environment variable with the percentage of the tier `act`. shipwright uses it, too.
pub const THRESHOLD_VARIABLE: &str = "CONTEXT_EXHAUSTION_THRESHOLD";
/// Environment variable with Claude Code's name of the model, including the suffix that its
/// transcripts lack.
pub const MODEL_VARIABLE: &str = "ANTHROPIC_MODEL";
/// Environment variable that a supervisor sets if it can give the agent a new context.
pub const DRIVEN_VARIABLE: &str = "POLICYD_RUN";

/// Id of the tier that triggers an action.
pub const ACT: &str = "act";

/// Parses a number of digits only, as shipwright does. `None` for any other text.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    // A number with too many digits is the maximum.
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Returns the percentage of a window, rounded down. More than 100 if the window is exceeded, 0 if
/// the window is 0.
#[must_use]
pub fn percent(tokens: u64, window: u64) -> u64 {
    let whole = u128::from(tokens).saturating_mul(100).checked_div(u128::from(window));
    whole.map_or(0, |it| u64::try_from(it).unwrap_or(u64::MAX))
}

/// Like [`percent`], with the fraction.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
pub fn share(tokens: u64, window: u64) -> f64 {
    if window == 0 { 0.0 } else { tokens as f64 * 100.0 / window as f64 }
}

/// Returns whether a context is exhausted: at least one token, and at least `threshold` percent of
/// the window. `false` without a window.
#[must_use]
pub fn exhausted(tokens: u64, window: u64, threshold: f64) -> bool {
    tokens > 0 && window > 0 && share(tokens, window) >= threshold
}

/// Counter that the tiers are compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeterKind {
    /// Current size of the context.
    #[default]
    Occupancy,
    /// Tokens spent so far, as shipwright counts.
    Cumulative,
}

impl MeterKind {
    /// Returns the name in `context.yaml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Occupancy => "occupancy",
            Self::Cumulative => "cumulative",
        }
    }
}

/// A tier: a percentage from which something is reported or done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// Id, as in `context.yaml`.
    pub id: String,
    /// Percentage of the window.
    pub at: f64,
}

/// Settings of the tiers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextSettings {
    pub measured: MeterKind,
    /// Tiers, in increasing order.
    pub tiers: Vec<Tier>,
    /// Percentage points below its own percentage at which a tier still holds.
    pub hysteresis: f64,
}

impl ContextSettings {
    /// Returns the settings with `act` at another percentage. Tiers above it are removed.
    #[must_use]
    pub fn acting_at(mut self, threshold: f64) -> Self {
        self.tiers.retain(|it| it.id != ACT && it.at < threshold);
        self.tiers.push(Tier { id: ACT.to_owned(), at: threshold });
        self
    }

    /// Returns the percentage of a tier.
    #[must_use]
    pub fn at(&self, tier: &str) -> Option<f64> {
        self.tiers.iter().find(|it| it.id == tier).map(|it| it.at)
    }

    /// Returns the percentage of the tier `act`.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.at(ACT).unwrap_or(THRESHOLD)
    }

    /// Returns the highest reached tier.
    fn fitting(&self, percent: f64) -> Option<&Tier> {
        self.tiers.iter().rev().find(|it| percent >= it.at)
    }
}

/// Settings of the environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Overrides {
    /// Size of the window in tokens; 0 switches the meters off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Percentage of the tier `act`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Name of the model, which can be more precise than in transcripts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
}

impl Overrides {
    /// Reads the environment. Also returns a message for each invalid value, which is ignored.
    #[must_use]
    pub fn read(get: impl Fn(&str) -> Option<String>) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let mut odd = |name: &str, text: &str| {
            wrong.push(format!("{name} is `{text}`, which is not a number; context.yaml decides"));
        };
        let window = get(WINDOW_VARIABLE).and_then(|text| {
            let below = text.trim().strip_prefix('-').and_then(number).map(|_| 0);
            let window = below.or_else(|| number(&text));
            if window.is_none() {
                odd(WINDOW_VARIABLE, &text);
            }
            window
        });
        let threshold = get(THRESHOLD_VARIABLE).and_then(|text| {
            let threshold = text.trim().parse::<f64>().ok().filter(|it| it.is_finite());
            if threshold.is_none() {
                odd(THRESHOLD_VARIABLE, &text);
            }
            threshold
        });
        let model = get(MODEL_VARIABLE).unwrap_or_default();
        (Self { window, threshold, model }, wrong)
    }

    /// Fills a missing model name from the saved state of the session.
    #[must_use]
    pub fn naming(&self, standing: &TierState) -> Self {
        let mut all = self.clone();
        if all.model.is_empty() {
            all.model.clone_from(&standing.model);
        }
        all
    }

    /// Returns whether nothing is overridden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the effective tiers.
    #[must_use]
    pub fn settings(&self, settings: &ContextSettings) -> ContextSettings {
        let settings = settings.clone();
        match self.threshold {
            Some(threshold) => settings.acting_at(threshold),
            None => settings,
        }
    }
}

/// Tier that the context of an agent reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["tier", "compactions", "since"]))]
pub struct TierState {
    /// Id of the tier in `context.yaml`; empty for none.
    #[serde(deserialize_with = "or_default")]
    pub tier: String,
    /// Number of compactions when the tier was reported.
    #[serde(deserialize_with = "or_default")]
    pub compactions: u64,
    /// Position in the transcript at which the tier was reached.
    #[serde(deserialize_with = "or_default")]
    pub since: u64,
    /// Number of API calls when the client reported that the context was cleared or compacted.
    #[serde(deserialize_with = "or_default")]
    pub calls: u64,
    /// Model as the client named it when the session began or the model changed, with a suffix that
    /// transcripts omit; empty if the client named none.
    #[serde(deserialize_with = "or_default")]
    pub model: String,
    /// Number of compactions when a summary with the goal was last added to the context.
    #[serde(deserialize_with = "or_default")]
    pub restated: u64,
}

impl TierState {
    /// Resets the tier, because the client reports that the context was cleared or compacted. The
    /// transcript might show this only later.
    #[must_use]
    pub fn emptied(&self, reading: &ContextMeasurement) -> Self {
        let shown = reading.compactions > self.compactions;
        Self {
            tier: String::new(),
            compactions: if shown {
                reading.compactions
            } else {
                self.compactions.saturating_add(1)
            },
            since: reading.position,
            calls: reading.calls,
            model: self.model.clone(),
            restated: self.restated,
        }
    }

    /// Marks that a summary with the goal is delivered after a compaction. The transcript might
    /// show the compaction only later.
    #[must_use]
    pub fn restating(&self, reading: &ContextMeasurement) -> Self {
        Self { restated: self.emptied(reading).compactions, ..self.clone() }
    }

    /// Returns whether a reading describes the context before the reset, because the transcript
    /// shows neither the reset nor a later call.
    #[must_use]
    pub const fn hides(&self, reading: &ContextMeasurement) -> bool {
        reading.compactions < self.compactions && reading.calls <= self.calls
    }
}

/// Measurement of the context usage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ContextMeasurement {
    /// Percentage of the window. `None` if unknown.
    pub percent: Option<f64>,
    /// Number of compactions.
    pub compactions: u64,
    /// Number of API calls.
    pub calls: u64,
    /// Position in the transcript.
    pub position: u64,
}

/// Effect of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierEffect {
    /// A tier was reached, which must be reported once.
    Crossed,
    /// The context was cleared or compacted. Tiers are reported again when they are reached again.
    Rearmed,
}

/// Returns the next state after a measurement, and its effect.
#[must_use]
pub fn step(
    standing: &TierState,
    reading: &ContextMeasurement,
    settings: &ContextSettings,
) -> (TierState, Option<TierEffect>) {
    let compacted = reading.compactions > standing.compactions;
    let before = if compacted { "" } else { standing.tier.as_str() };
    // A tier that the pack no longer contains does not count.
    let held = settings.at(before);
    let stays = |tier: &str| TierState {
        tier: tier.to_owned(),
        compactions: reading.compactions.max(standing.compactions),
        since: if tier == standing.tier && !compacted { standing.since } else { reading.position },
        calls: standing.calls,
        model: standing.model.clone(),
        restated: standing.restated,
    };
    let emptied = || {
        let was = !standing.tier.is_empty();
        was.then_some(TierEffect::Rearmed)
    };
    let Some(percent) = reading.percent.filter(|_| !standing.hides(reading)) else {
        return (stays(before), if compacted { emptied() } else { None });
    };
    let fitting = settings.fitting(percent);
    match (held, fitting) {
        (Some(held), Some(tier)) if tier.at > held => (stays(&tier.id), Some(TierEffect::Crossed)),
        (Some(held), _) if percent >= held - settings.hysteresis => (stays(before), None),
        (Some(_), lower) => (stays(lower.map_or("", |it| &it.id)), Some(TierEffect::Rearmed)),
        (None, Some(tier)) => (stays(&tier.id), Some(TierEffect::Crossed)),
        (None, None) => (stays(""), emptied()),
    }
}
