//! Gemini CLI 0.61.0.
//!
//! - Claude Code's `permissionDecision` is ignored. A top-level `decision: deny` is supported.
//! - `continue: false` before a tool stops the tool.
//! - The client does not limit denied turns, and `stop_hook_active` is unreliable. Only the block
//!   limiter ends them. A retried turn reports the first prompt again, which identifies the
//!   episode.
//! - A changed input is merged over the model's input.
//! - `clearContext` at `AfterAgent` begins a new, empty transcript. A block that clears the context
//!   would lose its own evidence, so it is never sent.
//! - `PreCompress` fires before every model call, before the client checks the size of the context,
//!   and its output never reaches the compressor. It therefore has no neutral kind. The summary is
//!   written when the tier `act` is reached and when the session ends.

use serde_json::Value;

use super::claude_code::{CONTEXT, HALT, NOTICE};
use super::client_event::{ClientEvent, moment, unmapped};
use super::payload_fields::rename;
use super::response::{Capability, ResponseField, ResponseTemplate};
use super::row::{
    AbsenceSigns, Harness, PermissionRules, ProcessSigns, TranscriptDirectory, Transcripts,
    VariableFile, VariableFileFormat,
};
use policyd_facts::event::EventKind;
use policyd_facts::record::TranscriptFormat;
use policyd_yaml::checksum::{checksum, hex};

const DENY: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[("decision", ResponseField::Text("deny")), ("reason", ResponseField::Reason)],
};

const INPUT: ResponseTemplate = ResponseTemplate {
    says: Capability::Input,
    fields: &[("hookSpecificOutput.tool_input", ResponseField::Input)],
};

const MOMENTS: [ClientEvent; 11] = [
    moment("SessionStart", EventKind::SessionStart, &[&CONTEXT, &NOTICE]),
    moment("SessionEnd", EventKind::SessionEnd, &[&NOTICE]),
    moment("BeforeAgent", EventKind::UserPromptSubmit, &[&DENY, &HALT, &CONTEXT, &NOTICE]),
    moment("AfterAgent", EventKind::Stop, &[&DENY, &HALT, &NOTICE]),
    moment("BeforeTool", EventKind::PreToolUse, &[&DENY, &HALT, &INPUT, &NOTICE]),
    moment("AfterTool", EventKind::PostToolUse, &[&DENY, &HALT, &CONTEXT, &NOTICE]),
    unmapped("PreCompress"),
    moment("Notification", EventKind::Notification, &[&NOTICE]),
    unmapped("BeforeModel"),
    unmapped("AfterModel"),
    unmapped("BeforeToolSelection"),
];

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "gemini",
    title: "Gemini CLI",
    moments: &MOMENTS,
    tools: &[
        ("run_shell_command", "Bash"),
        ("write_file", "Write"),
        ("replace", "Edit"),
        ("read_file", "Read"),
        ("read_many_files", "Read"),
        ("glob", "Glob"),
        ("grep_search", "Grep"),
        ("search_file_content", "Grep"),
        ("list_directory", "LS"),
        ("web_fetch", "WebFetch"),
        ("google_web_search", "WebSearch"),
        ("write_todos", "TodoWrite"),
    ],
    inputs: &[("absolute_path", "file_path")],
    silence: "{}",
    signs: |payload| {
        let name = payload.get("hook_event_name").and_then(Value::as_str).unwrap_or_default();
        let own = !matches!(name, "SessionStart" | "SessionEnd" | "Notification")
            && MOMENTS.iter().any(|it| it.native == name);
        own || (payload.contains_key("session_id")
            && payload.get("timestamp").is_some_and(Value::is_string))
    },
    variable: "",
    process: ProcessSigns {
        variables: &["GEMINI_CLI"],
        programs: &["gemini"],
        packages: &["@google/gemini-cli"],
    },
    absence: AbsenceSigns { options: &["-p", "--prompt"], ..AbsenceSigns::NONE },
    reports_blocks: false,
    variable_files: &[
        VariableFile { path: ".gemini/.env", format: VariableFileFormat::Lines },
        VariableFile { path: ".env", format: VariableFileFormat::Lines },
    ],
    transcripts: Some(Transcripts {
        format: TranscriptFormat::Gemini,
        directory: TranscriptDirectory::OfClient("tmp"),
    }),
    permission_rules: PermissionRules::Unread,
    approves_hooks: false,
    context_bytes_max: usize::MAX,
    neutral: |moment, payload| {
        rename(payload, "prompt_response", "last_assistant_message");
        if moment.kind == Some(EventKind::Stop)
            && let Some(prompt) = payload.shift_remove("prompt")
        {
            let prompt = prompt.as_str().unwrap_or_default().to_owned();
            let id = hex(&checksum(&[prompt.as_bytes()]));
            payload.insert("prompt_id".to_owned(), id.into());
        }
        true
    },
};
