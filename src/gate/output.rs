//! The report about one event, and its entries in the logs.

use std::path::Path;
use std::rc::Rc;

use super::context::GateContext;
use super::request::Request;
use policyd_base::limits;
use policyd_evaluation::inputs::Inputs;
use policyd_evaluation::{self as evaluation, StopOutcome};
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::context::Excuse;
use policyd_facts::event::Event;
use policyd_hook::HookResponse;
use policyd_record::decision_log::{self, Decided};
use policyd_record::mask::mask_json;
use policyd_record::outcome::ReportContext;
use policyd_store::decision_log::{DECISION_LOG, append_to, log_decision};
use policyd_store::{log, log_chain};
use policyd_workspace::gate_status::OffReason;
use policyd_workspace::project::{self, Project};
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Everything known about one event, until it is answered.
#[derive(Debug, Default)]
pub struct Report {
    pub outcome: Option<StopOutcome>,
    pub answer: HookResponse,
    pub around: ReportContext,
    /// The tool that the event is about.
    pub tool: Option<String>,
    /// What the debug log says.
    pub trace: Vec<String>,
    /// What the reactions of the pack did.
    pub reacted: Vec<String>,
    /// Why nothing was evaluated; nothing if something was.
    pub unjudged: Option<Unjudged>,
    /// The tool call as guards see it. `None` if no guard applies.
    pub seen: Option<Rc<CallFacts>>,
}

/// Why an event was not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unjudged {
    /// policyd is off.
    Off(OffReason),
    /// The pack has no rule for the event.
    NoRule,
    /// The pack has only reactions for the event, which did this.
    OnlyReactions(Vec<String>),
    /// Anything else, in one sentence.
    Other(String),
}

impl Unjudged {
    /// Whether the user wants nothing evaluated.
    pub fn is_wanted(&self) -> bool {
        match self {
            Self::Off(_) | Self::NoRule | Self::OnlyReactions(_) => true,
            Self::Other(_) => false,
        }
    }

    /// The reason as it is logged.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::Off(reason) => reason.text(now),
            Self::NoRule => "no rule for this event".to_owned(),
            Self::OnlyReactions(did) => {
                format!("no check or guard for this event; recorded: {}", did.join("; "))
            }
            Self::Other(why) => why.clone(),
        }
    }
}

impl Report {
    /// An empty report about an event.
    pub(super) fn of(event: &Event) -> Self {
        let around = ReportContext {
            event: event.kind.name().to_owned(),
            session_id: event.session_id.to_string(),
            agent_id: event.agent_id.clone(),
            ..ReportContext::default()
        };
        Self { around, tool: event.tool_name.clone(), ..Self::default() }
    }

    pub(super) fn silent(mut self, why: impl Into<String>) -> Self {
        let why = why.into();
        self.around.no_opinion = Some(why.clone());
        self.unjudged = Some(Unjudged::Other(why));
        self
    }

    /// Nothing was evaluated, for a reason that the caller might act on.
    pub(super) fn not_judged(mut self, why: Unjudged, now: Timestamp) -> Self {
        self.around.no_opinion = Some(why.text(now));
        self.unjudged = Some(why);
        self
    }

    /// Something the user should know; nothing is blocked because of it.
    pub fn problem(&mut self, text: &str) {
        self.around.problems.push(evaluation::message::cut(text, limits::PROBLEM_CHARS_MAX));
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.trace.push(text.into());
    }
}

/// Logs the decision, and the trace where debugging is on.
pub(super) fn log(
    context: &GateContext<'_>,
    outcome: &StopOutcome,
    inputs: &Inputs,
    report: &mut Report,
) {
    let (world, request, own) = (context.world, context.request, context.state_dir.as_path());
    let blocked = report.answer.refuses();
    let decided = Decided { outcome, inputs, blocked };
    let entry = decision_log::entry(request.now, &request.event, &report.around, decided);
    if log_decision(world, own, entry) {
        log_chain::save_witness(world, &own.join(DECISION_LOG));
    } else {
        report.problem(&unlogged(own));
    }
    if project::debug(world) {
        let now = request.now.to_string();
        let lines = report.trace.iter();
        let lines: Vec<_> =
            lines.map(|it| serde_json::json!({"timestamp": now, "debug": it})).collect();
        log::append(world, &own.join("logs").join("debug.jsonl"), &lines);
    }
}

/// Reports that policyd is off: to the user where a session begins and ends its turns, and in the
/// decision log there; a pause is short, so each of its events is logged.
pub(super) fn report_off(
    world: &dyn World,
    project: &Project,
    request: &Request<'_>,
    reason: OffReason,
    mut report: Report,
) -> Report {
    let (kind, text) = (request.event.kind, reason.text(request.now));
    // The stops of subagents are many, and the user sees the main agent's.
    if kind.is_main_boundary() {
        report.answer.notice = Some(format!("policyd: {text}"));
    }
    let is_logged = kind.is_boundary() || matches!(reason, OffReason::Paused(_));
    let no_opinion_kind = Some(reason.kind());
    let around = ReportContext { no_opinion: Some(text), no_opinion_kind, ..report.around.clone() };
    let entry = decision_log::unjudged_entry(request.now, &request.event, &around, false);
    if is_logged && !request.dry_run && !log_decision(world, &project.state, entry) {
        report.problem(&unlogged(&project.state));
    }
    report.not_judged(Unjudged::Off(reason), request.now)
}

/// Logs an event that could not be evaluated; reports a log that cannot be written.
pub(super) fn log_unjudged(
    world: &dyn World,
    own: &Path,
    request: &Request<'_>,
    blocked: bool,
    report: &mut Report,
) {
    let entry = decision_log::unjudged_entry(request.now, &request.event, &report.around, blocked);
    if !log_decision(world, own, entry) {
        report.problem(&unlogged(own));
    }
}

/// What the user reads about a decision that is in no log.
pub(super) fn unlogged(own: &Path) -> String {
    format!(
        "this decision is not recorded: `{}` could not be written. `policyd doctor` checks the \
         state directory",
        own.join(DECISION_LOG).display()
    )
}

/// Log of the agent's rationalizations in the state directory. The path is that of loki-mode.
pub(crate) const EXCUSES_LOG: &str = "memory/episodic/rationalizations.jsonl";

/// Records the rationalizations that were found, with the decision.
pub(super) fn document(context: &GateContext<'_>, excuses: &[Excuse], report: &mut Report) {
    let (world, request, own) = (context.world, context.request, context.state_dir.as_path());
    if excuses.is_empty() {
        return;
    }
    let (event, blocked) = (&request.event, report.answer.refuses());
    let entries = excuses.iter().map(|it| {
        let mut entry = serde_json::json!({
            "timestamp": request.now.to_string(),
            "session_id": event.session_id.as_str(),
            "agent_id": event.agent_id,
            "rationalization": it.name,
            "family": it.family,
            "quote": it.quote,
            "why_wrong": it.wrong,
            "required_action": it.action,
            "proven": it.proven,
            "blocked": blocked,
        });
        mask_json(&mut entry);
        entry
    });
    if !append_to(world, own, EXCUSES_LOG, &entries.collect::<Vec<_>>()) {
        report.note("the excuses could not be kept");
    }
}
