//! Shapes of transcript lines as clients write them. One struct covers all clients, so that a line
//! is parsed once. `claude`, `copilot`, `codex` and `gemini` define the meaning of the fields.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lenient::{Either, Exit, Flag, LenientCount, Text};
use super::output::Output;

/// One line of any client.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Line<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub subtype: Text<'a>,
    #[serde(borrow)]
    pub uuid: Text<'a>,
    #[serde(borrow)]
    pub prompt_id: Text<'a>,
    pub is_sidechain: Flag,
    pub is_meta: Flag,
    pub is_compact_summary: Flag,
    pub is_visible_in_transcript_only: Flag,
    pub turn_companion: Flag,
    pub is_api_error_message: Flag,
    #[serde(borrow)]
    pub timestamp: Text<'a>,
    #[serde(borrow)]
    pub agent_id: Text<'a>,
    #[serde(borrow)]
    pub entrypoint: Text<'a>,
    #[serde(borrow)]
    pub forked_from: Either<'a, Empty>,
    #[serde(borrow)]
    pub origin: Either<'a, MessageOrigin<'a>>,
    #[serde(borrow)]
    pub prompt_source: Text<'a>,
    #[serde(borrow)]
    pub permission_mode: Text<'a>,
    #[serde(borrow)]
    pub cwd: Text<'a>,
    #[serde(borrow)]
    pub git_branch: Text<'a>,
    #[serde(borrow)]
    pub message: Either<'a, ApiMessage<'a>>,
    #[serde(borrow)]
    pub tool_use_result: Either<'a, ToolUseResult<'a>>,
    #[serde(borrow)]
    pub tool_denial_kind: Text<'a>,
    #[serde(borrow)]
    pub attachment: Either<'a, Attachment<'a>>,
    // Copilot
    #[serde(borrow)]
    pub role: Text<'a>,
    #[serde(borrow)]
    pub event: Text<'a>,
    #[serde(borrow)]
    pub data: Either<'a, CopilotData<'a>>,
    #[serde(rename = "tool_calls", borrow)]
    pub tool_requests: Either<'a, ToolRequest<'a>>,
    #[serde(rename = "tool_call_id", borrow)]
    pub tool_call_id: Text<'a>,
    // flat records: one block per line
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub input: Either<'a, Input<'a>>,
    #[serde(borrow)]
    pub content: Either<'a, Block<'a>>,
    #[serde(rename = "tool_use_id", borrow)]
    pub tool_use_id: Text<'a>,
    #[serde(rename = "is_error")]
    pub is_error: Flag,
    // Codex
    #[serde(borrow)]
    pub payload: Either<'a, Payload<'a>>,
    // Gemini
    #[serde(borrow)]
    pub tool_calls: Either<'a, GeminiCall<'a>>,
    #[serde(borrow)]
    pub model: Text<'a>,
    #[serde(borrow)]
    pub tokens: Either<'a, GeminiTokens>,
    #[serde(borrow)]
    pub session_id: Text<'a>,
    #[serde(rename = "$set", borrow)]
    pub set: Either<'a, Empty>,
}

/// An object whose fields are ignored.
#[derive(Debug, Default, Deserialize)]
pub struct Empty {}

/// Origin of a Claude Code user message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageOrigin<'a> {
    #[serde(borrow)]
    pub kind: Text<'a>,
}

/// API message of Claude Code.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ApiMessage<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub model: Text<'a>,
    #[serde(borrow)]
    pub content: Either<'a, Block<'a>>,
    #[serde(borrow)]
    pub usage: Either<'a, ApiUsage>,
}

/// Token usage of an API message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ApiUsage {
    pub input_tokens: LenientCount,
    pub output_tokens: LenientCount,
    pub cache_read_input_tokens: LenientCount,
    pub cache_creation_input_tokens: LenientCount,
    // Codex
    pub cached_input_tokens: LenientCount,
    pub total_tokens: LenientCount,
}

/// Content block of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub input: Either<'a, Input<'a>>,
    #[serde(borrow)]
    pub tool_use_id: Text<'a>,
    pub is_error: Flag,
    #[serde(borrow)]
    pub content: Output<'a>,
}

/// Input of a tool, with the fields of all tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Input<'a> {
    #[serde(borrow)]
    pub command: Either<'a, Empty>,
    #[serde(borrow)]
    pub cmd: Either<'a, Empty>,
    #[serde(
        alias = "notebook_path",
        alias = "filePath",
        alias = "filename",
        alias = "relative_path",
        alias = "absolute_path",
        alias = "target_file",
        borrow
    )]
    pub file_path: Text<'a>,
    #[serde(borrow)]
    pub path: Text<'a>,
    #[serde(alias = "file_text", borrow)]
    pub content: Text<'a>,
    #[serde(alias = "old_str", alias = "oldString", borrow)]
    pub old_string: Text<'a>,
    #[serde(alias = "new_str", alias = "new_source", alias = "newString", borrow)]
    pub new_string: Text<'a>,
    #[serde(borrow)]
    pub edits: Either<'a, Replacement<'a>>,
    #[serde(alias = "patch", alias = "patchText", borrow)]
    pub input: Text<'a>,
    #[serde(borrow)]
    pub todos: Either<'a, TodoInput<'a>>,
    #[serde(borrow)]
    pub subject: Text<'a>,
    #[serde(alias = "task_id", rename = "taskId", borrow)]
    pub task_id: Text<'a>,
    #[serde(borrow)]
    pub status: Text<'a>,
    #[serde(borrow)]
    pub skill: Text<'a>,
    #[serde(borrow)]
    pub args: Text<'a>,
    #[serde(alias = "agent_type", alias = "agentType", alias = "agent_name", borrow)]
    pub subagent_type: Text<'a>,
    #[serde(borrow)]
    pub description: Text<'a>,
    #[serde(borrow)]
    pub pattern: Text<'a>,
    #[serde(borrow)]
    pub query: Text<'a>,
    #[serde(borrow)]
    pub url: Text<'a>,
    #[serde(alias = "bash_id", alias = "shell_id", alias = "shellId", borrow)]
    pub session_id: Text<'a>,
}

/// Fields of the input of a call that facts keep.
pub const KEPT_FIELDS: &[&str] = &[
    "args",
    "command",
    "description",
    "file_path",
    "path",
    "pattern",
    "query",
    "skill",
    "subagent_type",
    "url",
];

impl Input<'_> {
    /// Returns the fields in [`KEPT_FIELDS`] that the input has.
    pub fn kept_fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KEPT_FIELDS.iter().filter_map(|name| {
            let text = match *name {
                "args" => &*self.args,
                "command" => self.command.text(),
                "description" => &*self.description,
                "file_path" => &*self.file_path,
                "path" => &*self.path,
                "pattern" => &*self.pattern,
                "query" => &*self.query,
                "skill" => &*self.skill,
                "subagent_type" => &*self.subagent_type,
                "url" => &*self.url,
                _ => "",
            };
            (!text.is_empty()).then_some((*name, text))
        })
    }
}

/// One replacement of an edit tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Replacement<'a> {
    #[serde(alias = "oldText", borrow)]
    pub old_string: Text<'a>,
    #[serde(alias = "newText", borrow)]
    pub new_string: Text<'a>,
}

/// Item of a todo list in the input of a todo tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TodoInput<'a> {
    #[serde(alias = "description", alias = "title", borrow)]
    pub content: Text<'a>,
    #[serde(borrow)]
    pub status: Text<'a>,
}

/// Claude Code's result of a tool call, beside its content block.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolUseResult<'a> {
    #[serde(borrow)]
    pub stdout: Output<'a>,
    #[serde(borrow)]
    pub stderr: Output<'a>,
    pub interrupted: Flag,
    #[serde(borrow)]
    pub background_task_id: Text<'a>,
    /// Whether a subagent goes on in the background.
    pub is_async: Flag,
    #[serde(borrow)]
    pub agent_id: Text<'a>,
    #[serde(borrow)]
    pub task: Either<'a, CreatedTask<'a>>,
}

/// Task that a tool created.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CreatedTask<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
}

/// Attachment line of Claude Code.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Attachment<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub prompt: Either<'a, Block<'a>>,
    #[serde(borrow)]
    pub command_mode: Text<'a>,
    #[serde(borrow)]
    pub origin: Either<'a, MessageOrigin<'a>>,
}

/// Copilot: the `data` of a dotted event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CopilotData<'a> {
    #[serde(borrow)]
    pub content: Either<'a, Block<'a>>,
    #[serde(borrow)]
    pub tool_requests: Either<'a, ToolRequest<'a>>,
    #[serde(borrow)]
    pub tool_call_id: Text<'a>,
    pub success: Option<Flag>,
    #[serde(borrow)]
    pub result: Either<'a, CopilotResult<'a>>,
    #[serde(borrow)]
    pub error: Either<'a, CopilotResult<'a>>,
    #[serde(borrow)]
    pub shell_execution: Either<'a, CopilotShell>,
    #[serde(borrow)]
    pub hook_type: Text<'a>,
    #[serde(borrow)]
    pub input: Either<'a, CopilotHookInput>,
}

/// Copilot: the payload of a hook.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CopilotHookInput {
    pub timestamp: LenientCount,
}

/// Copilot: how a command ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CopilotShell {
    pub exit_code: Option<Exit>,
}

/// Copilot: the result of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CopilotResult<'a> {
    #[serde(alias = "message", borrow)]
    pub content: Text<'a>,
}

/// Copilot: a tool call of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolRequest<'a> {
    #[serde(alias = "toolCallId", borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(alias = "input", borrow)]
    pub arguments: Either<'a, Input<'a>>,
    #[serde(borrow)]
    pub function: Either<'a, FunctionCall<'a>>,
}

/// Copilot: the function of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FunctionCall<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub arguments: Either<'a, Input<'a>>,
}

/// Codex: the payload of a rollout line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Payload<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub role: Text<'a>,
    #[serde(borrow)]
    pub content: Either<'a, Block<'a>>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub call_id: Text<'a>,
    #[serde(borrow)]
    pub arguments: Either<'a, Input<'a>>,
    #[serde(borrow)]
    pub input: Text<'a>,
    #[serde(borrow)]
    pub action: Either<'a, Input<'a>>,
    #[serde(borrow)]
    pub output: Either<'a, CodexOutput<'a>>,
    #[serde(borrow)]
    pub cwd: Text<'a>,
    #[serde(borrow)]
    pub model: Text<'a>,
    #[serde(borrow)]
    pub git: Either<'a, CodexGit<'a>>,
    #[serde(borrow)]
    pub info: Either<'a, CodexTokens<'a>>,
    #[serde(borrow)]
    pub item: Either<'a, CodexItem<'a>>,
}

/// Codex: an executed action, from `item_completed`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodexItem<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub status: Text<'a>,
    #[serde(borrow)]
    pub command: Either<'a, Empty>,
    pub exit_code: Option<Exit>,
    #[serde(borrow)]
    pub aggregated_output: Output<'a>,
    #[serde(borrow)]
    pub changes: Option<&'a RawValue>,
    #[serde(borrow)]
    pub stderr: Output<'a>,
}

/// Codex: the change of one file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodexChange<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub content: Text<'a>,
    #[serde(borrow)]
    pub unified_diff: Text<'a>,
    #[serde(borrow)]
    pub move_path: Text<'a>,
}

/// Codex: an output stored as JSON in a text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodexOutput<'a> {
    #[serde(alias = "output", borrow)]
    pub content: Text<'a>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub metadata: Either<'a, CodexExit<'a>>,
}

/// Codex: the metadata of an output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodexExit<'a> {
    #[serde(borrow)]
    pub exit_code: Text<'a>,
}

/// Codex: the git state at the start.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodexGit<'a> {
    #[serde(borrow)]
    pub branch: Text<'a>,
}

/// Codex: token usage.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CodexTokens<'a> {
    #[serde(borrow)]
    pub total_token_usage: Either<'a, ApiUsage>,
    #[serde(borrow)]
    pub last_token_usage: Either<'a, ApiUsage>,
}

/// Gemini: a call with its result.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GeminiCall<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub args: Either<'a, Input<'a>>,
    #[serde(borrow)]
    pub status: Text<'a>,
    #[serde(borrow)]
    pub result_display: Text<'a>,
    #[serde(borrow)]
    pub result: Either<'a, GeminiPart<'a>>,
}

/// Gemini: the part of a result that the model reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GeminiPart<'a> {
    #[serde(borrow)]
    pub function_response: Either<'a, GeminiFunction<'a>>,
}

/// Gemini: a function response.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GeminiFunction<'a> {
    #[serde(borrow)]
    pub response: Either<'a, GeminiResponse<'a>>,
}

/// Gemini: the response of a function.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GeminiResponse<'a> {
    #[serde(borrow)]
    pub output: Text<'a>,
    #[serde(borrow)]
    pub error: Text<'a>,
}

/// Gemini: token usage of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GeminiTokens {
    pub input: LenientCount,
    pub output: LenientCount,
    pub cached: LenientCount,
}

/// Joins the wanted texts of a content.
pub(super) fn joined<'a>(
    content: Either<'a, Block<'a>>,
    wanted: impl Fn(&str) -> bool,
) -> Cow<'a, str> {
    let mut out: Cow<'a, str> = Cow::Borrowed("");
    let mut add = |text: Cow<'a, str>| {
        if text.is_empty() || !wanted(&text) {
            return;
        }
        if out.is_empty() {
            out = text;
        } else {
            let whole = out.to_mut();
            whole.push('\n');
            whole.push_str(&text);
        }
    };
    match content {
        Either::Text(text) => add(text),
        Either::One(block) => add(block.text.0),
        Either::Many(blocks) => {
            for block in blocks {
                match block {
                    Either::Text(text) => add(text),
                    Either::One(block) => add(block.text.0),
                    Either::Many(_) | Either::None => {}
                }
            }
        }
        Either::None => {}
    }
    out
}
