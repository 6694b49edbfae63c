//! The outline of a file, its foldable ranges, and the colors of its expressions.

use std::ops::Range;
use std::sync::Arc;

use super::ids::Occurrence;
use super::keys::FileText;
use super::text::LineIndex;
use super::view::PackView;
use policyd_fact_table::marks::{WordSense, marks};
use policyd_lint::Subject;
use policyd_yaml::node::Node;
use policyd_yaml::time::Timestamp;
use policyd_yaml::{NodeKind, Source, yaml};

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The id, the name of a case, or the key.
    pub name: String,
    /// One more sentence: the question of a check, the message of a guard.
    pub detail: String,
    /// All of it.
    pub range: Range<usize>,
    /// Its id, name, or key.
    pub selection: Range<usize>,
    /// Whether it is an entry with an id, and not a section.
    pub is_entry: bool,
    /// Entries of a section.
    pub children: Vec<Symbol>,
}

/// Returns the outline of a file. Empty if the file is not valid YAML.
#[must_use]
pub fn symbols(text: &str) -> Vec<Symbol> {
    let source = Arc::new(Source { name: String::new(), text: text.to_owned() });
    yaml::parse(&source).0.map(|it| of_node(&it, 0)).unwrap_or_default()
}

/// Levels of keys in an outline.
const DEPTH_MAX: usize = 2;

fn of_node(node: &Node, depth: usize) -> Vec<Symbol> {
    match &node.kind {
        NodeKind::List(items) => items.iter().filter_map(entry).collect(),
        NodeKind::Map(entries) if depth < DEPTH_MAX => {
            let symbol = |(key, value): &(Node, Node)| {
                let name = key.text()?.to_owned();
                let children = of_node(value, depth + 1);
                let range = key.span.start..value.span.end.max(key.span.end);
                let selection = key.span.start..key.span.end;
                let detail = value.text().map(shortened).unwrap_or_default();
                Some(Symbol { name, detail, range, selection, is_entry: false, children })
            };
            entries.iter().filter_map(symbol).collect()
        }
        NodeKind::Map(_) | NodeKind::Scalar(_) | NodeKind::Invalid => Vec::new(),
    }
}

/// Keys that name an item of a list.
const NAMES: [&str; 4] = ["id", "name", "label", "command"];
/// Keys that describe it.
const DETAILS: [&str; 7] =
    ["question", "message", "description", "decision", "wrong", "purpose", "reason"];

fn entry(node: &Node) -> Option<Symbol> {
    let id = NAMES.iter().find_map(|it| node.get(it)).filter(|it| it.text().is_some())?;
    let detail = DETAILS.iter().find_map(|it| node.get(it)?.text()).map(shortened);
    Some(Symbol {
        name: id.text()?.to_owned(),
        detail: detail.unwrap_or_default(),
        range: node.span.start..node.span.end,
        selection: id.span.start..id.span.end,
        is_entry: true,
        children: Vec::new(),
    })
}

/// Longest detail, in characters.
const DETAIL_CHARS_MAX: usize = 80;

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let more = if line.chars().count() > DETAIL_CHARS_MAX { "…" } else { "" };
    let shown: String = line.chars().take(DETAIL_CHARS_MAX).collect();
    format!("{shown}{more}")
}

/// Returns the lines that can be folded: first and last line, from 0.
#[must_use]
pub fn folds(text: &str) -> Vec<(usize, usize)> {
    let source = Arc::new(Source { name: String::new(), text: text.to_owned() });
    let lines = LineIndex::new(text);
    let mut found = Vec::new();
    if let Some(root) = yaml::parse(&source).0 {
        fold_node(&root, &lines, &mut found);
    }
    found.extend(comment_folds(text, &lines));
    found.sort_unstable();
    found.dedup();
    found
}

fn fold_node(node: &Node, lines: &LineIndex, found: &mut Vec<(usize, usize)>) {
    let mut add = |start: usize, end: usize| {
        let (first, last) = (lines.line_of(start), lines.line_of(end.saturating_sub(1).max(start)));
        if last > first {
            found.push((first, last));
        }
    };
    match &node.kind {
        NodeKind::List(items) => {
            items.iter().for_each(|it| add(it.span.start, it.span.end));
            items.iter().for_each(|it| fold_node(it, lines, found));
        }
        NodeKind::Map(entries) => {
            entries.iter().for_each(|(key, value)| add(key.span.start, value.span.end));
            entries.iter().for_each(|(_, value)| fold_node(value, lines, found));
        }
        NodeKind::Scalar(_) | NodeKind::Invalid => {}
    }
}

/// Comments of several lines.
fn comment_folds(text: &str, lines: &LineIndex) -> Vec<(usize, usize)> {
    let (mut found, mut first) = (Vec::new(), None);
    for number in 0..=lines.lines() {
        let line = if number < lines.lines() { lines.line(text, number) } else { 0..0 };
        let is_comment = text.get(line).is_some_and(|it| it.trim_start().starts_with('#'));
        match (is_comment, first) {
            (true, None) => first = Some(number),
            (false, Some(start)) => {
                if number > start + 1 {
                    found.push((start, number - 1));
                }
                first = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
    found
}

/// Kind of a colored word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenType {
    /// `if`, `in`, `true`.
    Keyword,
    /// `&&`, `==`.
    Operator,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A regular expression.
    Regex,
    /// A global name.
    Variable,
    /// A field.
    Property,
    /// A method.
    Method,
    /// A name that the pack defines.
    Id,
}

/// Types of colored words by their names in the protocol, in the order of [`TokenType`].
pub const TOKEN_TYPES: [&str; 9] = [
    "keyword",
    "operator",
    "number",
    "string",
    "regexp",
    "variable",
    "property",
    "method",
    "enumMember",
];

/// Returns the words of the expressions of a file with their types, in their order. No word goes over a line.
#[must_use]
pub fn tokens(view: &PackView, name: &str, now: Timestamp) -> Vec<(Range<usize>, TokenType)> {
    let subject = Subject::new(&view.pack, &view.reviewed, now);
    let mut found = Vec::new();
    for site in subject.sites.iter().filter(|it| it.node.span.source.name == name) {
        for mark in marks(site.text, site.names(subject.names())) {
            let span = site.span(&mark.range);
            let is_one_line = !span.text().contains(['\n', '\r']);
            if let Some(kind) =
                token_type(&mark.kind).filter(|_| is_one_line && span.start < span.end)
            {
                found.push((span.start..span.end, kind));
            }
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found.dedup_by(|next, before| next.0.start < before.0.end);
    found
}

fn token_type(kind: &WordSense) -> Option<TokenType> {
    Some(match kind {
        WordSense::Keyword => TokenType::Keyword,
        WordSense::Operator => TokenType::Operator,
        WordSense::Number => TokenType::Number,
        WordSense::Text | WordSense::Item | WordSense::Value { .. } => TokenType::Text,
        WordSense::Regex => TokenType::Regex,
        WordSense::Fact { member, .. } if member.params.is_some() => TokenType::Method,
        WordSense::Fact { path, .. } if path.contains('.') => TokenType::Property,
        WordSense::Fact { .. } | WordSense::Record => TokenType::Variable,
        WordSense::Field { .. } => TokenType::Property,
        WordSense::PackName { .. } => TokenType::Id,
        WordSense::Unknown => return None,
    })
}

/// The definitions in a file whose names contain a text, for a search over the pack.
#[must_use]
pub fn search<'o>(ids: &'o [Occurrence], text: &str) -> Vec<&'o Occurrence> {
    let wanted = text.to_lowercase();
    let fits = |it: &&Occurrence| it.entry.is_some() && it.name.to_lowercase().contains(&wanted);
    ids.iter().filter(fits).collect()
}

/// The call around a place of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSignature {
    /// The signature: `kind(text)`.
    pub label: String,
    /// Byte ranges of the parameters in the label.
    pub parameters: Vec<Range<usize>>,
    /// Number of the parameter at the place, from 0.
    pub active: usize,
    /// Description and example.
    pub doc: String,
}

/// Returns the call around a byte of a file.
#[must_use]
pub fn call_at(view: &PackView, file: FileText<'_>, at: usize) -> Option<CallSignature> {
    let at = super::text::on_boundary(file.text, at);
    let place = super::place::find(file.text, at);
    let expression = super::keys::expression_at(view, file, at, &place)?;
    let found =
        policyd_fact_table::marks::place(&expression.text, expression.offset, expression.names);
    let (member, active) = found.call?;
    let mut label = format!("{}(", member.name);
    let mut parameters = Vec::new();
    for (number, (kind, _)) in member.params?.iter().enumerate() {
        if number > 0 {
            label.push_str(", ");
        }
        let start = label.len();
        label.push_str(&kind.to_string());
        parameters.push(start..label.len());
    }
    label.push_str(&format!("): {}", member.result));
    let doc = format!("{}\n\nExample: `{}`", member.doc, member.example);
    Some(CallSignature { label, parameters, active, doc })
}
