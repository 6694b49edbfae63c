//! Members of texts and lists, and the operators that a raw engine lacks.

use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString};

use super::FactError;
use super::pattern::prose_regex;
use super::table::{COUNTS, Member};
use super::types::{Domain, Evidence::Neutral, TextForm, TextMatch, Type, Unit};

/// The parameter of a function that takes one text.
const fn text(compared: TextMatch) -> [(Type, Domain); 1] {
    [(Type::Text, Domain::Text(compared))]
}

/// The parameter of a function that takes a list.
const fn list(compared: TextMatch) -> [(Type, Domain); 1] {
    [(Type::Texts, Domain::Text(compared))]
}

/// The parameter of a function that takes a regex.
const REGEX: &[(Type, Domain)] = &[(Type::Text, Domain::Regex)];

/// Rows of texts and lists.
pub static ROWS: &[Member] = &[
    row(
        Type::Text,
        "contains",
        &const { text(TextMatch::Part) },
        Type::Bool,
        ["Whether it contains a text, case counted.", "session.branch.contains(\"fix\")"],
    ),
    row(
        Type::Text,
        "starts_with",
        &const { text(TextMatch::Beginning) },
        Type::Bool,
        ["Whether it starts with a text.", "session.branch.starts_with(\"feat/\")"],
    ),
    row(
        Type::Text,
        "ends_with",
        &const { text(TextMatch::End) },
        Type::Bool,
        ["Whether it ends with a text.", "transcript.last_message.ends_with(\"?\")"],
    ),
    row(
        Type::Text,
        "matches",
        REGEX,
        Type::Bool,
        [
            "Whether a regex matches somewhere, case not counted.",
            "session.branch.matches(\"^(main|master)$\")",
        ],
    ),
    number_row(
        Type::Text,
        "number",
        REGEX,
        [
            "The whole number that a regex finds first: its first group, or all that it matches. Unknown without one.",
            "now.date.number(\"^(\\\\d+)\") >= 2027",
        ],
    ),
    number_row(
        Type::Text,
        "sum",
        REGEX,
        [
            "The sum of all whole numbers that a regex finds, as `number` reads them. 0 without one.",
            "commands.last(\"git diff\").output.sum(\"(\\\\d+) (?:insertion|deletion)\") > 400",
        ],
    ),
    row(
        Type::Text,
        "len",
        &[],
        Type::Int,
        ["Length in characters.", "transcript.last_message.len() > 10"],
    ),
    row(
        Type::Text,
        "lower",
        &[],
        Type::Text,
        ["In lower case.", "session.branch.lower() == \"main\""],
    ),
    row(
        Type::Text,
        "trim",
        &[],
        Type::Text,
        ["Without blanks at both ends.", "transcript.last_message.trim() == \"\""],
    ),
    row(
        Type::Texts,
        "contains",
        &const { text(TextMatch::Whole) },
        Type::Bool,
        ["Whether a text is in it.", "tools.skills.contains(\"review\")"],
    ),
    row(
        Type::Texts,
        "any_in",
        &const { list(TextMatch::Whole) },
        Type::Bool,
        ["Whether one of its texts is in another list.", "tools.skills.any_in([\"a\", \"b\"])"],
    ),
    row(
        Type::Texts,
        "all_in",
        &const { list(TextMatch::Each) },
        Type::Bool,
        ["Whether all its texts are in another list.", "tools.skills.all_in([\"a\", \"b\"])"],
    ),
    row(Type::Texts, "len", &[], Type::Int, ["How many texts.", "files.paths.len() > 3"]),
    number_row(
        Type::Texts,
        "sum",
        &[],
        [
            "The sum of its texts, each a whole number. Unknown if one is not.",
            "probes.pr.list(\"files[].additions\").sum() > 400",
        ],
    ),
    row(
        Type::Texts,
        "first",
        &[],
        Type::Text,
        ["The first text, else empty.", "tools.skills.first() == \"a\""],
    ),
    row(
        Type::Texts,
        "join",
        &const { text(TextMatch::Not) },
        Type::Text,
        ["All texts with one between them.", "files.paths.join(\", \") != \"\""],
    ),
];

const fn row(
    owner: Type,
    name: &'static str,
    params: &'static [(Type, Domain)],
    result: Type,
    doc: [&'static str; 2],
) -> Member {
    let [doc, example] = doc;
    Member {
        owner,
        name,
        params: Some(params),
        result,
        evidence: Neutral,
        doc,
        example,
        values: &[],
        form: TextForm::Any,
        range: COUNTS,
        unit: if matches!(result, Type::Int) { Some(Unit::Count) } else { None },
        ids: None,
        is_written_out: false,
    }
}

/// A row whose result is a number of a text, so that it can be anything.
const fn number_row(
    owner: Type,
    name: &'static str,
    params: &'static [(Type, Domain)],
    doc: [&'static str; 2],
) -> Member {
    let row = row(owner, name, params, Type::Int, doc);
    Member { range: (i64::MIN, i64::MAX), unit: Some(Unit::Unknown), ..row }
}

/// Returns the row of a member of texts or lists.
#[must_use]
pub fn find(owner: Type, name: &str) -> Option<&'static Member> {
    ROWS.iter().find(|it| it.owner == owner && it.name == name)
}

/// Registers what the rows promise, and the operators of a raw engine.
pub(super) fn register(engine: &mut Engine) {
    type Text = ImmutableString;
    let failed = Box::<EvalAltResult>::from;
    engine
        .register_fn("contains", |it: &mut Text, part: Text| it.contains(part.as_str()))
        .register_fn("starts_with", |it: &mut Text, part: Text| it.starts_with(part.as_str()))
        .register_fn("ends_with", |it: &mut Text, part: Text| it.ends_with(part.as_str()))
        .register_fn("matches", |it: &mut Text, regex: Text| prose_regex(&regex).is_match(it))
        .register_fn("number", move |it: &mut Text, regex: Text| {
            shown_number(it, &regex).map_err(failed)
        })
        .register_fn("sum", move |it: &mut Text, regex: Text| shown_sum(it, &regex).map_err(failed))
        .register_fn("sum", move |it: &mut Array| sum_of(texts(it)).map_err(failed))
        .register_fn("len", |it: &mut Text| number(it.chars().count()))
        .register_fn("lower", |it: &mut Text| it.to_lowercase())
        .register_fn("trim", |it: &mut Text| it.trim().to_owned())
        .register_fn("contains", |it: &mut Array, text: Text| has(it, &text))
        .register_fn("any_in", |it: &mut Array, other: Array| any_in(it, &other))
        .register_fn("all_in", |it: &mut Array, other: Array| all_in(it, &other))
        .register_fn("len", |it: &mut Array| number(it.len()))
        .register_fn("first", |it: &mut Array| first(it))
        .register_fn("join", |it: &mut Array, between: Text| join(it, &between))
        .register_fn("!", |it: bool| !it)
        .register_fn("-", i64::wrapping_neg);
}

/// The whole number that a regex finds first in a text.
///
/// # Errors
/// The regex finds nothing, or something else.
pub(super) fn shown_number(text: &str, regex: &str) -> Result<i64, FactError> {
    let found = prose_regex(regex).captured(text);
    let first =
        found.first().ok_or_else(|| FactError::from(format!("`{regex}` finds no number")))?;
    whole_number(first)
}

/// The sum of the whole numbers that a regex finds in a text.
///
/// # Errors
/// The regex finds something else, or the sum is too large.
pub(super) fn shown_sum(text: &str, regex: &str) -> Result<i64, FactError> {
    sum_of(prose_regex(regex).captured(text).into_iter())
}

/// The sum of texts that are whole numbers.
///
/// # Errors
/// A text is not a whole number, or the sum is too large.
pub(super) fn sum_of(numbers: impl Iterator<Item = impl AsRef<str>>) -> Result<i64, FactError> {
    numbers.map(|it| whole_number(it.as_ref())).try_fold(0_i64, |sum, number| {
        sum.checked_add(number?).ok_or_else(|| "the sum is too large".into())
    })
}

fn whole_number(text: &str) -> Result<i64, FactError> {
    let text = text.trim();
    text.parse().map_err(|_| format!("`{text}` is not a whole number").into())
}

/// Whether one of the texts of a list is in another one.
pub(super) fn any_in(items: &[Dynamic], others: &[Dynamic]) -> bool {
    texts(items).any(|it| has(others, &it))
}

/// Whether all texts of a list are in another one.
pub(super) fn all_in(items: &[Dynamic], others: &[Dynamic]) -> bool {
    texts(items).all(|it| has(others, &it))
}

/// The first text of a list, else an empty one.
pub(super) fn first(items: &[Dynamic]) -> ImmutableString {
    texts(items).next().unwrap_or_default()
}

/// The texts of a list with one between them.
pub(super) fn join(items: &[Dynamic], between: &str) -> String {
    texts(items).map(String::from).collect::<Vec<_>>().join(between)
}

pub(super) fn number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn texts(items: &[Dynamic]) -> impl Iterator<Item = ImmutableString> + '_ {
    items.iter().filter_map(|it| it.clone().into_immutable_string().ok())
}

fn has(items: &[Dynamic], wanted: &str) -> bool {
    texts(items).any(|it| it.as_str() == wanted)
}
