//! Writes what is known about an event into the logs of the project.

use std::path::Path;

use super::context::GateContext;
use super::report::{Report, SkipReason};
use super::request::Request;
use policyd_evaluation::StopOutcome;
use policyd_evaluation::inputs::Inputs;
use policyd_fact_table::context::Excuse;
use policyd_record::decision_log::{self, LoggedDecision};
use policyd_record::mask::mask_json;
use policyd_record::outcome::ReportContext;
use policyd_store::decision_log::{DECISION_LOG, append_to, log_decision};
use policyd_store::{log, log_chain};
use policyd_workspace::gate_status::OffReason;
use policyd_workspace::project::{self, Project};
use policyd_world::World;

/// Logs the decision, and the trace where debugging is on.
pub(super) fn log(
    context: &GateContext<'_>,
    outcome: &StopOutcome,
    inputs: &Inputs,
    report: &mut Report,
) {
    let (world, request, own) = (context.world, context.request, context.state_dir.as_path());
    let blocked = report.answer.refuses();
    let decided = LoggedDecision { outcome, inputs, blocked };
    let entry = decision_log::entry(request.now, &request.event, &report.around, decided);
    if log_decision(world, own, entry) {
        log_chain::save_witness(world, &own.join(DECISION_LOG));
    } else {
        report.problem(&unlogged(own));
    }
    if project::debug(world) {
        let now = request.now.to_string();
        let lines = report.trace.iter();
        let lines: Vec<_> =
            lines.map(|it| serde_json::json!({"timestamp": now, "debug": it})).collect();
        log::append(world, &own.join("logs").join("debug.jsonl"), &lines);
    }
}

/// Reports that policyd is off: to the user where a session begins and ends its turns, and in the
/// decision log there; a pause is short, so each of its events is logged.
pub(super) fn report_off(
    world: &dyn World,
    project: &Project,
    request: &Request<'_>,
    reason: OffReason,
    mut report: Report,
) -> Report {
    let (kind, text) = (request.event.kind, reason.text(request.now));
    // The stops of subagents are many, and the user sees the main agent's.
    if kind.is_main_boundary() {
        report.answer.notice = Some(format!("policyd: {text}"));
    }
    let is_logged = kind.is_boundary() || matches!(reason, OffReason::Paused(_));
    let no_opinion_kind = Some(reason.kind());
    let around = ReportContext { no_opinion: Some(text), no_opinion_kind, ..report.around.clone() };
    let entry = decision_log::unjudged_entry(request.now, &request.event, &around, false);
    if is_logged && !request.dry_run && !log_decision(world, &project.state, entry) {
        report.problem(&unlogged(&project.state));
    }
    report.not_judged(SkipReason::Off(reason), request.now)
}

/// Logs an event that could not be evaluated; reports a log that cannot be written.
pub(super) fn log_unjudged(
    world: &dyn World,
    own: &Path,
    request: &Request<'_>,
    blocked: bool,
    report: &mut Report,
) {
    let entry = decision_log::unjudged_entry(request.now, &request.event, &report.around, blocked);
    if !log_decision(world, own, entry) {
        report.problem(&unlogged(own));
    }
}

/// What the user reads about a decision that is in no log.
pub(super) fn unlogged(own: &Path) -> String {
    format!(
        "this decision is not recorded: `{}` could not be written. `policyd doctor` checks the \
         state directory",
        own.join(DECISION_LOG).display()
    )
}

/// Log of the agent's rationalizations in the state directory. The path is that of loki-mode.
pub(crate) const EXCUSES_LOG: &str = "memory/episodic/rationalizations.jsonl";

/// Records the rationalizations that were found, with the decision.
pub(super) fn document(context: &GateContext<'_>, excuses: &[Excuse], report: &mut Report) {
    let (world, request, own) = (context.world, context.request, context.state_dir.as_path());
    if excuses.is_empty() {
        return;
    }
    let (event, blocked) = (&request.event, report.answer.refuses());
    let entries = excuses.iter().map(|it| {
        let mut entry = serde_json::json!({
            "timestamp": request.now.to_string(),
            "session_id": event.session_id.as_str(),
            "agent_id": event.agent_id,
            "rationalization": it.name,
            "family": it.family,
            "quote": it.quote,
            "why_wrong": it.wrong,
            "required_action": it.action,
            "proven": it.proven,
            "blocked": blocked,
        });
        mask_json(&mut entry);
        entry
    });
    if !append_to(world, own, EXCUSES_LOG, &entries.collect::<Vec<_>>()) {
        report.note("the excuses could not be kept");
    }
}
