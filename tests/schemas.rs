//! The published schemas are those of the tables the loader uses, and the built-in pack fits them.
//! `POLICYD_REGEN=1 cargo test --test schemas` writes them anew.
#![expect(clippy::disallowed_methods, reason = "the real folder of schemas is read and written")]

use std::fs;
use std::path::Path;

use policyd::cases;
use policyd::policy::shapes;
use policyd::source::schema::json_schema;

#[test]
fn committed_schemas_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let regenerate = std::env::var_os("POLICYD_REGEN").is_some();
    let mut expected = vec![];
    for shape in shapes::FILES.iter().chain([&cases::shape::FILE]) {
        let name = shape.file.trim_end_matches(".yaml");
        let text = format!("{:#}\n", json_schema(&shape.kind, name));
        let path = folder.join(format!("{name}.schema.json"));
        if regenerate {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "{} is stale: POLICYD_REGEN=1", path.display());
        expected.push(format!("{name}.schema.json"));
    }
    let mut found: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "every schema belongs to a file kind");
}
