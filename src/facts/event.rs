//! Events that a client reports, independent of its protocol.
//!
//! Contains: the event and its kinds. Does not contain: wire formats (`hook`).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call::{AnalysisContext, Call};
use policyd_base::id::SessionId;

/// Declares the kinds of events, each with its neutral name.
macro_rules! event_kinds {
    ($($kind:ident = $name:literal,)*) => {
        /// Kind of an event, independent of the client. Serialized as its neutral name.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum EventKind {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $kind,
            )*
        }

        impl EventKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the neutral name, as in rules and in `--hook` (which also accepts `-` for
            /// `_`): `pre_tool_use`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// Returns Claude Code's name, the `hook_event_name` of its payload: `PreToolUse`.
            #[must_use]
            pub const fn client_name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }
        }
    };
}

// Every event of Claude Code 2.1.329. Events of other clients map to these.
event_kinds! {
    SessionStart = "session_start",
    Setup = "setup",
    InstructionsLoaded = "instructions_loaded",
    UserPromptSubmit = "user_prompt_submit",
    UserPromptExpansion = "user_prompt_expansion",
    MessageDisplay = "message_display",
    PreToolUse = "pre_tool_use",
    PermissionRequest = "permission_request",
    PermissionDenied = "permission_denied",
    PostToolUse = "post_tool_use",
    PostToolUseFailure = "post_tool_use_failure",
    PostToolBatch = "post_tool_batch",
    Notification = "notification",
    SubagentStart = "subagent_start",
    SubagentStop = "subagent_stop",
    TaskCreated = "task_created",
    TaskCompleted = "task_completed",
    Stop = "stop",
    StopFailure = "stop_failure",
    TeammateIdle = "teammate_idle",
    ConfigChange = "config_change",
    CwdChanged = "cwd_changed",
    DirectoryAdded = "directory_added",
    FileChanged = "file_changed",
    WorktreeCreate = "worktree_create",
    WorktreeRemove = "worktree_remove",
    PreCompact = "pre_compact",
    PostCompact = "post_compact",
    Elicitation = "elicitation",
    ElicitationResult = "elicitation_result",
    SessionEnd = "session_end",
    PreModelSwitch = "pre_model_switch",
    PostModelSwitch = "post_model_switch",
}

/// Returns the neutral names of kinds of events.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "evaluated at compile time, where it cannot panic")]
pub const fn names<const COUNT: usize>(kinds: &[EventKind]) -> [&'static str; COUNT] {
    let mut names = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        names[at] = kinds[at].name();
        at += 1;
    }
    names
}

/// Neutral names of all kinds.
pub const EVENT_NAMES: &[&str] = &names::<{ EventKind::ALL.len() }>(EventKind::ALL);

/// Events of a tool call.
pub const TOOL_CALL_EVENTS: &[EventKind] = &[
    EventKind::PreToolUse,
    EventKind::PermissionRequest,
    EventKind::PermissionDenied,
    EventKind::PostToolUse,
    EventKind::PostToolUseFailure,
];

/// Events of a prompt that the user wrote.
pub const PROMPT_EVENTS: &[EventKind] =
    &[EventKind::UserPromptSubmit, EventKind::UserPromptExpansion];

/// Returns whether two event names differ only in case, `-` or `_`, such as `PreToolUse` and
/// `pre-tool-use`.
#[must_use]
pub fn spelled_alike(one: &str, other: &str) -> bool {
    // Compared without allocation: every hook call runs this, and most names differ in their first
    // letter.
    fn plain(text: &str) -> impl Iterator<Item = u8> {
        text.bytes().filter(|it| !matches!(it, b'-' | b'_')).map(|it| it.to_ascii_lowercase())
    }
    plain(one).eq(plain(other))
}

impl EventKind {
    /// Finds the kind with this name in any spelling: `stop`, `Stop`, `pre-tool-use`, `PreToolUse`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| spelled_alike(kind.name(), name))
    }

    /// Returns whether the event precedes a tool call, so that guards can block it.
    #[must_use]
    pub const fn is_before_call(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    /// Returns whether the event reports a failed call of a tool or of the model.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::PostToolUseFailure | Self::StopFailure)
    }

    /// Returns whether a session begins or an agent is about to end its turn.
    #[must_use]
    pub const fn is_boundary(self) -> bool {
        self.is_stop() || matches!(self, Self::SessionStart)
    }

    /// Returns whether a session begins or the main agent is about to end its turn. The user reads
    /// notices there.
    #[must_use]
    pub const fn is_main_boundary(self) -> bool {
        matches!(self, Self::SessionStart | Self::Stop)
    }

    /// Returns whether an agent is about to end its turn.
    #[must_use]
    pub const fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop)
    }

    /// Returns whether the event ends a turn of an agent: it stops, or the call to the model failed.
    #[must_use]
    pub const fn ends_turn(self) -> bool {
        self.is_stop() || matches!(self, Self::StopFailure)
    }
}

/// A task that the client runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackgroundTask {
    /// Id of the task. A stopping subagent is listed under its own agent id.
    pub id: String,
    /// Type of the task as the client names it: `shell`, `subagent`, `workflow`, ….
    pub kind: String,
    /// Status as the client names it, such as `running`.
    pub status: String,
    pub description: String,
}

/// A failed call of the model or of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedCall {
    /// The client's name of the error (`rate_limit`), or the error text of the tool.
    pub error: String,
    /// Further details, as the client sends them.
    pub details: String,
    /// Whether the user interrupted the call.
    pub interrupted: bool,
}

/// Data about the conversation that a new session continues, as the client reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ContinuedConversation {
    /// Tokens of the conversation; 0 if unknown.
    pub context_tokens: u64,
    /// Estimated cost in US dollars of writing the conversation into the prompt cache again.
    pub cache_write_usd: f64,
    /// Seconds since the last response of the model; 0 if unknown.
    pub seconds_since_last_response: u64,
    /// Whether the prompt cache has probably expired.
    pub cache_expired: bool,
}

/// An event that a client reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: EventKind,
    /// Id of the session. Subagents share the id of their parent.
    pub session_id: SessionId,
    /// Whether the payload contained a session id.
    pub session_known: bool,
    /// Kind that the payload itself names, if it is known.
    pub said_kind: Option<EventKind>,
    /// Id of the subagent in which the event happened, if any.
    pub agent_id: Option<String>,
    /// Type of the subagent. `Some("")` for the client's internal agents.
    pub agent_type: Option<String>,
    /// Id of the current prompt.
    pub prompt_id: Option<String>,
    /// Transcript of the agent: the subagent's own transcript, if there is one.
    pub transcript: Option<PathBuf>,
    /// Whether `transcript` is a subagent's own transcript.
    pub subagent_transcript: bool,
    /// Current working directory of the agent.
    pub folder: Option<PathBuf>,
    /// Permission mode: `default`, `plan`, `acceptEdits`, ….
    pub permission_mode: Option<String>,
    /// Whether a user is present, if the payload states it.
    pub attended: Option<bool>,
    /// Whether the client reports that it continues because of a stop hook. The flag is unreliable.
    pub stop_active: bool,
    /// Last text of the agent. It takes precedence over the transcript, which can lag behind.
    pub last_message: Option<String>,
    /// Background tasks of the session.
    pub background: Vec<BackgroundTask>,
    /// Id of the tool call, if the client sends it.
    pub call_id: Option<String>,
    /// Payload time of a stop in milliseconds, if the client records stops in its transcript.
    pub stop_recorded_at: Option<u64>,
    /// Whether the transcript cannot grow any more. A call without a result then never ended.
    pub transcript_final: bool,
    /// Tool that is about to run or that ran.
    pub tool_name: Option<String>,
    /// Input of the tool.
    pub tool_input: Value,
    /// Result of the tool; null before it ran.
    pub tool_response: Value,
    /// Prompt that was just sent.
    pub prompt: Option<String>,
    /// The failed call, if the event reports a failure.
    pub failed: Option<FailedCall>,
    /// How the session began: `startup`, `resume`, `clear`, `compact`, `fork`.
    pub source: Option<String>,
    /// The model, at the start of a session or after a change.
    pub model: Option<String>,
    /// Why the session ended: `clear`, `logout`, ….
    pub reason: Option<String>,
    /// The conversation that the session continues, at its start.
    pub continued: ContinuedConversation,
}

impl Event {
    /// Analyzes the tool call of the event. The call is empty if the event has no tool.
    #[must_use]
    pub fn call(&self, context: AnalysisContext<'_>) -> Call {
        let tool = self.tool_name.as_deref();
        let call = tool.map(|it| Call::read(it, &self.tool_input, context)).unwrap_or_default();
        Call { prompt: self.prompt.clone().unwrap_or_default(), ..call }
    }

    /// Creates an event with only a kind and a session.
    #[must_use]
    pub const fn of(kind: EventKind, session_id: SessionId) -> Self {
        Self {
            kind,
            session_id,
            session_known: true,
            said_kind: None,
            agent_id: None,
            agent_type: None,
            prompt_id: None,
            transcript: None,
            subagent_transcript: false,
            folder: None,
            permission_mode: None,
            attended: None,
            stop_active: false,
            last_message: None,
            background: Vec::new(),
            call_id: None,
            stop_recorded_at: None,
            transcript_final: false,
            tool_name: None,
            tool_input: Value::Null,
            tool_response: Value::Null,
            prompt: None,
            failed: None,
            source: None,
            model: None,
            reason: None,
            continued: ContinuedConversation {
                context_tokens: 0,
                cache_write_usd: 0.0,
                seconds_since_last_response: 0,
                cache_expired: false,
            },
        }
    }

    /// Counts background tasks that still run, without the stopping agent itself.
    #[must_use]
    pub fn running_in_background(&self) -> usize {
        self.running().count()
    }

    /// Counts background tasks that still run and are not plain shell commands.
    #[must_use]
    pub fn agents_in_background(&self) -> usize {
        self.running().filter(|task| task.kind != "shell").count()
    }

    /// Counts shell commands that still run in the background.
    #[must_use]
    pub fn shells_in_background(&self) -> usize {
        self.running().filter(|task| task.kind == "shell").count()
    }

    fn running(&self) -> impl Iterator<Item = &BackgroundTask> {
        let own = self.agent_id.as_deref();
        self.background
            .iter()
            .filter(move |task| task.status == "running" && Some(task.id.as_str()) != own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_in_any_spelling() {
        for spelling in ["stop", "Stop", "STOP"] {
            assert_eq!(EventKind::find(spelling).unwrap().name(), "stop");
        }
        for spelling in ["pre-tool-use", "PreToolUse", "pre_tool_use"] {
            assert_eq!(EventKind::find(spelling).unwrap().client_name(), "PreToolUse");
        }
        assert_eq!(EventKind::find("stopp"), None);
    }

    #[test]
    fn names_are_the_snake_case_of_the_clients() {
        for kind in EventKind::ALL {
            assert_eq!(kind.name().replace('_', ""), kind.client_name().to_ascii_lowercase());
        }
    }
}
