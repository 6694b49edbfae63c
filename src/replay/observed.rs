//! One tool call or stop of a recording, and what the pack decides there.

use std::path::Path;

use policyd_evaluation::StopOutcome;
use policyd_evaluation::guards::GuardsOutcome;
use policyd_facts::event::Event;
use policyd_yaml::time::Timestamp;

/// A tool call or a stop that was evaluated.
#[derive(Debug)]
pub struct ObservedEvent<'o> {
    /// Event that a hook would have received.
    pub event: &'o Event,
    /// Id of the tool call. Empty for a stop, and if the client writes no id.
    pub call: &'o str,
    /// Number of the tool call in the transcript, from 1; of a stop, the number of calls before it.
    pub number: u64,
    /// Line of the tool call, or of the agent's last action before the stop, from 1.
    pub line: u64,
    /// Number of lines that the transcript had at the event.
    pub lines_before: u64,
    /// Working directory at the beginning of the session.
    pub project: &'o Path,
    /// Time of the event.
    pub now: Timestamp,
    /// What the pack decides.
    pub result: ObservedDecision<'o>,
}

/// What a pack decides at a recorded event.
#[derive(Debug, Clone, Copy)]
pub enum ObservedDecision<'o> {
    /// At a tool call.
    Call(&'o GuardsOutcome),
    /// At a stop.
    Stop(&'o StopOutcome),
}

/// Receives each tool call and each evaluated stop of a transcript.
pub type Observer<'a> = &'a mut dyn FnMut(&ObservedEvent<'_>);
