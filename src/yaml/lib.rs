//! Texts of policy files, spans in them, and findings; below them checksums and values that are decoded late.
//!
//! Contains: the one reader of YAML, shapes of files, time, and the masking of secrets.
//! Does not contain: the meaning of a policy.
//!
//! ```
//! use std::sync::Arc;
//!
//! use policyd_yaml::{Source, yaml};
//!
//! let source = Source { name: "policyd.yaml".to_owned(), text: "name: own\n".to_owned() };
//! let (tree, findings) = yaml::parse(&Arc::new(source));
//! assert!(findings.is_empty());
//! assert_eq!(tree.unwrap().get("name").unwrap().text(), Some("own"));
//! ```

pub mod check;
pub mod checksum;
pub mod deferred;
pub mod layered_map;
pub mod limits;
mod lines;
pub mod meaning;
pub mod memo;
pub mod node;
pub mod pairs;
pub mod rows;
pub mod scalar;
pub mod schema;
pub mod secrets;
pub mod shape;
pub mod stored;
pub mod suggest;
pub mod suggestion;
mod syntax;
pub mod time;
mod value;
pub mod yaml;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use node::{Node, NodeKind, Scalar, ScalarStyle};
pub use suggestion::Suggestion;

/// A policy file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Displayed name: the path, or `builtin/<file>`.
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
    /// Returns line and column of the first byte, both from 1. The column counts characters.
    #[must_use]
    pub fn line_column(&self) -> (usize, usize) {
        lines::line_column(&self.source, self.start)
    }

    /// Returns `file:line:column`, which terminals and editors recognize.
    #[must_use]
    pub fn place(&self) -> String {
        let (line, column) = self.line_column();
        format!("{}:{line}:{column}", self.source.name)
    }

    /// Returns the text of the span.
    #[must_use]
    pub fn text(&self) -> &str {
        self.source.text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Information.
    Note,
    /// Probable mistake. The pack is loaded.
    Warning,
    /// The pack is not loaded.
    Error,
}

/// A finding about a policy, in a form that all output formats can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable kebab-case name of the finding, such as `unknown-key`.
    pub code: &'static str,
    /// Severity.
    pub level: Level,
    /// Problem: one lower-case sentence without a period.
    pub message: String,
    /// Location.
    pub span: Span,
    /// Related locations, each with its role.
    pub related: Vec<(Span, String)>,
    /// Fix in words.
    pub help: Option<String>,
    /// Effect on decisions.
    pub note: Option<String>,
    /// Fix as an edit.
    pub fix: Option<Fix>,
}

/// An edit that fixes a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// Whether the edit changes no decision, so that it needs no review.
    pub safe: bool,
    /// Spans and their replacements. Spans do not overlap.
    pub edits: Vec<(Span, String)>,
}

impl Diagnostic {
    /// Returns an error at `span`.
    #[must_use]
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        let (level, related) = (Level::Error, Vec::new());
        Self { code, level, message, span, related, help: None, note: None, fix: None }
    }

    /// Returns a warning at `span`.
    #[must_use]
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(code, span, message) }
    }

    /// Adds a fix in words.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a fix in words, if there is one.
    #[must_use]
    pub fn with_help_if(self, help: Option<String>) -> Self {
        Self { help: help.or(self.help), ..self }
    }

    /// The same finding with what a mistyped word was probably meant to be: as help, and as an edit where
    /// the finding points at that word.
    #[must_use]
    pub fn with_meant(self, word: &str, known: &[&str]) -> Self {
        match suggest::nearest(word, known) {
            Some(near) => self.meaning(word, near),
            None => self.with_help_if(suggest::did_you_mean(word, known)),
        }
    }

    /// Asks whether another word is meant, and adds the edit that writes it.
    #[must_use]
    pub fn meaning(self, word: &str, near: &str) -> Self {
        self.with_help(suggest::is_it(near)).with_word(word, near)
    }

    /// Adds the edit that replaces the word at the location of the finding. The edit is unsafe, because it
    /// changes what the rule decides.
    #[must_use]
    pub fn with_word(self, word: &str, near: &str) -> Self {
        let written = self.span.text().to_owned();
        // In quotes or without, but neither with escapes of its own nor with more than the word; and what
        // comes there means the same in any of them.
        let plain = near.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-./ ".contains(&it));
        if written.trim_matches(['"', '\'', '\\']) != word || word.is_empty() || !plain {
            return self;
        }
        let span = self.span.clone();
        self.with_fix(false, span, written.replacen(word, near, 1))
    }

    /// Adds the effect on decisions.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Adds a fix that is one edit.
    #[must_use]
    pub fn with_fix(mut self, safe: bool, span: Span, text: impl Into<String>) -> Self {
        self.fix = Some(Fix { safe, edits: vec![(span, text.into())] });
        self
    }

    /// Adds a related location and its role.
    #[must_use]
    pub fn with_related(mut self, span: Span, role: impl Into<String>) -> Self {
        self.related.push((span, role.into()));
        self
    }
}

/// Maximum length of quoted user text, in characters.
const QUOTED_CHARS_MAX: usize = 60;

/// Returns user text for a message: in backticks, on one line, and truncated.
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
