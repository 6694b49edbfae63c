//! Values of the protocol: addresses of files, ranges, and findings.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use lsp_types::{
    DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position, Range,
    TextEdit, Uri,
};

use policyd_editor::fixes;
use policyd_editor::text::{self, LineIndex};
use policyd_lint as lint;
use policyd_record::mask::mask;
use policyd_yaml::{Diagnostic, Level, Source, Span};

/// Scheme of files.
const FILE: &str = "file://";

/// Returns the path of a file address. `None` for other addresses, such as that of an unsaved file.
pub(super) fn path_of(uri: &Uri) -> Option<PathBuf> {
    let path = uri.as_str().strip_prefix(FILE)?;
    let path = path.strip_prefix("localhost").filter(|it| it.starts_with('/')).unwrap_or(path);
    let decoded = decode(path)?;
    // On Windows, an address is `file:///C:/directory`.
    let is_drive = decoded.as_bytes().get(2) == Some(&b':') && cfg!(windows);
    Some(PathBuf::from(if is_drive { decoded.trim_start_matches('/') } else { &decoded }))
}

/// Returns the address of a file. `None` if the path is not absolute or not UTF-8.
pub(super) fn uri_of(path: &Path) -> Option<Uri> {
    let path = path.to_str()?.replace('\\', if cfg!(windows) { "/" } else { "\\" });
    let slash = if path.starts_with('/') { "" } else { "/" };
    let has_drive = cfg!(windows) && path.as_bytes().get(1) == Some(&b':');
    let is_absolute = path.starts_with('/') || has_drive;
    is_absolute.then(|| Uri::from_str(&format!("{FILE}{slash}{}", encode(&path))).ok())?
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        if is_plain || (byte == b':' && cfg!(windows)) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// A position of the protocol.
pub(super) const fn position(at: text::TextPosition) -> Position {
    Position { line: at.line, character: at.column }
}

/// A position in a text.
pub(super) const fn text_position(at: Position) -> text::TextPosition {
    text::TextPosition { line: at.line, column: at.character }
}

/// A text with its lines.
pub(super) struct TextLines<'t> {
    text: &'t str,
    index: LineIndex,
}

impl<'t> TextLines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, index: LineIndex::new(text) }
    }

    /// The range of bytes.
    pub(super) fn range(&self, bytes: &std::ops::Range<usize>) -> Range {
        Range { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    pub(super) fn position(&self, byte: usize) -> Position {
        position(self.index.position(self.text, byte))
    }

    pub(super) fn offset(&self, at: Position) -> usize {
        self.index.offset(self.text, text_position(at))
    }

    /// The bytes of a range.
    pub(super) fn bytes(&self, range: Range) -> std::ops::Range<usize> {
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        start.min(end)..start.max(end)
    }

    pub(super) fn edit(&self, edit: &fixes::TextEdit) -> TextEdit {
        TextEdit { range: self.range(&edit.range), new_text: edit.text.clone() }
    }
}

/// The location of a span. `None` for files that are on no disk, such as those of the built-in pack.
pub(super) fn location(span: &Span) -> Option<Location> {
    SourceLines::default().location(span)
}

/// The lines of files, found once for all findings in a file.
#[derive(Default)]
pub(super) struct SourceLines {
    known: Vec<(Arc<Source>, LineIndex)>,
}

impl SourceLines {
    /// The range of bytes of a file.
    fn range(&mut self, source: &Arc<Source>, bytes: &std::ops::Range<usize>) -> Range {
        if !self.known.iter().any(|(known, _)| Arc::ptr_eq(known, source)) {
            self.known.push((Arc::clone(source), LineIndex::new(&source.text)));
        }
        let known = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, source));
        let at = |byte| known.map(|(it, index)| position(index.position(&it.text, byte)));
        let [start, end] = [bytes.start, bytes.end].map(|it| at(it).unwrap_or_default());
        Range { start, end }
    }

    /// The location of a span. `None` for files that are on no disk, such as those of the built-in pack.
    pub(super) fn location(&mut self, span: &Span) -> Option<Location> {
        let uri = uri_of(Path::new(&span.source.name))?;
        Some(Location { uri, range: self.range(&span.source, &(span.start..span.end)) })
    }

    /// A finding of a file.
    pub(super) fn diagnostic(&mut self, finding: &Diagnostic) -> lsp_types::Diagnostic {
        let mut message = finding.message.clone();
        for (label, text) in [("help", &finding.help), ("note", &finding.note)] {
            if let Some(text) = text {
                message.push_str(&format!("\n{label}: {text}"));
            }
        }
        let related = finding.related.iter().filter_map(|(span, role)| {
            let message = if role.is_empty() { "in this rule" } else { role };
            let location = self.location(span)?;
            Some(DiagnosticRelatedInformation { location, message: message.to_owned() })
        });
        let related: Vec<_> = related.collect();
        let severity = match finding.level {
            Level::Error => DiagnosticSeverity::ERROR,
            Level::Warning => DiagnosticSeverity::WARNING,
            Level::Note => DiagnosticSeverity::INFORMATION,
        };
        lsp_types::Diagnostic {
            range: self.range(&finding.span.source, &visible(&finding.span)),
            severity: Some(severity),
            code: Some(NumberOrString::String(lint::code_of(finding.code).to_owned())),
            source: Some("policyd".to_owned()),
            message: mask(&message).0.into_owned(),
            related_information: (!related.is_empty()).then_some(related),
            ..lsp_types::Diagnostic::default()
        }
    }
}

/// The bytes of a span; of an empty one, the character behind it, so that an editor can mark something.
pub(super) fn visible(span: &Span) -> std::ops::Range<usize> {
    let Source { text, .. } = &*span.source;
    if span.start < span.end {
        return span.start..span.end;
    }
    let next = text.get(span.start..).and_then(|it| it.chars().next());
    let next = next.filter(|it| !matches!(it, '\n' | '\r'));
    span.start..span.start + next.map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_path_with_escapes() {
        for (path, address) in [
            ("/work/a b/é.yaml", "file:///work/a%20b/%C3%A9.yaml"),
            #[cfg(unix)]
            ("/c:/x#y?z%", "file:///c%3A/x%23y%3Fz%25"),
            #[cfg(windows)]
            ("c:/x#y?z%", "file:///c:/x%23y%3Fz%25"),
        ] {
            let uri = uri_of(Path::new(path)).unwrap();
            assert_eq!(uri.as_str(), address);
            assert_eq!(path_of(&uri).unwrap(), Path::new(path));
        }
        let other = |text: &str| path_of(&Uri::from_str(text).unwrap());
        assert_eq!(other("file://localhost/x"), Some(PathBuf::from("/x")));
        assert_eq!(other("untitled:Untitled-1"), None);
        assert!(uri_of(Path::new("relative")).is_none());
    }
}
