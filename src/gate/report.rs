//! The report about one event: its answer, and everything that commands show of its evaluation.

use std::rc::Rc;

use super::diagnostics::Diagnostics;
use super::event_result::{EventResult, SkipReason};
use super::request::Request;
use policyd_evaluation::StopOutcome;
use policyd_fact_table::call_facts::CallFacts;
use policyd_facts::event::Event;
use policyd_hook::HookResponse;
use policyd_record::outcome::ReportContext;

/// Everything known about one event after its evaluation.
#[derive(Debug, Default)]
pub struct Report {
    /// Decision of the checks. `None` if the event is not a stop that was evaluated.
    pub outcome: Option<StopOutcome>,
    /// Response to the client.
    pub answer: HookResponse,
    /// The event, its pack, and the problems for the user, as they are logged and shown.
    pub context: ReportContext,
    /// The tool that the event is about.
    pub tool: Option<String>,
    /// Lines of the debug log.
    pub trace: Vec<String>,
    /// Why nothing was evaluated. `None` if something was.
    pub skipped: Option<SkipReason>,
    /// The tool call as guards see it. `None` if no guard applies.
    pub call: Option<Rc<CallFacts>>,
}

impl Report {
    /// Builds the report of an event that was evaluated.
    pub(super) fn new(
        request: &Request<'_>,
        result: EventResult,
        diagnostics: Diagnostics,
    ) -> Self {
        let event = &request.event;
        let context = ReportContext {
            pack: result.pack,
            of_organization: result.of_organization,
            saved: result.saved,
            no_opinion: result.skipped.as_ref().map(|it| it.text(request.now)),
            problems: diagnostics.problems,
            preferences: result.preferences,
            guarded: result.guards,
            ..event_context(event)
        };
        Self {
            outcome: result.outcome,
            answer: result.answer,
            context,
            tool: event.tool_name.clone(),
            trace: diagnostics.trace,
            skipped: result.skipped,
            call: result.call,
        }
    }

    /// Builds the report of an event that could not be read.
    pub fn unreadable(answer: HookResponse, problem: &str) -> Self {
        let mut diagnostics = Diagnostics::default();
        diagnostics.problem(problem);
        let context = ReportContext { problems: diagnostics.problems, ..ReportContext::default() };
        Self { answer, context, ..Self::default() }
    }
}

/// Returns what reports and log entries say about an event before it is evaluated.
pub(super) fn event_context(event: &Event) -> ReportContext {
    ReportContext {
        event: event.kind.name().to_owned(),
        session_id: event.session_id.to_string(),
        agent_id: event.agent_id.clone(),
        ..ReportContext::default()
    }
}
