//! Token counters: the current size of the context, and the tokens that were spent.
//!
//! *Occupancy* is the context size of the last API call on the main chain: input, cache reads and
//! cache writes of that call. *Spend* is the total over all calls, and independent of the context.
//! Windows and prices belong to the pack.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use policyd_base::limits::{CONTEXT_SAMPLES_MAX, CONTEXT_TURNS_MAX, MODELS_COUNTED_MAX};

/// Tokens of one API call or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_creation: u64,
}

impl Usage {
    /// Returns the context size of one call: all tokens except output.
    #[must_use]
    pub const fn occupied(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }

    /// Returns all tokens, output included.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.occupied().saturating_add(self.output)
    }

    /// Returns the sum of two usages.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
        }
    }
}

/// Prices of tokens, in billionths of a US dollar for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Uncached input.
    pub input: u64,
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_creation: u64,
}

impl Prices {
    /// Returns the cost of tokens in billionths of a US dollar.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> u64 {
        [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_creation, self.cache_creation),
        ]
        .into_iter()
        .fold(0, |sum: u64, (tokens, price)| sum.saturating_add(tokens.saturating_mul(price)))
    }
}

/// Converts billionths of a US dollar to US dollars.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "an amount of money that is shown")]
pub fn dollars(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// Counters of one agent's main chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meters {
    /// Model of the last call. Empty if unknown.
    pub model: String,
    /// Context size of the last call since the last compaction, in tokens; 0 if there was none.
    pub occupied: u64,
    /// Number of API calls.
    pub calls: u64,
    /// Number of compactions.
    pub compactions: u64,
    /// Context sizes after the last calls since the context last shrank, newest last.
    pub samples: Vec<u64>,
    /// Context sizes at the beginning of the last turns since the context last shrank, oldest
    /// first. Each is the size before the prompt, and the first is the size after its first call.
    pub turns: Vec<u64>,
    /// Whether a turn began whose first call is not known yet.
    pub begun: bool,
    /// Spent tokens, by model.
    pub spent: BTreeMap<String, Usage>,
}

impl Meters {
    /// Counts one API call of the main chain. The caller must pass each message once.
    pub fn call(&mut self, model: &str, usage: &Usage) {
        if usage.total() == 0 {
            return; // Written by the client itself: no model was asked.
        }
        self.calls = self.calls.saturating_add(1);
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
        self.spend(model, usage);
        self.sample(usage.occupied());
    }

    /// Counts the tokens of a whole run, without effect on the context size.
    pub fn spend(&mut self, model: &str, usage: &Usage) {
        let known = self.spent.len() < MODELS_COUNTED_MAX || self.spent.contains_key(model);
        let sum = self.spent.entry(if known { model } else { "" }.to_owned()).or_default();
        *sum = sum.plus(usage);
    }

    /// Records the current context size.
    pub fn sample(&mut self, occupied: u64) {
        if occupied == 0 {
            return;
        }
        if self.samples.last().is_some_and(|last| occupied < *last) {
            // The context shrank: earlier growth does not matter any more.
            self.samples.clear();
            self.turns.clear();
        }
        if self.turns.is_empty() {
            self.turns.push(occupied);
        } else if self.begun {
            keep(&mut self.turns, self.occupied);
        }
        self.begun = false;
        keep(&mut self.samples, occupied);
        self.occupied = occupied;
    }

    /// Begins a turn, because the user sent a prompt.
    pub const fn turn(&mut self) {
        self.begun = true;
    }

    /// Records a compaction. The context size is unknown until the next call.
    pub fn compacted(&mut self) {
        self.compactions = self.compactions.saturating_add(1);
        self.occupied = 0;
        self.samples.clear();
        self.turns.clear();
    }

    /// Returns the spent tokens of all models.
    #[must_use]
    pub fn total(&self) -> Usage {
        self.spent.values().fold(Usage::default(), |sum, it| sum.plus(it))
    }

    /// Returns the average tokens that a call adds to the context. `None` if the context does not
    /// grow or too few calls are known.
    #[must_use]
    pub fn growth(&self) -> Option<u64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let turns = u64::try_from(self.samples.len()).ok()?.checked_sub(1)?;
        last.checked_sub(*first)?.checked_div(turns).filter(|it| *it > 0)
    }

    /// Returns the average tokens that a turn adds to the context, since the context last shrank
    /// and including the current turn. `None` as in [`growth`](Self::growth).
    #[must_use]
    pub fn growth_of_turns(&self) -> Option<u64> {
        let (first, turns) = (self.turns.first()?, u64::try_from(self.turns.len()).ok()?);
        self.occupied.checked_sub(*first)?.checked_div(turns).filter(|it| *it > 0)
    }

    /// Returns how many steps of `growth` fit until the context reaches `tokens`. 0 if it has
    /// reached them, `None` if the growth is unknown.
    #[must_use]
    pub fn until(&self, tokens: u64, growth: Option<u64>) -> Option<u64> {
        let Some(missing) = tokens.checked_sub(self.occupied).filter(|it| *it > 0) else {
            return (self.occupied > 0).then_some(0);
        };
        Some(missing.div_ceil(growth?).min(CONTEXT_TURNS_MAX))
    }
}

/// Appends a sample, and removes the oldest above the limit.
fn keep(samples: &mut Vec<u64>, sample: u64) {
    if samples.len() >= CONTEXT_SAMPLES_MAX {
        samples.remove(0);
    }
    samples.push(sample);
}
