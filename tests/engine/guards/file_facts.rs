//! Guards that ask what the files of a call contain, whether they exist, and what git knows of them.

use std::collections::BTreeSet;
use std::time::Duration;

use policyd::git_index;
use policyd::probe::git::NEUTRAL;
use policyd::world::CommandOutput;
use serde_json::{Value, json};

use super::machine::Machine;

const PROJECT: &str = "/home/dev/project";

/// A machine with files, and a guard with this condition.
fn machine(condition: &str, files: &[(&str, &str)]) -> Machine {
    let machine = Machine::new(PROJECT);
    for (path, text) in files {
        machine.world.put(format!("{PROJECT}/{path}"), text);
    }
    machine.guards(&format!(
        "- id: own\n  when: '{condition}'\n  decision: deny\n  on_error: ask\n  message: Stop.\n"
    ));
    machine
}

fn edit(path: &str) -> Value {
    json!({"file_path": format!("{PROJECT}/{path}"), "old_string": "a", "new_string": "b"})
}

/// How often a file was opened.
fn opened(machine: &Machine, path: &str) -> usize {
    let end = format!("read {PROJECT}/{path}");
    machine.world.log().iter().filter(|it| it.starts_with(&end)).count()
}

#[test]
fn a_file_is_read_once_and_only_if_a_guard_asks() {
    let asked = |condition: &str, path: &str| {
        let machine = machine(condition, &[("a.rs", "a"), ("package.json", "{}")]);
        assert_eq!(machine.tool("Edit", &edit("a.rs")).0, "", "{condition}");
        opened(&machine, path)
    };
    // A stop compares an edited file with what it was, so each edit records that.
    let recorded = asked(r#"action.written.contains("x")"#, "a.rs");
    let both = r#"action.before.contains("x") || action.after.contains("x")"#;
    assert_eq!(asked(both, "a.rs"), recorded + 1);
    assert_eq!(asked("action.changed.missing", "a.rs"), recorded);
    assert_eq!(asked(r#"project.text("package.json").contains("x")"#, "package.json"), 1);
    assert_eq!(asked(r#"project.text("package.json").contains("x")"#, "a.rs"), recorded);
    // A guard about programs that the call does not start asks nothing.
    let machine = Machine::new(PROJECT);
    machine.world.put(format!("{PROJECT}/notes.md"), "{}");
    let guard =
        "- id: own\n  commands: [npm]\n  when: 'project.text(\"notes.md\").contains(\"x\")'\n";
    machine.guards(&format!("{guard}  decision: deny\n  message: Stop.\n"));
    machine.bash("ls");
    assert_eq!(opened(&machine, "notes.md"), 0);
    machine.bash("npm test");
    assert_eq!(opened(&machine, "notes.md"), 1);
}

#[test]
fn a_glob_can_begin_at_the_project() {
    let files = [("db/migrations/1.sql", ""), ("tools/db/migrations/1.sql", "")];
    let decided = |condition: &str, line: &str| machine(condition, &files).bash(line).0;
    for (glob, line, expected) in [
        ("./db/**", "rm db/migrations/1.sql", "deny"),
        ("./db/**", "rm tools/db/migrations/1.sql", ""),
        ("db/**", "rm tools/db/migrations/1.sql", "deny"),
        ("./db/**", "cd tools && rm db/migrations/1.sql", ""),
        ("./db/**", "cd tools && rm ../db/migrations/1.sql", "deny"),
        ("./db/migrations/*.sql", "rm -r db", "deny"),
        ("./db/migrations/*.sql", "rm -r tools", ""),
        ("./db/**", "rm db/migr*/1.sql", "deny"),
        ("./*.md", "rm README.md", "deny"),
        ("./*.md", "rm docs/README.md", ""),
        ("./**", "rm /tmp/x", ""),
        ("./**", "rm x", "deny"),
    ] {
        let condition = format!("action.changes([\"{glob}\"])");
        assert_eq!(decided(&condition, line), expected, "{glob} {line}");
    }
    let left_out = r#"action.changes(["./**", "!./db/**"])"#;
    assert_eq!(decided(left_out, "rm db/migrations/1.sql"), "");
    assert_eq!(decided(left_out, "rm tools/db/migrations/1.sql"), "deny");
}

#[test]
fn what_git_knows_of_a_path_is_known_or_unknown() {
    let answer = |condition: &str, index: &[u8], changes: Option<&str>, path: &str| {
        let machine = machine(condition, &[("a.rs", "a"), ("b.rs", "b")]);
        machine.world.put(format!("{PROJECT}/.git/index"), index);
        let output = |code, prints: &str| CommandOutput {
            code: Some(code),
            stdout: prints.as_bytes().to_vec(),
            ..CommandOutput::default()
        };
        let script = |question, output| {
            let start = [&NEUTRAL[..], &[question]].concat();
            machine.world.script(&start, Ok(output), Duration::from_millis(5));
        };
        script("config", output(1, ""));
        changes.into_iter().for_each(|it| script("status", output(0, it)));
        machine.tool("Edit", &edit(path)).0
    };
    let index = git_index::with_names(BTreeSet::from(["a.rs", "src/c.rs"]));
    for (condition, index, changes, path, expected) in [
        ("action.changed.tracked", &index[..], None, "a.rs", "deny"),
        ("action.changed.tracked", &index[..], None, "b.rs", ""),
        ("action.changed.untracked", &index[..], None, "b.rs", "deny"),
        ("action.changed.tracked", b"no index", None, "b.rs", "ask"),
        ("action.changed.uncommitted", &index[..], Some(" M a.rs\0"), "a.rs", "deny"),
        ("action.changed.uncommitted", &index[..], Some(" M a.rs\0"), "b.rs", ""),
        ("action.changed.uncommitted", &index[..], Some("?? b.rs\0"), "b.rs", "deny"),
        ("action.changed.uncommitted", &index[..], None, "b.rs", "ask"),
    ] {
        assert_eq!(answer(condition, index, changes, path), expected, "{condition} {path}");
    }
}

#[test]
fn a_call_that_happened_says_nothing_about_the_text_before() {
    let machine = machine(r#"action.before.contains("x")"#, &[("a.rs", "x")]);
    let guard = "- id: own\n  on: [post_tool_use]\n  when: 'action.before.contains(\"x\")'\n";
    machine.guards(&format!("{guard}  decision: deny\n  on_error: block\n  message: Stop.\n"));
    let answer = machine.answer(&json!({
        "session_id": "s", "cwd": PROJECT, "hook_event_name": "PostToolUse", "tool_name": "Edit",
        "tool_input": edit("a.rs"), "tool_response": {},
    }));
    let reason = answer["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("the call changed it already"), "{answer}");
}

#[test]
fn a_file_that_a_call_runs_is_looked_at_too() {
    let script = ("fix.sh", "rm db/1.sql\n");
    let condition = r#"action.changed.matching(["./db/**"]).exist"#;
    let with = machine(condition, &[script, ("db/1.sql", "")]);
    assert_eq!(with.bash("sh fix.sh").0, "deny");
    assert_eq!(machine(condition, &[script]).bash("sh fix.sh").0, "");
}

#[test]
fn a_link_is_read_where_it_leads() {
    let machine = machine(r#"action.before.contains("x")"#, &[("real.rs", "x")]);
    machine.world.put_link(format!("{PROJECT}/a.rs"), format!("{PROJECT}/real.rs"));
    assert_eq!(machine.tool("Edit", &edit("a.rs")).0, "deny");
}
