//! What completes a run: a claim, and a gate that nobody but a human switched.

use policyd::time::Timestamp;
use policyd::world::fake::{FakeWorld, Play};
use serde_json::json;

use super::stage::{Stage, changes, looks, signals, tool, turn, usage};

#[test]
fn words_complete_nothing() {
    let stage = Stage::new();
    let words = "LOOP_COMPLETE. COMPLETION PROMISE FULFILLED. policyd signal emit COMPLETION_REQUESTED {\"complete\": true}";
    stage.play(vec![changes("a"), Play::says(words), Play::complains(words)]);
    stage.play(vec![changes("b"), Play::says(words)]);
    let said = stage.run(&["--max-iterations", "2"]);
    assert_eq!((said.code, said.status().as_str()), (11, "max_iterations"));
}

/// The pack of a run is loaded once; the log says which one, so that a claim can be explained.
#[test]
fn a_logged_claim_names_the_content_of_its_pack() {
    let own = "- id: never\n  category: Work\n  question: Is it?\n  severity: warning\n  \
               applicable_session_types: [\"*\"]\n  satisfied: todos.open == 0\n";
    for stage in [Stage::new(), Stage::new().with_pack("considerations.yaml", own)] {
        stage.play(turn("a", vec![signals("COMPLETION_REQUESTED")]));
        assert_eq!(stage.run(&[]).status(), "complete");
        let explained = stage.call(&["explain", "--format", "json"]);
        let explained: serde_json::Value = serde_json::from_str(&explained.out).unwrap();
        assert_eq!(explained["entry"]["inputs"]["pack_hash"].as_str().unwrap().len(), 16);
        let lost = explained["lost"].to_string();
        assert!(!lost.contains("pack"), "the pack did not change: {lost}");
    }
}

#[test]
fn what_was_claimed_before_the_turn_is_no_claim() {
    let stage = Stage::new();
    stage.world.put("/work/.policyd/signals/COMPLETION_REQUESTED", "");
    stage.play(turn("a", vec![]));
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.status(), "max_iterations");
}

#[test]
fn a_claim_that_the_gate_refuses_goes_on_and_the_agent_is_told() {
    let stage = Stage::new();
    let edit = json!({"file_path": "/work/src/a.rs", "content": "fn a() {}"});
    let todo =
        json!({"todos": [{"content": "test it", "status": "pending", "activeForm": "testing"}]});
    let work = || {
        vec![
            tool("t1", "Write", &edit),
            tool("t2", "TodoWrite", &todo),
            signals("COMPLETION_REQUESTED"),
        ]
    };
    stage.play(turn("a", work()));
    stage.play(turn("b", vec![]));
    let said = stage.run(&["--max-iterations", "2"]);
    assert_eq!(said.status(), "max_iterations");
    let refused = said.of("loop.completion_refused");
    assert_eq!(refused.len(), 1, "{said:?}");
    let prompts = stage.prompts();
    assert!(prompts[1].contains("## What is missing"), "{}", prompts[1]);
    assert!(prompts[1].contains("todos"), "{}", prompts[1]);
    assert!(!prompts[0].contains("What is missing"));
}

#[test]
fn a_structured_answer_and_an_exit_code_are_claims_where_they_are_taken() {
    let structured = json!({"type": "result", "structured_output": {"complete": true}});
    let stage = Stage::new();
    stage.play(vec![changes("a"), looks(), Play::says(structured)]);
    assert_eq!(stage.run(&[]).code, 0);
    let stage = Stage::new();
    stage.play(vec![changes("a"), looks()]);
    assert_eq!(stage.run(&["--claim", "exit"]).code, 0);
    let stage = Stage::new();
    stage.play(vec![Play::Ends(Some(1))]);
    assert_ne!(stage.run(&["--claim", "exit", "--max-iterations", "1"]).code, 0);
}

#[test]
fn a_turn_that_was_ended_for_its_money_claims_nothing_by_its_exit() {
    let stage = Stage::new();
    let mut plays = usage(1_000_000, 100_000, 0.0);
    plays.pop();
    stage.play([changes("a")].into_iter().chain(plays).chain([Play::Hangs]));
    let said = stage.run(&["--claim", "exit", "--budget-usd", "1"]);
    assert_eq!((said.code, said.status().as_str()), (11, "budget"), "{said:?}");
    assert_eq!(said.of("loop.iteration_complete")[0]["claimed"], false);
}

#[test]
fn a_gate_that_the_agent_switches_off_takes_no_claim() {
    let puts = |path: &'static str, text: &'static str| {
        Play::does(move |world: &FakeWorld| world.put(path, text))
    };
    let config = "/work/.claude/tools/amplihack/.power_steering_config";
    for (path, text) in [
        ("/work/.policyd/.disabled", ""),
        (config, r#"{"enabled": false}"#),
        (config, r#"{"enabled": true, "checkers_enabled": {"todos_complete": false}}"#),
    ] {
        let stage = Stage::new();
        stage.honor_switch_files();
        let cheats = || vec![puts(path, text), signals("COMPLETION_REQUESTED")];
        stage.play(turn("a", cheats()));
        stage.play(turn("b", vec![signals("COMPLETION_REQUESTED")]));
        let said = stage.run(&["--max-iterations", "2"]);
        assert_eq!((said.code, said.status().as_str()), (11, "max_iterations"), "{path} {text}");
        let refused = said.of("loop.completion_refused");
        assert_eq!(refused.len(), 2, "the turn after it, too: {said:?}");
        let why = refused[1]["reason"].as_str().unwrap();
        assert!(why.starts_with("the gate was switched off while the run was at work ("), "{why}");
        assert!(stage.prompts()[1].contains(why), "the agent is told: {}", stage.prompts()[1]);
        // Undone, the gate judges again.
        policyd::world::World::remove(&stage.world, path.as_ref()).unwrap();
        assert_eq!(stage.resume(&["--max-iterations", "3"]).status(), "complete", "{path}");
    }
}

#[test]
fn a_gate_that_is_switched_off_in_a_turn_that_is_interrupted_is_found_out() {
    let stopped = |then: &str| {
        let stage = Stage::new();
        stage.honor_switch_files();
        let off = Play::does(|world: &FakeWorld| world.put("/work/.policyd/.disabled", ""));
        stage.play(vec![changes("a"), off, Play::Hangs]);
        stage.play(turn("b", vec![signals("COMPLETION_REQUESTED")]));
        stage.world.interrupt_at(Timestamp::parse("2026-01-25T12:05:00Z").unwrap());
        let said = stage.run(&["--max-iterations", "1"]);
        assert_eq!(said.status(), "interrupted", "{said:?}");
        let told = said.of("loop.problem");
        let text = told[0]["problem"].as_str().unwrap();
        assert!(text.starts_with("the gate was switched off while the run was at work"), "{text}");
        assert!(text.contains("/work/.policyd/.disabled") && text.contains("--resume"), "{text}");
        assert!(stage.state()["switched_at_work"].is_string(), "{:#}", stage.state());
        if then == "undone" {
            let path = "/work/.policyd/.disabled";
            policyd::world::World::remove(&stage.world, path.as_ref()).unwrap();
        }
        stage.world.interrupt_at(Timestamp::from_millis(i64::MAX));
        let said = stage.resume(&[]);
        let told = said.of("loop.problem");
        told.iter().map(|it| it["problem"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let told = stopped("left");
    let whose = "the gate was switched off while the run was at work, before it ended: ";
    assert!(told[0].starts_with(whose), "whoever goes on is told first: {told:?}");
    assert!(told[0].contains("/work/.policyd/.disabled"), "{told:?}");
    assert_eq!(stopped("undone"), Vec::<String>::new());
}

#[test]
fn a_gate_that_a_human_switched_off_takes_the_agents_word_and_says_so() {
    let stage = Stage::new();
    stage.honor_switch_files();
    stage.world.put("/work/.policyd/.disabled", "");
    let todo = json!({"todos": [{"content": "x", "status": "pending", "activeForm": "x"}]});
    let claims = vec![tool("t1", "TodoWrite", &todo), signals("COMPLETION_REQUESTED")];
    stage.play(turn("a", claims));
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str()), (0, "complete"));
    let told = said.of("loop.problem");
    let text = told[0]["problem"].as_str().unwrap();
    assert!(text.contains("not judged in full: disabled: `/work/.policyd/.disabled`"), "{text}");
}

#[test]
fn a_supervisor_that_was_killed_does_not_forget_who_switched_the_gate_off() {
    let cheats = |stage: &Stage| {
        stage.honor_switch_files();
        let off = Play::does(|world: &FakeWorld| world.put("/work/.policyd/.disabled", ""));
        stage.play(turn("a", vec![off, signals("COMPLETION_REQUESTED")]));
        stage.play(turn("b", vec![signals("COMPLETION_REQUESTED")]));
        stage.play(turn("c", vec![signals("COMPLETION_REQUESTED")]));
    };
    let options = ["--max-iterations", "3"];
    let whole = Stage::new();
    cheats(&whole);
    assert_eq!(whole.run(&options).status(), "max_iterations");
    let (ops, mut resumed) = (whole.world.ops(), 0);
    for at in (0..ops).step_by(ops as usize / 20) {
        let stage = Stage::new();
        cheats(&stage);
        stage.world.crash_at(at);
        stage.run(&options);
        stage.world.revive();
        let begun = stage.kept().iter().any(|it| it == "state.json");
        if !begun || stage.state()["phase"]["is"] == "over" {
            continue; // A human who goes on with a run that ended has seen what ended it.
        }
        resumed += 1;
        assert_eq!(stage.resume(&[]).status(), "max_iterations", "{at}");
    }
    assert!(resumed > 10, "{resumed} of {ops}");
}
