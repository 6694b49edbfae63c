//! `policyd check`: evaluates a tool call that no client reported, as a hook would. It writes nothing.

use std::path::Path;
use std::rc::Rc;

use serde_json::Value;

use crate::gate::{self, Report, Request, Supervision};
use crate::packs;
use crate::workspace::project;
use policyd_base::id::SessionId;
use policyd_evaluation::Detail;
use policyd_evaluation::call_code;
use policyd_evaluation::combine::Decision;
use policyd_evaluation::guards::GuardVerdict;
use policyd_evaluation::message::in_one_line;
use policyd_facts::call_subject::subject;
use policyd_facts::event::{Event, EventKind};
use policyd_harness::Harness;
use policyd_hook::Caller;
use policyd_hook::adapt::adapt;
use policyd_policy::guards::GuardAction;
use policyd_record::mask::mask;
use policyd_record::outcome::mode;
use policyd_record::pack_layer::{PackLayer, PackLayers};
use policyd_report::checked_call::{CheckedCall, RuleAnswer};
use policyd_store::administrator;
use policyd_store::configuration::Configurations;
use policyd_world::World;
use policyd_world::overlay::OverlayWorld;

/// Id of the session in which the calls happen. No client gives a session this id.
const SESSION: &str = "policyd-check";

/// A tool call that a user asks about.
#[derive(Debug, Clone, Copy)]
pub struct CallQuestion<'a> {
    /// The client whose agent would make the call.
    pub client: &'static Harness,
    /// Name of the tool, as the client or policyd spells it.
    pub tool: &'a str,
    pub input: &'a Value,
    /// Working directory of the call. `None`: that of this process.
    pub directory: Option<&'a Path>,
    /// Pack directory. `None`: the pack of the project.
    pub policies: Option<&'a Path>,
}

impl CallQuestion<'_> {
    /// Evaluates the call in a dry run.
    #[must_use]
    pub fn answer(&self, world: &dyn World) -> CheckedCall {
        let overlay = OverlayWorld::new(world);
        let tool = self.client.tool(self.tool).to_owned();
        let event = |kind: EventKind| Event {
            folder: Some(self.directory.map_or_else(|| world.working_folder(), Path::to_path_buf)),
            tool_name: Some(tool.clone()),
            tool_input: self.input.clone(),
            ..Event::of(kind, SessionId::sanitize(SESSION))
        };
        let configurations = Rc::new(Configurations::load(world));
        let request = |kind: EventKind| Request {
            event: event(kind),
            caller: Caller::at(self.client, kind.name()),
            supervision: Supervision::None,
            now: world.now(),
            policies: self.policies,
            detail: Detail::Findings,
            dry_run: true,
            line: String::new(),
            configurations: Rc::clone(&configurations),
            watch: None,
        };
        let before = request(EventKind::PreToolUse);
        let report = gate::evaluate(&overlay, &before, packs::load);
        let layers = self.layers(&overlay, &before);
        let (call, tool) = (self.subject(), tool.clone());
        let answer = CheckedCall { call, tool, ..CheckedCall::default() };
        let mut answer = read_report(before.caller, report, &layers, answer);
        if answer.decision == Decision::None {
            answer.approved = approved(&overlay, &request(EventKind::PermissionRequest));
        }
        answer
    }

    /// Returns whose packs are used.
    fn layers(&self, world: &dyn World, request: &Request<'_>) -> PackLayers {
        let project = project::find(world, Some(&request.event));
        packs::find(world, &project, self.policies).layers(world, &project)
    }

    /// Returns the call in one line.
    fn subject(&self) -> String {
        let subject = subject(self.tool, self.input);
        let text = if subject == self.tool { format!("{subject} {}", self.input) } else { subject };
        mask(&in_one_line(&text)).0.into_owned()
    }
}

/// Returns the rules that answer the permission prompt of a call with yes. Empty if policyd leaves it to the user.
fn approved(world: &dyn World, request: &Request<'_>) -> Vec<String> {
    let report = gate::evaluate(world, request, packs::load);
    let guarded = report.context.guarded.filter(|_| report.answer.decision == Decision::Allow);
    let rules = guarded.into_iter().flat_map(|it| it.verdicts);
    rules.filter(|it| it.in_force() == Some(GuardAction::Allow)).map(|it| it.id).collect()
}

/// Completes the answer by a report: the rules, and the texts as the client shows them.
fn read_report(
    caller: Caller,
    report: Report,
    layers: &PackLayers,
    mut answer: CheckedCall,
) -> CheckedCall {
    let mut response = report.answer;
    // A code is bound to the session of a client.
    let digest = report.context.guarded.as_ref().and_then(|it| it.digest.as_deref());
    if let (Some(hint), Some(digest)) = (&mut response.override_hint, digest) {
        *hint = hint.replace(&call_code::code(digest), "CODE");
    }
    let adapted = adapt(caller, &response).answer;
    answer.decision = adapted.decision;
    answer.changed_input = adapted.updated_input;
    answer.problems = report.context.problems;
    answer.not_evaluated = report.context.no_opinion;
    let effects = report.call.iter().flat_map(|it| it.call.effect_list(&it.around));
    answer.effects = effects.map(|it| mask(&in_one_line(&it.to_string())).0.into_owned()).collect();
    answer.user = adapted.notice.unwrap_or_default();
    answer.agent = adapted.context.unwrap_or_default();
    match adapted.decision {
        Decision::Block | Decision::Halt => {
            let texts = [adapted.reason, answer.agent].into_iter().filter(|it| !it.is_empty());
            answer.agent = texts.collect::<Vec<_>>().join("\n");
        }
        Decision::Ask | Decision::Defer => answer.question = adapted.reason,
        Decision::None | Decision::Allow => {}
    }
    if let Some(mut guarded) = report.context.guarded {
        answer.evaluated = guarded.judged.len();
        guarded.verdicts.sort_by_key(|it| std::cmp::Reverse((it.decision(), it.would().is_some())));
        answer.rules = guarded.verdicts.into_iter().map(|it| rule(it, layers)).collect();
    }
    answer
}

fn rule(verdict: GuardVerdict, layers: &PackLayers) -> RuleAnswer {
    let file = verdict.place.rsplitn(3, ':').last().unwrap_or_default();
    let is_of_organization = Path::new(file).starts_with(administrator::policies());
    let layer = match is_of_organization {
        true => PackLayer::Organization,
        false => layers.of_rule(file),
    };
    RuleAnswer {
        effect: verdict.in_force().map_or("log", GuardAction::as_str),
        would: verdict.would().map(GuardAction::as_str),
        mode: mode(verdict.mode),
        layer,
        message: mask(&verdict.message).0.into_owned(),
        id: verdict.id,
        set: verdict.set,
        place: verdict.place,
        unknown: verdict.unknown,
        allowed: verdict.allowed,
    }
}
