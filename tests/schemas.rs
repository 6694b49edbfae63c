//! The published schemas are those of the tables the loader uses, and the built-in pack fits them.
//! `POLICYD_REGEN=1 cargo test --test schemas` writes them anew.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the real folder of schemas is read and written"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use policyd::cases::{self, names::Known};
use policyd::policy::{builtin, load, shapes};
use policyd::source::schema::json_schema;
use policyd::source::{Source, yaml};
use serde_json::Value;

/// Every schema by the name of its file kind.
fn schemas() -> Vec<(&'static str, Value)> {
    let name = |file: &'static str| file.trim_end_matches(".yaml");
    let files = shapes::FILES.iter();
    let files = files.map(|it| (name(it.file), json_schema(&it.kind, name(it.file))));
    files.chain([(name(cases::shape::FILE.file), cases::shape::schema())]).collect()
}

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source { name: "a.yaml".to_owned(), text: text.to_owned() })
}

/// Where a text breaks a schema.
fn broken(schema: &Value, text: &str) -> Vec<String> {
    let value = yaml::parse(&source(text)).0.map(|it| it.json()).unwrap_or_default();
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(&value).map(|it| format!("{}: {it}", it.instance_path())).collect()
}

#[test]
fn committed_schemas_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let regenerate = std::env::var_os("POLICYD_REGEN").is_some();
    let mut expected = vec![];
    for (name, schema) in schemas() {
        let text = format!("{schema:#}\n");
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

#[test]
fn the_built_in_pack_and_its_cases_fit() {
    let schemas = schemas();
    let schema = |name: &str| &schemas.iter().find(|it| it.0 == name).unwrap().1;
    let policies = builtin::FILES.iter();
    let policies = policies.map(|(file, text)| (file.trim_end_matches(".yaml"), file, text));
    let cases = builtin::CASES.iter().filter(|it| it.0.ends_with(".yaml"));
    let cases = cases.map(|(file, text)| ("cases", file, text));
    for (name, file, text) in policies.chain(cases) {
        assert_eq!(broken(schema(name), text), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn schema_and_reader_refuse_the_same_cases() {
    let pack = builtin::pack();
    let known = Known::of(&load::load(&pack, &pack).policy.unwrap());
    let schema = cases::shape::schema();
    for (text, sound) in [
        ("- {name: x, expect: {decision: none}}", true),
        ("- {name: x, each: [{d: none}], expect: {decision: \"{{d}}\"}}", true),
        ("- {name: x, each: [{d: {decision: none}}], expect: \"{{d}}\"}", true),
        ("- {name: x, expect: {decision: nothing}}", false),
        ("- {name: x, expct: {decision: none}}", false),
        ("- {expect: {decision: none}}", false),
        ("- {name: x, expect: {state: {turns: many}}}", false),
        ("- {name: x, transcript: [{todos: {a: done}}], expect: {decision: none}}", false),
        ("- {name: x, transcript: [{edits: a}], expect: {decision: none}}", false),
        ("- {name: x, given: {now: yesterday}, expect: {decision: none}}", false),
        ("- {name: x, each: x, expect: {decision: none}}", false),
        ("- {name: x, steps: [{after: 5, expect: {decision: none}}]}", false),
        ("- {name: x, steps: [{after: 5m}]}", false),
        ("name: x", false),
    ] {
        let found = broken(&schema, text);
        assert_eq!(found.is_empty(), sound, "{text}: {found:?}");
        let (cases, findings) = cases::read::read(&source(text), &known);
        assert_eq!(findings.is_empty() && !cases.is_empty(), sound, "{text}: {findings:?}");
    }
}
