//! Events: what the agent's client just reported, in neutral words.
//! Lives here: the event, its kinds and their table. Wire formats stay in `hook`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::SessionId;

/// One row of the table of event kinds.
#[derive(Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Neutral name, used in rules and for `--hook` (where `-` may stand for `_`).
    pub name: &'static str,
    /// Claude Code's name, `hook_event_name` on the wire.
    pub client: &'static str,
}

/// Every event of Claude Code 2.1.329; other clients' events map onto these.
pub const EVENTS: [EventRow; 33] = [
    EventRow { name: "session_start", client: "SessionStart" },
    EventRow { name: "setup", client: "Setup" },
    EventRow { name: "instructions_loaded", client: "InstructionsLoaded" },
    EventRow { name: "user_prompt_submit", client: "UserPromptSubmit" },
    EventRow { name: "user_prompt_expansion", client: "UserPromptExpansion" },
    EventRow { name: "message_display", client: "MessageDisplay" },
    EventRow { name: "pre_tool_use", client: "PreToolUse" },
    EventRow { name: "permission_request", client: "PermissionRequest" },
    EventRow { name: "permission_denied", client: "PermissionDenied" },
    EventRow { name: "post_tool_use", client: "PostToolUse" },
    EventRow { name: "post_tool_use_failure", client: "PostToolUseFailure" },
    EventRow { name: "post_tool_batch", client: "PostToolBatch" },
    EventRow { name: "notification", client: "Notification" },
    EventRow { name: "subagent_start", client: "SubagentStart" },
    EventRow { name: "subagent_stop", client: "SubagentStop" },
    EventRow { name: "task_created", client: "TaskCreated" },
    EventRow { name: "task_completed", client: "TaskCompleted" },
    EventRow { name: "stop", client: "Stop" },
    EventRow { name: "stop_failure", client: "StopFailure" },
    EventRow { name: "teammate_idle", client: "TeammateIdle" },
    EventRow { name: "config_change", client: "ConfigChange" },
    EventRow { name: "cwd_changed", client: "CwdChanged" },
    EventRow { name: "directory_added", client: "DirectoryAdded" },
    EventRow { name: "file_changed", client: "FileChanged" },
    EventRow { name: "worktree_create", client: "WorktreeCreate" },
    EventRow { name: "worktree_remove", client: "WorktreeRemove" },
    EventRow { name: "pre_compact", client: "PreCompact" },
    EventRow { name: "post_compact", client: "PostCompact" },
    EventRow { name: "elicitation", client: "Elicitation" },
    EventRow { name: "elicitation_result", client: "ElicitationResult" },
    EventRow { name: "session_end", client: "SessionEnd" },
    EventRow { name: "pre_model_switch", client: "PreModelSwitch" },
    EventRow { name: "post_model_switch", client: "PostModelSwitch" },
];

/// Events of a tool call.
pub const CALLS: &[&str] = &[
    "pre_tool_use",
    "permission_request",
    "permission_denied",
    "post_tool_use",
    "post_tool_use_failure",
];

/// Events of a prompt by a human.
pub const PROMPTS: &[&str] = &["user_prompt_submit", "user_prompt_expansion"];

/// Whether two names of events differ in nothing but spelling, as `PreToolUse` and `pre-tool-use` do.
#[must_use]
pub fn spelled_alike(one: &str, other: &str) -> bool {
    // Compared as they stand: every hook asks, and most names differ in their first letter.
    fn plain(text: &str) -> impl Iterator<Item = u8> {
        text.bytes().filter(|it| !matches!(it, b'-' | b'_')).map(|it| it.to_ascii_lowercase())
    }
    plain(one).eq(plain(other))
}

/// What kind of thing happened, whatever a client calls it: a row of [`EVENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventKind(&'static EventRow);

impl EventKind {
    /// The kind of this name, in any spelling: `stop`, `Stop`, `pre-tool-use`, `PreToolUse`.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        EVENTS.iter().find(|row| spelled_alike(row.client, name)).map(Self)
    }

    /// Neutral name: `pre_tool_use`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Claude Code's name: `PreToolUse`.
    #[must_use]
    pub const fn client_name(self) -> &'static str {
        self.0.client
    }

    /// Whether a tool is about to be used, so that guards may stop it.
    #[must_use]
    pub fn is_before_call(self) -> bool {
        matches!(self.0.name, "pre_tool_use" | "permission_request")
    }

    /// Whether an agent wants to end its turn.
    #[must_use]
    pub fn is_stop(self) -> bool {
        matches!(self.0.name, "stop" | "subagent_stop")
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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
        for row in &EVENTS {
            assert_eq!(row.name.replace('_', ""), row.client.to_ascii_lowercase());
        }
    }
}
