//! The rules that a pack above the built-in one sets, with their layers.

use std::collections::BTreeSet;

use super::organization;
use super::rule_change::{self, OverriddenRule};
use crate::workspace::project::Project;
use policyd_policy::{Policy, Severity, SourceLocation};
use policyd_record::pack_layer::{PackLayer, PackLayers};
use policyd_world::World;

/// A rule that is not as the built-in pack has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedRule {
    /// Id of the rule, or the name of a guard set.
    pub id: String,
    /// `off`, `warn`, `observe`, `on`, `changed` for other keys, or `added`.
    pub state: &'static str,
    /// The layer that decides.
    pub layer: &'static str,
    pub reason: String,
    /// Location of the entry. Empty if no entry names the rule.
    pub place: String,
}

impl From<OverriddenRule> for ChangedRule {
    fn from(rule: OverriddenRule) -> Self {
        let OverriddenRule { id, state, reason, place, owner } = rule;
        Self { id, state, layer: owner.name(), reason, place }
    }
}

/// Returns the rules that differ from the built-in ones, or that another pack adds: entries that disable or soften rules
/// first, then what no such entry names.
#[must_use]
pub fn changed(world: &dyn World, project: &Project) -> Vec<ChangedRule> {
    let overrides = rule_change::overrides(world, project);
    let mut rules: Vec<ChangedRule> = overrides.into_iter().map(ChangedRule::from).collect();
    let Some(builtin) = super::builtin_policy() else { return rules };
    let of_organization = organization::find(world).ok().flatten();
    let own = super::find(world, project, None);
    for found in of_organization.iter().chain([&own]) {
        let Ok(policy) = super::policy(world, found) else { continue };
        let layers = found.layers(world, project);
        let known: BTreeSet<String> = rules.iter().map(|it| it.id.clone()).collect();
        rules.extend(set_rules(&policy, &builtin, &layers).filter(|it| !known.contains(&it.id)));
        // The pack of the organization has only its own rules.
        if layers.own != PackLayer::Organization {
            rules.extend(left_out(&policy, &builtin, layers.own, &known));
        }
    }
    rules
}

/// Returns the rules that other packs than the built-in one set.
fn set_rules<'p>(
    policy: &'p Policy,
    builtin: &'p Policy,
    layers: &'p PackLayers,
) -> impl Iterator<Item = ChangedRule> + 'p {
    let guards = policy.guards.rules.iter();
    let guards = guards.map(|it| (&it.id, &it.body.place, it.body.verb.as_str()));
    let checks = policy.considerations.iter().map(|it| {
        let effect = match it.severity {
            Severity::Blocker => "block",
            Severity::Warning => "warn",
        };
        (&it.id, &*it.place, effect)
    });
    let rules = guards.chain(checks).map(|(id, place, effect): (&String, &SourceLocation, _)| {
        let state = builtin.rule_id(id).map_or("added", |_| "changed");
        let reason = format!("effect {effect}");
        let layer = layers.of_rule(&place.file);
        (
            layer,
            ChangedRule {
                id: id.clone(),
                state,
                layer: layer.name(),
                reason,
                place: place.to_string(),
            },
        )
    });
    rules.filter(|(layer, _)| *layer != PackLayer::BuiltIn).map(|(_, rule)| rule)
}

/// Returns built-in rules that a policy does not have, although no entry disables them: those of guard sets that the
/// manifest leaves out, each set once.
fn left_out(
    policy: &Policy,
    builtin: &Policy,
    layer: PackLayer,
    known: &BTreeSet<String>,
) -> Vec<ChangedRule> {
    let row = |id: &str, reason: &str| ChangedRule {
        id: id.to_owned(),
        state: "off",
        layer: layer.name(),
        reason: reason.to_owned(),
        place: String::new(),
    };
    let has_set = |set: &str| policy.guards.rules.iter().any(|it| it.set == set);
    let guards = builtin.guards.rules.iter();
    let missing = guards.filter(|it| policy.rule_id(&it.id).is_none() && !known.contains(&it.id));
    let (sets, guards): (Vec<_>, Vec<_>) = missing.partition(|it| !has_set(&it.set));
    let sets: BTreeSet<&str> = sets.into_iter().map(|it| it.set.as_str()).collect();
    let sets = sets.into_iter().map(|it| row(it, "`guard_sets` leaves the set out"));
    let guards = guards.into_iter().map(|it| row(&it.id, "the pack leaves it out"));
    let checks = builtin.considerations.iter().filter(|it| it.enabled && !known.contains(&it.id));
    let is_off = |id: &str| policy.considerations.iter().all(|it| it.id != id || !it.enabled);
    let checks = checks.filter(|it| policy.rule_id(&it.id).is_none_or(is_off));
    let checks = checks.map(|it| row(&it.id, "the pack leaves it out"));
    sets.chain(guards).chain(checks).collect()
}
