//! What can be written at a place: keys, words, ids, facts, and their members.

use std::ops::Range;

use super::ids::{self, IdKind};
use super::keys::{self, ExpressionAt, FileText};
use super::place::{self, PathStep, Role, ScalarPlace, YamlPlace};
use super::text::on_boundary;
use super::view::PackView;
use policyd_cases as cases;
use policyd_fact_table::marks::{ExpectedWord, place as expression_place};
use policyd_fact_table::members::Member;
use policyd_fact_table::record::RecordField;
use policyd_fact_table::types::{Names, Type};
use policyd_lint as lint;
use policyd_yaml::shape::{self, Kind};

/// Kind of a candidate, for its icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A key of a map.
    Key,
    /// One of a closed set of words.
    Word,
    /// An id.
    Id,
    /// A fact.
    Fact,
    /// A fact with arguments, or a function.
    Method,
    /// A lint rule.
    LintRule,
}

/// A text that can be written at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text in the list of candidates.
    pub label: String,
    /// Kind.
    pub kind: CompletionKind,
    /// Type of a value, or kind of an id.
    pub detail: String,
    /// Description.
    pub doc: String,
    /// The replaced bytes.
    pub range: Range<usize>,
    /// The new text. `${0}` is the place of the cursor afterward, if `has_cursor`.
    pub text: String,
    /// Whether the text contains the place of the cursor.
    pub has_cursor: bool,
    /// Order among the candidates, the first one first.
    pub order: usize,
}

/// Returns what can be written at a byte of a file.
#[must_use]
pub fn complete(view: &PackView, file: FileText<'_>, at: usize) -> Vec<Completion> {
    let at = on_boundary(file.text, at);
    if let Some(found) = in_comment(file.text, at) {
        return found;
    }
    let place = place::find(file.text, at);
    let expression = keys::expression_at(view, file, at, &place);
    if let (Some(expression), Role::Value(scalar)) = (&expression, &place.role) {
        return in_expression(view, expression, scalar);
    }
    let Some(root) = keys::shape_of(file.file, file.is_case) else { return Vec::new() };
    match &place.role {
        Role::Key { range, has_colon } => {
            let mut found = key_candidates(view, file, &place, root);
            if !has_colon {
                let found_values = values(view, file, &place.path, root);
                found.extend(found_values.into_iter().map(|it| it.at(range.clone())));
            }
            numbered(found)
        }
        Role::Value(scalar) => {
            let range = scalar.source(&(0..scalar.text.len()));
            let found = values(view, file, &place.path, root);
            numbered(found.into_iter().map(|it| it.at(range.clone())).collect())
        }
    }
}

fn numbered(mut found: Vec<Completion>) -> Vec<Completion> {
    for (order, it) in found.iter_mut().enumerate() {
        it.order = order;
    }
    found
}

impl Completion {
    fn new(label: impl Into<String>, kind: CompletionKind, detail: impl Into<String>) -> Self {
        let label = label.into();
        Self {
            text: label.clone(),
            label,
            kind,
            detail: detail.into(),
            doc: String::new(),
            range: 0..0,
            has_cursor: false,
            order: 0,
        }
    }

    fn at(self, range: Range<usize>) -> Self {
        Self { range, ..self }
    }

    fn explained(self, doc: impl Into<String>) -> Self {
        Self { doc: doc.into(), ..self }
    }
}

/// The name of the file in the table of ids.
const fn id_file<'t>(file: FileText<'t>) -> &'t str {
    if file.is_case { cases::shape::FILE.file } else { file.file }
}

fn key_candidates(
    view: &PackView,
    file: FileText<'_>,
    place: &YamlPlace,
    root: &'static Kind,
) -> Vec<Completion> {
    let Role::Key { range, has_colon } = &place.role else { return Vec::new() };
    let written = if *has_colon { "" } else { ": " };
    let is_new = |name: &str| !place.siblings.iter().any(|it| it == name);
    let fields = keys::fields_at(root, &place.path);
    let field = |it: &&'static shape::Field| {
        let detail = if it.required || it.needed { "required" } else { "" };
        let default = (it.default)().map(|it| format!(" Default: `{it}`.")).unwrap_or_default();
        let text =
            if *has_colon { it.name.to_owned() } else { format!("{}{}", it.name, after(&it.kind)) };
        Completion { text, ..Completion::new(it.name, CompletionKind::Key, detail) }
            .explained(format!("{}{default}", it.doc))
            .at(range.clone())
    };
    let mut found: Vec<Completion> =
        fields.iter().filter(|it| is_new(it.name)).map(field).collect();
    // Required keys first, then in the order of the documentation.
    found.sort_by_key(|it| it.detail.is_empty());
    if let Some((kinds, false)) = ids::kinds_at(id_file(file), &place.path, true) {
        for kind in kinds {
            let known = kind.known(view).into_iter().filter(|it| is_new(it));
            found.extend(known.map(|it| {
                let text = format!("{it}{written}");
                Completion { text, ..Completion::new(it, CompletionKind::Id, kind.noun()) }
                    .at(range.clone())
            }));
        }
    }
    found
}

/// What follows a key.
const fn after(kind: &Kind) -> &'static str {
    if matches!(kind, Kind::List(_) | Kind::Map(_) | Kind::Record(_)) { ":" } else { ": " }
}

/// Words and ids that the value at the end of a path can be.
fn values(
    view: &PackView,
    file: FileText<'_>,
    path: &[PathStep],
    root: &'static Kind,
) -> Vec<Completion> {
    let mut found = Vec::new();
    for kind in keys::kinds_at(root, path) {
        let word =
            |it: &'static str, detail: &str| Completion::new(it, CompletionKind::Word, detail);
        if let Kind::Choice(words) = kind {
            found.extend(words.iter().map(|it| word(it, "")));
        } else if matches!(kind, Kind::Bool) {
            found.extend(["true", "false"].map(|it| word(it, "boolean")));
        }
    }
    if let Some((kinds, false)) = ids::kinds_at(id_file(file), path, false) {
        for kind in kinds {
            let known = kind.known(view).into_iter();
            found.extend(known.map(|it| Completion::new(it, CompletionKind::Id, kind.noun())));
            if *kind == IdKind::SessionType && !file.is_case {
                found.push(Completion::new("\"*\"", CompletionKind::Word, "every session type"));
            }
        }
    }
    found
}

/// What can be written at a place of an expression.
fn in_expression(
    view: &PackView,
    expression: &ExpressionAt<'_>,
    scalar: &ScalarPlace,
) -> Vec<Completion> {
    let names = expression.names;
    let at = expression_place(&expression.text, expression.offset, names);
    let range = expression.source(scalar, &at.word);
    let is_quoted = expression.text.get(..at.word.start).is_some_and(|it| it.ends_with(['"', '`']));
    let text_of = |it: &str| if is_quoted { it.to_owned() } else { format!("\"{it}\"") };
    let id = |it: String, noun: &str| {
        let text = scalar.written(&text_of(&it));
        Completion { text, ..Completion::new(it, CompletionKind::Id, noun) }
    };
    let found: Vec<Completion> = match &at.expected {
        ExpectedWord::Nothing | ExpectedWord::Items => Vec::new(),
        ExpectedWord::Members(owner) => members(*owner, names, scalar),
        ExpectedWord::PackNames(class) => {
            let known = names.of_class(*class).iter();
            known.map(|it| id(it.clone(), class.noun)).collect()
        }
        ExpectedWord::Values { fact, values } => {
            let known = values.iter().filter(|it| !it.is_empty());
            let of_pack = IdKind::of_fact(fact, names).unwrap_or_default().iter();
            let of_pack =
                of_pack.flat_map(|kind| kind.known(view).into_iter().map(|it| (it, *kind)));
            let mut found: Vec<Completion> = known.map(|it| id(it.clone(), "value")).collect();
            for (name, kind) in of_pack {
                if !found.iter().any(|it| it.label == name) {
                    found.push(id(name, kind.noun()));
                }
            }
            if !is_quoted {
                found.extend(members(Type::Global, names, scalar));
            }
            found
        }
    };
    numbered(found.into_iter().map(|it| it.at(range.clone())).collect())
}

/// The members of a type, or the names that an expression begins with.
fn members(owner: Type, names: &Names, scalar: &ScalarPlace) -> Vec<Completion> {
    if let Some(record) = &names.record {
        if owner == Type::Global {
            let found = Completion::new(&record.name, CompletionKind::Fact, "record");
            return vec![found.explained("What the rules of this file speak of.")];
        }
        if owner == Type::Record {
            let field = |it: &RecordField| {
                Completion::new(&it.name, CompletionKind::Fact, it.result.to_string())
                    .explained(&it.doc)
            };
            return record.fields.iter().map(field).collect();
        }
        return rows(owner, scalar);
    }
    match Names::class_of_members(owner) {
        Some(class) => {
            let known = names.of_class(class).iter();
            known.map(|it| Completion::new(it, CompletionKind::Id, class.noun)).collect()
        }
        None => rows(owner, scalar),
    }
}

fn rows(owner: Type, scalar: &ScalarPlace) -> Vec<Completion> {
    let rows = policyd_fact_table::members::tables().filter(|it| it.owner == owner);
    rows.map(|it| member(it, scalar)).collect()
}

fn member(row: &'static Member, scalar: &ScalarPlace) -> Completion {
    let mut found = Completion::new(row.signature(), CompletionKind::Fact, row.result.to_string());
    found.doc = format!("{}\n\nExample: `{}`", row.doc, row.example);
    row.name.clone_into(&mut found.text);
    if let Some(params) = row.params {
        found.kind = CompletionKind::Method;
        let argument = match params.first().map(|(it, _)| *it) {
            None => "()".to_owned(),
            Some(Type::Text) => scalar.written("(\"\u{0}\")"),
            Some(Type::Texts) => scalar.written("([\"\u{0}\"])"),
            Some(_) => "(\u{0})".to_owned(),
        };
        found.has_cursor = argument.contains('\u{0}');
        found.text.push_str(&argument.replace('\u{0}', CURSOR));
    }
    found
}

/// The place of the cursor in the text of a candidate.
pub const CURSOR: &str = "${0}";

/// Codes of lint rules in a suppression comment; `None` outside of one.
fn in_comment(text: &str, at: usize) -> Option<Vec<Completion>> {
    let range = lint::code_at(text, at)?;
    let rules = lint::rules().iter().filter(|it| it.can_be_silenced());
    let candidate = |it: &lint::Rule| {
        Completion::new(it.code, CompletionKind::LintRule, it.name)
            .explained(it.summary)
            .at(range.clone())
    };
    Some(numbered(rules.map(candidate).collect()))
}
