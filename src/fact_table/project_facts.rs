//! Facts about the files of the project on the disk.

use super::context::Context;
use super::dynamic::texts;
use super::row::{FactRow, field};
pub use super::snapshots::ProjectView;
use super::types::{Evidence::Structure, Subject, Type};

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
    ),
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
    ),
];

/// Whether the session edited a test file, or a run that its output can show had a result.
fn has_run(context: &Context) -> bool {
    let (facts, lens) = (&context.facts, &context.lens);
    let tests = lens.kinds().iter().filter(|it| it.by_output);
    let mut tests = tests.filter_map(|it| facts.commands.by_kind.get(&it.name));
    tests.any(|it| it.last_passed_seq > 0 || it.last_failed_seq > 0)
        || facts.files.iter().any(|it| lens.shows_tests(&it.path))
}
