//! Cursor, by its documentation.
//!
//! - A hook before an action answers with a permission. An unknown answer blocks, so only
//!   documented fields are sent.
//! - A message in the user's name continues a stop. A stop by an interruption of the user is not
//!   continued.
//! - The client displays a text to the user only with a denial.

use policyd_facts::event::EventKind;
use serde_json::{Value, json};

use super::client_event::{ClientEvent, moment, unmapped};
use super::payload_fields::{rename, unpack};
use super::response::{Capability, ResponseField, ResponseTemplate};
use super::row::{AbsenceSigns, Harness, PermissionRules, ProcessSigns};

const PERMISSION: &str = "permission";

const ALLOW: ResponseTemplate = ResponseTemplate {
    says: Capability::Allow,
    fields: &[(PERMISSION, ResponseField::Text("allow"))],
};
const ASK: ResponseTemplate = ResponseTemplate {
    says: Capability::Ask,
    fields: &[(PERMISSION, ResponseField::Text("ask")), ("user_message", ResponseField::Reason)],
};
const DENY: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[
        (PERMISSION, ResponseField::Text("deny")),
        ("user_message", ResponseField::Reason),
        ("agent_message", ResponseField::Reason),
    ],
};
const INPUT: ResponseTemplate = ResponseTemplate {
    says: Capability::Input,
    fields: &[(PERMISSION, ResponseField::Text("allow")), ("updated_input", ResponseField::Input)],
};
const CONTEXT: ResponseTemplate = ResponseTemplate {
    says: Capability::Context,
    fields: &[("additional_context", ResponseField::Context)],
};
const REFUSE_PROMPT: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[("continue", ResponseField::Flag(false)), ("user_message", ResponseField::Reason)],
};
const FOLLOW_UP: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[("followup_message", ResponseField::Reason)],
};

const MOMENTS: [ClientEvent; 20] = [
    moment("sessionStart", EventKind::SessionStart, &[&CONTEXT]),
    moment("sessionEnd", EventKind::SessionEnd, &[]),
    moment("beforeSubmitPrompt", EventKind::UserPromptSubmit, &[&REFUSE_PROMPT]),
    moment("preToolUse", EventKind::PreToolUse, &[&ALLOW, &ASK, &DENY, &INPUT]),
    moment("beforeShellExecution", EventKind::PreToolUse, &[&ALLOW, &ASK, &DENY]),
    moment("beforeMCPExecution", EventKind::PreToolUse, &[&ALLOW, &ASK, &DENY]),
    moment("beforeReadFile", EventKind::PreToolUse, &[&ALLOW, &DENY]),
    moment("postToolUse", EventKind::PostToolUse, &[&CONTEXT]),
    moment("postToolUseFailure", EventKind::PostToolUseFailure, &[]),
    moment("afterShellExecution", EventKind::PostToolUse, &[]),
    moment("afterMCPExecution", EventKind::PostToolUse, &[]),
    moment("afterFileEdit", EventKind::PostToolUse, &[]),
    moment("subagentStart", EventKind::SubagentStart, &[]),
    moment("subagentStop", EventKind::SubagentStop, &[&FOLLOW_UP]),
    moment("preCompact", EventKind::PreCompact, &[]),
    moment("stop", EventKind::Stop, &[&FOLLOW_UP]),
    unmapped("afterAgentResponse"),
    unmapped("afterAgentThought"),
    unmapped("beforeTabFileRead"),
    unmapped("afterTabFileEdit"),
];

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "cursor",
    title: "Cursor",
    moments: &MOMENTS,
    tools: &[
        ("Shell", "Bash"),
        ("Task", "Agent"),
        ("StrReplace", "Edit"),
        ("edit_file", "Edit"),
        ("run_terminal_cmd", "Bash"),
        ("read_file", "Read"),
    ],
    inputs: &[("path", "file_path"), ("target_file", "file_path"), ("contents", "content")],
    silence: "{}",
    signs: |payload| {
        payload.contains_key("conversation_id") || payload.contains_key("cursor_version")
    },
    variable: "",
    // The editor is not a sign, because the user types into its terminal, where `CURSOR_TRACE_ID`
    // is set.
    process: ProcessSigns {
        variables: &["CURSOR_AGENT", "CURSOR_CONVERSATION_ID"],
        programs: &["cursor-agent"],
        packages: &["cursor-agent/versions"],
    },
    absence: AbsenceSigns { options: &["-p", "--print"], ..AbsenceSigns::NONE },
    reports_blocks: true,
    variable_files: &[],
    transcripts: None,
    permission_rules: PermissionRules::Unread,
    approves_hooks: false,
    context_bytes_max: usize::MAX,
    neutral: |moment, payload| {
        rename(payload, "conversation_id", "session_id");
        let first = payload.get("workspace_roots").and_then(|it| it.get(0)).cloned();
        if let Some(root) = first {
            payload.entry("cwd").or_insert(root);
        }
        unpack(payload, "tool_input");
        let field = |name: &str| payload.get(name).cloned().unwrap_or_default();
        let call = match moment.native {
            "beforeShellExecution" | "afterShellExecution" => {
                Some(("Shell", json!({"command": field("command")})))
            }
            "beforeReadFile" => Some(("Read", json!({"file_path": field("file_path")}))),
            "afterFileEdit" => {
                Some(("Edit", json!({"file_path": field("file_path"), "edits": field("edits")})))
            }
            _ => None,
        };
        if let Some((tool, input)) = call {
            payload.insert("tool_name".to_owned(), tool.into());
            payload.insert("tool_input".to_owned(), input);
        }
        rename(payload, "error_message", "error");
        let again = payload.get("loop_count").and_then(Value::as_u64).is_some_and(|it| it > 0);
        payload.insert("stop_hook_active".to_owned(), again.into());
        let status = payload.get("status").and_then(Value::as_str).unwrap_or("completed");
        moment.kind != Some(EventKind::Stop) || status == "completed"
    },
};
