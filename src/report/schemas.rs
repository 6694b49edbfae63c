//! JSON Schemas of the files that users write: those of a pack, and its cases.

use serde_json::Value;

use crate::cases;
use crate::policy::{guards, shapes};
use crate::source::schema::json_schema;

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
