//! Combines the recorded evaluations with the expectations of cases.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{ConditionCoverage, Coverage, ExpectedRules, RuleCoverage, RuleKind, records};
use policyd_fact_table::ast::Expr;
use policyd_fact_table::watch::{CoverageRecorder, Ways};
use policyd_policy::{Choice, Expression, Policy, SourceLocation, builtin, remote};

/// The message that every evaluated stop has.
const SAID_AT_EVERY_STOP: &str = "summary";

/// Measures the rules of the pack itself. `inherited` is the extended pack.
#[must_use]
pub fn measure(
    policy: &Policy,
    inherited: Option<&Policy>,
    watch: &CoverageRecorder,
    covered: &ExpectedRules,
) -> Coverage {
    let mut meter = Meter { watch, covered, extends: inherited.is_some(), ways: BTreeMap::new() };
    let mut rules = Vec::new();
    for it in policy.considerations.iter() {
        let mut found = meter.rule(RuleKind::Consideration, &it.id, Some(&it.place));
        let body = &it.check.body;
        let expressions = [
            ("when", it.when.as_ref()),
            ("checker.when", it.check.when.as_ref()),
            ("satisfied", Some(&body.satisfied)),
            ("blocking", body.blocking.as_ref()),
        ];
        let named = expressions.into_iter().filter_map(|(key, it)| Some((key.to_owned(), it?)));
        let texts = [("details", &body.details), ("evidence", &body.evidence)];
        let choices = texts.into_iter().flat_map(|(key, it)| whens(key, it.iter()));
        let errors = whens("error", body.error.iter());
        found.conditions = meter.conditions(named.chain(choices).chain(errors));
        // A disabled rule needs no coverage. If a case enables it, it counts.
        if it.enabled || found.firing || found.silent {
            rules.push((meter.is_own(&it.place), found));
        }
    }
    for it in policy.guards.rules.iter() {
        let body = &*it.body;
        let mut found = meter.rule(RuleKind::Guard, &it.id, Some(&body.place));
        found.silent |= it.commands.is_empty() && body.when.is_none() && body.unless.is_none();
        let expressions = [("when", &body.when), ("unless", &body.unless)].into_iter();
        let named = expressions.filter_map(|(key, it)| Some((key.to_owned(), it.as_ref()?)));
        found.conditions = meter.conditions(named.chain(whens("message", body.message.iter())));
        rules.push((meter.is_own(&body.place), found));
    }
    for it in policy.session_types.iter() {
        let mut found = meter.rule(RuleKind::SessionType, &it.id, Some(&it.when.place));
        found.silent |= Expr::of_text(&it.when.text).is_fixed();
        found.conditions = meter.conditions([("when".to_owned(), &it.when)].into_iter());
        rules.push((meter.is_own(&it.when.place), found));
    }
    for it in policy.preferences.iter() {
        let own = !inherited.is_some_and(|below| below.preferences.contains(it));
        rules.push((own, meter.rule(RuleKind::Preference, &it.id, None)));
    }
    for (id, choices) in policy.messages.iter() {
        let own = inherited.is_none_or(|below| below.messages.get(id) != Some(choices));
        let mut found = meter.rule(RuleKind::Message, id, None);
        found.silent |= id == SAID_AT_EVERY_STOP;
        found.conditions = meter.conditions(whens("", choices.iter().map(|it| &it.choice)));
        rules.push((own, found));
    }
    for (kind, id, when) in records::rules(policy) {
        let mut found = meter.rule(kind, &id, Some(&when.place));
        found.silent |= Expr::of_text(&when.text).is_fixed();
        found.conditions = meter.conditions([("when".to_owned(), when)].into_iter());
        rules.push((meter.is_own(&when.place), found));
    }
    for it in &policy.failures.classes {
        let own = !inherited.is_some_and(|below| below.failures.classes.contains(it));
        rules.push((own, meter.rule(RuleKind::FailureClass, &it.id, None)));
    }
    // A rule that inherits everything else can still have a condition of its own.
    rules.retain(|(own, it)| *own || !it.conditions.is_empty());
    let mut rules: Vec<RuleCoverage> = rules.into_iter().map(|(_, it)| it).collect();
    // The value of a shared condition counts for each of its rules.
    for condition in rules.iter_mut().flat_map(|it| &mut it.conditions) {
        let ways = meter.ways.remove(&written(&condition.place, &condition.text));
        for ((_, own), all) in condition.operands.iter_mut().zip(ways.unwrap_or_default()) {
            *own = all;
        }
    }
    Coverage { rules }
}

/// Returns the identity of a condition: its location and its text.
fn written(place: &SourceLocation, text: &str) -> (String, u32, u32, String) {
    (place.file.clone(), place.line, place.column, text.to_owned())
}

/// Returns the conditions of texts, with their keys.
fn whens<'p>(
    key: &'static str,
    choices: impl Iterator<Item = &'p Choice>,
) -> impl Iterator<Item = (String, &'p Expression)> {
    let numbered = choices.enumerate();
    numbered.filter_map(move |(at, it)| Some((format!("{key}[{at}].when"), it.when.as_ref()?)))
}

struct Meter<'a> {
    watch: &'a CoverageRecorder,
    covered: &'a ExpectedRules,
    extends: bool,
    /// Observed values of operands, over all rules that use the condition.
    ways: BTreeMap<(String, u32, u32, String), Vec<Ways>>,
}

impl Meter<'_> {
    fn is_own(&self, place: &SourceLocation) -> bool {
        !(remote::has(&place.file) || self.extends && builtin::has(&place.file))
    }

    fn rule(&self, kind: RuleKind, id: &str, place: Option<&SourceLocation>) -> RuleCoverage {
        let name = (kind, id.to_owned());
        RuleCoverage {
            kind,
            id: id.to_owned(),
            place: place.cloned(),
            firing: self.covered.firing.contains(&name),
            silent: self.covered.silent.contains(&name),
            conditions: Vec::new(),
        }
    }

    /// Returns the pack's own conditions among these that no earlier rule listed.
    fn conditions<'p>(
        &mut self,
        found: impl Iterator<Item = (String, &'p Expression)>,
    ) -> Vec<ConditionCoverage> {
        let mut fresh = Vec::new();
        for (key, it) in found {
            if !self.is_own(&it.place) {
                continue;
            }
            let tree = Expr::of_text(&it.text);
            let leaves = tree.leaves().into_iter().filter(|leaf| !leaf.is_fixed());
            let operands: Vec<_> =
                leaves.map(|leaf| (leaf.range.clone(), self.watch.ways(&it.text, leaf))).collect();
            let ways = operands.iter().map(|(_, ways)| *ways);
            match self.ways.entry(written(&it.place, &it.text)) {
                Entry::Occupied(mut known) => {
                    for (known, more) in known.get_mut().iter_mut().zip(ways) {
                        *known = known.and(more);
                    }
                }
                Entry::Vacant(place) => {
                    place.insert(ways.collect());
                    let (place, text) = (SourceLocation::clone(&it.place), it.text.clone());
                    fresh.push(ConditionCoverage { key, place, text, operands });
                }
            }
        }
        fresh
    }
}
