//! Codex's rollout lines, each with a `payload`. Codex records an action up to twice with the same
//! id: as the model's call with its output (`response_item`), and as the executed action
//! (`item_completed`). In code mode the model's only tool is `exec`, and only the items contain
//! commands and files.
//!
//! | how a command ended | where Codex records it |
//! |---|---|
//! | exit code | `item_completed`: `exit_code`; `function_call_output`: `Process exited with code N`, `Exit code: N` |
//! | still running | `function_call_output`: `Process running with session ID S`; the end comes as an item, or as the output of `write_stdin` for that session |
//! | not run | `item_completed`: `status: declined`; output: `… blocked by PreToolUse hook: …`, `rejected: …` |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::entry::{Record, RecordEntry, TokenUse, ToolResult};
use super::lenient::{Either, Exit, Text};
use super::output::Output;
use super::wire::{
    ApiUsage, Block, CodexChange, CodexItem, CodexOutput, Empty, Input, Line, Payload, joined,
};

/// Beginnings of outputs of calls that did not run.
const REFUSED: [&str; 3] =
    ["Command blocked by PreToolUse hook", "Tool call blocked by PreToolUse hook", "rejected: "];
/// Beginning of the message with the reason of a hook that blocked a stop.
const HOOK_PROMPT: &str = "<hook_prompt";
/// Beginnings of outputs of calls that failed before they had an effect.
const NOT_DONE: [&str; 2] = ["exec_command failed", "apply_patch verification failed"];

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
        ("compacted", _) => record.entries.push(RecordEntry::Compacted),
        ("event_msg", "token_count") => record.entries.extend(usage(&payload)),
        ("event_msg", "item_completed") => {
            if let Either::One(item) = payload.item {
                record.entries.extend(completed(*item));
            }
        }
        ("response_item", _) => record.entries.extend(item(*payload)),
        _ => {}
    }
    record
}

fn item(payload: Payload<'_>) -> Option<RecordEntry<'_>> {
    let id = payload.call_id.0;
    match &*payload.kind {
        "message" if &*payload.role == "user" && is_hook_prompt(&payload.content) => {
            let feedback = Some(joined(payload.content, |_| true));
            Some(RecordEntry::Stopped { feedback })
        }
        "message" if &*payload.role == "user" => {
            let text = joined(payload.content, |text| !text.starts_with(['<', '#']));
            (!text.is_empty()).then_some(RecordEntry::Prompt {
                id: payload.id.0,
                text,
                queued: false,
            })
        }
        "message" if &*payload.role == "assistant" => {
            let text = joined(payload.content, |_| true);
            (!text.is_empty()).then_some(RecordEntry::Said(text))
        }
        "function_call" => {
            Some(RecordEntry::Call { id, name: payload.name.0, input: payload.arguments })
        }
        "custom_tool_call" => {
            let input = Either::One(Box::new(Input { input: payload.input, ..Input::default() }));
            Some(RecordEntry::Call { id, name: payload.name.0, input })
        }
        "local_shell_call" => {
            Some(RecordEntry::Call { id, name: Cow::Borrowed("shell"), input: payload.action })
        }
        "function_call_output" | "custom_tool_call_output" => Some(output(id, payload.output)),
        _ => None,
    }
}

fn is_hook_prompt(content: &Either<'_, Block<'_>>) -> bool {
    let first = content.elements().next();
    first.and_then(Either::one).is_some_and(|block| block.text.starts_with(HOOK_PROMPT))
}

fn output<'a>(id: Cow<'a, str>, output: Either<'a, CodexOutput<'a>>) -> RecordEntry<'a> {
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
    let starts = |beginnings: &[&str]| beginnings.iter().any(|start| text.starts_with(start));
    let denial = if starts(&REFUSED) { "refused" } else { "" };
    let error = code.is_some_and(|code| code != 0) || starts(&NOT_DONE);
    let running = running_session(&text);
    RecordEntry::Result(ToolResult {
        id,
        text: Output::Text(text),
        error,
        denial: denial.into(),
        running: running.into(),
        exit_code: code,
        ..ToolResult::default()
    })
}

/// Converts an action that ended, with its result. Other types of items repeat `response_item`
/// lines.
fn completed(item: CodexItem<'_>) -> Option<RecordEntry<'_>> {
    let CodexItem { kind, id, status, command, exit_code, aggregated_output, changes, stderr } =
        item;
    let (name, input, text) = match &*kind {
        "CommandExecution" => {
            let command = script(command);
            ("exec_command", Input { command, ..Input::default() }, aggregated_output)
        }
        "FileChange" => {
            let input = patch(changes.map_or("{}", |it| it.get())).into();
            ("apply_patch", Input { input: Text(input), ..Input::default() }, stderr)
        }
        _ => return None,
    };
    let denial = if &*status == "declined" { "declined" } else { "" };
    let result = ToolResult {
        id: id.0,
        text,
        error: &*status == "failed",
        denial: denial.into(),
        exit_code: exit_code.map(|Exit(code)| code),
        ..ToolResult::default()
    };
    Some(RecordEntry::Done { name: name.into(), input: Either::One(Box::new(input)), result })
}

/// Returns the command line of `["/bin/bash", "-lc", TEXT]`. Other argument lists do not change.
fn script<'a>(command: Either<'a, Empty>) -> Either<'a, Empty> {
    let Either::Many(mut words) = command else { return command };
    let option = match words.get(1) {
        Some(Either::Text(option)) if words.len() == 3 => option.as_ref(),
        _ => "",
    };
    match option {
        "-lc" | "-c" => words.pop().unwrap_or_default(),
        _ => Either::Many(words),
    }
}

/// Converts the changes of an item to the patch text of `apply_patch`.
fn patch(changes: &str) -> String {
    let changes: BTreeMap<Cow<'_, str>, CodexChange<'_>> =
        serde_json::from_str(changes).unwrap_or_default();
    let mut patch = String::new();
    let mut add = |line: std::fmt::Arguments<'_>| {
        // Writing into a string cannot fail.
        let _written = writeln!(patch, "{line}");
    };
    for (path, change) in &changes {
        match &*change.kind {
            "add" => {
                add(format_args!("*** Add File: {path}"));
                change.content.lines().for_each(|line| add(format_args!("+{line}")));
            }
            "delete" => add(format_args!("*** Delete File: {path}")),
            _ => {
                add(format_args!("*** Update File: {path}"));
                let lines = change.unified_diff.lines();
                let lines = lines.filter(|it| !it.starts_with("--- ") && !it.starts_with("+++ "));
                lines.for_each(|line| add(format_args!("{line}")));
                if !change.move_path.is_empty() {
                    add(format_args!("*** Move to: {}", &*change.move_path));
                }
            }
        }
    }
    patch
}

/// Returns the session of a command that has not ended; otherwise an empty text.
fn running_session(text: &str) -> String {
    let session = head(text).find_map(|line| line.strip_prefix("Process running with session ID "));
    session.unwrap_or_default().trim().to_owned()
}

/// Parses `{"output": …, "metadata": {"exit_code": …}}`, which older versions write into the text.
fn nested_output(text: &str) -> Option<(String, Option<i32>)> {
    if !text.starts_with('{') {
        return None;
    }
    let inner: CodexOutput<'_> = serde_json::from_str(text).ok()?;
    let code = inner.metadata.one()?.exit_code.parse().ok();
    Some((inner.content.0.into_owned(), code))
}

/// Returns the header lines before the output.
fn head(text: &str) -> impl Iterator<Item = &str> {
    const HEAD_LINES: usize = 8;
    text.lines().take(HEAD_LINES).take_while(|line| !line.starts_with("Output:"))
}

/// Returns the exit code in the header lines before the output.
fn exit_code(text: &str) -> Option<i32> {
    head(text).find_map(|line| {
        let code = line
            .strip_prefix("Process exited with code ")
            .or_else(|| line.strip_prefix("Exit code: "))?;
        code.trim().parse().ok()
    })
}

/// Converts token usage. Input includes cached tokens. The running total distinguishes the events
/// of one call.
fn usage<'a>(payload: &Payload<'a>) -> Option<RecordEntry<'a>> {
    let info = payload.info.one()?;
    let last: &ApiUsage = info.last_token_usage.one()?;
    let total = info.total_token_usage.one()?.total_tokens.0;
    let Text(model) = payload.model.clone();
    Some(RecordEntry::Usage(TokenUse {
        id: Cow::Owned(format!("total {total}")),
        model,
        input: last.input_tokens.0.saturating_sub(last.cached_input_tokens.0),
        output: last.output_tokens.0,
        cache_read: last.cached_input_tokens.0,
        cache_creation: 0,
    }))
}
