//! Checks of files as YAML: what is legal and yet read differently than it was meant.

use std::sync::Arc;

use crate::{Findings, Subject};
use policyd_fact_table::ast::Expr;
use policyd_yaml::node::{Node, NodeKind};
use policyd_yaml::shape::Kind;
use policyd_yaml::{ScalarStyle, Source, Span};

pub(crate) fn empty_file(subject: &Subject<'_>, out: &mut Findings) {
    let files = subject.pack.files.iter().map(|(file, source)| (file.as_str(), source));
    let cases = subject.cases.iter().map(|source| (source.name.as_str(), source));
    for (file, source) in files.chain(cases) {
        let says_nothing = |line: &str| {
            let line = line.trim_start_matches('\u{feff}').trim();
            line.is_empty() || line.starts_with('#') || line == "---"
        };
        if source.text.lines().all(says_nothing) {
            let span = Span { source: Arc::clone(source), start: 0, end: 0 };
            out.help(span, format!("`{file}` is empty"), "delete it, or add its entries");
        }
    }
}

pub(crate) fn ignored_directory(subject: &Subject<'_>, out: &mut Findings) {
    for file in &subject.unread {
        let source = Source { name: file.clone(), text: String::new() };
        let span = Span { source: source.into(), start: 0, end: 0 };
        out.add(span, format!("this pack does not load `{file}`"), |it| {
            it.with_note("a pack consists of the files of one directory and of `tests`")
                .with_help("move its entries into the files of the pack, or its cases into `tests`")
        });
    }
}

/// Every map of a tree with its entries.
pub(super) fn each_map<'n>(node: &'n Node, look: &mut impl FnMut(&'n [(Node, Node)])) {
    match &node.kind {
        NodeKind::Map(entries) => {
            look(entries);
            entries.iter().for_each(|(_, value)| each_map(value, look));
        }
        NodeKind::List(items) => items.iter().for_each(|it| each_map(it, look)),
        NodeKind::Scalar(_) | NodeKind::Invalid => {}
    }
}

/// Keys of cases with free text, in which a `#` can occur. Other keys contain names, and a name contains no `#`.
#[rustfmt::skip]
const TEXTS_OF_CASES: [&str; 19] = [
    "user", "assistant", "said", "last_message", "ran", "command", "text", "prints", "result",
    "failure", "reason", "notice", "context", "summary", "details", "evidence", "contains", "lacks",
    "equals",
];

pub(crate) fn cut_by_comment(subject: &Subject<'_>, out: &mut Findings) {
    for leaf in &subject.leaves {
        if matches!(leaf.kind, Kind::Text | Kind::Template) {
            cut_text(leaf.node, char::is_alphanumeric, out);
        } else if matches!(leaf.kind, Kind::Regex) {
            // A number is often written as what it is like: `#\d+`, `#[0-9]`.
            let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '\\' | '[' | '(');
            cut_text(leaf.node, goes_on, out);
        } else if matches!(leaf.kind, Kind::Expression) {
            cut_expression(leaf.node, out);
        }
    }
    for file in subject.case_trees() {
        each_map(file, &mut |entries| {
            let named = |key: &Node| key.text().is_some_and(|it| TEXTS_OF_CASES.contains(&it));
            let values = entries.iter().filter(|(key, _)| named(key));
            let values = values.flat_map(|(_, value)| value.one_or_items());
            let files = entries.iter().filter(|(key, _)| key.says("files"));
            let files = files.filter_map(|(_, files)| files.entries()).flatten();
            values
                .chain(files.map(|(_, text)| text))
                .for_each(|it| cut_text(it, char::is_alphanumeric, out));
        });
    }
}

/// Tells where a comment holds what belongs to an expression: `a #&& b`, or `a // why` where the lines of a
/// scalar become one.
fn cut_expression(node: &Node, out: &mut Findings) {
    let rest = node.span.source.text.get(node.span.end..).unwrap_or_default();
    let comment = rest.trim_start_matches([' ', '\t']);
    let said = comment.strip_prefix('#').and_then(|it| it.lines().next());
    let said = said.map(str::trim).unwrap_or_default();
    let goes_on = |it: &str| said.strip_prefix(it).and_then(Expr::parse).is_some();
    if goes_on("&&") || goes_on("||") {
        let start = node.span.end + (rest.len() - comment.len());
        let end = start + comment.lines().next().unwrap_or_default().len();
        let cut = Span { source: node.span.source.clone(), start, end };
        out.add(cut, "this is a comment, not a part of the expression", |it| {
            it.with_related(node.span.clone(), "the expression ends here")
                .with_help("write `|-` and the expression below, or delete the comment")
        });
        return;
    }
    let text = node.text().filter(|it| it.contains("//")).unwrap_or_default();
    let literal = node.scalar().is_some_and(|it| it.style == ScalarStyle::Literal);
    let Some(at) = comment_of(text).filter(|_| !literal) else { return };
    let end = text.get(at..).and_then(|it| it.find('\n')).map_or(text.len(), |it| at + it);
    let written = node.sub_span(at..end);
    let below = written.text().split_once('\n').is_some_and(|(_, it)| !it.trim().is_empty());
    if below {
        out.add(node.sub_span(at..at + 2), "this comment removes the lines below it", |it| {
            it.with_note("YAML folds the lines of this scalar into one line")
                .with_help("write `|` instead of `>`, or `#` in a line above the key")
        });
    }
}

/// Where a comment begins in an expression, outside of its texts.
fn comment_of(expression: &str) -> Option<usize> {
    let mut quote: Option<char> = None;
    let mut is_escaped = false;
    let mut block_end = 0;
    for (at, c) in expression.char_indices() {
        if at < block_end {
            continue;
        }
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some('"') if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '`') => quote = Some(c),
            None if expression.get(at..).is_some_and(|it| it.starts_with("//")) => return Some(at),
            None if expression.get(at..).is_some_and(|it| it.starts_with("/*")) => {
                let end = expression.get(at..).and_then(|it| it.find("*/"));
                block_end = end.map_or(expression.len(), |it| at + it + 2);
            }
            None => {}
        }
    }
    None
}

/// Tells where a comment cuts a text that might go on with such a character behind `#`.
fn cut_text(node: &Node, goes_on: fn(char) -> bool, out: &mut Findings) {
    let plain = node.scalar().is_some_and(|it| it.style == ScalarStyle::Plain);
    let is_text = plain && node.bool().is_none() && node.number().is_none();
    let span = &node.span;
    let rest = span.source.text.get(span.end..).unwrap_or_default();
    let comment = rest.trim_start_matches([' ', '\t']);
    // People write a blank behind the `#` of a comment, and none in `#12` and `#releases`.
    let is_name = comment.strip_prefix('#').is_some_and(|it| it.starts_with(goes_on));
    if is_name && is_text {
        let start = span.end + (rest.len() - comment.len());
        let end = start + comment.lines().next().unwrap_or_default().len();
        let cut = Span { source: span.source.clone(), start, end };
        out.add(cut, "this is a comment, not a part of the text", |it| {
            it.with_related(span.clone(), "the text ends here")
                .with_help("put the text in quotes, or add a space after `#`")
        });
    }
}
