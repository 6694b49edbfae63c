//! Claude Code 2.1.329: 33 events. The supported responses were measured if the client could be
//! made to report the event; otherwise they follow its documentation.
//!
//! - policyd never sends `approve` or a top-level `allow`. No decision is an empty output.
//! - `additionalContext` at a stop makes the agent continue, so a stop takes no context.
//! - `continue: false` at `PreToolUse` lets the tool run, so a halt there denies, too. At a stop it
//!   is sent alone, because together with a block the agent's answer would be lost.
//! - The output of `WorktreeCreate` is used as a path, so nothing is sent there.
//! - `TaskCompleted` and `TeammateIdle` can be blocked only with exit code 2, which policyd never
//!   uses.

use policyd_facts::event::EventKind;
use policyd_facts::record::TranscriptFormat;
use serde_json::{Map, Value};

use super::client_event::{ClientEvent, moment};
use super::response::{Capability, ResponseField, ResponseFieldRow, ResponseTemplate};
use super::row::{
    AbsenceSigns, Harness, PermissionRules, ProcessSigns, TranscriptDirectory, Transcripts,
    UserFolder, VariableFile, VariableFileFormat,
};

/// Notice to the user.
pub(super) const NOTICE: ResponseTemplate = ResponseTemplate {
    says: Capability::Notice,
    fields: &[("systemMessage", ResponseField::Notice)],
};

/// Block with its reason.
pub(super) const BLOCK: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[("decision", ResponseField::Text("block")), ("reason", ResponseField::Reason)],
};

const HALTS: [ResponseFieldRow; 2] =
    [("continue", ResponseField::Flag(false)), ("stopReason", ResponseField::Reason)];

/// End of the session.
pub(super) const HALT: ResponseTemplate =
    ResponseTemplate { says: Capability::Halt, fields: &HALTS };

/// Context for the agent.
pub(super) const CONTEXT: ResponseTemplate = ResponseTemplate {
    says: Capability::Context,
    fields: &[("hookSpecificOutput.additionalContext", ResponseField::Context)],
};

/// Output before a compaction, which the client appends to the instructions of its summarizer. By
/// the client's help; not measured. It is sent as plain text.
const INSTRUCTIONS: ResponseTemplate =
    ResponseTemplate { says: Capability::Context, fields: &[("", ResponseField::Context)] };

const PERMISSION: &str = "hookSpecificOutput.permissionDecision";
const PERMISSION_REASON: &str = "hookSpecificOutput.permissionDecisionReason";

/// Denial before a tool runs.
pub(super) const DENY: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[
        (PERMISSION, ResponseField::Text("deny")),
        (PERMISSION_REASON, ResponseField::Reason),
    ],
};

/// Allow before a tool runs.
pub(super) const ALLOW: ResponseTemplate = ResponseTemplate {
    says: Capability::Allow,
    fields: &[
        (PERMISSION, ResponseField::Text("allow")),
        (PERMISSION_REASON, ResponseField::Reason),
    ],
};

/// Question before a tool runs.
pub(super) const ASK: ResponseTemplate = ResponseTemplate {
    says: Capability::Ask,
    fields: &[(PERMISSION, ResponseField::Text("ask")), (PERMISSION_REASON, ResponseField::Reason)],
};

const DEFER: ResponseTemplate = ResponseTemplate {
    says: Capability::Defer,
    fields: &[
        (PERMISSION, ResponseField::Text("defer")),
        (PERMISSION_REASON, ResponseField::Reason),
    ],
};

/// End of the session before a tool runs. The flag alone would let the tool run.
pub(super) const DENY_AND_HALT: ResponseTemplate = ResponseTemplate {
    says: Capability::Halt,
    fields: &[
        ("continue", ResponseField::Flag(false)),
        ("stopReason", ResponseField::Reason),
        (PERMISSION, ResponseField::Text("deny")),
        (PERMISSION_REASON, ResponseField::Reason),
    ],
};

/// Changed input of a tool.
pub(super) const INPUT: ResponseTemplate = ResponseTemplate {
    says: Capability::Input,
    fields: &[("hookSpecificOutput.updatedInput", ResponseField::Input)],
};

/// Changed result of a tool, in the same shape. The model reads the replacement.
const OUTPUT: ResponseTemplate = ResponseTemplate {
    says: Capability::Output,
    fields: &[("hookSpecificOutput.updatedToolOutput", ResponseField::Output)],
};

/// Like [`INPUT`], for events that accept it only together with an allow.
pub(super) const INPUT_ALLOWED: ResponseTemplate = ResponseTemplate {
    says: Capability::Input,
    fields: &[
        (PERMISSION, ResponseField::Text("allow")),
        ("hookSpecificOutput.updatedInput", ResponseField::Input),
    ],
};

const BEHAVIOR: &str = "hookSpecificOutput.decision.behavior";
const BEHAVIOR_MESSAGE: &str = "hookSpecificOutput.decision.message";

/// Denial at a permission prompt.
pub(super) const REFUSE: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[(BEHAVIOR, ResponseField::Text("deny")), (BEHAVIOR_MESSAGE, ResponseField::Reason)],
};

/// Allow at a permission prompt.
pub(super) const GRANT: ResponseTemplate = ResponseTemplate {
    says: Capability::Allow,
    fields: &[(BEHAVIOR, ResponseField::Text("allow"))],
};

/// Question at a permission prompt: an empty output lets the client ask.
pub(super) const ASKS_ANYWAY: ResponseTemplate =
    ResponseTemplate { says: Capability::Ask, fields: &[] };

const INTERRUPT: ResponseTemplate = ResponseTemplate {
    says: Capability::Halt,
    fields: &[
        (BEHAVIOR, ResponseField::Text("deny")),
        (BEHAVIOR_MESSAGE, ResponseField::Reason),
        ("hookSpecificOutput.decision.interrupt", ResponseField::Flag(true)),
    ],
};

const GRANTED_INPUT: ResponseTemplate = ResponseTemplate {
    says: Capability::Input,
    fields: &[
        (BEHAVIOR, ResponseField::Text("allow")),
        ("hookSpecificOutput.decision.updatedInput", ResponseField::Input),
    ],
};

const RETRY: ResponseTemplate = ResponseTemplate {
    says: Capability::Allow,
    fields: &[("hookSpecificOutput.retry", ResponseField::Flag(true))],
};

/// Block whose reason the client displays to no one.
const BLOCK_MUTELY: ResponseTemplate = BLOCK;

const DECLINE: ResponseTemplate = ResponseTemplate {
    says: Capability::Block,
    fields: &[("hookSpecificOutput.action", ResponseField::Text("decline"))],
};

/// HTTP status of an overloaded provider.
const OVERLOADED: u64 = 529;

/// Returns the name of an API error. The client reports an overloaded provider as `server_error`,
/// with the status 529 in `api_error_status` or in its message (`API Error: 529 …`).
#[must_use]
pub fn error_name(fields: &Map<String, Value>, name: String) -> String {
    let texts = ["last_assistant_message", "error_details", "result"];
    let in_text = || {
        let mut texts = texts.iter().filter_map(|it| fields.get(*it)?.as_str());
        texts.find_map(|text| {
            let status = text.split_once("API Error: ")?.1.get(..3)?;
            status.parse::<u64>().ok()
        })
    };
    let status = fields.get("api_error_status").and_then(Value::as_u64).or_else(in_text);
    if name == "server_error" && status == Some(OVERLOADED) {
        "overloaded".to_owned()
    } else {
        name
    }
}

/// Tools of Claude Code. Their names are the neutral names.
pub const TOOLS: [&str; 42] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "LSP",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "Read",
    "ReadMcpResourceTool",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

const MOMENTS: [ClientEvent; 33] = [
    moment("SessionStart", EventKind::SessionStart, &[&CONTEXT, &NOTICE]),
    moment("Setup", EventKind::Setup, &[]),
    moment("InstructionsLoaded", EventKind::InstructionsLoaded, &[]),
    moment("UserPromptSubmit", EventKind::UserPromptSubmit, &[&BLOCK, &HALT, &CONTEXT, &NOTICE]),
    moment("UserPromptExpansion", EventKind::UserPromptExpansion, &[&BLOCK, &CONTEXT, &NOTICE]),
    moment("MessageDisplay", EventKind::MessageDisplay, &[]),
    moment(
        "PreToolUse",
        EventKind::PreToolUse,
        &[&ALLOW, &DEFER, &ASK, &DENY, &DENY_AND_HALT, &CONTEXT, &INPUT, &NOTICE],
    ),
    moment(
        "PermissionRequest",
        EventKind::PermissionRequest,
        &[&GRANT, &ASKS_ANYWAY, &REFUSE, &INTERRUPT, &GRANTED_INPUT, &NOTICE],
    ),
    moment("PermissionDenied", EventKind::PermissionDenied, &[&RETRY, &NOTICE]),
    moment("PostToolUse", EventKind::PostToolUse, &[&BLOCK, &HALT, &CONTEXT, &OUTPUT, &NOTICE]),
    moment(
        "PostToolUseFailure",
        EventKind::PostToolUseFailure,
        &[&BLOCK, &HALT, &CONTEXT, &NOTICE],
    ),
    moment("PostToolBatch", EventKind::PostToolBatch, &[&BLOCK, &HALT, &CONTEXT, &NOTICE]),
    moment("Notification", EventKind::Notification, &[]),
    moment("SubagentStart", EventKind::SubagentStart, &[&CONTEXT, &NOTICE]),
    moment("SubagentStop", EventKind::SubagentStop, &[&BLOCK, &HALT, &NOTICE]),
    moment("TaskCreated", EventKind::TaskCreated, &[&BLOCK, &NOTICE]),
    moment("TaskCompleted", EventKind::TaskCompleted, &[&HALT, &NOTICE]),
    moment("Stop", EventKind::Stop, &[&BLOCK, &HALT, &NOTICE]),
    moment("StopFailure", EventKind::StopFailure, &[]),
    moment("TeammateIdle", EventKind::TeammateIdle, &[&HALT, &NOTICE]),
    moment("ConfigChange", EventKind::ConfigChange, &[&BLOCK_MUTELY]),
    moment("CwdChanged", EventKind::CwdChanged, &[&NOTICE]),
    moment("DirectoryAdded", EventKind::DirectoryAdded, &[&NOTICE]),
    moment("FileChanged", EventKind::FileChanged, &[&NOTICE]),
    moment("WorktreeCreate", EventKind::WorktreeCreate, &[]),
    moment("WorktreeRemove", EventKind::WorktreeRemove, &[]),
    moment("PreCompact", EventKind::PreCompact, &[&BLOCK, &INSTRUCTIONS]),
    moment("PostCompact", EventKind::PostCompact, &[]),
    moment("Elicitation", EventKind::Elicitation, &[&DECLINE, &NOTICE]),
    moment("ElicitationResult", EventKind::ElicitationResult, &[&DECLINE, &NOTICE]),
    moment("SessionEnd", EventKind::SessionEnd, &[]),
    moment("PreModelSwitch", EventKind::PreModelSwitch, &[&ALLOW, &ASK, &DENY, &NOTICE]),
    moment("PostModelSwitch", EventKind::PostModelSwitch, &[&CONTEXT, &NOTICE]),
];

/// Directory of the user's settings.
pub const USER_FOLDER: UserFolder =
    UserFolder { variable: "CLAUDE_CONFIG_DIR", below_home: ".claude" };

/// Settings of the machine: on Linux, and on macOS.
pub const MANAGED_SETTINGS: [&str; 2] = [
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
];

/// Row of this client.
pub const HARNESS: Harness = Harness {
    name: "claude-code",
    title: "Claude Code",
    moments: &MOMENTS,
    // The matcher `Task` still matches it.
    tools: &[("Task", "Agent")],
    inputs: &[],
    silence: "",
    // Other clients use its spelling, too.
    signs: |_| false,
    variable: "",
    process: ProcessSigns {
        variables: &[
            "CLAUDECODE",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_CHILD_SESSION",
        ],
        programs: &["claude"],
        packages: &["@anthropic-ai/claude-code", "claude/versions"],
    },
    absence: AbsenceSigns {
        // `claude -p`, and a session without a user, such as a scheduled one.
        variables: &[("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"), ("CLAUDE_CODE_SESSION_ATTENDED", "0")],
        ..AbsenceSigns::NONE
    },
    reports_blocks: true,
    variable_files: &[
        VariableFile { path: ".claude/settings.json", format: VariableFileFormat::Settings },
        VariableFile { path: ".claude/settings.local.json", format: VariableFileFormat::Settings },
    ],
    transcripts: Some(Transcripts {
        format: TranscriptFormat::ClaudeCode,
        directory: TranscriptDirectory::OfClient("projects"),
    }),
    permission_rules: PermissionRules::ClaudeSettings,
    approves_hooks: false,
    context_bytes_max: usize::MAX,
    neutral: |_, _| true,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_row() {
        let rows: Vec<_> = MOMENTS.iter().map(|it| (it.kind, it.native)).collect();
        let events: Vec<_> =
            EventKind::ALL.iter().map(|it| (Some(*it), it.client_name())).collect();
        assert_eq!(rows, events);
    }
}
