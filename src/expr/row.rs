//! One row of the table of facts. May not live here: the table.

use rhai::Dynamic;

use super::FactError;
use super::context::{Object, Part};
use super::types::{Domain, Evidence, Type};

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

/// What counts and positions can be.
pub(super) const COUNTS: (i64, i64) = (0, i64::MAX);

/// A field.
pub(super) const fn field(
    owner: Type,
    name: &'static str,
    result: Type,
    evidence: Evidence,
    doc: [&'static str; 2],
    run: Run,
) -> Member {
    Member { params: None, ..method(owner, name, &[], (result, evidence), doc, run) }
}

/// A method with its parameters.
pub(super) const fn method(
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
pub(super) const fn with_values(member: Member, values: &'static [&'static str]) -> Member {
    Member { values, ..member }
}

/// The same member with the bounds of its number.
pub(super) const fn with_range(member: Member, range: (i64, i64)) -> Member {
    Member { range, ..member }
}
