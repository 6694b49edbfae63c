//! The table of facts and host functions: one row each, with type, documentation and example.
//! The language, its load-time checks, and the reference documentation read these rows.

use policyd_expr::builtins;
pub use policyd_expr::table::Member;
use rhai::Dynamic;

use super::context::Object;
use super::events::FactEvents;
use super::fact_source::{FactSource, FactSources};
use super::row::{FactRow, is_complete};
use super::types::{Subject, Type};
use super::{FactError, breaker_facts, globals, pack_facts, remembered_facts};

/// The row of `owner.name`, if there is one.
#[must_use]
pub fn find(owner: Type, name: &str) -> Option<&'static Member> {
    match Subject::from_type(owner) {
        Some(subject) => of_subject(subject, name).map(|it| &it.member),
        None if owner == Type::Global => global(name).map(|it| &it.member),
        None => builtins::find(owner, name),
    }
}

/// The row of a global name.
pub(super) fn global(name: &str) -> Option<&'static FactRow> {
    const PLACES: MemberPlaces = places(globals::ROWS);
    row(globals::ROWS, &PLACES, Type::Global, name)
}

/// The row of a name: of a global name, or of a member of a subject.
pub(super) fn row_of(owner: Type, name: &str) -> Option<&'static FactRow> {
    match Subject::from_type(owner) {
        Some(subject) => of_subject(subject, name),
        None if owner == Type::Global => global(name),
        None => None,
    }
}

/// The rows of these names, up to the first name that has none: one that a pack gives, or a member of a text.
pub(super) fn rows_of<'n>(
    names: impl Iterator<Item = &'n str>,
) -> impl Iterator<Item = &'static FactRow> {
    let mut owner = Type::Global;
    names.map_while(move |name| {
        let row = row_of(owner, name)?;
        owner = row.member.result;
        Some(row)
    })
}

/// Returns the events at which clients report a fact with these names, and how many of the names say so.
pub fn events<'n>(names: impl Iterator<Item = &'n str>) -> Option<(usize, &'static FactEvents)> {
    let rows = rows_of(names).enumerate();
    rows.filter_map(|(at, row)| Some((at.saturating_add(1), row.events?))).last()
}

/// Returns the source of a fact by its names; `None` if its global name is unknown.
#[must_use]
pub fn source(names: &str) -> Option<FactSource> {
    // Other names come from where their owner does.
    rows_of(names.split(['.', '['])).filter_map(|it| it.source).last()
}

impl FactSources {
    /// The sources of the facts that an expression uses.
    pub fn of_uses<'u>(uses: impl IntoIterator<Item = &'u String>) -> Self {
        uses.into_iter().filter_map(|it| source(it)).fold(Self::default(), Self::with)
    }
}

/// Returns the subject of the global to which a fact belongs; `used` is one of [`TypedExpression::uses`].
///
/// [`TypedExpression::uses`]: policyd_expr::check::TypedExpression::uses
#[must_use]
pub fn global_subject(used: &str) -> Option<Subject> {
    let name = used.split(['.', '[']).next().unwrap_or_default();
    Subject::from_type(global(name)?.member.result)
}

/// The row of a member of a subject.
fn of_subject(subject: Subject, name: &str) -> Option<&'static FactRow> {
    let (rows, places) = table_of(subject);
    row(rows, places, subject.as_type(), name)
}

fn row(
    rows: &'static [FactRow],
    places: &MemberPlaces,
    owner: Type,
    name: &str,
) -> Option<&'static FactRow> {
    let mut place = place_of(owner, name.as_bytes());
    // Ends at a place that is free; some always are.
    while let Some(row) = rows.get(usize::from(*places.get(place)?)) {
        if row.member.owner == owner && row.member.name == name {
            return Some(row);
        }
        place = (place + 1) % PLACES;
    }
    None
}

/// The value of a member of a part of the context.
///
/// # Errors
/// The value is unknown, or the part of the context has no such member.
pub(super) fn value(object: &Object, name: &str, args: &[Dynamic]) -> Result<Dynamic, FactError> {
    let owner = object.part.owner();
    match (owner, of_subject(owner, name).and_then(|row| row.run)) {
        (_, Some(run)) => run(object, args),
        (Subject::Preferences, None) => pack_facts::preference(object, name),
        (Subject::Probes, None) => Ok(pack_facts::probe(object, name)),
        (Subject::Memory, None) => Ok(remembered_facts::entry(object, name)),
        (Subject::Breakers, None) => Ok(breaker_facts::breaker(object, name)),
        (_, None) => Err(no_member(owner, name)),
    }
}

/// The value of a function of a fact.
///
/// # Errors
/// [`FactError::NoMember`] if the owner has no function with this name and number of parameters; otherwise the
/// error of the fact.
pub(super) fn call(object: &Object, name: &str, args: &[Dynamic]) -> Result<Dynamic, FactError> {
    let owner = object.part.owner();
    let takes = |row: &&FactRow| row.member.params.is_some_and(|params| params.len() == args.len());
    match of_subject(owner, name).filter(takes).and_then(|row| row.run) {
        Some(run) => run(object, args),
        None => Err(no_member(owner, name)),
    }
}

fn no_member(owner: Subject, name: &str) -> FactError {
    FactError::NoMember(format!("{} has no `{name}`", owner.as_type()))
}

/// For each hash of a name the number of its row in its table, or of one whose name has the same hash: then the
/// next place is its own. Made when the program is compiled.
type MemberPlaces = [u8; PLACES];

/// Twice as many as the largest table has rows, so that most names are at their own place.
const PLACES: usize = 64;

/// Content of a free place in the hash table.
const FREE: u8 = u8::MAX;

const fn place_of(owner: Type, name: &[u8]) -> usize {
    let (first, last) = match name {
        [] => (0, 0),
        [only] => (*only, *only),
        [first, .., last] => (*first, *last),
    };
    let owner = match owner {
        Type::Object(it) => it.number as usize,
        Type::Global
        | Type::Bool
        | Type::Int
        | Type::Decimal
        | Type::Text
        | Type::Texts
        | Type::Record
        | Type::Any => 0,
    };
    (owner * 7 + first as usize * 3 + last as usize * 5 + name.len() * 11) % PLACES
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which would tell")]
const fn places(rows: &[FactRow]) -> MemberPlaces {
    assert!(rows.len() < PLACES, "some places stay free");
    let mut places = [FREE; PLACES];
    let mut number = 0;
    while number < rows.len() {
        assert!(is_complete(&rows[number]), "a number needs a unit, a fact of `event` its events");
        let mut place = place_of(rows[number].member.owner, rows[number].member.name.as_bytes());
        while places[place] != FREE {
            place = (place + 1) % PLACES;
        }
        places[place] = number as u8;
        number += 1;
    }
    places
}

/// Declares the tables in the order of the reference documentation, each with the subjects whose members it has.
macro_rules! tables {
    ($($module:ident: $($owner:ident)|+;)+) => {
        /// The table with the rows of a subject, and their places in it.
        const fn table_of(owner: Subject) -> (&'static [FactRow], &'static MemberPlaces) {
            match owner {
                $($(Subject::$owner)|+ => {
                    (super::$module::ROWS, const { &places(super::$module::ROWS) })
                })+
            }
        }

        /// The rows of globals and subjects.
        pub(super) fn rows() -> impl Iterator<Item = &'static FactRow> {
            [globals::ROWS, $(super::$module::ROWS),+].into_iter().flatten()
        }
    };
}

/// Returns all rows, in the order of the reference documentation.
pub fn tables() -> impl Iterator<Item = &'static Member> {
    rows().map(|it| &it.member).chain(builtins::ROWS)
}

tables! {
    session_facts: Event | Session | Transcript | Tokens;
    work_facts: Tools | Agents | ToolCall | Commands | Command | CommandKind;
    file_facts: Files | Findings | Todos;
    pack_facts: Patterns | Preferences | Probes | Probe;
    breaker_facts: Breakers | Breaker;
    queue_facts: DeadLetters | Escalations;
    signal_facts: Signals;
    context_facts: Context;
    clock_facts: Now;
    memory_facts: State | Rule | Outcome;
    cost_facts: Costs;
    remembered_facts: Memory | MemoryEntry;
    excuse_facts: Rationalizations;
    call_facts: Call;
    program_facts: Invocation;
    place_facts: Places;
    text_facts: FileTexts;
    project_facts: Project;
    json_facts: JsonFile;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_owner_and_name() {
        for row in tables() {
            let found = find(row.owner, row.name).unwrap();
            assert!(std::ptr::eq(found, row), "{}.{} is elsewhere or twice", row.owner, row.name);
            assert!(find(row.owner, &format!("{}_", row.name)).is_none());
        }
    }

    #[test]
    fn a_member_can_have_another_source_than_its_owner() {
        for (path, expected) in [
            ("session.forge", FactSource::Remote),
            ("session.main_branches", FactSource::Event),
            ("session.type", FactSource::SessionType),
            ("session.branch", FactSource::Transcript),
            ("program.name", FactSource::Program),
            ("program.targets.any", FactSource::ProgramPaths),
            ("action.writes", FactSource::CallPaths),
            (r#"breakers["api/x"].open"#, FactSource::Breakers),
            ("probes.pr.ok", FactSource::Probes),
            ("files.kind.count", FactSource::Transcript),
            ("action.changed.matching.before.contains", FactSource::ChangedTexts),
            ("project.has_tests", FactSource::Project),
            ("project.has", FactSource::ProjectFiles),
        ] {
            assert_eq!(source(path), Some(expected), "{path}");
        }
        assert_eq!(source("nothing.known"), None);
    }

    #[test]
    fn facts_about_paths_follow_links() {
        let places = Subject::Places.as_type();
        for row in tables().filter(|it| it.result == places && it.owner != places) {
            let global = if row.owner == Subject::Call.as_type() { "action" } else { "program" };
            let path = format!("{global}.{}", row.name);
            let source = FactSources::default().with(source(&path).unwrap());
            assert!(source.has_some(FactSources::PATHS), "{path} lacks its source");
        }
    }
}
