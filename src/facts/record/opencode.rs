//! OpenCode's messages as its plugin writes them: one message per line, `{"info": …, "parts":
//! […]}`. The plugin rewrites the whole file at each stop, so a later line replaces an earlier line
//! with its id.
//!
//! | how a command ended | where OpenCode records it |
//! |---|---|
//! | exit code | part `tool`: `state.metadata.exit`; `state.status` stays `completed` |
//! | still running | `state.status`: `running` or `pending` |
//! | not run, or failed before it ran | `state.status: error` |

use serde::Deserialize;

use super::entry::{Record, RecordEntry, RecordOrigin, TokenUse, ToolResult};
use super::lenient::{Either, Flag, LenientCount, Text};
use super::output::Output;
use super::wire::Input;

/// The beginning of each line. No other client writes it.
const START: &[u8] = b"{\"info\":";

/// Name of OpenCode's todo tool, and the neutral name.
const TODO_TOOL: (&str, &str) = ("todowrite", "TodoWrite");

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OpenCodeMessage<'a> {
    #[serde(borrow)]
    info: Either<'a, Info<'a>>,
    #[serde(borrow)]
    parts: Either<'a, OpenCodePart<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(rename = "sessionID", borrow)]
    session: Text<'a>,
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(rename = "modelID", borrow)]
    model: Text<'a>,
    #[serde(borrow)]
    tokens: Either<'a, OpenCodeTokens<'a>>,
    #[serde(borrow)]
    path: Either<'a, OpenCodePath<'a>>,
    summary: Flag,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OpenCodePath<'a> {
    #[serde(borrow)]
    cwd: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OpenCodeTokens<'a> {
    input: LenientCount,
    output: LenientCount,
    reasoning: LenientCount,
    #[serde(borrow)]
    cache: Either<'a, Cache>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: LenientCount,
    write: LenientCount,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OpenCodePart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    synthetic: Flag,
    #[serde(borrow)]
    metadata: Either<'a, OpenCodeMetadata<'a>>,
    #[serde(rename = "callID", borrow)]
    call: Text<'a>,
    #[serde(borrow)]
    tool: Text<'a>,
    #[serde(borrow)]
    state: Either<'a, State<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State<'a> {
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    input: Either<'a, Input<'a>>,
    #[serde(borrow)]
    output: Output<'a>,
    #[serde(borrow)]
    error: Text<'a>,
    #[serde(borrow)]
    metadata: Either<'a, OpenCodeMetadata<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OpenCodeMetadata<'a> {
    #[serde(borrow)]
    exit: Text<'a>,
    interrupted: Flag,
    /// The plugin's mark of a call that policyd denied.
    denied: Flag,
    /// The plugin's mark of a prompt that policyd sent.
    #[serde(borrow)]
    policyd: Text<'a>,
}

/// Returns whether OpenCode wrote a line.
pub(super) fn is_opencode(line: &[u8]) -> bool {
    line.starts_with(START)
}

pub(super) fn record(line: &[u8]) -> Option<Record<'_>> {
    let message: OpenCodeMessage<'_> = match std::str::from_utf8(line) {
        Ok(line) => serde_json::from_str(line).ok()?,
        Err(_) => serde_json::from_slice(line).ok()?,
    };
    let (Either::One(info), parts) = (message.info, message.parts) else { return None };
    let Info { id, session, role, model, tokens, path, summary } = *info;
    let origin = RecordOrigin { session: session.0, ..RecordOrigin::default() };
    let mut record = Record { replaces: id.0.clone(), origin, ..Record::default() };
    let parts = parts.into_elements().into_iter().filter_map(|part| match part {
        Either::One(part) => Some(*part),
        Either::Text(_) | Either::Many(_) | Either::None => None,
    });
    match &*role {
        "user" => parts.for_each(|part| prompt(&id, part, &mut record.entries)),
        "assistant" if summary.0 => record.entries.push(RecordEntry::Compacted),
        "assistant" => parts.for_each(|part| answer(part, &mut record.entries)),
        _ => {}
    }
    if let Either::One(path) = path {
        record.folder = path.cwd.0;
    }
    if let Either::One(tokens) = tokens {
        record.entries.push(RecordEntry::Usage(usage(&id, model, *tokens)));
    }
    Some(record)
}

fn prompt<'a>(id: &Text<'a>, part: OpenCodePart<'a>, entries: &mut Vec<RecordEntry<'a>>) {
    if &*part.kind != "text" {
        return;
    }
    let is_own = part.metadata.one().is_some_and(|metadata| !metadata.policyd.is_empty());
    if is_own {
        entries.push(RecordEntry::Stopped { feedback: Some(part.text.0) });
    } else if !part.synthetic.0 && !part.text.is_empty() {
        entries.push(RecordEntry::Prompt { id: id.0.clone(), text: part.text.0, queued: false });
    }
}

fn answer<'a>(part: OpenCodePart<'a>, entries: &mut Vec<RecordEntry<'a>>) {
    match (&*part.kind, part.state) {
        ("text", _) if !part.text.is_empty() => entries.push(RecordEntry::Said(part.text.0)),
        ("tool", Either::One(state)) => call_and_result(part.call, part.tool, *state, entries),
        _ => {}
    }
}

fn call_and_result<'a>(
    id: Text<'a>,
    tool: Text<'a>,
    state: State<'a>,
    entries: &mut Vec<RecordEntry<'a>>,
) {
    let (native, neutral) = TODO_TOOL;
    let name = if &*tool == native { neutral.into() } else { tool.0 };
    entries.push(RecordEntry::Call { id: id.0.clone(), name, input: state.input });
    let (error, text) = match &*state.status {
        "completed" => (false, state.output),
        "error" => (true, Output::Text(state.error.0)),
        _ => return, // still running
    };
    let metadata = state.metadata.one();
    entries.push(RecordEntry::Result(ToolResult {
        id: id.0,
        text,
        error,
        denial: if metadata.is_some_and(|it| it.denied.0) { "denied" } else { "" }.into(),
        interrupted: metadata.is_some_and(|it| it.interrupted.0),
        exit_code: metadata.and_then(|it| it.exit.parse().ok()),
        ..ToolResult::default()
    }));
}

fn usage<'a>(id: &Text<'a>, model: Text<'a>, tokens: OpenCodeTokens<'a>) -> TokenUse<'a> {
    let (read, write) = tokens.cache.one().map_or((0, 0), |cache| (cache.read.0, cache.write.0));
    TokenUse {
        id: id.0.clone(),
        model: model.0,
        input: tokens.input.0,
        output: tokens.output.0.saturating_add(tokens.reasoning.0),
        cache_read: read,
        cache_creation: write,
    }
}
