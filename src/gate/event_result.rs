//! The result of the evaluation of one event, without what was reported on the way.

use std::collections::BTreeMap;
use std::rc::Rc;

use policyd_evaluation::StopOutcome;
use policyd_evaluation::guards::GuardsOutcome;
use policyd_fact_table::call_facts::CallFacts;
use policyd_hook::HookResponse;
use policyd_record::outcome::SaveReport;
use policyd_workspace::gate_status::OffReason;
use policyd_yaml::time::Timestamp;

/// Result of one event: its answer, and the decisions behind it.
#[derive(Debug, Default)]
pub(super) struct EventResult {
    /// Response to the client.
    pub(super) answer: HookResponse,
    /// Decision of the checks. `None` if the event is not a stop that was evaluated.
    pub(super) outcome: Option<StopOutcome>,
    /// Decision of the guards. `None` if no guard applies.
    pub(super) guards: Option<GuardsOutcome>,
    /// The tool call as guards see it. `None` if no guard applies.
    pub(super) call: Option<Rc<CallFacts>>,
    /// How the state of the session was saved.
    pub(super) saved: SaveReport,
    /// Preferences that rules read, and whether they were found.
    pub(super) preferences: BTreeMap<String, bool>,
    /// Why nothing was evaluated. `None` if something was.
    pub(super) skipped: Option<SkipReason>,
    /// Name of the pack. Empty if the pack of the project was not loaded.
    pub(super) pack: String,
    /// Whether the pack is the one of the organization.
    pub(super) of_organization: bool,
}

impl EventResult {
    /// Returns the result of an event at which nothing is evaluated. The client reads the answer anyway.
    pub(super) fn skipped(reason: SkipReason, answer: HookResponse) -> Self {
        Self { answer, skipped: Some(reason), ..Self::default() }
    }

    /// Returns the result of an event at which nothing is evaluated. It has no answer; some callers add one.
    pub(super) fn silent(why: impl Into<String>) -> Self {
        Self::skipped(SkipReason::Other(why.into()), HookResponse::default())
    }
}

/// Why an event was not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// policyd is off.
    Off(OffReason),
    /// The pack has no rule for the event.
    NoRule,
    /// The pack has only reactions for the event. The list says what they did.
    OnlyReactions(Vec<String>),
    /// Anything else, in one sentence.
    Other(String),
}

impl SkipReason {
    /// Returns whether the user wants nothing evaluated.
    pub fn is_wanted(&self) -> bool {
        match self {
            Self::Off(_) | Self::NoRule | Self::OnlyReactions(_) => true,
            Self::Other(_) => false,
        }
    }

    /// Returns the reason as it is logged.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::Off(reason) => reason.text(now),
            Self::NoRule => "no rule for this event".to_owned(),
            Self::OnlyReactions(actions) => {
                format!("no check or guard for this event; recorded: {}", actions.join("; "))
            }
            Self::Other(why) => why.clone(),
        }
    }
}
