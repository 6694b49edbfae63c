//! Where policy text came from and what is wrong with it: files, spans, diagnostics.
//! Lives here: values without a notion of what a policy means.

pub mod check;
pub mod field_value;
pub mod layered_map;
pub mod meaning;
pub mod node;
pub mod scalar;
pub mod schema;
pub mod secrets;
pub mod shape;
pub mod stored;
pub mod suggest;
mod syntax;
mod value;
pub mod yaml;

use std::sync::Arc;

pub use node::{Node, NodeKind, Scalar, ScalarStyle};

/// One policy file as read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// The path or `builtin/<file>`, as shown to people.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A byte range in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub source: Arc<Source>,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Line and column of the first byte, both from 1; the column counts characters.
    #[must_use]
    pub fn line_column(&self) -> (usize, usize) {
        let before = self.source.text.get(..self.start).unwrap_or(&self.source.text);
        let last = memchr::memrchr(b'\n', before.as_bytes());
        let line_start = last.map_or(0, |at| at.saturating_add(1));
        let line = memchr::memchr_iter(b'\n', before.as_bytes()).count().saturating_add(1);
        let column = before.get(line_start..).map_or(0, |it| it.chars().count()).saturating_add(1);
        (line, column)
    }

    /// `file:line:column`, clickable in terminals and editors.
    #[must_use]
    pub fn place(&self) -> String {
        let (line, column) = self.line_column();
        format!("{}:{line}:{column}", self.source.name)
    }

    /// The text it covers.
    #[must_use]
    pub fn text(&self) -> &str {
        self.source.text.get(self.start..self.end).unwrap_or_default()
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing; nothing changes.
    Note,
    /// Probably not meant; the pack still loads.
    Warning,
    /// The pack does not load.
    Error,
}

/// One finding about a policy, complete enough to be shown in any format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable kebab-case name of the finding, such as `unknown-key`.
    pub code: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What is wrong, one lower-case sentence without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Other places that matter, each with its role.
    pub related: Vec<(Span, String)>,
    /// The cure.
    pub help: Option<String>,
    /// What it does to decisions.
    pub note: Option<String>,
    /// The cure as an edit.
    pub fix: Option<Fix>,
}

/// An edit that cures a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// Whether it changes no decision, so that it may be made unseen.
    pub safe: bool,
    /// Places and what comes there; none overlaps another.
    pub edits: Vec<(Span, String)>,
}

impl Diagnostic {
    /// An error at `span`.
    #[must_use]
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        let (level, related) = (Level::Error, Vec::new());
        Self { code, level, message, span, related, help: None, note: None, fix: None }
    }

    /// A warning at `span`.
    #[must_use]
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(code, span, message) }
    }

    /// The same finding with a cure.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same finding with the cure, where one is known.
    #[must_use]
    pub fn with_help_if(self, help: Option<String>) -> Self {
        Self { help: help.or(self.help), ..self }
    }

    /// The same finding with what a mistyped word was probably meant to be: as help, and as an edit where
    /// the finding points at that word.
    #[must_use]
    pub fn with_meant(self, word: &str, known: &[&str]) -> Self {
        let found = self.with_help_if(suggest::did_you_mean(word, known));
        match suggest::nearest(word, known) {
            Some(near) => found.with_word(word, near),
            None => found,
        }
    }

    /// The same finding with the edit that writes another word where the finding points at one. What the
    /// rule decides changes with it, so the edit is no safe one.
    #[must_use]
    pub fn with_word(self, word: &str, near: &str) -> Self {
        let written = self.span.text().to_owned();
        // In quotes or without, but neither with escapes of its own nor with more than the word; and what
        // comes there means the same in any of them.
        let plain = near.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-./".contains(&it));
        if written.trim_matches(['"', '\'', '\\']) != word || word.is_empty() || !plain {
            return self;
        }
        let span = self.span.clone();
        self.with_fix(false, span, written.replacen(word, near, 1))
    }

    /// The same finding with what it does to decisions.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// The same finding with one edit that cures it.
    #[must_use]
    pub fn with_fix(mut self, safe: bool, span: Span, text: impl Into<String>) -> Self {
        self.fix = Some(Fix { safe, edits: vec![(span, text.into())] });
        self
    }

    /// The same finding with another place and its role.
    #[must_use]
    pub fn with_related(mut self, span: Span, role: impl Into<String>) -> Self {
        self.related.push((span, role.into()));
        self
    }
}

/// Longest user text repeated in a message, in characters.
const QUOTED_CHARS_MAX: usize = 60;

/// User text as it is shown inside a message: in backticks, on one line, cut when long.
#[must_use]
pub fn quoted(text: &str) -> String {
    let shown: String = text
        .chars()
        .take(QUOTED_CHARS_MAX)
        .flat_map(|c| {
            let (plain, escaped) =
                if c.is_control() { (None, Some(c.escape_default())) } else { (Some(c), None) };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect();
    let rest = if text.chars().nth(QUOTED_CHARS_MAX).is_some() { "…" } else { "" };
    format!("`{shown}{rest}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_stays_on_one_line_and_short() {
        assert_eq!(quoted("a\nb\u{1b}"), "`a\\nb\\u{1b}`");
        assert_eq!(quoted(&"é".repeat(61)), format!("`{}…`", "é".repeat(60)));
    }
}
