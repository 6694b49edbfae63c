//! Checks of single values: does this scalar say what its kind asks for, and if not, what would.

use super::meaning::{Meaning, meaning};
use super::shape::{Kind, NodeShape};
use super::{Diagnostic, Node, NodeKind, Scalar, ScalarStyle, Span, quoted};
use crate::limits::{EXPRESSION_BYTES_MAX, REGEX_SOURCE_MAX};
use crate::time::{DurationError, Timestamp, parse_duration};

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
        (Kind::List(one), NodeKind::Scalar(scalar)) if one.takes(NodeShape::Scalar) => {
            in_brackets(finding, scalar)
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

/// A single text where a list stands, written as a list of one.
fn in_brackets(finding: Diagnostic, scalar: &Scalar) -> Diagnostic {
    let written = finding.span.text().to_owned();
    let is_free = match scalar.style {
        ScalarStyle::Plain => !written.contains([',', '[', ']', '{', '}']),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => true,
        ScalarStyle::Literal | ScalarStyle::Folded => false,
    };
    if written.is_empty() || written.contains('\n') || !is_free {
        return finding.with_help("write a list, also of one");
    }
    let span = finding.span.clone();
    if let Some(list) = words_of_command(&span) {
        return finding
            .with_help("write a list with one item for each word")
            .with_fix(false, span, list);
    }
    finding.with_help("write a list, also of one").with_fix(false, span, format!("[{written}]"))
}

/// The list that `command: make lint` means: one item for each word.
fn words_of_command(value: &Span) -> Option<String> {
    let before = value.source.text.get(..value.start)?;
    let words: Vec<&str> = value.text().split_whitespace().collect();
    let is_plain = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || "-./".contains(c))
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c))
    };
    let is_command = before.trim_end().ends_with("command:");
    (is_command && words.len() > 1 && words.iter().all(is_plain))
        .then(|| format!("[{}]", words.join(", ")))
}

fn found(node: &Node) -> String {
    let scalar = match &node.kind {
        NodeKind::Scalar(scalar) => scalar,
        NodeKind::List(_) => return "a list".to_owned(),
        NodeKind::Map(_) => return "a map".to_owned(),
        NodeKind::Invalid => return "something outside the format".to_owned(),
    };
    match meaning(scalar) {
        Meaning::Null => "nothing".to_owned(),
        Meaning::Bool(value) => format!("`{value}`"),
        Meaning::Int(_) | Meaning::Number(_) => format!("the number {}", quoted(&scalar.text)),
        Meaning::Text if scalar.text.is_empty() => "an empty text".to_owned(),
        Meaning::Text => format!("the text {}", quoted(&scalar.text)),
    }
}

fn error(code: &'static str, node: &Node, message: String) -> Diagnostic {
    Diagnostic::error(code, node.span.clone(), message)
}

/// A quoted number or truth value: the quotes are what is wrong with it.
fn is_quoted(node: &Node) -> bool {
    node.scalar().is_some_and(|it| it.style != ScalarStyle::Plain)
}

fn check_text(node: &Node, kind: &Kind) -> Option<Diagnostic> {
    let scalar = node.scalar()?;
    if meaning(scalar) == Meaning::Text {
        return None;
    }
    Some(wrong_type(node, kind).with_help(format!("in quotes it is text: \"{}\"", scalar.text)))
}

fn check_bool(node: &Node) -> Option<Diagnostic> {
    if node.bool().is_some() {
        return None;
    }
    let finding = wrong_type(node, &Kind::Bool);
    let help = match node.text()?.trim().to_ascii_lowercase().as_str() {
        "true" if is_quoted(node) => "write true without quotes",
        "false" if is_quoted(node) => "write false without quotes",
        "yes" | "on" | "y" | "1" => "write true",
        "no" | "off" | "n" | "0" => "write false",
        _ => "write true or false",
    };
    Some(finding.with_help(help))
}

fn check_int(node: &Node, kind: &Kind, min: i64, max: i64) -> Option<Diagnostic> {
    match node.int() {
        Some(value) if (min..=max).contains(&value) => None,
        Some(value) => Some(out_of_range(node, value, min, max)),
        None if is_quoted(node) && node.text()?.trim().parse::<i64>().is_ok() => {
            Some(wrong_type(node, kind).with_help("write the number without quotes"))
        }
        None => Some(wrong_type(node, kind)),
    }
}

fn check_number(node: &Node, kind: &Kind, min: f64, max: f64) -> Option<Diagnostic> {
    match node.number() {
        Some(value) if (min..=max).contains(&value) => None,
        Some(value) => Some(out_of_range(node, value, min, max)),
        None if is_quoted(node) && node.text()?.trim().parse::<f64>().is_ok() => {
            Some(wrong_type(node, kind).with_help("write the number without quotes"))
        }
        None => Some(wrong_type(node, kind)),
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
    let (message, help) = match parse_duration(text).err()? {
        DurationError::NoUnit => {
            let help = match text.trim().parse::<u64>() {
                Ok(count) if count >= 60 && count.is_multiple_of(60) => {
                    format!(
                        "write {count}s for seconds (that is {}m), {count}ms for milliseconds",
                        count / 60
                    )
                }
                Ok(count) => format!("write {count}s for seconds, {count}m for minutes"),
                Err(_) => "durations are whole numbers with a unit: 500ms, 30s, 5m".to_owned(),
            };
            (format!("{} has no unit", quoted(text)), help)
        }
        DurationError::Malformed => (
            format!("{} is not a duration", quoted(text)),
            "whole numbers with the units ms, s, m, h, d and w: 250ms, 5m, 1h30m".to_owned(),
        ),
        DurationError::TooLong => (
            format!("{} is longer than a hundred years", quoted(text)),
            "leave the key out where nothing should ever expire".to_owned(),
        ),
    };
    Some(error("bad-time", node, message).with_help(help))
}

fn check_date(node: &Node) -> Option<Diagnostic> {
    let text = node.text()?;
    if Timestamp::parse(text).is_some() {
        return None;
    }
    let message = format!("{} is not a date of the calendar", quoted(text));
    Some(
        error("bad-time", node, message)
            .with_help("year, month and day: 2026-01-31, or with a time: 2026-01-31T10:00:00Z"),
    )
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
