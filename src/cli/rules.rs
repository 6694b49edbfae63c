//! `policyd rules`: which rules are active and what each of them does.

use serde_json::json;

use super::arguments::RulesArguments;
use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, ListFormat, pack};
use crate::app::packs::rule_text::RuleTexts;
use crate::app::packs::{self, organization};
use crate::app::workspace::gate_status::{GateStatus, OffReason};
use crate::app::workspace::project;
use crate::policy::Policy;
use crate::report::paint::TextColor;
use crate::report::rules::{self as report, ActiveRule, RuleGroup, RuleNotes};
use crate::source::suggest;
use crate::store::pause::Pause;
use crate::time::Timestamp;
use crate::world::World;

/// Whether policyd is off or paused, for the JSON list.
struct StatusTexts {
    off: Option<String>,
    paused: Vec<String>,
}

/// Lists the rules of a pack, of one set, or shows one rule.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &RulesArguments) -> u8 {
    let named = arguments.policies.as_deref();
    let Some((mut policy, found)) = pack::require_valid_with_pack(world, console, named) else {
        return EXIT_BROKEN;
    };
    let now = world.now();
    let status = report_status(world, console, &mut policy, now);
    let texts = RuleTexts::new(world, &found);
    let rules: Vec<ActiveRule<'_>> = rules_of(&policy);
    let mut groups = groups_of(&rules, &texts);
    if let Some(name) = &arguments.name {
        if let Some(rule) = rules.iter().find(|it| it.id() == name) {
            let examples = texts.examples(&policy, rule.id());
            let notes = RuleNotes {
                description: texts.description(rule.id()),
                caught: examples.fires,
                not_caught: examples.passes,
            };
            console.print(&match arguments.format {
                ListFormat::Json => format!("{:#}\n", report::page_json(*rule, &notes, now)),
                ListFormat::Text | ListFormat::Compact => {
                    report::page(*rule, &notes, now, console.screen())
                }
            });
            return EXIT_OK;
        }
        if !groups.iter().any(|it| it.name.eq_ignore_ascii_case(name)) {
            console.eprint(&unknown(name, &rules, &groups));
            return EXIT_USAGE;
        }
        groups.retain(|it| it.name.eq_ignore_ascii_case(name));
    }
    let text = match arguments.format {
        ListFormat::Json => list_json(&policy, &groups, &status, now),
        ListFormat::Compact => report::compact(&groups, now),
        ListFormat::Text => {
            let list = report::list(&groups, now, console.screen());
            let hint = match &arguments.name {
                None => "policyd rules SET lists one group; policyd rules ID shows one rule",
                Some(_) => "policyd rules ID shows one rule",
            };
            let hint = console.screen().style().paint(TextColor::Dim, hint);
            format!("pack {}\n{list}\n{hint}\n", policy.name)
        }
    };
    console.print(&text);
    EXIT_OK
}

/// Reports why policyd is off or paused, and applies the user's choices to the policy.
fn report_status(
    world: &dyn World,
    console: &mut Console<'_>,
    policy: &mut Policy,
    now: Timestamp,
) -> StatusTexts {
    let project = project::find(world, None);
    let status = GateStatus::read(world, &project, None, now);
    let off = status.off.map(|it| it.text(now));
    let is_disabled = !policy.settings.enabled && status.pins.allow_disable;
    let off = off.or_else(|| is_disabled.then(|| OffReason::Manifest.text(now)));
    let paused = |it: &Pause| {
        let session = it.session.as_ref().map_or_else(String::new, |id| format!(" (session {id})"));
        format!("{}{session}", it.text(now))
    };
    let paused: Vec<String> = status.pauses.iter().map(paused).collect();
    paused.iter().chain(&off).for_each(|it| console.eprint(&format!("policyd is {it}")));
    status.problems.iter().for_each(|it| console.eprint(it));
    for it in status.pins.lines() {
        console.eprint(&format!("set by the organization: {it}"));
    }
    status.pins.apply(policy);
    organization_rules(world).iter().for_each(|it| console.eprint(it));
    let observes = status.enforcement.text(policy.settings.mode);
    observes.iter().for_each(|it| console.eprint(it));
    status.enforcement.apply(policy);
    let problems = status.config.iter().flat_map(|it| it.apply(policy));
    problems.for_each(|it| console.eprint(&it));
    StatusTexts { off, paused }
}

/// Names the rules of the organization, which are evaluated beside the pack.
fn organization_rules(world: &dyn World) -> Option<String> {
    let found = match organization::find(world) {
        Ok(found) => found?,
        Err(weakness) => return Some(weakness.to_string()),
    };
    Some(match packs::policy(world, &found) {
        Err(invalid) => packs::explain(&invalid),
        Ok(policy) => {
            let ids: Vec<&str> = rules_of(&policy).iter().map(|it| it.id()).collect();
            let folder = organization::policies();
            format!("rules of the organization, in {}: {}", folder.display(), ids.join(", "))
        }
    })
}

/// Returns the checks, then the guards, in the order of the pack.
fn rules_of(policy: &Policy) -> Vec<ActiveRule<'_>> {
    let checks = policy.considerations.iter().map(ActiveRule::Check);
    checks.chain(policy.guards.rules.iter().map(ActiveRule::Guard)).collect()
}

/// Groups rules by the category of the check or the set of the guard.
fn groups_of<'p>(rules: &[ActiveRule<'p>], texts: &RuleTexts<'_>) -> Vec<RuleGroup<'p>> {
    let mut groups: Vec<RuleGroup<'p>> = Vec::new();
    for rule in rules {
        match groups.iter_mut().find(|it| it.name == rule.group()) {
            Some(group) => group.rules.push(*rule),
            None => {
                let description = match rule {
                    ActiveRule::Check(_) => None,
                    ActiveRule::Guard(it) => texts.set_description(&it.set),
                };
                groups.push(RuleGroup { name: rule.group(), description, rules: vec![*rule] });
            }
        }
    }
    groups
}

fn unknown(name: &str, rules: &[ActiveRule<'_>], groups: &[RuleGroup<'_>]) -> String {
    let known = rules.iter().map(|it| it.id()).chain(groups.iter().map(|it| it.name));
    let known: Vec<&str> = known.collect();
    let help = suggest::nearest(name, &known).map(|it| format!("did you mean `{it}`?"));
    let help = help.unwrap_or_else(|| "run `policyd rules` to list the rules".to_owned());
    format!("unknown rule or set `{name}`\nhelp: {help}")
}

fn list_json(
    policy: &Policy,
    groups: &[RuleGroup<'_>],
    status: &StatusTexts,
    now: Timestamp,
) -> String {
    let (mut checks, mut guards, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        if let Some(description) = &group.description {
            sets.push(json!({"set": group.name, "description": description}));
        }
        for rule in &group.rules {
            match rule {
                ActiveRule::Check(_) => checks.push(report::rule_json(*rule, now)),
                ActiveRule::Guard(_) => guards.push(report::rule_json(*rule, now)),
            }
        }
    }
    let all = json!({"version": 1, "pack": policy.name, "off": status.off,
        "paused": status.paused, "rules": checks, "guards": guards, "sets": sets});
    format!("{all}\n")
}
