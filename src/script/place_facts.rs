//! Facts about paths that a tool call names: which globs they fit, and whether they lie outside.

use std::rc::Rc;

use rhai::Dynamic;

use super::call_facts::{TOUCHES, on_call, touches};
use super::context::{Object, Part};
use super::members::{Member, count, field, method, texts};
use super::types::{Domain, Evidence::Structure, Type};
use crate::facts::call::{Place, PlaceGlobs, Surroundings};

/// A list of texts as the argument of a row.
pub(super) const SOME: &[(Type, Domain)] = &[(Type::Texts, Domain::Free)];

/// Rows of paths.
pub(super) const ROWS: &[Member] = &[
    method(
        Type::Places,
        "any",
        SOME,
        (Type::Bool, Structure),
        ["Whether one of them matches one of these globs.", "program.targets.any([\"/etc/**\"])"],
        |it, args| any(it, &globs(args)?),
    ),
    field(
        Type::Places,
        "outside",
        Type::Bool,
        Structure,
        [
            "Whether one of them lies neither in the project nor among temporary files.",
            "program.targets.outside",
        ],
        |it, _| on_places(it, |place, around| Some(around.is_outside(place.real(around)?))),
    ),
    field(
        Type::Places,
        "whole_project",
        Type::Bool,
        Structure,
        [
            "Whether one of them is the project, holds it, or stands for all that is in it.",
            "program.targets.whole_project",
        ],
        |it, _| on_places(it, |place, around| Some(around.holds_project(place.real(around)?))),
    ),
    field(
        Type::Places,
        "count",
        Type::Int,
        Structure,
        ["How many there are.", "program.targets.count > 1"],
        |it, _| Ok(count(places(it).len())),
    ),
    field(
        Type::Places,
        "list",
        Type::Texts,
        Structure,
        ["As they are written.", "program.targets.list.join(\", \") != \"\""],
        |it, _| Ok(texts(places(it).iter().map(|it| it.written.clone()))),
    ),
];

pub(super) fn not_known(what: &str) -> String {
    format!("what `{what}` is cannot be known")
}

/// The texts of an argument that is a list.
pub(super) fn list(args: &[Dynamic]) -> Result<Vec<String>, String> {
    let value = args.first().ok_or("an argument is missing")?;
    let items =
        value.clone().into_array().map_err(|found| format!("expected a list, found {found}"))?;
    items
        .into_iter()
        .map(|it| it.into_string().map_err(|it| format!("expected text, found {it}")))
        .collect()
}

/// An argument that is a list of globs.
pub(super) fn globs(args: &[Dynamic]) -> Result<PlaceGlobs, String> {
    Ok(PlaceGlobs::new(list(args)?.iter().map(String::as_str)))
}

/// Whether one of the places is of some globs.
fn any(it: &Object, globs: &PlaceGlobs) -> Result<Dynamic, String> {
    on_places(it, |place, around| {
        place.absolute.as_ref()?;
        Some(globs.fit(place, around))
    })
}

/// Whether a member of this name is asked about globs.
pub(super) fn takes_globs(name: &str) -> bool {
    name == "any" || TOUCHES.iter().any(|(it, _)| *it == name)
}

/// The value of a member that is asked about globs; nothing where it is none of those.
pub(super) fn by_globs(
    it: &Object,
    name: &str,
    globs: &PlaceGlobs,
) -> Option<Result<Dynamic, String>> {
    if matches!(it.part, Part::Places(_)) && name == "any" {
        return Some(any(it, globs));
    }
    let (_, does) = TOUCHES.iter().find(|(it, _)| *it == name)?;
    matches!(it.part, Part::Call).then(|| touches(it, globs, does))
}

fn places(it: &Object) -> Rc<[Place]> {
    if let Part::Places(places) = &it.part { places.clone() } else { Rc::from([]) }
}

/// Whether something holds of one of the places; where it holds of none, one that cannot be known
/// leaves the question open.
fn on_places(
    it: &Object,
    holds: impl Fn(&Place, &Surroundings) -> Option<bool>,
) -> Result<Dynamic, String> {
    let places = places(it);
    on_call(it, |seen| among(places.iter(), |place| holds(place, &seen.around)))
}

fn among<'p>(
    places: impl Iterator<Item = &'p Place>,
    holds: impl Fn(&Place) -> Option<bool>,
) -> Result<Dynamic, String> {
    let mut unknown = None;
    for place in places {
        match holds(place) {
            Some(true) => return Ok(true.into()),
            Some(false) => {}
            None => unknown = unknown.or(Some(place.written.clone())),
        }
    }
    match unknown {
        Some(unknown) => Err(not_known(&unknown)),
        None => Ok(false.into()),
    }
}
