//! Gemini's session lines: messages that a later line with the same id replaces.

use super::lenient::Either;
use super::output::Output;
use super::wire::{GeminiCall, Line};
use super::{Entry, Record, TokenUse, ToolResult, joined};

/// Whether a line is Gemini's: a message without `message`, a `$set`, or the header.
pub(super) fn is_gemini(line: &Line<'_>) -> bool {
    let message = matches!(line.message, Either::None) && !line.id.is_empty();
    (&*line.kind == "gemini" && message)
        || (&*line.kind == "user" && message && line.uuid.is_empty())
        || line.set.one().is_some()
        || (line.kind.is_empty() && !line.session_id.is_empty())
}

pub(super) fn record(line: Line<'_>) -> Record<'_> {
    let mut entries = Vec::new();
    let id = line.id.0;
    match &*line.kind {
        "user" => {
            let text = joined(line.content, |text| !text.starts_with("<session_context>"));
            if !text.is_empty() {
                entries.push(Entry::Prompt { id: id.clone(), text, queued: false });
            }
        }
        "gemini" => {
            let text = joined(line.content, |_| true);
            if !text.is_empty() {
                entries.push(Entry::Said(text));
            }
            if let Either::One(tokens) = line.tokens {
                entries.push(Entry::Usage(TokenUse {
                    id: id.clone(),
                    model: line.model.0,
                    input: tokens.input.0.saturating_sub(tokens.cached.0),
                    output: tokens.output.0,
                    cache_read: tokens.cached.0,
                    cache_creation: 0,
                }));
            }
            if let Either::Many(calls) = line.tool_calls {
                calls.into_iter().for_each(|call| call_and_result(call, &mut entries));
            }
        }
        _ => {}
    }
    Record { entries, replaces: id, ..Record::default() }
}

fn call_and_result<'a>(call: Either<'a, GeminiCall<'a>>, entries: &mut Vec<Entry<'a>>) {
    let Either::One(call) = call else { return };
    let GeminiCall { id, name, args, status, result_display } = *call;
    entries.push(Entry::Call { id: id.0.clone(), name: name.0, input: args });
    let (error, denial) = match &*status {
        "success" => (false, ""),
        "error" => (true, ""),
        "cancelled" => (true, "cancelled"),
        _ => return, // still running
    };
    entries.push(Entry::Result(ToolResult {
        id: id.0,
        text: Output::Text(result_display.0),
        error,
        denial: denial.into(),
        ..ToolResult::default()
    }));
}
