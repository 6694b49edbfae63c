//! The cases of the built-in pack pass, leave no rule out, and reach its branches.

use std::path::Path;
use std::process::{Command, Output};

use policyd::policy::builtin;
use serde_json::Value;

/// The share of branches that the pack's own cases reach at least, in percent.
const BRANCHES_PERCENT_MIN: &str = "94";

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_policyd"));
    // Whatever whoever runs the tests has set, the pack is the built-in one.
    let home = folder.join("nobody");
    command.env_remove("POLICYD_POLICIES").env("HOME", &home).env("XDG_CONFIG_HOME", &home);
    command.args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn every_rule_fires_and_is_silent_and_the_branches_are_reached() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments = ["test", "policies", "--threshold", BRANCHES_PERCENT_MIN, "--format", "json"];
    let output = run(root, &arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    let results: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|it| panic!("{it}: {}: {errors}", output.status));
    let [pack] = results["packs"].as_array().unwrap().as_slice() else { panic!("one pack") };
    let failed = pack["cases"].as_array().unwrap().iter().filter(|it| it["result"] != "passed");
    assert_eq!(failed.collect::<Vec<_>>(), Vec::<&Value>::new(), "{errors}");
    let rules = pack["coverage"]["rules"].as_array().unwrap();
    let lacking = |it: &&Value| it["firing"] != true || it["silent"] != true;
    assert_eq!(rules.iter().filter(lacking).collect::<Vec<_>>(), Vec::<&Value>::new());
    for (kind, least) in [
        ("consideration", 27),
        ("session type", 6),
        ("preference", 1),
        ("message", 6),
        ("review rule", 12),
        ("trigger", 9),
        ("signal trigger", 12),
        ("table row", 18),
        ("failure class", 18),
    ] {
        let count = rules.iter().filter(|it| it["kind"] == kind).count();
        assert!(count >= least, "{count} of kind {kind}");
    }
    assert_eq!(output.status.code(), Some(0), "{errors}");
}

#[test]
fn without_a_pack_the_embedded_cases_are_run() {
    let folder = tempfile::tempdir().unwrap();
    // All of them are run above, from the files that are embedded.
    let output = run(folder.path(), &["test", "--filter", "force"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("builtin: ") && said.contains(" passed, 0 failed"), "{said}");
    assert!(!said.contains(": 0 passed"), "{said}");
}

#[test]
fn what_no_guard_was_asked_about_meets_no_case() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join("pack").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("guards.yaml", "- {id: own, commands: [deploy], decision: deny, message: No.}\n");
    let silent = "- name: it is silent\n  on: {command: make}\n  expect: {guards: {own: silent}}\n";
    write("tests/a.yaml", silent);
    let said = |code| {
        let output = run(folder.path(), &["test", "pack"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    assert!(said(0).contains("1 passed, 0 failed"));
    #[cfg(unix)]
    for (name, to) in [("here", "."), ("pack", "..")] {
        let link = folder.path().join("pack/tests").join(name);
        std::os::unix::fs::symlink(to, link).unwrap();
        assert!(said(0).contains("1 passed, 0 failed"), "a link back leads nowhere");
    }
    write("tests/below/b.yaml", &silent.replace("on: {command: make}", "on: {event: stop}"));
    let said = said(1);
    assert!(said.contains("1 passed, 1 failed"), "{said}");
    assert!(said.contains("not asked at this event"), "{said}");
    // That file alone, and the pack that it lies beside.
    let file = "pack/tests/below/b.yaml";
    let output = run(folder.path(), &["test", file]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("0 passed, 1 failed"));
    // What is beside them means all of them.
    for all in ["pack/tests/below", "pack/tests/snapshots/b__c.snap"] {
        write("tests/snapshots/b__c.snap", "---\nsource: x\n---\nx\n");
        let output = run(folder.path(), &["test", all]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 passed, 1 failed"), "{all}: {said}");
    }
    let output = run(folder.path(), &["lint", file]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("1 file, "));
}

#[test]
fn each_snapshot_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("tests")).unwrap();
    std::fs::write(folder.path().join("preferences.yaml"), "[]\n").unwrap();
    let cases = "- {name: count < 3, transcript: [{user: x}], expect: snapshot}\n\
                 - {name: count > 3, transcript: [{user: y}], expect: snapshot}\n";
    std::fs::write(folder.path().join("tests/a.yaml"), cases).unwrap();
    let output = run(folder.path(), &["test", ".", "--update"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("another case writes snapshots/a__count_3.snap, too"), "{said}");
}

#[test]
fn what_is_wanting_without_a_failure_is_one_for_dashboards() {
    let output = run(Path::new("."), &["test", "--filter", "no such case", "--format", "junit"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("failures=\"1\""), "{said}");
    assert!(said.contains("no case of builtin contains `no such case`"), "{said}");
}

#[test]
fn a_case_of_a_guard_that_fails_shows_the_guard_with_its_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let tests = folder.path().join("tests");
    std::fs::create_dir(&tests).unwrap();
    let guard = "- {id: own, commands: [deploy], when: 'program.names([\"live\"])', decision: deny, message: No.}\n";
    std::fs::write(folder.path().join("guards.yaml"), guard).unwrap();
    let case = "- name: a\n  on: {command: deploy live}\n  expect: {decision: none}\n\
                - name: b\n  on: {command: deploy}\n  expect: {guards: {own: fired}}\n";
    std::fs::write(tests.join("a.yaml"), case).unwrap();
    let output = run(folder.path(), &["test", "."]);
    let said = String::from_utf8_lossy(&output.stdout);
    for shown in [
        "wanted none, got block",
        "own (guards.yaml:1:8): fired, block, about `deploy live`: No.",
        "program.names([\"live\"])",
        "wanted fired, got silent",
        "own (guards.yaml:1:8): silent",
        "false",
    ] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
}

#[test]
fn every_file_beside_the_cases_is_embedded() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/tests");
    let (mut found, mut todo) = (vec![], vec![tests.clone()]);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                found.push(path.strip_prefix(&tests).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    let mut embedded: Vec<&str> = builtin::CASES.iter().map(|(file, _)| *file).collect();
    embedded.sort_unstable();
    assert_eq!(found, embedded);
}

#[test]
fn a_satisfied_rule_does_not_say_what_would_be_amiss() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    let rule = "- id: own\n  category: Own\n  question: Is it done?\n  severity: warning\n  \
                applicable_session_types: [\"*\"]\n  satisfied: todos.open == 0\n  \
                details: it was not done\n";
    std::fs::write(folder.path().join("considerations.yaml"), rule).unwrap();
    let cases = "- name: done\n  transcript: [{user: x}]\n  \
                 expect: {considerations: {own: {details: {equals: Is it done?}}}}\n\
                 - name: open\n  transcript: [{user: x}, {todos: {a: pending}}]\n  \
                 expect: {considerations: {own: {details: {equals: it was not done}}}}\n";
    std::fs::write(folder.path().join("tests/a.yaml"), cases).unwrap();
    let output = run(folder.path(), &["test", "."]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn what_a_command_printed_looks_like_no_other_item() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    let rule = "- id: own\n  category: Own\n  question: Is it done?\n  severity: blocker\n  \
                applicable_session_types: [\"*\"]\n  satisfied: commands.total == 0\n  \
                details: \"${commands.last(\\\"make\\\").output}\"\n";
    std::fs::write(folder.path().join("considerations.yaml"), rule).unwrap();
    let case = "- name: done\n  transcript: [{user: x}, {ran: make, prints: \"a\\n- other: b\"}]\n  \
                expect: {reason: {contains: \"\\n      - other: b\", lacks: \"\\n- other\"}}\n";
    std::fs::write(folder.path().join("tests/a.yaml"), case).unwrap();
    let output = run(folder.path(), &["test", "."]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
