//! The triggers of `signals.yaml` at the end of a turn: an agent without hooks is given a clear context, and a
//! human asked, as one with hooks is.

use std::time::Duration;

use policyd::world::fake::Play;
use serde_json::{Value, json};

use super::stage::{Said, Stage, changes, usage};

/// A turn that changes something and says so much.
fn turn(content: &str, more: Vec<Play>) -> Vec<Play> {
    [changes(content)].into_iter().chain(more).chain(usage(10, 1, 0.01)).collect()
}

/// Iterations after which the context was cleared, and the triggers that asked for it.
fn cleared(said: &Said) -> (Vec<u64>, Vec<String>) {
    let restarts = said.of("loop.restart");
    let at = restarts.iter().filter(|it| it["reason"] == "context_clear");
    let asked = said.of("loop.signal");
    let asked = asked.iter().filter(|it| it["signal"] == "CONTEXT_CLEAR_REQUESTED");
    (
        at.map(|it| it["iteration"].as_u64().unwrap()).collect(),
        asked.map(|it| it["trigger"].as_str().unwrap().to_owned()).collect(),
    )
}

#[test]
fn after_25_iterations_the_context_is_cleared_and_counted_anew() {
    let stage = Stage::new();
    for number in 0..53 {
        stage.play(turn(&number.to_string(), vec![]));
    }
    let said = stage.run(&["--max-iterations", "52"]);
    assert_eq!(said.status(), "max_iterations");
    assert_eq!(cleared(&said), (vec![25, 50], vec!["many_iterations".to_owned(); 2]));
    assert_eq!(stage.state()["restarts"], 0, "it uses up no restart");
    assert!(stage.prompts()[25].contains("## Previous Session Context (Summarized)"));
}

#[test]
fn a_history_of_more_than_50_kb_is_cleared_and_counted_anew() {
    let text = format!("{}\n", "word ".repeat(100)).repeat(52); // 26 KB
    let said = |stage: &Stage, plain: bool| {
        for number in 0..7 {
            let says = if plain {
                vec![changes(number.to_string()), Play::says(text.as_str())]
            } else {
                let block = json!([{"type": "text", "text": text}]);
                let says = json!({"type": "assistant", "message": {"id": format!("m{number}"), "content": block}});
                turn(&number.to_string(), vec![Play::says(says)])
            };
            stage.play(says);
        }
        cleared(&stage.run(&["--max-iterations", "6"]))
    };
    for plain in [false, true] {
        let (at, asked) = said(&Stage::new(), plain);
        assert_eq!(at, [2, 4], "plain: {plain}: there is no turn after the sixth");
        assert_eq!(asked, ["long_history", "long_history"]);
    }
}

#[test]
fn an_error_that_comes_three_times_clears_the_context() {
    let stage = Stage::new();
    for number in 0..9 {
        let line = Play::complains("error: tests failed");
        stage.play(vec![changes(number.to_string()), line, Play::Ends(Some(1))]);
    }
    let said = stage.run(&["--max-iterations", "5"]);
    assert_eq!(cleared(&said), (vec![3], vec!["same_error".to_owned()]));
    assert_eq!(said.status(), "dead_letter", "that is no way out: {said:?}");
}

#[test]
fn the_same_error_of_a_tool_clears_it_too() {
    let stage = Stage::new();
    let mut fails = Vec::new();
    for number in 0..3 {
        let (id, message) = (format!("t{number}"), format!("m{number}"));
        fails.push(Play::says(json!({"type": "assistant", "message": {"id": message, "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}}]}})));
        fails.push(Play::says(json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "is_error": true, "content": "no rule to make target"}]}})));
    }
    stage.play(turn("a", fails));
    stage.play(turn("b", vec![]));
    stage.play(turn("c", vec![]));
    let said = stage.run(&["--max-iterations", "3"]);
    assert_eq!(cleared(&said), (vec![1], vec!["same_error".to_owned()]));
}

#[test]
fn three_drifts_clear_it() {
    let stage = Stage::new();
    let drift = |number: u32| {
        Play::does(move |world| {
            let line = json!({"timestamp": "2026-01-25T12:00:00Z", "task_id": format!("t{number}"),
                "detected_drift": "something else", "severity": "low"});
            let path = "/work/.policyd/signals/DRIFT_DETECTED";
            let before = world.get(path).unwrap_or_default();
            let text = format!("{}{line}\n", String::from_utf8(before).unwrap());
            world.put(path, text);
        })
    };
    for number in 0..5 {
        let drifts = if number < 3 { vec![drift(number)] } else { vec![] };
        stage.play(turn(&number.to_string(), drifts));
    }
    let said = stage.run(&["--max-iterations", "5"]);
    assert_eq!(cleared(&said), (vec![3], vec!["drifts".to_owned()]));
}

#[test]
fn a_pack_says_whether_and_when() {
    let pack = "clear_requests: never\n";
    let never = Stage::new().with_pack("context.yaml", pack);
    let own = "triggers:\n  - id: two\n    when: run.supervised && run.iterations >= 2\n    emit: STOP\n    reason: Enough.\n";
    let stops = Stage::new().with_pack("signals.yaml", own);
    for stage in [&never, &stops] {
        for number in 0..31 {
            stage.play(turn(&number.to_string(), vec![]));
        }
    }
    let said = never.run(&["--max-iterations", "30"]);
    assert_eq!((said.status().as_str(), cleared(&said).0), ("max_iterations", vec![]));
    let said = stops.run(&["--max-iterations", "30"]);
    assert_eq!((said.status().as_str(), stops.prompts().len()), ("stopped", 2));
}

#[test]
fn more_than_100_dollars_an_hour_ask_a_human_once() {
    let stage = Stage::new();
    for number in 0..9 {
        let plays = [changes(number.to_string())].into_iter().chain(usage(10, 1, 60.0));
        stage.play(plays);
    }
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str()), (14, "human_needed"));
    assert_eq!(stage.prompts().len(), 2, "60 dollars in half a minute are no 7,200 an hour");
    let why = said.of("loop.end")[0]["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("costs 120") && why.contains("USD per hour"), "{why}");
    let waits = stage.call(&["signal", "list", "--format", "json"]);
    let request: Value = serde_json::from_str(waits.out.lines().next().unwrap()).unwrap();
    assert_eq!(request["signal"], "HUMAN_REVIEW_NEEDED", "{waits:?}");
    let yes = stage.call(&["signal", "approve", request["id"].as_str().unwrap()]);
    assert_eq!(yes.code, 0, "{yes:?}");
    stage.world.advance(Duration::from_secs(60));
    let said = stage.resume(&["--max-iterations", "5"]);
    assert_eq!((said.status().as_str(), stage.prompts().len()), ("max_iterations", 5), "{said:?}");
}
