//! Events: what the agent's client just reported, in neutral words.
//! Lives here: the event, its kinds and their table. Wire formats stay in `hook`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::SessionId;

/// Declares the kinds of events, each with its neutral name.
macro_rules! event_kinds {
    ($($kind:ident = $name:literal,)*) => {
        /// What kind of thing happened, whatever a client calls it. Serialized as its neutral name.
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
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Neutral name, used in rules and for `--hook`, where `-` may replace `_`: `pre_tool_use`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// Claude Code's name, `hook_event_name` in its payload: `PreToolUse`.
            #[must_use]
            pub const fn client_name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }
        }
    };
}

// Every event of Claude Code 2.1.329; other clients' events map onto these.
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

/// Neutral names of kinds of events, for tables of names.
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

/// The neutral name of every kind.
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

/// Whether two names of events differ in nothing but spelling, as `PreToolUse` and `pre-tool-use` do.
#[must_use]
pub fn spelled_alike(one: &str, other: &str) -> bool {
    // Compared as they stand: every hook asks, and most names differ in their first letter.
    fn plain(text: &str) -> impl Iterator<Item = u8> {
        text.bytes().filter(|it| !matches!(it, b'-' | b'_')).map(|it| it.to_ascii_lowercase())
    }
    plain(one).eq(plain(other))
}

impl EventKind {
    /// The kind with this name in any spelling: `stop`, `Stop`, `pre-tool-use`, `PreToolUse`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| spelled_alike(kind.name(), name))
    }

    /// Whether guards can stop the tool call: it has not begun.
    #[must_use]
    pub const fn is_before_call(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    /// Whether a call of a tool or of the model failed.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::PostToolUseFailure | Self::StopFailure)
    }

    /// Whether a session begins, or an agent is about to end its turn.
    #[must_use]
    pub const fn is_boundary(self) -> bool {
        self.is_stop() || matches!(self, Self::SessionStart)
    }

    /// Whether a session begins, or the main agent is about to end its turn: the user reads notices there.
    #[must_use]
    pub const fn is_main_boundary(self) -> bool {
        matches!(self, Self::SessionStart | Self::Stop)
    }

    /// Whether an agent is about to end its turn.
    #[must_use]
    pub const fn is_stop(self) -> bool {
        matches!(self, Self::Stop | Self::SubagentStop)
    }
}

/// A task the client runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackgroundTask {
    /// Its id; a stopping subagent finds itself listed under its agent id.
    pub id: String,
    /// `shell`, `subagent`, `workflow`, … as the client says.
    pub kind: String,
    /// `running` or whatever the client says.
    pub status: String,
    /// What it does.
    pub description: String,
}

/// A call of the model or of a tool that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedCall {
    /// The client's name of the error (`rate_limit`), or what the tool said.
    pub error: String,
    /// What else is known of it.
    pub details: String,
    /// Whether a human broke it off.
    pub interrupted: bool,
}

/// What a client says of the conversation that a session continues, where the session begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Continued {
    /// Tokens of the conversation; 0 where it is not known.
    pub context_tokens: u64,
    /// Estimated cost in US dollars to write the conversation into the prompt cache again.
    pub cache_write_usd: f64,
    /// Seconds since the model answered last; 0 where it is not known.
    pub seconds_since_last_response: u64,
    /// Whether the prompt cache has likely expired.
    pub cache_expired: bool,
}

/// What just happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// The session, sanitised; subagents share their parent's.
    pub session_id: SessionId,
    /// Whether the payload named a session at all.
    pub session_known: bool,
    /// The event that the payload itself names, where it names a known one.
    pub said_kind: Option<EventKind>,
    /// The subagent it happened in, if any.
    pub agent_id: Option<String>,
    /// Type of that subagent; `Some("")` for the client's internal agents.
    pub agent_type: Option<String>,
    /// Id of the prompt being worked on.
    pub prompt_id: Option<String>,
    /// The transcript that tells what was done: the subagent's own where there is one.
    pub transcript: Option<PathBuf>,
    /// Whether that is a subagent's own transcript.
    pub subagent_transcript: bool,
    /// The folder the agent works in at this moment.
    pub folder: Option<PathBuf>,
    /// `default`, `plan`, `acceptEdits`, ….
    pub permission_mode: Option<String>,
    /// The client says that it continues because of a stop hook (one unreliable bit).
    pub stop_active: bool,
    /// The agent's last text; it beats the transcript, which lags behind.
    pub last_message: Option<String>,
    /// Background tasks of the session.
    pub background: Vec<BackgroundTask>,
    /// Id of the tool call, where the client names it.
    pub call_id: Option<String>,
    /// Payload time of a stop, in milliseconds, if the client records the stop in its transcript.
    pub stop_recorded_at: Option<u64>,
    /// Whether the transcript cannot grow any more: a call without a result never ended.
    pub transcript_final: bool,
    /// Tool about to run or that ran.
    pub tool_name: Option<String>,
    /// Its input.
    pub tool_input: Value,
    /// Its result, after it ran; null where there is none.
    pub tool_response: Value,
    /// A prompt just sent.
    pub prompt: Option<String>,
    /// What failed, where the event reports a failure.
    pub failed: Option<FailedCall>,
    /// How a session began: `startup`, `resume`, `clear`, `compact`, `fork`.
    pub source: Option<String>,
    /// The model, where a session begins or another one was chosen.
    pub model: Option<String>,
    /// Why a session ended: `clear`, `logout`, ….
    pub reason: Option<String>,
    /// What a session continues, where it begins.
    pub continued: Continued,
}

impl Event {
    /// An event of a known session, of which nothing else is known.
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
            continued: Continued {
                context_tokens: 0,
                cache_write_usd: 0.0,
                seconds_since_last_response: 0,
                cache_expired: false,
            },
        }
    }

    /// Background tasks that still run, the stopping agent itself not counted.
    #[must_use]
    pub fn running_in_background(&self) -> usize {
        self.running().count()
    }

    /// Those of them that are not plain shell commands.
    #[must_use]
    pub fn agents_in_background(&self) -> usize {
        self.running().filter(|task| task.kind != "shell").count()
    }

    /// Shell commands that still run.
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
