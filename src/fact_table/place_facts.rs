//! Facts about paths that a tool call names: which globs they fit, and whether they lie outside.

use std::rc::Rc;
use std::sync::Arc;

use rhai::Dynamic;

use super::FactError;
use super::call_facts::on_call;
use super::context::{ContextPart, Object};
use super::dynamic::{count, text_argument, texts};
use super::params::PATHS;
use super::row::{FactRow, field, method, number};
use super::text_list::list;
use super::types::{Evidence::Structure, PackName, Subject, Type, Unit};
use policyd_facts::call::{CallEnvironment, PathMatchers, ResolvedPath};

/// The globs that an argument lists. They are compiled when the list is first used.
pub(super) fn globs(args: &[Dynamic]) -> Result<Arc<PathMatchers>, FactError> {
    let compile = |texts: &[String]| PathMatchers::new(texts.iter().map(String::as_str));
    Ok(list(args)?.prepared(compile))
}

/// Rows of paths.
pub(super) const ROWS: &[FactRow] = &[
    method(
        Subject::Places,
        "any",
        PATHS,
        (Type::Bool, Structure),
        ["Whether one of them matches one of these globs.", "program.targets.any([\"/etc/**\"])"],
        any,
    ),
    field(
        Subject::Places,
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
        Subject::Places,
        "replaced",
        Type::Bool,
        Structure,
        [
            "Whether one of them is an existing file outside the project whose content the call replaces.",
            "program.changed.replaced",
        ],
        |it, _| {
            on_places(it, |place, around| {
                let path = place.absolute.as_ref()?;
                Some(around.replaced.contains(path) && around.is_outside(path))
            })
        },
    ),
    field(
        Subject::Places,
        "existing",
        Type::Bool,
        Structure,
        [
            "Whether one of them is an existing file whose content the call replaces.",
            "program.changed.existing",
        ],
        |it, _| {
            on_places(it, |place, around| Some(around.replaced.contains(place.absolute.as_ref()?)))
        },
    ),
    method(
        Subject::Places,
        "of_kind",
        &[(Type::Text, PackName::FileKind.as_domain())],
        (Type::Bool, Structure),
        ["Whether one of them is of a kind of files.", "action.changed.of_kind(\"code\")"],
        |it, args| {
            let kind = text_argument(args, 0)?;
            let lens = &it.context().lens;
            on_places(it, |place, around| {
                let is_of = |path: &str| lens.file_kinds(path).contains(kind.as_str());
                Some(is_of(place.absolute.as_ref()?) || is_of(place.real(around)?))
            })
        },
    ),
    field(
        Subject::Places,
        "whole_project",
        Type::Bool,
        Structure,
        [
            "Whether one of them is the project directory, contains it, or matches all files in it.",
            "program.targets.whole_project",
        ],
        |it, _| on_places(it, |place, around| Some(around.holds_project(place.real(around)?))),
    ),
    number(
        Subject::Places,
        "count",
        Unit::Count,
        Structure,
        ["How many there are.", "program.targets.count > 1"],
        |it, _| Ok(count(places(it).len())),
    ),
    field(
        Subject::Places,
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

/// Whether one of the places is of some globs.
fn any(it: &Object, args: &[Dynamic]) -> Result<Dynamic, FactError> {
    let globs = globs(args)?;
    on_places(it, |place, around| {
        place.absolute.as_ref()?;
        Some(globs.fit(place, around))
    })
}

fn places(it: &Object) -> Rc<[ResolvedPath]> {
    if let ContextPart::Places(places) = &it.part { places.clone() } else { Rc::from([]) }
}

/// Whether something holds of one of the places; where it holds of none, one that cannot be known
/// leaves the question open.
fn on_places(
    it: &Object,
    holds: impl Fn(&ResolvedPath, &CallEnvironment) -> Option<bool>,
) -> Result<Dynamic, FactError> {
    let places = places(it);
    on_call(it, |seen| among(places.iter(), |place| holds(place, &seen.around)))
}

fn among<'p>(
    places: impl Iterator<Item = &'p ResolvedPath>,
    holds: impl Fn(&ResolvedPath) -> Option<bool>,
) -> Result<Dynamic, FactError> {
    let mut unknown = None;
    for place in places {
        match holds(place) {
            Some(true) => return Ok(true.into()),
            Some(false) => {}
            None => unknown = unknown.or(Some(place)),
        }
    }
    match unknown {
        // The path is known, but not the directory in which the program runs.
        Some(place) if !place.open => {
            Err(format!("the directory of `{}` cannot be known", place.written).into())
        }
        Some(place) => Err(not_known(&place.written).into()),
        None => Ok(false.into()),
    }
}
