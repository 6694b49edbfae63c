//! What can be written at a place of a file: keys and kinds of values by the shapes of files, and the expression there.

use std::ops::Range;

use super::place::{PathStep, Role, ScalarPlace, YamlPlace};
use super::view::PackView;
use policyd_cases as cases;
use policyd_fact_table::types::Names;
use policyd_policy::{records, shapes};
use policyd_yaml::shape::{Field, Kind};

/// A file that is being written.
#[derive(Debug, Clone, Copy)]
pub struct FileText<'t> {
    /// Name of the file in the directory of the pack, such as `guards.yaml`.
    pub file: &'t str,
    /// Whether it is a case file.
    pub is_case: bool,
    /// The text.
    pub text: &'t str,
}

/// The shape of a file of a pack, or of a case file.
#[must_use]
pub fn shape_of(file: &str, is_case: bool) -> Option<&'static Kind> {
    if is_case {
        return Some(&cases::shape::FILE.kind);
    }
    shapes::FILES.iter().find(|it| it.file == file).map(|it| &it.kind)
}

/// The kinds that the value at the end of a path can have.
#[must_use]
pub fn kinds_at(root: &'static Kind, path: &[PathStep]) -> Vec<&'static Kind> {
    let mut kinds = alternatives(root);
    for step in path {
        let next: Vec<&'static Kind> = kinds.into_iter().flat_map(|it| below(it, step)).collect();
        kinds = next.into_iter().flat_map(alternatives).collect();
    }
    kinds
}

/// The kinds of which one fits a value.
fn alternatives(kind: &'static Kind) -> Vec<&'static Kind> {
    if let Kind::Either(kinds) = kind {
        return kinds.iter().flat_map(alternatives).collect();
    }
    let one = if let Kind::OneOrList(one) = kind { alternatives(one) } else { Vec::new() };
    std::iter::once(kind).chain(one).collect()
}

fn below(kind: &'static Kind, step: &PathStep) -> Option<&'static Kind> {
    match (kind, step) {
        (Kind::List(one) | Kind::OneOrList(one), PathStep::Item) => Some(one),
        (Kind::Map(one), PathStep::Key(_)) => Some(one),
        (Kind::Record(fields), PathStep::Key(key)) => {
            fields.iter().find(|it| it.name == key).map(|it| &it.kind)
        }
        _ => None,
    }
}

/// The keys that a map at the end of a path can have.
#[must_use]
pub fn fields_at(root: &'static Kind, path: &[PathStep]) -> Vec<&'static Field> {
    let mut found: Vec<&'static Field> = Vec::new();
    for kind in kinds_at(root, path) {
        if let Kind::Record(fields) = kind {
            for field in *fields {
                if !found.iter().any(|it| it.name == field.name) {
                    found.push(field);
                }
            }
        }
    }
    found
}

/// An expression around a place.
pub struct ExpressionAt<'v> {
    /// Its text, which can be unfinished.
    pub text: String,
    /// Its first byte in the text of the scalar.
    pub start: usize,
    /// The byte of the place in the expression.
    pub offset: usize,
    /// The names that it sees.
    pub names: &'v Names,
}

impl ExpressionAt<'_> {
    /// A range of the expression in the file.
    #[must_use]
    pub fn source(&self, scalar: &ScalarPlace, range: &Range<usize>) -> Range<usize> {
        scalar.source(&(self.start + range.start..self.start + range.end))
    }
}

/// Finds the expression around a place: the whole scalar, or a placeholder of a template.
#[must_use]
pub fn expression_at<'v>(
    view: &'v PackView,
    file: FileText<'_>,
    at: usize,
    place: &YamlPlace,
) -> Option<ExpressionAt<'v>> {
    if file.is_case {
        return None; // Cases have no expressions.
    }
    let Role::Value(scalar) = &place.role else { return None };
    let kinds = kinds_at(shape_of(file.file, false)?, &place.path);
    let names = names_at(view, file, at, &place.path);
    if kinds.iter().any(|it| matches!(it, Kind::Expression)) {
        let text = scalar.text.clone();
        return Some(ExpressionAt { text, start: 0, offset: scalar.offset, names });
    }
    if !kinds.iter().any(|it| matches!(it, Kind::Template)) {
        return None;
    }
    let before = scalar.text.get(..scalar.offset)?;
    let open =
        before.rfind("${").filter(|it| !before.get(..*it).is_some_and(|it| it.ends_with('$')))?;
    let start = open + 2;
    let rest = scalar.text.get(start..)?;
    let length = end_of_placeholder(rest);
    let offset = scalar.offset - start;
    let text = rest.get(..length).filter(|_| offset <= length)?.to_owned();
    Some(ExpressionAt { text, start, offset, names })
}

/// Bytes of a placeholder up to its closing brace, or to the end of the line of an open one.
fn end_of_placeholder(rest: &str) -> usize {
    let (mut depth, mut quoted) = (0_usize, false);
    for (at, c) in rest.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '\n' => return at,
            _ if quoted => {}
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}

/// The names that expressions at a place see: those of a record, or what the pack defines.
fn names_at<'v>(view: &'v PackView, file: FileText<'_>, at: usize, path: &[PathStep]) -> &'v Names {
    let FileText { file, text, .. } = file;
    let keys = path.iter().filter_map(|it| match it {
        PathStep::Key(key) => Some(key.as_str()),
        PathStep::Item => None,
    });
    let is_map = matches!(shape_of(file, false), Some(Kind::Map(_) | Kind::List(_)));
    let sections = keys.take(1).chain(is_map.then_some(""));
    let of_record = sections.filter_map(|section| records::names(file, section)).next();
    if let Some(names) = of_record {
        return names;
    }
    let id = entry_before(text, at).unwrap_or_default();
    let of_entry = view.reviewed.records.iter().find(|((it, name), _)| *it == file && *name == id);
    of_entry.map_or(&view.reviewed.names, |(_, names)| names)
}

/// The id of the last entry that begins before a byte, in a file that is a list of entries.
#[must_use]
pub fn entry_before(text: &str, at: usize) -> Option<String> {
    let before = text.get(..at)?;
    let line = before.lines().rev().find_map(|it| it.strip_prefix("- id:"))?;
    Some(line.split(" #").next()?.trim().trim_matches(['"', '\'']).to_owned())
}
