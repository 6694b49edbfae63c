//! What humans say to a supervised run: answers to its requests and questions, STOP, and the verdict on work that no check
//! could verify.

use std::time::Duration;

use policyd::world::fake::{FakeWorld, Play};
use serde_json::Value;

use super::stage::{Said, Stage, changes, refused, turn, usage};
use crate::support::console::call;

/// The agent asks a human, who answers during the turn.
fn asks_and_hears(answer: &'static str) -> Play {
    Play::does(move |world| {
        ask(world);
        let id = items(world)[0]["id"].as_str().unwrap().to_owned();
        let said = call(world, &["inbox", "answer", &id, answer, "use", "staging"], b"");
        assert_eq!(said.code, 0, "{said:?}");
    })
}

fn ask(world: &FakeWorld) {
    let said = call(world, &["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=Deploy now?"], b"");
    assert_eq!(said.code, 0, "{said:?}");
}

fn items(world: &FakeWorld) -> Vec<Value> {
    let said = call(world, &["inbox", "--format", "json"], b"");
    let json: Value = serde_json::from_str(&said.out).unwrap();
    json["items"].as_array().unwrap().clone()
}

fn answer(stage: &Stage, answer: &[&str]) -> Said {
    let id = items(&stage.world)[0]["id"].as_str().unwrap().to_owned();
    stage.call(&[&["inbox", "answer", &id], answer].concat())
}

fn reason(said: &Said) -> String {
    said.of("loop.end")[0]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn the_agent_receives_a_yes_and_its_text() {
    let stage = Stage::new();
    stage.play(turn("a", vec![asks_and_hears("yes")]));
    stage.play(turn("b", vec![]));
    stage.run(&["--max-iterations", "3"]);
    let prompts = stage.prompts();
    assert!(
        prompts[1].contains("ada said yes to HUMAN_REVIEW_NEEDED \"Deploy now?\": use staging"),
        "{}",
        prompts[1]
    );
    assert!(!prompts[2].contains("use staging"), "an answer is given once");
}

#[test]
fn a_no_ends_the_run_and_the_resumed_run_receives_it() {
    let waits = Stage::new().with_pack("run.yaml", "on_review: wait\n");
    for stage in [Stage::new(), waits] {
        stage.play(turn("a", vec![asks_and_hears("no")]));
        stage.play(turn("b", vec![]));
        stage.play(turn("c", vec![]));
        let said = stage.run(&["--max-iterations", "3"]);
        assert_eq!((said.code, said.status().as_str()), (14, "human_needed"));
        assert_eq!(
            reason(&said),
            "ada said no to HUMAN_REVIEW_NEEDED \"Deploy now?\": use staging"
        );
        stage.world.advance(Duration::from_secs(60));
        assert_eq!(stage.resume(&[]).status(), "max_iterations");
        assert!(stage.prompts()[1].contains("ada said no to HUMAN_REVIEW_NEEDED"));
    }
}

#[test]
fn a_request_that_ends_the_run_is_answered_before_it_is_resumed() {
    for verdict in ["yes", "no"] {
        let stage = Stage::new();
        stage.play(turn("a", vec![Play::does(ask)]));
        stage.play(turn("b", vec![]));
        let said = stage.run(&["--max-iterations", "2"]);
        assert!(reason(&said).contains("policyd inbox answer "), "{said:?}");
        stage.world.advance(Duration::from_secs(60));
        assert_eq!(answer(&stage, &[verdict, "use", "staging"]).code, 0);
        stage.world.advance(Duration::from_secs(60));
        assert_eq!(stage.resume(&[]).status(), "max_iterations");
        let wanted =
            format!("ada said {verdict} to HUMAN_REVIEW_NEEDED \"Deploy now?\": use staging");
        assert!(stage.prompts()[1].contains(&wanted), "{verdict}");
    }
}

#[test]
fn the_answer_to_a_question_about_the_task_reaches_the_resumed_run() {
    let stage = Stage::new();
    stage.play(refused("authentication_failed", "Invalid API key"));
    stage.play(turn("b", vec![]));
    assert_eq!(stage.run(&["--max-iterations", "3"]).status(), "human_needed");
    stage.world.advance(Duration::from_secs(60));
    assert_eq!(answer(&stage, &["yes", "the", "key", "is", "new"]).code, 0);
    stage.world.advance(Duration::from_secs(60));
    stage.resume(&[]);
    let prompts = stage.prompts();
    assert!(prompts[1].contains("ada said yes to ") && prompts[1].contains(": the key is new"));
}

#[test]
fn a_stop_from_before_the_run_ends_nothing() {
    let stage = Stage::new();
    assert_eq!(stage.call(&["signal", "emit", "STOP"]).code, 0);
    stage.world.advance(Duration::from_secs(60));
    stage.play(turn("a", vec![]));
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.status(), "max_iterations");
    let problems = said.of("loop.problem");
    let is_named = |it: &Value| it["problem"].as_str().unwrap().contains("is older than this run");
    assert!(problems.iter().any(is_named), "{problems:?}");
    assert_eq!(items(&stage.world), Vec::<Value>::new());
}

#[test]
fn a_human_accepts_work_that_no_check_could_verify() {
    let unseen = || {
        let stage = Stage::new().with_pack("run.yaml", "unseen_changes: end\nclaims: [exit]\n");
        stage.play([changes("a")].into_iter().chain(usage(10, 1, 0.01)));
        assert_eq!(stage.run(&[]).status(), "unverified");
        let found = items(&stage.world);
        assert_eq!(found[0]["kind"], "unverified run", "{found:?}");
        stage
    };
    let stage = unseen();
    let said = answer(&stage, &["yes", "I", "looked"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(items(&stage.world).is_empty());
    assert_eq!(stage.state()["phase"]["status"], "complete");
    assert_eq!(stage.state()["phase"]["why"], "ada accepted the work: I looked");
    let ends = stage.call(&["log", "--all", "--format", "json"]).out;
    assert_eq!(ends.matches("\"run_end\"").count(), 2, "{ends}");

    let stage = unseen();
    assert_eq!(answer(&stage, &["no"]).code, 0);
    assert!(items(&stage.world).is_empty());
    assert_eq!(stage.state()["phase"]["status"], "unverified");
    // A dismissed run can be resumed, and then waits again.
    assert_eq!(stage.state()["dismissed"], true);
    stage.resume(&[]);
    assert_eq!(stage.state()["dismissed"], false);
}

#[test]
fn a_run_that_only_continues_in_a_terminal_says_so_and_is_dismissed_by_a_no() {
    let stage = Stage::new();
    stage.play(turn("a", vec![Play::does(ask)]));
    stage.run(&[]);
    let request = items(&stage.world)[0]["id"].as_str().unwrap().to_owned();
    stage.call(&["inbox", "answer", &request, "yes"]);
    let said = answer(&stage, &["yes"]);
    assert!(said.code != 0 && said.err.contains("policyd -C /work run --resume"), "{said:?}");
    assert_eq!(answer(&stage, &["no"]).code, 0);
    assert!(items(&stage.world).is_empty());
}
