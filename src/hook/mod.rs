//! Protocols of the callers: their JSON in, neutral events out; answers in, their JSON out.
//! Lives here: what crosses the wire. What differs between the callers stands in their rows
//! (`harness`).

pub mod agent_output;
pub mod fit;
pub mod payload;
pub mod render;

use serde_json::Value;

use crate::harness::{Harness, Moment, claude_code};
use crate::judge::combine::Decision;

/// What is said to the caller, in neutral words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What is decided about the event.
    pub decision: Decision,
    /// Why; told to the agent with a block, to the user with the others.
    pub reason: String,
    /// The user is told this.
    pub notice: Option<String>,
    /// The agent is told this beside what it does.
    pub context: Option<String>,
    /// The tool is to run with this input.
    pub updated_input: Option<Value>,
    /// The result that the agent reads instead of what the tool returned.
    pub updated_output: Option<Value>,
}

impl Answer {
    /// A refusal with its reason.
    #[must_use]
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Block, reason: reason.into(), ..Self::default() }
    }

    /// Something the user is told, and nothing else.
    #[must_use]
    pub fn notice(text: impl Into<String>) -> Self {
        Self { notice: Some(text.into()), ..Self::default() }
    }

    /// Whether the agent is refused what it wanted.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        matches!(self.decision, Decision::Block | Decision::Halt)
    }

    /// The reason of a refusal; nothing where nothing is refused.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refuses().then_some(self.reason.as_str())
    }
}

/// Who asks, and about what: decides the form of the answer.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The client.
    pub harness: &'static Harness,
    /// Its event; nothing where it has no such event, so that nothing can be said.
    pub moment: Option<&'static Moment>,
}

impl Caller {
    /// A client at its event of this name, the client's own or the neutral one.
    #[must_use]
    pub fn at(harness: &'static Harness, event: &str) -> Self {
        Self { harness, moment: harness.moment(event) }
    }
}

impl Default for Caller {
    /// Claude Code at a stop: who calls a hook whose command line says neither.
    fn default() -> Self {
        Self::at(&claude_code::HARNESS, "stop")
    }
}

/// The answer as the caller takes it, and what could not be said as it was meant.
#[must_use]
pub fn speak(caller: Caller, answer: &Answer, tool: Option<&str>) -> (String, Vec<String>) {
    let fitted = fit::fit(caller, answer);
    (render::render(caller, &fitted.answer, tool), fitted.changed)
}
