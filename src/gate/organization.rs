//! Evaluates the rules of the machine's administrator beside those of the project, and
//! combines the responses. The stronger decision wins, so nothing in the project, the environment, or the user's
//! choices weakens it: these are not even read.

use std::rc::Rc;

use super::context::GateContext;
use super::decision_logs;
use super::guards::GuardEvaluation;
use super::organization_layer::OrganizationLayer;
use super::permission;
use super::report::Report;
use super::request::Request;
use super::stop::StopEvaluation;
use policyd_evaluation::combine::Decision;
use policyd_facts::event::Event;
use policyd_store::session::{Layout, SessionStore};
use policyd_store::user;
use policyd_workspace::project::{self, Project};
use policyd_world::World;

impl OrganizationLayer {
    /// Evaluates the organization's rules at an event; `None` if it has none for the event.
    pub fn evaluate(&self, world: &dyn World, request: &Request<'_>) -> Option<Report> {
        let (event, policy) = (&request.event, &self.loaded.policy);
        let checks = policy.judges(event.kind) && event.session_known;
        if !checks && !policy.guarded.contains(&event.kind) {
            return None;
        }
        let project = project::find(world, Some(event));
        let fenced = project::fenced(world, &project);
        let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
        let context = self.context(world, request, &project);
        let mut report = Report::of(event);
        report.around.pack.clone_from(&policy.name);
        report.around.of_organization = true;
        if checks {
            return Some(StopEvaluation { context: &context }.evaluate(report));
        }
        GuardEvaluation { context: &context }.guard(&mut report).then_some(report)
    }

    /// Returns why a guard of the organization would stop a call, or ask about it, before it happens.
    pub(super) fn objection(&self, world: &dyn World, request: &Request<'_>) -> Option<String> {
        let project = project::find(world, Some(&request.event));
        let fenced = project::fenced(world, &project);
        let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
        let context = self.context(world, request, &project);
        permission::objection(&context, &mut Report::of(&request.event))
    }

    /// Blocks are counted in the user's own directory, which no variable of a project moves.
    fn context<'a>(
        &'a self,
        world: &'a dyn World,
        request: &'a Request<'a>,
        project: &'a Project,
    ) -> GateContext<'a> {
        let context = GateContext::of_project(world, request, &self.loaded, project);
        let usual = user::state_folder(world, &project.main.join(project::STATE_DIR_NAME));
        let root = usual.unwrap_or_else(|| project.state.clone()).join("organization");
        let mut store = SessionStore::new(world, root, Layout::policyd());
        store.durability.clone_from(&context.store.durability);
        GateContext { store, state_dir: project.state.clone(), is_organization: true, ..context }
    }
}

/// Logs a call that is blocked because the organization's pack cannot be used.
pub(super) fn refuse(world: &dyn World, request: &Request<'_>, mut report: Report) -> Report {
    let project = project::find(world, Some(&request.event));
    let fenced = project::fenced(world, &project);
    let world = fenced.as_ref().map_or(world, |it| it as &dyn World);
    decision_logs::log_unjudged(world, &project.state, request, true, &mut report);
    report.silent("the organization's pack cannot be used")
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
        Some(own) => combine(report, own),
        None => report,
    }
}

/// Combines the reports of the project and of the organization: the stronger decision, and the texts of both.
fn combine(project: Report, organization: Report) -> Report {
    let decides = organization.answer.decision != Decision::None
        && organization.answer.decision >= project.answer.decision;
    let (mut report, other) =
        if decides { (organization, project) } else { (project, organization) };
    let join = |one: &mut Option<String>, other: Option<String>| {
        let texts: Vec<String> = one.take().into_iter().chain(other).collect();
        *one = Some(texts.join("\n")).filter(|it| !it.is_empty());
    };
    let is_equal = other.answer.decision == report.answer.decision;
    if is_equal && other.answer.decision != Decision::None {
        report.answer.reason = format!("{}\n{}", report.answer.reason, other.answer.reason);
    }
    join(&mut report.answer.notice, other.answer.notice);
    join(&mut report.answer.context, other.answer.context);
    if !report.answer.refuses() {
        report.answer.updated_input = report.answer.updated_input.or(other.answer.updated_input);
    }
    report.answer.updated_output = report.answer.updated_output.or(other.answer.updated_output);
    for problem in other.around.problems {
        if !report.around.problems.contains(&problem) {
            report.around.problems.push(problem);
        }
    }
    if let (Some(guards), Some(others)) = (&mut report.around.guarded, other.around.guarded) {
        guards.verdicts.extend(others.verdicts);
        guards.judged.extend(others.judged);
    }
    report.trace.extend(other.trace);
    report
}
