//! Explanations of the word at a place, as Markdown.

use std::ops::Range;

use super::ids::{FilePlace, Occurrence, inherited};
use super::keys::{self, ExpressionAt, FileText};
use super::place::{self, PathStep, Role};
use super::text::on_boundary;
use super::view::PackView;
use policyd_fact_table::marks::{ExpressionWord, WordSense, marks};
use policyd_fact_table::members::Member;
use policyd_fact_table::record::RecordField;
use policyd_lint as lint;
use policyd_record::table::Screen;
use policyd_report::fact_pages;
use policyd_yaml::{Diagnostic, Span};

/// An explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hover {
    /// Markdown.
    pub text: String,
    /// The explained word.
    pub range: Range<usize>,
    /// The expression around a fact, which has a value in a session.
    pub fact: Option<FactInExpression>,
}

/// A fact in an expression that reads facts only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactInExpression {
    /// The whole expression.
    pub expression: String,
    /// The last word of the fact in it.
    pub word: Range<usize>,
}

/// Screen of a page as plain text.
const PLAIN: Screen = Screen { columns: None, color: false };

/// Explains the word at a place of a file; `ids` are the ids of the pack.
#[must_use]
pub fn explain(
    view: &PackView,
    file: FileText<'_>,
    place: FilePlace<'_>,
    ids: &[Occurrence],
) -> Option<Hover> {
    let at = on_boundary(file.text, place.at);
    let name = place.file;
    if let Some(found) = lint_page(file.text, at) {
        return Some(found);
    }
    let place = place::find(file.text, at);
    if let Role::Value(scalar) = &place.role
        && let Some(expression) = keys::expression_at(view, file, at, &place)
    {
        let mark = mark_at(&expression)?;
        let word = mark.inner(&expression.text);
        let range = expression.source(scalar, &word);
        let text = explain_mark(view, &expression, &mark, ids)?;
        let is_fact = matches!(&mark.kind, WordSense::Fact { path, .. } if path.contains('.'));
        let has_value = is_fact && expression.names.record.is_none();
        let fact = has_value.then(|| FactInExpression {
            expression: expression.text.to_string(),
            word: word.clone(),
        });
        return Some(Hover { text, range, fact });
    }
    if let Some(found) = ids.iter().find(|it| it.is_at(FilePlace { file: name, at }))
        && let Some(text) = entry_page(view, ids, found)
    {
        return Some(Hover { text, range: found.span.start..found.span.end, fact: None });
    }
    let Role::Key { range, .. } = &place.role else { return None };
    let key = file.text.get(range.clone())?;
    let root = keys::shape_of(file.file, file.is_case)?;
    let fields = keys::fields_at(root, &place.path);
    let field = fields.iter().find(|it| it.name == key)?;
    let default = (field.default)().map(|it| format!("\n\nDefault: `{it}`")).unwrap_or_default();
    let required = if field.required || field.needed { " (required)" } else { "" };
    let above = place.path.iter().rev().find_map(|it| match it {
        PathStep::Key(key) => Some(format!(" of `{key}`")),
        PathStep::Item => None,
    });
    let above = above.unwrap_or_default();
    let text = format!("`{key}`{above}{required}: {}{default}", field.doc);
    Some(Hover { text, range: range.clone(), fact: None })
}

/// The word of an expression at the place.
fn mark_at(expression: &ExpressionAt<'_>) -> Option<ExpressionWord> {
    let at = expression.offset;
    let mut marks = marks(&expression.text, expression.names).into_iter().rev();
    marks.find(|it| it.range.start <= at && at <= it.range.end)
}

fn explain_mark(
    view: &PackView,
    expression: &ExpressionAt<'_>,
    mark: &ExpressionWord,
    ids: &[Occurrence],
) -> Option<String> {
    match &mark.kind {
        WordSense::Fact { path, member } => Some(fact(path, member)),
        WordSense::Record => {
            let record = expression.names.record.as_ref()?;
            let page = fact_pages::find(&record.name).ok()?;
            Some(format!("```text\n{}```", fact_pages::to_text(&page, PLAIN)))
        }
        WordSense::Field { name } => {
            let record = expression.names.record.as_ref()?;
            let field = record.fields.iter().find(|it| it.name == *name)?;
            Some(field_page(&record.name, field))
        }
        WordSense::PackName { name, .. } | WordSense::Value { text: name, .. } => {
            let wanted = ids.iter().find(|it| it.name == *name && it.entry.is_none());
            wanted.and_then(|it| entry_page(view, ids, it)).or_else(|| {
                let class = if let WordSense::PackName { class, .. } = &mark.kind {
                    class.noun
                } else {
                    ""
                };
                (!class.is_empty()).then(|| format!("{class} `{name}`"))
            })
        }
        WordSense::Keyword
        | WordSense::Operator
        | WordSense::Number
        | WordSense::Text
        | WordSense::Regex
        | WordSense::Item
        | WordSense::Unknown => None,
    }
}

/// The page of a fact.
fn fact(path: &str, member: &'static Member) -> String {
    let signature = match path.rsplit_once('.') {
        Some((owner, _)) => format!("{owner}.{}", member.signature()),
        None => member.signature(),
    };
    let mut text = format!("```rhai\n{signature}: {}\n```\n\n{}\n", member.result, member.doc);
    // A name without a dot is a subject, and not a fact.
    let properties = fact_pages::properties(path, member).into_iter();
    let properties = properties.filter(|_| path.contains('.'));
    let is_shown = |label: &str| !matches!(label, "type" | "example");
    for (label, value) in properties.filter(|(label, it)| is_shown(label) && !it.is_empty()) {
        text.push_str(&format!("- {label}: {value}\n"));
    }
    text.push_str(&format!("\nExample: `{}`", member.example));
    text
}

fn field_page(record: &str, field: &RecordField) -> String {
    let values = field.values.iter().filter(|it| !it.is_empty());
    let values: Vec<String> = values.map(|it| format!("`{it}`")).collect();
    let values = match values.as_slice() {
        [] => String::new(),
        some => format!("\n\nValues: {}", some.join(", ")),
    };
    let name = &field.name;
    format!("```rhai\n{record}.{name}: {}\n```\n\n{}{values}", field.result, field.doc)
}

/// Longest quoted entry, in lines.
const ENTRY_LINES_MAX: usize = 24;

/// What an id means: the entry that defines it, and whether the pack or a pack below it does.
fn entry_page(view: &PackView, ids: &[Occurrence], wanted: &Occurrence) -> Option<String> {
    let below = inherited(view);
    let all = ids.iter().chain(&below);
    let definitions: Vec<&Occurrence> =
        all.filter(|it| it.entry.is_some() && it.means(wanted)).collect();
    let first = definitions.first()?;
    let noun = first.kinds.first().map_or("id", |it| it.noun());
    let mut text = format!("{noun} `{}`", wanted.name);
    for definition in definitions {
        let entry = definition.entry.as_ref()?;
        text.push_str(&format!("\n\n{}\n\n```yaml\n{}\n```", shown_place(entry), excerpt(entry)));
    }
    Some(text)
}

fn shown_place(span: &Span) -> String {
    let place = span.place();
    let file = place.rsplit('/').next().unwrap_or(&place);
    if policyd_policy::builtin::wrote(&span.source) {
        format!("In the built-in pack, `{file}`:")
    } else {
        format!("In `{file}`:")
    }
}

/// The text of an entry without the indentation of its first line.
fn excerpt(span: &Span) -> String {
    let line =
        span.source.text.get(..span.start).and_then(|it| it.rfind('\n')).map_or(0, |it| it + 1);
    let indent = span.start - line;
    let written = span.text();
    let unindented = written.lines().enumerate().map(|(number, line)| {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        if number == 0 { line } else { line.get(blanks.min(indent)..).unwrap_or_default() }
    });
    let lines: Vec<&str> = unindented.take(ENTRY_LINES_MAX + 1).collect();
    let more = if lines.len() > ENTRY_LINES_MAX { "\n…" } else { "" };
    let shown: Vec<&str> = lines.into_iter().take(ENTRY_LINES_MAX).collect();
    format!("{}{more}", shown.join("\n"))
}

/// The page of a lint rule whose code is at a place of a comment.
fn lint_page(text: &str, at: usize) -> Option<Hover> {
    let range = lint::code_at(text, at)?;
    let rule = lint::find(text.get(range.clone())?)?;
    Some(Hover { text: rule.page.to_owned(), range, fact: None })
}

/// The page of the rule of a finding at a place.
#[must_use]
pub fn finding_page(finding: &Diagnostic) -> Option<String> {
    lint::find(finding.code).map(|it| format!("[{}] {}", it.code, it.page))
}
