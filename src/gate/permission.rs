//! Approves a call in place of the user: confirms the allow of the guards at a permission prompt. The guards at
//! `pre_tool_use` and the rules of the client come first: if one of them would stop the call or ask about it, the user
//! answers.

use std::rc::Rc;

use serde_json::Value as Json;

use super::client_rules::ClientRules;
use super::context::GateContext;
use super::guards::{GuardEvaluation, JudgedCall};
use super::report::Report;
use super::request::Request;
use policyd_evaluation::Detail;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::{GuardVerdict, GuardsOutcome};
use policyd_fact_table::call_facts::CallFacts;
use policyd_facts::event::{Event, EventKind};
use policyd_shell::vocabulary::ShellVocabulary;

/// Fields of the input of a tool by which a call leaves the sandbox of the client, each with its value.
const ESCAPES: [(&str, &str); 3] = [
    ("dangerouslyDisableSandbox", "true"),
    ("with_escalated_permissions", "true"),
    ("sandbox_permissions", "require_escalated"),
];

/// Returns whether a field has the value with which a call leaves the sandbox.
fn is_escape(value: &Json, escape: &str) -> bool {
    value.as_bool().is_some_and(|it| it && escape == "true") || value.as_str() == Some(escape)
}

/// Drops the allow of the guards if another rule wants a question.
pub(super) fn confirm(
    context: &GateContext<'_>,
    rules: &ClientRules,
    seen: &CallFacts,
    guarded: &mut GuardsOutcome,
    report: &mut Report,
) {
    let input = &context.request.event.tool_input;
    let escapes =
        ESCAPES.iter().find(|it| input.get(it.0).is_some_and(|value| is_escape(value, it.1)));
    let tool = context.request.event.tool_name.as_deref().unwrap_or_default();
    let is_shell = context.words.lens.is_shell_tool(tool);
    let escapes = match escapes {
        Some((key, _)) => Some(format!("`{key}` lets it leave the sandbox")),
        // Where the tool of a server runs its command is unknown.
        None if !is_shell && !seen.call.programs.is_empty() => {
            Some(format!("`{tool}` is not the client's shell"))
        }
        None => None,
    };
    let why = escapes
        .or_else(|| rules.objection(seen, context))
        .or_else(|| objection(context, report))
        .or_else(|| context.organization?.objection(context.world, context.request));
    if let Some(why) = why {
        guarded.withdraw_allow(&why);
    }
}

/// Returns why the guards at `pre_tool_use` would stop this call or ask about it.
pub(super) fn objection(context: &GateContext<'_>, report: &mut Report) -> Option<String> {
    let before = context.request;
    let request = Request {
        event: Event { kind: EventKind::PreToolUse, ..before.event.clone() },
        caller: before.caller,
        supervision: before.supervision,
        now: before.now,
        policies: before.policies,
        detail: Detail::Findings,
        dry_run: true,
        line: before.line.clone(),
        configurations: Rc::clone(&before.configurations),
        watch: None,
    };
    let asked = context.for_approval(&request);
    let JudgedCall { guarded, .. } = GuardEvaluation { context: &asked }.judge(report)?;
    let stops = |it: &&GuardVerdict| it.decision() >= Decision::Ask || it.would().is_some();
    let found = guarded.verdicts.iter().find(stops)?;
    Some(format!("the guard `{}` would ask about it", found.id))
}
