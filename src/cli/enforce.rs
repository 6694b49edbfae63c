//! `policyd enforce`: the user lets rules act that only observed, all of them or single ones, and back.

use super::pause::log;
use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, EnforceArguments, pack};
use crate::human::{require_human, require_unpinned};
use policyd_app::workspace::project;
use policyd_policy::{EnforcementMode, Policy};
use policyd_record::notice::SwitchKind;
use policyd_store::configuration::Pins;
use policyd_store::enforcement::{EnforcementChoice, EnforcementStore};
use policyd_world::World;
use policyd_yaml::suggest;

/// Enforces rules, or makes them observe again.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &EnforceArguments,
) -> u8 {
    let EnforceArguments { names, observe } = arguments;
    if names.is_empty() {
        let mode = if *observe { EnforcementMode::Observe } else { EnforcementMode::Enforce };
        return set_mode(world, console, mode);
    }
    let Some(policy) = pack::require_valid(world, console, None) else { return EXIT_BROKEN };
    let choice = EnforcementStore::new(world).load().unwrap_or_default();
    let unknown = names.iter().find(|it| {
        let is_enforced = *observe && choice.enforced.contains(it.as_str());
        !(is_enforced || is_known(&policy, it))
    });
    if let Some(name) = unknown {
        let known = known(&policy);
        let help = suggest::did_you_mean(name, &known).unwrap_or_default();
        console.eprint(&format!("unknown rule or guard set `{name}`\nhelp: {help}"));
        return EXIT_USAGE;
    }
    let is_named = |name: &str| {
        let id = policy.rule_id(name).unwrap_or(name);
        choice.enforced.iter().any(|it| it == name || policy.rule_id(it).unwrap_or(it) == id)
    };
    if let Some(name) = names.iter().find(|it| *observe && !is_named(it)) {
        console.eprint(&format!(
            "`{name}` is not enforced by name, so `--observe` has nothing to undo\nhelp: let only this rule observe: \
             `policyd rule observe {name}`"
        ));
        return EXIT_USAGE;
    }
    let names: Vec<&str> = names.iter().map(|it| policy.rule_id(it).unwrap_or(it)).collect();
    let list = names.join(", ");
    let (kind, action) = match observe {
        true => (SwitchKind::Observe, format!("stop enforcing {list} where the rest observes")),
        false => (SwitchKind::Enforce, format!("enforce {list} in every project")),
    };
    change(world, console, kind, &action, |choice| {
        for name in &names {
            if *observe {
                choice.enforced.retain(|it| policy.rule_id(it).unwrap_or(it) != *name);
            } else {
                choice.enforced.insert((*name).to_owned());
            }
        }
    })
}

/// The key that decides the mode for every user.
fn mode_key(pins: &Pins) -> Option<&'static str> {
    pins.mode.map(|it| match it {
        EnforcementMode::Enforce => "mode: enforce",
        EnforcementMode::Observe => "mode: observe",
    })
}

/// Sets the mode of the user for every rule.
pub(super) fn set_mode(world: &dyn World, console: &mut Console<'_>, mode: EnforcementMode) -> u8 {
    let (kind, action) = match mode {
        EnforcementMode::Observe => {
            (SwitchKind::Observe, "observe and not block, in every project")
        }
        EnforcementMode::Enforce => (SwitchKind::Enforce, "enforce every rule, in every project"),
    };
    change(world, console, kind, action, |choice| {
        *choice = EnforcementChoice { mode, ..EnforcementChoice::default() };
    })
}

fn change(
    world: &dyn World,
    console: &mut Console<'_>,
    kind: SwitchKind,
    action: &str,
    change: impl Fn(&mut EnforcementChoice),
) -> u8 {
    if let Err(code) = require_unpinned(world, console, mode_key) {
        return code;
    }
    let store = EnforcementStore::new(world);
    let before = match store.load() {
        Ok(before) => before,
        Err(problem) => {
            console.eprint(&problem.to_string());
            return EXIT_BROKEN;
        }
    };
    let mut after = before.clone();
    change(&mut after);
    if after != before {
        let actor = match require_human(world, console, action) {
            Ok(actor) => actor,
            Err(code) => return code,
        };
        match store.change(|it| {
            change(it);
            it.clone()
        }) {
            Ok(saved) => after = saved,
            Err(problem) => {
                console.eprint(&format!("{problem}; nothing is changed"));
                return EXIT_BROKEN;
            }
        }
        let project = project::find(world, None);
        log(world, &project, kind, None, describe(&after), &actor);
    }
    console.print(&format!("{}\n", describe(&after)));
    EXIT_OK
}

/// Describes what policyd does from now on, outside projects whose manifest contains a `mode`.
fn describe(choice: &EnforcementChoice) -> String {
    choice.text(None).unwrap_or_else(|| {
        let names: Vec<&str> = choice.enforced.iter().map(String::as_str).collect();
        match names.as_slice() {
            [] => "policyd enforces every rule".to_owned(),
            names => format!(
                "policyd enforces every rule, and {} also where a manifest contains `mode: observe`",
                names.join(", ")
            ),
        }
    })
}

/// Ids of checks and guards.
pub(super) fn rule_ids(policy: &Policy) -> Vec<&str> {
    let checks = policy.considerations.iter().map(|it| it.id.as_str());
    checks.chain(policy.guards.rules.iter().map(|it| it.id.as_str())).collect()
}

/// Ids of rules, and names of guard sets.
fn known(policy: &Policy) -> Vec<&str> {
    let mut known = rule_ids(policy);
    known.extend(policy.guards.rules.iter().map(|it| it.set.as_str()));
    known.sort_unstable();
    known.dedup();
    known
}

fn is_known(policy: &Policy, name: &str) -> bool {
    policy.rule_id(name).is_some() || known(policy).binary_search(&name).is_ok()
}
