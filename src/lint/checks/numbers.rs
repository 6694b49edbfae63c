//! Checks of times, counts and caps.

use std::time::Duration;

use crate::{Findings, Subject};
use policyd_policy::ManifestSettings;
use policyd_yaml::node::Node;
use policyd_yaml::shape::Kind;
use policyd_yaml::time::duration_text;

pub(crate) fn zero_duration(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in subject.leaves.iter().filter(|it| matches!(it.kind, Kind::Duration)) {
        if leaf.node.duration() == Some(Duration::ZERO) {
            let message = format!("`{}` is zero", leaf.key);
            out.help(leaf.node.span.clone(), message, "write a duration, or remove the key");
        }
    }
}

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// A key with the times between which its values commonly lie.
type Common = (&'static str, Duration, Duration);

/// Keys that mean longer or shorter times in one file than in others.
const COMMON_IN: [(&str, Common); 1] = [
    // After a weekend, tasks that were abandoned before it must still be there.
    (
        "dead_letter.yaml",
        ("max_age", Duration::from_secs(3 * DAY), Duration::from_secs(10 * 365 * DAY)),
    ),
];

/// Keys with the times between which their values commonly lie.
const COMMON: [Common; 20] = [
    ("timeout", Duration::from_millis(50), Duration::from_secs(120)),
    ("deadline", Duration::from_millis(50), Duration::from_secs(120)),
    ("lock_wait", Duration::from_millis(50), Duration::from_secs(60)),
    ("retry_delays", Duration::from_millis(1), Duration::from_secs(10)),
    ("window", Duration::from_secs(1), Duration::from_secs(DAY)),
    ("cooldown", Duration::from_secs(1), Duration::from_secs(DAY)),
    ("cooldown_max", Duration::from_secs(1), Duration::from_secs(7 * DAY)),
    ("retry_after_max", Duration::from_secs(1), Duration::from_secs(7 * DAY)),
    ("slow_call", Duration::from_millis(10), Duration::from_secs(DAY)),
    ("ramp_every", Duration::from_secs(1), Duration::from_secs(DAY)),
    ("half_open_interval", Duration::from_millis(100), Duration::from_secs(HOUR)),
    ("silence", Duration::from_secs(1), Duration::from_secs(DAY)),
    ("grace", Duration::from_millis(100), Duration::from_secs(600)),
    ("breaker_wait", Duration::from_secs(1), Duration::from_secs(DAY)),
    ("cache", Duration::from_secs(1), Duration::from_secs(2 * DAY)),
    ("answer_within", Duration::from_secs(300), Duration::from_secs(60 * DAY)),
    ("review_every", Duration::from_secs(HOUR), Duration::from_secs(31 * DAY)),
    ("expires", Duration::from_secs(60), Duration::from_secs(366 * DAY)),
    ("per", Duration::from_secs(60), Duration::from_secs(31 * DAY)),
    ("max_age", Duration::from_secs(HOUR), Duration::from_secs(10 * 365 * DAY)),
];

pub(crate) fn suspicious_unit(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in subject.leaves.iter().filter(|it| matches!(it.kind, Kind::Duration)) {
        let common = COMMON_IN.iter().filter(|(file, _)| *file == leaf.file).map(|(_, row)| row);
        let common = common.chain(&COMMON).find(|(key, ..)| *key == leaf.key);
        let (Some((key, least, most)), Some(value)) = (common, leaf.node.duration()) else {
            continue;
        };
        if value != Duration::ZERO && !(*least..=*most).contains(&value) {
            let much = if value < *least { "short" } else { "long" };
            let message =
                format!("{} is very {much} for `{key}`", leaf.node.text().unwrap_or_default());
            let (least, most) = (duration_text(*least), duration_text(*most));
            let help = format!("check the unit; the usual range is {least} to {most}");
            out.help(leaf.node.span.clone(), message, help);
        }
    }
}

/// The numbers in force, and the pack's own section of its manifest.
fn own<'s>(subject: &'s Subject<'_>, section: &str) -> Option<(&'s ManifestSettings, &'s Node)> {
    let section = subject.file("policyd.yaml")?.get(section)?;
    Some((&subject.reviewed.meant.settings, section))
}

pub(crate) fn guard_contradiction(subject: &Subject<'_>, out: &mut Findings) {
    let Some((settings, section)) = own(subject, "guard") else { return };
    let guard = &settings.guard;
    let cap = guard.max_consecutive_blocks;
    let numbers = [
        ("warn_from", guard.warn_from, "the agent is never warned"),
        ("same_failure_max", guard.same_failure_max, "the limit of all blocks applies first"),
        ("idle_blocks_max", guard.idle_blocks_max, "the limit of all blocks applies first"),
    ];
    for (key, number, effect) in numbers {
        let Some(node) = section.get(key).or_else(|| section.get("max_consecutive_blocks")) else {
            continue;
        };
        // Zero disables the cap; another rule reports it.
        if number > cap && cap > 0 {
            let message =
                format!("`{key}` is {number}, above `max_consecutive_blocks`, which is {cap}");
            out.add(node.span.clone(), message, |it| {
                it.with_note(effect).with_help(format!("write at most {cap}, or raise the limit"))
            });
        }
    }
}
