//! YAML syntax errors in the words of a person: one table from the parser's error kinds to a
//! message and a cure.

use std::ops::Range;
use std::sync::Arc;

use granit_parser::{ErrorKind, Parser, ScanError};

use super::suggestion::{Edit, single_quoted};
use super::{Diagnostic, Source, Span, Suggestion};
use crate::limits::YAML_DEPTH_MAX;

/// Code of an error of YAML that has no code of its own.
const SYNTAX: &str = "yaml-syntax";
const QUOTE_VALUE: &str = "put the whole value in single quotes";
const SINGLE_QUOTES: &str = "use single quotes, where a backslash is a backslash";
const TABS: &str = "YAML indents with spaces: replace the tabs of this line";
const INDENT: &str = "the line must start in the same column as its neighbors";

/// A kind of error with its message and help. Other kinds keep the message of the parser.
type SyntaxMessage = (ErrorKind, &'static str, &'static str);

fn rows() -> impl Iterator<Item = SyntaxMessage> {
    layout_rows().into_iter().chain(punctuation_rows())
}

/// Errors of indentation and line structure.
fn layout_rows() -> [SyntaxMessage; 13] {
    use ErrorKind as E;
    [
        (E::TabInBlockIndentation, "a tab indents this line", TABS),
        (E::TabInIndentation, "a tab indents this line", TABS),
        (E::TabNotAllowed, "a tab stands where only spaces may", TABS),
        (E::TabAtBlockScalarStart, "a tab indents this line", TABS),
        (E::TabInPlainScalar, "a tab indents this line", TABS),
        (E::InvalidIndentation, "this line is indented in a way YAML cannot place", INDENT),
        (E::InvalidBlockScalarIndent, "this line is indented less than the text above", INDENT),
        (E::InvalidFlowScalarIndent, "this line must be indented more than its key", INDENT),
        (E::ExpectedBlockMappingKey, "expected a key in the column of the keys above", INDENT),
        (
            E::ExpectedBlockSequenceEntry,
            "expected `-` and the next item of the list",
            "start it with `- `, or indent it under the item above",
        ),
        (
            E::BlockSequenceEntryNotAllowed,
            "a list cannot begin here",
            "begin it in the next line, or write it as `[a, b]`",
        ),
        (
            E::BlockEntryInFlowCollection,
            "`-` does not begin an item inside `[` or `{`",
            "separate items by commas",
        ),
        (E::SimpleKeyExpected, "this line has no `key:`", "add the `:` or indent the line"),
    ]
}

/// Errors of quotes, brackets and other marks.
fn punctuation_rows() -> [SyntaxMessage; 12] {
    use ErrorKind as E;
    [
        (
            E::MappingValueNotAllowed,
            "a second `: ` in one value",
            "put a value that contains `: ` in quotes, or check the indentation of this line",
        ),
        (
            E::InvalidColonPlacement,
            "a `:` where none can be",
            "a list or map above may not be closed, or a value needs quotes",
        ),
        (
            E::InvalidQuotedScalarIndent,
            "this line is still inside quotes",
            "close the quotes above, or indent this line",
        ),
        (E::UnclosedQuotedScalar, "quotes are opened and never closed", "add the closing quote"),
        (
            E::InvalidTrailingSingleQuotedScalar,
            "text after the closing quote",
            "inside single quotes, write `''` for a quote",
        ),
        (
            E::InvalidTrailingDoubleQuotedScalar,
            "text after the closing quote",
            "a value that starts with a quote ends at the next one: put the whole value in single \
             quotes",
        ),
        (E::UnknownQuotedScalarEscape, "an escape that YAML does not know", SINGLE_QUOTES),
        (
            E::ExpectedFlowMappingSeparator,
            "expected `,` or `}`",
            "close the map, or put a value in quotes",
        ),
        (
            E::ExpectedFlowSequenceSeparator,
            "expected `,` or `]`",
            "close the list, or put a value in quotes",
        ),
        (
            E::DirectiveDisallowed,
            "YAML directives are not part of the format",
            "delete this line; a text that starts with `%` needs quotes",
        ),
        (
            E::CommentInterceptedScalar,
            "a comment inside a text of several lines",
            "move the comment above the key, or put the text in quotes",
        ),
        (E::InvalidBlockScalarHeader, "text after `|` or `>`", "begin the text in the next line"),
    ]
}

/// What reading was inside of when it stopped.
#[derive(Default)]
pub(super) struct ParserContext {
    /// The innermost open bracket.
    pub(super) bracket: Option<Span>,
    /// The key whose value was being read.
    pub(super) key: Option<Span>,
}

/// The finding for a syntax error.
pub(super) fn syntax_error(
    source: &Arc<Source>,
    error: &ScanError,
    inside: ParserContext,
) -> Diagnostic {
    let finding = scan_error(source, error, inside);
    if finding.code == SYNTAX { unquoted_expression(finding) } else { finding }
}

/// An expression without quotes that YAML reads as a list, or `a ? b : c`: replaces the advice by one that fits.
fn unquoted_expression(mut finding: Diagnostic) -> Diagnostic {
    let source = Arc::clone(&finding.span.source);
    let text = source.text.as_str();
    let line_of = |at: usize| {
        let start = text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
        let end = text.get(at..).and_then(|it| it.find('\n')).map_or(text.len(), |it| at + it);
        (start, text.get(start..end).unwrap_or_default())
    };
    let here = line_of(finding.span.start.min(text.len()));
    let above = here.0.checked_sub(1).map(line_of);
    for (start, line) in [Some(here), above].into_iter().flatten() {
        let Some((key, value)) = line.split_once(": ") else { continue };
        let value = value.trim_end();
        let rest = value.rsplit_once(']').map(|(_, rest)| rest.trim_start());
        if value.starts_with('[') && rest.is_some_and(|it| !it.is_empty() && !it.starts_with('#')) {
            let start = start + key.len() + 2;
            let end = start + value.len();
            finding.span = Span { source: Arc::clone(&source), start, end };
            finding.message = "this value is not valid YAML".to_owned();
            return finding.suggest(in_quotes(&source, start));
        }
        let is_choice = value.split_once(" ? ").is_some_and(|(_, rest)| rest.contains(" : "));
        if is_choice && !value.starts_with(['"', '\'']) {
            let help = "expressions have no `? :`; write `if … { … } else { … }`";
            return finding.with_help(help);
        }
    }
    finding
}

fn scan_error(source: &Arc<Source>, error: &ScanError, inside: ParserContext) -> Diagnostic {
    let (kind, text) = (error.kind(), source.text.as_str());
    let at = error.marker().byte_offset().unwrap_or(0).min(text.len());
    let span = |range: Range<usize>| {
        let Range { start, end } = range;
        Span { source: Arc::clone(source), start, end }
    };
    if *kind == ErrorKind::RecursionLimitExceeded {
        let message = format!("lists and maps are nested more than {YAML_DEPTH_MAX} deep");
        return Diagnostic::error("limit-exceeded", span(one_character(text, at)), message);
    }
    if is_tag(kind) {
        let start = text.get(..at).and_then(|it| it.rfind('!')).unwrap_or(at);
        let message = "an unquoted `!` begins a tag, which is not part of the format";
        return Diagnostic::error("unsupported-yaml", span(one_character(text, start)), message)
            .suggest(in_quotes(source, start));
    }
    if let Some(line) = stray_key(kind, text, at) {
        let message = "this line is indented as if it went on with the value above";
        return Diagnostic::error(SYNTAX, span(line), message).with_help(INDENT);
    }
    let range = if is_tab(kind) {
        tab_indentation(text, at)
    } else if *kind == ErrorKind::UnknownQuotedScalarEscape {
        unknown_escape(text, at).unwrap_or_else(|| one_character(text, at))
    } else {
        one_character(text, at)
    };
    let span = span(range);
    let (message, help) = explain(kind, span.text());
    let fix = help.map(|it| fix(source, kind, &span, it));
    let finding = Diagnostic::error(SYNTAX, span, message);
    let finding = match fix {
        Some(fix) => finding.suggest(fix),
        None => finding,
    };
    let in_quotes =
        [ErrorKind::InvalidQuotedScalarIndent, ErrorKind::UnclosedQuotedScalar].contains(kind);
    match (inside.bracket, inside.key.filter(|_| in_quotes)) {
        (_, Some(key)) => finding.with_related(key, "in the value of this key"),
        (Some(bracket), None) => finding.with_related(bracket, "still inside this bracket"),
        (None, None) => finding,
    }
}

/// The fix of an error of punctuation or indentation.
fn fix(source: &Arc<Source>, kind: &ErrorKind, at: &Span, help: &str) -> Suggestion {
    let quotes = [ErrorKind::MappingValueNotAllowed, ErrorKind::InvalidTrailingDoubleQuotedScalar];
    if *kind == ErrorKind::UnknownQuotedScalarEscape && at.text().starts_with('\\') {
        let written = format!("\\{}", at.text());
        return Suggestion::write(at.clone(), written).because(&format!(", or {help}"));
    }
    // A kind without a row is a character that only quotes permit.
    let needs_quotes = quotes.contains(kind) || rows().all(|(row, _, _)| row != *kind);
    let edit = match (is_tab(kind), needs_quotes) {
        (true, _) => without_tabs(at),
        (false, true) => quoted_value(source, at.start),
        (false, false) => None,
    };
    Suggestion::edited(help, edit)
}

/// Whether an error is about a tab.
fn is_tab(kind: &ErrorKind) -> bool {
    use ErrorKind as E;
    [
        E::TabInBlockIndentation,
        E::TabInIndentation,
        E::TabNotAllowed,
        E::TabAtBlockScalarStart,
        E::TabInPlainScalar,
    ]
    .contains(kind)
}

/// The suggestion to put the value around a byte in single quotes.
pub(super) fn in_quotes(source: &Arc<Source>, at: usize) -> Suggestion {
    Suggestion::edited(QUOTE_VALUE, quoted_value(source, at))
}

/// The edit that puts the value around a byte in single quotes, if the value is the rest of its line and YAML can
/// read the line then.
fn quoted_value(source: &Arc<Source>, at: usize) -> Option<Edit> {
    let text = source.text.as_str();
    let start = line_start(text, at);
    let line = text.get(start..)?.split('\n').next()?.trim_end();
    let key = line.trim_start_matches([' ', '-']);
    let key_start = start + (line.len() - key.len());
    let value = key.split_once(": ").map_or(key, |(_, value)| value).trim_start();
    // Two quotes may be those of YAML around a text with a quote in it.
    let is_quoted = ['"', '\''].iter().any(|it| value.starts_with(*it) && value.ends_with(*it));
    let is_map = value.starts_with('{') || (value.starts_with('[') && value.ends_with(']'));
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut below = text.get(start..)?.lines().skip(1).filter(|it| !it.trim().is_empty());
    let goes_on = below.next().is_some_and(|it| indent(it) > line.len() - key.len());
    if goes_on {
        return None;
    }
    if value.is_empty()
        || value.contains(" #")
        || is_quoted
        || is_map
        || value.starts_with(['|', '>'])
    {
        return None;
    }
    let span = |range: Range<usize>| Span {
        source: Arc::clone(source),
        start: range.start,
        end: range.end,
    };
    let end = start + line.len();
    let edit = (span(end - value.len()..end), single_quoted(value));
    (key_start <= at && reads_past(&edit)).then_some(edit)
}

/// The edit that writes two spaces for each tab that indents a line, and the lines below it.
fn without_tabs(at: &Span) -> Option<Edit> {
    let start = line_start(&at.source.text, at.start);
    let is_indented = |line: &&str| {
        let indent = line.len() - line.trim_start().len();
        line.get(..indent).is_some_and(|it| it.contains('\t'))
    };
    let lines = at.source.text.get(start..)?.split_inclusive('\n').take_while(is_indented);
    let (mut end, mut written) = (start, String::new());
    for line in lines {
        let rest = line.trim_start();
        written.push_str(&line.get(..line.len() - rest.len())?.replace('\t', "  "));
        written.push_str(rest);
        end += line.len();
    }
    let edit = (Span { source: Arc::clone(&at.source), start, end }, written);
    reads_past(&edit).then_some(edit)
}

/// Whether YAML can read a file after an edit, at least up to the end of the edit.
pub(super) fn reads_past((span, written): &Edit) -> bool {
    let text = span.source.text.as_str();
    let (Some(before), Some(after)) = (text.get(..span.start), text.get(span.end..)) else {
        return false;
    };
    let edited = format!("{before}{written}{after}");
    let error = Parser::new_from_str(&edited).find_map(Result::err);
    let end = before.len() + written.len();
    error.is_none_or(|it| it.marker().byte_offset().is_some_and(|at| at > end))
}

/// Whether something was taken for a tag: mostly an expression that begins with `!`.
fn is_tag(kind: &ErrorKind) -> bool {
    use ErrorKind as E;
    [
        E::ExpectedTagBang,
        E::InvalidGlobalTagCharacter,
        E::InvalidTagTerminator,
        E::InvalidTagEscape,
        E::MissingTagUri,
        E::UndeclaredTagHandle,
        E::UnclosedVerbatimTag,
    ]
    .contains(kind)
}

fn explain(kind: &ErrorKind, at: &str) -> (String, Option<&'static str>) {
    if let Some((_, message, help)) = rows().find(|(row, _, _)| row == kind) {
        return (message.to_owned(), Some(help));
    }
    if let ErrorKind::UnexpectedCharacter { character } = kind {
        let message = match character {
            '`' => "an unquoted value cannot start with a backtick".to_owned(),
            it if it.is_control() => {
                format!("the control character `{}` cannot stand here", it.escape_default())
            }
            it => format!("an unquoted value cannot start with `{it}`"),
        };
        return (message, (!character.is_control()).then_some(QUOTE_VALUE));
    }
    if let ErrorKind::UnclosedFlowCollection { open } = kind {
        return (format!("`{open}` is opened and never closed"), None);
    }
    let help = (at == "\"" || at == "'").then_some(QUOTE_VALUE);
    (kind.to_string(), help)
}

/// The character at `at`; nothing at the end of a line.
fn one_character(text: &str, at: usize) -> Range<usize> {
    let start = (0..=at).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0);
    let next = text.get(start..).and_then(|rest| rest.chars().next());
    start..start + next.filter(|c| !"\r\n".contains(*c)).map_or(0, char::len_utf8)
}

/// A key that YAML took for more of the value above: the line up to its colon.
fn stray_key(kind: &ErrorKind, text: &str, at: usize) -> Option<Range<usize>> {
    let start = line_start(text, at);
    let before = text.get(start..at)?;
    let is_whole_line = *kind == ErrorKind::MappingValueNotAllowed && !before.contains(": ");
    let key = before.trim_start_matches([' ', '-']);
    is_whole_line.then(|| at - key.len()..at)
}

/// The blanks of the first line from `at` on that a tab indents.
fn tab_indentation(text: &str, at: usize) -> Range<usize> {
    let mut start = line_start(text, at);
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        if line.get(..blanks).is_some_and(|it| it.contains('\t')) {
            return start..start + blanks;
        }
        start += line.len();
    }
    one_character(text, at)
}

/// The first backslash after the quote at `at` that begins no escape.
fn unknown_escape(text: &str, at: usize) -> Option<Range<usize>> {
    let mut characters = text.get(at..)?.char_indices();
    while let Some((offset, c)) = characters.next() {
        if c == '\\' {
            let (_, escaped) = characters.next()?;
            if !"0abtnvfreNLP_xuU \t\"/\\\r\n".contains(escaped) {
                return Some(at + offset..at + offset + 1 + escaped.len_utf8());
            }
        }
    }
    None
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1)
}
