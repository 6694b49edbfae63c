//! `policyd debug rationalization`: excuses and red flags in a text, and what counters them.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, RationalizationAction, pack,
};
use policyd_base::limits;
use policyd_evaluation::rationalization::{Match, matches, sought};
use policyd_policy::Expression;
use policyd_world::World;

/// Runs one action.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    action: &RationalizationAction,
) -> u8 {
    let RationalizationAction::Check { text, policies, format } = action;
    let Some(text) = said(console, text.as_deref()) else { return EXIT_USAGE };
    check(world, console, policies.as_deref(), *format, &text)
}

/// The text: the argument, or standard input.
fn said(console: &mut Console<'_>, text: Option<&str>) -> Option<String> {
    match text {
        Some("-") => {}
        Some(text) => return Some(text.to_owned()),
        None if console.stdin_is_tty => {
            console
                .eprint("no text given\nhelp: pass it as an argument, or `-` for standard input");
            return None;
        }
        None => {}
    }
    let bound = u64::try_from(limits::LAST_MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    drop((&mut *console.stdin).take(bound).read_to_end(&mut bytes));
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn check(
    world: &dyn World,
    console: &mut Console<'_>,
    policies: Option<&Path>,
    format: ListFormat,
    text: &str,
) -> u8 {
    let Some(policy) = pack::require_valid(world, console, policies) else { return EXIT_BROKEN };
    let table = &policy.rationalizations;
    let found = matches(table, &sought(table), text);
    let answer = match format {
        ListFormat::Json => {
            let items: Vec<Value> = found.iter().map(as_json).collect();
            format!("{:#}\n", Value::from(items))
        }
        ListFormat::Compact => found
            .iter()
            .map(|it| format!("{} {}: {}\n", it.entry.family, it.entry.id, it.sentence))
            .collect(),
        ListFormat::Text if found.is_empty() => "no rationalization found\n".to_owned(),
        ListFormat::Text => found.iter().map(as_text).collect(),
    };
    console.print(&answer);
    if found.is_empty() { EXIT_OK } else { EXIT_FOUND }
}

fn as_json(found: &Match<'_>) -> Value {
    let entry = found.entry;
    let condition = |it: &Option<Expression>| it.as_ref().map(|it| it.text.clone());
    json!({
        "rationalization": entry.id,
        "family": entry.family,
        "quote": found.sentence,
        "why_wrong": entry.wrong,
        "required_action": entry.action,
        "counts_when": condition(&entry.when),
        "blocks_when": condition(&entry.blocking),
    })
}

fn as_text(found: &Match<'_>) -> String {
    let entry = found.entry;
    let mut text = format!(
        "{} ({})\n  said:     {}\n  wrong:    {}\n  required: {}\n",
        entry.id, entry.family, found.sentence, entry.wrong, entry.action
    );
    let conditions = [("counts", &entry.when), ("blocks", &entry.blocking)];
    for (what, condition) in conditions {
        let plain =
            condition.as_ref().map(|it| it.text.split_whitespace().collect::<Vec<_>>().join(" "));
        let told = match (what, plain) {
            (_, Some(plain)) => format!("where {plain}"),
            ("counts", None) => "always".to_owned(),
            (_, None) => "never".to_owned(),
        };
        text.push_str(&format!("  {what}:   {told}\n"));
    }
    text
}
