//! Claude Code's transcript lines, and flat lines that hold one block each.
//!
//! | how a command ended | where Claude Code records it |
//! |---|---|
//! | failed | `is_error: true`, and a result that begins with `Exit code N`; success has no number |
//! | runs in the background | `toolUseResult.backgroundTaskId`; the end is a `<task-notification>` text that names the call, a status and the exit code, or the result of a call that reads the task |
//! | not run | `toolDenialKind`, or a result that begins as in `fold/results.rs` |

use std::borrow::Cow;

use super::entry::{Record, RecordEntry, RecordOrigin, TokenUse, ToolResult};
use super::lenient::{Either, Flag, Text, or};
use super::output::Output;
use super::wire::{ApiMessage, ApiUsage, Attachment, Block, Line, ToolUseResult, joined};

/// Beginnings of user texts that the client wrote.
const CLIENT_TEXTS: [&str; 11] = [
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    TASK_NOTIFICATION,
    "<system-reminder>",
    STOP_FEEDBACK,
    INTERRUPTED,
    "Caveat:",
];

/// Beginning of the text that the agent receives from a Stop hook that blocked.
const STOP_FEEDBACK: &str = "Stop hook feedback:";
/// Beginning of the client's report that a background task ended.
const TASK_NOTIFICATION: &str = "<task-notification>";
/// Beginning of the text that marks an interruption by the user.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Converts a line. A state record gives an empty record.
pub(super) fn record(line: Line<'_>) -> Record<'_> {
    let mut record = Record { sidechain: line.is_sidechain.0, ..Record::default() };
    match &*line.kind {
        "user" | "assistant" | "system" | "tool_use" | "tool_result" | "text" => {}
        "attachment" => {
            attachment(line, &mut record);
            return record;
        }
        "permission-mode" => {
            record.permission_mode = line.permission_mode.0;
            return record;
        }
        _ => return record,
    }
    let mut line = line;
    record.branch = std::mem::take(&mut line.git_branch).0;
    record.folder = std::mem::take(&mut line.cwd).0;
    record.permission_mode = std::mem::take(&mut line.permission_mode).0;
    record.names_session = matches!(&*line.kind, "user" | "assistant");
    record.origin = RecordOrigin {
        time: std::mem::take(&mut line.timestamp).0,
        session: std::mem::take(&mut line.session_id).0,
        agent: std::mem::take(&mut line.agent_id).0,
        entrypoint: std::mem::take(&mut line.entrypoint).0,
        copied: line.forked_from.one().is_some(),
    };
    match &*line.kind {
        "user" => user(line, &mut record.entries),
        "assistant" => assistant(line, &mut record.entries),
        "system" if &*line.subtype == "compact_boundary" => {
            record.entries.push(RecordEntry::Compacted)
        }
        "system" if &*line.subtype == "stop_hook_summary" => {
            record.entries.push(RecordEntry::Stopped { feedback: None });
        }
        "system" => {}
        _ => block(flat_block(line), None, &mut record.entries),
    }
    record
}

fn attachment<'a>(line: Line<'a>, record: &mut Record<'a>) {
    let Either::One(attachment) = line.attachment else { return };
    let Attachment { kind, prompt, command_mode, origin } = *attachment;
    if &*kind != "queued_command" {
        return;
    }
    let human = match origin.one() {
        Some(origin) => &*origin.kind == "human",
        None => command_mode.is_empty() || &*command_mode == "prompt",
    };
    if human && !line.is_meta.0 {
        let text = joined(prompt, is_human_text);
        if !text.is_empty() {
            let id = or(line.prompt_id, line.uuid);
            record.entries.push(RecordEntry::Prompt { id, text, queued: true });
        }
    } else if !human {
        ended_tasks(&joined(prompt, |_| true), &mut record.entries);
    }
}

/// Appends the results of background tasks in `<task-notification>` texts. Each is the result of
/// the call that started the task.
fn ended_tasks(text: &str, entries: &mut Vec<RecordEntry<'_>>) {
    for notification in text.split(TASK_NOTIFICATION).skip(1) {
        let field = |name: &str| {
            let (_, rest) = notification.split_once(&format!("<{name}>"))?;
            Some(rest.split_once(&format!("</{name}>"))?.0.trim())
        };
        let Some(status) = field("status") else { continue };
        let call = field("tool-use-id").unwrap_or_default();
        let summary = field("summary").unwrap_or_default();
        let exit_code = summary.rsplit_once("exit code ").and_then(|(_, rest)| {
            let end = rest.find(|it: char| !it.is_ascii_digit() && it != '-').unwrap_or(rest.len());
            rest.get(..end)?.parse().ok()
        });
        entries.push(RecordEntry::Result(ToolResult {
            id: Cow::Owned(call.to_owned()),
            text: Output::Text(Cow::Owned(summary.to_owned())),
            error: status == "failed",
            interrupted: !matches!(status, "completed" | "failed"),
            agent: Cow::Owned(field("task-id").unwrap_or_default().to_owned()),
            background_task: Cow::Owned(field("task-id").unwrap_or_default().to_owned()),
            exit_code,
            ..ToolResult::default()
        }));
    }
}

fn user<'a>(line: Line<'a>, entries: &mut Vec<RecordEntry<'a>>) {
    let content = match line.message {
        Either::One(message) => message.content,
        Either::Text(text) => Either::Text(text),
        Either::Many(_) | Either::None => line.content,
    };
    let is_result = |block: &Either<'_, Block<'_>>| {
        block.one().is_some_and(|block| &*block.kind == "tool_result")
    };
    if content.elements().any(is_result) {
        let mut told =
            ToolResultExtras { details: line.tool_use_result, denial: line.tool_denial_kind.0 };
        for element in content.into_elements() {
            if let Either::One(element) = element
                && &*element.kind == "tool_result"
            {
                block(*element, Some(std::mem::take(&mut told)), entries);
            }
        }
        return;
    }
    let aside = line.is_meta.0
        || line.is_compact_summary.0
        || line.is_visible_in_transcript_only.0
        || line.turn_companion.0;
    if aside {
        if begins_with(&content, STOP_FEEDBACK) {
            let feedback = Some(joined(content, |_| true));
            entries.push(RecordEntry::Stopped { feedback });
        }
        return;
    }
    if begins_with(&content, INTERRUPTED) {
        entries.push(RecordEntry::CutOff);
    }
    let human = match line.origin.one() {
        Some(origin) => &*origin.kind == "human",
        None => &*line.prompt_source != "system",
    };
    let has_result = !matches!(line.tool_use_result, Either::None);
    let notification =
        matches!(&content, Either::Text(text) if text.starts_with(TASK_NOTIFICATION));
    if !human || notification {
        entries.push(RecordEntry::Injected { id: line.prompt_id.0 });
        ended_tasks(&joined(content, |_| true), entries);
    } else if !has_result {
        let text = joined(content, is_human_text);
        entries.extend(asked_skill(&text).map(|it| RecordEntry::Asked(it.to_owned().into())));
        let text = typed(text);
        if !text.is_empty() {
            let id = or(line.prompt_id, or_text(line.uuid, line.id));
            entries.push(RecordEntry::Prompt { id, text, queued: false });
        }
    }
}

fn or_text<'a>(first: Text<'a>, second: Text<'a>) -> Text<'a> {
    Text(or(first, second))
}

/// Returns whether the first text of a content starts with `start`.
fn begins_with(content: &Either<'_, Block<'_>>, start: &str) -> bool {
    match content {
        Either::Text(text) => text.starts_with(start),
        Either::One(block) => block.text.starts_with(start),
        Either::Many(_) => content.elements().next().is_some_and(|element| match element {
            Either::Text(text) => text.starts_with(start),
            Either::One(block) => block.text.starts_with(start),
            Either::Many(_) | Either::None => false,
        }),
        Either::None => false,
    }
}

fn is_human_text(text: &str) -> bool {
    !CLIENT_TEXTS.iter().any(|start| text.trim_start().starts_with(start))
}

/// Returns the skill that a prompt names in the client's tag. The client loads a skill that is
/// named with a slash.
fn asked_skill(text: &str) -> Option<&str> {
    let name = tagged(text, "command-name")?;
    (!name.is_empty() && !name.starts_with('/')).then_some(name)
}

/// Returns the content of a tag, if the text begins as the client writes commands.
fn tagged<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    if !text.trim_start().starts_with("<command-") {
        return None;
    }
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
}

/// Returns a slash command as the user typed it: `/fix the login bug`.
fn typed(text: Cow<'_, str>) -> Cow<'_, str> {
    let Some(name) = tagged(&text, "command-name") else { return text };
    match tagged(&text, "command-args") {
        Some(args) if !args.is_empty() => Cow::Owned(format!("{name} {args}")),
        Some(_) | None => Cow::Owned(name.to_owned()),
    }
}

fn assistant<'a>(line: Line<'a>, entries: &mut Vec<RecordEntry<'a>>) {
    let (content, message) = match line.message {
        Either::One(message) => {
            let ApiMessage { id, model, content, usage } = *message;
            (content, Some((id, model, usage)))
        }
        Either::Text(text) => (Either::Text(text), None),
        Either::Many(_) | Either::None => (line.content, None),
    };
    if let Some((id, model, usage)) = message {
        if line.is_api_error_message.0 || &*model == "<synthetic>" {
            entries.extend(line.is_api_error_message.0.then_some(RecordEntry::CutOff));
            return;
        }
        if let Either::One(usage) = usage {
            entries.push(RecordEntry::Usage(token_use(id.0, model.0, &usage)));
        }
    }
    for element in content.into_elements() {
        match element {
            Either::Text(text) => entries.push(RecordEntry::Said(text)),
            Either::One(found) => block(*found, None, entries),
            Either::Many(_) | Either::None => {}
        }
    }
}

fn token_use<'a>(id: Cow<'a, str>, model: Cow<'a, str>, usage: &ApiUsage) -> TokenUse<'a> {
    TokenUse {
        id,
        model,
        input: usage.input_tokens.0,
        output: usage.output_tokens.0,
        cache_read: usage.cache_read_input_tokens.0,
        cache_creation: usage.cache_creation_input_tokens.0,
    }
}

/// Fields of a user line that describe its tool result, beside the result block.
#[derive(Default)]
struct ToolResultExtras<'a> {
    details: Either<'a, ToolUseResult<'a>>,
    denial: Cow<'a, str>,
}

fn block<'a>(
    block: Block<'a>,
    told: Option<ToolResultExtras<'a>>,
    entries: &mut Vec<RecordEntry<'a>>,
) {
    match &*block.kind {
        "text" if !block.text.is_empty() => entries.push(RecordEntry::Said(block.text.0)),
        "tool_use" => entries.push(RecordEntry::Call {
            id: block.id.0,
            name: block.name.0,
            input: block.input,
        }),
        "tool_result" => {
            let mut result = ToolResult {
                id: or(block.tool_use_id, block.id),
                text: block.content,
                error: block.is_error.0,
                ..ToolResult::default()
            };
            let told = told.unwrap_or_default();
            result.denial = told.denial;
            match told.details {
                Either::One(details) => {
                    result.stdout = details.stdout;
                    result.stderr = details.stderr;
                    result.interrupted = details.interrupted.0;
                    result.background =
                        !details.background_task_id.is_empty() || details.is_async.0;
                    result.background_task = details.background_task_id.0;
                    // A subagent that goes on in the background reports when it ends.
                    if !details.is_async.0 {
                        result.agent = details.agent_id.0;
                    }
                    if let Either::One(task) = details.task {
                        result.task_id = task.id.0;
                    }
                }
                Either::Text(text) => result.error |= text.starts_with("Error:"),
                Either::Many(_) | Either::None => {}
            }
            entries.push(RecordEntry::Result(result));
        }
        _ => {}
    }
}

fn flat_block(line: Line<'_>) -> Block<'_> {
    Block {
        kind: line.kind,
        text: line.text,
        id: line.id,
        name: line.name,
        input: line.input,
        tool_use_id: line.tool_use_id,
        is_error: Flag(line.is_error.0),
        content: Output::Text(joined(line.content, |_| true)),
    }
}
