//! Diagnostics as text with the file's own lines, as one line each, and as JSON.
//! All three show the same findings in the same order: errors first, then by file and position.

use std::cmp::Reverse;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Renderer, Snippet};
use serde_json::{Value, json};

use crate::source::{Diagnostic, Level, Source, Span};

/// Bytes of a file shown as one piece; places further apart are shown one by one.
const PIECE_BYTES_MAX: usize = 4 * 1024;
/// Bytes shown of a line after the last underlined one.
const TAIL_BYTES_MAX: usize = 240;

/// How text is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// With terminal colours.
    pub color: bool,
}

/// Each finding with the lines it is about, carets under what is meant.
#[must_use]
pub fn render_text(findings: &[Diagnostic], style: Style) -> String {
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let rendered: Vec<String> =
        in_order(findings).into_iter().map(|it| renderer.render(&[group(it)]) + "\n").collect();
    rendered.join("\n")
}

/// One line each: `file:line:column: error[code]: message (help)`.
#[must_use]
pub fn render_compact(findings: &[Diagnostic]) -> String {
    let line = |it: &Diagnostic| {
        let help = it.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
        let (place, level) = (it.span.place(), level_name(it.level));
        format!("{place}: {level}[{}]: {}{help}\n", it.code, it.message)
    };
    in_order(findings).into_iter().map(line).collect()
}

/// An array of objects; lines and columns count from 1, columns in characters, ends exclusive.
#[must_use]
pub fn render_json(findings: &[Diagnostic]) -> Value {
    let object = |it: &Diagnostic| {
        let related: Vec<Value> = it
            .related
            .iter()
            .map(|(span, role)| merged(json!({ "message": role }), place(span)))
            .collect();
        let what = json!({
            "code": it.code,
            "level": level_name(it.level),
            "message": it.message,
        });
        let rest = json!({ "help": it.help, "related": related });
        merged(merged(what, place(&it.span)), rest)
    };
    in_order(findings).into_iter().map(object).collect()
}

/// Errors first, then by file and position; each finding once.
fn in_order(findings: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut sorted: Vec<&Diagnostic> = findings.iter().collect();
    sorted.sort_by_key(|it| {
        let Span { source, start, end } = &it.span;
        (Reverse(it.level), source.name.as_str(), *start, *end, it.code, it.message.as_str())
    });
    sorted.dedup();
    sorted
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

fn place(span: &Span) -> Value {
    let end = Span { start: span.end, ..span.clone() };
    let ((line, column), (end_line, end_column)) = (span.line_column(), end.line_column());
    json!({
        "file": span.source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    })
}

fn merged(mut first: Value, second: Value) -> Value {
    if let (Value::Object(into), Value::Object(from)) = (&mut first, second) {
        into.extend(from);
    }
    first
}

fn group(finding: &Diagnostic) -> Group<'_> {
    let level = match finding.level {
        Level::Note => annotate_snippets::Level::NOTE,
        Level::Warning => annotate_snippets::Level::WARNING,
        Level::Error => annotate_snippets::Level::ERROR,
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        finding.related.iter().partition(|(span, _)| is_near(span, &finding.span));
    let mut places = vec![Place { span: &finding.span, role: None }];
    places.extend(here.iter().map(|(span, role)| Place { span, role: Some(role) }));
    let mut group = level
        .primary_title(finding.message.as_str())
        .id(finding.code)
        .element(snippet(&finding.span.source, &places));
    for (span, role) in elsewhere {
        group = group.element(snippet(&span.source, &[Place { span, role: Some(role) }]));
    }
    match &finding.help {
        Some(help) => group.element(annotate_snippets::Level::HELP.message(help.as_str())),
        None => group,
    }
}

fn is_near(span: &Span, other: &Span) -> bool {
    let between = span.end.max(other.end) - span.start.min(other.start);
    span.source == other.source && between <= PIECE_BYTES_MAX
}

/// A place to underline; the primary one has no role.
struct Place<'a> {
    span: &'a Span,
    role: Option<&'a String>,
}

/// Only the lines around the places are handed to the renderer: its cost is that of its text.
fn snippet<'a>(source: &'a Source, places: &[Place<'a>]) -> Snippet<'a, Annotation<'a>> {
    let first = places.iter().map(|it| it.span.start).min().unwrap_or(0);
    let last = places.iter().map(|it| shown_end(it.span)).max().unwrap_or(0);
    let window = whole_lines(&source.text, first..last);
    let before = source.text.get(..window.start).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let text = source.text.get(window.clone()).unwrap_or_default();
    let annotations = places.iter().map(|it| {
        let from = it.span.start.saturating_sub(window.start);
        let to = shown_end(it.span).saturating_sub(window.start);
        let kind =
            if it.role.is_some() { AnnotationKind::Context } else { AnnotationKind::Primary };
        kind.span(from..to).label(it.role.map(String::as_str))
    });
    Snippet::source(text).line_start(line).path(source.name.as_str()).annotations(annotations)
}

/// Where underlining ends: a span that is too long is shown by its beginning.
fn shown_end(span: &Span) -> usize {
    span.end.min(boundary(&span.source.text, span.start.saturating_add(PIECE_BYTES_MAX)))
}

/// The lines that `range` touches; the last one may be cut after it.
fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text.get(..range.start).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let tail = text.get(range.end..boundary(text, range.end + TAIL_BYTES_MAX)).unwrap_or_default();
    start..range.end + tail.find('\n').unwrap_or(tail.len())
}

/// The last character boundary up to `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0)
}
