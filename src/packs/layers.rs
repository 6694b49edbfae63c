//! The layers of a policy: the pack of the user beneath the pack of a project. The user's pack weakens only what the project
//! does not set, and tightens everything.

use std::collections::BTreeSet;

use super::found::{FoundPack, Layer};
use super::invalid_pack::{InvalidPack, list};
use super::organization;
use policyd_facts::event::EventKind;
use policyd_policy::guards::{Guard, GuardAction};
use policyd_policy::load::{self, LoadResult, Pack};
use policyd_policy::{Check, Mode, Policy, Severity, builtin};

/// The policy of a found pack, from its files. If the pack of the user cannot be a layer of it, it counts alone.
pub fn loaded(found: &FoundPack) -> Result<Policy, InvalidPack> {
    match found.beneath.as_ref() {
        Some(beneath) => loaded_over(found, beneath),
        None => loaded_alone(found),
    }
}

fn loaded_alone(found: &FoundPack) -> Result<Policy, InvalidPack> {
    let LoadResult { policy, diagnostics, on_error, mode, enabled, sets_off } =
        load::load(&found.pack(), &builtin::pack());
    let policy = policy.filter(|_| found.unreadable.is_empty());
    let policy = policy.map(|policy| match found.layer {
        Layer::Project => policy,
        Layer::Organization => organization::own_rules(policy),
    });
    let unreadable = found.unreadable.clone();
    let sets_off = sets_off.into_iter().map(str::to_owned).collect();
    policy.ok_or(InvalidPack { unreadable, diagnostics, on_error, mode, enabled, sets_off })
}

/// Loads a pack over the pack of the user.
fn loaded_over(found: &FoundPack, beneath: &Pack) -> Result<Policy, InvalidPack> {
    let project = loaded_alone(found)?;
    let alone = || loaded_alone(&FoundPack::new(Some(beneath.clone()), Vec::new()));
    let user = match alone() {
        Ok(user) => user,
        Err(invalid) => {
            return Ok(without(project, beneath, &format!("it is broken: {}", list(&invalid))));
        }
    };
    let LoadResult { policy, diagnostics, .. } =
        load::load_over(&found.pack(), Some(beneath), &builtin::pack());
    let Some(mut policy) = policy else {
        let conflict = InvalidPack { diagnostics, ..InvalidPack::default() };
        let why = format!("it conflicts with the pack of this project: {}", list(&conflict));
        return Ok(without(project, beneath, &why));
    };
    policy.add_reads(&project);
    policy.add_reads(&user);
    keep_set(&mut policy, &project);
    keep_stricter(&mut policy, &user, &beneath.name);
    policy.guarded = events(&policy);
    Ok(policy)
}

/// Says why a pack is used without the pack of the user.
fn without(mut policy: Policy, beneath: &Pack, why: &str) -> Policy {
    policy.skipped_layer = format!("your pack in {} is not used here: {why}", beneath.name);
    policy
}

/// Keeps rules as the project sets them: the user's pack changes none of their keys.
fn keep_set(policy: &mut Policy, project: &Policy) {
    let guards = project.guards.rules.iter();
    let guards: Vec<Guard> =
        guards.filter(|it| !builtin::has(&it.body.place.file)).cloned().collect();
    policy.guards.change(|all| {
        all.rules.change(|rules| {
            for guard in guards {
                let id = guard.id.clone();
                put(rules, guard, |it| it.id == id);
            }
        });
    });
    let checks = project.considerations.iter();
    let checks: Vec<Check> = checks.filter(|it| !builtin::has(&it.place.file)).cloned().collect();
    policy.change_checks(|all| {
        for check in checks {
            let id = check.id.clone();
            put(all, check, |it| it.id == id);
        }
    });
}

/// Replaces rules by those of the user's pack where these are stricter.
fn keep_stricter(policy: &mut Policy, user: &Policy, folder: &str) {
    let guards = user.guards.rules.iter().filter(|it| it.body.place.file.starts_with(folder));
    let guards: Vec<Guard> =
        guards.filter(|it| it.body.verb != GuardAction::Allow).cloned().collect();
    policy.guards.change(|all| {
        all.rules.change(|rules| {
            for guard in guards {
                let known = rules.iter().find(|it| it.id == guard.id).map_or(0, strength);
                if known < strength(&guard) {
                    let id = guard.id.clone();
                    put(rules, guard, |it| it.id == id);
                }
            }
        });
    });
    let checks = user.considerations.iter().filter(|it| it.place.file.starts_with(folder));
    let checks: Vec<Check> = checks.cloned().collect();
    policy.change_checks(|all| {
        for check in checks {
            let known = all.iter().find(|it| it.id == check.id).map_or(0, check_strength);
            if known < check_strength(&check) {
                let id = check.id.clone();
                put(all, check, |it| it.id == id);
            }
        }
    });
}

/// Returns the events that have guards, each once.
fn events(policy: &Policy) -> Vec<EventKind> {
    let kinds = policy.guards.rules.iter().flat_map(|it| it.on.clone());
    kinds.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Replaces the same rule by a rule, or adds it at the end.
fn put<T>(rules: &mut Vec<T>, rule: T, is_same: impl Fn(&T) -> bool) {
    match rules.iter_mut().find(|it| is_same(it)) {
        Some(known) => *known = rule,
        None => rules.push(rule),
    }
}

/// Returns how much a guard can do to a call. 0 if it does nothing.
fn strength(guard: &Guard) -> u8 {
    match (guard.mode, guard.body.verb) {
        (Mode::Shadow, _) | (_, GuardAction::Allow | GuardAction::Remember) => 1,
        (Mode::Warn, _) | (_, GuardAction::Context | GuardAction::Warn) => 2,
        (Mode::Enforce, GuardAction::Mask) => 3,
        (Mode::Enforce, GuardAction::Ask | GuardAction::Defer) => 4,
        (Mode::Enforce, GuardAction::Block) => 5,
        (Mode::Enforce, GuardAction::Halt) => 6,
    }
}

/// Returns how much a check can do to a stop. 0 if it does nothing.
fn check_strength(check: &Check) -> u8 {
    match (check.enabled, check.mode, check.severity) {
        (false, ..) => 0,
        (true, Mode::Shadow, _) => 1,
        (true, Mode::Warn, _) | (true, _, Severity::Warning) => 2,
        (true, Mode::Enforce, Severity::Blocker) => 3,
    }
}
