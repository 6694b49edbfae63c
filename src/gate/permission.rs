//! Looks for objections to an allow of guards at a permission prompt, where policyd would approve a call in place of the
//! user. If a guard at `pre_tool_use` or a rule of the client would stop the call or ask about it, the user answers.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value as Json;

use super::client_rules::ClientRules;
use super::context::GateContext;
use super::diagnostics::Diagnostics;
use super::guards::{GuardDecision, GuardEvaluation};
use super::read_files;
use super::request::Request;
use policyd_evaluation::Detail;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::GuardVerdict;
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

/// Why a call is not approved in place of the user.
#[derive(Default)]
pub(super) struct Objection {
    /// The reason. `None` if nothing objects.
    pub(super) why: Option<String>,
    /// Preferences that the guards at `pre_tool_use` read. `None` if they read no preference and no probe.
    pub(super) preferences: Option<BTreeMap<String, bool>>,
}

/// Looks for a rule that wants the user to answer a permission prompt. The first objection counts, so guards and the
/// organization are asked only if nothing cheaper objects.
pub(super) fn find_objection(
    context: &GateContext<'_>,
    rules: &ClientRules,
    call_facts: &CallFacts,
    diagnostics: &mut Diagnostics,
) -> Objection {
    let why = sandbox_escape(context, call_facts)
        .or_else(|| rules.objection(call_facts, context))
        .or_else(|| read_files::secret_within(context.world, call_facts, &context.words.lens));
    if why.is_some() {
        return Objection { why, preferences: None };
    }
    let Objection { why, preferences } = guard_objection(context, diagnostics);
    let why = why.or_else(|| context.organization?.objection(context.world, context.request));
    Objection { why, preferences }
}

/// Returns how a call leaves the sandbox of the client. `None` if it does not.
fn sandbox_escape(context: &GateContext<'_>, call_facts: &CallFacts) -> Option<String> {
    let event = &context.request.event;
    let has_escape = |(key, value): &&(&str, &str)| {
        event.tool_input.get(key).is_some_and(|it| is_escape(it, value))
    };
    if let Some((key, _)) = ESCAPES.iter().find(has_escape) {
        return Some(format!("`{key}` lets it leave the sandbox"));
    }
    // Where the tool of a server runs its command is unknown.
    let tool = event.tool_name.as_deref().unwrap_or_default();
    let is_foreign =
        !context.words.lens.is_shell_tool(tool) && !call_facts.call.programs.is_empty();
    is_foreign.then(|| format!("`{tool}` is not the client's shell"))
}

/// Returns why the guards at `pre_tool_use` would stop this call or ask about it.
pub(super) fn guard_objection(
    context: &GateContext<'_>,
    diagnostics: &mut Diagnostics,
) -> Objection {
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
    let approval = context.for_approval(&request);
    let decision = GuardEvaluation { context: &approval }.decide(diagnostics);
    let Some(GuardDecision { outcome, preferences, call_facts, .. }) = decision else {
        return Objection::default();
    };
    let stops = |it: &&GuardVerdict| it.decision() >= Decision::Ask || it.would().is_some();
    let stopping = outcome.verdicts.iter().find(stops);
    let why = stopping.map(|it| format!("the guard `{}` would ask about it", it.id));
    // Unknown code is not approved, whatever the guards of the pack are.
    let scripts = call_facts.call.all_scripts();
    let unread = scripts.into_iter().find(|it| it.call.beyond);
    let why = why.or_else(|| unread.map(|it| format!("`{}` was not analyzed to its end", it.path)));
    Objection { why, preferences }
}
