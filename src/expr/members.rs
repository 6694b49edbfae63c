//! The table of facts and host functions: one row each, with type, documentation and example.
//! The engine, the load-time checks and the reference documentation all read these rows.

use rhai::Dynamic;

use super::context::Object;
pub use super::row::{Global, Member, Run};
use super::types::Type;
use super::{FactError, breaker_facts, pack_facts};

/// The row of `owner.name`, if there is one: members are looked up at every step of an expression.
#[must_use]
pub fn find(owner: Type, name: &str) -> Option<&'static Member> {
    let (rows, places) = table_of(owner);
    let mut place = place_of(owner, name.as_bytes());
    // Ends at a place that is free; some always are.
    while let Some(row) = rows.get(usize::from(*places.get(place)?)) {
        if row.owner == owner && row.name == name {
            return Some(row);
        }
        place = (place + 1) % PLACES;
    }
    None
}

/// The value of a member of a part of the context.
///
/// # Errors
/// Why it has none, or that there is no such member.
pub(super) fn value(object: &Object, name: &str, args: &[Dynamic]) -> Result<Dynamic, FactError> {
    let owner = object.part.owner();
    match (owner, find(owner, name).and_then(|row| row.run)) {
        (_, Some(run)) => run(object, args),
        (Type::Preferences, None) => pack_facts::preference(object, name),
        (Type::Probes, None) => Ok(pack_facts::probe(object, name)),
        (Type::Breakers, None) => Ok(breaker_facts::breaker(object, name)),
        (_, None) => Err(FactError::NoMember(format!("there is no `{name}` on {owner}"))),
    }
}

/// The value of a function of a fact.
///
/// # Errors
/// [`FactError::NoMember`] if the owner has no function with this name and number of parameters; otherwise the
/// error of the fact.
pub(super) fn call(object: &Object, name: &str, args: &[Dynamic]) -> Result<Dynamic, FactError> {
    let owner = object.part.owner();
    let takes = |row: &&Member| row.params.is_some_and(|params| params.len() == args.len());
    match find(owner, name).filter(takes).and_then(|row| row.run) {
        Some(run) => run(object, args),
        None => Err(FactError::NoMember(format!("there is no `{name}` on {owner}"))),
    }
}

/// For each hash of a name the number of its row in its table, or of one whose name has the same hash: then the
/// next place is its own. Made when the program is compiled.
type Places = [u8; PLACES];

/// Twice as many as the largest table has rows, so that most names are at their own place.
const PLACES: usize = 64;

/// What stands at a place that no name has.
const FREE: u8 = u8::MAX;

const fn place_of(owner: Type, name: &[u8]) -> usize {
    let (first, last) = match name {
        [] => (0, 0),
        [only] => (*only, *only),
        [first, .., last] => (*first, *last),
    };
    (owner as usize * 7 + first as usize * 3 + last as usize * 5 + name.len() * 11) % PLACES
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which would tell")]
const fn places(rows: &[Member]) -> Places {
    assert!(rows.len() < PLACES, "some places stay free");
    let mut places = [FREE; PLACES];
    let mut number = 0;
    while number < rows.len() {
        let mut place = place_of(rows[number].owner, rows[number].name.as_bytes());
        while places[place] != FREE {
            place = (place + 1) % PLACES;
        }
        places[place] = number as u8;
        number += 1;
    }
    places
}

/// Declares the tables in the order of the reference documentation, each with the types whose members it has.
macro_rules! tables {
    ($($module:ident: $($owner:ident)|+;)+) => {
        /// The table with the rows of a type, and their places in it.
        const fn table_of(owner: Type) -> (&'static [Member], &'static Places) {
            match owner {
                $($(Type::$owner)|+ => {
                    (super::$module::ROWS, const { &places(super::$module::ROWS) })
                })+
            }
        }

        /// All rows, in the order of the reference documentation.
        pub fn tables() -> impl Iterator<Item = &'static Member> {
            [$(super::$module::ROWS),+].into_iter().flatten()
        }
    };
}

tables! {
    globals: Global;
    session_facts: Event | Session | Transcript | Tokens;
    work_facts: Tools | Commands | Command | CommandKind;
    file_facts: Files | Findings | Todos;
    pack_facts: Patterns | Preferences | Probes | Probe;
    breaker_facts: Breakers | Breaker;
    queue_facts: DeadLetters | Escalations;
    signal_facts: Signals;
    context_facts: Context;
    memory_facts: State | Now | Rule | Outcome;
    excuse_facts: Rationalizations;
    call_facts: Call;
    program_facts: Invocation;
    place_facts: Places;
    builtins: Text | Texts | Bool | Int | Decimal | Record | Any;
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
}
