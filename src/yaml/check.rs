//! Holds a tree against a shape and reports everything that does not fit.
//! May not live here: whether an expression compiles or a name exists elsewhere.

use super::shape::{Field, Kind, NodeShape};
use super::suggest::{did_you_mean, nearest};
use super::value::{check_value, wrong_type};
use super::{Diagnostic, Node, NodeKind, Suggestion, quoted};
use crate::limits::FILE_FINDINGS_MAX;

/// Adds to `findings` everything in `node` that is not of this kind, at most as many as are
/// reported for one file.
pub fn check(node: &Node, kind: &Kind, findings: &mut Vec<Diagnostic>) {
    let mut found = Vec::new();
    check_node(node, kind, &mut found);
    found.truncate(FILE_FINDINGS_MAX);
    findings.append(&mut found);
}

/// Whether a value is written in a form that its kind takes: a scalar, a list or a map.
#[must_use]
pub fn fits(kind: &Kind, node: &Node) -> bool {
    form(node).is_some_and(|it| kind.takes(it))
}

fn form(node: &Node) -> Option<NodeShape> {
    match &node.kind {
        NodeKind::Invalid => None,
        NodeKind::Scalar(_) => Some(NodeShape::Scalar),
        NodeKind::List(_) => Some(NodeShape::List),
        NodeKind::Map(_) => Some(NodeShape::Map),
    }
}

fn check_node(node: &Node, kind: &Kind, found: &mut Vec<Diagnostic>) {
    if found.len() >= FILE_FINDINGS_MAX {
        return;
    }
    let Some(form) = form(node) else { return };
    if !kind.takes(form) || (node.is_null() && !matches!(kind, Kind::Any)) {
        found.push(wrong_type(node, kind));
        return;
    }
    match kind {
        Kind::Any => {}
        Kind::List(one) => check_items(node, one, found),
        Kind::OneOrList(one) if form == NodeShape::List => check_items(node, one, found),
        Kind::OneOrList(one) => check_node(node, one, found),
        Kind::Map(one) => {
            for (_, value) in node.entries().unwrap_or_default() {
                check_node(value, one, found);
            }
        }
        Kind::Record(fields) => check_record(node, fields, found),
        Kind::Either(kinds) => check_either(node, kind, form, kinds, found),
        Kind::Text
        | Kind::Bool
        | Kind::Int { .. }
        | Kind::Number { .. }
        | Kind::Choice(_)
        | Kind::Duration
        | Kind::Date
        | Kind::Expression
        | Kind::Template
        | Kind::Regex => found.extend(check_value(node, kind)),
    }
}

fn check_items(node: &Node, one: &Kind, found: &mut Vec<Diagnostic>) {
    for item in node.items().unwrap_or_default() {
        check_node(item, one, found);
    }
}

/// The kind that fits; else the findings of the one that fits best among those of the same form,
/// or, where the value as a whole is of none of them, that.
fn check_either(
    node: &Node,
    either: &Kind,
    form: NodeShape,
    kinds: &[Kind],
    found: &mut Vec<Diagnostic>,
) {
    let attempts = kinds.iter().filter(|kind| kind.takes(form)).map(|kind| {
        let mut attempt = Vec::new();
        check_node(node, kind, &mut attempt);
        attempt
    });
    let best = attempts.min_by_key(Vec::len).unwrap_or_default();
    match best.as_slice() {
        [only] if only.code == "wrong-type" && only.span == node.span => {
            found.push(wrong_type(node, either));
        }
        _ => found.extend(best),
    }
}

fn check_record(node: &Node, fields: &[Field], found: &mut Vec<Diagnostic>) {
    let entries = node.entries().unwrap_or_default();
    for (key, value) in entries {
        let Some(name) = key.text() else { continue };
        match fields.iter().find(|field| field.name == name) {
            Some(field) => check_field(key, value, field, found),
            None => found.push(unknown_key(key, name, entries, fields)),
        }
        if found.len() >= FILE_FINDINGS_MAX {
            return;
        }
    }
    // A merge key may have brought the missing ones, and a mistyped key was one of them.
    let some_key_is_invalid = entries.iter().any(|(key, _)| key.kind == NodeKind::Invalid);
    let is_there = |field: &Field| entries.iter().any(|(key, _)| key.text() == Some(field.name));
    let mistyped = |field: &Field| entries.iter().any(|(key, _)| is_typo_of(key, field, fields));
    if some_key_is_invalid {
        return;
    }
    let missing: Vec<&Field> =
        fields.iter().filter(|it| it.required && !is_there(it) && !mistyped(it)).collect();
    found.extend(missing_keys(node, entries, &missing));
}

fn check_field(key: &Node, value: &Node, field: &Field, found: &mut Vec<Diagnostic>) {
    let empty = value.text().is_some_and(|text| text.trim().is_empty());
    if value.is_null() && !matches!(field.kind, Kind::Any) {
        if field.required {
            let message = format!("`{}` has no value", field.name);
            found.push(
                Diagnostic::error("missing-key", key.span.clone(), message).with_help(holds(field)),
            );
        }
    } else if empty && field.required && matches!(field.kind, Kind::Text | Kind::Template) {
        let message = format!("`{}` is empty", field.name);
        found.push(Diagnostic::error("missing-key", value.span.clone(), message));
    } else {
        check_node(value, &field.kind, found);
    }
}

fn is_typo_of(key: &Node, field: &Field, fields: &[Field]) -> bool {
    let Some(name) = key.text() else { return false };
    let known = fields.iter().any(|it| it.name == name);
    let names = [field.name];
    !known && (field.aka.contains(&name) || nearest(name, &names).is_some())
}

fn unknown_key(key: &Node, name: &str, entries: &[(Node, Node)], fields: &[Field]) -> Diagnostic {
    let finding =
        Diagnostic::error("unknown-key", key.span.clone(), format!("unknown key {}", quoted(name)));
    if let Some(field) = fields.iter().find(|field| field.aka.contains(&name)) {
        let is_free = entries.iter().all(|(it, _)| it.text() != Some(field.name));
        let edit = is_free.then(|| (key.span.clone(), field.name.to_owned()));
        let help = format!("it is called `{}` here", field.name);
        return finding.suggest(Suggestion::edited(help, edit));
    }
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    if nearest(name, &names).is_none()
        && let Some(parent) =
            fields.iter().find(|field| field.kind.fields().iter().any(|it| it.name == name))
    {
        return finding
            .with_help(format!("`{name}` belongs under `{}`: indent it there", parent.name));
    }
    // A key that is there already, or that another one was meant to be, is not written a second time.
    let meant = nearest(name, &names);
    let others = entries.iter().filter(|(it, _)| it.span.start != key.span.start);
    let mut others = others.filter_map(|(it, _)| it.text());
    match others.any(|it| meant.is_some() && nearest(it, &names) == meant) {
        true => finding.with_help_if(did_you_mean(name, &names)),
        false => finding.with_meant(name, &names),
    }
}

/// Missing keys are one finding at the first key of their map, by name where the map has one.
fn missing_keys(node: &Node, entries: &[(Node, Node)], missing: &[&Field]) -> Option<Diagnostic> {
    let names: Vec<String> = missing.iter().map(|field| format!("`{}`", field.name)).collect();
    let (what, help) = match missing {
        [] => return None,
        [only] => ("key", holds(only)),
        _ => ("keys", missing.iter().map(|it| holds(it)).collect::<Vec<_>>().join("; ")),
    };
    let name = ["id", "name"].iter().find_map(|key| node.get(key)?.text());
    let place = name.map_or_else(String::new, |name| format!(" in {}", quoted(name)));
    let span = entries.first().map_or(&node.span, |(key, _)| &key.span);
    let message = format!("missing {what} {}{place}", names.join(", "));
    Some(Diagnostic::error("missing-key", span.clone(), message).with_help(help))
}

/// What a key takes, and what for.
fn holds(field: &Field) -> String {
    let doc = field.doc.trim_end_matches('.');
    format!("`{}:` takes {} ({doc})", field.name, field.kind.expected())
}
