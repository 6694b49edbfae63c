//! Edits that an editor offers for a finding: its fix, and a comment that suppresses it.

use std::ops::Range;

use super::text::LineIndex;
use policyd_lint::{self as lint, Rule};
use policyd_yaml::{Diagnostic, Source};

/// A replaced range of a text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The replaced bytes.
    pub range: Range<usize>,
    /// The new text.
    pub text: String,
}

/// An edit that an editor offers for a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedFix {
    /// What the edit does, in a few words.
    pub title: String,
    /// Whether the edit changes no decision.
    pub safe: bool,
    /// Edits of the file that contains the finding. They do not overlap.
    pub edits: Vec<TextEdit>,
}

/// Returns the fix of a finding, if all its edits are in the file of the finding.
#[must_use]
pub fn fix(finding: &Diagnostic) -> Option<OfferedFix> {
    let fix = finding.fix.as_ref()?;
    let source = &finding.span.source;
    if fix.edits.iter().any(|(span, _)| span.source != *source) {
        return None;
    }
    let edits = fix
        .edits
        .iter()
        .map(|(span, text)| TextEdit { range: span.start..span.end, text: text.clone() });
    let title = match fix.edits.as_slice() {
        [(span, new)] if is_short(span.text()) && is_short(new) => {
            match (span.text().trim(), new.trim()) {
                ("", new) => format!("Insert `{new}`"),
                (old, "") => format!("Delete `{old}`"),
                (old, new) => format!("Replace `{old}` with `{new}`"),
            }
        }
        _ => finding.help.clone().map_or_else(|| format!("Fix: {}", finding.message), capitalized),
    };
    Some(OfferedFix { title, safe: fix.safe, edits: edits.collect() })
}

/// Longest text in a title, in characters.
const TITLE_CHARS_MAX: usize = 40;

fn is_short(text: &str) -> bool {
    text.chars().count() <= TITLE_CHARS_MAX && !text.trim().contains('\n')
}

fn capitalized(text: String) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => text,
    }
}

/// Returns the comment above the line of a finding that suppresses the finding. `None` if the finding cannot be
/// suppressed, or its line is within a text of several lines, where a comment would be a part of the text.
#[must_use]
pub fn suppression(finding: &Diagnostic) -> Option<OfferedFix> {
    let rule = lint::find(finding.code).filter(|it| it.can_be_silenced())?;
    let source = &finding.span.source;
    let lines = LineIndex::new(&source.text);
    let line = lines.line(&source.text, lines.line_of(finding.span.start));
    let edit = comment_above(source, &line, rule)?;
    let title = format!("Suppress {} here with a comment", rule.code);
    Some(OfferedFix { title, safe: true, edits: vec![edit] })
}

fn comment_above(source: &Source, line: &Range<usize>, rule: &Rule) -> Option<TextEdit> {
    let written = source.text.get(line.clone())?;
    let blanks = written.len() - written.trim_start_matches(' ').len();
    let indent = written.get(..blanks)?;
    let comment = format!("{indent}# policyd: ignore[{}] reason=\"\"\n", rule.code);
    // Only YAML itself knows whether the line before is open: the comment must be one there.
    let mut text = source.text.clone();
    text.insert_str(line.start, &comment);
    let changed = Source { name: source.name.clone(), text };
    let comment_start = line.start + blanks;
    let is_comment = policyd_yaml::yaml::comments(&changed);
    let is_comment = is_comment.iter().any(|it| it.start == comment_start);
    is_comment.then_some(TextEdit { range: line.start..line.start, text: comment })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use policyd_yaml::Span;

    fn finding(text: &str, word: &str) -> Diagnostic {
        let source = Arc::new(Source { name: "guards.yaml".to_owned(), text: text.to_owned() });
        let start = text.find(word).unwrap();
        let span = Span { source, start, end: start + word.len() };
        Diagnostic::warning("constant-condition", span, "the condition is always true")
    }

    #[test]
    fn the_title_of_a_fix_names_what_changes() {
        let found = finding("severty: x", "severty");
        let title = |found: Diagnostic| fix(&found).unwrap().title;
        let with = |text: &str| found.clone().with_fix(true, found.span.clone(), text);
        assert_eq!(title(with("severity")), "Replace `severty` with `severity`");
        assert_eq!(title(with("")), "Delete `severty`");
        assert_eq!(title(with("a\nb").with_help("write two lines")), "Write two lines");
        assert!(fix(&found).is_none());
    }

    #[test]
    fn a_suppression_is_a_comment_with_the_indent_of_its_line() {
        let found = finding("- id: a\n  when: true\n", "true");
        let offered = suppression(&found).unwrap();
        let edit = offered.edits.first().unwrap();
        let code = lint::code_of("constant-condition");
        assert_eq!((edit.range.clone(), offered.safe), (8..8, true));
        assert_eq!(edit.text, format!("  # policyd: ignore[{code}] reason=\"\"\n"));
        let within = finding("- id: a\n  when: |-\n    true ||\n    false\n", "false");
        assert!(suppression(&within).is_none());
        let syntax = Diagnostic { code: "yaml-syntax", ..finding("a: b", "b") };
        assert!(suppression(&syntax).is_none());
    }
}
