//! Checks of single values: does this scalar say what its kind asks for, and if not, what would.

use super::meaning::{ScalarSense, meaning};
use super::shape::{Kind, NodeShape};
use super::{Diagnostic, Node, NodeKind, ScalarStyle, Span, Suggestion, quoted};
use crate::limits::{EXPRESSION_BYTES_MAX, REGEX_SOURCE_MAX};
use crate::time::{DurationError, Timestamp, meant_date, meant_duration, parse_duration};

/// What is wrong with a scalar of a simple kind; collections are `check`'s.
pub(super) fn check_value(node: &Node, kind: &Kind) -> Option<Diagnostic> {
    match kind {
        Kind::Text | Kind::Template => check_text(node, kind),
        Kind::Regex => {
            check_text(node, kind).or_else(|| too_long(node, "pattern", REGEX_SOURCE_MAX))
        }
        Kind::Bool => check_bool(node),
        Kind::Int { min, max } => check_int(node, kind, *min, *max),
        Kind::Number { min, max } => check_number(node, kind, *min, *max),
        Kind::Choice(words) => check_choice(node, words),
        Kind::Duration => check_duration(node),
        Kind::Date => check_date(node),
        Kind::Expression => check_expression(node),
        Kind::Any
        | Kind::List(_)
        | Kind::OneOrList(_)
        | Kind::Map(_)
        | Kind::Record(_)
        | Kind::Either(_) => None,
    }
}

/// A value of another type than its kind.
pub(super) fn wrong_type(node: &Node, kind: &Kind) -> Diagnostic {
    let message = format!("expected {}, found {}", kind.expected(), found(node));
    // The caret stays on one line: where a block list or map begins.
    let first = match &node.kind {
        NodeKind::List(items) => items.first().map(|item| &item.span),
        NodeKind::Map(entries) => entries.first().map(|(key, _)| &key.span),
        NodeKind::Scalar(_) | NodeKind::Invalid => None,
    };
    let block = !node.span.text().starts_with(['[', '{']);
    let span = first.filter(|_| block).unwrap_or(&node.span);
    let finding = Diagnostic::error("wrong-type", span.clone(), message);
    match (kind, &node.kind) {
        (Kind::List(_), NodeKind::Map(_)) => finding.with_help("begin each item with `- `"),
        (Kind::List(one), NodeKind::Scalar(_)) if one.takes(NodeShape::Scalar) => {
            finding.suggest(as_list(node))
        }
        (Kind::Map(_) | Kind::Record(_), NodeKind::List(_)) if block => {
            finding.with_help("write `key: value` lines without `- `")
        }
        (Kind::Map(_) | Kind::Record(_), NodeKind::Scalar(_) | NodeKind::List(_)) => {
            finding.with_help("write `key: value` lines")
        }
        _ => finding,
    }
}

/// The list that a single text means.
fn as_list(node: &Node) -> Suggestion {
    let is_command = is_command(&node.span);
    let words = words_of_command(&node.span).filter(|_| is_command);
    let words = words.map(|list| Suggestion::write(node.span.clone(), list));
    if words.is_none() && is_command && node.span.text().contains(' ') {
        return "write a list with one item for each word".into();
    }
    let one = || Some(node.in_brackets()?.because(": a list, also of one"));
    words.or_else(one).unwrap_or_else(|| "write a list, also of one".into())
}

/// The list that `command: make lint` means: one item for each word.
fn words_of_command(value: &Span) -> Option<String> {
    let words: Vec<&str> = value.text().split_whitespace().collect();
    let is_plain = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || "-./".contains(c))
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c))
    };
    (words.len() > 1 && words.iter().all(is_plain)).then(|| format!("[{}]", words.join(", ")))
}

/// Whether a value belongs to the key `command`.
fn is_command(value: &Span) -> bool {
    let before = value.source.text.get(..value.start).unwrap_or_default();
    before.trim_end().ends_with("command:")
}

fn found(node: &Node) -> String {
    let scalar = match &node.kind {
        NodeKind::Scalar(scalar) => scalar,
        NodeKind::List(_) => return "a list".to_owned(),
        NodeKind::Map(_) => return "a map".to_owned(),
        NodeKind::Invalid => return "something outside the format".to_owned(),
    };
    match meaning(scalar) {
        ScalarSense::Null => "nothing".to_owned(),
        ScalarSense::Bool(value) => format!("`{value}`"),
        ScalarSense::Int(_) | ScalarSense::Number(_) => {
            format!("the number {}", quoted(&scalar.text))
        }
        ScalarSense::Text if scalar.text.is_empty() => "an empty text".to_owned(),
        ScalarSense::Text => format!("the text {}", quoted(&scalar.text)),
    }
}

fn error(code: &'static str, node: &Node, message: String) -> Diagnostic {
    Diagnostic::error(code, node.span.clone(), message)
}

/// A value that is not a number, or a number in quotes.
fn not_a_number(node: &Node, kind: &Kind, is_number: bool) -> Diagnostic {
    let is_quoted = node.scalar().is_some_and(|it| it.style != ScalarStyle::Plain);
    let finding = wrong_type(node, kind);
    match node.text().filter(|_| is_quoted && is_number) {
        Some(text) => finding.suggest(node.unquoted(text.trim()).because(" without quotes")),
        None => finding,
    }
}

fn check_text(node: &Node, kind: &Kind) -> Option<Diagnostic> {
    let scalar = node.scalar()?;
    if meaning(scalar) == ScalarSense::Text {
        return None;
    }
    Some(wrong_type(node, kind).suggest(node.in_quotes()))
}

fn check_bool(node: &Node) -> Option<Diagnostic> {
    if node.bool().is_some() {
        return None;
    }
    let finding = wrong_type(node, &Kind::Bool);
    let is_quoted = node.scalar()?.style != ScalarStyle::Plain;
    let quotes = if is_quoted { " without quotes" } else { "" };
    Some(finding.suggest(match node.text()?.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => node.unquoted("true").because(quotes),
        "false" | "no" | "off" | "n" | "0" => node.unquoted("false").because(quotes),
        _ => "write `true` or `false`".into(),
    }))
}

fn check_int(node: &Node, kind: &Kind, min: i64, max: i64) -> Option<Diagnostic> {
    match node.int() {
        Some(value) if (min..=max).contains(&value) => None,
        Some(value) => Some(out_of_range(node, value, min, max)),
        None => Some(not_a_number(node, kind, node.text()?.trim().parse::<i64>().is_ok())),
    }
}

fn check_number(node: &Node, kind: &Kind, min: f64, max: f64) -> Option<Diagnostic> {
    match node.number() {
        Some(value) if (min..=max).contains(&value) => None,
        Some(value) => Some(out_of_range(node, value, min, max)),
        None => Some(not_a_number(node, kind, node.text()?.trim().parse::<f64>().is_ok())),
    }
}

fn out_of_range<T: std::fmt::Display + PartialEq>(
    node: &Node,
    value: T,
    min: T,
    max: T,
) -> Diagnostic {
    let message = match min == max {
        true => format!("{value} is not {min}, which is all that this version knows"),
        false => format!("{value} is not between {min} and {max}"),
    };
    error("out-of-range", node, message)
}

fn check_choice(node: &Node, words: &[&str]) -> Option<Diagnostic> {
    let text = node.text()?;
    if words.contains(&text) {
        return None;
    }
    let finding = error("unknown-value", node, format!("unknown value {}", quoted(text)));
    Some(finding.with_meant(text, words))
}

fn check_duration(node: &Node) -> Option<Diagnostic> {
    let text = node.text()?;
    let problem = parse_duration(text).err()?;
    let (message, help) = match problem {
        DurationError::NoUnit => (
            format!("{} has no unit", quoted(text)),
            "durations are whole numbers with a unit: 500ms, 30s, 5m",
        ),
        DurationError::Malformed => (
            format!("{} is not a duration", quoted(text)),
            "whole numbers with the units ms, s, m, h, d and w: 250ms, 5m, 1h30m",
        ),
        DurationError::TooLong => (
            format!("{} is longer than a hundred years", quoted(text)),
            "leave the key out where nothing should ever expire",
        ),
    };
    let other_unit = match problem {
        DurationError::NoUnit => {
            format!(" for seconds, `{0}ms` for milliseconds, `{0}m` for minutes", text.trim())
        }
        DurationError::Malformed | DurationError::TooLong => String::new(),
    };
    let finding = error("bad-time", node, message);
    let is_bare = problem == DurationError::NoUnit;
    Some(match meant_duration(text).filter(|_| !is_bare || is_of_seconds(text)) {
        Some(meant) => finding.suggest(node.rewritten(&meant).because(&other_unit)),
        None => finding.with_help(help),
    })
}

/// Whether a number without a unit is probably one of seconds: large round ones are often of milliseconds.
fn is_of_seconds(text: &str) -> bool {
    let of_seconds = |it: u64| it < 1_000 || (it.is_multiple_of(60) && !it.is_multiple_of(1_000));
    text.trim().parse().is_ok_and(of_seconds)
}

fn check_date(node: &Node) -> Option<Diagnostic> {
    let text = node.text()?;
    if Timestamp::parse(text).is_some() {
        return None;
    }
    let message = format!("{} is not a date of the calendar", quoted(text));
    let finding = error("bad-time", node, message);
    Some(match meant_date(text) {
        Some(date) => finding.suggest(node.rewritten(&date)),
        None => finding
            .with_help("year, month and day: 2026-01-31, or with a time: 2026-01-31T10:00:00Z"),
    })
}

fn check_expression(node: &Node) -> Option<Diagnostic> {
    let text = node.text()?;
    if text.trim().is_empty() {
        return Some(error("missing-key", node, "the expression is empty".to_owned()));
    }
    too_long(node, "expression", EXPRESSION_BYTES_MAX)
}

fn too_long(node: &Node, what: &str, limit: usize) -> Option<Diagnostic> {
    let length = node.text()?.len();
    if length <= limit {
        return None;
    }
    let message = format!("the {what} has {length} bytes; the limit is {limit}");
    let mut finding = error("limit-exceeded", node, message);
    // Its beginning is enough to find it.
    let first_line = node.span.text().lines().next().map_or(0, str::len);
    finding.span.end = finding.span.start + first_line;
    Some(finding)
}
