//! The gate: evaluates one hook event. The order of effects: admit the event, load the pack, and evaluate a
//! stop (`stop`), or react, measure the context and evaluate guards.
//!
//! Contains: the order of effects. Does not contain: the rules (`policyd-policy`), decisions over facts
//! (`policyd-evaluation`), and the protocols of clients (`policyd-hook`).
//!
//! ```
//! // Who calls, as far as the command line of a hook says.
//! let harness = policyd_harness::find("codex");
//! let caller = policyd_gate::caller(harness, "stop");
//! assert_eq!(caller.harness.name, "codex");
//! ```

mod admission;
mod allowances;
mod answers;
mod approvals;
mod call_files;
mod calls;
mod changed_code;
mod client_rules;
mod comments;
mod context;
mod context_usage;
mod costs;
pub mod crash;
mod decision_logs;
mod diagnostics;
mod event_result;
mod file_text;
mod gate_status;
mod guards;
mod inputs;
mod invalid_pack;
mod loaded_policy;
mod memory;
pub mod meter;
mod on_disk;
mod organization;
mod organization_layer;
mod permission;
mod probes;
mod project_files;
mod project_view;
mod reactions;
mod read_files;
mod report;
mod request;
mod scripts;
mod sharing;
mod stop;
pub mod summaries;
mod work_tree;

use std::mem::ManuallyDrop;
use std::rc::Rc;

use admission::{admit, skip_reason};
use context::GateContext;
pub use diagnostics::Diagnostics;
use event_result::EventResult;
pub use event_result::SkipReason;
pub use gate_status::gate_switches;
use guards::GuardEvaluation;
pub use loaded_policy::LoadedPolicy;
pub use organization_layer::OrganizationLayer;
use policyd_hook::HookResponse;
use policyd_packs::{self as packs, LoadError, LoadPack};
use policyd_store::crash_record::{self, CrashedHook};
use policyd_store::foreign_choices;
use policyd_workspace::project;
use policyd_world::World;
pub use report::Report;
pub use request::{Request, Supervision, caller, named_harness};
pub use sharing::needs_network;
use stop::StopEvaluation;

/// Evaluates an event by the rules of its project and of the organization. `load` returns the policies of their packs.
pub fn evaluate(world: &dyn World, request: &Request<'_>, load: LoadPack) -> Report {
    let mut diagnostics = Diagnostics::default();
    report_crashes(world, &mut diagnostics);
    let organization = match OrganizationLayer::load(world, request, load, &mut diagnostics) {
        Ok(organization) => organization,
        Err(block) => {
            let result = organization::refuse(world, request, *block, &mut diagnostics);
            return Report::new(request, result, diagnostics);
        }
    };
    let result = evaluate_project(world, request, organization.as_ref(), load, &mut diagnostics);
    let report = Report::new(request, result, diagnostics);
    match organization {
        Some(layer) => organization::add(&layer, world, request, report),
        None => report,
    }
}

/// Reports hooks that a signal ended before they answered.
fn report_crashes(world: &dyn World, diagnostics: &mut Diagnostics) {
    let crashed = crash_record::take(world);
    let Some(CrashedHook { event, signal }) = crashed.last() else { return };
    let count = match crashed.len() {
        1 => "a hook".to_owned(),
        count => format!("{count} hooks"),
    };
    diagnostics.problem(&format!(
        "signal {signal} ended {count} before the analysis of `{event}`; a tool call was asked about, and nothing \
         else was checked. Please report it"
    ));
}

/// Evaluates an event by the pack of its project.
fn evaluate_project(
    world: &dyn World,
    request: &Request<'_>,
    organization: Option<&OrganizationLayer>,
    load: LoadPack,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let admitted = match admit(world, request, diagnostics) {
        Ok(admitted) => admitted,
        Err(skipped) => return *skipped,
    };
    let fenced = project::fenced(world, &admitted.project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let found = packs::find_allowed(world, &admitted.project, request.policies, &admitted.pins);
    // Reported where a session begins and ends its turns, not at every call.
    if request.event.kind.is_main_boundary() {
        found.untrusted.iter().for_each(|it| diagnostics.problem(&it.text()));
        report_user_pack(world, &found, diagnostics);
    }
    let mut policy = match load(world, &found) {
        Ok(policy) => policy,
        Err(LoadError::NotCompiled(why)) => {
            return invalid_pack::not_compiled(request, &why.to_string());
        }
        Err(LoadError::Invalid(invalid)) => {
            return invalid_pack::evaluate(world, request, &admitted, invalid, diagnostics);
        }
    };
    let notice = admitted.adjust(&mut policy, &request.event, diagnostics);
    organization.iter().for_each(|it| it.replace_rules(&mut policy));
    let fenced = project::fenced_by_pack(world, &admitted.project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    // The process ends with its answer: taking a policy apart would only delay it.
    let loaded = ManuallyDrop::new(LoadedPolicy::new(policy, Some(Rc::new(found))));
    let context = GateContext::new(world, request, &loaded, &admitted);
    evaluate_admitted(&GateContext { organization, ..context }, notice, diagnostics)
}

/// Reports once that the user's own pack changed without policyd.
fn report_user_pack(world: &dyn World, found: &packs::FoundPack, diagnostics: &mut Diagnostics) {
    let Some((folder, hash)) = found.of_user(world) else { return };
    if foreign_choices::take_pack_change(world, &folder, &hash) {
        diagnostics.problem(&format!(
            "your rules in `{}` changed, and policyd did not write them: `policyd rule list --changed` shows what they turn \
             off or soften. If the change is not yours, restore the directory",
            folder.display()
        ));
    }
}

/// Evaluates an event by a pack that is loaded already. The caller evaluates the rules of the organization.
pub fn evaluate_by(world: &dyn World, request: &Request<'_>, loaded: &LoadedPolicy) -> Report {
    let mut diagnostics = Diagnostics::default();
    let result = evaluate_loaded(world, request, loaded, &mut diagnostics);
    Report::new(request, result, diagnostics)
}

/// Evaluates an event by a loaded pack, adjusted by the choices of the user.
fn evaluate_loaded(
    world: &dyn World,
    request: &Request<'_>,
    loaded: &LoadedPolicy,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let admitted = match admit(world, request, diagnostics) {
        Ok(admitted) => admitted,
        Err(skipped) => return *skipped,
    };
    if !admitted.changes(&loaded.policy) {
        let context = GateContext::new(world, request, loaded, &admitted);
        return evaluate_admitted(&context, None, diagnostics);
    }
    let mut policy = loaded.policy.clone();
    let notice = admitted.adjust(&mut policy, &request.event, diagnostics);
    let adjusted =
        LoadedPolicy { policy, words: loaded.words.clone(), found: loaded.found.clone() };
    let context = GateContext::new(world, request, &adjusted, &admitted);
    evaluate_admitted(&context, notice, diagnostics)
}

/// Evaluates an event by a valid pack, unless the pack has no rule for it. `notice` is for the user, at the start of a
/// session.
fn evaluate_admitted(
    context: &GateContext<'_>,
    notice: Option<String>,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let (policy, request) = (context.policy, context.request);
    let result = match skip_reason(policy, &request.event, diagnostics) {
        // A shared store does not exchange changes while policyd is off.
        Some(SkipReason::Off(reason)) => {
            decision_logs::report_off(context.world, context.project, request, reason, diagnostics)
        }
        reason => {
            sharing::receive(context, diagnostics);
            let result = match reason {
                None => StopEvaluation { context }.evaluate(diagnostics),
                Some(reason) => evaluate_other(context, reason, notice, diagnostics),
            };
            sharing::send(context, diagnostics);
            result
        }
    };
    EventResult { pack: policy.name.clone(), ..result }
}

/// Evaluates an event at which no check is evaluated: reactions, the context window, and guards.
fn evaluate_other(
    context: &GateContext<'_>,
    reason: SkipReason,
    notice: Option<String>,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let (policy, request) = (context.policy, context.request);
    let reactions = reactions::react(context, diagnostics);
    let context_text = match context_usage::concerns(policy, &request.event) {
        true => context_usage::meter(context, diagnostics),
        false => None,
    };
    let guards = match policy.settings.enabled {
        true => GuardEvaluation { context }.evaluate(diagnostics),
        false => None,
    };
    let answer = HookResponse { notice, ..HookResponse::default() };
    let answer = answers::add_reactions(answer, request, &reactions);
    let answer = answers::add_context_text(answer, context_text);
    let has_only_reactions = reason == SkipReason::NoRule && !reactions.actions.is_empty();
    let result = match guards {
        Some(guards) => guards.into_event_result(&request.event, answer),
        None if has_only_reactions => {
            EventResult::skipped(SkipReason::OnlyReactions(reactions.actions), answer)
        }
        None => EventResult::skipped(reason, answer),
    };
    // A call that is blocked may get no result in the transcript, so no stop may wait for one.
    if policy.settings.enabled && !result.answer.refuses() {
        calls::record(context);
    }
    result
}
