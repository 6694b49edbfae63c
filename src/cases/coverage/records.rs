//! Rules over records in a pack: dead letters, escalations, reactions, signals, tables and
//! failures, each with its condition.

use super::RuleKind;
use policyd_policy::{Expression, Policy};

/// Returns every rule over a record that has a condition, in the order of the files.
pub(super) fn rules(policy: &Policy) -> Vec<(RuleKind, String, &Expression)> {
    let dead = &policy.dead_letter;
    let enter = dead.enter.iter().map(|it| (RuleKind::Entry, it.id.clone(), &it.when));
    let review = dead.review.iter().map(|it| (RuleKind::Review, it.id.clone(), &it.when));
    let alarms = dead.alarms.iter().map(|it| (RuleKind::Alarm, it.id.clone(), &it.when));
    let triggers = policy.escalation.triggers.iter();
    let triggers = triggers.map(|it| (RuleKind::Trigger, it.id.clone(), &it.when));
    let reactions = policy.reactions.iter();
    let reactions =
        reactions.filter_map(|it| Some((RuleKind::Reaction, it.id.clone(), it.when.as_ref()?)));
    let signals = &policy.signals;
    let due = signals.triggers.iter();
    let due = due.map(|it| (RuleKind::SignalTrigger, it.id.clone(), &it.when));
    let drift = signals.drift.iter().map(|it| (RuleKind::Drift, it.id.clone(), &it.when));
    let rows = policy.tables.iter().flat_map(|table| {
        let rows = (1_usize..).zip(&table.rows);
        rows.map(|(at, it)| (RuleKind::Row, format!("{} row {at}", table.id), &it.when))
    });
    enter
        .chain(review)
        .chain(alarms)
        .chain(triggers)
        .chain(reactions)
        .chain(due)
        .chain(drift)
        .chain(rows)
        .collect()
}
