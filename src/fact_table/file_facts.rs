//! Facts about what the agent leaves behind: edited files, findings in them, todos.

use std::rc::Rc;

use rhai::Dynamic;

use super::context::{ContextPart, Object};
use super::diagnostic_lines;
use super::dynamic::{count, text_argument, texts};
use super::invariant::{Invariant, Is};
use super::params::{KEY, PATH};
use super::row::{FactRow, field, method, number};
use super::types::{Evidence::Structure, Evidence::Words, PackName, Subject, Type, Unit};
use policyd_facts::glob::PathGlob;
use policyd_facts::{EditedFile, Finding};

/// Rows of `files`, findings and `todos`.
pub(super) const ROWS: &[FactRow] = &[
    number(
        Subject::Files,
        "count",
        Unit::Count,
        Structure,
        ["How many files.", "files.kind(\"code\").count > 0"],
        |it, _| Ok(count(files(it).count())),
    )
    .always(&[
        Invariant::AtMost("edits"),
        Invariant::Either(Is::Positive, "last_at", Is::Zero),
        Invariant::Either(Is::Zero, "last_at", Is::Positive),
        Invariant::AtMostOfWhole("count"),
    ]),
    number(
        Subject::Files,
        "edits",
        Unit::Count,
        Structure,
        ["How many edits.", "files.edits > 20"],
        |it, _| Ok(count(files(it).map(|it| it.edits).sum::<u64>())),
    )
    .always(&[Invariant::AtMostOfWhole("edits")]),
    number(
        Subject::Files,
        "last_at",
        Unit::Position,
        Structure,
        ["Position of the last edit, 0 when none.", "files.kind(\"code\").last_at == 0"],
        |it, _| Ok(count(files(it).map(|it| it.last_seq).max().unwrap_or(0))),
    )
    .always(&[Invariant::AtMostOfWhole("last_at")]),
    number(
        Subject::Files,
        "undone_at",
        Unit::Position,
        Structure,
        [
            "Position of the last edit of a file whose edits changed nothing together, 0 when none.",
            "commands.kind(\"test\").last.at > files.undone_at",
        ],
        |it, _| Ok(count(it.context().facts.undone_seq)),
    ),
    field(
        Subject::Files,
        "paths",
        Type::Texts,
        Structure,
        ["Their paths, as the client names them: from the root on.", "files.paths.len() > 3"],
        |it, _| Ok(texts(files(it).map(|it| it.path.clone()))),
    ),
    field(
        Subject::Files,
        "last_path",
        Type::Text,
        Structure,
        ["Path of the file edited last, else empty.", "files.last_path.ends_with(\".md\")"],
        |it, _| {
            let last = files(it).max_by_key(|it| it.last_seq);
            Ok(last.map(|it| it.path.clone()).unwrap_or_default().into())
        },
    ),
    method(
        Subject::Files,
        "kind",
        &[(Type::Text, PackName::FileKind.as_domain())],
        (Subject::Files.as_type(), Structure),
        ["Those of a kind.", "files.kind(\"code\").count > 0"],
        |it, args| {
            let kind = text_argument(args, 0)?;
            let is_one = |file: &EditedFile| file.kinds.contains(kind.as_str());
            if !matches!(it.part, ContextPart::Files(None)) {
                return Ok(some_files(it, is_one));
            }
            let mut known = it.context().files_by_kind.borrow_mut();
            let places = known.entry(kind.to_string()).or_insert_with(|| places(it, is_one));
            Ok(it.part(ContextPart::Files(Some(Rc::clone(places)))))
        },
    ),
    method(
        Subject::Files,
        "matching",
        PATH,
        (Subject::Files.as_type(), Structure),
        [
            "Those whose path matches a glob; `./` begins at the project directory.",
            "files.matching(\"**/*.md\").count > 0",
        ],
        |it, args| {
            let glob = text_argument(args, 0)?;
            let Some(below) = glob.strip_prefix("./") else {
                let glob = PathGlob::new(&glob);
                return Ok(some_files(it, |file| glob.matches(&file.path)));
            };
            // It begins at the project directory.
            let (glob, project) = (PathGlob::new(&format!("/{below}")), &it.context().project);
            let is_one = |file: &EditedFile| {
                let path = project.join(&file.path);
                let below = path.strip_prefix(project).ok().and_then(|it| it.to_str());
                below.is_some_and(|it| glob.matches(&format!("/{it}")))
            };
            Ok(some_files(it, is_one))
        },
    ),
    method(
        Subject::Files,
        "named_in",
        KEY,
        (Subject::Files.as_type(), Structure),
        [
            "Those whose base name occurs in a text.",
            "files.named_in(commands.last(\"eslint\").output).count > 0",
        ],
        |it, args| {
            let text = text_argument(args, 0)?;
            Ok(some_files(it, |file| names_file(&text, base_name(&file.path))))
        },
    ),
    method(
        Subject::Files,
        "run_by",
        &[(Type::Text, PackName::CommandKind.as_domain())],
        (Subject::Files.as_type(), Structure),
        [
            "Those that the last passed command of a kind names, with or without ending, if it ran after their last edit.",
            "files.kind(\"code\").run_by(\"test\").count > 0",
        ],
        |it, args| {
            let kind = text_argument(args, 0)?;
            let kind = it.context().facts.commands.by_kind.get(kind.as_str());
            let (text, at) =
                kind.map_or(("", 0), |it| (it.last_passed_text.as_str(), it.last_passed_seq));
            Ok(some_files(it, |file| file.last_seq <= at && mentions(text, &file.path)))
        },
    ),
    method(
        Subject::Files,
        "blamed_by",
        &[(Type::Text, PackName::CommandKind.as_domain())],
        (Subject::Files.as_type(), Structure),
        [
            "Those that the failures of the last failed command of a kind name, with or without ending.",
            "files.kind(\"code\").blamed_by(\"test\").count > 0",
        ],
        |it, args| {
            let kind = text_argument(args, 0)?;
            let kind = it.context().facts.commands.by_kind.get(kind.as_str());
            let failures = kind.map(|it| it.failures.join("\n")).unwrap_or_default();
            Ok(some_files(it, |file| mentions(&failures, &file.path)))
        },
    ),
    method(
        Subject::Files,
        "reported_in",
        KEY,
        (Type::Texts, Structure),
        [
            "What a linter or a compiler prints about them: the first lines of a text that name one of them, each with the message beside it. Errors come before warnings.",
            "files.reported_in(commands.last(\"eslint\").output).len() > 0",
        ],
        |it, args| {
            let text = text_argument(args, 0)?;
            let names: Vec<&str> = files(it).map(|file| base_name(&file.path)).collect();
            let is_named = |line: &str| names.iter().any(|name| names_file(line, name));
            Ok(texts(diagnostic_lines::reports(&text, is_named)))
        },
    ),
    field(
        Subject::Files,
        "at_root",
        Subject::Files.as_type(),
        Structure,
        ["Those directly in the project's folder.", "files.at_root.written.count == 0"],
        |it, _| {
            let root = it.context().project.to_str();
            Ok(some_files(it, |file| is_at_root(root, &file.path)))
        },
    ),
    field(
        Subject::Files,
        "written",
        Subject::Files.as_type(),
        Structure,
        ["Those made or replaced as a whole that still exist.", "files.written.count > 0"],
        |it, _| Ok(some_files(it, |file| file.written > 0)),
    ),
    method(
        Subject::Files,
        "findings",
        &[(Type::Text, PackName::Content.as_domain())],
        (Subject::Findings.as_type(), Structure),
        ["What a content pattern found and still stands.", "files.findings(\"stub\").count == 0"],
        |it, args| {
            let pattern = text_argument(args, 0)?;
            let all = it.context().facts.findings.iter().enumerate();
            let found = all.filter(|(_, it)| it.pattern == pattern).map(|(place, _)| place);
            Ok(it.part(ContextPart::Findings(found.collect())))
        },
    ),
    number(
        Subject::Findings,
        "count",
        Unit::Count,
        Structure,
        ["How many.", "files.findings(\"stub\").count == 0"],
        |it, _| Ok(count(findings(it).count())),
    ),
    field(
        Subject::Findings,
        "list",
        Type::Texts,
        Structure,
        ["Each as `path: line`.", "files.findings(\"stub\").list.len() == 0"],
        |it, _| Ok(texts(findings(it).map(|it| format!("{}: {}", it.path, it.excerpt)))),
    ),
    field(
        Subject::Todos,
        "seen",
        Type::Bool,
        Structure,
        ["Whether a todo tool was used.", "todos.seen"],
        |it, _| Ok(it.context().facts.todos.seen.into()),
    ),
    number(
        Subject::Todos,
        "total",
        Unit::Count,
        Structure,
        ["Todos.", "todos.total > 0"],
        |it, _| Ok(count(it.context().facts.todos.items.len())),
    ),
    number(
        Subject::Todos,
        "open",
        Unit::Count,
        Structure,
        ["Todos that are not completed.", "todos.open == 0"],
        |it, _| Ok(count(open_todos(it).len())),
    )
    .always(&[Invariant::AtMost("total")]),
    number(
        Subject::Todos,
        "last_at",
        Unit::Position,
        Structure,
        ["Position of the last change of the list, 0 when none.", "todos.last_at > files.last_at"],
        |it, _| Ok(count(it.context().facts.todos.last_seq)),
    ),
    field(
        Subject::Todos,
        "open_list",
        Type::Texts,
        Structure,
        ["Their texts with their status.", "todos.open_list.len() == 0"],
        |it, _| Ok(texts(open_todos(it))),
    ),
    field(
        Subject::Todos,
        "words",
        Type::Text,
        Words,
        ["All todo texts, joined by line breaks.", "todos.words.contains(\"deploy\")"],
        |it, _| {
            let items = it.context().facts.todos.items.iter();
            Ok(items.map(|it| it.content.as_str()).collect::<Vec<_>>().join("\n").into())
        },
    ),
];

fn files(it: &Object) -> impl Iterator<Item = &EditedFile> {
    numbered_files(it).map(|(_, file)| file)
}

/// The files of a handle, each with its place among all.
fn numbered_files(it: &Object) -> impl Iterator<Item = (usize, &EditedFile)> {
    let files = it.context().facts.files.as_slice();
    let (some, all): (&[usize], usize) = if let ContextPart::Files(Some(places)) = &it.part {
        (places, 0)
    } else {
        (&[], files.len())
    };
    let places = (0..all).chain(some.iter().copied());
    places.filter_map(move |place| Some((place, files.get(place)?)))
}

fn some_files(it: &Object, keep: impl Fn(&EditedFile) -> bool) -> Dynamic {
    it.part(ContextPart::Files(Some(places(it, keep))))
}

/// The places of those files of a handle that are kept.
fn places(it: &Object, keep: impl Fn(&EditedFile) -> bool) -> Rc<[usize]> {
    numbered_files(it).filter(|(_, file)| keep(file)).map(|(place, _)| place).collect()
}

/// Whether the name of a file occurs in a text, with or without its ending.
fn mentions(text: &str, path: &str) -> bool {
    let name = base_name(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    names_file(text, name) || (stem.len() >= STEM_MIN && names_file(text, stem))
}

/// Shorter names without an ending occur in texts by chance.
const STEM_MIN: usize = 4;

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns whether a text contains a file name that is not a part of a longer name.
fn names_file(text: &str, name: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    !name.is_empty()
        && text.match_indices(name).any(|(at, found)| {
            let before = text.get(..at).and_then(|it| it.chars().next_back());
            let after = text.get(at.saturating_add(found.len())..).and_then(|it| it.chars().next());
            !part(before) && !part(after)
        })
}

/// A path without a folder of its own lies at the root, whatever the root is.
fn is_at_root(root: Option<&str>, path: &str) -> bool {
    let folder = path.strip_suffix(base_name(path)).unwrap_or_default();
    let folder = folder.trim_end_matches('/');
    matches!(folder, "" | ".") || root == Some(folder)
}

fn findings(it: &Object) -> impl Iterator<Item = &Finding> {
    let places: &[usize] = if let ContextPart::Findings(places) = &it.part { places } else { &[] };
    places.iter().filter_map(|place| it.context().facts.findings.get(*place))
}

fn open_todos(it: &Object) -> Vec<String> {
    let items = it.context().facts.todos.items.iter().filter(|it| {
        !matches!(it.status.as_str(), "completed" | "cancelled" | "canceled" | "deleted")
    });
    items.map(|it| format!("[{}] {}", it.status, it.content)).collect()
}
