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
mod approvals;
mod call_files;
mod calls;
mod client_rules;
mod context;
mod context_usage;
mod costs;
pub mod crash;
mod decision_logs;
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
mod report;
mod request;
mod scripts;
mod sharing;
mod stop;
pub mod summaries;
mod work_tree;

use std::mem::ManuallyDrop;
use std::rc::Rc;

use admission::{AdmittedEvent, admit, nothing_to_judge};
use context::GateContext;
pub use gate_status::switched;
use guards::GuardEvaluation;
pub use loaded_policy::LoadedPolicy;
pub use organization_layer::OrganizationLayer;
use policyd_packs::{self as packs, LoadError, LoadPack};
use policyd_store::crash_record::{self, CrashedHook};
use policyd_workspace::project;
use policyd_world::World;
pub use report::{Report, SkipReason};
pub use request::{Request, Supervision, caller, named_harness};
pub use sharing::needs_network;
use stop::StopEvaluation;

/// Evaluates an event by the rules of its project and of the organization. `load` returns the policies of their packs.
pub fn evaluate(world: &dyn World, request: &Request<'_>, load: LoadPack) -> Report {
    let mut report = Report::of(&request.event);
    report_crashes(world, &mut report);
    let organization = OrganizationLayer::load(world, request, load, &mut report);
    if report.answer.refuses() {
        return organization::refuse(world, request, report);
    }
    let report = evaluate_project(world, request, organization.as_ref(), load, report);
    match organization {
        Some(layer) => organization::add(&layer, world, request, report),
        None => report,
    }
}

/// Reports hooks that a signal ended before they answered.
fn report_crashes(world: &dyn World, report: &mut Report) {
    let crashed = crash_record::take(world);
    let Some(CrashedHook { event, signal }) = crashed.last() else { return };
    let count = match crashed.len() {
        1 => "a hook".to_owned(),
        count => format!("{count} hooks"),
    };
    report.problem(&format!(
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
    mut report: Report,
) -> Report {
    let admitted = match admit(world, request, &mut report) {
        Ok(admitted) => admitted,
        Err(report) => return *report,
    };
    let fenced = project::fenced(world, &admitted.project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let found = packs::find_allowed(world, &admitted.project, request.policies, &admitted.pins);
    // Reported where a session begins and ends its turns, not at every call.
    if request.event.kind.is_main_boundary() {
        found.untrusted.iter().for_each(|it| report.problem(&it.text()));
    }
    let mut policy = match load(world, &found) {
        Ok(policy) => policy,
        Err(LoadError::NotCompiled(why)) => {
            return invalid_pack::not_compiled(request, &why.to_string(), report);
        }
        Err(LoadError::Invalid(invalid)) => {
            return invalid_pack::evaluate(world, request, &admitted, invalid, report);
        }
    };
    admitted.adjust(&mut policy, &request.event, &mut report);
    organization.iter().for_each(|it| it.replace_rules(&mut policy));
    let fenced = project::fenced_by_pack(world, &admitted.project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    // The process ends with its answer: taking a policy apart would only delay it.
    let loaded = ManuallyDrop::new(LoadedPolicy::new(policy, Some(Rc::new(found))));
    evaluate_admitted(world, request, &admitted, &loaded, organization, report)
}

/// Evaluates an event by a pack that is loaded already. The caller evaluates the rules of the organization.
pub fn evaluate_by(world: &dyn World, request: &Request<'_>, loaded: &LoadedPolicy) -> Report {
    let mut report = Report::of(&request.event);
    let admitted = match admit(world, request, &mut report) {
        Ok(admitted) => admitted,
        Err(report) => return *report,
    };
    let adjusted = admitted.changes(&loaded.policy).then(|| {
        let mut policy = loaded.policy.clone();
        admitted.adjust(&mut policy, &request.event, &mut report);
        LoadedPolicy { policy, words: loaded.words.clone(), found: loaded.found.clone() }
    });
    evaluate_admitted(world, request, &admitted, adjusted.as_ref().unwrap_or(loaded), None, report)
}

/// Evaluates an event by a valid pack, unless the pack has no rule for it.
fn evaluate_admitted(
    world: &dyn World,
    request: &Request<'_>,
    admitted: &AdmittedEvent,
    loaded: &LoadedPolicy,
    organization: Option<&OrganizationLayer>,
    mut report: Report,
) -> Report {
    let nothing = nothing_to_judge(&loaded.policy, &request.event, &mut report);
    if let Some(SkipReason::Off(reason)) = nothing {
        return decision_logs::report_off(world, &admitted.project, request, reason, report);
    }
    let context = GateContext::new(world, request, loaded, admitted);
    let context = GateContext { organization, ..context };
    sharing::receive(&context, &mut report);
    let mut report = match nothing {
        None => StopEvaluation { context: &context }.evaluate(report),
        Some(reason) => evaluate_other(&context, reason, report),
    };
    sharing::send(&context, &mut report);
    report
}

/// An event at which no consideration is evaluated: reactions, the context window, and guards.
fn evaluate_other(context: &GateContext<'_>, reason: SkipReason, mut report: Report) -> Report {
    let (policy, request) = (context.policy, context.request);
    reactions::react(context, &mut report);
    if context_usage::concerns(policy, &request.event) {
        context_usage::meter(context, &mut report);
    }
    let guarded = policy.settings.enabled && GuardEvaluation { context }.guard(&mut report);
    if policy.settings.enabled && !report.answer.refuses() {
        calls::record(context);
    }
    if guarded {
        return report;
    }
    let has_only_reactions = reason == SkipReason::NoRule && !report.reacted.is_empty();
    let reason = if has_only_reactions {
        SkipReason::OnlyReactions(std::mem::take(&mut report.reacted))
    } else {
        reason
    };
    report.not_judged(reason, request.now)
}
