//! An expression drawn with the value of each of its parts below it, joined by `|`:
//!
//! ```text
//! files.count > 3 && todos.open == 0
//!       |     |   |             |
//!       |     |   false         not reached
//!       2     false
//! ```
//!
//! Lives here: text in columns. What the parts are and what they came to arrives as values.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::table::cut;
use policyd_base::limits::{DRAWN_COLUMNS_MAX, DRAWN_VALUE_COLUMNS_MAX};
use policyd_fact_table::Value;
use policyd_fact_table::parts::{Part, PartValue};

/// Blank columns between two values on one line.
const GAP: usize = 2;

/// Draws an expression, one line of it after the other, each followed by the values of the parts
/// that stand on it. Where a line is wider than `DRAWN_COLUMNS_MAX`, the parts are listed instead.
#[must_use]
pub fn draw(expression: &str, parts: &[Part]) -> String {
    let too_wide = |line: &str| shown(line).width() > DRAWN_COLUMNS_MAX;
    if expression.lines().any(too_wide) {
        list(expression, parts)
    } else {
        lines(expression, parts)
    }
}

/// The value of a part in a drawing: one line, at most `DRAWN_VALUE_COLUMNS_MAX` wide.
#[must_use]
pub fn value(found: &PartValue) -> String {
    let text = match found {
        PartValue::Value(Value::Text(text)) => format!("{text:?}"),
        PartValue::Value(Value::Texts(texts)) => format!("{texts:?}"),
        PartValue::Value(value @ (Value::Bool(_) | Value::Int(_))) => value.to_string(),
        PartValue::Failed(error) => format!("error: {}", shown(&error.message)),
        PartValue::NotReached => "not reached".to_owned(),
    };
    cut(&text, DRAWN_VALUE_COLUMNS_MAX)
}

/// The value of a part; an error of an inner part is shown there.
fn value_among(part: &Part, parts: &[Part]) -> String {
    let failed = |it: &&Part| matches!(it.found, PartValue::Failed(_));
    let told = failed(&part) && parts.iter().filter(failed).any(|it| is_within(it, part));
    if told { "error".to_owned() } else { value(&part.found) }
}

fn is_within(inner: &Part, outer: &Part) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && inner != outer
}

/// The parts that are worth a value: of what was not reached, only the outermost.
fn worth_showing(parts: &[Part]) -> Vec<&Part> {
    let unreached = |it: &&Part| it.found == PartValue::NotReached;
    let hidden = |it: &Part| parts.iter().filter(unreached).any(|outer| is_within(it, outer));
    parts.iter().filter(|it| !hidden(it)).collect()
}

fn lines(expression: &str, parts: &[Part]) -> String {
    let mut text = String::new();
    let mut start = 0_usize;
    let worth = worth_showing(parts);
    for line in expression.split_inclusive('\n') {
        let end = start.saturating_add(line.len());
        push_line(&mut text, shown(line.trim_end_matches(['\n', '\r'])).trim_end());
        let here = worth.iter().filter(|it| (start..end).contains(&it.at));
        let mut marks: Vec<ColumnValue> = here
            .map(|it| ColumnValue {
                column: column(line, it.at.saturating_sub(start)),
                value: value_among(it, parts),
            })
            .collect();
        marks.sort_by_key(|it| it.column);
        hang(&mut text, marks);
        start = end;
    }
    text
}

/// A value and the column it hangs from.
struct ColumnValue {
    column: usize,
    value: String,
}

/// Hangs values below their columns: from the right, each as high as there is room.
fn hang(text: &mut String, mut marks: Vec<ColumnValue>) {
    if !marks.is_empty() {
        push_line(text, &bars(&marks));
    }
    while let Some(last) = marks.pop() {
        let mut low = vec![last];
        // What ends before the value to its right begins may stand on the same line.
        while let Some(next) = marks.pop_if(|it| {
            let end = it.column.saturating_add(it.value.width()).saturating_add(GAP);
            low.last().is_some_and(|right| end <= right.column)
        }) {
            low.push(next);
        }
        let mut line = bars(&marks);
        for mark in low.into_iter().rev() {
            pad(&mut line, mark.column);
            line.push_str(&mark.value);
        }
        push_line(text, &line);
    }
}

fn bars(marks: &[ColumnValue]) -> String {
    let mut line = String::new();
    for mark in marks {
        if mark.column >= line.width() {
            pad(&mut line, mark.column);
            line.push('|');
        }
    }
    line
}

fn pad(line: &mut String, column: usize) {
    line.push_str(&" ".repeat(column.saturating_sub(line.width())));
}

/// One line for each part: `part = value`.
fn list(expression: &str, parts: &[Part]) -> String {
    let mut text = String::new();
    expression.lines().for_each(|line| push_line(&mut text, shown(line).trim_end()));
    for part in worth_showing(parts) {
        let whole = part.start == 0 && part.end == expression.len();
        let written = expression.get(part.start..part.end).unwrap_or_default();
        let name = if whole {
            "the whole".to_owned()
        } else {
            let words: Vec<&str> = written.split_whitespace().collect();
            cut(&shown(&words.join(" ")), DRAWN_COLUMNS_MAX)
        };
        push_line(&mut text, &format!("  {name} = {}", value_among(part, parts)));
    }
    text
}

/// The display column of a byte of a line.
fn column(line: &str, byte: usize) -> usize {
    shown(line.get(..byte).unwrap_or_default()).width()
}

/// Text as a terminal can show it on one line: blanks for tabs, marks for other control characters.
fn shown(text: &str) -> String {
    let visible = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() || c.width().unwrap_or(0) == 0 => '\u{fffd}',
        c => c,
    };
    text.chars().map(visible).collect()
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
