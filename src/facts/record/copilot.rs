//! Copilot's transcript lines: dotted events with `data`, `event` lines, and flat `role` lines.
//!
//! | how a command ended | where Copilot records it |
//! |---|---|
//! | exit code | `tool.execution_complete`: `data.shellExecution.exitCode`, and the last line of the output: `<shellId: K completed with exit code N>`; `success` stays `true` |
//! | not run | `success: false`, `error.message: "Denied by preToolUse hook: …"` |

use std::borrow::Cow;

use super::entry::{Record, RecordEntry, ToolResult};
use super::lenient::{Either, Exit, Flag, or};
use super::output::Output;
use super::wire::{CopilotData, CopilotResult, Line, ToolRequest, joined};

/// Beginning of the error of a call that did not run.
const REFUSED: &str = "Denied by ";

/// Returns whether Copilot wrote a line: `role` without `message`, `event`, or a dotted type.
pub(super) fn is_copilot(line: &Line<'_>) -> bool {
    let dotted = ["user.", "assistant.", "session.", "tool.", "hook."];
    (!line.role.is_empty() && matches!(line.message, Either::None) && line.kind.is_empty())
        || !line.event.is_empty()
        || dotted.iter().any(|start| line.kind.starts_with(start))
}

pub(super) fn record(line: Line<'_>) -> Record<'_> {
    let mut entries = Vec::new();
    let data = match line.data {
        Either::One(data) => *data,
        Either::Text(_) | Either::Many(_) | Either::None => CopilotData {
            content: line.content,
            tool_requests: line.tool_requests,
            tool_call_id: line.tool_call_id,
            ..CopilotData::default()
        },
    };
    let speaker = if line.kind.is_empty() { or(line.role, line.event) } else { line.kind.0 };
    match &*speaker {
        "user" | "user.message" | "user_message" => {
            let text = joined(data.content, |_| true);
            if !text.is_empty() {
                let id = or(line.uuid, line.id);
                entries.push(RecordEntry::Prompt { id, text, queued: false });
            }
        }
        "assistant" | "assistant.message" | "assistant_message" => {
            let text = joined(data.content, |_| true);
            if !text.is_empty() {
                entries.push(RecordEntry::Said(text));
            }
            calls(data.tool_requests, &mut entries);
        }
        "tool" | "tool.execution_complete" | "tool_result" => entries.push(result(data)),
        "hook.start" if &*data.hook_type == "agentStop" => {
            let sent_at = data.input.one().map_or(0, |it| it.timestamp.0);
            entries.push(RecordEntry::Stopping { sent_at });
        }
        "session.compaction_complete" => entries.push(RecordEntry::Compacted),
        _ => {}
    }
    Record { entries, folder: line.cwd.0, branch: line.git_branch.0, ..Record::default() }
}

fn calls<'a>(requests: Either<'a, ToolRequest<'a>>, entries: &mut Vec<RecordEntry<'a>>) {
    let Either::Many(requests) = requests else { return };
    for request in requests {
        let Either::One(request) = request else { continue };
        let ToolRequest { id, name, arguments, function } = *request;
        let (name, input) = match function {
            Either::One(call) => (call.name, call.arguments),
            Either::Text(_) | Either::Many(_) | Either::None => (name, arguments),
        };
        entries.push(RecordEntry::Call { id: id.0, name: name.0, input });
    }
}

fn result<'a>(data: CopilotData<'a>) -> RecordEntry<'a> {
    let text = |value: Either<'a, CopilotResult<'a>>| match value {
        Either::Text(text) => text,
        Either::One(result) => result.content.0,
        Either::Many(_) | Either::None => "".into(),
    };
    let failed = !matches!(data.error, Either::None);
    let error = failed || data.success == Some(Flag(false));
    let text = match (failed, data.content) {
        (true, _) => text(data.error),
        (false, Either::None) => text(data.result),
        (false, content) => joined(content, |_| true),
    };
    let exit_code = match data.shell_execution {
        Either::One(shell) => shell.exit_code.map(|Exit(code)| code),
        Either::Text(_) | Either::Many(_) | Either::None => None,
    };
    let exit_code = exit_code.or_else(|| footer(&text).1);
    // A later `read_bash` contains the end and is not joined with this call, so the call never
    // passes.
    let background = text
        .lines()
        .next_back()
        .is_some_and(|it| it.starts_with("<command with ") && it.contains("still running"));
    let denial = if failed && text.starts_with(REFUSED) { "refused" } else { "" };
    let text = match footer(&text).0 {
        Some(length) => cut(text, length),
        None => text,
    };
    RecordEntry::Result(ToolResult {
        id: data.tool_call_id.0,
        text: Output::Text(text),
        error,
        denial: denial.into(),
        background,
        exit_code,
        ..ToolResult::default()
    })
}

/// Returns the length of the output before the client's last line, and the exit code in that line:
/// `<shellId: 0 completed with exit code 2>`.
fn footer(text: &str) -> (Option<usize>, Option<i32>) {
    let text = text.trim_end();
    let start = text.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..).unwrap_or_default();
    let Some(rest) = line.strip_prefix("<shellId: ") else { return (None, None) };
    let code = rest.split_once("completed with exit code ").map(|(_, code)| code);
    (Some(start), code.and_then(|it| it.trim_end_matches('>').trim().parse().ok()))
}

fn cut(text: Cow<'_, str>, length: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..length).unwrap_or(text)),
        Cow::Owned(mut text) => {
            text.truncate(length);
            Cow::Owned(text)
        }
    }
}
