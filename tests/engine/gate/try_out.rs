//! `policyd try` and `policyd facts`: expressions and facts of a session, by its id, by its
//! transcript, or of none.

use serde_json::json;

use super::scene::{Called, Scene, TRANSCRIPT};
use crate::support::snapshot;

fn tried(scene: &Scene, more: &[&str]) -> Called {
    scene.run(&[&["policyd", "try"], more].concat(), b"")
}

fn session() -> Scene {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/src/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "ok"}),
        json!({"tool": "Bash", "input": {"command": "PGPASSWORD=hunter2 pytest -q"}}),
        json!({"claude_user_tool_result": "1 failed in 0.1s", "is_error": true}),
    ]);
    scene
}

#[test]
fn an_expression_that_has_a_value_may_still_be_a_slip() {
    let scene = session();
    let said = |expression: &str| tried(&scene, &[expression]).stdout;
    let slip = said("files.count > 3 ||\n  event.tool == \"bash\"");
    assert!(slip.contains("error[PD231]: no client has a tool `bash`"), "{slip}");
    assert!(slip.contains("expression:2:17") && slip.contains("did you mean `Bash`?"), "{slip}");
    assert!(said("files.count > 3 && files.count < 2").contains("PD601"));
    assert!(!said("files.count > 3 && action.writes([\"src/**\"])").contains("PD"));
    assert!(!said("event.kind == \"session_start\"").contains("PD"), "it is of no event");
    for value in ["files.count", "session.branch", "true", "tools.count(\"Read\") + 1"] {
        assert!(!said(value).contains("PD"), "{value}");
    }
    let crlf = said("files.count > 3 ||\r\n  event.tool == \"bash\"");
    assert!(crlf.contains("expression:2:17"), "{crlf}");
    let json = tried(&scene, &["event.tool == \"bash\"", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["findings"][0]["code"], "PD231", "{json}");
}

#[test]
fn an_expression_is_drawn_with_its_values() {
    let mut scene = session();
    scene.stop();
    let expression = "files.count > 3 || state.blocks == 1 && session.type == \"SIMPLE\"";
    let named = tried(&scene, &[expression, "--session", "session-"]);
    assert_eq!(named.code, 0, "{named:?}");
    snapshot("tries", "try__a_session", &named.stdout);
    assert!(named.stderr.contains("as at its stop of 2026-01-01"), "{}", named.stderr);
    let count = |scene: &Scene, more: &[&str]| {
        tried(scene, &[&["files.count", "--format", "compact"], more].concat()).stdout
    };
    assert_eq!(count(&scene, &["--session", "session-1"]), "1\n");
    assert_eq!(count(&scene, &["--session", TRANSCRIPT]), "1\n");
    assert_eq!(count(&scene, &[]), "0\n", "without a session nothing happened");
    // The session goes on: its facts are those of now.
    scene.events(&[
        json!({"tool": "Write", "input": {"file_path": "/work/src/b.py", "content": "y = 1\n"}}),
    ]);
    assert_eq!(count(&scene, &["--session", "session-1"]), "2\n");
}

#[test]
fn a_secret_is_masked_in_facts_and_in_what_is_shown() {
    let expression = "commands.last(\"pytest\").text == \"PGPASSWORD=«masked» pytest -q\"";
    let called = tried(&session(), &[expression, "--session", TRANSCRIPT]);
    snapshot("tries", "try__a_secret", &called.stdout);
    let json = tried(&session(), &[expression, "--session", TRANSCRIPT, "--format", "json"]).json();
    assert_eq!(json["value"], true);
    assert_eq!(json["parts"][0]["value"], "PGPASSWORD=«masked» pytest -q");
}

#[test]
fn what_is_wrong_is_shown_as_lint_shows_it_with_the_names_that_could_be_meant() {
    let scene = session();
    let mut shown = String::new();
    for expression in ["files.cuont > 3", "todos.", "prefs.no", "files.count > \"a\"", "todos"] {
        let called = tried(&scene, &[expression]);
        assert_eq!(called.code, 1, "{expression}");
        shown.push_str(&format!("$ policyd try '{expression}'\n{}\n", called.stdout));
    }
    snapshot("tries", "try__wrong", shown);
    let json = tried(&scene, &["todos.op", "--format", "json"]).json();
    assert_eq!(json["candidates"][0]["name"], "open");
    assert_eq!(json["findings"][0]["column"], 7);
}

#[test]
fn an_expression_that_has_no_value_says_why() {
    let scene = session();
    let probe = tried(&scene, &["probes.pr.text(\"state\") == \"OPEN\""]);
    assert_eq!(probe.code, 1);
    assert!(probe.stdout.contains("probe `pr` is not run here"), "{}", probe.stdout);
    assert!(scene.world.ran().is_empty(), "nothing is run");
}

#[test]
fn the_expression_may_come_from_standard_input() {
    let scene = session();
    let called = scene.run(&["policyd", "try", "--format", "compact"], b" -3 + 5\n");
    assert_eq!((called.code, called.stdout.as_str()), (0, "2\n"));
    assert_eq!(tried(&scene, &["-3 + 5", "--format", "compact"]).stdout, "2\n");
    let none = scene.run(&["policyd", "try", "-"], b"\n");
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("such as `policyd try"), "{}", none.stderr);
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let scene = session();
    scene.stop();
    for (named, said) in [
        ("other", "no decision of a session `other` is logged"),
        ("/t/none.jsonl", "transcript `/t/none.jsonl`: no such file"),
    ] {
        let called = tried(&scene, &["files.count", "--session", named]);
        assert_eq!(called.code, 3);
        assert!(called.stderr.contains(said), "{}", called.stderr);
    }
    scene.world.put("/work/.policyd/policies/considerations.yaml", "- id: [x\n");
    let broken = tried(&scene, &["files.count"]);
    assert_eq!(broken.code, 3);
    assert!(broken.stderr.contains("run `policyd lint`"), "{}", broken.stderr);
}

#[test]
fn the_facts_of_a_session_have_names_and_values() {
    let scene = session();
    scene.stop();
    let facts = |more: &[&str]| scene.run(&[&["policyd", "facts"], more].concat(), b"");
    let listed = facts(&["--session", "session-1"]);
    assert_eq!(listed.code, 0);
    for line in [
        "files.count = 1",
        "state.blocks = 1",
        "session.type = \"DEVELOPMENT\"",
        "commands.kind(\"test\").failed = true",
        "probes.pr.error = \"probe `pr` is not run here\"",
    ] {
        assert!(listed.stdout.lines().any(|it| it == line), "{line}: {}", listed.stdout);
    }
    assert!(!listed.stdout.contains("hunter2"), "{}", listed.stdout);
    // Each name is an expression that has this value.
    let values = facts(&["--session", "session-1", "--format", "json"]).json()["values"].clone();
    for name in ["files.paths", "commands.kind(\"test\").count"] {
        let value = tried(&scene, &[name, "--session", "session-1", "--format", "json"]).json();
        assert_eq!(value["value"], values[name], "{name}");
        assert!(!values[name].is_null(), "{name}");
    }
    let whole = facts(&["--session", TRANSCRIPT, "--format", "json"]).json();
    assert_eq!(whole["fold"]["tools"]["total"], 2);
    assert!(!whole.to_string().contains("hunter2"));
}

#[test]
fn a_transcript_that_cannot_be_read_has_no_facts() {
    let scene = session();
    scene.world.put("/t/notes.txt", "not a record\nnor this\n");
    scene.world.put_folder("/t/folder");
    for (path, said) in [
        ("/t/notes.txt", "no valid record (lines read: 2)"),
        ("/t/folder", "not a regular file"),
        ("/t/none.jsonl", "no such file"),
        ("none", "the path of a transcript names a session, too"),
    ] {
        let called = scene.run(&["policyd", "facts", "--session", path], b"");
        assert_eq!((called.code, called.stdout.as_str()), (3, ""), "{path}");
        assert!(called.stderr.contains(said), "{}", called.stderr);
    }
}

#[test]
fn the_table_of_facts_is_for_programs_too() {
    let table = session().run(&["policyd", "facts", "--format", "json"], b"").json();
    let rows = table["facts"].as_array().unwrap();
    let row = rows.iter().find(|it| it["owner"] == "files" && it["name"] == "kind").unwrap();
    assert_eq!((&row["signature"], &row["type"]), (&json!("kind(text)"), &json!("files")));
}
