//! `policyd rule`: a human disables, softens, or enforces single rules, and lists which rules were changed.

use serde_json::json;

use super::arguments::{RuleAction, RuleListArguments, RuleStateArguments, RulesArguments};
use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, ListFormat, pause, rules};
use crate::human::{require_human, require_unpinned};
use crate::lists::print_empty;
use policyd_app::packs::changed_rules::{self, ChangedRule};
use policyd_app::packs::rule_change::{
    self, OverrideChange, OverrideOwner, RuleChangeError, RuleChangePlan, RuleRequest, RuleSwitch,
};
use policyd_app::packs::{self};
use policyd_app::workspace::project::{self, Project};
use policyd_record::notice::SwitchKind;
use policyd_record::table::{Align, TextTable};
use policyd_store::configuration::Pins;
use policyd_world::World;

/// Changes rules, or lists them.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, action: &RuleAction) -> u8 {
    let (switch, arguments) = match action {
        RuleAction::Off(it) => (RuleSwitch::Off, it),
        RuleAction::Warn(it) => (RuleSwitch::Warn, it),
        RuleAction::Observe(it) => (RuleSwitch::Observe, it),
        RuleAction::On(it) => (RuleSwitch::On, it),
        RuleAction::List(it) if it.changed => return list_changed(world, console, it.format),
        RuleAction::List(RuleListArguments { format, .. }) => {
            let all = RulesArguments { name: None, policies: None, format: *format };
            return rules::run(world, console, &all);
        }
    };
    change(world, console, switch, arguments)
}

fn change(
    world: &dyn World,
    console: &mut Console<'_>,
    switch: RuleSwitch,
    arguments: &RuleStateArguments,
) -> u8 {
    let project = project::find(world, None);
    let owner = if arguments.project { OverrideOwner::Project } else { OverrideOwner::User };
    let reason = arguments.reason.as_deref().filter(|it| !it.trim().is_empty());
    let request = RuleRequest { names: &arguments.names, switch, owner, reason };
    let change = match rule_change::plan(world, &project, request) {
        Ok(RuleChangePlan::Change(change)) => change,
        Ok(RuleChangePlan::Done(rules)) => {
            let list = rules.join(", ");
            console.print(&format!("{list}: {} already (layer {})\n", switch.name(), owner.name()));
            warn_if_other(world, console, &project, &rules, request);
            return EXIT_OK;
        }
        Err(error) => return report(console, &error),
    };
    // The content of the pack changes, and only certain contents are allowed.
    let is_pinned = |pins: &Pins| pins.allowed_packs.is_some().then_some("trust.allowed_packs");
    if let Err(code) = require_unpinned(world, console, is_pinned) {
        return code;
    }
    write(world, console, &project, &change, request)
}

/// Writes a change that a human confirms.
fn write(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    change: &OverrideChange,
    request: RuleRequest<'_>,
) -> u8 {
    let OverrideChange { rules, change } = change;
    let (list, folder) = (rules.join(", "), change.folder.display());
    let switch = request.switch.name();
    let place = match request.owner {
        OverrideOwner::User => "for you, in every project",
        OverrideOwner::Project => "in this project",
    };
    let action = match request.switch {
        RuleSwitch::Off => format!("disable {list}"),
        RuleSwitch::Warn => format!("let {list} only warn"),
        RuleSwitch::Observe => format!("let {list} only observe"),
        RuleSwitch::On => format!("let {list} act again"),
    };
    let action = format!("{action} {place} ({folder})");
    let actor = match require_human(world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    if let Err(error) = change.write(world) {
        return report(console, &error.into());
    }
    let reason = request.reason.map_or_else(String::new, |it| format!(": {it}"));
    let text = format!("{list}: {switch} (layer {}, {folder}){reason}", request.owner.name());
    pause::log(world, project, SwitchKind::Rule, None, text, &actor);
    console.print(&format!("{list}: {switch} (layer {})\n", request.owner.name()));
    for (path, text) in &change.files {
        let verb = if text.is_empty() { "removed" } else { "wrote" };
        console.print(&format!("{verb} {}\n", path.display()));
    }
    warn_if_other(world, console, project, rules, request);
    EXIT_OK
}

/// Reports rules that have another state in this project, because the pack of another owner decides.
fn warn_if_other(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
    rules: &[String],
    request: RuleRequest<'_>,
) {
    let found = packs::find(world, project, None);
    let Ok(policy) = packs::policy(world, &found) else { return };
    let others = rules.iter().filter(|it| RuleSwitch::of(&policy, it) != request.switch);
    let others: Vec<&str> = others.map(String::as_str).collect();
    let Some(first) = others.first() else { return };
    let state = RuleSwitch::of(&policy, first).name();
    let is_or_are = if others.len() == 1 { "is" } else { "are" };
    let all = rule_change::overrides(world, project);
    let entry = all.iter().find(|it| it.id == *first && it.owner != request.owner);
    let place =
        entry.map_or_else(|| found.folder().unwrap_or_default().to_owned(), |it| it.place.clone());
    let (whose, help) = match request.owner {
        OverrideOwner::User => ("the pack of the project", "add `--project` to change it"),
        OverrideOwner::Project => ("your own pack", "leave out `--project` to change it"),
    };
    console.eprint(&format!(
        "{} {is_or_are} still `{state}` in this project, because {whose} decides ({place})\nhelp: {help}",
        others.join(", ")
    ));
}

fn report(console: &mut Console<'_>, error: &RuleChangeError) -> u8 {
    console.eprint(&error.to_string());
    match error {
        RuleChangeError::Unknown { .. } => EXIT_USAGE,
        RuleChangeError::Organization { .. } => super::EXIT_FOUND,
        RuleChangeError::Untrusted(_)
        | RuleChangeError::Invalid(_)
        | RuleChangeError::NoDirectory
        | RuleChangeError::NotEdited { .. }
        | RuleChangeError::Change(_) => EXIT_BROKEN,
    }
}

/// Lists the rules that another pack than the built-in one sets.
fn list_changed(world: &dyn World, console: &mut Console<'_>, format: ListFormat) -> u8 {
    let all = changed_rules::changed(world, &project::find(world, None));
    match format {
        ListFormat::Json => {
            let row = |it: &ChangedRule| {
                json!({"id": it.id, "state": it.state, "layer": it.layer,
                    "place": it.place, "reason": it.reason})
            };
            let rules: Vec<_> = all.iter().map(row).collect();
            console.print(&format!("{:#}\n", json!({"version": 1, "rules": rules})));
        }
        ListFormat::Compact => {
            for it in &all {
                let ChangedRule { id, state, layer, place, .. } = it;
                console.print(format!("{id} {state} {layer} {place}").trim_end());
                console.print("\n");
            }
        }
        ListFormat::Text if all.is_empty() => print_empty(console, format, "changed rules"),
        ListFormat::Text => {
            let mut table = TextTable::new(0, &[Align::Left; 4]);
            for it in &all {
                let reason = match it.place.is_empty() {
                    true => it.reason.clone(),
                    false => format!("{} ({})", it.reason, it.place),
                };
                let cells = [it.id.as_str(), it.state, it.layer, reason.as_str()];
                table.row(cells.into_iter().map(Into::into).collect());
            }
            let text = table.render(console.screen());
            console.print(&text);
        }
    }
    EXIT_OK
}
