//! The report about one event: everything known about it, until it is answered.

use std::rc::Rc;

use policyd_base::limits;
use policyd_evaluation::{self as evaluation, StopOutcome};
use policyd_fact_table::call_facts::CallFacts;
use policyd_facts::event::Event;
use policyd_hook::HookResponse;
use policyd_record::outcome::ReportContext;
use policyd_workspace::gate_status::OffReason;
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
    pub unjudged: Option<SkipReason>,
    /// The tool call as guards see it. `None` if no guard applies.
    pub seen: Option<Rc<CallFacts>>,
}

/// Why an event was not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// policyd is off.
    Off(OffReason),
    /// The pack has no rule for the event.
    NoRule,
    /// The pack has only reactions for the event, which did this.
    OnlyReactions(Vec<String>),
    /// Anything else, in one sentence.
    Other(String),
}

impl SkipReason {
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
        self.unjudged = Some(SkipReason::Other(why));
        self
    }

    /// Nothing was evaluated, for a reason that the caller might act on.
    pub(super) fn not_judged(mut self, why: SkipReason, now: Timestamp) -> Self {
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
