//! Decisions that the user allows to be dropped, and how the user can do that.

use std::collections::BTreeMap;

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use policyd_evaluation::call_code;
use policyd_evaluation::guards::GuardsOutcome;
use policyd_evaluation::message::{cut, in_one_line};
use policyd_facts::call_subject;
use policyd_record::mask::mask;
use policyd_store::allowance::BlockedEvent;
use policyd_store::user_choices::UserChoiceStore;

/// Characters of a call that the user reads.
const CALL_CHARS_MAX: usize = 60;
/// Rules that the user reads.
const RULES_SHOWN: usize = 4;

/// Uses the allowances of the user for an event. Returns the rules whose decision is dropped, each with the text of its
/// allowance. An allowance that cannot be saved as used allows nothing, because it would allow the same again.
pub(super) fn use_allowances(
    context: &GateContext<'_>,
    event: &BlockedEvent<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<String, String> {
    if context.allowances.is_none_or(<[_]>::is_empty) {
        return BTreeMap::new();
    }
    let store = UserChoiceStore::new(context.world, &context.project.state);
    let used = store.change(|choices| choices.use_allowances(event, context.request.now));
    used.unwrap_or_else(|problem| {
        diagnostics.problem(&format!("no allowance was used: {}", problem.note()));
        BTreeMap::new()
    })
}

/// Returns how the user can allow a call or an event that guards block.
pub(super) fn hint_for_guards(context: &GateContext<'_>, outcome: &GuardsOutcome) -> String {
    let event = &context.request.event;
    let subject = match &event.tool_name {
        Some(tool) => call_subject::subject(tool, &event.tool_input),
        None => event.kind.name().to_owned(),
    };
    let subject = cut(&in_one_line(&mask(&subject).0), CALL_CHARS_MAX);
    let rules = outcome.decided_by();
    let code = outcome.digest.as_deref().map(call_code::code);
    let command = match (code, rules.as_slice()) {
        (Some(code), [rule]) => {
            format!("policyd allow --call {code}, or: policyd allow {rule} --once")
        }
        (Some(code), _) => format!("policyd allow --call {code}"),
        (None, rules) => format!("policyd allow {} --once", rules.join(" ")),
    };
    format!("policyd blocked `{subject}` ({}). Wrong? Run: {command}", list_rules("guard", &rules))
}

/// Returns how the user can allow a stop that checks block.
pub(super) fn hint_for_checks(checks: &[&str]) -> String {
    format!(
        "policyd blocked the stop ({}). Wrong? Run: policyd allow {} --once",
        list_rules("check", checks),
        checks.join(" ")
    )
}

/// Lists the first rules: `guards a, b`. `word` is the kind of rule.
fn list_rules(word: &str, rules: &[&str]) -> String {
    let plural = if rules.len() == 1 { "" } else { "s" };
    let shown: Vec<&str> = rules.iter().copied().take(RULES_SHOWN).collect();
    let more = rules.len().saturating_sub(shown.len());
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("{word}{plural} {}{more}", shown.join(", "))
}
