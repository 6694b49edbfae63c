//! A model that judges what cannot be seen: a scripted program stands for it.
use std::time::Duration;

use policyd::world::{CommandOutput, World, WorldError};
use serde_json::{Value, json};

use super::forge::verdict;
use super::scene::Scene;
use crate::support::snapshot;

/// What a pack of one's own writes to have a judge.
const SWITCHED_ON: &str = "- {id: judge, override: true, enabled: true}\n";

/// A session that ends with these words, and a judge whose replies come in order.
fn session(said: &str, replies: &[&str]) -> Scene {
    let mut scene = Scene::new();
    scene.world.put("/work/.policyd/policies/probes.yaml", SWITCHED_ON);
    for reply in replies {
        let stdout = reply.as_bytes().to_vec();
        let answer = CommandOutput { code: Some(0), stdout, stderr: Vec::new(), truncated: false };
        scene.world.script(&["claude"], Ok(answer), Duration::from_secs(9));
    }
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/src/a.rs", "content": "x"}}),
        json!({"claude_user_tool_result": "ok"}),
        json!({"tool": "Bash", "input": {"command": "cargo test"}}),
        json!({"claude_user_tool_result": "test result: ok. 3 passed; 0 failed"}),
        json!({"assistant": said}),
    ]);
    scene
}

fn objective(scene: &Scene) -> Value {
    verdict(&scene.report(), "work_finished")
}

const NOT_DONE: &str = r#"{"type":"result","result":"```json\n{\"objective_completion\": \"NOT SATISFIED: the parser has no error messages\", \"shortcuts\": \"SATISFIED: none\"}\n```"}"#;
const DONE: &str = r#"{"objective_completion": "SATISFIED: the parser is there", "shortcuts": "NOT SATISFIED: the test asserts nothing"}"#;

#[test]
fn a_judge_decides_what_words_alone_do_not() {
    let scene = session("All is done.", &[NOT_DONE]);
    let said = scene.stop();
    assert_eq!(said.decision(), "block");
    snapshot("decisions", "judge__not_satisfied", said.json()["reason"].as_str().unwrap());
    let scene = session("I am still working on it.", &[DONE]);
    let said = objective(&scene);
    assert_eq!((&said["status"], &said["consequence"]), (&json!("satisfied"), &json!("none")));
    assert_eq!(said["evidence"][0], "judge: SATISFIED: the parser is there");
    let shortcuts = verdict(&scene.report(), "shortcuts");
    assert_eq!(shortcuts["consequence"], "warns");
    assert_eq!(shortcuts["evidence"][0], "judge: NOT SATISFIED: the test asserts nothing");
}

#[test]
fn the_judge_is_told_what_it_needs_and_is_not_held_itself() {
    let scene = session("All is done.", &[DONE]);
    scene.stop();
    let [command] = <[_; 1]>::try_from(scene.world.ran()).unwrap();
    assert!(command.env.contains(&("POLICYD_DISABLED".to_owned(), "1".to_owned())));
    snapshot("decisions", "judge__question", String::from_utf8(command.stdin).unwrap());
}

#[test]
fn without_a_clear_answer_the_facts_decide() {
    let unclear = ["", "No problems at all.", "{}", r#"{"objective_completion": "maybe"}"#];
    for reply in unclear {
        assert_eq!(objective(&session("All is done.", &[reply]))["status"], "satisfied", "{reply}");
        let said = objective(&session("I am still working on it.", &[reply]));
        assert_eq!(
            (&said["status"], &said["consequence"]),
            (&json!("unsatisfied"), &json!("warns"))
        );
    }
    // A program that is missing is the same; so is one that takes too long.
    assert_eq!(objective(&session("All is done.", &[]))["status"], "satisfied");
    let mut slow = session("All is done.", &[]);
    slow.world.script(
        &["claude"],
        Err(policyd::world::WorldError::TimedOut),
        Duration::from_secs(99),
    );
    assert_eq!(objective(slow.events(&[]))["status"], "satisfied");
}

#[test]
fn the_same_question_is_asked_once() {
    let mut scene = session("All is done.", &[NOT_DONE, DONE]);
    let asked = |scene: &Scene| scene.world.ran().len();
    for _ in 0..3 {
        assert_eq!(objective(&scene)["status"], "unsatisfied");
    }
    assert_eq!(asked(&scene), 1);
    // What the client writes of a block is no work.
    let feedback = json!({"type": "user", "uuid": "f", "isMeta": true,
        "message": {"role": "user", "content": "Stop hook feedback: not done yet"}});
    scene.events(&[json!({"record": feedback})]);
    assert_eq!(objective(&scene)["status"], "unsatisfied");
    assert_eq!(asked(&scene), 1);
    scene.events(&[
        json!({"tool": "Bash", "input": {"command": "cargo test"}}),
        json!({"claude_user_tool_result": "test result: ok. 4 passed; 0 failed"}),
    ]);
    assert_eq!(objective(&scene)["status"], "satisfied");
    assert_eq!(asked(&scene), 2, "the session went on");
    scene.world.advance(Duration::from_secs(3600));
    assert_eq!(objective(&scene)["status"], "satisfied");
    assert_eq!(asked(&scene), 3, "answers do not last for ever");
}

#[test]
fn a_judge_that_finds_other_words_each_time_does_not_hold_again() {
    let reply =
        |number: usize| format!(r#"{{"objective_completion": "NOT SATISFIED: reason {number}"}}"#);
    let replies: Vec<String> = (0..9).map(reply).collect();
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let mut scene = session("All is done.", &replies);
    let mut decisions = vec![];
    for number in 0..3 {
        decisions.push(scene.stop().decision());
        scene.work().events(&[json!({"assistant": format!("It is done ({number}).")})]);
    }
    for number in 0..4 {
        scene
            .events(&[json!({"user": "Why?"}), json!({"assistant": format!("Because {number}.")})]);
        decisions.push(scene.stop().decision());
    }
    let expected = ["block", "block", "approve", "approve", "approve", "approve", "approve"];
    assert_eq!(decisions, expected);
}

#[test]
fn a_judge_that_cannot_be_asked_is_told_of() {
    let scene = session("All is done.", &[]);
    let problems = scene.report()["problems"].clone();
    assert_eq!(problems[0], "probe `judge`: `claude` could not be run: no such file or folder");
}

#[test]
fn without_being_switched_on_no_model_is_asked() {
    let scene = session("I am still working on it.", &[DONE]);
    scene.world.put("/work/.policyd/policies/probes.yaml", "[]");
    assert_eq!(objective(&scene)["consequence"], "warns");
    assert_eq!(scene.world.ran(), []);
}

#[test]
fn a_slow_world_is_answered_before_a_client_gives_up() {
    // `policyd install` writes a timeout of 20 seconds into each hook line.
    let client = Duration::from_secs(20);
    let mut scene = Scene::new();
    let mut probes = String::new();
    let mut rules = String::new();
    for id in 0..6 {
        probes.push_str(&format!(
            "- {{id: slow{id}, command: [slow{id}], timeout: 6s, parse: text}}\n"
        ));
        rules.push_str(&format!(
            "- {{id: slow_rule{id}, category: C, question: Q, severity: blocker, details: slow, \
             applicable_session_types: ['*'], satisfied: 'probes.slow{id}.text(\"\") == \"x\"'}}\n"
        ));
        let takes = Duration::from_secs(6);
        scene.world.script(&[format!("slow{id}").as_str()], Err(WorldError::TimedOut), takes);
    }
    scene.world.put("/work/.policyd/policies/probes.yaml", probes);
    scene.world.put("/work/.policyd/policies/considerations.yaml", rules);
    scene.events(&[json!({"user": "Add a parser"}), json!({"assistant": "Done."})]);
    let began = scene.world.elapsed();
    let said = scene.stop();
    let took = scene.world.elapsed().saturating_sub(began);
    assert_eq!((said.code, said.decision().as_str()), (0, "approve"), "{said:?}");
    assert!(took >= Duration::from_secs(6) && took < client, "{took:?}");
}
