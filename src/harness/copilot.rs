//! GitHub Copilot CLI, by its documentation. Events in `camelCase` send payloads in that spelling.
//! Events in `PascalCase` send payloads in Claude Code's format, which are not distinguishable from
//! Claude Code's, so the hook line names the client.
//!
//! - Before a tool, the permission is at the top level.
//! - Exit code 2 at a stop is a warning. Only the JSON output blocks.
//! - The reason of a blocked stop returns as a prompt, and `stop_hook_active` stays true from then
//!   on.
//! - Measured with 1.0.102: a top-level `additionalContext` reaches the model at four events.
//! - The client displays no notices to the user.

use policyd_facts::event::EventKind;
use policyd_facts::record::TranscriptFormat;
use serde_json::Value;

use super::claude_code::BLOCK;
use super::client_event::{ClientEvent, moment, unmapped};
use super::payload_fields::{rename, unpack};
use super::response::{Capability, ResponseField, ResponseTemplate};
use super::row::{
    AbsenceSigns, Harness, PermissionRules, ProcessSigns, TranscriptDirectory, Transcripts,
};

const PERMISSION: &str = "permissionDecision";
const REASON: &str = "permissionDecisionReason";

const ALLOW: ResponseTemplate = ResponseTemplate {
    says: Capability::Allow,
    fields: &[(PERMISSION, ResponseField::Text("allow")), (REASON, ResponseField::Reason)],
};
const ASK: ResponseTemplate = ResponseTemplate {
    says: Capability::Ask,
    fields: &[(PERMISSION, ResponseField::Text("ask")), (REASON, ResponseField::Reason)],
};
const DENY: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[(PERMISSION, ResponseField::Text("deny")), (REASON, ResponseField::Reason)],
};
const INPUT: ResponseTemplate =
    ResponseTemplate { says: Capability::Input, fields: &[("modifiedArgs", ResponseField::Input)] };
const GRANT: ResponseTemplate = ResponseTemplate {
    says: Capability::Allow,
    fields: &[("behavior", ResponseField::Text("allow"))],
};
const ASKS_ANYWAY: ResponseTemplate = ResponseTemplate { says: Capability::Ask, fields: &[] };
const REFUSE: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[("behavior", ResponseField::Text("deny")), ("message", ResponseField::Reason)],
};
const INTERRUPT: ResponseTemplate = ResponseTemplate {
    says: Capability::Halt,
    fields: &[
        ("behavior", ResponseField::Text("deny")),
        ("message", ResponseField::Reason),
        ("interrupt", ResponseField::Flag(true)),
    ],
};

const CONTEXT: ResponseTemplate = ResponseTemplate {
    says: Capability::Context,
    fields: &[("additionalContext", ResponseField::Context)],
};

const BEFORE_TOOL: &[&ResponseTemplate] = &[&ALLOW, &ASK, &DENY, &INPUT];
const BEFORE_TOOL_MEASURED: &[&ResponseTemplate] = &[&ALLOW, &ASK, &DENY, &INPUT, &CONTEXT];
const PROMPTS: &[&ResponseTemplate] = &[&GRANT, &ASKS_ANYWAY, &REFUSE, &INTERRUPT];
const STOPS: &[&ResponseTemplate] = &[&BLOCK];

const MOMENTS: [ClientEvent; 26] = [
    moment("sessionStart", EventKind::SessionStart, &[&CONTEXT]),
    moment("sessionEnd", EventKind::SessionEnd, &[]),
    moment("userPromptSubmitted", EventKind::UserPromptSubmit, &[&CONTEXT]),
    unmapped("userPromptTransformed"),
    moment("preToolUse", EventKind::PreToolUse, BEFORE_TOOL_MEASURED),
    moment("postToolUse", EventKind::PostToolUse, &[&CONTEXT]),
    moment("postToolUseFailure", EventKind::PostToolUseFailure, &[]),
    moment("permissionRequest", EventKind::PermissionRequest, PROMPTS),
    moment("agentStop", EventKind::Stop, STOPS),
    moment("subagentStart", EventKind::SubagentStart, &[]),
    moment("subagentStop", EventKind::SubagentStop, STOPS),
    moment("preCompact", EventKind::PreCompact, &[]),
    moment("notification", EventKind::Notification, &[]),
    moment("errorOccurred", EventKind::StopFailure, &[]),
    moment("SessionStart", EventKind::SessionStart, &[]),
    moment("SessionEnd", EventKind::SessionEnd, &[]),
    moment("UserPromptSubmit", EventKind::UserPromptSubmit, &[]),
    moment("PreToolUse", EventKind::PreToolUse, BEFORE_TOOL),
    moment("PostToolUse", EventKind::PostToolUse, &[]),
    moment("PostToolUseFailure", EventKind::PostToolUseFailure, &[]),
    moment("PermissionRequest", EventKind::PermissionRequest, PROMPTS),
    moment("Stop", EventKind::Stop, STOPS),
    moment("SubagentStart", EventKind::SubagentStart, &[]),
    moment("SubagentStop", EventKind::SubagentStop, STOPS),
    moment("PreCompact", EventKind::PreCompact, &[]),
    moment("Notification", EventKind::Notification, &[]),
];

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "copilot",
    title: "GitHub Copilot CLI",
    moments: &MOMENTS,
    tools: &[
        ("bash", "Bash"),
        ("shell", "Bash"),
        ("powershell", "PowerShell"),
        ("view", "Read"),
        ("create", "Write"),
        ("edit", "Edit"),
        ("str_replace_editor", "Edit"),
        ("glob", "Glob"),
        ("grep", "Grep"),
        ("web_fetch", "WebFetch"),
        ("web_search", "WebSearch"),
        ("task", "Agent"),
        ("update_todo", "TodoWrite"),
    ],
    inputs: &[
        ("path", "file_path"),
        ("file_text", "content"),
        ("old_str", "old_string"),
        ("new_str", "new_string"),
    ],
    silence: "{}",
    signs: |payload| payload.contains_key("sessionId") && !payload.contains_key("hookEventName"),
    variable: "",
    process: ProcessSigns {
        variables: &["COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"],
        programs: &["copilot"],
        packages: &["@github/copilot"],
    },
    absence: AbsenceSigns { options: &["-p", "--prompt"], ..AbsenceSigns::NONE },
    reports_blocks: true,
    variable_files: &[],
    transcripts: Some(Transcripts {
        format: TranscriptFormat::Copilot,
        directory: TranscriptDirectory::OfClient("session-state"),
    }),
    permission_rules: PermissionRules::Unread,
    approves_hooks: false,
    context_bytes_max: usize::MAX,
    neutral: |moment, payload| {
        for (native, neutral) in [
            ("sessionId", "session_id"),
            ("transcriptPath", "transcript_path"),
            ("toolName", "tool_name"),
            ("toolArgs", "tool_input"),
            ("toolInput", "tool_input"),
            ("toolResult", "tool_response"),
            ("agentId", "agent_id"),
            ("agentName", "agent_type"),
            ("stopHookActive", "stop_hook_active"),
        ] {
            rename(payload, native, neutral);
        }
        unpack(payload, "tool_input");
        if moment.kind == Some(EventKind::StopFailure)
            && let Some(message) = payload.get("error").and_then(|it| it.get("message")).cloned()
        {
            payload.insert("error".to_owned(), message);
        }
        if moment.kind == Some(EventKind::Stop) {
            // `events.jsonl` records the call of the stop hooks with this time.
            rename(payload, "timestamp", "stop_recorded_at");
        }
        let reason = payload.get("stopReason").and_then(Value::as_str).unwrap_or_default();
        moment.kind != Some(EventKind::Stop) || !matches!(reason, "aborted" | "cancelled" | "error")
    },
};
