//! Context usage of an agent, computed from facts, the pack and the environment.
//!
//! [`gauge`] reads the token counters, [`settle`] adds the saved tier, and [`reading`] builds the
//! input of the tier step.

use policyd_base::limits::CONTEXT_TURNS_MAX;
use policyd_fact_table::context_facts::ContextUsage;
use policyd_fact_table::record::FactRecord;
use policyd_facts::Facts;
use policyd_facts::glob::PathGlob;
use policyd_facts::meters::Meters;
use policyd_policy::context::ContextRules;
use policyd_policy::records;
use policyd_state::context::{
    ContextMeasurement, ContextSettings, MeterKind, Overrides, TierEffect, TierState, exhausted,
    percent, share, step,
};

/// Returns the size of a model's window in tokens. `holds`: current tokens, which are a lower
/// bound.
#[must_use]
pub fn window(rules: &ContextRules, overrides: &Overrides, model: &str, holds: u64) -> u64 {
    if let Some(window) = overrides.window {
        return window;
    }
    let ending = rules.variants.iter().find_map(|(ending, _)| {
        let base = overrides.model.strip_suffix(ending.as_str())?;
        (!base.is_empty() && model.contains(base)).then_some(ending)
    });
    match ending {
        Some(ending) if !model.ends_with(ending.as_str()) => {
            rules.window(&format!("{model}{ending}"), holds)
        }
        Some(_) | None => rules.window(model, holds),
    }
}

/// Returns the context usage. The tier does not depend on saved state.
#[must_use]
pub fn gauge(rules: &ContextRules, overrides: &Overrides, facts: &Facts) -> ContextUsage {
    let prompts = &facts.prompts;
    let gauge = of_meters(rules, overrides, &facts.tokens.meters);
    ContextUsage { prompts: prompts.count.saturating_sub(prompts.before_compaction), ..gauge }
}

/// Like [`gauge`], for token counters without a transcript.
#[must_use]
pub fn of_meters(rules: &ContextRules, overrides: &Overrides, meters: &Meters) -> ContextUsage {
    let settings = overrides.settings(&rules.settings);
    let window = window(rules, overrides, &meters.model, meters.occupied);
    let total = meters.total();
    let threshold = settings.threshold();
    let goal = tokens_at(window, threshold);
    let left = |growth| meters.until(goal, growth).unwrap_or(CONTEXT_TURNS_MAX);
    let gauge = ContextUsage {
        known: meters.occupied > 0 && window > 0,
        tokens: meters.occupied,
        window,
        percent: percent(meters.occupied, window),
        threshold: whole(threshold),
        growth: meters.growth_of_turns().unwrap_or(0),
        turns_left: left(meters.growth_of_turns()),
        call_growth: meters.growth().unwrap_or(0),
        calls_left: left(meters.growth()),
        calls: meters.calls,
        compactions: meters.compactions,
        input_tokens: total.occupied(),
        output_tokens: total.output,
        cumulative_pct: percent(total.total(), window),
        exhausted: exhausted(total.total(), window, threshold),
        cost_nano: rules.spent(meters),
        model: meters.model.clone(),
        ..ContextUsage::default()
    };
    settled(gauge, &TierState::default(), &settings)
}

/// Adds the saved tier to a context usage. The files that were edited since decide `noted`.
#[must_use]
pub fn settle(
    gauge: &ContextUsage,
    standing: &TierState,
    rules: &ContextRules,
    overrides: &Overrides,
    facts: &Facts,
) -> ContextUsage {
    let settings = overrides.settings(&rules.settings);
    let hidden = standing.hides(&reading(gauge, &settings, facts.seq));
    let gauge = &if hidden { emptied(gauge) } else { gauge.clone() };
    let (now, _) = step(standing, &reading(gauge, &settings, facts.seq), &settings);
    // If the time at which the tier was reached is unknown, this prompt counts.
    let prompts = &facts.prompts;
    let prompt = prompts.last.last().or(prompts.first.last()).map_or(0, |it| it.seq);
    let remembered = now.tier == standing.tier && !standing.tier.is_empty();
    let since = if remembered { standing.since } else { prompt };
    let notes: Vec<PathGlob> = rules.notes.iter().map(|it| PathGlob::new(it)).collect();
    let is_note = |path: &str| notes.iter().any(|glob| glob.matches(path));
    let noted = facts.files.iter().any(|it| it.last_seq > since && is_note(&it.path));
    let restated = standing.restated > 0 && standing.restated >= gauge.compactions;
    ContextUsage { noted, restated, ..settled(gauge.clone(), &now, &settings) }
}

/// Returns the usage of a cleared or compacted context. Spent tokens stay counted.
fn emptied(gauge: &ContextUsage) -> ContextUsage {
    let unknown = CONTEXT_TURNS_MAX;
    ContextUsage {
        known: false,
        tokens: 0,
        percent: 0,
        growth: 0,
        turns_left: unknown,
        call_growth: 0,
        calls_left: unknown,
        ..gauge.clone()
    }
}

fn settled(gauge: ContextUsage, standing: &TierState, settings: &ContextSettings) -> ContextUsage {
    let reading = reading(&gauge, settings, 0);
    let (now, _) = step(standing, &reading, settings);
    let height = settings.at(&now.tier);
    let below = settings.tiers.iter().filter(|it| height.is_some_and(|height| it.at <= height));
    let reached = below.map(|it| it.id.clone()).collect();
    let measured = match settings.measured {
        MeterKind::Occupancy => gauge.percent,
        MeterKind::Cumulative => gauge.cumulative_pct,
    };
    ContextUsage { tier: now.tier, reached, measured, ..gauge }
}

/// Returns the input of the tier step. `position`: the last position of the transcript.
#[must_use]
pub fn reading(
    gauge: &ContextUsage,
    settings: &ContextSettings,
    position: u64,
) -> ContextMeasurement {
    let spent = gauge.input_tokens.saturating_add(gauge.output_tokens);
    let percent = match settings.measured {
        MeterKind::Occupancy => gauge.known.then(|| share(gauge.tokens, gauge.window)),
        MeterKind::Cumulative => {
            (spent > 0 && gauge.window > 0).then(|| share(spent, gauge.window))
        }
    };
    // Spent tokens stay spent, whatever is removed from the context.
    let compactions = match settings.measured {
        MeterKind::Occupancy => gauge.compactions,
        MeterKind::Cumulative => 0,
    };
    ContextMeasurement { percent, compactions, calls: gauge.calls, position }
}

/// Steps the saved tier state. Also returns the usage with the tier that is reached now.
#[must_use]
pub fn advance(
    gauge: &ContextUsage,
    standing: &TierState,
    rules: &ContextRules,
    overrides: &Overrides,
    facts: &Facts,
) -> (TierState, Option<TierEffect>, ContextUsage) {
    let settings = overrides.settings(&rules.settings);
    let (next, effect) = step(standing, &reading(gauge, &settings, facts.seq), &settings);
    let gauge = settle(gauge, &next, rules, overrides, facts);
    (next, effect, gauge)
}

/// Returns the context usage as a record for the texts of `context.yaml`.
#[must_use]
pub fn record(gauge: &ContextUsage, notes: &str) -> FactRecord {
    let mut record = FactRecord::new(records::shape(&records::context::CONTEXT));
    let numbers = [
        ("percent", gauge.percent),
        ("measured", gauge.measured),
        ("cumulative_pct", gauge.cumulative_pct),
        ("threshold", gauge.threshold),
        ("tokens", gauge.tokens),
        ("window", gauge.window),
        ("growth", gauge.growth),
        ("turns_left", gauge.turns_left),
        ("call_growth", gauge.call_growth),
        ("calls_left", gauge.calls_left),
        ("prompts", gauge.prompts),
        ("compactions", gauge.compactions),
    ];
    for (name, value) in numbers {
        record.set(name, i64::try_from(value).unwrap_or(i64::MAX));
    }
    record.set("tier", gauge.tier.as_str());
    record.set("model", gauge.model.as_str());
    record.set("notes", notes);
    record.set("noted", gauge.noted);
    record
}

/// Returns the tokens at which a window is full to this percentage, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a count of tokens is far below 2^52, and a threshold is not negative here"
)]
fn tokens_at(window: u64, threshold: f64) -> u64 {
    (window as f64 * threshold.max(0.0) / 100.0).ceil() as u64
}

/// Rounds a percentage up to an integer, so that a value below it is also below the real one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a percentage is small, and not negative here"
)]
fn whole(threshold: f64) -> u64 {
    threshold.max(0.0).ceil() as u64
}
