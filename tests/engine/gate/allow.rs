//! `policyd allow`: a rule or one exact call passes, once or for a while, and the user reads how.

use std::time::Duration;

use policyd::world::WorldError;
use policyd::world::fake::Op;
use serde_json::{Value, json};

use super::scene::{Called, Scene};

fn called(scene: &Scene, line: &str) -> Called {
    let words: Vec<&str> = ["policyd"].into_iter().chain(line.split_whitespace()).collect();
    scene.run(&words, b"")
}

/// The answer to a command of the agent in a session.
fn command_in(scene: &Scene, session: &str, line: &str) -> Value {
    let payload = scene.payload(&json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
        "session_id": session, "tool_use_id": "t9", "tool_input": {"command": line}}));
    let said = scene.call("pre-tool-use", &payload.to_string(), &[]).stdout;
    serde_json::from_str(&said).unwrap_or_default()
}

fn command(scene: &Scene, line: &str) -> Value {
    command_in(scene, "session-1", line)
}

fn is_blocked(answer: &Value) -> bool {
    answer["hookSpecificOutput"]["permissionDecision"] == "deny"
}

/// A session whose stop is blocked.
fn untested() -> Scene {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene
}

fn last_entry(scene: &Scene) -> Value {
    let text = scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap();
    serde_json::from_str(String::from_utf8(text).unwrap().lines().last().unwrap()).unwrap()
}

#[test]
fn a_rule_passes_once_and_the_log_names_the_user() {
    let scene = untested();
    assert!(is_blocked(&command(&scene, "rm -rf /srv/data")));
    let allowed = called(&scene, "allow rm_recursive --once");
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(allowed.stdout.starts_with("rm_recursive: allowed once by "), "{}", allowed.stdout);
    assert!(called(&scene, "allow --list").stdout.starts_with("rm_recursive: allowed once by "));
    assert_eq!(command(&scene, "rm -rf /srv/data"), Value::Null);
    let entry = last_entry(&scene);
    assert_eq!((&entry["decision"], &entry["spoken"]), (&json!("none"), &json!(false)));
    let text = entry["guards"][0]["allowed"].as_str().unwrap();
    assert!(text.starts_with("allowed once by ") && text.contains(" until "), "{text}");
    let explained = called(&scene, "explain");
    assert_eq!(explained.code, 0, "{}", explained.stdout);
    assert!(explained.stdout.contains("user: allowed once by "), "{}", explained.stdout);
    assert!(is_blocked(&command(&scene, "rm -rf /srv/data")), "it was used");
    assert!(called(&scene, "allow --list").stderr.contains("no rule and no call is allowed"));
}

#[test]
fn a_rule_passes_for_a_while_in_one_session_until_it_is_revoked() {
    let scene = untested();
    command_in(&scene, "session-2", "ls");
    called(&scene, "allow rm_recursive --for 10m --session session-1");
    assert!(is_blocked(&command_in(&scene, "session-2", "rm -rf /srv/data")));
    assert!(!is_blocked(&command(&scene, "rm -rf /srv/data")));
    assert!(!is_blocked(&command(&scene, "rm -rf /srv/more")));
    scene.world.advance(Duration::from_secs(601));
    assert!(is_blocked(&command(&scene, "rm -rf /srv/data")));
    called(&scene, "allow rm_recursive --for 10m");
    assert!(called(&scene, "allow --revoke rm_recursive").stdout.starts_with("revoked: rm_rec"));
    assert!(is_blocked(&command(&scene, "rm -rf /srv/data")));
    assert_eq!(called(&scene, "allow --revoke rm_recursive").code, 1);
    assert_eq!(called(&scene, "allow rm_recursive --for 25h").code, 2);
    let wrong = called(&scene, "allow rm_recursiv");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `rm_recursive`?"), "{}", wrong.stderr);
}

#[test]
fn exactly_the_call_of_a_code_passes_once() {
    let scene = untested();
    let answer = command(&scene, "rm -rf /srv/data");
    let hint = answer["systemMessage"].as_str().unwrap();
    let (_, rest) = hint.split_once("policyd allow --call ").unwrap();
    let code = rest.get(..8).unwrap();
    assert_eq!(
        hint,
        format!(
            "policyd blocked `rm -rf /srv/data` (guard rm_recursive). Wrong? Run: policyd allow --call {code}, \
             or: policyd allow rm_recursive --once"
        )
    );
    let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(!reason.contains("policyd allow"), "the agent does not read it: {reason}");
    let typed = format!("allow --call {}", code.to_lowercase());
    let allowed = called(&scene, &typed);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(scene.world.questions().last().unwrap().contains("Bash `rm -rf /srv/data`"));
    assert!(is_blocked(&command(&scene, "rm -rf /srv/more")), "another call");
    assert!(is_blocked(&command_in(&scene, "session-2", "rm -rf /srv/data")), "another session");
    assert!(!is_blocked(&command(&scene, "rm -rf /srv/data")));
    assert!(is_blocked(&command(&scene, "rm -rf /srv/data")), "it was used");
    assert_eq!(called(&scene, "allow --call ZZZZZZZZ").code, 1);
    called(&scene, &typed);
    assert!(called(&scene, &format!("allow --revoke {code}")).stdout.contains("revoked: call"));
    assert!(is_blocked(&command(&scene, "rm -rf /srv/data")));
}

#[test]
fn a_stop_passes_once_and_the_user_reads_how() {
    let mut scene = untested();
    let stop = scene.stop();
    assert_eq!(stop.decision(), "block");
    let notice = stop.json()["systemMessage"].as_str().unwrap().to_owned();
    assert!(
        notice.contains("(check local_testing). Wrong? Run: policyd allow local_testing --once")
    );
    assert!(!stop.json()["reason"].as_str().unwrap().contains("policyd allow"));
    called(&scene, "allow local_testing");
    assert_eq!(scene.work().stop().decision(), "approve");
    let entry = last_entry(&scene);
    let verdict =
        entry["verdicts"].as_array().unwrap().iter().find(|it| it["id"] == "local_testing");
    assert!(verdict.unwrap()["allowed"].as_str().unwrap().starts_with("allowed once by "));
    assert_eq!(called(&scene, "explain").code, 0);
    scene.world.advance(Duration::from_secs(60));
    assert_eq!(scene.stop().decision(), "block", "it was used");
}

#[test]
fn an_allowance_whose_use_cannot_be_saved_allows_nothing() {
    let scene = untested();
    called(&scene, "allow rm_recursive");
    scene.world.refuse_always(Op::Write, "", WorldError::Io("no space left".to_owned()));
    let answer = command(&scene, "rm -rf /srv/data");
    assert!(is_blocked(&answer), "{answer}");
    assert!(answer["systemMessage"].as_str().unwrap().contains("no allowance was used"));
    scene.world.refuse_nothing();
    assert!(!is_blocked(&command(&scene, "rm -rf /srv/data")));
}
