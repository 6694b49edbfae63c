//! Facts about the tool call that is about to happen, `action`: the programs that it would start, and the files that it
//! would touch. Does not contain: facts about one program (`program_facts`), facts about paths (`place_facts`).
//!
//! INVARIANT: what cannot be known is neither true nor false. A question that it decides fails, and
//! `on_error` of the guard answers.

use policyd_yaml::rows::Rows;
use rhai::Dynamic;

use super::FactError;
use super::context::{ContextPart, Object};
use super::dynamic::{text_argument, texts};
use super::events;
use super::fact_source::FactSource;
use super::invariant::Invariant;
use super::params::{COMMAND, PATHS, WORDS};
use super::place_facts::{globs, of_changed};
use super::row::{FactRow, field, method};
pub use super::snapshots::CallFacts;
use super::text_list::list;
use super::types::{Evidence::Structure, PackName, Subject, Type};
use policyd_facts::call::{Access, Call, CallEffects, FileAccess, Invocation};
use policyd_facts::glob::word_matches;
use policyd_facts::lens::ValueOptions;
use policyd_facts::pattern::CommandPattern;
use policyd_yaml::secrets;

const READS: &[Access] = &[Access::Read];
const WRITES: &[Access] = &[Access::Write];
const DELETES: &[Access] = &[Access::Delete, Access::Move];
const CHANGES: &[Access] = &[Access::Write, Access::Delete, Access::Move];
const TOUCHES_ANY: &[Access] = &[Access::Read, Access::Write, Access::Delete, Access::Move];

/// Rows of `action`.
pub(super) const ROWS: &[FactRow] = &[
    field(
            Subject::Call,
            "tool",
            Type::Text,
            Structure,
            ["Name of the tool.", "action.tool == \"Bash\""],
            |it, _| on_call(it, |seen| Ok(seen.call.tool.clone().into())),
        ).of_ids(PackName::Tool),
    field(
        Subject::Call,
        "command",
        Type::Text,
        Structure,
        ["The command line as it was written, else empty.", "action.command.contains(\"prod\")"],
        |it, _| on_call(it, |seen| Ok(seen.call.command.clone().into())),
    ),
    field(
        Subject::Call,
        "understood",
        Type::Bool,
        Structure,
        ["Whether all of the command line could be read.", "action.understood"],
        |it, _| on_call(it, |seen| Ok(seen.call.is_understood().into())),
    ),
    field(
        Subject::Call,
        "not_analyzed",
        Type::Texts,
        Structure,
        [
            "Why parts of it were not analyzed, such as a limit. In a guard that looks into files, of the file.",
            "action.not_analyzed.len() > 0",
        ],
        |it, _| on_call(it, |seen| Ok(texts(seen.call.unread.iter().cloned()))),
    ),
    field(
            Subject::Call,
            "endless",
            Type::Bool,
            Structure,
            [
                "Whether a function of it calls itself, or a loop starts jobs, without end.",
                "!action.endless",
            ],
            |it, _| on_call(it, |seen| Ok(seen.call.endless.into())),
        ).effect(CallEffects::ENDLESS),
    field(
        Subject::Call,
        "programs",
        Type::Texts,
        Structure,
        ["Names of the programs that it would start.", "\"docker\" in action.programs"],
        |it, _| on_call(it, |seen| Ok(texts(seen.call.programs.iter().map(|it| it.name.clone())))),
    ),
    field(
        Subject::Call,
        "effects",
        Type::Texts,
        Structure,
        [
            "What it does to files and variables and which files it runs, as far as known, the gravest first: `deletes /x (home)`. The place is `project`, `temporary`, `home`, `elsewhere`, or `unknown place`.",
            "action.effects.len() > 0",
        ],
        |it, _| {
            on_call(it, |seen| {
                let effects = seen.call.effect_list(&seen.around);
                Ok(texts(effects.iter().map(ToString::to_string)))
            })
        },
    ),
    field(
        Subject::Call,
        "address",
        Type::Text,
        Structure,
        [
            "The address that a tool fetches, else empty.",
            "action.address.starts_with(\"https://docs.rs/\")",
        ],
        |it, _| on_call(it, |seen| Ok(seen.call.address.clone().into())),
    ),
    method(
        Subject::Call,
        "runs",
        COMMAND,
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
            Subject::Call,
            "sets",
            WORDS,
            (Type::Bool, Structure),
            [
                "Whether it sets one of these variables for a program.",
                "action.sets([\"LD_PRELOAD\"])",
            ],
            |it, args| {
                let names = list(args)?;
                on_call(it, |seen| {
                    let mut set = seen.call.variables.keys();
                    Ok(set.any(|it| names.texts().iter().any(|name| word_matches(name, it))).into())
                })
            },
        ).effect(CallEffects::VARIABLE),
    method(
                    Subject::Call,
                    "reads",
                    PATHS,
                    (Type::Bool, Structure),
                    ["Whether it reads a file of these globs.", "action.reads([\".env\"])"],
                    |it, args| touches(it, args, READS),
                ).always(&[Invariant::Implies("touches")]).from(FactSource::CallPaths).effect(CallEffects::READ),
    method(
                    Subject::Call,
                    "writes",
                    PATHS,
                    (Type::Bool, Structure),
                    ["Whether it writes a file of these globs.", "action.writes([\"Cargo.lock\"])"],
                    |it, args| touches(it, args, WRITES),
                ).always(&[Invariant::Implies("changes"), Invariant::Implies("touches")]).from(FactSource::CallPaths).effect(CallEffects::CHANGE),
    method(
                    Subject::Call,
                    "deletes",
                    PATHS,
                    (Type::Bool, Structure),
                    [
                        "Whether it deletes a file of these globs, or the folder they lie in.",
                        "action.deletes([\"**/tests/**\"])",
                    ],
                    |it, args| touches(it, args, DELETES),
                ).always(&[Invariant::Implies("changes"), Invariant::Implies("touches")]).from(FactSource::CallPaths).effect(CallEffects::CHANGE),
    method(
                    Subject::Call,
                    "changes",
                    PATHS,
                    (Type::Bool, Structure),
                    [
                        "Whether it writes or deletes a file of these globs.",
                        "action.changes([\"src/gen/**\"])",
                    ],
                    |it, args| touches(it, args, CHANGES),
                ).always(&[Invariant::Implies("touches")]).from(FactSource::CallPaths).effect(CallEffects::CHANGE),
    method(
                Subject::Call,
                "touches",
                PATHS,
                (Type::Bool, Structure),
                [
                    "Whether it reads, writes or deletes a file of these globs.",
                    "action.touches([\"*.pem\"])",
                ],
                |it, args| touches(it, args, TOUCHES_ANY),
            ).from(FactSource::CallPaths).effect(CallEffects::READ.union(CallEffects::CHANGE)),
    method(
                Subject::Call,
                "accessed_by",
                PATHS,
                (Type::Text, Structure),
                [
                    "The programs that read, write or delete a file of these globs, each with its arguments on a line, once for each access. An access that no program makes is an empty line.",
                    "action.accessed_by([\"*.pem\"]).matches(\"^ssh-keygen [^\\n]*$\")",
                ],
                accessed_by,
            ).from(FactSource::CallPaths).effect(CallEffects::READ.union(CallEffects::CHANGE)),
    method(
                Subject::Call,
                "overwrites",
                PATHS,
                (Type::Bool, Structure),
                [
                    "Whether it writes a directory tree that may contain a file of these globs.",
                    "action.overwrites([\"~/.config/app/**\"])",
                ],
                |it, args| {
                    let globs = globs(it, args)?;
                    on_call(it, |seen| Ok(seen.call.overwrites(&globs, &seen.around).into()))
                },
            ).from(FactSource::CallPaths).effect(CallEffects::TREE),
    method(
                Subject::Call,
                "mounts",
                PATHS,
                (Type::Bool, Structure),
                [
                    "Whether a container that it starts sees a file of these globs, or a directory that may contain one.",
                    "action.mounts([\"~/.aws/credentials\"])",
                ],
                |it, args| {
                    let globs = globs(it, args)?;
                    on_call(it, |seen| {
                        let mut mounts = seen.call.mounts.iter();
                        Ok(mounts.any(|it| globs.may_lie_below(it, &seen.around)).into())
                    })
                },
            ).from(FactSource::CallPaths).effect(CallEffects::TREE),
    field(
        Subject::Call,
        "strings",
        Type::Text,
        Structure,
        [
            "Every text and key in the input of a tool that no list names and that does not only read, one a line.",
            "action.strings.contains(\"prod\")",
        ],
        |it, _| on_call(it, |seen| Ok(seen.call.strings.join("\n").into())),
    ),
    field(
        Subject::Call,
        "tool_effects",
        Type::Texts,
        Structure,
        [
            "What a tool that no list names does to something that is not a local file, such as a service, by its name, its input, and `tool_effects` of the vocabulary: `deletes`.",
            "action.tool_effects.len() > 0",
        ],
        |it, _| {
            on_call(it, |seen| {
                let effects = seen.call.tool_effects.iter();
                Ok(texts(effects.cloned()))
            })
        },
    ),
    field(
            Subject::Call,
            "read",
            Subject::Places.as_type(),
            Structure,
            ["Files that it reads.", "action.read.outside"],
            |it, _| {
                on_call(it, |seen| {
                    let files = seen.call.files.iter().filter(|it| it.does == Access::Read);
                    Ok(it.part(ContextPart::Places(files.map(|it| it.place.clone()).collect())))
                })
            },
        ).from(FactSource::CallPaths),
    field(
            Subject::Call,
            "changed",
            Subject::Places.as_type(),
            Structure,
            ["Files that it writes or deletes.", "action.changed.outside"],
            |it, _| {
                on_call(it, |seen| {
                    let files = seen.call.files.iter().filter(|it| it.does != Access::Read);
                    Ok(it.part(ContextPart::Places(files.map(|it| it.place.clone()).collect())))
                })
            },
        ).from(FactSource::CallPaths),
    field(
                Subject::Call,
                "changes_transcript",
                Type::Bool,
                Structure,
                [
                    "Whether it writes or deletes the file in which the client records this session.",
                    "!action.changes_transcript",
                ],
                |it, _| {
                    on_call(it, |seen| {
                        let mut files = seen.call.files.iter().filter(|it| it.does != Access::Read);
                        Ok(files.any(|it| seen.around.is_transcript(&it.place)).into())
                    })
                },
            ).from(FactSource::CallPaths).effect(CallEffects::CHANGE),
    field(
            Subject::Call,
            "written",
            Type::Text,
            Structure,
            ["Text that it would write into files.", "action.written.contains(\"@ts-ignore\")"],
            |it, _| on_call(it, |seen| Ok(seen.call.written.join("\n").into())),
        ).from(FactSource::CallPaths),
    field(
        Subject::Call,
        "before",
        Subject::FileTexts.as_type(),
        Structure,
        [
            "Texts of the files that it changes, as they are: `action.changed.before`.",
            "action.before.contains(\"DO NOT EDIT\")",
        ],
        |it, _| of_changed(it, "before"),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
        Subject::Call,
        "after",
        Subject::FileTexts.as_type(),
        Structure,
        [
            "Texts of the files that it changes and does not delete, as they will be: `action.changed.after`.",
            "action.before.lines > 1000 && action.after.lines < 100",
        ],
        |it, _| of_changed(it, "after"),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
        Subject::Call,
        "added_lines",
        Type::Texts,
        Structure,
        [
            "Lines that it adds to files: `action.changed.added_lines`.",
            "action.added_lines.join(\"\\n\").matches(\"TODO\")",
        ],
        |it, _| of_changed(it, "added_lines"),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
        Subject::Call,
        "removed_lines",
        Type::Texts,
        Structure,
        [
            "Lines that it removes from files: `action.changed.removed_lines`.",
            "action.removed_lines.len() > 50",
        ],
        |it, _| of_changed(it, "removed_lines"),
    )
    .at(&events::CALLS_AHEAD)
    .from(FactSource::ChangedTexts),
    field(
                Subject::Call,
                "secrets",
                Type::Texts,
                Structure,
                [
                    "Kinds of secrets in its command line, in what it writes, in a prompt.",
                    "action.secrets.len() == 0",
                ],
                |it, _| {
                    on_call(it, |seen| {
                        let parts = searched_for_secrets(&seen.call);
                        Ok(texts(parts.flat_map(|it| secrets::kinds(it)).collect::<Vec<_>>()))
                    })
                },
            ).at(&events::CALLS_AND_PROMPTS).of_ids(PackName::Secret),
    field(
                Subject::Call,
                "issued_secrets",
                Type::Texts,
                Structure,
                [
                    "Kinds of secrets that their format alone tells, in the same texts as `action.secrets`.",
                    "action.issued_secrets.len() == 0",
                ],
                |it, _| {
                    on_call(it, |seen| {
                        let parts = searched_for_secrets(&seen.call);
                        let mut kinds: Vec<&str> =
                            parts.flat_map(|it| secrets::issued_kinds(it)).collect();
                        kinds.sort_unstable();
                        kinds.dedup();
                        Ok(texts(kinds))
                    })
                },
            ).at(&events::CALLS_AND_PROMPTS).of_ids(PackName::IssuedSecret),
];

/// The texts of a call that are searched for secrets.
fn searched_for_secrets(call: &Call) -> impl Iterator<Item = &String> {
    call.written.iter().chain([&call.command, &call.prompt, &call.address])
}

/// Options with values, as the vocabulary tells them.
pub(super) fn values(it: &Object) -> &Rows<ValueOptions> {
    &it.context().lens.lens().value_options
}

pub(super) fn on_call(
    it: &Object,
    ask: impl FnOnce(&CallFacts) -> Result<Dynamic, FactError>,
) -> Result<Dynamic, FactError> {
    let seen = it.view.call.clone();
    match seen {
        Some(seen) => ask(&seen),
        None => Err("this event has no tool call".into()),
    }
}

/// Whether the call does one of these with a file of some globs. Ordinary lines are full of paths
/// that are not known: only those count of which the globs could speak.
fn accessed_by(it: &Object, args: &[Dynamic]) -> Result<Dynamic, FactError> {
    let globs = globs(it, args)?;
    on_call(it, |seen| {
        let files = seen.call.files.iter().filter(|it| globs.fit(&it.place, &seen.around));
        let program = |it: &FileAccess| it.program.and_then(|it| seen.call.programs.get(it));
        let lines = files.map(|it| program(it).map(Invocation::line).unwrap_or_default());
        Ok(lines.collect::<Vec<_>>().join("\n").into())
    })
}

fn touches(it: &Object, args: &[Dynamic], does: &[Access]) -> Result<Dynamic, FactError> {
    let globs = globs(it, args)?;
    on_call(it, |seen| {
        let files = seen.call.files.iter().filter(|it| does.contains(&it.does));
        let any = files.map(|it| &it.place).any(|place| globs.fit(place, &seen.around));
        Ok(any.into())
    })
}
