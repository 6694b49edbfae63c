//! What `tables.yaml` may hold: questions with a few inputs, answered by the first row that holds.

use super::{DESCRIPTION, ENABLED, ID, OVERRIDE, TEXTS};
use crate::source::shape::{Field, Kind, field, required};

/// What an input of a table may be.
pub const INPUT_TYPES: &[&str] = &["flag", "number", "decimal", "text", "list"];

/// A limit of a number: a whole number, also for decimals.
const LIMIT: Kind = Kind::Int { min: -LIMIT_MAX, max: LIMIT_MAX };
const LIMIT_MAX: i64 = 1_000_000_000_000;

const INPUT: &[Field] = &[
    field("type", Kind::Choice(INPUT_TYPES), "What it is; `number` by default."),
    field("default", Kind::Any, "Its value where it is not given; else false, 0 or empty."),
    field("values", TEXTS, "The only texts it can be."),
    field("min", LIMIT, "The smallest value of a number."),
    field("max", LIMIT, "The largest value of a number."),
    DESCRIPTION,
];

const ANSWER: Field = required("answer", Kind::Text, "What the table answers.");
const REASON: Field = field("reason", Kind::Template, "Why, in one sentence, over `given`.");

const HOLDS: Field = required("when", Kind::Expression, "Holds where the row answers.");
const ROW: &[Field] = &[HOLDS, ANSWER, REASON];

const OTHERWISE: Kind = Kind::Either(&[Kind::Text, Kind::Record(&[ANSWER, REASON])]);

/// An entry of `tables.yaml`.
pub const TABLE: &[Field] = &[
    ID,
    DESCRIPTION,
    field("inputs", Kind::Map(&Kind::Record(INPUT)), "What is asked, as `given.NAME`."),
    field("rows", Kind::List(&Kind::Record(ROW)), "The first that holds answers."),
    field("otherwise", OTHERWISE, "The answer where none holds."),
    ENABLED,
    OVERRIDE,
];
