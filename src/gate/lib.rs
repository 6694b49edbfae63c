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
mod calls;
mod context;
mod context_usage;
pub mod crash;
mod gate_status;
mod guards;
mod inputs;
mod invalid_pack;
pub mod meter;
mod on_disk;
mod organization;
mod output;
mod probes;
mod project_view;
mod reactions;
mod request;
mod sharing;
mod stop;
pub mod summaries;
mod work_tree;

use std::mem::ManuallyDrop;
use std::rc::Rc;

use admission::{Admitted, admit, apply_enforcement, nothing_to_judge};
use context::GateContext;
pub use context::LoadedPolicy;
pub use gate_status::switched;
use guards::GuardEvaluation;
pub use organization::OrganizationLayer;
pub use output::{Report, Unjudged};
use policyd_hook::HookResponse;
use policyd_packs::{self as packs, LoadError, LoadPack};
use policyd_policy::EnforcementMode;
use policyd_store::crash_record::{self, CrashedHook};
use policyd_workspace::gate_status::OffReason;
use policyd_workspace::project;
use policyd_world::World;
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
    let Admitted { project, switches, enforcement, allowances, pins } =
        match admit(world, request, &mut report) {
            Ok(admitted) => admitted,
            Err(report) => return *report,
        };
    let fenced = project::fenced(world, &project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let found = packs::find_allowed(world, &project, request.policies, &pins);
    // Reported where a session begins and ends its turns, not at every call.
    if request.event.kind.is_main_boundary() {
        found.untrusted.iter().for_each(|it| report.problem(&it.text()));
    }
    let loaded = load(world, &found).map_err(|mut error| {
        if let LoadError::Invalid(invalid) = &mut error
            && enforcement.mode_of(invalid.mode) == EnforcementMode::Observe
        {
            invalid.on_error = None;
        }
        error
    });
    let mut policy = match loaded {
        Ok(mut policy) => {
            pins.apply(&mut policy);
            policy
        }
        Err(LoadError::NotCompiled(why)) => {
            return invalid_pack::not_compiled(request, &why.to_string(), report);
        }
        Err(LoadError::Invalid(invalid))
            if invalid.enabled == Some(false) && pins.allow_disable =>
        {
            return output::report_off(world, &project, request, OffReason::Manifest, report);
        }
        // It is reported at a stop and where a session begins.
        Err(LoadError::Invalid(invalid)) if !request.event.kind.is_boundary() => {
            let Some(mut policy) = packs::builtin_policy() else {
                report.answer = HookResponse::not_analyzed(request.caller, "no policy pack loads.");
                return report.silent(invalid_pack::BROKEN);
            };
            switches.iter().for_each(|it| drop(it.apply(&mut policy)));
            policy.settings.mode = invalid.mode;
            enforcement.apply(&mut policy);
            invalid_pack::leave_out_sets(&mut policy, &invalid);
            let loaded = ManuallyDrop::new(LoadedPolicy::new(policy, None));
            let context = GateContext::new(world, request, &loaded, &project);
            let context = GateContext { allowances, ..context };
            return invalid_pack::evaluate(&context, &invalid, report);
        }
        Err(LoadError::Invalid(invalid)) => {
            let mut report = invalid_pack::answer(world, &project, request, report, &invalid);
            let blocked = report.answer.refuses();
            output::log_unjudged(world, &project.state, request, blocked, &mut report);
            return report;
        }
    };
    for problem in switches.iter().flat_map(|it| it.apply(&mut policy)) {
        report.problem(&problem);
    }
    if request.event.kind.is_main_boundary() && !policy.skipped_layer.is_empty() {
        report.problem(&policy.skipped_layer);
    }
    apply_enforcement(&enforcement, &mut policy, &request.event, &mut report);
    organization.iter().for_each(|it| it.replace_rules(&mut policy));
    let fenced = project::fenced_by_pack(world, &project, &policy.settings);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let nothing = nothing_to_judge(&policy, &request.event, &mut report);
    // The process ends with its answer: taking a policy apart would only delay it.
    let loaded = ManuallyDrop::new(LoadedPolicy::new(policy, Some(Rc::new(found))));
    let context = GateContext::new(world, request, &loaded, &project);
    evaluate_admitted(&GateContext { allowances, ..context }, nothing, report)
}

/// Evaluates an event by a pack that is loaded already; everything else is as for a hook.
pub fn evaluate_by(world: &dyn World, request: &Request<'_>, loaded: &LoadedPolicy) -> Report {
    let mut report = Report::of(&request.event);
    let Admitted { project, switches, enforcement, allowances, pins } =
        match admit(world, request, &mut report) {
            Ok(admitted) => admitted,
            Err(report) => return *report,
        };
    let observes = enforcement.mode_of(loaded.policy.settings.mode) == EnforcementMode::Observe;
    let is_off = !loaded.policy.settings.enabled;
    let changed = (observes || switches.is_some() || is_off).then(|| {
        let mut policy = loaded.policy.clone();
        pins.apply(&mut policy);
        let problems = switches.iter().flat_map(|it| it.apply(&mut policy));
        problems.for_each(|it| report.problem(&it));
        apply_enforcement(&enforcement, &mut policy, &request.event, &mut report);
        LoadedPolicy { policy, words: loaded.words.clone(), found: loaded.found.clone() }
    });
    let loaded = changed.as_ref().unwrap_or(loaded);
    let nothing = nothing_to_judge(&loaded.policy, &request.event, &mut report);
    let context = GateContext::new(world, request, loaded, &project);
    evaluate_admitted(&GateContext { allowances, ..context }, nothing, report)
}

/// Evaluates an event by a valid pack, unless the pack has no rule for it.
fn evaluate_admitted(
    context: &GateContext<'_>,
    nothing: Option<Unjudged>,
    mut report: Report,
) -> Report {
    let GateContext { world, project, request, .. } = *context;
    if let Some(Unjudged::Off(reason)) = nothing {
        return output::report_off(world, project, request, reason, report);
    }
    sharing::receive(context, &mut report);
    let mut report = match nothing {
        None => StopEvaluation { context }.evaluate(report),
        Some(reason) => evaluate_other(context, reason, report),
    };
    sharing::send(context, &mut report);
    report
}

/// An event at which no consideration is evaluated: reactions, the context window, and guards.
fn evaluate_other(context: &GateContext<'_>, reason: Unjudged, mut report: Report) -> Report {
    let (policy, request) = (context.policy, context.request);
    reactions::react(context, &mut report);
    if context_usage::concerns(policy, &request.event) {
        context_usage::meter(context, &mut report);
    }
    let guarded = policy.settings.enabled && GuardEvaluation { context }.guard(&mut report);
    if policy.settings.enabled && !report.answer.refuses() {
        calls::record(context);
    }
    if guarded { report } else { report.not_judged(reason, request.now) }
}
