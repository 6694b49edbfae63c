//! The events at which clients report a fact.

use policyd_facts::event::{EventKind, PROMPT_EVENTS, TOOL_CALL_EVENTS};

/// The events at which clients report a fact.
#[derive(Debug)]
pub struct FactEvents {
    /// The events, in groups; empty for all events.
    pub events: &'static [&'static [EventKind]],
    /// What to write where none of the events is possible.
    pub help: &'static str,
}

const STOPS: &[EventKind] = &[EventKind::Stop, EventKind::SubagentStop];
const FAILURES: &[EventKind] = &[EventKind::PostToolUseFailure, EventKind::StopFailure];

/// All events.
pub static EVERYWHERE: FactEvents = FactEvents { events: &[], help: "" };
/// Calls of tools.
pub static CALLS: FactEvents =
    FactEvents { events: &[TOOL_CALL_EVENTS], help: "add a tool call event under `on`" };
/// Calls of tools that did not happen yet.
pub static CALLS_AHEAD: FactEvents = FactEvents {
    events: &[&[EventKind::PreToolUse, EventKind::PermissionRequest]],
    help: "name `pre_tool_use` under `on`",
};
/// Calls of tools, and prompts, in which secrets are looked for, too.
pub static CALLS_AND_PROMPTS: FactEvents =
    FactEvents { events: &[TOOL_CALL_EVENTS, PROMPT_EVENTS], help: CALLS.help };
/// The tool of a call.
pub static TOOL: FactEvents = FactEvents {
    events: &[TOOL_CALL_EVENTS],
    help: "use `tools.last` or `tools.count(…)` for earlier calls",
};
/// The input of a call.
pub static INPUT: FactEvents = FactEvents {
    events: &[TOOL_CALL_EVENTS],
    help: "use `commands` and `files` for earlier actions",
};
/// Results of calls.
pub static RESULTS: FactEvents = FactEvents {
    events: &[&[EventKind::PostToolUse, EventKind::PostToolUseFailure]],
    help: "name `post_tool_use` under `on`",
};
/// Prompts.
pub static PROMPTS: FactEvents = FactEvents {
    events: &[PROMPT_EVENTS],
    help: "use `transcript.last_prompt` for the last prompt",
};
/// Stops.
pub static AT_STOPS: FactEvents =
    FactEvents { events: &[STOPS], help: "use it in considerations.yaml" };
/// The beginning of a session.
pub static SESSION_START: FactEvents =
    FactEvents { events: &[&[EventKind::SessionStart]], help: "name `session_start` under `on`" };
/// Failures.
pub static AT_FAILURES: FactEvents =
    FactEvents { events: &[FAILURES], help: "add an event that reports a failure under `on`" };
/// Stops, also those by a failure.
pub static AT_ALL_STOPS: FactEvents = FactEvents {
    events: &[STOPS, &[EventKind::StopFailure]],
    help: "name `stop` or `stop_failure` under `on`",
};
