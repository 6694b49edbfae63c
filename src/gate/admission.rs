//! Decides whether an event is evaluated at all: by the hook line, the switches, and the rules of the pack.

use super::decision_logs::report_off;
use super::diagnostics::Diagnostics;
use super::event_result::{EventResult, SkipReason};
use super::request::Request;
use policyd_facts::event::{Event, EventKind};
use policyd_harness::{self as harness, Harness};
use policyd_hook::HookResponse;
use policyd_policy::approval::ApprovalLevel;
use policyd_policy::{EnforcementMode, Policy, records};
use policyd_store::allowance::Allowance;
use policyd_store::choice_files::ChoiceFiles;
use policyd_store::configuration::Pins;
use policyd_store::document::DocumentError;
use policyd_store::enforcement::EnforcementChoice;
use policyd_store::foreign_choices::{self, ChoiceOrigin, ForeignChoices};
use policyd_store::projects::ProjectRegistry;
use policyd_workspace::amplihack::PowerSteeringConfig;
use policyd_workspace::gate_status::{GateStatus, OffReason};
use policyd_workspace::project::{self, Project};
use policyd_world::{ProjectVariable, World};

/// An event that may be evaluated.
pub(super) struct AdmittedEvent {
    pub(super) project: Project,
    /// amplihack's configuration, if the user honors it.
    pub(super) switches: Option<PowerSteeringConfig>,
    /// Whether the user lets rules act.
    pub(super) enforcement: EnforcementChoice,
    /// Rules and calls that the user lets pass now. `None` if the organization does not allow that.
    pub(super) allowances: Option<Vec<Allowance>>,
    /// What the organization decides.
    pub(super) pins: Pins,
    /// Which permission prompts policyd answers.
    pub(super) approvals: ApprovalLevel,
}

impl AdmittedEvent {
    /// Returns whether [`Self::adjust`] changes a policy.
    pub(super) fn changes(&self, policy: &Policy) -> bool {
        let settings = &policy.settings;
        let observes = self.enforcement.mode_of(settings.mode) == EnforcementMode::Observe;
        observes
            || self.switches.is_some()
            || !settings.enabled
            || self.approvals != policy.approvals
    }

    /// Applies to a policy what the organization and the user decide about it: pins, switches, and which rules act.
    /// Returns the notice for the user at the start of a session whose rules only observe.
    pub(super) fn adjust(
        &self,
        policy: &mut Policy,
        event: &Event,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        self.pins.apply(policy);
        policy.approvals = self.approvals;
        for problem in self.switches.iter().flat_map(|it| it.apply(policy)) {
            diagnostics.problem(&problem);
        }
        if event.kind.is_main_boundary() && !policy.skipped_layer.is_empty() {
            diagnostics.problem(&policy.skipped_layer);
        }
        self.enforcement.apply(policy);
        // The user sees once per session that rules only observe. A compaction does not begin a session.
        let begins =
            event.kind == EventKind::SessionStart && event.source.as_deref() != Some("compact");
        let summary = self.enforcement.summary(policy.settings.mode).filter(|_| begins)?;
        Some(format!("{summary}; `policyd log --would-block` shows what it would have blocked"))
    }
}

/// Admits an event.
///
/// # Errors
/// The result of an event at which nothing is evaluated, whatever the pack.
pub(super) fn admit(
    world: &dyn World,
    request: &Request<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<AdmittedEvent, Box<EventResult>> {
    let skipped = |reason, answer| Err(Box::new(EventResult::skipped(reason, answer)));
    let event = &request.event;
    // Only these kinds are confused with harm: a stop that is not checked, and a call that runs unchecked.
    if let Some(reported_kind) = event.said_kind.filter(|it| *it != event.kind)
        && (reported_kind.is_stop() != event.kind.is_stop()
            || [reported_kind, event.kind].iter().any(|it| it.is_before_call()))
    {
        let [line, right] = [event.kind, reported_kind].map(|it| it.name().replace('_', "-"));
        let reported = reported_kind.client_name();
        diagnostics.problem(&format!(
            "the hook line says `--hook {line}`, and the client reports {reported}; nothing was checked. \
             Write `--hook {right}` there"
        ));
        let answer = match reported_kind.is_before_call() {
            true => {
                HookResponse::not_analyzed(request.caller, "the hook line names another event.")
            }
            false => HookResponse::default(),
        };
        let why = "the event is another one than the hook line says".to_owned();
        return skipped(SkipReason::Other(why), answer);
    }
    // An event that no client reads an answer to, and no reaction names, needs nothing that is read below.
    let reads_answer =
        |client: &Harness| client.moment_of(event.kind).is_some_and(|it| !it.ways.is_empty());
    let is_answered = harness::HARNESSES.iter().any(|it| reads_answer(it));
    if !is_answered && !records::REACTING.contains(&event.kind) {
        return skipped(SkipReason::NoRule, HookResponse::default());
    }
    let project = project::find(world, Some(event));
    let files = ChoiceFiles::read(world, &project.state);
    match foreign_choices::take_foreign_changes(world, &files) {
        Ok(changes) => changes.iter().for_each(|it| diagnostics.problem(&foreign_choices(it))),
        Err(problem) => diagnostics.problem(&format!(
            "changes of your choices by other programs are not detected: {}",
            problem.note()
        )),
    }
    let organization = &request.configurations.organization;
    let session = Some(&event.session_id);
    let status = GateStatus::by_files(world, &project, organization, &files, session, request.now);
    if event.kind.is_main_boundary() {
        ProjectRegistry::new(world).register(&project.main, &project.state, request.now);
        world.ignored_variables().iter().for_each(|it| diagnostics.problem(&ignored_variable(it)));
        let memory = project.memory_problem.as_ref().map(DocumentError::note);
        status.problems.iter().chain(&memory).for_each(|it| diagnostics.problem(it));
    }
    match status.off {
        None => {
            let GateStatus { config: switches, enforcement, allowances, pins, .. } = status;
            let is_prompt = event.kind == EventKind::PermissionRequest;
            let approvals =
                is_prompt.then(|| request.configurations.approvals(world, &project.main));
            let approvals = approvals.unwrap_or_default();
            Ok(AdmittedEvent { project, switches, enforcement, allowances, pins, approvals })
        }
        Some(reason) => Err(Box::new(report_off(world, &project, request, reason, diagnostics))),
    }
}

/// Describes choices that policyd did not write.
fn foreign_choices(choices: &ForeignChoices) -> String {
    let path = choices.path.display();
    match &choices.origin {
        ChoiceOrigin::Foreign => format!(
            "another program than policyd changed `{path}`, so no human confirmed your choices there; \
             check them with `policyd doctor`, or remove the file to reset them"
        ),
        ChoiceOrigin::Unrecorded(weakens) => format!(
            "`{path}` weakens policyd ({}). The file is older than policyd's record of your choices, or another \
             program wrote it. From now on, each change by another program is reported. Remove the file if these \
             choices are not yours",
            weakens.join(", ")
        ),
    }
}

/// Returns why no check of a valid pack is evaluated at an event. `None` if the event is a stop that checks are evaluated at.
pub(super) fn skip_reason(
    policy: &Policy,
    event: &Event,
    diagnostics: &mut Diagnostics,
) -> Option<SkipReason> {
    if !policy.settings.enabled {
        return Some(SkipReason::Off(OffReason::Manifest));
    }
    if !policy.judges(event.kind) {
        return Some(SkipReason::NoRule);
    }
    if !event.session_known {
        diagnostics.problem(
            "the payload names no session, so no block could be remembered; nothing was checked",
        );
        return Some(SkipReason::Other("the payload names no session".to_owned()));
    }
    None
}

/// Describes a variable that is ignored, and what the user can do.
fn ignored_variable(variable: &ProjectVariable) -> String {
    format!(
        "the variable `{}` is ignored, because {} sets it, and a repository can contain that file; to use it, remove it \
         there and set it in your shell",
        variable.name,
        variable.file.display()
    )
}
