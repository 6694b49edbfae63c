//! Codex's rollout lines: `response_item` and a few others, each with a `payload`.

use std::borrow::Cow;

use super::lenient::{Either, Text};
use super::output::Output;
use super::wire::{CodexOutput, Input, Line, Payload, Usage};
use super::{Entry, Record, TokenUse, ToolResult, joined};

pub(super) fn record(line: Line<'_>) -> Record<'_> {
    let mut record = Record::default();
    let Either::One(payload) = line.payload else { return record };
    match (&*line.kind, &*payload.kind) {
        ("session_meta" | "turn_context", _) => {
            record.folder = payload.cwd.0;
            if let Either::One(git) = payload.git {
                record.branch = git.branch.0;
            }
        }
        ("compacted", _) => record.entries.push(Entry::Compacted),
        ("event_msg", "token_count") => record.entries.extend(usage(&payload)),
        ("response_item", _) => record.entries.extend(item(*payload)),
        _ => {}
    }
    record
}

fn item(payload: Payload<'_>) -> Option<Entry<'_>> {
    let id = payload.call_id.0;
    match &*payload.kind {
        "message" if &*payload.role == "user" => {
            let text = joined(payload.content, |text| !text.starts_with(['<', '#']));
            (!text.is_empty()).then_some(Entry::Prompt { id: payload.id.0, text, queued: false })
        }
        "message" if &*payload.role == "assistant" => {
            let text = joined(payload.content, |_| true);
            (!text.is_empty()).then_some(Entry::Said(text))
        }
        "function_call" => Some(Entry::Call { id, name: payload.name.0, input: payload.arguments }),
        "custom_tool_call" => {
            let input = Either::One(Box::new(Input { input: payload.input, ..Input::default() }));
            Some(Entry::Call { id, name: payload.name.0, input })
        }
        "local_shell_call" => {
            Some(Entry::Call { id, name: Cow::Borrowed("shell"), input: payload.action })
        }
        "function_call_output" | "custom_tool_call_output" => Some(output(id, payload.output)),
        _ => None,
    }
}

fn output<'a>(id: Cow<'a, str>, output: Either<'a, CodexOutput<'a>>) -> Entry<'a> {
    let (text, code) = match output {
        Either::Text(text) => match nested_output(&text) {
            Some((inner, code)) => (Cow::Owned(inner), code),
            None => {
                let code = exit_code(&text);
                (text, code)
            }
        },
        Either::One(output) => {
            let CodexOutput { content, metadata, .. } = *output;
            let code = metadata.one().and_then(|metadata| metadata.exit_code.parse().ok());
            let code = code.or_else(|| exit_code(&content));
            (content.0, code)
        }
        Either::Many(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(Either::one).map(|b| &*b.text).collect();
            let text = texts.join("\n");
            let code = exit_code(&text);
            (Cow::Owned(text), code)
        }
        Either::None => (Cow::Borrowed(""), None),
    };
    let error = code.is_some_and(|code| code != 0);
    let text = Output::Text(text);
    Entry::Result(ToolResult { id, text, error, exit_code: code, ..ToolResult::default() })
}

/// Older versions write `{"output": …, "metadata": {"exit_code": …}}` into the text.
fn nested_output(text: &str) -> Option<(String, Option<i32>)> {
    if !text.starts_with('{') {
        return None;
    }
    let inner: CodexOutput<'_> = serde_json::from_str(text).ok()?;
    let code = inner.metadata.one()?.exit_code.parse().ok();
    Some((inner.content.0.into_owned(), code))
}

/// The exit code named in the lines before the output proper.
fn exit_code(text: &str) -> Option<i32> {
    const HEAD_LINES: usize = 8;
    text.lines().take(HEAD_LINES).take_while(|line| !line.starts_with("Output:")).find_map(|line| {
        let code = line
            .strip_prefix("Process exited with code ")
            .or_else(|| line.strip_prefix("Exit code: "))?;
        code.trim().parse().ok()
    })
}

/// Input counts what was cached too; the running total tells events of one call apart.
fn usage<'a>(payload: &Payload<'a>) -> Option<Entry<'a>> {
    let info = payload.info.one()?;
    let last: &Usage = info.last_token_usage.one()?;
    let total = info.total_token_usage.one()?.total_tokens.0;
    let Text(model) = payload.model.clone();
    Some(Entry::Usage(TokenUse {
        id: Cow::Owned(format!("total {total}")),
        model,
        input: last.input_tokens.0.saturating_sub(last.cached_input_tokens.0),
        output: last.output_tokens.0,
        cache_read: last.cached_input_tokens.0,
        cache_creation: 0,
    }))
}
