//! Claude Code 2.1.329: 33 events. What is honoured was measured where the client could be made to
//! report the event, and follows its documentation elsewhere.
//!
//! - `approve` is never said, and neither is a top-level `allow`: no opinion is silence.
//! - `additionalContext` at a stop makes the agent go on, so a stop takes no context.
//! - `continue: false` at `PreToolUse` lets the tool run, so a halt there denies too. At a stop it
//!   is said alone: together with a block the answer of the agent would be lost.
//! - What `WorktreeCreate` prints is taken for a path, so nothing is ever said there.
//! - `TaskCompleted` and `TeammateIdle` refuse by exit code 2 only, which policyd never ends with.

use crate::facts::event::EventKind;
use serde_json::{Map, Value};

use super::{Ability, Field, Harness, Moment, ProcessSigns, Put, Way, moment};

/// The user is told.
pub(super) const NOTICE: Way =
    Way { says: Ability::Notice, fields: &[("systemMessage", Put::Notice)] };

/// A refusal that is followed by its reason.
pub(super) const BLOCK: Way = Way {
    says: Ability::Block,
    fields: &[("decision", Put::Text("block")), ("reason", Put::Reason)],
};

const HALTS: [Field; 2] = [("continue", Put::Flag(false)), ("stopReason", Put::Reason)];

/// The end of the session.
pub(super) const HALT: Way = Way { says: Ability::Halt, fields: &HALTS };

/// The agent is told.
pub(super) const CONTEXT: Way = Way {
    says: Ability::Context,
    fields: &[("hookSpecificOutput.additionalContext", Put::Context)],
};

/// What a hook prints before a compaction is added to the instructions of whoever summarises; the
/// client's own help says so, and it was not measured. There it is said alone, as it is.
const INSTRUCTIONS: Way = Way { says: Ability::Context, fields: &[("", Put::Context)] };

const PERMISSION: &str = "hookSpecificOutput.permissionDecision";
const PERMISSION_REASON: &str = "hookSpecificOutput.permissionDecisionReason";

/// A refusal before a tool runs.
pub(super) const DENY: Way = Way {
    says: Ability::Block,
    fields: &[(PERMISSION, Put::Text("deny")), (PERMISSION_REASON, Put::Reason)],
};

/// Let through before a tool runs.
pub(super) const ALLOW: Way = Way {
    says: Ability::Allow,
    fields: &[(PERMISSION, Put::Text("allow")), (PERMISSION_REASON, Put::Reason)],
};

/// A question before a tool runs.
pub(super) const ASK: Way = Way {
    says: Ability::Ask,
    fields: &[(PERMISSION, Put::Text("ask")), (PERMISSION_REASON, Put::Reason)],
};

const DEFER: Way = Way {
    says: Ability::Defer,
    fields: &[(PERMISSION, Put::Text("defer")), (PERMISSION_REASON, Put::Reason)],
};

/// The end of the session before a tool runs: the flag alone would let the tool run.
pub(super) const DENY_AND_HALT: Way = Way {
    says: Ability::Halt,
    fields: &[
        ("continue", Put::Flag(false)),
        ("stopReason", Put::Reason),
        (PERMISSION, Put::Text("deny")),
        (PERMISSION_REASON, Put::Reason),
    ],
};

/// Another input for a tool.
pub(super) const INPUT: Way =
    Way { says: Ability::Input, fields: &[("hookSpecificOutput.updatedInput", Put::Input)] };

/// A replacement for the result of a tool, in the same shape. The model reads the replacement.
const OUTPUT: Way =
    Way { says: Ability::Output, fields: &[("hookSpecificOutput.updatedToolOutput", Put::Output)] };

/// The same as [`INPUT`], where it is taken together with an allow only.
pub(super) const INPUT_ALLOWED: Way = Way {
    says: Ability::Input,
    fields: &[(PERMISSION, Put::Text("allow")), ("hookSpecificOutput.updatedInput", Put::Input)],
};

const BEHAVIOR: &str = "hookSpecificOutput.decision.behavior";
const BEHAVIOR_MESSAGE: &str = "hookSpecificOutput.decision.message";

/// The answer of a permission prompt: no.
pub(super) const REFUSE: Way = Way {
    says: Ability::Block,
    fields: &[(BEHAVIOR, Put::Text("deny")), (BEHAVIOR_MESSAGE, Put::Reason)],
};

/// The answer of a permission prompt: yes.
pub(super) const GRANT: Way =
    Way { says: Ability::Allow, fields: &[(BEHAVIOR, Put::Text("allow"))] };

/// The prompt is about to be shown: silence asks.
pub(super) const ASKS_ANYWAY: Way = Way { says: Ability::Ask, fields: &[] };

const INTERRUPT: Way = Way {
    says: Ability::Halt,
    fields: &[
        (BEHAVIOR, Put::Text("deny")),
        (BEHAVIOR_MESSAGE, Put::Reason),
        ("hookSpecificOutput.decision.interrupt", Put::Flag(true)),
    ],
};

const GRANTED_INPUT: Way = Way {
    says: Ability::Input,
    fields: &[
        (BEHAVIOR, Put::Text("allow")),
        ("hookSpecificOutput.decision.updatedInput", Put::Input),
    ],
};

const RETRY: Way =
    Way { says: Ability::Allow, fields: &[("hookSpecificOutput.retry", Put::Flag(true))] };

/// The reason of this refusal is shown to nobody.
const BLOCK_MUTELY: Way = BLOCK;

const DECLINE: Way =
    Way { says: Ability::Block, fields: &[("hookSpecificOutput.action", Put::Text("decline"))] };

/// HTTP status of a provider that is overloaded.
const OVERLOADED: u64 = 529;

/// The name of an API error. The client reports an overloaded provider as `server_error`, with the
/// status 529 in `api_error_status` or in its message (`API Error: 529 …`).
#[must_use]
pub fn error_name(fields: &Map<String, Value>, name: String) -> String {
    let texts = ["last_assistant_message", "error_details", "result"];
    let in_text = || {
        let mut texts = texts.iter().filter_map(|it| fields.get(*it)?.as_str());
        texts.find_map(|it| {
            let status = it.split_once("API Error: ")?.1.get(..3)?;
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

/// Tools of Claude Code, whose names are the neutral ones.
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

const MOMENTS: [Moment; 33] = [
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

/// The row.
pub const HARNESS: Harness = Harness {
    name: "claude-code",
    title: "Claude Code",
    moments: &MOMENTS,
    // The matcher `Task` still means it.
    tools: &[("Task", "Agent")],
    inputs: &[],
    silence: "",
    // Its spelling is everybody's.
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
