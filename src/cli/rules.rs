//! `policyd rules`: which rules are active, in which mode, from which file.

use serde_json::json;

use super::{Console, EXIT_BROKEN, EXIT_OK, ListFormat, PackArguments, amplihack, pack, project};
use crate::policy::{Consideration, Mode, Severity};
use crate::store::pause::{Pause, Pauses};
use crate::world::World;

/// Lists the considerations of a pack.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &PackArguments) -> u8 {
    let Some(mut policy) = pack::sound(world, console, arguments.policies.as_deref()) else {
        return EXIT_BROKEN;
    };
    let project = project::find(world, None);
    let switches = amplihack::switches(world, &project);
    let off = match &switches {
        Ok(Some(switches)) if switches.off => Some(switches.why()),
        Ok(_) | Err(_) => project::switched_off(world, &project),
    };
    let off = off.or_else(|| (!policy.settings.enabled).then(|| "`enabled: false`".to_owned()));
    let pauses = Pauses::new(world, &project::own_root(world, &project)).all(world.now());
    let pauses = pauses.unwrap_or_else(|problem| {
        console.complain(&problem);
        Vec::new()
    });
    let paused = |it: &Pause| {
        let session = it.session.as_ref().map_or_else(String::new, |id| format!(" (session {id})"));
        format!("{}{session}", it.text(world.now()))
    };
    let paused: Vec<String> = pauses.iter().map(paused).collect();
    paused.iter().for_each(|it| console.complain(&format!("the gate is {it}")));
    off.iter().for_each(|why| console.complain(&format!("the gate is switched off: {why}")));
    match &switches {
        Ok(switches) => {
            let problems = switches.iter().flat_map(|it| it.apply(&mut policy));
            problems.for_each(|it| console.complain(&it));
        }
        Err(problem) => console.complain(problem),
    }
    if arguments.format == ListFormat::Json {
        let rules: Vec<_> = policy
            .considerations
            .iter()
            .map(|it| {
                json!({
                    "id": it.id, "enabled": it.enabled, "severity": severity(it),
                    "mode": mode(it), "state": state(world, it), "on": it.on, "session_types": it.session_types,
                    "checker": it.check.name, "place": it.place.to_string(),
                })
            })
            .collect();
        console.say(&format!(
            "{}\n",
            json!({"version": 1, "pack": policy.name, "off": off, "paused": paused, "rules": rules})
        ));
        return EXIT_OK;
    }
    let width = policy.considerations.iter().map(|it| it.id.chars().count()).max().unwrap_or(0);
    console.say(&format!("pack {}\n", policy.name));
    for it in &policy.considerations {
        let padding = " ".repeat(width.saturating_sub(it.id.chars().count()));
        let state = state(world, it);
        console.say(&format!(
            "  {}{padding}  {state:8} {:8} {:24} {}\n",
            it.id,
            severity(it),
            it.session_types.join(","),
            it.place
        ));
    }
    EXIT_OK
}

/// Its mode while it is in force.
fn state(world: &dyn World, it: &Consideration) -> &'static str {
    let expired = it.expires_millis.is_some_and(|at| world.now().millis() >= at);
    match (it.enabled, expired) {
        (false, _) => "off",
        (true, true) => "expired",
        (true, false) => mode(it),
    }
}

fn severity(it: &Consideration) -> &'static str {
    match it.severity {
        Severity::Blocker => "blocker",
        Severity::Warning => "warning",
    }
}

fn mode(it: &Consideration) -> &'static str {
    match it.mode {
        Mode::Enforce => "enforce",
        Mode::Warn => "warn",
        Mode::Shadow => "shadow",
    }
}
