//! The reference of facts in parts: the list of subjects, one subject, one fact, or a search.

use std::sync::{Arc, LazyLock};

use policyd_fact_table::members::{self, Member};
use policyd_fact_table::record::{RecordField, Shape};
use policyd_fact_table::source::{EvaluationPhase, source};
use policyd_fact_table::types::{Evidence, Names, Type};
use policyd_policy::records;
use policyd_record::paint::{TextColor, line};
use policyd_record::table::{Align, Screen, TextTable};
use policyd_yaml::suggest;

/// Types whose values have functions, with the name that a user writes.
const VALUES: [(&str, Type); 2] = [("text", Type::Text), ("list", Type::Texts)];

/// A page of the reference.
#[derive(Debug)]
pub enum FactPage {
    /// The subjects.
    Subjects,
    /// The facts of a type, below this name.
    Subject(String, Type),
    /// One fact, by its path.
    Fact(String, &'static Member),
    /// The fields of a record.
    Record(&'static Shape),
    /// One field of a record.
    Field(&'static Shape, &'static RecordField),
    /// Facts and fields that contain a word.
    Matches(String),
}

/// Finds the page of a subject, a fact, or a word.
///
/// # Errors
/// The nearest names, if nothing matches.
pub fn find(wanted: &str) -> Result<FactPage, UnknownFact> {
    if let Some(found) = find_type(wanted) {
        return Ok(FactPage::Subject(wanted.to_owned(), found));
    }
    if let Some(shape) = shapes().into_iter().find(|it| it.name == wanted) {
        return Ok(FactPage::Record(shape));
    }
    if let Some(row) = find_member(wanted) {
        return Ok(FactPage::Fact(wanted.to_owned(), row));
    }
    if let Some((record, name)) = wanted.split_once('.')
        && let Some(shape) = shapes().into_iter().find(|it| it.name == record)
        && let Some(field) = shape.fields.iter().find(|it| it.name == name)
    {
        return Ok(FactPage::Field(shape, field));
    }
    let has_match = members::tables().any(|it| matches(it, wanted))
        || shapes().iter().flat_map(|it| &it.fields).any(|it| field_matches(it, wanted));
    if has_match {
        return Ok(FactPage::Matches(wanted.to_owned()));
    }
    let known: Vec<&str> =
        globals().map(|it| it.name).chain(members::tables().map(|it| it.name)).collect();
    let near = suggest::nearest(wanted, &known).map(str::to_owned);
    Err(UnknownFact { wanted: wanted.to_owned(), near })
}

/// No fact has a name or a description with this word.
#[derive(Debug)]
pub struct UnknownFact {
    wanted: String,
    near: Option<String>,
}

impl std::fmt::Display for UnknownFact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let help = match &self.near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "run `policyd facts` to list the subjects; `--session ID` shows a session"
                .to_owned(),
        };
        write!(f, "no fact matches `{}`\nhelp: {help}", self.wanted)
    }
}

impl std::error::Error for UnknownFact {}

fn globals() -> impl Iterator<Item = &'static Member> {
    members::tables().filter(|it| it.owner == Type::Global)
}

fn rows(owner: Type) -> Vec<&'static Member> {
    members::tables().filter(|it| it.owner == owner).collect()
}

/// Returns the type of a subject, or of the values that a fact returns: `files`, `command`, `text`.
fn find_type(name: &str) -> Option<Type> {
    let named = globals().find(|it| it.name == name).map(|it| it.result);
    let value = VALUES.iter().find(|(it, _)| *it == name).map(|(_, it)| *it);
    let owner = || members::tables().map(|it| it.owner).find(|it| it.to_string() == name);
    named.or(value).or_else(owner).filter(|it| *it != Type::Global)
}

/// Returns the fact of a path such as `commands.last("cargo test").outcome`. The first word can also be a type.
fn find_member(path: &str) -> Option<&'static Member> {
    let mut names = names_of(path).into_iter();
    let mut owner = find_type(&names.next()?)?;
    let mut found = None;
    for name in names {
        let row = members::find(owner, &name)?;
        owner = row.result;
        found = Some(row);
    }
    found
}

/// Splits a path into names, without arguments and brackets.
fn names_of(path: &str) -> Vec<String> {
    let (mut names, mut depth) = (vec![String::new()], 0_usize);
    for c in path.chars() {
        match c {
            '(' | '[' => depth = depth.saturating_add(1),
            ')' | ']' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => names.push(String::new()),
            c if depth == 0 => names.iter_mut().last().into_iter().for_each(|it| it.push(c)),
            _ => {}
        }
    }
    names
}

/// Returns the records of the resilience files, each once.
fn shapes() -> Vec<&'static Shape> {
    let mut found: Vec<&'static Shape> = Vec::new();
    for (_, _, names) in records::PLACES {
        let shape = records::shape(names);
        if !found.iter().any(|it| std::ptr::eq(*it, shape)) {
            found.push(shape);
        }
    }
    found
}

/// Returns the files whose rules read a record.
fn files_of(shape: &Shape) -> String {
    let is_it = |names: &'static LazyLock<Arc<Names>>| std::ptr::eq(records::shape(names), shape);
    let mut files: Vec<&str> =
        records::PLACES.iter().filter(|it| is_it(it.2)).map(|it| it.0).collect();
    files.dedup();
    files.join(", ")
}

fn contains(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(&word.to_lowercase())
}

fn matches(row: &Member, word: &str) -> bool {
    contains(row.name, word) || contains(row.doc, word) || row.values.contains(&word)
}

fn field_matches(field: &RecordField, word: &str) -> bool {
    contains(&field.name, word) || contains(&field.doc, word)
}

/// Returns the path of a fact for a reader: its owner, then its signature.
fn path_of(row: &Member) -> String {
    if row.owner == Type::Global {
        return row.name.to_owned();
    }
    format!("{}.{}", row.owner, row.signature())
}

/// Returns a page as text.
#[must_use]
pub fn to_text(page: &FactPage, screen: Screen) -> String {
    let style = screen.style();
    let mut text = String::new();
    match page {
        FactPage::Subjects => subjects(&mut text, screen),
        FactPage::Subject(name, owner) => subject(&mut text, name, *owner, screen),
        FactPage::Fact(path, row) => fact(&mut text, path, row, screen),
        FactPage::Record(shape) => {
            line(
                &mut text,
                &format!("{}: read by rules of {}", style.bold(&shape.name), files_of(shape)),
            );
            one_line_each(
                &mut text,
                shape.fields.iter().map(|it| (it.name.clone(), it.result, it.doc.as_str())),
                screen,
            );
            line(&mut text, &style.dim(&format!("policyd facts {}.NAME shows one", shape.name)));
        }
        FactPage::Field(shape, field) => {
            line(&mut text, &style.bold(&format!("{}.{}", shape.name, field.name)));
            let values = field.values.iter().filter(|it| !it.is_empty()).map(String::as_str);
            let rows = [
                ("type", field.result.to_string()),
                ("values", values.collect::<Vec<_>>().join(", ")),
                ("known in", format!("rules of {}", files_of(shape))),
            ];
            details(&mut text, &field.doc, &rows, screen);
        }
        FactPage::Matches(word) => {
            line(&mut text, &format!("facts that mention {}", style.bold(word)));
            let rows = members::tables().filter(|it| matches(it, word));
            let rows = rows.map(|it| (path_of(it), it.result, it.doc));
            let fields = shapes().into_iter().flat_map(|shape| {
                let fields = shape.fields.iter().filter(|it| field_matches(it, word));
                fields.map(|it| (format!("{}.{}", shape.name, it.name), it.result, it.doc.as_str()))
            });
            one_line_each(&mut text, rows.chain(fields), screen);
        }
    }
    text
}

fn subjects(text: &mut String, screen: Screen) {
    let style = screen.style();
    line(text, &style.bold("What expressions can read"));
    let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
    let bold = |it: &str| policyd_record::table::TextCell::new(it, TextColor::Bold);
    for it in globals() {
        table.row(vec![bold(it.name), it.doc.into()]);
    }
    text.push_str(&table.render(screen));
    line(text, &format!("\n{}", style.bold("What rules of other files read instead")));
    let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
    for shape in shapes() {
        table.row(vec![bold(&shape.name), files_of(shape).into()]);
    }
    text.push_str(&table.render(screen));
    let hint = "policyd facts files: the facts of a subject; facts files.count: one fact; facts secret: \
                a search; facts --session ID: the values of a session. `text` and `list` have functions too.";
    line(text, "");
    screen.paragraph(text, "", hint);
}

fn subject(text: &mut String, name: &str, owner: Type, screen: Screen) {
    let style = screen.style();
    let doc = globals().find(|it| it.name == name).map(|it| it.doc);
    let title = doc.map_or_else(|| style.bold(name), |doc| format!("{}: {doc}", style.bold(name)));
    line(text, &title);
    let rows = rows(owner);
    one_line_each(text, rows.iter().map(|it| (it.signature(), it.result, it.doc)), screen);
    let mut more: Vec<String> = Vec::new();
    for it in &rows {
        let result = it.result.to_string();
        if !it.result.is_shown() && it.result != owner && !more.contains(&result) {
            more.push(result);
        }
    }
    if let Some(result) = Names::type_of_members(owner) {
        line(text, "  The names are defined in the pack: `policyd rules` shows where.");
        let members = self::rows(result);
        let shown =
            members.iter().map(|it| (format!("NAME.{}", it.signature()), it.result, it.doc));
        one_line_each(text, shown, screen);
        if !members.is_empty() {
            more.push(result.to_string());
        }
    }
    let hint = match more.as_slice() {
        [] => format!("policyd facts {name}.NAME shows one fact"),
        more => format!("policyd facts {name}.NAME shows one fact; see also: {}", more.join(", ")),
    };
    for it in policyd_record::table::wrap(&hint, screen.width()) {
        line(text, &style.dim(&it));
    }
}

/// Adds one line for each fact, so that a subject fits on a screen.
fn one_line_each<'d>(
    text: &mut String,
    rows: impl Iterator<Item = (String, Type, &'d str)>,
    screen: Screen,
) {
    let rows: Vec<(String, String, &str)> =
        rows.map(|(name, result, doc)| (name, result.to_string(), doc)).collect();
    let width = |column: fn(&(String, String, &str)) -> usize| rows.iter().map(column).max();
    let names = width(|it| it.0.chars().count()).unwrap_or(0).min(36);
    let types = width(|it| it.1.chars().count()).unwrap_or(0);
    for (name, result, doc) in &rows {
        let used = names.max(name.chars().count()).saturating_add(types).saturating_add(6);
        let doc = if screen.columns.is_some() { screen.cut(doc, used) } else { (*doc).to_owned() };
        let result = screen.style().dim(&format!("{result:types$}"));
        line(text, format!("  {name:names$}  {result}  {doc}").trim_end());
    }
}

fn fact(text: &mut String, path: &str, row: &Member, screen: Screen) {
    let title = match row.params {
        None => path.to_owned(),
        Some(_) => format!("{path}  ({})", row.signature()),
    };
    line(text, &screen.style().bold(&title));
    details(text, row.doc, &properties(path, row), screen);
}

/// Returns the properties of a fact, each with its name. An empty one does not apply to the fact.
#[must_use]
pub fn properties(path: &str, row: &Member) -> [(&'static str, String); 6] {
    let range = match row.range {
        (i64::MIN, _) | (_, i64::MIN) => String::new(),
        (least, i64::MAX) => format!("{least} or more"),
        (least, most) => format!("{least} to {most}"),
    };
    let evidence = match row.evidence {
        Evidence::Neutral => "neutral: a setting, a mode, or a limit",
        Evidence::Words => "words: a blocker does not block on it alone",
        Evidence::Structure => "structure: something that happened",
    };
    [
        ("type", row.result.to_string()),
        ("values", values_of(row)),
        ("range", if row.result == Type::Int { range } else { String::new() }),
        ("known at", known_at(path)),
        ("evidence", evidence.to_owned()),
        ("example", row.example.to_owned()),
    ]
}

/// Returns the closed set of values of a fact.
fn values_of(row: &Member) -> String {
    let values = row.values.iter().map(|it| if it.is_empty() { "empty" } else { it });
    values.collect::<Vec<_>>().join(", ")
}

fn details(text: &mut String, doc: &str, rows: &[(&str, String)], screen: Screen) {
    screen.paragraph(text, "", doc);
    let mut table = TextTable::new(2, &[Align::Left, Align::Left]);
    for (label, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        table.row(vec![(*label).into(), value.as_str().into()]);
    }
    text.push_str(&table.render(screen));
}

/// Returns the rules and events in which a fact is known.
#[must_use]
pub fn known_at(path: &str) -> String {
    let path = names_of(path).join(".");
    let events = members::events(path.split('.')).map(|(_, it)| it.events.concat());
    let events: Vec<&str> = events.iter().flatten().map(|it| it.name()).collect();
    let knows = |phase: EvaluationPhase| source(&path).is_none_or(|it| phase.knows(it));
    let rules = match (
        knows(EvaluationPhase::Check),
        knows(EvaluationPhase::Guard),
        knows(EvaluationPhase::ProgramGuard),
    ) {
        (true, true, _) => "checks and guards",
        (true, false, _) => "checks, at stop and subagent_stop",
        (false, true, _) => "guards",
        (false, false, true) => "guards with `commands`",
        (false, false, false) => "messages",
    };
    match events.as_slice() {
        [] => rules.to_owned(),
        events => format!("{rules}, at {}", events.join(", ")),
    }
}

/// Returns the facts of a page, for the JSON form.
#[must_use]
pub fn facts_of(page: &FactPage) -> Vec<&'static Member> {
    match page {
        FactPage::Subjects => members::tables().collect(),
        FactPage::Subject(_, owner) => rows(*owner),
        FactPage::Fact(_, row) => vec![row],
        FactPage::Record(_) | FactPage::Field(..) => Vec::new(),
        FactPage::Matches(word) => members::tables().filter(|it| matches(it, word)).collect(),
    }
}

/// Returns whether a page contains a record, for the JSON form.
#[must_use]
pub fn has_record(page: &FactPage, shape: &Shape) -> bool {
    match page {
        FactPage::Subjects => true,
        FactPage::Record(it) | FactPage::Field(it, _) => std::ptr::eq(*it, shape),
        FactPage::Subject(..) | FactPage::Fact(..) => false,
        FactPage::Matches(word) => shape.fields.iter().any(|it| field_matches(it, word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_a_page() {
        for row in members::tables().filter(|it| it.owner != Type::Global) {
            let path = format!("{}.{}", row.owner, row.name);
            let shown = match find(&path) {
                Ok(FactPage::Fact(_, found)) => std::ptr::eq(found, row),
                _ => matches!(
                    row.owner,
                    Type::Any | Type::Texts | Type::Bool | Type::Int | Type::Decimal | Type::Record
                ),
            };
            assert!(shown, "{path}");
        }
        for name in globals().map(|it| it.name) {
            assert!(matches!(find(name), Ok(FactPage::Subject(..))), "{name}");
        }
    }

    #[test]
    fn a_subject_fits_on_a_screen() {
        let screen = Screen { columns: Some(80), color: false };
        for name in globals().map(|it| it.name) {
            let shown = to_text(&find(name).unwrap(), screen);
            assert!(shown.lines().count() <= 50, "{name}\n{shown}");
            assert!(shown.lines().all(|it| it.chars().count() <= 80), "{name}\n{shown}");
        }
    }

    #[test]
    fn a_path_can_have_arguments() {
        let path = "commands.last(\"cargo test\").outcome";
        assert_eq!(names_of(path), ["commands", "last", "outcome"]);
        assert!(find_member(path).is_some_and(|it| it.values.contains(&"succeeded")));
        assert!(find("commands.lats").is_err());
    }
}
