//! The limits of the analysis of command lines: each has a row in a test that puts a dangerous command behind it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

use super::readme::root;

const TABLE: &str = "tests/engine/guards/limits.rs";

/// Limits without a row, each with the reason.
const REASONS: &[(&str, &str)] = &[
    ("files::BUNDLE_MAX", "an option in a longer bundle is not one for a dry run"),
    ("files::SOURCES_MAX", "a copy of more files counts as one of unknown files"),
    ("git_alias::PARENTS_MAX", "a directory as deep is not in a checkout of a user"),
    ("limits::COMMAND_PROGRAMS_MAX", "limits what is read of commands that ran already"),
    ("limits::GLOB_ALTERNATIVES_MAX", "limits globs of policies, not of calls"),
    ("own_program::LEVELS_MAX", "other rules protect the directories above"),
    ("paths::NAME_BYTES_MAX", "no file system accepts a longer name"),
    ("paths::PATH_BYTES_MAX", "no system accepts a longer path"),
    ("shape::PATH_BYTES_MAX", "no system accepts a longer path"),
    ("shape::STRINGS_BYTES_MAX", "inputs of tools: `tests/engine/guards/shapes.rs`"),
    ("text_changes::STEPS_MAX", "texts behind edits: the tests of `text_changes`"),
    ("text_changes::TEXT_MAX", "texts behind edits: the tests of `text_changes`"),
];

/// Adds the limits in the files below a directory, as `module::NAME`.
fn add_limits(folder: &Path, constant: &Regex, limits: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_limits(&path, constant, limits);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let module = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            limits.extend(constant.captures_iter(&text).map(|it| format!("{module}::{}", &it[1])));
        }
    }
}

#[test]
fn each_limit_of_the_analysis_has_a_row_or_a_reason() {
    let constant =
        Regex::new(r"(?m)^\s*(?:pub(?:\(super\))? )?const ([A-Z_]+_MAX): usize").unwrap();
    let mut limits = BTreeSet::new();
    add_limits(&root().join("src/shell"), &constant, &mut limits);
    assert!(limits.len() > 25, "{}", limits.len());
    let table = fs::read_to_string(root().join(TABLE)).unwrap();
    let row = Regex::new(r#""([a-z_]+::[A-Z_]+_MAX)""#).unwrap();
    let rows: BTreeSet<String> = row.captures_iter(&table).map(|it| it[1].to_owned()).collect();
    let reasons: BTreeSet<String> = REASONS.iter().map(|it| it.0.to_owned()).collect();
    let listed: BTreeSet<String> = rows.union(&reasons).cloned().collect();
    let missing: Vec<&String> = limits.difference(&listed).collect();
    assert!(missing.is_empty(), "{TABLE}: no row for {missing:?}; add one, or a reason here");
    let unknown: Vec<&String> = listed.difference(&limits).collect();
    assert!(unknown.is_empty(), "no constant in src/shell: {unknown:?}");
    let both: Vec<&String> = rows.intersection(&reasons).collect();
    assert!(both.is_empty(), "a row and a reason: {both:?}");
}
