//! Facts about the files of the project on the disk.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::FactError;
use super::ast::{Expr, ExprKind};
use super::context::{Context, ContextPart, Object};
use super::dynamic::{text_argument, texts};
use super::fact_source::FactSource;
use super::params::KEY;
use super::paths::Fact;
use super::place_facts::code_owners;
use super::row::{FactRow, field, method};
pub use super::snapshots::ProjectView;
use super::text_facts::{DiskFacts, ReadText};
use super::types::{Evidence::Structure, Subject, Type};
use policyd_base::limits::PROJECT_QUESTIONS_MAX;

/// Rows of `project`.
pub(super) const ROWS: &[FactRow] = &[
    field(
        Subject::Project,
        "has_tests",
        Type::Bool,
        Structure,
        [
            "Whether the project has tests: test files, a configuration of a test runner, or a test run with a result. True where policyd cannot see its files.",
            "!project.has_tests",
        ],
        |it, _| {
            let context = it.context();
            let known = context.project_view.as_ref().map(|it| it.has_tests);
            let shown = has_run(context) || known.unwrap_or(!context.recorded);
            match shown || known.is_some() {
                true => Ok(shown.into()),
                false => Err(context.miss("which files the project had")),
            }
        },
    )
    .from(FactSource::Project),
    field(
        Subject::Project,
        "untested_packages",
        Type::Texts,
        Structure,
        [
            "Directories of packages with edited code that no passed test run after the edit covers; empty in a project of one package.",
            "project.untested_packages.len() == 0",
        ],
        |it, _| match &it.context().project_view {
            Some(view) => Ok(texts(view.untested_packages.iter().cloned())),
            None if it.context().recorded => {
                Err(it.context().miss("which packages the project had"))
            }
            None => Ok(texts(std::iter::empty::<String>())),
        },
    )
    .from(FactSource::Project),
    method(
        Subject::Project,
        "has",
        KEY,
        (Type::Bool, Structure),
        [
            "Whether the project has a file or directory: a path or a glob from the project directory on, written out.",
            "project.has(\"pnpm-lock.yaml\")",
        ],
        |it, args| {
            let glob = text_argument(args, 0)?;
            on_disk(it, |disk| match disk.has.get(glob.as_str()) {
                Some(Some(found)) => Ok((*found).into()),
                Some(None) => Err(format!("`{glob}` cannot be searched: there are too many files").into()),
                None => Err(not_written_out("has")),
            })
        },
    )
    .written_out()
    .from(FactSource::ProjectFiles),
    method(
        Subject::Project,
        "text",
        KEY,
        (Subject::FileTexts.as_type(), Structure),
        [
            "The text of a file of the project: a path from the project directory on, written out.",
            "project.text(\"package.json\").contains(\"\\\"workspaces\\\"\")",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            let text = on_disk(it, |disk| project_text(disk, &path, "text"))?;
            Ok(it.part(ContextPart::Texts(Rc::from([text]))))
        },
    )
    .written_out()
    .from(FactSource::ProjectFiles),
    method(
        Subject::Project,
        "json",
        KEY,
        (Subject::JsonFile.as_type(), Structure),
        [
            "A JSON file of the project: a path from the project directory on, written out. One that does not exist has no values.",
            "project.json(\"package.json\").has(\"scripts.test\")",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            let text = on_disk(it, |disk| project_text(disk, &path, "json"))??;
            let value = match (text.text.trim(), text.is_whole) {
                ("", true) => Ok(Value::Null),
                (json, true) => serde_json::from_str(json).map_err(|error| error.to_string()),
                (_, false) => Err("it is too long".to_owned()),
            };
            let value = value.map_err(|why| format!("`{path}` cannot be read as JSON: {why}"))?;
            Ok(it.part(ContextPart::JsonFile(Rc::new(value))))
        },
    )
    .written_out()
    .from(FactSource::ProjectFiles),
    method(
        Subject::Project,
        "owners",
        KEY,
        (Type::Texts, Structure),
        [
            "The owners of a path of the project by `CODEOWNERS`.",
            "\"@acme/security\" in project.owners(\"src/auth/key.rs\")",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            on_disk(it, |disk| Ok(texts(code_owners(it, disk)?.of(&path))))
        },
    )
    .from(FactSource::CodeOwners),
];

/// What an expression asks about the files of the project, with an argument that is written out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProjectQuestion {
    /// Whether the project has a path or a file of a glob.
    Has(String),
    /// The text of a file.
    Text(String),
    /// The owners of files.
    Owners,
}

/// Returns what an expression asks about the files of the project.
#[must_use]
pub fn questions(tree: &Expr) -> Vec<ProjectQuestion> {
    let mut found = Vec::new();
    tree.visit(&mut |part| {
        for owner in part.fact().into_iter().flat_map(Fact::owners) {
            if owner.is("project.owners") {
                found.push(ProjectQuestion::Owners);
            }
            let names = ["project.has", "project.text", "project.json"];
            let step = owner.last().filter(|_| owner.is_one_of(&names));
            let Some(step) = step else { continue };
            if let [Expr { kind: ExprKind::Text(argument), .. }] = step.arguments {
                found.push(match step.name {
                    "has" => ProjectQuestion::Has(argument.clone()),
                    _ => ProjectQuestion::Text(argument.clone()),
                });
            }
        }
    });
    found
}

fn not_written_out(name: &str) -> FactError {
    format!("the argument of `project.{name}` must be written out, and at most {PROJECT_QUESTIONS_MAX} are read").into()
}

fn project_text(disk: &DiskFacts, path: &str, name: &str) -> Result<ReadText, FactError> {
    disk.project_texts.get(path).cloned().ok_or_else(|| not_written_out(name))
}

/// Asks what the disk shows of the project.
fn on_disk<T>(
    it: &Object,
    ask: impl FnOnce(&DiskFacts) -> Result<T, FactError>,
) -> Result<T, FactError> {
    if it.context().recorded {
        return Err(it.context().miss("which files the project had"));
    }
    ask(it.view.call.as_ref().map_or(&it.view.disk, |seen| &seen.disk))
}

/// Whether the session edited a test file, or a run that its output can show had a result.
fn has_run(context: &Context) -> bool {
    let (facts, lens) = (&context.facts, &context.lens);
    let tests = lens.kinds().iter().filter(|it| it.by_output);
    let mut tests = tests.filter_map(|it| facts.commands.by_kind.get(&it.name));
    tests.any(|it| it.last_passed_seq > 0 || it.last_failed_seq > 0)
        || facts.files.iter().any(|it| lens.shows_tests(&it.path))
}
