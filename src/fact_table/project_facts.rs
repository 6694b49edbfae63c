//! Facts about the files of the project on the disk.

use std::rc::Rc;

use super::FactError;
use super::ast::{Expr, ExprKind};
use super::call_facts::on_call;
use super::context::{Context, ContextPart, Object};
use super::dynamic::{text_argument, texts};
use super::params::KEY;
use super::paths::Fact;
use super::place_facts::code_owners;
use super::row::{FactRow, field, method};
pub use super::snapshots::ProjectView;
use super::source::FactSource;
use super::text_facts::DiskFacts;
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
            "Whether the project has a file or directory: a path or a glob from the project directory on, written out. For guards.",
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
    .from(FactSource::ProjectFiles),
    method(
        Subject::Project,
        "text",
        KEY,
        (Subject::FileTexts.as_type(), Structure),
        [
            "The text of a file of the project: a path from the project directory on, written out. For guards.",
            "project.text(\"package.json\").contains(\"\\\"workspaces\\\"\")",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            let text = on_disk(it, |disk| {
                let text = disk.project_texts.get(path.as_str());
                text.cloned().ok_or_else(|| not_written_out("text"))
            })?;
            Ok(it.part(ContextPart::Texts(Rc::from([text]))))
        },
    )
    .from(FactSource::ProjectFiles),
    method(
        Subject::Project,
        "owners",
        KEY,
        (Type::Texts, Structure),
        [
            "The owners of a path of the project by `CODEOWNERS`. For guards.",
            "\"@acme/security\" in project.owners(\"src/auth/key.rs\")",
        ],
        |it, args| {
            let path = text_argument(args, 0)?;
            on_call(it, |seen| Ok(texts(code_owners(it, seen)?.of(&path))))
        },
    )
    .from(FactSource::CodeOwners),
];

/// What an expression asks about the files of the project, with an argument that is written out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProjectQuestion {
    /// Whether the project has a path or a file of a glob.
    Has(String),
    /// The text of a file.
    Text(String),
}

/// Returns what an expression asks about the files of the project.
#[must_use]
pub fn questions(tree: &Expr) -> Vec<ProjectQuestion> {
    let mut found = Vec::new();
    tree.visit(&mut |part| {
        let Some(fact) = part.fact() else { return };
        let owner = fact.owners().find(|it| it.is("project.has") || it.is("project.text"));
        let Some(step) = owner.and_then(Fact::last) else { return };
        if let [Expr { kind: ExprKind::Text(argument), .. }] = step.arguments {
            found.push(match step.name {
                "has" => ProjectQuestion::Has(argument.clone()),
                _ => ProjectQuestion::Text(argument.clone()),
            });
        }
    });
    found
}

fn not_written_out(name: &str) -> FactError {
    format!("the argument of `project.{name}` must be written out, and at most {PROJECT_QUESTIONS_MAX} are read").into()
}

/// Asks what the disk shows at a tool call.
fn on_disk<T>(
    it: &Object,
    ask: impl FnOnce(&DiskFacts) -> Result<T, FactError>,
) -> Result<T, FactError> {
    match &it.view.call {
        _ if it.context().recorded => Err(it.context().miss("which files the project had")),
        Some(seen) => ask(&seen.disk),
        None => Err("only guards read files of the project".into()),
    }
}

/// Whether the session edited a test file, or a run that its output can show had a result.
fn has_run(context: &Context) -> bool {
    let (facts, lens) = (&context.facts, &context.lens);
    let tests = lens.kinds().iter().filter(|it| it.by_output);
    let mut tests = tests.filter_map(|it| facts.commands.by_kind.get(&it.name));
    tests.any(|it| it.last_passed_seq > 0 || it.last_failed_seq > 0)
        || facts.files.iter().any(|it| lens.shows_tests(&it.path))
}
