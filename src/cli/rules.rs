//! `policyd rules`: which rules are active and what each of them does.

use serde_json::json;

use super::arguments::RulesArguments;
use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, ListFormat, check, pack};
use policyd_app::packs::rule_change::{self, RuleSwitch};
use policyd_app::packs::rule_text::RuleTexts;
use policyd_app::packs::shared_ids::shared_ids;
use policyd_app::packs::{self, FoundPack, organization};
use policyd_app::workspace::gate_status::{GateStatus, OffReason};
use policyd_app::workspace::project;
use policyd_policy::Policy;
use policyd_record::pack_layer::{PackLayer, PackLayers};
use policyd_record::paint::TextColor;
use policyd_report::rule_patterns;
use policyd_report::rules::{self as report, ActiveRule, RuleGroup, RuleNotes};
use policyd_store::pause::Pause;
use policyd_world::World;
use policyd_yaml::suggest;
use policyd_yaml::time::Timestamp;

/// Whether policyd is off or paused, for the JSON list.
struct StatusTexts {
    off: Option<String>,
    paused: Vec<String>,
}

/// A pack whose rules are active.
struct ActivePack {
    policy: Policy,
    found: FoundPack,
    layers: PackLayers,
}

/// Lists the rules of a pack, of one set, or shows one rule. The rules of the organization come first.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &RulesArguments) -> u8 {
    let named = arguments.policies.as_deref();
    let Some((mut policy, found)) = pack::require_valid_with_pack(world, console, named) else {
        return EXIT_BROKEN;
    };
    let now = world.now();
    let status = report_status(world, console, &mut policy, now);
    let organization = organization_pack(world, console);
    organization.iter().for_each(|it| organization::leave_out_changed(&mut policy, &it.policy));
    if !policy.skipped_layer.is_empty() {
        console.eprint(&policy.skipped_layer);
    }
    let layers = found.layers(world, &project::find(world, None));
    let own = ActivePack { policy, found, layers };
    let packs: Vec<&ActivePack> = organization.iter().chain([&own]).collect();
    if let Some(name) = &arguments.name
        && let Some(page) = page(world, console, &packs, name, arguments.format)
    {
        console.print(&page);
        return EXIT_OK;
    }
    let texts: Vec<RuleTexts<'_>> =
        packs.iter().map(|it| RuleTexts::new(world, &it.found)).collect();
    let mut listed: Vec<(&ActivePack, Vec<RuleGroup<'_>>)> = packs
        .iter()
        .zip(&texts)
        .map(|(pack, texts)| (*pack, groups_of(&rules_of(&pack.policy), texts)))
        .collect();
    if let Some(name) = &arguments.name {
        if let Some(text) = disabled(world, name) {
            console.print(&text);
            return EXIT_OK;
        }
        if !select(&mut listed, name) {
            console.eprint(&unknown(name, &listed));
            return EXIT_USAGE;
        }
    }
    let text = match arguments.format {
        ListFormat::Json => list_json(&own, &listed, &status, now),
        ListFormat::Compact => listed.iter().map(|(_, it)| report::compact(it, now)).collect(),
        ListFormat::Text => {
            let hint = match &arguments.name {
                None => "policyd rules SET lists one group; policyd rules ID shows one rule",
                Some(_) => "policyd rules ID shows one rule",
            };
            let hint = console.screen().style().paint(TextColor::Dim, hint);
            let lists = listed.iter().map(|(pack, groups)| {
                let list = report::list(groups, &pack.layers, now, console.screen());
                format!("{}\n{list}\n", title(pack))
            });
            format!("{}{hint}\n", lists.collect::<String>())
        }
    };
    console.print(&text);
    EXIT_OK
}

/// Keeps the set with a name, or the rules that mention a text. Returns whether there are any.
fn select(listed: &mut Vec<(&ActivePack, Vec<RuleGroup<'_>>)>, name: &str) -> bool {
    let is_set = |it: &RuleGroup<'_>| it.name.eq_ignore_ascii_case(name);
    let has_set = listed.iter().any(|(_, groups)| groups.iter().any(is_set));
    let is_about = |rule: &ActiveRule<'_>| name.split_whitespace().all(|it| rule.mentions(it));
    let is_found = |group: &RuleGroup<'_>| match has_set {
        true => is_set(group),
        false => group.rules.iter().any(is_about),
    };
    if name.trim().is_empty() || !listed.iter().any(|(_, groups)| groups.iter().any(is_found)) {
        return false;
    }
    for (_, groups) in listed.iter_mut() {
        groups.retain(is_found);
        groups.iter_mut().filter(|_| !has_set).for_each(|it| it.rules.retain(is_about));
    }
    listed.retain(|(_, groups)| !groups.is_empty());
    true
}

/// Describes a built-in guard that a pack disables. `None` if the name is not that of such a guard.
fn disabled(world: &dyn World, name: &str) -> Option<String> {
    let builtin = packs::builtin_policy()?;
    let id = builtin.rule_id(name)?;
    let overrides = rule_change::overrides(world, &project::find(world, None));
    let by = overrides.iter().find(|it| it.id == id && it.state == RuleSwitch::Off.name());
    let why = by.map_or_else(
        || "because the pack does not contain its guard set".to_owned(),
        |it| format!("layer {}, {}: {}", it.owner.name(), it.place, it.reason),
    );
    let help = by.map_or_else(
        || "help: enable the set in `guard_sets` of `policyd.yaml`\n".to_owned(),
        |_| format!("help: let it act again: `policyd rule on {id}`\n"),
    );
    Some(format!("{id} is off ({why})\n{help}"))
}

/// The line above the rules of a pack.
fn title(pack: &ActivePack) -> String {
    match pack.layers.own {
        PackLayer::Organization => format!("pack of the organization {}", pack.policy.name),
        PackLayer::BuiltIn | PackLayer::User | PackLayer::Project | PackLayer::Named => {
            format!("pack {}", pack.policy.name)
        }
    }
}

/// The page of a rule. `None` if no pack has it.
fn page(
    world: &dyn World,
    console: &Console<'_>,
    packs: &[&ActivePack],
    name: &str,
    format: ListFormat,
) -> Option<String> {
    let now = world.now();
    let (pack, id) = packs.iter().find_map(|it| Some((it, it.policy.rule_id(name)?)))?;
    let rule = rules_of(&pack.policy).into_iter().find(|it| it.id() == id)?;
    let texts = RuleTexts::new(world, &pack.found);
    let shared = shared_ids(&pack.found, &pack.policy, &pack.layers);
    let shared = shared.into_iter().find(|it| it.id == id);
    let examples = texts.examples(&pack.policy, rule.id());
    let notes = RuleNotes {
        description: texts.description(rule.id()),
        caught: examples.fires,
        not_caught: examples.passes,
        patterns: match rule {
            ActiveRule::Check(it) => rule_patterns::of(it, &pack.policy),
            ActiveRule::Guard(_) => Vec::new(),
        },
        layer: rule.layer(&pack.layers),
        shared: shared.map(|it| it.text()),
    };
    Some(match format {
        ListFormat::Json => format!("{:#}\n", report::page_json(rule, &notes, now)),
        ListFormat::Text | ListFormat::Compact => report::page(rule, &notes, now, console.screen()),
    })
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
    let observes = status.enforcement.text(policy.settings.mode);
    observes.iter().for_each(|it| console.eprint(it));
    status.enforcement.apply(policy);
    let problems = status.config.iter().flat_map(|it| it.apply(policy));
    problems.for_each(|it| console.eprint(&it));
    StatusTexts { off, paused }
}

/// The pack of the organization, whose rules are evaluated beside the pack; reports why it is not used.
fn organization_pack(world: &dyn World, console: &mut Console<'_>) -> Option<ActivePack> {
    let found = match organization::find(world) {
        Ok(found) => found?,
        Err(ignored) => {
            console.eprint(&ignored.to_string());
            return None;
        }
    };
    match packs::policy(world, &found) {
        Ok(policy) => {
            let layers = PackLayers { own: PackLayer::Organization, user: None };
            Some(ActivePack { policy, found, layers })
        }
        Err(invalid) => {
            console.eprint(&packs::explain(&invalid));
            None
        }
    }
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

fn unknown(name: &str, listed: &[(&ActivePack, Vec<RuleGroup<'_>>)]) -> String {
    let groups = listed.iter().flat_map(|(_, groups)| groups);
    let known = groups.flat_map(|it| it.rules.iter().map(|it| it.id()).chain([it.name]));
    let known: Vec<&str> = known.collect();
    let help = suggest::nearest(name, &known).map(|it| format!("did you mean `{it}`?"));
    let help = help.unwrap_or_else(|| "run `policyd rules` to list the rules".to_owned());
    let help = check::hint(name).unwrap_or_else(|| format!("help: {help}"));
    format!("unknown rule or set `{name}`\n{help}")
}

fn list_json(
    own: &ActivePack,
    listed: &[(&ActivePack, Vec<RuleGroup<'_>>)],
    status: &StatusTexts,
    now: Timestamp,
) -> String {
    let (mut checks, mut guards, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    for (pack, groups) in listed {
        for group in groups {
            if let Some(description) = &group.description {
                sets.push(json!({"set": group.name, "description": description}));
            }
            for rule in &group.rules {
                let value = report::rule_json(*rule, rule.layer(&pack.layers), now);
                match rule {
                    ActiveRule::Check(_) => checks.push(value),
                    ActiveRule::Guard(_) => guards.push(value),
                }
            }
        }
    }
    let all = json!({"version": 1, "pack": own.policy.name, "off": status.off,
        "paused": status.paused, "rules": checks, "guards": guards, "sets": sets});
    format!("{all}\n")
}
