//! The page of the replaced systems: each statement names a test that exists, and says what policyd does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

use super::readme::root;

const PAGE: &str = "src/docs/reference/replaced-systems.md";

/// The names of all tests below a directory.
fn tests_below(folder: &Path, names: &mut BTreeSet<String>) {
    let test = Regex::new(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)").unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, names);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            names.extend(test.captures_iter(&text).map(|it| it[1].to_owned()));
        }
    }
}

#[test]
fn each_statement_of_the_replaced_systems_has_a_test() {
    let mut tests = BTreeSet::new();
    ["src", "tests"].iter().for_each(|it| tests_below(&root().join(it), &mut tests));
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let rows = page.lines().filter(|it| it.starts_with("| ") && !it.starts_with("| statement"));
    let rows: Vec<Vec<&str>> =
        rows.map(|it| it.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert!(rows.len() > 40, "{}", rows.len());
    for row in rows {
        let [statement, test, result] = row[..] else { panic!("{row:?}") };
        let name = test.trim_matches('`');
        assert!(tests.contains(name), "{PAGE}: no test is named `{name}`: {statement}");
        let says = result.starts_with("works") || result.starts_with("differs: ");
        assert!(says && statement.ends_with('.'), "{PAGE}: {statement}");
    }
}
