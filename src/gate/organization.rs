//! Evaluates the rules of the machine's administrator beside those of the project, and
//! combines the responses. The stronger decision wins, so nothing in the project, the environment, or the user's
//! choices weakens it: these are not even read.

use std::rc::Rc;

use super::answers::combine_layers;
use super::context::GateContext;
use super::decision_logs::{self, UnjudgedEvent};
use super::diagnostics::Diagnostics;
use super::event_result::EventResult;
use super::guards::GuardEvaluation;
use super::organization_layer::OrganizationLayer;
use super::permission;
use super::report::Report;
use super::request::Request;
use super::stop::StopEvaluation;
use policyd_evaluation::combine::Decision;
use policyd_facts::event::Event;
use policyd_hook::HookResponse;
use policyd_store::session::{Layout, SessionStore};
use policyd_store::user;
use policyd_workspace::project::{self, Project};
use policyd_world::World;

impl OrganizationLayer {
    /// Evaluates the organization's rules at an event; `None` if it has none for the event.
    pub fn evaluate(&self, world: &dyn World, request: &Request<'_>) -> Option<Report> {
        let (event, policy) = (&request.event, &self.loaded.policy);
        let has_checks = policy.judges(event.kind) && event.session_known;
        if !has_checks && !policy.guarded.contains(&event.kind) {
            return None;
        }
        let project = project::find(world, Some(event));
        let fenced = project::fenced(world, &project);
        let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
        let context = self.context(world, request, &project);
        let mut diagnostics = Diagnostics::default();
        let result = match has_checks {
            true => StopEvaluation { context: &context }.evaluate(&mut diagnostics),
            false => GuardEvaluation { context: &context }
                .evaluate(&mut diagnostics)?
                .into_event_result(event, HookResponse::default()),
        };
        let result = EventResult { pack: policy.name.clone(), of_organization: true, ..result };
        Some(Report::new(request, result, diagnostics))
    }

    /// Returns why a guard of the organization would stop a call, or ask about it, before it happens.
    pub(super) fn objection(&self, world: &dyn World, request: &Request<'_>) -> Option<String> {
        let project = project::find(world, Some(&request.event));
        let fenced = project::fenced(world, &project);
        let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
        let context = self.context(world, request, &project);
        // The evaluation of the organization's own rules at `pre_tool_use` reports the same problems.
        permission::guard_objection(&context, &mut Diagnostics::default()).why
    }

    /// Returns the context of the organization's rules. Blocks are counted in the user's own directory, which no variable
    /// of a project moves.
    fn context<'a>(
        &'a self,
        world: &'a dyn World,
        request: &'a Request<'a>,
        project: &'a Project,
    ) -> GateContext<'a> {
        let context = GateContext::of_project(world, request, &self.loaded, project);
        let user_folder = user::state_folder(world, &project.main.join(project::STATE_DIR_NAME));
        let root = user_folder.unwrap_or_else(|| project.state.clone()).join("organization");
        let mut store = SessionStore::new(world, root, Layout::policyd());
        store.durability.clone_from(&context.store.durability);
        GateContext { store, state_dir: project.state.clone(), is_organization: true, ..context }
    }
}

/// Logs a call that is blocked because the organization's pack cannot be used. `block` is the answer.
pub(super) fn refuse(
    world: &dyn World,
    request: &Request<'_>,
    block: HookResponse,
    diagnostics: &mut Diagnostics,
) -> EventResult {
    let project = project::find(world, Some(&request.event));
    let fenced = project::fenced(world, &project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    let unjudged = UnjudgedEvent { is_blocked: true, ..UnjudgedEvent::default() };
    decision_logs::log_unjudged(world, &project.state, request, unjudged, diagnostics);
    EventResult { answer: block, ..EventResult::silent("the organization's pack cannot be used") }
}

/// Evaluates the organization's rules over the response of the project's rules. A changed input is evaluated as
/// changed, because the client runs that one.
pub(super) fn add(
    layer: &OrganizationLayer,
    world: &dyn World,
    request: &Request<'_>,
    report: Report,
) -> Report {
    let changed = report.answer.updated_input.clone().map(|tool_input| Request {
        event: Event { tool_input, ..request.event.clone() },
        caller: request.caller,
        supervision: request.supervision,
        now: request.now,
        policies: None,
        detail: request.detail,
        dry_run: request.dry_run,
        line: request.line.clone(),
        configurations: Rc::clone(&request.configurations),
        watch: None,
    });
    match layer.evaluate(world, changed.as_ref().unwrap_or(request)) {
        Some(of_layer) => combine(report, of_layer),
        None => report,
    }
}

/// Combines the reports of the project and of the organization: the stronger decision, and the texts of both.
fn combine(project: Report, organization: Report) -> Report {
    let decides = organization.answer.decision != Decision::None
        && organization.answer.decision >= project.answer.decision;
    let (stronger, weaker) =
        if decides { (organization, project) } else { (project, organization) };
    let mut context = stronger.context;
    for problem in weaker.context.problems {
        if !context.problems.contains(&problem) {
            context.problems.push(problem);
        }
    }
    if let (Some(guards), Some(others)) = (&mut context.guarded, weaker.context.guarded) {
        guards.verdicts.extend(others.verdicts);
        guards.judged.extend(others.judged);
    }
    let answer = combine_layers(stronger.answer, weaker.answer);
    let trace = stronger.trace.into_iter().chain(weaker.trace).collect();
    Report { answer, context, trace, ..stronger }
}
