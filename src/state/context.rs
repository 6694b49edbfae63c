//! How full an agent's context is: percentages of a window, and the tiers with their memory. Lives here:
//! arithmetic on plain numbers. What is counted is in `facts::meters`; which model has which window
//! is the pack's.
//!
//! `step(standing, reading, settings) -> (standing, effect)`; a tier *fits* where the percentage is at
//! least its `at`, and *holds* until the percentage is more than `hysteresis` below it:
//!
//! | stands on | compacted since | nothing is known | a higher tier fits | its tier holds | it does not hold |
//! |---|---|---|---|---|---|
//! | no tier | no tier, then as below | stays | that tier, `Crossed` | (stays) | (stays) |
//! | a tier | no tier, then as below; `Rearmed` where no tier fits | stays | that tier, `Crossed` | stays | the highest that fits, or none: `Rearmed` |
//!
//! So each crossing is reported once, and again only after the context was cleared or compacted. A client that says so
//! before its transcript does is believed: [`Standing::emptied`], and what was read before is not known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored::or_default;

/// Default size of the window in tokens (shipwright: `CONTEXT_WINDOW_TOKENS`).
pub const WINDOW: u64 = 200_000;
/// Percentage at which a context counts as exhausted (shipwright: `CONTEXT_EXHAUSTION_THRESHOLD`).
pub const THRESHOLD: f64 = 70.0;
/// Size of the window in tokens for all models, as in shipwright.
pub const WINDOW_VARIABLE: &str = "CONTEXT_WINDOW_TOKENS";
/// Percentage of the tier `act`, as in shipwright.
pub const THRESHOLD_VARIABLE: &str = "CONTEXT_EXHAUSTION_THRESHOLD";
/// Claude Code's name of the model, with the ending that its transcripts leave out.
pub const MODEL_VARIABLE: &str = "ANTHROPIC_MODEL";
/// Set by whatever drives an agent and can give it a fresh context.
pub const DRIVEN_VARIABLE: &str = "POLICYD_RUN";

/// Id of the tier at which something is done.
pub const ACT: &str = "act";

/// Parses a count of another program as shipwright does: digits only.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    // A larger number than `u64` counts as the largest one.
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Returns whole percent of a window as shipwright does: rounded down, above 100 if it is exceeded, and 0 without
/// a window.
#[must_use]
pub fn percent(tokens: u64, window: u64) -> u64 {
    let whole = u128::from(tokens).saturating_mul(100).checked_div(u128::from(window));
    whole.map_or(0, |it| u64::try_from(it).unwrap_or(u64::MAX))
}

/// The same with its fraction.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
pub fn share(tokens: u64, window: u64) -> f64 {
    if window == 0 { 0.0 } else { tokens as f64 * 100.0 / window as f64 }
}

/// Whether a meter says that the context is used up: some tokens were counted, and they are at least
/// that much of the window. Without a window it is `false`.
#[must_use]
pub fn exhausted(tokens: u64, window: u64, threshold: f64) -> bool {
    tokens > 0 && window > 0 && share(tokens, window) >= threshold
}

/// Which meter the tiers are measured on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Measured {
    /// What stands before the model now.
    #[default]
    Occupancy,
    /// What was spent so far: the seed's proxy.
    Cumulative,
}

impl Measured {
    /// Its name in `context.yaml`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Occupancy => "occupancy",
            Self::Cumulative => "cumulative",
        }
    }
}

/// A tier: from this percentage on, something is said or done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// Id of the tier.
    pub id: String,
    /// The percentage.
    pub at: f64,
}

/// How the tiers are measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The meter.
    pub measured: Measured,
    /// The tiers, rising.
    pub tiers: Vec<Tier>,
    /// Percentage points that a tier holds below its own.
    pub hysteresis: f64,
}

impl Settings {
    /// The same with `act` at another percentage; tiers that would stand above it give way.
    #[must_use]
    pub fn acting_at(mut self, threshold: f64) -> Self {
        self.tiers.retain(|it| it.id != ACT && it.at < threshold);
        self.tiers.push(Tier { id: ACT.to_owned(), at: threshold });
        self
    }

    /// The percentage of a tier.
    #[must_use]
    pub fn at(&self, tier: &str) -> Option<f64> {
        self.tiers.iter().find(|it| it.id == tier).map(|it| it.at)
    }

    /// The percentage at which something is done.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.at(ACT).unwrap_or(THRESHOLD)
    }

    /// The highest tier that fits.
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
    /// Reads the environment; a value that is not a number is skipped and reported.
    #[must_use]
    pub fn read(get: impl Fn(&str) -> Option<String>) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let mut odd = |name: &str, text: &str| {
            wrong.push(format!("{name} is `{text}`, which is no number; context.yaml decides"));
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

    /// The same, where they name no model with the name that the session remembers.
    #[must_use]
    pub fn naming(&self, standing: &Standing) -> Self {
        let mut all = self.clone();
        if all.model.is_empty() {
            all.model.clone_from(&standing.model);
        }
        all
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The tiers that are in force.
    #[must_use]
    pub fn settings(&self, settings: &Settings) -> Settings {
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
pub struct Standing {
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

impl Standing {
    /// The client says that the context was emptied. Its transcript may show that already, or later.
    #[must_use]
    pub fn emptied(&self, reading: &Reading) -> Self {
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

    /// A summary with the goal is given to the context that follows a compaction. The transcript
    /// shows that compaction already, or later.
    #[must_use]
    pub fn restating(&self, reading: &Reading) -> Self {
        Self { restated: self.emptied(reading).compactions, ..self.clone() }
    }

    /// Whether a reading is of the context that was emptied: the transcript does not show yet that it
    /// was, nor any call since.
    #[must_use]
    pub const fn hides(&self, reading: &Reading) -> bool {
        reading.compactions < self.compactions && reading.calls <= self.calls
    }
}

/// What a meter says now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reading {
    /// How full it is; `None` where nothing is known.
    pub percent: Option<f64>,
    /// Compactions so far.
    pub compactions: u64,
    /// API calls so far.
    pub calls: u64,
    /// Where the transcript is.
    pub position: u64,
}

/// What a reading leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A tier was reached, which is reported once.
    Crossed,
    /// The context was cleared or compacted: tiers are reported again.
    Rearmed,
}

/// Takes a reading in.
#[must_use]
pub fn step(
    standing: &Standing,
    reading: &Reading,
    settings: &Settings,
) -> (Standing, Option<Effect>) {
    let compacted = reading.compactions > standing.compactions;
    let before = if compacted { "" } else { standing.tier.as_str() };
    // A tier that the pack no longer has counts as none.
    let held = settings.at(before);
    let stays = |tier: &str| Standing {
        tier: tier.to_owned(),
        compactions: reading.compactions.max(standing.compactions),
        since: if tier == standing.tier && !compacted { standing.since } else { reading.position },
        calls: standing.calls,
        model: standing.model.clone(),
        restated: standing.restated,
    };
    let emptied = || {
        let was = !standing.tier.is_empty();
        was.then_some(Effect::Rearmed)
    };
    let Some(percent) = reading.percent.filter(|_| !standing.hides(reading)) else {
        return (stays(before), if compacted { emptied() } else { None });
    };
    let fitting = settings.fitting(percent);
    match (held, fitting) {
        (Some(held), Some(tier)) if tier.at > held => (stays(&tier.id), Some(Effect::Crossed)),
        (Some(held), _) if percent >= held - settings.hysteresis => (stays(before), None),
        (Some(_), lower) => (stays(lower.map_or("", |it| &it.id)), Some(Effect::Rearmed)),
        (None, Some(tier)) => (stays(&tier.id), Some(Effect::Crossed)),
        (None, None) => (stays(""), emptied()),
    }
}
