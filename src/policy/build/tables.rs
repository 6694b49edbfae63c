//! Turns the layers of `tables.yaml` into meaning.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::layers::{Layers, wanted};
use super::super::tables::{Answer, FILE, Row, Table};
use super::{Builder, Entry, text, texts};
use crate::script::record::{Field, Limits, Record, Shape};
use crate::script::types::{Names, Type};
use crate::script::words;
use crate::source::Diagnostic;
use crate::source::node::Node;

impl Builder<'_> {
    /// What `tables.yaml` means.
    pub(super) fn tables(&mut self, layers: &Layers) -> Vec<Table> {
        let entries = layers.section(FILE, "");
        let wanted = wanted(entries, self.own_only);
        let made = wanted.filter_map(|entry| self.table(entry).filter(|_| entry.is_used()));
        made.collect()
    }

    fn table(&mut self, entry: &Entry) -> Option<Table> {
        for (key, why) in [
            ("inputs", "a table says what it is asked"),
            ("rows", "a table says what it answers"),
            ("otherwise", "a table always has an answer"),
        ] {
            if entry.get(key).is_none() {
                self.missing(entry, key, why);
            }
        }
        self.report_contradictory_limits(entry);
        let inputs = given(entry);
        let names = Names { record: Some(Arc::new(inputs.clone())), ..Names::default() };
        let (rows, otherwise) = self.speaking(Arc::new(names), |it| {
            let nodes = entry.get("rows").and_then(Node::items).unwrap_or_default();
            let rows = nodes.iter().filter_map(|node| {
                let when = it.expression(node.get("when"), Type::Bool)?;
                Some(Row { when, answer: it.answer(Some(node)) })
            });
            let rows: Vec<Row> = rows.collect();
            (rows, it.answer(entry.get("otherwise")))
        });
        let defaults = self.defaults(entry, &inputs);
        let description = text(entry.get("description"));
        Some(Table { id: entry.id.clone(), description, inputs, defaults, rows, otherwise })
    }

    fn answer(&mut self, node: Option<&Node>) -> Answer {
        let Some(node) = node else { return Answer::default() };
        if node.entries().is_none() {
            return Answer { answer: text(Some(node)), reason: String::new() };
        }
        let reason = node.get("reason").and_then(|it| self.template(it));
        Answer { answer: text(node.get("answer")), reason: reason.unwrap_or_default() }
    }

    /// Reports inputs whose `min` is greater than their `max`.
    fn report_contradictory_limits(&mut self, entry: &Entry) {
        let inputs = entry.get("inputs").and_then(Node::entries).unwrap_or_default();
        for (key, node) in inputs {
            let limits = limits(node);
            let (Limits { min: Some(min), max: Some(max) }, true, Some(place)) =
                (limits, limits.are_contradictory(), node.get("min"))
            else {
                continue;
            };
            let name = key.text().unwrap_or_default();
            let message = format!("`min` of `{name}` is {min}, greater than `max`, which is {max}");
            let found = Diagnostic::error("out-of-range", place.span.clone(), message);
            self.diagnostics.push(found.with_help(format!("write at most {max}, or raise `max`")));
        }
    }

    /// Values of inputs that are not given; each must be one that could be given.
    fn defaults(&mut self, entry: &Entry, shape: &Shape) -> Vec<String> {
        let inputs = entry.get("inputs").and_then(Node::entries).unwrap_or_default();
        let mut defaults = Vec::new();
        for (key, node) in inputs {
            let Some(default) = node.get("default").filter(|it| !it.is_null()) else { continue };
            let name = key.text().unwrap_or_default();
            let values = match default.items() {
                Some(_) => texts(Some(default)),
                None => vec![text(Some(default))],
            };
            let said: Vec<String> = values.iter().map(|it| format!("{name}={it}")).collect();
            match words::record(shape, Record::new(shape), &said) {
                Ok(_) => defaults.extend(said),
                Err(why) => {
                    let found = Diagnostic::error("bad-default", default.span.clone(), why);
                    self.diagnostics.push(found.with_help("write a value that could be given"));
                }
            }
        }
        defaults
    }
}

/// The limits that an input states; without them, any number may be given.
fn limits(input: &Node) -> Limits {
    let limit = |key| input.get(key).and_then(Node::int);
    Limits { min: limit("min"), max: limit("max") }
}

/// What the rows of a table see.
pub(super) fn given(entry: &Entry) -> Shape {
    let inputs = entry.get("inputs").and_then(Node::entries).unwrap_or_default();
    let kinds = [
        ("flag", Type::Bool),
        ("decimal", Type::Decimal),
        ("text", Type::Text),
        ("list", Type::Texts),
    ];
    let fields = inputs.iter().map(|(key, node)| {
        let kind = text(node.get("type"));
        let kind = kinds.iter().find(|it| it.0 == kind).map_or(Type::Int, |it| it.1);
        let doc = text(node.get("description"));
        let mut values = texts(node.get("values"));
        if !values.is_empty() && node.get("default").is_none() {
            values.push(String::new()); // Not given, it is empty.
        }
        let field = Field::new(key.text().unwrap_or_default(), kind, &doc);
        // Contradictory limits are reported; what else is wrong with the table is found without them.
        let limits = Some(limits(node)).filter(|it| !it.are_contradictory()).unwrap_or_default();
        Field { values, limits, ..field }
    });
    Shape { name: "given".to_owned(), fields: fields.collect() }
}

/// The names that expressions of an entry see where they are its own, by file and id; for entries that
/// no pack but the built-in one writes, nobody asks.
pub(in crate::policy) fn own_names(layers: &Layers) -> BTreeMap<(&'static str, String), Names> {
    let named = |shape: Shape| Names { record: Some(Arc::new(shape)), ..Names::default() };
    let of = |file: &'static str, section: &'static str, make: fn(&Entry) -> Shape| {
        wanted(layers.section(file, section), true)
            .map(move |it| ((file, it.id.clone()), named(make(it))))
    };
    let tables = of(FILE, "", given);
    tables.chain(of("signals.yaml", "signals", crate::policy::signals::text_record)).collect()
}
