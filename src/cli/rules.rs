//! `policyd rules`: which rules are active, in which mode, from which file.

use serde_json::json;

use super::{Console, EXIT_BROKEN, EXIT_OK, ListFormat, PackArguments, pack};
use crate::app::workspace::gate_status::{GateStatus, OffReason};
use crate::app::workspace::project;
use crate::facts::pattern::CommandPattern;
use crate::policy::{Check, Mode, Policy, Severity};
use crate::store::pause::Pause;
use crate::world::World;

/// Lists the considerations of a pack.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &PackArguments) -> u8 {
    let Some(mut policy) = pack::require_valid(world, console, arguments.policies.as_deref())
    else {
        return EXIT_BROKEN;
    };
    let project = project::find(world, None);
    let now = world.now();
    let status = GateStatus::read(world, &project, None, now);
    let off = status.off.map(|it| it.text(now));
    let off = off.or_else(|| (!policy.settings.enabled).then(|| OffReason::Manifest.text(now)));
    let paused = |it: &Pause| {
        let session = it.session.as_ref().map_or_else(String::new, |id| format!(" (session {id})"));
        format!("{}{session}", it.text(now))
    };
    let paused: Vec<String> = status.pauses.iter().map(paused).collect();
    paused.iter().chain(&off).for_each(|it| console.eprint(&format!("policyd is {it}")));
    status.problems.iter().for_each(|it| console.eprint(it));
    let problems = status.config.iter().flat_map(|it| it.apply(&mut policy));
    problems.for_each(|it| console.eprint(&it));
    if arguments.format == ListFormat::Json {
        let rules: Vec<_> = policy
            .considerations
            .iter()
            .map(|it| {
                json!({
                    "id": it.id, "enabled": it.enabled, "severity": severity(it),
                    "mode": mode(it.mode), "state": state_of(world, it), "on": it.on, "session_types": it.session_types,
                    "checker": it.check.name, "place": it.place.to_string(),
                })
            })
            .collect();
        console.print(&format!(
            "{}\n",
            json!({"version": 1, "pack": policy.name, "off": off, "paused": paused, "rules": rules,
                "guards": guards_json(world, &policy)})
        ));
        return EXIT_OK;
    }
    let width = policy.considerations.iter().map(|it| it.id.chars().count()).max().unwrap_or(0);
    console.print(&format!("pack {}\n", policy.name));
    for it in policy.considerations.iter() {
        let padding = " ".repeat(width.saturating_sub(it.id.chars().count()));
        let state = state_of(world, it);
        console.print(&format!(
            "  {}{padding}  {state:8} {:8} {:24} {}\n",
            it.id,
            severity(it),
            it.session_types.join(","),
            it.place
        ));
    }
    guards(world, console, &policy);
    EXIT_OK
}

/// The guards of a pack.
fn guards_json(world: &dyn World, policy: &Policy) -> Vec<serde_json::Value> {
    let rules = policy.guards.rules.iter();
    let json = rules.map(|it| {
        let commands: Vec<&str> = it.commands.iter().map(CommandPattern::as_str).collect();
        json!({
            "id": it.id, "set": it.set, "decision": it.body.verb.as_str(), "mode": mode(it.mode),
            "state": state(world, true, it.mode, it.expires_millis), "on": it.on, "tools": it.tools,
            "commands": commands, "place": it.body.place.to_string(),
        })
    });
    json.collect()
}

/// Lists the guards of a pack by their sets.
fn guards(world: &dyn World, console: &mut Console<'_>, policy: &Policy) {
    let rules = &policy.guards.rules;
    let width = rules.iter().map(|it| it.id.chars().count()).max().unwrap_or(0);
    let mut set = "";
    for it in rules {
        if it.set != set {
            set = &it.set;
            console.print(&format!("guards of {set}\n"));
        }
        let padding = " ".repeat(width.saturating_sub(it.id.chars().count()));
        let state = state(world, true, it.mode, it.expires_millis);
        let (verb, on) = (
            it.body.verb.as_str(),
            it.on.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(","),
        );
        let place = &it.body.place;
        console.print(&format!("  {}{padding}  {state:8} {verb:8} {on:24} {place}\n", it.id));
    }
}

fn state_of(world: &dyn World, it: &Check) -> &'static str {
    state(world, it.enabled, it.mode, it.expires_millis)
}

/// The mode of a rule while it is in force.
fn state(world: &dyn World, enabled: bool, its: Mode, expires: Option<i64>) -> &'static str {
    let expired = expires.is_some_and(|at| world.now().millis() >= at);
    match (enabled, expired) {
        (false, _) => "off",
        (true, true) => "expired",
        (true, false) => mode(its),
    }
}

fn severity(it: &Check) -> &'static str {
    match it.severity {
        Severity::Blocker => "blocker",
        Severity::Warning => "warning",
    }
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Warn => "warn",
        Mode::Shadow => "shadow",
    }
}
