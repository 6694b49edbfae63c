//! Writes what is known about an event into the logs of the project.

use std::path::Path;

use super::context::GateContext;
use super::diagnostics::Diagnostics;
use super::event_result::{EventResult, SkipReason};
use super::report::event_context;
use super::request::Request;
use policyd_evaluation::StopOutcome;
use policyd_evaluation::inputs::Inputs;
use policyd_fact_table::context::Excuse;
use policyd_hook::HookResponse;
use policyd_record::decision_log::{self, LoggedDecision, NoOpinionKind};
use policyd_record::mask::mask_json;
use policyd_record::outcome::ReportContext;
use policyd_store::decision_log::{DECISION_LOG, append_to, log_decision};
use policyd_store::{log, log_chain};
use policyd_workspace::gate_status::OffReason;
use policyd_workspace::project::{self, Project};
use policyd_world::World;

/// Logs the decision about a stop. If debugging is on, also logs the lines of the debug log.
pub(super) fn log(
    context: &GateContext<'_>,
    outcome: &StopOutcome,
    inputs: &Inputs,
    result: &EventResult,
    diagnostics: &mut Diagnostics,
) {
    let (world, request) = (context.world, context.request);
    let state_dir = context.state_dir.as_path();
    let blocked = result.answer.refuses();
    let decision = LoggedDecision { outcome, inputs, blocked };
    let report_context = ReportContext {
        saved: result.saved,
        preferences: result.preferences.clone(),
        ..entry_context(context, diagnostics)
    };
    let entry = decision_log::entry(request.now, &request.event, &report_context, decision);
    if log_decision(world, state_dir, entry) {
        log_chain::save_witness(world, &state_dir.join(DECISION_LOG));
    } else {
        diagnostics.problem(&unlogged(state_dir));
    }
    if project::debug(world) {
        let now = request.now.to_string();
        let lines = diagnostics.trace.iter();
        let lines: Vec<_> =
            lines.map(|it| serde_json::json!({"timestamp": now, "debug": it})).collect();
        log::append(world, &state_dir.join("logs").join("debug.jsonl"), &lines);
    }
}

/// Returns what a log entry says about an event and the problems that were found so far.
pub(super) fn entry_context(context: &GateContext<'_>, diagnostics: &Diagnostics) -> ReportContext {
    ReportContext {
        pack: context.policy.name.clone(),
        of_organization: context.is_organization,
        problems: diagnostics.problems.clone(),
        ..event_context(&context.request.event)
    }
}

/// Reports that policyd is off: to the user where a session begins and the main agent ends its turns, and in the decision
/// log there. A pause is short, so each of its events is logged.
pub(super) fn report_off(
    world: &dyn World,
    project: &Project,
    request: &Request<'_>,
    reason: OffReason,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let (kind, text) = (request.event.kind, reason.text(request.now));
    // The stops of subagents are many, and the user sees the main agent's.
    let notice = kind.is_main_boundary().then(|| format!("policyd: {text}"));
    let is_logged = kind.is_boundary() || matches!(reason, OffReason::Paused(_));
    if is_logged && !request.dry_run {
        let unjudged = UnjudgedEvent {
            no_opinion: Some(text),
            no_opinion_kind: Some(reason.kind()),
            ..UnjudgedEvent::default()
        };
        log_unjudged(world, &project.state, request, unjudged, diagnostics);
    }
    let answer = HookResponse { notice, ..HookResponse::default() };
    EventResult::skipped(SkipReason::Off(reason), answer)
}

/// What the log says about an event that was not evaluated.
#[derive(Default)]
pub(super) struct UnjudgedEvent {
    /// Whether it was blocked anyway.
    pub(super) is_blocked: bool,
    /// Whether the entry belongs to the rules of the organization.
    pub(super) of_organization: bool,
    /// Why it was not evaluated. `None` if only a problem says so.
    pub(super) no_opinion: Option<String>,
    /// Why it was not evaluated, if policyd was off.
    pub(super) no_opinion_kind: Option<NoOpinionKind>,
}

/// Logs an event that was not evaluated. Reports a log that cannot be written.
pub(super) fn log_unjudged(
    world: &dyn World,
    state_dir: &Path,
    request: &Request<'_>,
    unjudged: UnjudgedEvent,
    diagnostics: &mut Diagnostics,
) {
    let report_context = ReportContext {
        of_organization: unjudged.of_organization,
        no_opinion: unjudged.no_opinion,
        no_opinion_kind: unjudged.no_opinion_kind,
        problems: diagnostics.problems.clone(),
        ..event_context(&request.event)
    };
    let (now, event) = (request.now, &request.event);
    let entry = decision_log::unjudged_entry(now, event, &report_context, unjudged.is_blocked);
    if !log_decision(world, state_dir, entry) {
        diagnostics.problem(&unlogged(state_dir));
    }
}

/// Returns what the user reads about a decision that is not in the log.
pub(super) fn unlogged(state_dir: &Path) -> String {
    format!(
        "this decision is not recorded: `{}` could not be written. `policyd doctor` checks the \
         state directory",
        state_dir.join(DECISION_LOG).display()
    )
}

/// Log of the agent's rationalizations in the state directory. The path is that of loki-mode.
pub(crate) const EXCUSES_LOG: &str = "memory/episodic/rationalizations.jsonl";

/// Records the rationalizations of the agent, with the decision about its stop.
pub(super) fn document(
    context: &GateContext<'_>,
    excuses: &[Excuse],
    is_blocked: bool,
    diagnostics: &mut Diagnostics,
) {
    let (request, event) = (context.request, &context.request.event);
    if excuses.is_empty() {
        return;
    }
    let entries = excuses.iter().map(|excuse| {
        let mut entry = serde_json::json!({
            "timestamp": request.now.to_string(),
            "session_id": event.session_id.as_str(),
            "agent_id": event.agent_id,
            "rationalization": excuse.name,
            "family": excuse.family,
            "quote": excuse.quote,
            "why_wrong": excuse.wrong,
            "required_action": excuse.action,
            "proven": excuse.proven,
            "blocked": is_blocked,
        });
        mask_json(&mut entry);
        entry
    });
    let entries: Vec<_> = entries.collect();
    if !append_to(context.world, &context.state_dir, EXCUSES_LOG, &entries) {
        diagnostics.note("the excuses could not be kept");
    }
}
