//! Every published JSON Schema: the files of a pack, its cases, and what the program writes.

use serde_json::Value;

use super::stored;
use crate::cases;
use crate::policy::{guards, shapes};
use crate::source::schema::{Writer, json_schema};

/// The schema of a file of a pack.
#[must_use]
pub fn of_file(file: &str) -> &str {
    let file = if guards::FILES.contains(&file) { guards::FILES[0] } else { file };
    file.trim_end_matches(".yaml")
}

/// All schemas by the name of what they describe.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    let mut all = of_packs();
    all.extend(stored::SHAPES.iter().map(|(name, kind)| (*name, stored::schema(kind, name))));
    all
}

/// Those of the files that people write.
#[must_use]
pub fn of_packs() -> Vec<(&'static str, Value)> {
    let name = |file: &'static str| file.trim_end_matches(".yaml");
    // The sets of guards have the form of `guards.yaml`.
    let files = shapes::FILES.iter().filter(|it| !guards::FILES[1..].contains(&it.file));
    let files =
        files.map(|it| (name(it.file), json_schema(&it.kind, name(it.file), Writer::Person)));
    files.chain([(name(cases::shape::FILE.file), cases::shape::schema())]).collect()
}
