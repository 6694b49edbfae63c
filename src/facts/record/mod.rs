//! One transcript line as the things it says happened, whatever client wrote it.
//! Lives here: shapes and their meaning. May not live here: what follows from several lines.
//! Nothing can fail: a line of no known shape is `None`, a field of a wrong type is empty.

mod claude;
mod codex;
mod copilot;
mod gemini;
pub mod lenient;
mod opencode;
pub mod output;
#[expect(missing_docs, reason = "field names are those of the clients")]
pub mod wire;

use std::borrow::Cow;

use lenient::{Either, Text};
use output::Output;
use wire::{Block, Input, Line};

/// What one line says.
#[derive(Debug, Default)]
pub struct Record<'a> {
    /// Git branch at that moment, empty when not told.
    pub branch: Cow<'a, str>,
    /// Working folder, empty when not told.
    pub folder: Cow<'a, str>,
    /// Permission mode, empty when not told.
    pub permission_mode: Cow<'a, str>,
    /// Id of the message where a later line with the same id replaces this one; else empty.
    pub replaces: Cow<'a, str>,
    /// Whether it is of a subagent.
    pub sidechain: bool,
    /// Where and when it was written.
    pub origin: Origin<'a>,
    /// Whether the client names the session on each line of this kind.
    pub names_session: bool,
    /// What happened, in order.
    pub entries: Vec<Entry<'a>>,
}

/// Where and when a line was written, as far as the client says; no fact is made of it.
#[derive(Debug, Default)]
pub struct Origin<'a> {
    /// Time, as written; empty when not told.
    pub time: Cow<'a, str>,
    /// Session, empty when not told.
    pub session: Cow<'a, str>,
    /// Subagent, empty when not told.
    pub agent: Cow<'a, str>,
    /// How the client was started: `cli`, `sdk-cli`, …; empty when not told.
    pub entrypoint: Cow<'a, str>,
    /// Whether it was copied from the session that this one was forked from.
    pub copied: bool,
}

/// One thing that happened on the main chain.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A stop was over: a hook sent the agent back to work, or the client summed its hooks up.
    Stopped {
        /// Whether a hook sent the agent back.
        blocked: bool,
    },
    /// The turn ended without a stop: a human interrupted it, or the API failed.
    CutOff,
    /// A human named a skill that the client did not load.
    Asked(Cow<'a, str>),
    /// A human asked.
    Prompt {
        /// `promptId`, else `uuid`.
        id: Cow<'a, str>,
        /// What was asked.
        text: Cow<'a, str>,
        /// Whether it was put in while the agent was at work.
        queued: bool,
    },
    /// Something else than a human asked.
    Injected {
        /// `promptId`.
        id: Cow<'a, str>,
    },
    /// The agent said something.
    Said(Cow<'a, str>),
    /// The agent called a tool.
    Call {
        /// Id its result will name.
        id: Cow<'a, str>,
        /// Tool name.
        name: Cow<'a, str>,
        /// Its input.
        input: Either<'a, Input<'a>>,
    },
    /// A tool answered.
    Result(ToolResult<'a>),
    /// An action ended that may not have been recorded as a call before. The same id as a call's: the same action.
    Done {
        /// Tool name.
        name: Cow<'a, str>,
        /// Its input.
        input: Either<'a, Input<'a>>,
        /// How it ended.
        result: ToolResult<'a>,
    },
    /// The client recorded that it calls the stop hooks: everything before that moment is recorded.
    Stopping {
        /// Time of the hook payload, in milliseconds since 1970.
        sent_at: u64,
    },
    /// An API call used tokens.
    Usage(TokenUse<'a>),
    /// The context was compacted.
    Compacted,
}

/// The answer of a tool.
#[derive(Debug, Default)]
pub struct ToolResult<'a> {
    /// Id of the call.
    pub id: Cow<'a, str>,
    /// What the agent saw.
    pub text: Output<'a>,
    /// Standard output and standard error, where told apart; else empty.
    pub stdout: Output<'a>,
    /// See `stdout`.
    pub stderr: Output<'a>,
    /// Whether it is marked as an error.
    pub error: bool,
    /// Why it was not run, empty when it was.
    pub denial: Cow<'a, str>,
    /// Whether it was cut short.
    pub interrupted: bool,
    /// Whether it goes on in the background.
    pub background: bool,
    /// Id of a task it created, else empty.
    pub task_id: Cow<'a, str>,
    /// Id of the subagent that did the work, else empty.
    pub agent: Cow<'a, str>,
    /// Session of a command that still runs, else empty.
    pub running: Cow<'a, str>,
    /// Exit code, where the client tells it apart from the text.
    pub exit_code: Option<i32>,
}

/// Tokens of one API call.
#[derive(Debug, Default)]
pub struct TokenUse<'a> {
    /// Message id; blocks of one message repeat it.
    pub id: Cow<'a, str>,
    /// Model, empty when not told.
    pub model: Cow<'a, str>,
    /// Fresh input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_creation: u64,
}

/// Whose shape a line has: `claude_code` (also where it cannot be told), `copilot`, `codex`,
/// `gemini`, `opencode`.
#[must_use]
pub fn format(line: &[u8]) -> &'static str {
    if opencode::is_opencode(line) {
        return "opencode";
    }
    let Some(line) = decoded(line) else { return "claude_code" };
    if line.payload.one().is_some() {
        "codex"
    } else if copilot::is_copilot(&line) {
        "copilot"
    } else if gemini::is_gemini(&line) {
        "gemini"
    } else {
        "claude_code"
    }
}

/// Reads one line; `None` when it is not a JSON object of a known shape.
#[must_use]
pub fn read(line: &[u8]) -> Option<Record<'_>> {
    if line.first() != Some(&b'{') {
        return None;
    }
    if opencode::is_opencode(line) {
        return opencode::record(line);
    }
    let line = decoded(line)?;
    if line.payload.one().is_some() {
        return Some(codex::record(line));
    }
    if copilot::is_copilot(&line) {
        return Some(copilot::record(line));
    }
    if gemini::is_gemini(&line) {
        return Some(gemini::record(line));
    }
    (!line.kind.is_empty()).then(|| claude::record(line))
}

/// What a line says. What is invalid UTF-8 is refused where it stands in something that is looked at;
/// of a line that is sound as a whole no part is asked again.
fn decoded(line: &[u8]) -> Option<Line<'_>> {
    match std::str::from_utf8(line) {
        Ok(line) => serde_json::from_str(line).ok(),
        Err(_) => serde_json::from_slice(line).ok(),
    }
}

/// A line without the bytes of nothing that a file system leaves where a write was cut, and without blanks around.
#[must_use]
pub fn trimmed(line: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(0, line).is_none() {
        return Cow::Borrowed(line.trim_ascii());
    }
    let clean: Vec<u8> = line.iter().copied().filter(|byte| *byte != 0).collect();
    Cow::Owned(clean.trim_ascii().to_vec())
}

/// What is made of what a line says; where a strict reader refuses it, of what it says with that replaced.
pub fn read_repaired<R>(line: &[u8], take: impl FnOnce(Record<'_>) -> R) -> Option<R> {
    if let Some(record) = read(line) {
        return Some(take(record));
    }
    repaired(line).as_deref().and_then(read).map(take)
}

/// The line with what a strict reader refuses replaced: invalid UTF-8 and halves of surrogate
/// pairs, which clients write when they cut text in the middle of a character. `None` when there
/// was nothing to replace.
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

/// Decodes input that was written as JSON inside a string (Copilot, Codex).
#[must_use]
pub fn decode_input(text: &str) -> Option<Input<'_>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The texts of a content, one after the other.
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
