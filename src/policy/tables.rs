//! `tables.yaml`: decision tables. The first row whose condition is true answers; the inputs of a table are typed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Expression;
use super::builder::{Builder, text, texts};
use super::field_value::words;
use super::fields::{DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS};
use super::layers::{LayerEntry, Layers, wanted};
use super::record::{Conversion, TEMPLATE, record, words};
use policyd_fact_table::record::{FactRecord, Limits, RecordField, Shape};
use policyd_fact_table::types::{Names, Type};
use policyd_fact_table::words::{self as input_words, WordError};
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::node::Node;
use policyd_yaml::shape::{Field, Kind, field, required};
use policyd_yaml::{Diagnostic, suggest};

pub(super) const FILE: &str = "tables.yaml";
const LIMIT_MAX: i64 = 1_000_000_000_000;
/// A limit of a number: an integer, also for decimals.
const LIMIT: Kind = Kind::Int { min: -LIMIT_MAX, max: LIMIT_MAX };

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub id: String,
    /// Description for readers of the pack. Can be empty.
    pub description: String,
    /// What its rows see as `given`.
    pub inputs: Shape,
    /// Values of inputs that are not given, as `name=value`.
    pub defaults: Vec<String>,
    /// The first that holds answers.
    pub rows: Vec<TableRow>,
    /// The answer where none holds.
    pub otherwise: TableResult,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            id: String::new(),
            description: String::new(),
            inputs: Shape { name: "given".to_owned(), fields: Vec::new() },
            defaults: Vec::new(),
            rows: Vec::new(),
            otherwise: TableResult::default(),
        }
    }
}

/// One row of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRow {
    /// Over `given`.
    pub when: Expression,
    /// What it answers.
    pub answer: TableResult,
}

/// What a table answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableResult {
    /// The answer.
    pub answer: String,
    /// Why; a template over `given`, may be empty.
    pub reason: String,
}

/// Why a table cannot be evaluated with the given inputs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// No table has this id.
    #[error("unknown table `{id}`; {help}")]
    Unknown { id: String, help: String },
    /// An input is invalid.
    #[error(transparent)]
    Input(#[from] WordError),
}

/// Finds a table by its id.
///
/// # Errors
/// [`TableError::Unknown`] if no table has this id.
pub fn find<'t>(tables: &'t [Table], id: &str) -> Result<&'t Table, TableError> {
    let known: Vec<&str> = tables.iter().map(|it| it.id.as_str()).collect();
    tables.iter().find(|it| it.id == id).ok_or_else(|| {
        let help = suggest::did_you_mean(id, &known).unwrap_or_else(|| known.join(", "));
        TableError::Unknown { id: id.to_owned(), help }
    })
}

/// The type of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum InputType {
    Flag,
    #[default]
    Number,
    Decimal,
    Text,
    List,
}

words! {
    InputType {
        Flag = "flag", Number = "number", Decimal = "decimal", Text = "text", List = "list",
    }
}

impl InputType {
    const fn of_facts(self) -> Type {
        match self {
            Self::Flag => Type::Bool,
            Self::Number => Type::Int,
            Self::Decimal => Type::Decimal,
            Self::Text => Type::Text,
            Self::List => Type::Texts,
        }
    }
}

/// Keys of an input.
#[derive(Debug, Default)]
struct TableInput {
    kind: InputType,
    values: Vec<String>,
    min: Option<i64>,
    max: Option<i64>,
    description: String,
}

impl TableInput {
    /// Returns the limits of the input. Without them, every number is accepted.
    const fn limits(&self) -> Limits {
        Limits { min: self.min, max: self.max }
    }
}

record! {
    const INPUT: RecordType<TableInput> = {
        type: words::<InputType>() => kind, "What it is; `number` by default.";
        default: Kind::Any, "Its value where it is not given; else false, 0 or empty.";
        values: TEXTS => values, "The only texts it can be.";
        min: LIMIT => min, "The smallest value of a number.";
        max: LIMIT => max, "The largest value of a number.";
        use DESCRIPTION => description;
    }
}

const ANSWER: Field = required("answer", Kind::Text, "What the table answers.");
const REASON: Field = field("reason", Kind::Template, "Why, in one sentence, over `given`.");

record! {
    const ROW: RecordType<TableRow> = {
        when [mandatory()]: Kind::Expression => when, "Holds where the row answers.";
        use ANSWER => answer.answer;
        use REASON => answer.reason by TEMPLATE;
    }

    const OTHERWISE: RecordType<TableResult> = {
        use ANSWER => answer;
        use REASON => reason by TEMPLATE;
    }
}

/// The answer if no row is true: a map, or only the text of the answer.
const OTHERWISE_ANSWER: Conversion<TableResult> =
    Conversion::reading(|node, builder| match node.entries() {
        Some(_) => Some(OTHERWISE.read(&LayeredMap::from_iter([node]), builder)),
        None => Some(TableResult { answer: text(Some(node)), reason: String::new() }),
    });

record! {
    /// An entry of `tables.yaml`.
    pub(super) const TABLE: RecordType<Table> = {
        use ID => id;
        use DESCRIPTION => description;
        inputs: Kind::Map(&INPUT.map), "What is asked, as `given.NAME`.";
        rows: ROW.list => rows by ROW.items, "The first that holds answers.";
        otherwise: Kind::Either(&[Kind::Text, OTHERWISE.map]) => otherwise by OTHERWISE_ANSWER,
            "The answer where none holds.";
        use ENABLED;
        use OVERRIDE;
    }
}

impl Builder<'_> {
    pub(super) fn tables(&mut self, layers: &Layers) -> Vec<Table> {
        let entries = wanted(layers.section(FILE, ""), self.own_only);
        let built = entries.filter_map(|entry| {
            let table = self.table(entry);
            entry.is_used().then_some(table)
        });
        built.collect()
    }

    fn table(&mut self, entry: &LayerEntry) -> Table {
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
        let table = self.speaking(Arc::new(names), |builder| TABLE.read(&entry.map(), builder));
        let defaults = self.defaults(entry, &inputs);
        Table { inputs, defaults, ..table }
    }

    /// Reports inputs whose `min` is greater than their `max`.
    fn report_contradictory_limits(&mut self, entry: &LayerEntry) {
        let inputs = entry.get("inputs").and_then(Node::entries).unwrap_or_default();
        for (key, node) in inputs {
            let limits = input(node).limits();
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
    fn defaults(&mut self, entry: &LayerEntry, shape: &Shape) -> Vec<String> {
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
            match input_words::record(shape, FactRecord::new(shape), &said) {
                Ok(_) => defaults.extend(said),
                Err(error) => {
                    let found =
                        Diagnostic::error("unknown-value", default.span.clone(), error.to_string());
                    self.diagnostics.push(found.with_help("write a value that could be given"));
                }
            }
        }
        defaults
    }
}

/// Returns the keys of an input.
fn input(node: &Node) -> TableInput {
    INPUT.read_untyped(&LayeredMap::from_iter([node]))
}

/// Returns the record `given` that the rows of a table see.
fn given(entry: &LayerEntry) -> Shape {
    let inputs = entry.get("inputs").and_then(Node::entries).unwrap_or_default();
    let fields = inputs.iter().map(|(key, node)| {
        let mut input = input(node);
        if !input.values.is_empty() && node.get("default").is_none() {
            input.values.push(String::new()); // The value of an absent text.
        }
        // Contradictory limits are reported. Without them, other mistakes in the table are found.
        let limits = Some(input.limits()).filter(|limits| !limits.are_contradictory());
        let name = key.text().unwrap_or_default();
        let field = RecordField::new(name, input.kind.of_facts(), &input.description);
        RecordField { values: input.values, limits: limits.unwrap_or_default(), ..field }
    });
    Shape { name: "given".to_owned(), fields: fields.collect() }
}

/// Returns the names that only the expressions of one entry can use, by file and id. Not called for entries that
/// only the built-in pack defines.
pub(super) fn own_names(layers: &Layers) -> BTreeMap<(&'static str, String), Names> {
    let named = |shape: Shape| Names { record: Some(Arc::new(shape)), ..Names::default() };
    let of = |file: &'static str, section: &'static str, make: fn(&LayerEntry) -> Shape| {
        wanted(layers.section(file, section), true)
            .map(move |it| ((file, it.id.clone()), named(make(it))))
    };
    let tables = of(FILE, "", given);
    tables.chain(of("signals.yaml", "signals", super::signals::text_record)).collect()
}
