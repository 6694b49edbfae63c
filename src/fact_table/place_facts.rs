//! Facts about paths that a tool call names: which globs they fit, and whether they lie outside.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rhai::Dynamic;

use super::FactError;
use super::call_facts::{CallFacts, on_call};
use super::code_owners::CodeOwners;
use super::context::{ContextPart, Object};
use super::dynamic::{count, text_argument, texts};
use super::fact_source::FactSource;
use super::params::PATHS;
use super::row::{FactRow, field, method, number};
use super::text_facts::{ChangedText, DiskFacts, PathState, ReadText};
use super::text_list::list;
use super::types::{Evidence::Structure, PackName, Subject, Type, Unit};
use super::{events, members};
use policyd_expr::table::list_name;
use policyd_facts::call::{Access, CallEnvironment, PathMatchers, ResolvedPath};

/// Returns the globs that an argument lists, those of the lists of the pack that it names among them. They are compiled
/// when the list is first used.
pub(super) fn globs(it: &Object, args: &[Dynamic]) -> Result<Arc<PathMatchers>, FactError> {
    let (lens, globs) = (&it.context().lens, list(args)?);
    let list_named = |item: &str| lens.path_list(list_name(item)?);
    let mut named = globs.texts().iter().filter_map(|it| list_name(it));
    if let Some(unknown) = named.find(|it| lens.path_list(it).is_none()) {
        return Err(format!("unknown list of paths `{unknown}`").into());
    }
    let compile =
        |texts: &[String]| PathMatchers::with_lists(texts.iter().map(String::as_str), list_named);
    Ok(globs.prepared(compile))
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
    method(
        Subject::Places,
        "matching",
        PATHS,
        (Subject::Places.as_type(), Structure),
        [
            "Those that match one of these globs. A path that is not known stays.",
            "action.changed.matching([\"./migrations/**\"]).exist",
        ],
        |it, args| {
            let globs = globs(it, args)?;
            on_call(it, |seen| {
                let may_be =
                    |it: &&ResolvedPath| it.absolute.is_none() || globs.fit(it, &seen.around);
                Ok(it.part(ContextPart::Places(places(it).iter().filter(may_be).cloned().collect())))
            })
        },
    ),
    field(
        Subject::Places,
        "exist",
        Type::Bool,
        Structure,
        ["Whether one of them exists.", "action.changed.exist"],
        |it, _| on_states(it, "exists", |it| it.exists),
    )
    .from(FactSource::PathStates),
    field(
        Subject::Places,
        "missing",
        Type::Bool,
        Structure,
        ["Whether one of them does not exist.", "!action.changed.missing"],
        |it, _| on_states(it, "exists", |it| it.exists.map(|it| !it)),
    )
    .from(FactSource::PathStates),
    field(
        Subject::Places,
        "tracked",
        Type::Bool,
        Structure,
        ["Whether git tracks one of them, or a file below it.", "action.changed.tracked"],
        |it, _| on_states(it, "is tracked by git", |it| it.tracked),
    )
    .from(FactSource::TrackedPaths),
    field(
        Subject::Places,
        "untracked",
        Type::Bool,
        Structure,
        ["Whether git does not track one of them.", "!action.changed.untracked"],
        |it, _| on_states(it, "is tracked by git", |it| it.tracked.map(|it| !it)),
    )
    .from(FactSource::TrackedPaths),
    field(
        Subject::Places,
        "uncommitted",
        Type::Bool,
        Structure,
        [
            "Whether git reports changes of one of them that are not committed. A new file is such a change, an ignored one is not.",
            "action.changed.uncommitted",
        ],
        |it, _| on_states(it, "has changes that are not committed", |it| it.uncommitted),
    )
    .from(FactSource::UncommittedPaths),
    field(
        Subject::Places,
        "modified",
        Type::Bool,
        Structure,
        [
            "Whether one of them is a file of git with changes that are not committed, or has such a file below it. A new file that was not added does not count.",
            "action.changed.modified",
        ],
        |it, _| on_states(it, "has changes that are not committed", |it| it.modified),
    )
    .from(FactSource::UncommittedPaths),
    field(
        Subject::Places,
        "before",
        Subject::FileTexts.as_type(),
        Structure,
        [
            "Texts of those that the call changes, as they are.",
            "action.changed.matching([\"*.pb.go\"]).before.contains(\"DO NOT EDIT\")",
        ],
        |it, _| texts_of(it, |it| Some(&it.before)),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
        Subject::Places,
        "after",
        Subject::FileTexts.as_type(),
        Structure,
        [
            "Texts of those that the call changes and does not delete, as they will be. What a command line writes is unknown.",
            "action.changed.matching([\"./src/**\"]).after.all_match(\"SPDX-License-Identifier:\")",
        ],
        |it, _| texts_of(it, |it| it.after.as_ref()),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
        Subject::Places,
        "added_lines",
        Type::Texts,
        Structure,
        [
            "Lines that the call adds to them, wherever they are. Empty lines, and spaces and a comma at the end of a line, do not count.",
            "action.changed.matching([\"package.json\"]).added_lines.len() > 0",
        ],
        |it, _| lines_of(it, |it| &it.added),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
        Subject::Places,
        "removed_lines",
        Type::Texts,
        Structure,
        ["Lines that the call removes from them, counted as for `added_lines`.", "action.changed.removed_lines.len() > 50"],
        |it, _| lines_of(it, |it| &it.removed),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
        Subject::Places,
        "owners",
        Type::Texts,
        Structure,
        ["Their owners by `CODEOWNERS`.", "\"@acme/security\" in action.changed.owners"],
        |it, _| {
            on_call(it, |seen| {
                let (known, around) = (code_owners(it, &seen.disk)?, &seen.around);
                let mut owners: Vec<String> = Vec::new();
                for place in places(it).iter() {
                    let written = place.absolute.as_deref().filter(|_| !place.open && !place.glob);
                    let written = written.ok_or_else(|| not_known(&place.written))?;
                    for path in [Some(written), place.real(around)].into_iter().flatten() {
                        let below = around.below_project(path).unwrap_or_default();
                        owners.extend(known.of(below).into_iter().filter(|_| !below.is_empty()));
                    }
                }
                owners.sort_unstable();
                owners.dedup();
                Ok(texts(owners))
            })
        },
    )
    .from(FactSource::CodeOwners),
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
        [
            "Their absolute paths, as in `files.paths`; as written where the directory is unknown.",
            "action.changed.list.any_in(files.paths)",
        ],
        |it, _| {
            let path =
                |it: &ResolvedPath| it.absolute.clone().unwrap_or_else(|| it.written.clone());
            Ok(texts(places(it).iter().map(path)))
        },
    ),
    field(
        Subject::Places,
        "as_written",
        Type::Texts,
        Structure,
        ["As they are written.", "program.targets.as_written.join(\", \") != \"\""],
        |it, _| Ok(texts(places(it).iter().map(|it| it.written.clone()))),
    ),
];

pub(super) fn not_known(what: &str) -> String {
    format!("what `{what}` is cannot be known")
}

/// Whether one of the places is of some globs.
fn any(it: &Object, args: &[Dynamic]) -> Result<Dynamic, FactError> {
    let globs = globs(it, args)?;
    on_places(it, |place, around| {
        place.absolute.as_ref()?;
        Some(globs.fit(place, around))
    })
}

fn places(it: &Object) -> Rc<[ResolvedPath]> {
    if let ContextPart::Places(places) = &it.part { places.clone() } else { Rc::from([]) }
}

/// Returns an error if a fact about the disk is asked of a call that happened before: it is not recorded.
fn require_live(it: &Object, what: &str) -> Result<(), FactError> {
    match it.context().recorded {
        true => Err(it.context().miss(what)),
        false => Ok(()),
    }
}

/// Whether something is true of what the disk or git knows of one of the places.
fn on_states(
    it: &Object,
    what: &str,
    state: impl Fn(&PathState) -> Option<bool>,
) -> Result<Dynamic, FactError> {
    require_live(it, "which files the project had")?;
    let places = places(it);
    on_call(it, |seen| {
        let mut unknown = None;
        for place in places.iter() {
            let path = place.absolute.as_ref().filter(|_| !place.open && !place.glob);
            match path.and_then(|it| seen.disk.states.get(it)).and_then(&state) {
                Some(true) => return Ok(true.into()),
                Some(false) => {}
                None => unknown = unknown.or(Some(place)),
            }
        }
        match unknown {
            Some(place) => {
                Err(format!("whether `{}` {what} cannot be known", place.written).into())
            }
            None => Ok(false.into()),
        }
    })
}

/// Returns how the call changes the texts of the places, each once. `Err` says why one is unknown.
fn changed<'s>(
    places: &'s [ResolvedPath],
    seen: &'s CallFacts,
) -> impl Iterator<Item = Result<&'s ChangedText, FactError>> {
    let mut paths = BTreeSet::new();
    let once = places.iter().filter(move |it| it.absolute.is_none() || paths.insert(&it.absolute));
    once.map(|place| {
        let path = place.absolute.as_ref().filter(|_| !place.open && !place.glob);
        let path = path.ok_or_else(|| FactError::from(not_known(&place.written)))?;
        let text = seen.disk.texts.get(path);
        text.ok_or_else(|| format!("the text of `{}` was not read", place.written).into())
    })
}

/// The texts of the places before or after the call.
fn texts_of(
    it: &Object,
    side: impl Fn(&ChangedText) -> Option<&ReadText>,
) -> Result<Dynamic, FactError> {
    require_live(it, "what the files contained")?;
    let places = places(it);
    on_call(it, |seen| {
        let texts = changed(&places, seen).filter_map(|it| match it {
            Ok(text) => side(text).cloned(),
            Err(why) => Some(Err(why)),
        });
        Ok(it.part(ContextPart::Texts(texts.collect())))
    })
}

/// The lines that the call adds to the places or removes from them.
fn lines_of(
    it: &Object,
    side: impl Fn(&ChangedText) -> &Result<Vec<String>, FactError>,
) -> Result<Dynamic, FactError> {
    require_live(it, "what the files contained")?;
    let places = places(it);
    on_call(it, |seen| {
        let mut lines = Vec::new();
        for text in changed(&places, seen) {
            let own = side(text?).as_ref().map_err(Clone::clone)?;
            lines.extend(own.iter().map(|it| Dynamic::from(it.clone())));
        }
        Ok(Dynamic::from_array(lines))
    })
}

/// Who owns the files of the project.
pub(super) fn code_owners<'s>(
    it: &Object,
    disk: &'s DiskFacts,
) -> Result<&'s CodeOwners, FactError> {
    require_live(it, "what `CODEOWNERS` contained")?;
    match &disk.owners {
        Some(Ok(owners)) => Ok(owners),
        Some(Err(why)) => Err(why.clone()),
        None => Err("`CODEOWNERS` was not read".into()),
    }
}

/// The same fact of all files that the call changes, as `action` has it.
pub(super) fn of_changed(it: &Object, name: &str) -> Result<Dynamic, FactError> {
    let files = on_call(it, |seen| {
        let files = seen.call.files.iter().filter(|it| it.does != Access::Read);
        Ok(it.part(ContextPart::Places(files.map(|it| it.place.clone()).collect())))
    })?;
    match files.try_cast::<Object>() {
        Some(files) => members::value(&files, name, &[]),
        None => Err(format!("`{name}` is unknown").into()),
    }
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
