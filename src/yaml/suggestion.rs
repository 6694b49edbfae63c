//! Suggestions: a fix of a finding in words and as an edit, both from one description.
//!
//! Contains: the suggestion, and edits of scalars that keep the file valid YAML.
//! Does not contain: the choice of a fix.

use std::ops::Range;

use super::meaning::{ScalarSense, meaning};
use super::{Diagnostic, Fix, Node, Scalar, ScalarStyle, Span, suggest};

/// A replaced part of a text.
pub type Edit<Place = Span> = (Place, String);

/// A fix of a finding. The place of its edit is a span of a file, or a range of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion<Place = Span> {
    /// The fix in words.
    help: String,
    /// The same fix as an edit, if it is certain enough. It may change what the rule decides.
    edit: Option<Edit<Place>>,
}

impl<Place> Suggestion<Place> {
    /// Returns a fix that only the author can make.
    pub fn advice(help: impl Into<String>) -> Self {
        Self { help: help.into(), edit: None }
    }

    /// Returns the fix that writes another text.
    pub fn write(place: Place, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { help: format!("write `{text}`"), edit: Some((place, text)) }
    }

    /// Returns the fix that deletes a part.
    pub fn delete(place: Place, part: &str) -> Self {
        Self { help: format!("remove `{part}`"), edit: Some((place, String::new())) }
    }

    /// Returns a fix whose edit needs more words than its new text.
    pub fn edited(help: impl Into<String>, edit: Option<Edit<Place>>) -> Self {
        Self { help: help.into(), edit }
    }

    /// Returns the fix of a mistyped word.
    pub fn word(near: &str, edit: Option<Edit<Place>>) -> Self {
        Self { help: suggest::is_it(near), edit }
    }

    /// Adds words to the help: a reason, or another possibility.
    #[must_use]
    pub fn because(mut self, reason: &str) -> Self {
        self.help.push_str(reason);
        self
    }

    /// Returns the fix in words.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Returns the fix as an edit.
    #[must_use]
    pub fn edit(self) -> Option<Edit<Place>> {
        self.edit
    }
}

impl Suggestion<Range<usize>> {
    /// Returns the fix of a part of a scalar. The ranges begin at `offset` of its decoded text.
    #[must_use]
    pub fn within(self, node: &Node, offset: usize) -> Suggestion {
        let edit = self.edit.and_then(|(range, text)| {
            node.replaced(range.start + offset..range.end + offset, &text)
        });
        Suggestion { help: self.help, edit }
    }
}

impl<Place> From<String> for Suggestion<Place> {
    fn from(help: String) -> Self {
        Self::advice(help)
    }
}

impl<Place> From<&str> for Suggestion<Place> {
    fn from(help: &str) -> Self {
        Self::advice(help)
    }
}

impl Diagnostic {
    /// Adds a fix in words and as an edit.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<Suggestion>) -> Self {
        let Suggestion { help, edit } = suggestion.into();
        self.help = Some(help);
        self.fix = edit.map(|it| Fix { safe: false, edits: vec![it] }).or(self.fix);
        self
    }
}

impl Node {
    /// Returns the edit that replaces a range of the decoded text, with the quotes and escapes of the scalar.
    /// A plain scalar gets quotes if it needs them. `None` if the scalar cannot contain the text.
    #[must_use]
    pub fn replaced(&self, decoded: Range<usize>, text: &str) -> Option<Edit> {
        let scalar = self.scalar()?;
        if text.contains('\n') && scalar.style != ScalarStyle::DoubleQuoted {
            return None; // Its lines would have to be indented.
        }
        let written = match scalar.style {
            ScalarStyle::DoubleQuoted => double_quoted(text),
            ScalarStyle::SingleQuoted => text.replace('\'', "''"),
            ScalarStyle::Plain => return self.plain_replaced(scalar, decoded, text),
            ScalarStyle::Literal | ScalarStyle::Folded => text.to_owned(),
        };
        Some((self.sub_span(decoded), written))
    }

    /// Returns the suggestion to write another text as the whole scalar.
    #[must_use]
    pub fn rewritten(&self, text: &str) -> Suggestion {
        let length = self.scalar().map_or(0, |it| it.text.len());
        Suggestion::write(0..length, text).within(self, 0)
    }

    /// Returns the suggestion to write a similar word as the whole scalar.
    #[must_use]
    pub fn renamed(&self, near: &str) -> Suggestion {
        let length = self.scalar().map_or(0, |it| it.text.len());
        Suggestion::word(near, self.replaced(0..length, near))
    }

    /// Returns the suggestion to write a value that is not text, without quotes.
    #[must_use]
    pub fn unquoted(&self, value: &str) -> Suggestion {
        Suggestion::write(self.span.clone(), value)
    }

    /// Returns the suggestion to write the scalar in double quotes, so that it is text.
    #[must_use]
    pub fn in_quotes(&self) -> Suggestion {
        let text = format!("\"{}\"", double_quoted(self.span.text()));
        Suggestion::write(self.span.clone(), text).because(": in quotes it is text")
    }

    /// Returns the suggestion to write the scalar as a list of one item. `None` if it cannot be in brackets.
    #[must_use]
    pub fn in_brackets(&self) -> Option<Suggestion> {
        let scalar = self.scalar()?;
        let written = self.span.text();
        let is_free = match scalar.style {
            ScalarStyle::Plain => !written.contains([',', '[', ']', '{', '}']),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => true,
            ScalarStyle::Literal | ScalarStyle::Folded => false,
        };
        let fits = !written.is_empty() && !written.contains('\n') && is_free;
        fits.then(|| Suggestion::write(self.span.clone(), format!("[{written}]")))
    }

    /// The edit of a plain scalar: of the part, or of all of it if it needs quotes then.
    fn plain_replaced(&self, scalar: &Scalar, decoded: Range<usize>, text: &str) -> Option<Edit> {
        let (before, after) = (scalar.text.get(..decoded.start)?, scalar.text.get(decoded.end..)?);
        let whole = format!("{before}{text}{after}");
        if is_plain(&whole, self.is_in_brackets()) {
            return Some((self.sub_span(decoded), text.to_owned()));
        }
        let is_one_line = self.span.text() == scalar.text;
        is_one_line.then(|| (self.span.clone(), single_quoted(&whole)))
    }

    /// Whether the scalar may be in a list or map with brackets, where more characters end a plain text.
    fn is_in_brackets(&self) -> bool {
        let before = self.span.source.text.get(..self.span.start).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        !line.trim_end().ends_with([':', '-']) || line.contains(['[', '{'])
    }
}

/// Whether YAML reads a text without quotes as this text.
fn is_plain(text: &str, in_brackets: bool) -> bool {
    let begins = |c: char| c.is_alphanumeric() || "(/._$".contains(c);
    let scalar = Scalar { text: text.to_owned(), style: ScalarStyle::Plain, indent: 0 };
    text.starts_with(begins)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && (!in_brackets || !text.contains([',', '[', ']', '{', '}']))
        && meaning(&scalar) == ScalarSense::Text
}

/// Returns a text of one line in single quotes.
#[must_use]
pub fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A text with the escapes of double quotes.
fn double_quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
