//! Events whose pack does not load: the user is notified, the built-in guards are evaluated, and `on_error` of the
//! manifest decides.

use std::mem::ManuallyDrop;

use super::admission::AdmittedEvent;
use super::context::GateContext;
use super::decision_logs;
use super::guards::GuardEvaluation;
use super::loaded_policy::LoadedPolicy;
use super::reactions;
use super::report::Report;
use super::request::Request;
use policyd_base::limits;
use policyd_evaluation::combine::Decision;
use policyd_hook::HookResponse;
use policyd_packs::{self as packs, InvalidPack};
use policyd_policy::guards::Guard;
use policyd_policy::{EnforcementMode, OnError, Policy};
use policyd_shell::vocabulary::ShellVocabulary;
use policyd_state::block_limiter::{self, BlockLimits, LimiterDecision, Stop};
use policyd_store::file::SaveOutcome;
use policyd_store::session::{Layout, SessionStore};
use policyd_workspace::gate_status::OffReason;
use policyd_workspace::project::Project;
use policyd_world::World;

const BROKEN: &str = "the policy pack is broken";

/// Evaluates an event whose pack is invalid, as far as the manifest can be read.
pub(super) fn evaluate(
    world: &dyn World,
    request: &Request<'_>,
    admitted: &AdmittedEvent,
    mut invalid: InvalidPack,
    mut report: Report,
) -> Report {
    let AdmittedEvent { project, pins, enforcement, .. } = admitted;
    if enforcement.mode_of(invalid.mode) == EnforcementMode::Observe {
        invalid.on_error = None;
    }
    if invalid.enabled == Some(false) && pins.allow_disable {
        return decision_logs::report_off(world, project, request, OffReason::Manifest, report);
    }
    // It is reported at a stop and where a session begins.
    if request.event.kind.is_boundary() {
        let mut report = answer(world, project, request, report, &invalid);
        let blocked = report.answer.refuses();
        decision_logs::log_unjudged(world, &project.state, request, blocked, &mut report);
        return report;
    }
    let Some(mut policy) = packs::builtin_policy() else {
        report.answer = HookResponse::not_analyzed(request.caller, "no policy pack loads.");
        return report.silent(BROKEN);
    };
    admitted.switches.iter().for_each(|it| drop(it.apply(&mut policy)));
    policy.settings.mode = invalid.mode;
    enforcement.apply(&mut policy);
    leave_out_sets(&mut policy, &invalid);
    let loaded = ManuallyDrop::new(LoadedPolicy::new(policy, None));
    evaluate_by_builtin(&GateContext::new(world, request, &loaded, admitted), &invalid, report)
}

/// Leaves out the sets of guards that the manifest of an invalid pack leaves out.
fn leave_out_sets(policy: &mut Policy, invalid: &InvalidPack) {
    if !invalid.sets_off.is_empty() {
        let is_on = |it: &Guard| !invalid.sets_off.contains(&it.set);
        policy.guards.change(|all| all.rules.change(|rules| rules.retain(is_on)));
    }
}

/// Answers an event whose pack no program could compile.
pub(super) fn not_compiled(request: &Request<'_>, why: &str, mut report: Report) -> Report {
    let text = format!("the policy pack is not compiled: {why}.");
    report.answer = HookResponse::not_analyzed(request.caller, &text);
    report.silent("the policy pack is not compiled")
}

/// Evaluates an event by the built-in pack, because the pack of the project is invalid: reactions and the
/// guards of tool calls. If the manifest contains `on_error: block`, commands and edits are blocked until
/// the pack is fixed.
fn evaluate_by_builtin(
    context: &GateContext<'_>,
    invalid: &InvalidPack,
    mut report: Report,
) -> Report {
    reactions::react(context, &mut report);
    let event = &context.request.event;
    if !event.kind.is_before_call() {
        return report.silent(BROKEN);
    }
    let (text, lens) = (packs::explain(invalid), &context.words.lens);
    let tool = event.tool_name.as_deref().unwrap_or_default();
    let changes = lens.is_shell_tool(tool) || lens.is_edit_tool(tool);
    if changes && invalid.on_error == Some(OnError::Block) {
        report.answer = HookResponse::block(format!("policyd: {text}. Ask the user to fix it."));
        report.problem(&format!("{text}. Run `policyd lint`."));
        let (world, state_dir) = (context.world, &context.project.state);
        decision_logs::log_unjudged(world, state_dir, context.request, true, &mut report);
        return report;
    }
    if !(GuardEvaluation { context }).guard(&mut report) {
        return report.silent(BROKEN);
    }
    // Calls that no guard decides are reported where the session begins and at its stops.
    if report.answer.decision != Decision::None || report.answer.notice.is_some() {
        report.problem(&format!("{text}; the built-in guards were evaluated. Run `policyd lint`."));
    }
    report
}

/// Answers a stop or a session start with an invalid pack: the user is notified, and `on_error` of the
/// manifest decides. The block limiter counts and releases such a block like any other.
fn answer(
    world: &dyn World,
    project: &Project,
    request: &Request<'_>,
    mut report: Report,
    invalid: &InvalidPack,
) -> Report {
    let text = packs::explain(invalid);
    let stops = request.event.kind.is_stop();
    if stops && invalid.on_error == Some(OnError::Block) && may_block(world, project, request) {
        report.answer = HookResponse::block(format!("policyd: {text}. Ask the user to fix it."));
    }
    report.problem(&format!("{text}; nothing was checked. Run `policyd lint`."));
    report.silent(BROKEN)
}

/// Asks the loop guard with its defaults: the pack's own numbers are not known.
fn may_block(world: &dyn World, project: &Project, request: &Request<'_>) -> bool {
    const FINDING: &str = "broken_pack";
    let event = &request.event;
    let own = project.state.clone();
    let store = SessionStore::new(world, own, Layout::policyd());
    // Without a state, only the client tells whether it was blocked before.
    let is_first = request.caller.harness.reports_blocks && !event.stop_active;
    let Ok(mut locked) = store.lock(&event.session_id, limits::LOCK_WAIT) else {
        return event.session_known && is_first;
    };
    let mut state = locked.load().state;
    let stop = Stop {
        episode: event.prompt_id.as_deref().unwrap_or_default(),
        fingerprint: Some(FINDING),
        digest: FINDING,
        failed: &[],
        tools: 0,
        edits: 0,
        // Without a valid pack, the transcript is not read.
        blocks_shown: 0,
        tools_at_shown_block: 0,
        follows_block: event.stop_active,
    };
    let (guard, ruling) =
        block_limiter::step(&state.main, &stop, &BlockLimits::default(), request.now);
    state.main = guard;
    let saved = locked.commit(&state);
    event.session_known
        && matches!(ruling, LimiterDecision::Block { .. })
        && (is_first || !matches!(saved, SaveOutcome::NotSaved { .. }))
}
