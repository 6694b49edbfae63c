//! The JSON Schemas of everything that has one: files of a pack with its cases, and what policyd stores or prints.

use serde_json::Value;

use super::lint::LintReport;
use policyd_cases as cases;
use policyd_lint::baseline::Baseline;
use policyd_policy::{guards, shapes};
use policyd_store::schemas::{self as stored, derived};
use policyd_yaml::schema::json_schema;

/// Returns the name of the schema for a file of a pack.
#[must_use]
pub fn of_file(file: &str) -> &str {
    let file = if guards::FILES.contains(&file) { guards::FILES[0] } else { file };
    file.trim_end_matches(".yaml")
}

/// Returns the schemas by name.
#[must_use]
pub fn of_packs() -> Vec<(&'static str, Value)> {
    let name = |file: &'static str| file.trim_end_matches(".yaml");
    // The sets of guards have the shape of `guards.yaml`.
    let files = shapes::FILES.iter().filter(|it| !guards::FILES[1..].contains(&it.file));
    let files = files.map(|it| (name(it.file), json_schema(&it.kind, name(it.file))));
    files.chain([(name(cases::shape::FILE.file), cases::shape::schema())]).collect()
}

/// Returns the schemas by the names that `policyd schema` takes.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    let mut all = of_packs();
    all.extend(stored::all());
    all.extend([derived::<LintReport<'_>>("lint"), derived::<Baseline>("lint-baseline")]);
    all
}
