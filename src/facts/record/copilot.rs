//! Copilot's transcript lines: dotted events with `data`, `event` lines, and flat `role` lines.

use super::lenient::{Either, Flag};
use super::output::Output;
use super::wire::{CopilotData, CopilotResult, Line, ToolRequest};
use super::{Entry, Record, ToolResult, joined, or};

/// Whether a line is Copilot's: `role` without `message`, `event`, or a dotted type.
pub(super) fn is_copilot(line: &Line<'_>) -> bool {
    let dotted = ["user.", "assistant.", "session.", "tool."];
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
                entries.push(Entry::Prompt { id, text, queued: false });
            }
        }
        "assistant" | "assistant.message" | "assistant_message" => {
            let text = joined(data.content, |_| true);
            if !text.is_empty() {
                entries.push(Entry::Said(text));
            }
            calls(data.tool_requests, &mut entries);
        }
        "tool" | "tool.execution_complete" | "tool_result" => entries.push(result(data)),
        "session.compaction_complete" => entries.push(Entry::Compacted),
        _ => {}
    }
    Record { entries, folder: line.cwd.0, branch: line.git_branch.0, ..Record::default() }
}

fn calls<'a>(requests: Either<'a, ToolRequest<'a>>, entries: &mut Vec<Entry<'a>>) {
    let Either::Many(requests) = requests else { return };
    for request in requests {
        let Either::One(request) = request else { continue };
        let ToolRequest { id, name, arguments, function } = *request;
        let (name, input) = match function {
            Either::One(call) => (call.name, call.arguments),
            Either::Text(_) | Either::Many(_) | Either::None => (name, arguments),
        };
        entries.push(Entry::Call { id: id.0, name: name.0, input });
    }
}

fn result<'a>(data: CopilotData<'a>) -> Entry<'a> {
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
    let text = Output::Text(text);
    Entry::Result(ToolResult { id: data.tool_call_id.0, text, error, ..ToolResult::default() })
}
