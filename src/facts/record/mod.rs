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
mod entry;
mod gemini;
pub mod lenient;
mod opencode;
pub mod output;
mod repair;
pub mod wire;

use std::borrow::Cow;

pub use entry::{EntryCall, Record, RecordEntry, RecordOrigin, TokenUse, ToolResult};
pub use repair::repaired;
use wire::{Input, Line};

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

/// Parses a tool input that was written as JSON inside a string (Copilot, Codex).
#[must_use]
pub fn decode_input(text: &str) -> Option<Input<'_>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}
