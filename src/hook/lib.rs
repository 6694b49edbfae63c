//! Protocols of the clients: converts their JSON to neutral events, and responses to their JSON.
//! The differences between clients are in their rows (`policyd-harness`).
//!
//! Contains: the reader of payloads, and the writer of answers. Does not contain: decisions.
//!
//! ```
//! use policyd_hook::HookResponse;
//!
//! let silent = HookResponse::default();
//! assert!(!silent.refuses() && silent.refusal().is_none());
//! ```

pub mod adapt;
pub mod agent_output;
pub mod payload;
pub mod render;

use serde_json::Value;

use policyd_evaluation::combine::Decision;
use policyd_facts::event::EventKind;
use policyd_harness::{ClientEvent, Harness, claude_code};

/// Response to a client, independent of its protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookResponse {
    /// Decision on the event.
    pub decision: Decision,
    /// Reason of the decision: for the agent with a block, for the user with other decisions.
    pub reason: String,
    /// Text for the user.
    pub notice: Option<String>,
    /// How the user can allow what is blocked. Only for the user, and only with a block.
    pub override_hint: Option<String>,
    /// Additional text for the agent.
    pub context: Option<String>,
    /// Changed input of the tool.
    pub updated_input: Option<Value>,
    /// Changed result of the tool, which the agent reads instead.
    pub updated_output: Option<Value>,
}

impl HookResponse {
    /// Creates a block with its reason.
    #[must_use]
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Block, reason: reason.into(), ..Self::default() }
    }

    /// Creates a notice to the user without a decision.
    #[must_use]
    pub fn notice(text: impl Into<String>) -> Self {
        Self { notice: Some(text.into()), ..Self::default() }
    }

    /// Creates the response to an event that was not analyzed. A tool call needs the user's approval; at other
    /// events the user is notified.
    #[must_use]
    pub fn not_analyzed(caller: Caller, why: &str) -> Self {
        let kind = caller.moment.and_then(|it| it.kind);
        if kind.is_some_and(EventKind::is_before_call) {
            let reason = format!("policyd did not check this call: {why}");
            return Self { decision: Decision::Ask, reason, ..Self::default() };
        }
        Self::notice(format!("policyd: {why}"))
    }

    /// Returns whether the response blocks the agent.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        matches!(self.decision, Decision::Block | Decision::Halt)
    }

    /// Returns the reason of a block. `None` if the response does not block.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refuses().then_some(self.reason.as_str())
    }
}

/// Client and event of a call, which decide the format of the response.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The client.
    pub harness: &'static Harness,
    /// Its event. `None` if the client has no such event, so that the response is empty.
    pub moment: Option<&'static ClientEvent>,
}

impl Caller {
    /// Finds the event of a client by its native or neutral name.
    #[must_use]
    pub fn at(harness: &'static Harness, event: &str) -> Self {
        Self { harness, moment: harness.moment(event) }
    }
}

impl Default for Caller {
    /// Returns Claude Code at a stop, the default of a command line that names neither.
    fn default() -> Self {
        Self::at(&claude_code::HARNESS, "stop")
    }
}

/// Renders the response for the client. Also returns the downgrades.
#[must_use]
pub fn speak(caller: Caller, answer: &HookResponse, tool: Option<&str>) -> (String, Vec<String>) {
    let adapted = adapt::adapt(caller, answer);
    (render::render(caller, &adapted.answer, tool), adapted.changed)
}
