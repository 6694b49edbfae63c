//! Factory Droid, by its documentation: Claude Code's protocol with fewer events, and fields in
//! `camelCase` or `snake_case`. Both spellings are accepted.

use super::claude_code::{
    ALLOW, ASK, BLOCK, CONTEXT, DENY, DENY_AND_HALT, HALT, INPUT_ALLOWED, NOTICE,
};
use super::client_event::{ClientEvent, moment};
use super::payload_fields::rename;
use super::row::{
    AbsenceSigns, Harness, PermissionRules, ProcessSigns, TranscriptDirectory, Transcripts,
};
use policyd_facts::event::EventKind;
use policyd_facts::record::TranscriptFormat;

const MOMENTS: [ClientEvent; 9] = [
    moment("SessionStart", EventKind::SessionStart, &[&CONTEXT, &NOTICE]),
    moment("SessionEnd", EventKind::SessionEnd, &[]),
    moment("UserPromptSubmit", EventKind::UserPromptSubmit, &[&BLOCK, &HALT, &CONTEXT, &NOTICE]),
    moment(
        "PreToolUse",
        EventKind::PreToolUse,
        &[&ALLOW, &ASK, &DENY, &DENY_AND_HALT, &INPUT_ALLOWED, &NOTICE],
    ),
    moment("PostToolUse", EventKind::PostToolUse, &[&BLOCK, &HALT, &CONTEXT, &NOTICE]),
    moment("Notification", EventKind::Notification, &[]),
    moment("Stop", EventKind::Stop, &[&BLOCK, &HALT, &NOTICE]),
    moment("SubagentStop", EventKind::SubagentStop, &[&BLOCK, &HALT, &NOTICE]),
    moment("PreCompact", EventKind::PreCompact, &[]),
];

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "droid",
    title: "Factory droid",
    moments: &MOMENTS,
    tools: &[
        ("Execute", "Bash"),
        ("Create", "Write"),
        ("MultiEdit", "Edit"),
        ("ApplyPatch", "Edit"),
        ("FetchUrl", "WebFetch"),
        ("Task", "Agent"),
    ],
    inputs: &[("path", "file_path")],
    silence: "",
    signs: |payload| payload.contains_key("sessionId") && payload.contains_key("hookEventName"),
    variable: "FACTORY_PROJECT_DIR",
    process: ProcessSigns {
        variables: &["FACTORY_PROJECT_DIR"],
        programs: &["droid"],
        packages: &[],
    },
    absence: AbsenceSigns { commands: &["exec"], ..AbsenceSigns::NONE },
    reports_blocks: true,
    variable_files: &[],
    transcripts: Some(Transcripts {
        format: TranscriptFormat::ClaudeCode,
        directory: TranscriptDirectory::OfClient("sessions"),
    }),
    permission_rules: PermissionRules::Unread,
    approves_hooks: false,
    context_bytes_max: usize::MAX,
    neutral: |_, payload| {
        for (native, neutral) in [
            ("sessionId", "session_id"),
            ("transcriptPath", "transcript_path"),
            ("permissionMode", "permission_mode"),
            ("hookEventName", "hook_event_name"),
            ("stopHookActive", "stop_hook_active"),
            ("toolName", "tool_name"),
            ("toolInput", "tool_input"),
            ("toolResponse", "tool_response"),
        ] {
            rename(payload, native, neutral);
        }
        true
    },
};
