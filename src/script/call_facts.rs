//! Facts about the tool call that is about to happen, `action`: what it would start, and what it would touch.
//!
//! INVARIANT: what cannot be known is neither true nor false. A question that it decides fails, and
//! `on_error` of the guard answers.

use std::rc::Rc;

use rhai::Dynamic;

use super::context::{Object, Part};
use super::members::{Member, count, field, method, text_argument, texts};
use super::types::{Domain, Evidence::Structure, Type};
use crate::facts::call::{Call, FileUse, Invocation, Place, Surroundings, Text, Use};
use crate::facts::glob::word_matches;
use crate::facts::lens::ValueOptions;
use crate::facts::pattern::CommandPattern;
use crate::source::secrets;

/// A call, and where it happens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The call.
    pub call: Call,
    /// Where it happens.
    pub around: Surroundings,
}

/// A program that a guard recognised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recognised {
    /// Its position among the programs of the call.
    pub at: usize,
    /// How many of its operands its command pattern names: 1 for `git push`.
    pub named: usize,
}

const ONE: &[(Type, Domain)] = &[(Type::Text, Domain::Free)];
const SOME: &[(Type, Domain)] = &[(Type::Texts, Domain::Free)];

/// Rows of `call`, `program` and the paths of both.
pub(super) const ROWS: &[Member] = &[
    field(
        Type::Call,
        "tool",
        Type::Text,
        Structure,
        ["Name of the tool.", "action.tool == \"Bash\""],
        |it, _| on_call(it, |seen| Ok(seen.call.tool.clone().into())),
    ),
    field(
        Type::Call,
        "command",
        Type::Text,
        Structure,
        ["The command line as it was written, else empty.", "action.command.contains(\"prod\")"],
        |it, _| on_call(it, |seen| Ok(seen.call.command.clone().into())),
    ),
    field(
        Type::Call,
        "understood",
        Type::Bool,
        Structure,
        ["Whether all of the command line could be read.", "action.understood"],
        |it, _| on_call(it, |seen| Ok(seen.call.is_understood().into())),
    ),
    field(
        Type::Call,
        "endless",
        Type::Bool,
        Structure,
        ["Whether a function of it calls itself without end.", "!action.endless"],
        |it, _| on_call(it, |seen| Ok(seen.call.endless.into())),
    ),
    field(
        Type::Call,
        "programs",
        Type::Texts,
        Structure,
        ["Names of the programs that it would start.", "\"docker\" in action.programs"],
        |it, _| on_call(it, |seen| Ok(texts(seen.call.programs.iter().map(|it| it.name.clone())))),
    ),
    method(
        Type::Call,
        "runs",
        ONE,
        (Type::Bool, Structure),
        ["Whether it would start a program, by command pattern.", "action.runs(\"npm publish\")"],
        |it, args| {
            let pattern = CommandPattern::parse(&text_argument(args, 0)?);
            let values = values(it);
            on_call(it, |seen| {
                Ok(seen.call.programs.iter().any(|it| it.is(&pattern, values)).into())
            })
        },
    ),
    method(
        Type::Call,
        "sets",
        SOME,
        (Type::Bool, Structure),
        ["Whether it sets one of these variables for a program.", "action.sets([\"LD_PRELOAD\"])"],
        |it, args| {
            let names = list(args)?;
            on_call(it, |seen| {
                let mut set = seen.call.variables.keys();
                Ok(set.any(|it| names.iter().any(|name| word_matches(name, it))).into())
            })
        },
    ),
    method(
        Type::Call,
        "reads",
        SOME,
        (Type::Bool, Structure),
        ["Whether it reads a file of these globs.", "action.reads([\".env\"])"],
        |it, args| touches(it, args, &[Use::Reads]),
    ),
    method(
        Type::Call,
        "writes",
        SOME,
        (Type::Bool, Structure),
        ["Whether it writes a file of these globs.", "action.writes([\"Cargo.lock\"])"],
        |it, args| touches(it, args, &[Use::Writes]),
    ),
    method(
        Type::Call,
        "deletes",
        SOME,
        (Type::Bool, Structure),
        ["Whether it deletes a file of these globs.", "action.deletes([\"**/tests/**\"])"],
        |it, args| touches(it, args, &[Use::Deletes]),
    ),
    method(
        Type::Call,
        "changes",
        SOME,
        (Type::Bool, Structure),
        ["Whether it writes or deletes a file of these globs.", "action.changes([\"src/gen/**\"])"],
        |it, args| touches(it, args, &[Use::Writes, Use::Deletes]),
    ),
    method(
        Type::Call,
        "touches",
        SOME,
        (Type::Bool, Structure),
        [
            "Whether it reads, writes or deletes a file of these globs.",
            "action.touches([\"*.pem\"])",
        ],
        |it, args| touches(it, args, &[Use::Reads, Use::Writes, Use::Deletes]),
    ),
    field(
        Type::Call,
        "changed",
        Type::Places,
        Structure,
        ["Files that it writes or deletes.", "action.changed.outside"],
        |it, _| {
            on_call(it, |seen| {
                let files = seen.call.files.iter().filter(|it| it.does != Use::Reads);
                Ok(it.part(Part::Places(files.map(|it| it.place.clone()).collect())))
            })
        },
    ),
    field(
        Type::Call,
        "written",
        Type::Text,
        Structure,
        ["Text that it would write into files.", "action.written.contains(\"@ts-ignore\")"],
        |it, _| on_call(it, |seen| Ok(seen.call.written.join("\n").into())),
    ),
    field(
        Type::Call,
        "secrets",
        Type::Texts,
        Structure,
        [
            "Kinds of secrets in its command line, in what it writes, in a prompt.",
            "action.secrets.len() == 0",
        ],
        |it, _| {
            on_call(it, |seen| {
                let call = &seen.call;
                let parts = call.written.iter().chain([&call.command, &call.prompt]);
                Ok(texts(parts.flat_map(|it| secrets::kinds(it)).collect::<Vec<_>>()))
            })
        },
    ),
    field(
        Type::Invocation,
        "name",
        Type::Text,
        Structure,
        ["Its name without its folder, empty where unknown.", "program.name == \"rm\""],
        |it, _| on_program(it, |it, _, _| Ok(it.name.clone().into())),
    ),
    field(
        Type::Invocation,
        "line",
        Type::Text,
        Structure,
        ["The program with its arguments.", "program.line.contains(\"prod\")"],
        |it, _| on_program(it, |it, _, _| Ok(line(it).into())),
    ),
    field(
        Type::Invocation,
        "args",
        Type::Texts,
        Structure,
        ["Its arguments.", "\"--yes\" in program.args"],
        |it, _| on_program(it, |it, _, _| Ok(texts(it.args.iter().map(|it| it.text.clone())))),
    ),
    method(
        Type::Invocation,
        "has",
        SOME,
        (Type::Bool, Structure),
        [
            "Whether one of these options is given, bundled or shortened too.",
            "program.has([\"-f\", \"--force\"])",
        ],
        |it, args| {
            let options = list(args)?;
            on_program(it, |program, _, _| {
                if options.iter().any(|it| program.has(it)) {
                    return Ok(true.into());
                }
                match program.args.iter().find(|it| it.known_part().is_empty() && !it.is_known()) {
                    // A whole argument that is not known is a file or a name much more often.
                    Some(_) | None => Ok(false.into()),
                }
            })
        },
    ),
    method(
        Type::Invocation,
        "value",
        ONE,
        (Type::Text, Structure),
        ["The value of an option, else empty.", "program.value(\"--namespace\") == \"prod\""],
        |it, args| {
            let option = text_argument(args, 0)?;
            on_program(it, |it, _, _| {
                Ok(it.values(&option).next().map(|it| it.text).unwrap_or_default().into())
            })
        },
    ),
    field(
        Type::Invocation,
        "operands",
        Type::Texts,
        Structure,
        [
            "Its arguments that are no options, those of its command pattern left out.",
            "program.operands.len() == 0",
        ],
        |it, _| {
            let values = values(it);
            on_program(it, |it, named, _| {
                let operands = it.operands(values).into_iter().skip(named);
                Ok(texts(operands.map(|it| it.text.clone())))
            })
        },
    ),
    method(
        Type::Invocation,
        "names",
        SOME,
        (Type::Bool, Structure),
        [
            "Whether one of its operands is one of these; `*` stands for any letters.",
            "program.names([\"main\", \"release/*\"])",
        ],
        |it, args| {
            let (wanted, values) = (list(args)?, values(it));
            on_program(it, |it, named, _| {
                let operands: Vec<_> = it.operands(values).into_iter().skip(named).collect();
                let fits = |text: &str| wanted.iter().any(|it| word_matches(it, text));
                if operands.iter().any(|it| fits(&it.text)) {
                    return Ok(true.into());
                }
                let could = |it: &Text| {
                    let known = it.known_part();
                    let begins = |glob: &String| {
                        let literal = glob.split('*').next().unwrap_or_default();
                        literal.starts_with(known) || known.starts_with(literal)
                    };
                    !it.is_known() && wanted.iter().any(begins)
                };
                match operands.iter().find(|it| could(it)) {
                    Some(unknown) => Err(not_known(&unknown.text)),
                    None => Ok(false.into()),
                }
            })
        },
    ),
    field(
        Type::Invocation,
        "targets",
        Type::Places,
        Structure,
        ["Its operands as paths.", "program.targets.outside"],
        |it, _| {
            let values = values(it);
            on_program(it, |program, named, seen| {
                let operands = program.operands(values).into_iter().skip(named);
                let folder = program.folder.as_deref();
                let places = operands.map(|it| seen.around.place(it, folder));
                Ok(it.part(Part::Places(places.collect())))
            })
        },
    ),
    method(
        Type::Invocation,
        "fed_by",
        SOME,
        (Type::Bool, Structure),
        [
            "Whether the output of such a program reaches it, by command pattern.",
            "program.fed_by([\"curl\", \"wget\"])",
        ],
        |it, args| {
            let (wanted, values) = (list(args)?, values(it));
            let patterns: Vec<_> = wanted.iter().map(|it| CommandPattern::parse(it)).collect();
            let at = recognised(it)?.at;
            on_call(it, |seen| {
                let upstream = seen.call.upstream(at);
                let mut programs = upstream.iter().filter_map(|it| seen.call.programs.get(*it));
                let any = programs.any(|it| patterns.iter().any(|pattern| it.is(pattern, values)));
                Ok(any.into())
            })
        },
    ),
    method(
        Type::Invocation,
        "fed_from",
        SOME,
        (Type::Bool, Structure),
        [
            "Whether it, or what its input comes from, reads a file of these globs.",
            "program.fed_from([\"**/.ssh/**\"])",
        ],
        |it, args| {
            let globs = list(args)?;
            let at = recognised(it)?.at;
            on_call(it, |seen| {
                let upstream = seen.call.upstream(at);
                let near = |it: &&FileUse| {
                    it.does == Use::Reads
                        && it.program.is_some_and(|it| it == at || upstream.contains(&it))
                };
                let places = seen.call.files.iter().filter(near).map(|it| &it.place);
                let mut places = places;
                Ok(places.any(|it| globs.iter().any(|glob| it.matches(glob, &seen.around))).into())
            })
        },
    ),
    method(
        Type::Invocation,
        "expands",
        SOME,
        (Type::Bool, Structure),
        [
            "Whether a variable of the environment of such a name stands in its arguments.",
            "program.expands([\"*_TOKEN\"])",
        ],
        |it, args| {
            let globs = list(args)?;
            on_program(it, |it, _, _| {
                let any = it
                    .args
                    .iter()
                    .flat_map(Text::variables)
                    .any(|name| globs.iter().any(|glob| word_matches(glob, name)));
                Ok(any.into())
            })
        },
    ),
    field(
        Type::Invocation,
        "read",
        Type::Places,
        Structure,
        ["Files that it reads.", "program.read.outside"],
        |it, _| {
            let at = recognised(it)?.at;
            on_call(it, |seen| {
                let own = |it: &&FileUse| it.does == Use::Reads && it.program == Some(at);
                let files = seen.call.files.iter().filter(own);
                Ok(it.part(Part::Places(files.map(|it| it.place.clone()).collect())))
            })
        },
    ),
    field(
        Type::Invocation,
        "input",
        Type::Text,
        Structure,
        [
            "What it reads from its standard input, as far as known.",
            "program.input.matches(\"drop table\")",
        ],
        |it, _| on_program(it, |it, _, _| Ok(it.input.text.clone().unwrap_or_default().into())),
    ),
    field(
        Type::Invocation,
        "said",
        Type::Text,
        Structure,
        [
            "The program with its arguments, and what it reads from its standard input.",
            "program.said.matches(\"drop table\")",
        ],
        |it, _| {
            on_program(it, |it, _, _| {
                let input = it.input.text.clone().unwrap_or_default();
                Ok([line(it), input].join(" ").into())
            })
        },
    ),
    field(
        Type::Invocation,
        "is_fed",
        Type::Bool,
        Structure,
        ["Whether anything is piped into it.", "program.is_fed"],
        |it, _| on_program(it, |it, _, _| Ok(it.input.piped.into())),
    ),
    field(
        Type::Invocation,
        "runs_unknown",
        Type::Bool,
        Structure,
        ["Whether it runs code that cannot be known.", "program.runs_unknown"],
        |it, _| on_program(it, |it, _, _| Ok(it.runs_unknown.into())),
    ),
    field(
        Type::Invocation,
        "called_by_path",
        Type::Bool,
        Structure,
        ["Whether it is called by its path: `./install.sh`.", "program.called_by_path"],
        |it, _| on_program(it, |it, _, _| Ok(it.called.text.contains('/').into())),
    ),
    field(
        Type::Invocation,
        "code",
        Type::Text,
        Structure,
        ["Code that it is given to run, else empty.", "program.code.contains(\"rmtree\")"],
        |it, _| on_program(it, |it, _, _| Ok(it.code.clone().into())),
    ),
    method(
        Type::Invocation,
        "wrapped_by",
        SOME,
        (Type::Bool, Structure),
        ["Whether one of these programs starts it.", "program.wrapped_by([\"sudo\", \"doas\"])"],
        |it, args| {
            let wanted = list(args)?;
            on_program(it, |it, _, _| Ok(it.wrappers.iter().any(|it| wanted.contains(it)).into()))
        },
    ),
    method(
        Type::Places,
        "any",
        SOME,
        (Type::Bool, Structure),
        ["Whether one of them matches one of these globs.", "program.targets.any([\"/etc/**\"])"],
        |it, args| {
            let globs = list(args)?;
            on_places(it, |place, around| {
                place.absolute.as_ref()?;
                Some(globs.iter().any(|glob| place.matches(glob, around)))
            })
        },
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
        |it, _| on_places(it, |place, around| Some(around.is_outside(place.absolute.as_ref()?))),
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
        |it, _| on_places(it, |place, around| Some(around.holds_project(place.absolute.as_ref()?))),
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

fn not_known(what: &str) -> String {
    format!("what `{what}` is cannot be known")
}

/// Options with values, as the vocabulary tells them.
fn values(it: &Object) -> &[ValueOptions] {
    &it.context.lens.lens().value_options
}

fn list(args: &[Dynamic]) -> Result<Vec<String>, String> {
    let value = args.first().ok_or("an argument is missing")?;
    let items =
        value.clone().into_array().map_err(|found| format!("expected a list, found {found}"))?;
    items
        .into_iter()
        .map(|it| it.into_string().map_err(|it| format!("expected text, found {it}")))
        .collect()
}

fn on_call(
    it: &Object,
    ask: impl FnOnce(&Seen) -> Result<Dynamic, String>,
) -> Result<Dynamic, String> {
    let seen = it.context.learned.borrow().call.clone();
    match seen {
        Some(seen) => ask(&seen),
        None => Err("there is no tool call at this event".to_owned()),
    }
}

fn recognised(it: &Object) -> Result<Recognised, String> {
    it.context.learned.borrow().program.ok_or_else(|| "no program was recognised".to_owned())
}

fn on_program(
    it: &Object,
    ask: impl FnOnce(&Invocation, usize, &Seen) -> Result<Dynamic, String>,
) -> Result<Dynamic, String> {
    let Recognised { at, named } = recognised(it)?;
    on_call(it, |seen| match seen.call.programs.get(at) {
        Some(program) => ask(program, named, seen),
        None => Err("no program was recognised".to_owned()),
    })
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

/// Whether the call does one of these with a file of some globs. Ordinary lines are full of paths
/// that are not known: only those count of which the globs could speak.
fn touches(it: &Object, args: &[Dynamic], does: &[Use]) -> Result<Dynamic, String> {
    let globs = list(args)?;
    on_call(it, |seen| {
        let files = seen.call.files.iter().filter(|it| does.contains(&it.does));
        let any = files
            .map(|it| &it.place)
            .any(|place| globs.iter().any(|glob| place.matches(glob, &seen.around)));
        Ok(any.into())
    })
}

/// A program as it is shown.
#[must_use]
pub fn line(program: &Invocation) -> String {
    let called = if program.name.is_empty() { &program.called.text } else { &program.name };
    let args = program.args.iter().map(|it| it.text.as_str());
    std::iter::once(called.as_str()).chain(args).collect::<Vec<_>>().join(" ")
}
