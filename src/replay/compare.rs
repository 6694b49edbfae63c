//! Compares two packs, for each stop and each rule.

use std::collections::{BTreeMap, BTreeSet};

use super::judge::StopResult;
use super::tally::{Count, Example, blockers};
use policyd_evaluation::StopOutcome;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{GuardVerdict, GuardsOutcome};
use policyd_evaluation::verdict::{CheckVerdict, Consequence};
use policyd_policy::guards::GuardAction;
use policyd_policy::{Mode, Policy};

/// Changed effects of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChange {
    pub id: String,
    /// Whether this pack contains it.
    pub here: bool,
    /// Whether the other pack contains it.
    pub there: bool,
    /// Pairs of different effects in this pack and in the other pack.
    pub moves: BTreeMap<(RuleEffect, RuleEffect), Count>,
}

/// Effect of a rule, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleEffect {
    /// No effect.
    Nothing,
    /// A log entry (shadow mode).
    Recorded,
    /// A warning.
    Warns,
    /// A question to the user.
    Asks,
    /// A block.
    Blocks,
}

impl RuleEffect {
    /// Returns the stable name, as in the JSON report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Recorded => "recorded",
            Self::Warns => "warns",
            Self::Asks => "asks",
            Self::Blocks => "blocks",
        }
    }

    fn of(verdict: Option<&CheckVerdict>) -> Self {
        match verdict.map(|it| it.consequence) {
            None | Some(Consequence::None) => Self::Nothing,
            Some(Consequence::Recorded) => Self::Recorded,
            Some(Consequence::Warns) => Self::Warns,
            Some(Consequence::Blocks) => Self::Blocks,
        }
    }
}

impl From<&GuardVerdict> for RuleEffect {
    fn from(verdict: &GuardVerdict) -> Self {
        match (verdict.mode, verdict.verb) {
            (Mode::Shadow, _) => Self::Recorded,
            (Mode::Warn, _) | (Mode::Enforce, GuardAction::Warn | GuardAction::Context) => {
                Self::Warns
            }
            (Mode::Enforce, GuardAction::Ask) => Self::Asks,
            (Mode::Enforce, GuardAction::Block | GuardAction::Halt) => Self::Blocks,
            (
                Mode::Enforce,
                GuardAction::Allow | GuardAction::Defer | GuardAction::Mask | GuardAction::Remember,
            ) => Self::Nothing,
        }
    }
}

/// Comparison with another pack.
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
    /// Tool calls that only the other pack blocks or asks about.
    pub newly_stopped: Count,
    /// Tool calls that only this pack blocks or asks about.
    pub no_longer_stopped: Count,
    /// Guards with a different effect, by id.
    pub guards: BTreeMap<String, RuleChange>,
    /// All rules of both packs: first those of this pack, each in the order of its pack.
    pub rules: Vec<RuleChange>,
    /// Positions of each rule among the verdicts of this pack and of the other pack.
    places: Vec<(Option<usize>, Option<usize>)>,
}

impl Comparison {
    /// Creates an empty comparison.
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
            newly_stopped: Count::default(),
            no_longer_stopped: Count::default(),
            guards: BTreeMap::new(),
            rules,
            places,
        }
    }

    /// Adds the results of both packs for a stop.
    pub fn add(
        &mut self,
        here: &StopResult,
        there: &StopResult,
        examples_max: usize,
        example: impl Fn(String) -> Example,
    ) {
        let (here, there) = (here.as_ref().ok(), there.as_ref().ok());
        let blocked = |it: &StopOutcome| it.decision == Decision::Block;
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
            let effects = (RuleEffect::of(old), RuleEffect::of(new));
            if effects.0 != effects.1 {
                let found = if effects.0 < effects.1 { new } else { old };
                let details = || found.map(|it| it.details.clone()).unwrap_or_default();
                let moved = rule.moves.entry(effects).or_default();
                moved.add(examples_max, || example(details()));
            }
        }
    }

    /// Adds the results of both packs for a tool call.
    pub fn add_call(
        &mut self,
        here: &GuardsOutcome,
        there: &GuardsOutcome,
        examples_max: usize,
        example: impl Fn(String) -> Example,
    ) {
        let stops = |it: &GuardsOutcome| it.decision >= Decision::Ask;
        match (stops(here), stops(there)) {
            (false, true) => {
                self.newly_stopped.add(examples_max, || example(there.reason.clone()));
            }
            (true, false) => {
                self.no_longer_stopped.add(examples_max, || example(here.reason.clone()));
            }
            (true, true) | (false, false) => {}
        }
        let ids = here.verdicts.iter().chain(&there.verdicts).map(|it| it.id.as_str());
        for id in ids.collect::<BTreeSet<&str>>() {
            let said = |it: &GuardsOutcome| it.verdicts.iter().find(|it| it.id == id).cloned();
            let (old, new) = (said(here), said(there));
            let effect = |it: &Option<GuardVerdict>| {
                it.as_ref().map_or(RuleEffect::Nothing, RuleEffect::from)
            };
            let effects = (effect(&old), effect(&new));
            if effects.0 == effects.1 {
                continue;
            }
            let asked = |it: &GuardsOutcome| it.judged.iter().any(|judged| judged == id);
            let change = self.guards.entry(id.to_owned()).or_insert_with(|| RuleChange {
                id: id.to_owned(),
                here: asked(here),
                there: asked(there),
                moves: BTreeMap::new(),
            });
            change.here |= asked(here);
            change.there |= asked(there);
            let found = if effects.0 < effects.1 { new } else { old };
            let moved = change.moves.entry(effects).or_default();
            moved.add(examples_max, || {
                example(found.map(|it| it.format_message()).unwrap_or_default())
            });
        }
    }

    /// Adds the comparison of another part.
    pub fn merge(&mut self, other: Self, examples_max: usize) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.newly_blocked.merge(other.newly_blocked, examples_max);
        self.no_longer_blocked.merge(other.no_longer_blocked, examples_max);
        self.newly_stopped.merge(other.newly_stopped, examples_max);
        self.no_longer_stopped.merge(other.no_longer_stopped, examples_max);
        for (id, more) in other.guards {
            let fresh = || RuleChange { moves: BTreeMap::new(), ..more.clone() };
            let own = self.guards.entry(id).or_insert_with(fresh);
            own.here |= more.here;
            own.there |= more.there;
            for (effects, count) in more.moves {
                own.moves.entry(effects).or_default().merge(count, examples_max);
            }
        }
        for (rule, more) in self.rules.iter_mut().zip(other.rules) {
            for (effects, count) in more.moves {
                rule.moves.entry(effects).or_default().merge(count, examples_max);
            }
        }
    }
}

fn verdict(outcome: Option<&StopOutcome>, place: Option<usize>) -> Option<&CheckVerdict> {
    outcome?.verdicts.get(place?)
}
