//! The reference page of the keys of a case, from the tables that the reader of cases uses.

use std::fmt::Write as _;

use policyd::cases::shape::{CASE, DEEDS, HAPPENINGS};
use policyd::source::shape::{Field, Kind};

use super::reference::{assert_current, cell, code, page, table};

/// A map with known keys, and the path of the key that has it as its value.
struct Section {
    path: String,
    fields: &'static [Field],
}

/// The maps of a case, each once, in the order in which a reader meets them.
fn sections() -> Vec<Section> {
    let mut found = vec![Section { path: String::new(), fields: CASE }];
    let mut next = 0;
    while let Some(section) = found.get(next) {
        let (parent, fields) = (section.path.clone(), section.fields);
        for field in fields {
            for record in records_in(&field.kind) {
                if found.iter().any(|it| std::ptr::eq(it.fields, record)) {
                    continue;
                }
                // Steps repeat the keys of a case.
                let parent = parent.trim_start_matches("steps").trim_start_matches('.');
                let path = match parent {
                    "" => field.name.to_owned(),
                    parent => format!("{parent}.{}", field.name),
                };
                found.push(Section { path, fields: record });
            }
        }
        next += 1;
    }
    found
}

fn records_in(kind: &Kind) -> Vec<&'static [Field]> {
    match kind {
        Kind::Record(fields) => vec![fields],
        Kind::List(one) | Kind::OneOrList(one) | Kind::Map(one) => records_in(one),
        Kind::Either(kinds) => kinds.iter().flat_map(records_in).collect(),
        Kind::Any
        | Kind::Text
        | Kind::Bool
        | Kind::Int { .. }
        | Kind::Number { .. }
        | Kind::Choice(_)
        | Kind::Duration
        | Kind::Date
        | Kind::Expression
        | Kind::Template
        | Kind::Regex => vec![],
    }
}

/// The kind of a value in words. A map with known keys is a link to its table.
fn words(kind: &Kind, sections: &[Section]) -> String {
    match kind {
        Kind::Any => "any value".to_owned(),
        Kind::Text | Kind::Template => "text".to_owned(),
        Kind::Bool => "`true` or `false`".to_owned(),
        Kind::Int { .. } | Kind::Number { .. } => "number".to_owned(),
        Kind::Choice(names) => names.iter().map(|it| code(it)).collect::<Vec<_>>().join(", "),
        Kind::Duration => "duration".to_owned(),
        Kind::Date => "date or time".to_owned(),
        Kind::Expression => "expression".to_owned(),
        Kind::Regex => "regular expression".to_owned(),
        Kind::List(one) => format!("list of: {}", words(one, sections)),
        Kind::OneOrList(one) => format!("{}, or a list", words(one, sections)),
        Kind::Map(one) => format!("map of names to: {}", words(one, sections)),
        Kind::Record(fields) => {
            let found = sections.iter().find(|it| std::ptr::eq(it.fields, *fields)).unwrap();
            let anchor: String =
                found.path.chars().filter(|it| it.is_alphanumeric() || *it == '_').collect();
            format!("[map](#{anchor})")
        }
        Kind::Either(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(|it| words(it, sections)).collect();
            kinds.join(" or ")
        }
    }
}

/// A table of main keys, each with the keys that can accompany it.
fn companions(text: &mut String, pairs: &[(&str, &[&str])]) {
    let rows = pairs.iter().map(|(main, others)| {
        vec![code(main), others.iter().map(|it| code(it)).collect::<Vec<_>>().join(", ")]
    });
    table(text, &["key", "can be used with"], rows);
}

#[test]
fn the_page_of_case_keys_is_current() {
    let mut text = page(
        "Keys of a case",
        "Every key of a case in `tests/**/*.yaml`. [Test](../write/testing.md#test) explains cases with examples.",
    );
    text.push_str(
        "\nA case describes what happened (`given`, `transcript`), what happens now (`on`), and what policyd must decide \
         (`expect`). `{{name}}` in any value is filled from `each`. `policyd schema cases` prints the JSON Schema.\n",
    );
    let sections = sections();
    for Section { path, fields } in &sections {
        let title = if path.is_empty() { "A case".to_owned() } else { code(path) };
        writeln!(text, "\n## {title}").unwrap();
        match path.as_str() {
            "transcript" => {
                text.push_str("\nEach entry of the list has exactly one of these keys:\n");
                companions(&mut text, HAPPENINGS);
            }
            "on" => {
                text.push_str("\nThe first of these keys that is present decides what happens:\n");
                companions(&mut text, DEEDS);
            }
            _ => {}
        }
        let rows = fields.iter().map(|it| {
            let name =
                if it.required { format!("{} (required)", code(it.name)) } else { code(it.name) };
            vec![name, words(&it.kind, &sections), cell(it.doc)]
        });
        table(&mut text, &["key", "value", "meaning"], rows);
    }
    assert_current("reference/cases.md", &text);
}
