//! Events whose pack does not load: the user is notified, the built-in guards are evaluated, and `on_error` of the
//! manifest decides.

use std::mem::ManuallyDrop;

use super::admission::AdmittedEvent;
use super::answers::add_reactions;
use super::context::GateContext;
use super::decision_logs::{self, UnjudgedEvent};
use super::diagnostics::Diagnostics;
use super::event_result::EventResult;
use super::guards::GuardEvaluation;
use super::loaded_policy::LoadedPolicy;
use super::reactions;
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
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let AdmittedEvent { project, pins, enforcement, .. } = admitted;
    if enforcement.mode_of(invalid.mode) == EnforcementMode::Observe {
        invalid.on_error = None;
    }
    if invalid.enabled == Some(false) && pins.allow_disable {
        let reason = OffReason::Manifest;
        return decision_logs::report_off(world, project, request, reason, diagnostics);
    }
    // The error of the pack itself is for a moment when the user reads: the begin of a session, and its stops.
    if request.event.kind.is_boundary() {
        return answer_boundary(world, project, request, &invalid, diagnostics);
    }
    let Some(mut policy) = packs::builtin_policy() else {
        let answer = HookResponse::not_analyzed(request.caller, "no policy pack loads.");
        return EventResult { answer, ..EventResult::silent(BROKEN) };
    };
    admitted.switches.iter().for_each(|it| drop(it.apply(&mut policy)));
    policy.settings.mode = invalid.mode;
    enforcement.apply(&mut policy);
    leave_out_sets(&mut policy, &invalid);
    // The log names the pack of the project, and it was not loaded.
    policy.name.clear();
    let loaded = ManuallyDrop::new(LoadedPolicy::new(policy, None));
    evaluate_by_builtin(&GateContext::new(world, request, &loaded, admitted), &invalid, diagnostics)
}

/// Leaves out the sets of guards that the manifest of an invalid pack leaves out.
fn leave_out_sets(policy: &mut Policy, invalid: &InvalidPack) {
    if !invalid.sets_off.is_empty() {
        let is_on = |it: &Guard| !invalid.sets_off.contains(&it.set);
        policy.guards.change(|all| all.rules.change(|rules| rules.retain(is_on)));
    }
}

/// Answers an event whose pack no program could compile.
pub(super) fn not_compiled(request: &Request<'_>, why: &str) -> EventResult {
    let text = format!("the policy pack is not compiled: {why}.");
    let answer = HookResponse::not_analyzed(request.caller, &text);
    EventResult { answer, ..EventResult::silent("the policy pack is not compiled") }
}

/// Evaluates an event by the built-in pack, because the pack of the project is invalid: reactions and the
/// guards of tool calls. If the manifest contains `on_error: block`, commands and edits are blocked until
/// the pack is fixed.
fn evaluate_by_builtin(
    context: &GateContext<'_>,
    invalid: &InvalidPack,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let request = context.request;
    let reactions = reactions::react(context, diagnostics);
    let answer = add_reactions(HookResponse::default(), request, &reactions);
    let event = &request.event;
    if !event.kind.is_before_call() {
        return EventResult { answer, ..EventResult::silent(BROKEN) };
    }
    let (text, lens) = (packs::explain(invalid), &context.words.lens);
    let tool = event.tool_name.as_deref().unwrap_or_default();
    let changes_files = lens.is_shell_tool(tool) || lens.is_edit_tool(tool);
    if changes_files && invalid.on_error == Some(OnError::Block) {
        diagnostics.problem(&format!("{text}. Run `policyd lint`."));
        let (world, state_dir) = (context.world, &context.project.state);
        let unjudged = UnjudgedEvent { is_blocked: true, ..UnjudgedEvent::default() };
        decision_logs::log_unjudged(world, state_dir, request, unjudged, diagnostics);
        return EventResult { answer: block(&text), ..EventResult::default() };
    }
    let guards = GuardEvaluation { context }.evaluate(diagnostics);
    let Some(guards) = guards else {
        return EventResult { answer, ..EventResult::silent(BROKEN) };
    };
    let result = guards.into_event_result(event, answer);
    // Calls that no guard decides are reported where the session begins and at its stops.
    if result.answer.decision != Decision::None || result.answer.notice.is_some() {
        diagnostics
            .problem(&format!("{text}; the built-in guards were evaluated. Run `policyd lint`."));
    }
    result
}

/// Answers a stop or a session start with an invalid pack: the user is notified, and `on_error` of the
/// manifest decides. The block limiter counts and releases such a block like any other.
fn answer_boundary(
    world: &dyn World,
    project: &Project,
    request: &Request<'_>,
    invalid: &InvalidPack,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let text = packs::explain(invalid);
    let wants_block = request.event.kind.is_stop() && invalid.on_error == Some(OnError::Block);
    let answer = match wants_block && may_block(world, project, request) {
        true => block(&text),
        false => HookResponse::default(),
    };
    diagnostics.problem(&format!("{text}; nothing was checked. Run `policyd lint`."));
    let unjudged = UnjudgedEvent {
        is_blocked: answer.refuses(),
        no_opinion: Some(BROKEN.to_owned()),
        ..UnjudgedEvent::default()
    };
    decision_logs::log_unjudged(world, &project.state, request, unjudged, diagnostics);
    EventResult { answer, ..EventResult::silent(BROKEN) }
}

/// Returns the block of an event whose pack is invalid. `text` says why it is.
fn block(text: &str) -> HookResponse {
    HookResponse::block(format!("policyd: {text}. Ask the user to fix it."))
}

/// Steps the block limiter with its default limits, because those of the pack are not known. Returns whether a stop may
/// be blocked.
fn may_block(world: &dyn World, project: &Project, request: &Request<'_>) -> bool {
    const FINDING: &str = "broken_pack";
    let event = &request.event;
    let store = SessionStore::new(world, project.state.clone(), Layout::policyd());
    // Without a state, only the client reports whether it was blocked before.
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
    let (limiter, decision) =
        block_limiter::step(&state.main, &stop, &BlockLimits::default(), request.now);
    state.main = limiter;
    let saved = locked.commit(&state);
    event.session_known
        && matches!(decision, LimiterDecision::Block { .. })
        && (is_first || !matches!(saved, SaveOutcome::NotSaved { .. }))
}
