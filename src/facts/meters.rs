//! Tokens as they are counted: what stands before the model now, and what was spent so far. The two
//! are never mixed. Lives here: counting. Windows and prices are the pack's.
//!
//! *Occupancy* is what the last API call of the main chain put before the model: input, cache reads and
//! cache writes of that one call. *Spend* is what all calls came to, and says nothing about the context.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::{CONTEXT_SAMPLES_MAX, CONTEXT_TURNS_MAX, MODELS_COUNTED_MAX};

/// Tokens of one API call, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Fresh input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_creation: u64,
}

impl Usage {
    /// What one call put before the model: everything but its output.
    #[must_use]
    pub const fn occupied(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }

    /// All tokens, output too.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.occupied().saturating_add(self.output)
    }

    /// The same with another call added.
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

/// What tokens cost, in billionths of a US dollar each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Fresh input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_creation: u64,
}

impl Prices {
    /// What these tokens cost, in billionths of a US dollar.
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

/// Billionths of a US dollar as US dollars.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "an amount of money that is shown")]
pub fn dollars(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// Everything that is counted of one agent's main chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meters {
    /// Model of the last call; empty where nobody said.
    pub model: String,
    /// What the last call since the last compaction put before the model; 0 where there was none.
    pub occupied: u64,
    /// API calls.
    pub calls: u64,
    /// Compactions.
    pub compactions: u64,
    /// Occupancy after the last calls since the context last shrank, newest last.
    pub samples: Vec<u64>,
    /// Occupancy at the beginning of the last turns since then, oldest first: what stood there before
    /// the prompt, and of the first one what its first call came to.
    pub turns: Vec<u64>,
    /// Whether a turn began of which no call is known yet.
    pub begun: bool,
    /// What was spent, by model.
    pub spent: BTreeMap<String, Usage>,
}

impl Meters {
    /// Counts one API call of the main chain. The caller counts each message once.
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

    /// Counts what a whole run came to. It says nothing about the context.
    pub fn spend(&mut self, model: &str, usage: &Usage) {
        let known = self.spent.len() < MODELS_COUNTED_MAX || self.spent.contains_key(model);
        let sum = self.spent.entry(if known { model } else { "" }.to_owned()).or_default();
        *sum = sum.plus(usage);
    }

    /// Takes in how much stands before the model now.
    pub fn sample(&mut self, occupied: u64) {
        if occupied == 0 {
            return;
        }
        if self.samples.last().is_some_and(|last| occupied < *last) {
            // Something was taken out: the growth before tells nothing.
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

    /// A turn begins: a human said something.
    pub const fn turn(&mut self) {
        self.begun = true;
    }

    /// The context was summarised: until the next call nothing is known of it.
    pub fn compacted(&mut self) {
        self.compactions = self.compactions.saturating_add(1);
        self.occupied = 0;
        self.samples.clear();
        self.turns.clear();
    }

    /// All that was spent, whatever the model.
    #[must_use]
    pub fn total(&self) -> Usage {
        self.spent.values().fold(Usage::default(), |sum, it| sum.plus(it))
    }

    /// Tokens that a call adds to the context, on average; `None` where it does not grow, or that
    /// cannot be told yet.
    #[must_use]
    pub fn growth(&self) -> Option<u64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let turns = u64::try_from(self.samples.len()).ok()?.checked_sub(1)?;
        last.checked_sub(*first)?.checked_div(turns).filter(|it| *it > 0)
    }

    /// Tokens that a turn adds to the context, on average over the turns since something was taken out,
    /// the one at work counted in as it is now; `None` as with `growth`.
    #[must_use]
    pub fn growth_of_turns(&self) -> Option<u64> {
        let (first, turns) = (self.turns.first()?, u64::try_from(self.turns.len()).ok()?);
        self.occupied.checked_sub(*first)?.checked_div(turns).filter(|it| *it > 0)
    }

    /// How often the context can grow by so much until it holds so many tokens; 0 where it does, `None`
    /// where nobody can tell.
    #[must_use]
    pub fn until(&self, tokens: u64, growth: Option<u64>) -> Option<u64> {
        let Some(missing) = tokens.checked_sub(self.occupied).filter(|it| *it > 0) else {
            return (self.occupied > 0).then_some(0);
        };
        Some(missing.div_ceil(growth?).min(CONTEXT_TURNS_MAX))
    }
}

/// Adds a sample, and forgets the oldest where there are many.
fn keep(samples: &mut Vec<u64>, sample: u64) {
    if samples.len() >= CONTEXT_SAMPLES_MAX {
        samples.remove(0);
    }
    samples.push(sample);
}
