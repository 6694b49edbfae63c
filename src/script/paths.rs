//! Facts by the text that names them: the values and the numbers they can have.

use super::members::{self, Member};
use super::types::{Names, Type};

/// The values a fact can have, where they are few; `path` is its text.
#[must_use]
pub fn closed_values<'n>(path: &str, names: &'n Names) -> Vec<&'n str> {
    if let Some(field) = names.record.as_ref().and_then(|it| it.at(path)) {
        return field.values.iter().map(String::as_str).collect();
    }
    if path == "session.type" {
        // A session may be of no type.
        return names.session_types.iter().map(String::as_str).chain([""]).collect();
    }
    if path == "session.forge" && !names.incomplete {
        return names.forges.iter().map(String::as_str).chain([""]).collect();
    }
    last_member(path).map(|row| row.values.to_vec()).unwrap_or_default()
}

/// The least and the greatest number a fact can be.
#[must_use]
pub fn range(path: &str, names: &Names) -> (i64, i64) {
    if let Some(field) = names.record.as_ref().and_then(|it| it.at(path)) {
        return field.range;
    }
    last_member(path).map_or((i64::MIN, i64::MAX), |row| row.range)
}

/// The row of the last name of a path.
fn last_member(path: &str) -> Option<&'static Member> {
    let mut owner = Type::Global;
    let mut row = None;
    for step in steps(path) {
        let name = step.split(['(', '[']).next().unwrap_or_default();
        row = members::find(owner, name);
        owner = match (owner, row) {
            (_, Some(row)) if row.result == Type::Breakers && step.contains('[') => Type::Breaker,
            (_, Some(row)) => row.result,
            (Type::Probes, None) => Type::Probe,
            (_, None) => return None,
        };
    }
    row
}

/// The names of a path with their arguments: `commands`, `kind("a.b")`, `count`.
fn steps(path: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth, mut quoted, mut escaped) = (vec![], 0, 0, false, false);
    for (at, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '.' if depth == 0 => {
                found.extend(path.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.extend(path.get(start..));
    found
}
