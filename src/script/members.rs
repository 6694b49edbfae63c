//! The table of facts and host functions: one row each, with type, documentation and example.
//! The engine, the load-time checks and the reference documentation all read these rows.

use rhai::{Dynamic, ImmutableString};

use super::FactError;
use super::context::{Object, Part};
use super::types::{Domain, Evidence, Type};
use super::{breaker_facts, pack_facts};

/// Runs a member on an object of its owner's type.
pub type Run = fn(&Object, &[Dynamic]) -> Result<Dynamic, FactError>;

/// A field, method or operator-like function on a value of type `owner`.
#[derive(Debug)]
pub struct Member {
    /// Type it belongs to.
    pub owner: Type,
    /// Its name.
    pub name: &'static str,
    /// `None` for a field; the parameters of a method.
    pub params: Option<&'static [(Type, Domain)]>,
    /// Type of its value.
    pub result: Type,
    /// What kind of evidence it is.
    pub evidence: Evidence,
    /// One sentence.
    pub doc: &'static str,
    /// A use of it that type-checks.
    pub example: &'static str,
    /// The values it can have, where they are few; a comparison with another one is an error.
    pub values: &'static [&'static str],
    /// The least and the greatest number it can be.
    pub range: (i64, i64),
    /// What it does; `None` for global names, and for members of texts and lists, which `builtins` holds.
    pub run: Option<Run>,
    /// The part of the context that a global name is; `None` for members.
    pub global: Option<Global>,
}

/// A global name.
#[derive(Debug, Clone, Copy)]
pub struct Global {
    /// The part of the context.
    pub part: fn() -> Part,
    /// Whether its values are learned while a pack is evaluated, so that they can change.
    pub is_learned: bool,
}

impl Member {
    /// Its name, with the types of its parameters where it is called.
    #[must_use]
    pub fn signature(&self) -> String {
        let Some(params) = self.params else { return self.name.to_owned() };
        let types: Vec<String> = params.iter().map(|(it, _)| it.to_string()).collect();
        format!("{}({})", self.name, types.join(", "))
    }
}

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
        (_, None) => Err(format!("there is no `{name}` on {owner}").into()),
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

/// What counts and positions can be.
pub(super) const COUNTS: (i64, i64) = (0, i64::MAX);

/// A field.
#[must_use]
pub const fn field(
    owner: Type,
    name: &'static str,
    result: Type,
    evidence: Evidence,
    doc: [&'static str; 2],
    run: Run,
) -> Member {
    let [doc, example] = doc;
    let (run, range) = (Some(run), COUNTS);
    Member {
        owner,
        name,
        params: None,
        result,
        evidence,
        doc,
        example,
        values: &[],
        range,
        run,
        global: None,
    }
}

/// A method with its parameters.
#[must_use]
pub const fn method(
    owner: Type,
    name: &'static str,
    params: &'static [(Type, Domain)],
    result: (Type, Evidence),
    doc: [&'static str; 2],
    run: Run,
) -> Member {
    let ([doc, example], (result, evidence)) = (doc, result);
    let (params, run) = (Some(params), Some(run));
    let range = COUNTS;
    Member {
        owner,
        name,
        params,
        result,
        evidence,
        doc,
        example,
        values: &[],
        range,
        run,
        global: None,
    }
}

/// The same member with the closed set of its values.
#[must_use]
pub const fn with_values(member: Member, values: &'static [&'static str]) -> Member {
    Member { values, ..member }
}

/// The same member with the bounds of its number.
#[must_use]
pub const fn with_range(member: Member, range: (i64, i64)) -> Member {
    Member { range, ..member }
}

/// A text argument.
pub(super) fn text_argument(args: &[Dynamic], at: usize) -> Result<ImmutableString, FactError> {
    let value = args.get(at).ok_or("an argument is missing")?;
    value
        .clone()
        .into_immutable_string()
        .map_err(|found| format!("expected text, found {found}").into())
}

/// A count as the number type of expressions.
pub(super) fn count(value: impl TryInto<i64>) -> Dynamic {
    Dynamic::from(value.try_into().unwrap_or(i64::MAX))
}

/// A list of texts.
pub(super) fn texts<S: Into<String>>(items: impl IntoIterator<Item = S>) -> Dynamic {
    let items = items.into_iter().take(crate::limits::EXPRESSION_ARRAY_MAX);
    Dynamic::from_array(items.map(|it| Dynamic::from(it.into())).collect())
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
