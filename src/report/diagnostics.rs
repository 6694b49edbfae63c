//! Diagnostics as text with the file's own lines, as one line each, and as JSON objects.
//! All show the same findings in the same order: errors first, then by file and position.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Patch, Renderer, Snippet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use policyd_lint::{code_of, find};
use policyd_record::paint::{as_own, for_terminal};
use policyd_yaml::{Diagnostic, Fix, Level, Source, Span};

/// Bytes of a file shown as one piece; places further apart are shown one by one.
const PIECE_BYTES_MAX: usize = 4 * 1024;
/// The rule of lint that finds credentials.
const SECRET: &str = "secret";
/// Bytes shown of a line after the last underlined one.
const TAIL_BYTES_MAX: usize = 240;

/// How text is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// With terminal colors.
    pub color: bool,
}

/// Renders each finding with its lines, and carets below the location.
#[must_use]
pub fn render_text(findings: &[Diagnostic], style: Style) -> String {
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let starred = starred(findings);
    let render = |finding: &Diagnostic| {
        let shown = without_escapes(without_secrets(finding, &starred));
        renderer.render(&groups(&shown, style)) + "\n"
    };
    let rendered: Vec<String> = in_order(findings).into_iter().map(render).collect();
    // Every escape sequence left is the renderer's.
    as_own(&rendered.join("\n"))
}

/// The finding with escape characters in its texts escaped. The renderer does so itself in the lines of
/// files.
fn without_escapes(finding: Cow<'_, Diagnostic>) -> Cow<'_, Diagnostic> {
    let has_escapes = |text: &str| text.contains('\u{1b}');
    let spans = finding.related.iter().map(|(span, _)| span).chain([&finding.span]);
    let files = spans.map(|it| it.source.name.as_str());
    let roles = finding.related.iter().map(|(_, role)| role.as_str());
    let texts = finding.help.iter().chain(&finding.note).map(String::as_str);
    if !files.chain(roles).chain(texts).chain([finding.message.as_str()]).any(has_escapes) {
        return finding;
    }
    let mut shown = finding.into_owned();
    let escape = |text: &mut String| *text = for_terminal(text).into_owned();
    let texts = shown.help.iter_mut().chain(&mut shown.note).chain([&mut shown.message]);
    texts.chain(shown.related.iter_mut().map(|(_, role)| role)).for_each(escape);
    let edits = shown.fix.iter_mut().flat_map(|it| it.edits.iter_mut().map(|(span, _)| span));
    let related = shown.related.iter_mut().map(|(span, _)| span);
    for span in edits.chain(related).chain([&mut shown.span]) {
        let name = for_terminal(&span.source.name).into_owned();
        span.source = Arc::new(Source { name, text: span.source.text.clone() });
    }
    Cow::Owned(shown)
}

/// Files with stars in place of the credentials that lint found in them, by their names: what is shown may be kept
/// in the log of a CI.
fn starred(findings: &[Diagnostic]) -> BTreeMap<&str, Arc<Source>> {
    let mut files: BTreeMap<&str, Arc<Source>> = BTreeMap::new();
    for span in findings.iter().filter(|it| it.code == SECRET).map(|it| &it.span) {
        let file = files.entry(&span.source.name).or_insert_with(|| Arc::clone(&span.source));
        let mut text = file.text.clone();
        if text.get(span.start..span.end).is_some() {
            text.replace_range(span.start..span.end, &"*".repeat(span.end - span.start));
        }
        *file = Arc::new(Source { name: file.name.clone(), text });
    }
    files
}

/// The finding as it is shown where some files have stars.
fn without_secrets<'d>(
    finding: &'d Diagnostic,
    starred: &BTreeMap<&str, Arc<Source>>,
) -> Cow<'d, Diagnostic> {
    if starred.is_empty() {
        return Cow::Borrowed(finding);
    }
    let mut shown = finding.clone();
    let edits = shown.fix.iter_mut().flat_map(|it| it.edits.iter_mut().map(|(span, _)| span));
    let related = shown.related.iter_mut().map(|(span, _)| span);
    for span in edits.chain(related).chain([&mut shown.span]) {
        if let Some(file) = starred.get(span.source.name.as_str()) {
            span.source = Arc::clone(file);
        }
    }
    Cow::Owned(shown)
}

/// One line each: `file:line:column: error[code]: message (help)`.
#[must_use]
pub fn render_compact(findings: &[Diagnostic]) -> String {
    let line = |it: &Diagnostic| {
        let help = it.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
        let (place, level) = (it.span.place(), level_name(it.level));
        format!("{place}: {level}[{}]: {}{help}\n", code_of(it.code), it.message)
    };
    in_order(findings).into_iter().map(line).collect()
}

/// Renders findings as an array of JSON objects.
#[must_use]
pub fn render_json(findings: &[Diagnostic]) -> Value {
    json!(in_order(findings).into_iter().map(FindingRecord::new).collect::<Vec<_>>())
}

/// A finding as a JSON object.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindingRecord<'a> {
    /// Code of the rule.
    #[schemars(length(min = 1))]
    code: &'a str,
    /// Name of the rule.
    #[schemars(length(min = 1))]
    name: &'a str,
    /// Severity.
    #[schemars(extend("enum" = ["note", "warning", "error"]))]
    level: &'static str,
    /// The problem.
    #[schemars(length(min = 1))]
    message: &'a str,
    #[serde(flatten)]
    location: Location<'a>,
    /// How to fix the problem.
    help: Option<&'a str>,
    /// How the problem changes decisions.
    note: Option<&'a str>,
    /// Related locations.
    related: Vec<RelatedLocation<'a>>,
    /// The fix as edits.
    fix: Option<FixRecord<'a>>,
    /// Identifies the finding when lines move; absent from ignored findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Reason of the suppression comment; only in ignored findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// A location in a file. Lines and columns count from 1, columns in characters, and ends are exclusive.
#[derive(Debug, Serialize, JsonSchema)]
struct Location<'a> {
    /// Name of the file.
    #[schemars(length(min = 1))]
    file: &'a str,
    /// First line.
    line: usize,
    /// First column.
    column: usize,
    /// Last line.
    end_line: usize,
    /// Column after the last one.
    end_column: usize,
}

/// A related location.
#[derive(Debug, Serialize, JsonSchema)]
struct RelatedLocation<'a> {
    /// Relation to the finding; may be empty.
    message: &'a str,
    #[serde(flatten)]
    location: Location<'a>,
}

/// A fix.
#[derive(Debug, Serialize, JsonSchema)]
struct FixRecord<'a> {
    /// Whether the fix changes no decision.
    safe: bool,
    /// Edits of the fix.
    edits: Vec<EditRecord<'a>>,
}

/// An edit: the text replaces the content of the location.
#[derive(Debug, Serialize, JsonSchema)]
struct EditRecord<'a> {
    #[serde(flatten)]
    location: Location<'a>,
    /// The new text; may be empty.
    text: &'a str,
}

impl<'a> FindingRecord<'a> {
    pub(super) fn new(finding: &'a Diagnostic) -> Self {
        let related = finding
            .related
            .iter()
            .map(|(span, role)| RelatedLocation { message: role, location: Location::new(span) });
        let edit =
            |(span, text): &'a (Span, String)| EditRecord { location: Location::new(span), text };
        let fix = finding
            .fix
            .as_ref()
            .map(|fix| FixRecord { safe: fix.safe, edits: fix.edits.iter().map(edit).collect() });
        Self {
            code: code_of(finding.code),
            name: find(finding.code).map_or(finding.code, |rule| rule.name),
            level: level_name(finding.level),
            message: &finding.message,
            location: Location::new(&finding.span),
            help: finding.help.as_deref(),
            note: finding.note.as_deref(),
            related: related.collect(),
            fix,
            fingerprint: None,
            reason: None,
        }
    }

    pub(super) fn with_fingerprint(self, fingerprint: String) -> Self {
        Self { fingerprint: Some(fingerprint), ..self }
    }

    pub(super) fn with_reason(self, reason: &'a str) -> Self {
        Self { reason: Some(reason), ..self }
    }
}

impl<'a> Location<'a> {
    fn new(span: &'a Span) -> Self {
        let end = Span { start: span.end, ..span.clone() };
        let ((line, column), (end_line, end_column)) = (span.line_column(), end.line_column());
        Self { file: &span.source.name, line, column, end_line, end_column }
    }
}

/// Errors first, then by file and position; each finding once.
pub(super) fn in_order(findings: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut sorted: Vec<&Diagnostic> = findings.iter().collect();
    sorted.sort_by_key(|it| {
        let Span { source, start, end } = &it.span;
        (Reverse(it.level), source.name.as_str(), *start, *end, it.code, it.message.as_str())
    });
    sorted.dedup();
    sorted
}

/// The name of a level.
#[must_use]
pub const fn level_name(level: Level) -> &'static str {
    match level {
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

/// The finding, and its cure as a diff where there is one.
fn groups(finding: &Diagnostic, style: Style) -> Vec<Group<'_>> {
    let level = match finding.level {
        Level::Note => annotate_snippets::Level::NOTE,
        Level::Warning => annotate_snippets::Level::WARNING,
        Level::Error => annotate_snippets::Level::ERROR,
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        finding.related.iter().partition(|(span, _)| is_near(span, &finding.span));
    let mut places = vec![LabeledSpan { span: &finding.span, role: None }];
    places.extend(here.iter().map(|(span, role)| LabeledSpan { span, role: Some(role) }));
    let code = code_of(finding.code);
    let mut title = level.primary_title(finding.message.as_str()).id(code);
    if style.color && code != finding.code {
        // A terminal shows the code as a link to its page.
        title = title
            .id_url(format!("{}/blob/main/src/lint/docs/{code}.md", env!("CARGO_PKG_REPOSITORY")));
    }
    let mut group = title.element(snippet(&finding.span.source, &places));
    for (span, role) in elsewhere {
        group = group.element(snippet(&span.source, &[LabeledSpan { span, role: Some(role) }]));
    }
    if let Some(note) = &finding.note {
        group = group.element(annotate_snippets::Level::NOTE.message(note.as_str()));
    }
    match (&finding.help, &finding.fix) {
        (Some(help), Some(fix)) => vec![group, diff(help, fix)],
        (Some(help), None) => {
            vec![group.element(annotate_snippets::Level::HELP.message(help.as_str()))]
        }
        (None, _) => vec![group],
    }
}

/// The edits of a fix as a diff below its help.
fn diff<'a>(help: &'a str, fix: &'a Fix) -> Group<'a> {
    let mut group = annotate_snippets::Level::HELP
        .secondary_title(help)
        .elements(Vec::<Snippet<'_, Patch<'_>>>::new());
    for (span, text) in &fix.edits {
        let window = whole_lines(&span.source.text, span.start..span.end);
        let lines = span.source.text.get(window.clone()).unwrap_or_default();
        let at = span.start.saturating_sub(window.start)..span.end.saturating_sub(window.start);
        let line = first_line(&span.source.text, window.start);
        let patch = Snippet::source(lines).line_start(line).path(span.source.name.as_str());
        group = group.element(patch.patch(Patch::new(at, text.as_str())));
    }
    group
}

/// The number of the line that begins at a byte, from 1.
fn first_line(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().bytes().filter(|byte| *byte == b'\n').count() + 1
}

fn is_near(span: &Span, other: &Span) -> bool {
    let between = span.end.max(other.end) - span.start.min(other.start);
    span.source == other.source && between <= PIECE_BYTES_MAX
}

/// A place to underline; the primary one has no role.
struct LabeledSpan<'a> {
    span: &'a Span,
    role: Option<&'a String>,
}

/// Only the lines around the places are handed to the renderer: its cost is that of its text.
fn snippet<'a>(source: &'a Source, places: &[LabeledSpan<'a>]) -> Snippet<'a, Annotation<'a>> {
    let first = places.iter().map(|it| it.span.start).min().unwrap_or(0);
    let last = places.iter().map(|it| shown_end(it.span)).max().unwrap_or(0);
    let window = whole_lines(&source.text, first..last);
    let line = first_line(&source.text, window.start);
    let text = source.text.get(window.clone()).unwrap_or_default();
    let annotations = places.iter().map(|it| {
        let from = it.span.start.saturating_sub(window.start);
        let to = shown_end(it.span).saturating_sub(window.start);
        let kind =
            if it.role.is_some() { AnnotationKind::Context } else { AnnotationKind::Primary };
        kind.span(from..to).label(it.role.map(String::as_str).filter(|it| !it.is_empty()))
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
