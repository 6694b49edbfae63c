//! Gemini's session lines: messages that a later line with the same id replaces.
//!
//! | how a command ended | where Gemini records it |
//! |---|---|
//! | exit code | `result[].functionResponse.response.output`: a line `Exit Code: N` behind the output, absent for 0; `status` stays `success` and `resultDisplay` leaves it out |
//! | ended by a signal | the same place: `Signal: N` |
//! | not run | `status: error` with the reason of the hook or of the policy, `status: cancelled` |

use std::borrow::Cow;

use super::entry::{Record, RecordEntry, TokenUse, ToolResult};
use super::lenient::Either;
use super::output::Output;
use super::wire::{GeminiCall, GeminiPart, Line, joined};

/// Lines that the client appends to the output of a command.
const FOOTER: [&str; 3] = ["Process Group PGID: ", "Background PIDs: ", "</untrusted_context>"];
/// Part of the error of a call that did not run.
const REFUSED: &str = "blocked by hook";

/// Returns whether Gemini wrote a line: a message without `message`, a `$set`, or the header.
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
                entries.push(RecordEntry::Prompt { id: id.clone(), text, queued: false });
            }
        }
        "gemini" => {
            let text = joined(line.content, |_| true);
            if !text.is_empty() {
                entries.push(RecordEntry::Said(text));
            }
            if let Either::One(tokens) = line.tokens {
                entries.push(RecordEntry::Usage(TokenUse {
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

fn call_and_result<'a>(call: Either<'a, GeminiCall<'a>>, entries: &mut Vec<RecordEntry<'a>>) {
    let Either::One(call) = call else { return };
    let GeminiCall { id, name, args, status, result_display, result } = *call;
    entries.push(RecordEntry::Call { id: id.0.clone(), name: name.0, input: args });
    let (output, problem) = response(result);
    let (error, denial) = match &*status {
        "success" => (false, ""),
        "error" if problem.contains(REFUSED) => (true, "refused"),
        "error" => (true, ""),
        "cancelled" => (true, "cancelled"),
        _ => return, // still running
    };
    let ended = footer(&output);
    let background = output.trim_start().starts_with("Command moved to background");
    let text = if !result_display.is_empty() {
        result_display.0
    } else if output.is_empty() {
        problem
    } else {
        output
    };
    entries.push(RecordEntry::Result(ToolResult {
        id: id.0,
        text: Output::Text(text),
        error,
        denial: denial.into(),
        interrupted: ended.signal,
        background,
        exit_code: ended.exit_code,
        ..ToolResult::default()
    }));
}

/// Returns the output and the error of a call, as the model reads them.
fn response<'a>(result: Either<'a, GeminiPart<'a>>) -> (Cow<'a, str>, Cow<'a, str>) {
    for part in result.into_elements() {
        if let Either::One(part) = part
            && let Either::One(function) = part.function_response
            && let Either::One(response) = function.response
        {
            return (response.output.0, response.error.0);
        }
    }
    Default::default()
}

/// How a command ended, by the lines that the client appends to its output.
#[derive(Debug, Default, PartialEq, Eq)]
struct Footer {
    exit_code: Option<i32>,
    signal: bool,
}

fn footer(output: &str) -> Footer {
    let mut footer = Footer::default();
    for line in output.lines().rev() {
        let line = line.trim();
        if let Some(code) = line.strip_prefix("Exit Code: ") {
            footer.exit_code = code.trim().parse().ok();
            break;
        }
        if let Some(signal) = line.strip_prefix("Signal: ") {
            footer.signal = signal.trim() != "(none)";
        } else if !FOOTER.iter().any(|start| line.starts_with(start)) && !line.is_empty() {
            break;
        }
    }
    footer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_stands_among_the_last_lines() {
        let code = |text: &str| footer(text).exit_code;
        assert_eq!(
            code("Output: a\nExit Code: 2\nProcess Group PGID: 7\n</untrusted_context>"),
            Some(2)
        );
        assert_eq!(code("Output: a\nExit Code: 0"), Some(0));
        assert_eq!(code("Output: Exit Code: 2\nall passed\nProcess Group PGID: 7"), None);
        assert_eq!(code("Exit Code: 2\nand more output"), None);
        assert!(footer("Output: a\nSignal: 9\nProcess Group PGID: 7").signal);
        assert!(!footer("Output: a\nExit Code: 1\nSignal: (none)").signal);
    }
}
