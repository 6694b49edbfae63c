//! Facts by the text that names them: the values and the numbers they can have.

use memchr::{memchr2, memchr3};

use super::table::{FactTable, KnownNames, Member};
use super::types::Type;

/// The values a fact can have, where they are few; `path` is its text.
#[must_use]
pub fn closed_values<'n>(path: &str, names: &'n dyn KnownNames) -> Vec<&'n str> {
    if let Some(field) = names.record().and_then(|it| it.at(path)) {
        return field.values.iter().map(String::as_str).collect();
    }
    let values = |row: &Member| row.values.to_vec();
    let fixed = || last_member(path, names.table()).map(values).unwrap_or_default();
    names.values(path).unwrap_or_else(fixed)
}

/// What is known of a fact that is compared with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// The least and the greatest whole number it can be.
    pub range: (i64, i64),
    /// Whether it has a fraction, so that something lies between 0 and 1.
    pub is_decimal: bool,
}

/// Which numbers a fact can be; `path` is its text.
#[must_use]
pub fn number(path: &str, names: &dyn KnownNames) -> Number {
    let field = names.record().and_then(|it| it.at(path)).map(|it| (it.limits.range(), it.result));
    let (range, result) = field
        .or_else(|| last_member(path, names.table()).map(|it| (it.range, it.result)))
        .unwrap_or(((i64::MIN, i64::MAX), Type::Any));
    Number { range, is_decimal: result == Type::Decimal }
}

/// The type of a fact; `None` where the table does not have it.
#[must_use]
pub fn type_of(path: &str, table: &dyn FactTable) -> Option<Type> {
    last(path, table).map(|(result, _)| result)
}

/// The owner of what a path leads to, and its last name without arguments; nothing where it has no owner.
#[must_use]
pub fn owner_and_member(path: &str) -> Option<(&str, &str)> {
    let last = steps(path).last()?;
    let owner = path.strip_suffix(last)?.strip_suffix('.')?;
    Some((owner, last.split(['(', '[']).next()?))
}

/// The row of the last name of a path.
#[must_use]
pub fn last_member(path: &str, table: &dyn FactTable) -> Option<&'static Member> {
    last(path, table)?.1
}

/// The type of a path, and the row of its last name: names that the pack gives have none.
fn last(path: &str, table: &dyn FactTable) -> Option<(Type, Option<&'static Member>)> {
    let mut owner = Type::Global;
    let mut row = None;
    for step in steps(path) {
        let end = memchr2(b'(', b'[', step.as_bytes()).unwrap_or(step.len());
        let name = step.get(..end).unwrap_or_default();
        row = table.find(owner, name);
        owner = match row {
            Some(row) if step.contains('[') && row.result == table.items().owner => {
                table.items().result
            }
            Some(row) => row.result,
            // A member that is named by the pack and has members itself.
            None => table.named_members(owner).map(|it| it.result).filter(|it| !it.is_shown())?,
        };
    }
    Some((owner, row))
}

/// The names of a path with their arguments: `commands`, `kind("a.b")`, `count`.
pub fn steps(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let path = rest?;
        let end = step_end(path);
        rest = path.get(end..).and_then(|it| it.strip_prefix('.'));
        path.get(..end)
    })
}

/// Where the first step of a path ends.
fn step_end(path: &str) -> usize {
    // Most steps are a name alone.
    let Some(name) = memchr3(b'.', b'(', b'[', path.as_bytes()) else { return path.len() };
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in path.bytes().enumerate().skip(name) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'.' if depth == 0 => return at,
            _ => {}
        }
    }
    path.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_at_its_own_dots_only() {
        for (path, expected) in [
            ("files.count", vec!["files", "count"]),
            (r#"commands.kind("a.b").count"#, vec!["commands", r#"kind("a.b")"#, "count"]),
            (r#"breakers["x.\"]y"].open"#, vec![r#"breakers["x.\"]y"]"#, "open"]),
            ("a.b(c.d).e", vec!["a", "b(c.d)", "e"]),
            ("x", vec!["x"]),
            ("", vec![""]),
            ("x.", vec!["x", ""]),
        ] {
            assert_eq!(steps(path).collect::<Vec<_>>(), expected, "{path}");
            let last = owner_and_member(path).map(|(_, last)| last);
            let name = expected.last().and_then(|it| it.split('(').next());
            assert_eq!(last, name.filter(|_| expected.len() > 1), "{path}");
        }
    }
}
