//! Every published JSON Schema: the files of a pack, its cases, and what the program writes.

use serde_json::Value;

use super::stored;
use crate::cases;
use crate::policy::shapes;
use crate::source::schema::json_schema;

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
    let files = shapes::FILES.iter();
    let files = files.map(|it| (name(it.file), json_schema(&it.kind, name(it.file))));
    files.chain([(name(cases::shape::FILE.file), cases::shape::schema())]).collect()
}
