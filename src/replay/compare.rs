//! What another pack would change: stop by stop, and rule by rule.

use std::collections::BTreeMap;

use super::judge::Judged;
use super::tally::{Count, Example, blockers};
use crate::judge::Outcome;
use crate::judge::combine::Decision;
use crate::judge::verdict::{Consequence, Verdict};
use crate::policy::Policy;

/// What one rule would do otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChange {
    /// Its id.
    pub id: String,
    /// Whether this pack has it.
    pub here: bool,
    /// Whether the other pack has it.
    pub there: bool,
    /// What it leads to here and there, where that differs.
    pub moves: BTreeMap<(Effect, Effect), Count>,
}

/// What a rule leads to at a stop; rising.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// It is recorded (shadow mode).
    Recorded,
    /// It is said.
    Warns,
    /// It stands against the stop.
    Blocks,
}

impl Effect {
    /// Stable name, as in the JSON report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Recorded => "recorded",
            Self::Warns => "warns",
            Self::Blocks => "blocks",
        }
    }

    fn of(verdict: Option<&Verdict>) -> Self {
        match verdict.map(|it| it.consequence) {
            None | Some(Consequence::None) => Self::Nothing,
            Some(Consequence::Recorded) => Self::Recorded,
            Some(Consequence::Warns) => Self::Warns,
            Some(Consequence::Blocks) => Self::Blocks,
        }
    }
}

/// What another pack would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Name of the other pack.
    pub pack: String,
    /// Stops that the other pack blocks.
    pub blocks: u64,
    /// Stops that only the other pack blocks.
    pub newly_blocked: Count,
    /// Stops that only this pack blocks.
    pub no_longer_blocked: Count,
    /// Every rule of either pack: first those of this one, each in the order of its pack.
    pub rules: Vec<RuleChange>,
    /// For each rule its places among the verdicts here and there.
    places: Vec<(Option<usize>, Option<usize>)>,
}

impl Comparison {
    /// Nothing compared yet.
    #[must_use]
    pub fn new(policy: &Policy, other: &Policy) -> Self {
        let place =
            |policy: &Policy, id: &str| policy.considerations.iter().position(|it| it.id == id);
        let here = policy.considerations.iter().map(|it| it.id.as_str());
        let only_there = other.considerations.iter().map(|it| it.id.as_str());
        let only_there = only_there.filter(|it| place(policy, it).is_none());
        let (rules, places) = here
            .chain(only_there)
            .map(|id| {
                let places = (place(policy, id), place(other, id));
                let (here, there) = (places.0.is_some(), places.1.is_some());
                (RuleChange { id: id.to_owned(), here, there, moves: BTreeMap::new() }, places)
            })
            .unzip();
        Self {
            pack: other.name.clone(),
            blocks: 0,
            newly_blocked: Count::default(),
            no_longer_blocked: Count::default(),
            rules,
            places,
        }
    }

    /// Compares what a stop came to here and there.
    pub fn add(
        &mut self,
        (here, there): (&Judged, &Judged),
        examples_max: usize,
        example: impl Fn(String) -> Example,
    ) {
        let (here, there) = (here.as_ref().ok(), there.as_ref().ok());
        let blocked = |it: &Outcome| it.decision == Decision::Block;
        let (before, after) = (here.filter(|it| blocked(it)), there.filter(|it| blocked(it)));
        self.blocks = self.blocks.saturating_add(u64::from(after.is_some()));
        match (before, after) {
            (None, Some(new)) => {
                self.newly_blocked.add(examples_max, || example(blockers(new)));
            }
            (Some(old), None) => {
                self.no_longer_blocked.add(examples_max, || example(blockers(old)));
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        for (rule, places) in self.rules.iter_mut().zip(&self.places) {
            let (old, new) = (verdict(here, places.0), verdict(there, places.1));
            let effects = (Effect::of(old), Effect::of(new));
            if effects.0 != effects.1 {
                let found = if effects.0 < effects.1 { new } else { old };
                let details = || found.map(|it| it.details.clone()).unwrap_or_default();
                let moved = rule.moves.entry(effects).or_default();
                moved.add(examples_max, || example(details()));
            }
        }
    }

    /// Takes in what was compared elsewhere.
    pub fn merge(&mut self, other: Self, examples_max: usize) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.newly_blocked.merge(other.newly_blocked, examples_max);
        self.no_longer_blocked.merge(other.no_longer_blocked, examples_max);
        for (rule, more) in self.rules.iter_mut().zip(other.rules) {
            for (effects, count) in more.moves {
                rule.moves.entry(effects).or_default().merge(count, examples_max);
            }
        }
    }
}

fn verdict(outcome: Option<&Outcome>, place: Option<usize>) -> Option<&Verdict> {
    outcome?.verdicts.get(place?)
}
