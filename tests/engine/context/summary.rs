//! What is carried over: the seed's cases and criteria, git that answers or does not, and the command.

use std::time::Duration;

use policyd::record::summary::{SummaryInput, known::GitState, markdown};
use policyd::world::fake::Op;
use policyd::world::{CommandOutput, WorldError};
use serde_json::{Value, json};

use super::status::{Desk, call, prompt};
use crate::support;
use crate::support::shared::of_kinds;

/// A session in which something of everything happened.
fn worked() -> Vec<Value> {
    let tool = |id: &str, name: &str, input: Value| {
        json!({"type": "assistant", "message": {"id": id, "content": [
            {"type": "tool_use", "id": id, "name": name, "input": input}]}})
    };
    let result = |id: &str, error: bool, text: &str| {
        json!({"type": "user", "message": {"content": [{"type": "tool_result",
            "tool_use_id": id, "is_error": error, "content": text}]}})
    };
    vec![
        prompt("p1", "Build the importer for the new format."),
        tool(
            "t1",
            "TodoWrite",
            json!({"todos": [
            {"content": "read the format", "status": "completed"},
            {"content": "write the tests", "status": "in_progress"},
            {"content": "document it", "status": "pending"}]}),
        ),
        result("t1", false, "ok"),
        tool(
            "t2",
            "Edit",
            json!({"file_path": "/work/src/old.py", "old_string": "a",
            "new_string": "b"}),
        ),
        result("t2", false, "ok"),
        tool(
            "t3",
            "Edit",
            json!({"file_path": "/work/src/import.py", "old_string": "a",
            "new_string": "b"}),
        ),
        result("t3", false, "ok"),
        tool("t4", "Bash", json!({"command": "pytest tests"})),
        result("t4", true, "Exit code 1\n2 failed, 3 passed"),
        call("m1", 120_000),
    ]
}

fn output(code: i32, stdout: &str) -> Result<CommandOutput, WorldError> {
    let stdout = stdout.as_bytes().to_vec();
    Ok(CommandOutput { code: Some(code), stdout, stderr: Vec::new(), truncated: false })
}

/// Scripts what git answers to its commands.
fn git(desk: &Desk, answers: [(&str, Result<CommandOutput, WorldError>); 2]) {
    let no_filter = ("config", output(1, ""));
    for (command, answer) in answers.into_iter().chain([no_filter]) {
        let start = [&policyd::probe::git::NEUTRAL[..], &[command]].concat();
        desk.world.script(&start, answer, Duration::ZERO);
    }
}

#[test]
fn criterion_goal_turn_files_errors_and_tests_are_told() {
    let desk = Desk::new();
    desk.write("s-1", &worked());
    let status =
        "## feat/import...origin/feat/import\0 M src/import.py\0R  b.py\0a.py\0?? notes/\0";
    git(&desk, [("status", output(0, status)), ("log", output(0, "abc1234 Read the format\n"))]);
    let (code, text, err) = desk.call("context summary", "");
    assert_eq!((code, err.as_str()), (0, ""));
    support::snapshot("context", "summary__of_everything", &text);
    let kept = desk.world.get("/work/.policyd/sessions/s-1/context-summary.md").unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), text);
}

#[test]
fn without_git_and_on_an_unborn_branch_the_rest_is_told() {
    for answers in [
        [("status", Err(WorldError::NotFound)), ("log", Err(WorldError::NotFound))],
        [("status", output(128, "")), ("log", output(128, ""))],
        [("status", output(0, "## No commits yet on main\0")), ("log", output(128, ""))],
        [("status", Err(WorldError::TimedOut)), ("log", Err(WorldError::TimedOut))],
    ] {
        let desk = Desk::new();
        desk.write("s-1", &worked());
        git(&desk, answers);
        let (code, text, _) = desk.call("context summary --print", "");
        assert_eq!(code, 0);
        for part in ["Build the importer", "- src/import.py", "pytest tests", "- write the tests"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(desk.world.get("/work/.policyd/sessions/s-1/context-summary.md"), None);
    }
}

#[test]
fn without_a_transcript_git_is_told() {
    let desk = Desk::new();
    desk.write("s-1", &[]);
    git(&desk, [("status", output(0, "## main\0 M a.py\0")), ("log", output(0, ""))]);
    let (code, text, _) = desk.call("context summary", "");
    assert_eq!(code, 0);
    assert!(text.contains("## Goal\n- none\n") && text.contains("- a.py\n"), "{text}");
}

#[test]
fn criterion_a_summary_has_2000_characters_at_most() {
    let desk = Desk::new();
    let mut lines = vec![prompt("p1", &"Überall Größe zählen. ".repeat(300))];
    lines.extend(worked());
    desk.write("s-1", &lines);
    let status: String = (0..400).map(|it| format!(" M src/some/folder/file_{it}.py\0")).collect();
    let log: String = (0..8).map(|it| format!("abc{it} {}\n", "Änderung ".repeat(30))).collect();
    git(&desk, [("status", output(0, &format!("## main\0{status}"))), ("log", output(0, &log))]);
    let (_, text, _) = desk.call("context summary", "");
    let count = text.chars().count();
    assert!((1_500..=2_000).contains(&count), "{count}");
    assert!(text.len() > count, "characters, not bytes");
    assert!(text.contains("[Truncated: ") && text.contains("…\nNow: Build the importer"), "{text}");
    assert!(text.contains("- src/import.py"), "the newest is kept: {text}");
}

#[test]
fn the_seeds_cases() {
    for case in of_kinds(&["summary"]) {
        let (input, expected) = (&case["input"], &case["expected"]);
        let name = case["name"].as_str().unwrap();
        let many = input["changed_files"].as_u64().unwrap_or(0);
        let entries = input["log_entries"].as_str().unwrap_or_default().lines().rev();
        let known = SummaryInput {
            iteration: input["iteration"].as_u64().unwrap_or(0),
            goal: input["goal"].as_str().unwrap_or_default().to_owned(),
            files: (0..many).map(|it| format!("src/file_{it}.py")).collect(),
            progress: entries.map(str::to_owned).collect(),
            ..SummaryInput::default()
        };
        let text = markdown(&known);
        let mut judged = false;
        if let Some(headings) = expected["headings"].as_array() {
            let lines: Vec<&str> = text.lines().collect();
            let found = headings.iter().filter(|it| lines.contains(&it.as_str().unwrap()));
            assert_eq!(found.count(), headings.len(), "{name}: {text}");
            assert_eq!(expected["file"], "context-summary.md");
            judged = true;
        }
        if let Some(listed) = expected["listed"].as_u64() {
            assert_eq!(text.matches("- src/file_").count() as u64, listed, "{name}: {text}");
            judged = true;
        }
        if let Some(part) = expected["contains"].as_str() {
            assert!(text.contains(part), "{name}: {text}");
            judged = true;
        }
        if input["log_dir"].is_string() {
            // Nowhere to write: the caller goes on, and nothing is printed that was not kept.
            let desk = Desk::new();
            desk.write("s-1", &worked());
            let refused = || WorldError::Io("no such folder".to_owned());
            desk.world.refuse_always(Op::Write, "", refused());
            desk.world.refuse_always(Op::CreateFolder, "", refused());
            let payload = json!({"session_id": "s-1", "cwd": "/work",
                "transcript_path": super::status::transcript("s-1")});
            let (code, out, _) = desk.call("eval --hook session-end", &payload.to_string());
            assert_eq!(json!({"stdout": out, "rc": code}), *expected, "{name}");
            judged = true;
        }
        assert!(judged, "{name}: the case asks for something that nobody looks at");
    }
}

#[test]
fn what_git_says_is_read_as_it_is_written() {
    let facts = policyd::facts::Facts::default();
    let gauge = policyd::expr::context_facts::ContextUsage::default();
    let of = |git: &GitState| SummaryInput::of(&facts, &gauge, git, std::path::Path::new("/work"));
    let git = GitState {
        status: Some(
            "## main\0 M with space.py\0R  new.py\0old.py\0?? ä/\0UU both.py\0".to_owned(),
        ),
        log: None,
        changed: Some("with space.py\0other.py\0".to_owned()),
    };
    let known = of(&git);
    assert_eq!(known.files, ["with space.py", "new.py", "ä/", "both.py", "other.py"]);
    assert_eq!(known.status, ["branch main"]);
    for odd in ["", "\0\0", "#", "## ", "garbage", "R  a"] {
        let known = of(&GitState { status: Some(odd.to_owned()), ..GitState::default() });
        assert!(known.files.len() <= 1, "{odd:?}: {:?}", known.files);
    }
}

#[test]
fn where_no_session_is_known_git_is_told_and_that_none_is() {
    let desk = Desk::new();
    git(&desk, [("status", output(0, "## main\0 M a.py\0")), ("log", output(0, ""))]);
    let (code, text, err) = desk.call("context summary", "");
    assert_eq!((code, err.contains("no session found in this project")), (0, true), "{err}");
    assert!(text.contains("## Goal\n- none\n") && text.contains("- a.py\n"), "{text}");
    assert_eq!(desk.call("context summary nobody", "").0, 3, "a name that is not known is one");
}
