//! Converts one transcript line of any client into records.
//!
//! Contains: the shapes of lines and their meaning. Does not contain: conclusions from several
//! lines.
//!
//! INVARIANT: no line is an error. A line of an unknown shape is `None`, a field of a wrong type is
//! empty.

mod claude;
mod codex;
mod copilot;
mod gemini;
pub mod lenient;
mod opencode;
pub mod output;
pub mod wire;

use std::borrow::Cow;

use lenient::{Either, Text};
use output::Output;
use wire::{Block, Input, Line};

/// Content of one transcript line.
#[derive(Debug, Default)]
pub struct Record<'a> {
    /// Git branch at that time. Empty if the line contains none.
    pub branch: Cow<'a, str>,
    /// Working directory. Empty if the line contains none.
    pub folder: Cow<'a, str>,
    /// Permission mode. Empty if the line contains none.
    pub permission_mode: Cow<'a, str>,
    /// Id of the message, if a later line with the same id replaces this one; otherwise empty.
    pub replaces: Cow<'a, str>,
    /// Whether a subagent wrote the line.
    pub sidechain: bool,
    /// Source of the line.
    pub origin: RecordOrigin<'a>,
    /// Whether the client writes the session id on each line of this type.
    pub names_session: bool,
    /// Entries in order.
    pub entries: Vec<RecordEntry<'a>>,
}

/// Source of a line. No fact depends on it.
#[derive(Debug, Default)]
pub struct RecordOrigin<'a> {
    /// Time as written. Empty if the line contains none.
    pub time: Cow<'a, str>,
    /// Session id. Empty if the line contains none.
    pub session: Cow<'a, str>,
    /// Subagent id. Empty if the line contains none.
    pub agent: Cow<'a, str>,
    /// Entry point of the client: `cli`, `sdk-cli`, …. Empty if the line contains none.
    pub entrypoint: Cow<'a, str>,
    /// Whether the line was copied from the session that this session was forked from.
    pub copied: bool,
}

/// One entry of the main chain.
#[derive(Debug)]
pub enum RecordEntry<'a> {
    /// A stop ended: a hook sent the agent back to work, or the client summarized its hooks.
    Stopped {
        /// Text with which a hook sent the agent back to work. `None` if no hook did.
        feedback: Option<Cow<'a, str>>,
    },
    /// The turn ended without a stop: the user interrupted it, or the API failed.
    CutOff,
    /// The user named a skill that the client did not load.
    Asked(Cow<'a, str>),
    /// The user sent a prompt.
    Prompt {
        /// `promptId`, otherwise `uuid`.
        id: Cow<'a, str>,
        /// Text of the prompt.
        text: Cow<'a, str>,
        /// Whether the user sent it while the agent was working.
        queued: bool,
    },
    /// A prompt that the user did not write.
    Injected { id: Cow<'a, str> },
    /// A text of the agent.
    Said(Cow<'a, str>),
    /// A tool call of the agent.
    Call {
        /// Id that the result will contain.
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Either<'a, Input<'a>>,
    },
    /// The result of a tool call.
    Result(ToolResult<'a>),
    /// An action that ended, and that might not have been recorded as a call. An action with the id
    /// of a call is that call.
    Done { name: Cow<'a, str>, input: Either<'a, Input<'a>>, result: ToolResult<'a> },
    /// The client is calling the stop hooks. All earlier lines are written.
    Stopping {
        /// Time of the hook payload, in milliseconds since 1970.
        sent_at: u64,
    },
    /// Token usage of an API call.
    Usage(TokenUse<'a>),
    /// The context was compacted.
    Compacted,
}

/// A tool call that an entry contains.
#[derive(Debug, Clone, Copy)]
pub enum EntryCall<'e, 'a> {
    /// The agent called a tool. Its result is another entry.
    Begun { id: &'e str, name: &'e str },
    /// An action that ended.
    Ended { name: &'e str, input: &'e Either<'a, Input<'a>>, result: &'e ToolResult<'a> },
}

impl<'a> RecordEntry<'a> {
    /// Returns the tool call that the entry contains, if any.
    #[must_use]
    pub fn call(&self) -> Option<EntryCall<'_, 'a>> {
        match self {
            Self::Call { id, name, .. } => Some(EntryCall::Begun { id, name }),
            Self::Done { name, input, result } => Some(EntryCall::Ended { name, input, result }),
            Self::Stopped { .. }
            | Self::Stopping { .. }
            | Self::CutOff
            | Self::Asked(_)
            | Self::Prompt { .. }
            | Self::Injected { .. }
            | Self::Said(_)
            | Self::Result(_)
            | Self::Usage(_)
            | Self::Compacted => None,
        }
    }
}

/// The result of a tool call.
#[derive(Debug, Default)]
pub struct ToolResult<'a> {
    /// Id of the call.
    pub id: Cow<'a, str>,
    /// Text that the agent received.
    pub text: Output<'a>,
    /// Standard output, if the client separates it from standard error; otherwise empty.
    pub stdout: Output<'a>,
    /// Standard error, if the client separates it from standard output; otherwise empty.
    pub stderr: Output<'a>,
    /// Whether the client marked the result as an error.
    pub error: bool,
    /// Reason why the call was denied. Empty if it ran.
    pub denial: Cow<'a, str>,
    /// Whether the call was interrupted.
    pub interrupted: bool,
    /// Whether the call continues in the background.
    pub background: bool,
    /// Id of a task that the call created; otherwise empty.
    pub task_id: Cow<'a, str>,
    /// Id of the subagent that did the work; otherwise empty.
    pub agent: Cow<'a, str>,
    /// Session of a command that still runs; otherwise empty.
    pub running: Cow<'a, str>,
    /// Exit code, if the client stores it outside of the text.
    pub exit_code: Option<i32>,
}

/// Beginnings of results of denied calls, from versions before clients marked them.
const REFUSALS: [&str; 6] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "[Request interrupted by user for tool use]",
    "Claude requested permissions",
    "Permission to use ",
    "PreToolUse:",
];

impl ToolResult<'_> {
    /// Returns whether the user or the client denied the call, so that it did not run.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        let is_marked = !self.denial.is_empty() && self.denial != "interrupted";
        let is_refused = || {
            let text = self.text.first_line();
            REFUSALS.iter().any(|start| text.starts_with(start))
        };
        is_marked || (self.error && is_refused())
    }
}

/// Token usage of one API call.
#[derive(Debug, Default)]
pub struct TokenUse<'a> {
    /// Message id. Several blocks of one message repeat it.
    pub id: Cow<'a, str>,
    /// Model. Empty if the line contains none.
    pub model: Cow<'a, str>,
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_creation: u64,
}

/// Format of transcript lines. Each has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// Also a line of an unknown format.
    ClaudeCode,
    Codex,
    Copilot,
    Gemini,
    OpenCode,
}

impl TranscriptFormat {
    /// Returns the stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the format of a line.
    #[must_use]
    pub fn of_line(line: &[u8]) -> Self {
        if opencode::is_opencode(line) {
            return Self::OpenCode;
        }
        decoded(line).map_or(Self::ClaudeCode, |it| Self::of(&it))
    }

    /// Returns the format of a decoded line, which is never OpenCode's.
    fn of(line: &Line<'_>) -> Self {
        if line.payload.one().is_some() {
            Self::Codex
        } else if copilot::is_copilot(line) {
            Self::Copilot
        } else if gemini::is_gemini(line) {
            Self::Gemini
        } else {
            Self::ClaudeCode
        }
    }
}

/// Converts one line. `None` if it is not a JSON object of a known shape.
#[must_use]
pub fn read(line: &[u8]) -> Option<Record<'_>> {
    if line.first() != Some(&b'{') {
        return None;
    }
    if opencode::is_opencode(line) {
        return opencode::record(line);
    }
    let line = decoded(line)?;
    match TranscriptFormat::of(&line) {
        TranscriptFormat::Codex => Some(codex::record(line)),
        TranscriptFormat::Copilot => Some(copilot::record(line)),
        TranscriptFormat::Gemini => Some(gemini::record(line)),
        TranscriptFormat::OpenCode | TranscriptFormat::ClaudeCode => {
            (!line.kind.is_empty()).then(|| claude::record(line))
        }
    }
}

/// Parses a line. Invalid UTF-8 is an error only in fields that are used, and a line that is valid
/// as a whole is checked once.
fn decoded(line: &[u8]) -> Option<Line<'_>> {
    match std::str::from_utf8(line) {
        Ok(line) => serde_json::from_str(line).ok(),
        Err(_) => serde_json::from_slice(line).ok(),
    }
}

/// Removes surrounding whitespace, and the NUL bytes that a file system leaves after an interrupted
/// write.
#[must_use]
pub fn trimmed(line: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(0, line).is_none() {
        return Cow::Borrowed(line.trim_ascii());
    }
    let clean: Vec<u8> = line.iter().copied().filter(|byte| *byte != 0).collect();
    Cow::Owned(clean.trim_ascii().to_vec())
}

/// Converts a line, and passes the record to `take`. A line that the strict parser rejects is
/// repaired first.
pub fn read_repaired<R>(line: &[u8], take: impl FnOnce(Record<'_>) -> R) -> Option<R> {
    if let Some(record) = read(line) {
        return Some(take(record));
    }
    repaired(line).as_deref().and_then(read).map(take)
}

/// Replaces what the strict parser rejects: invalid UTF-8, and unpaired surrogates, which clients
/// write when they cut text inside a character. `None` if the line is valid.
#[must_use]
pub fn repaired(line: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut changed = matches!(text, Cow::Owned(_));
    let mut rest = text.as_ref();
    while let Some(at) = rest.find("\\") {
        let (head, tail) = rest.split_at_checked(at)?;
        out.push_str(head);
        let kept = match (surrogate(tail), tail.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => tail.get(..12),
            (Some(_), _) => {
                changed = true;
                out.push_str("\\ufffd");
                rest = tail.get(6..)?;
                continue;
            }
            (None, _) => tail.char_indices().nth(2).map_or(Some(tail), |(end, _)| tail.get(..end)),
        }?;
        out.push_str(kept);
        rest = tail.get(kept.len()..)?;
    }
    out.push_str(rest);
    changed.then(|| out.into_bytes())
}

fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| (0xd800..=0xdfff).contains(code))
}

/// Parses a tool input that was written as JSON inside a string (Copilot, Codex).
#[must_use]
pub fn decode_input(text: &str) -> Option<Input<'_>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Joins the wanted texts of a content.
fn joined<'a>(content: Either<'a, Block<'a>>, wanted: impl Fn(&str) -> bool) -> Cow<'a, str> {
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

fn or<'a>(first: Text<'a>, second: Text<'a>) -> Cow<'a, str> {
    if first.is_empty() { second.0 } else { first.0 }
}
