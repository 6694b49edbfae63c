//! Whole runs on a simulated machine: what is printed, kept and told, with a clock that only moves
//! when something takes time.

use std::time::Duration;

use policyd::time::Timestamp;
use policyd::world::WorldError;
use policyd::world::fake::{Op, Play};
use serde_json::{Value, json};

use super::stage::{RUNS, Stage, changes, refused, signals, tool, turn, usage};
use crate::support::snapshot;

fn words<'w>(more: &[&'w str]) -> Vec<&'w str> {
    [&["run", "--goal", "Do the thing"], more, &["--", "agent"]].concat()
}

#[test]
fn a_run_that_completes_tells_each_turn() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    stage.play(refused("rate_limit", "429 rate_limit_error. Retry-After: 90"));
    stage.play(turn("b", vec![signals("COMPLETION_REQUESTED")]));
    let said = stage.call(&words(&["--budget-usd", "5"]));
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    snapshot("run", "text__a_run_that_completes", said.out);
    snapshot("run", "prompt__the_second_turn", &stage.prompts()[1]);
    snapshot("run", "progress__after_two_turns", stage.file("progress.md"));
    snapshot("run", "kept__after_a_run", stage.kept().join("\n"));
}

#[test]
fn exactly_as_many_turns_as_are_asked_for() {
    for most in ["1", "2", "7"] {
        let stage = Stage::new();
        (0..9).for_each(|it| {
            stage.play(turn(&format!("{it}"), vec![]));
        });
        let said = stage.run(&["--max-iterations", most]);
        assert_eq!((said.code, stage.prompts().len().to_string().as_str()), (11, most));
    }
}

#[test]
fn after_the_last_turn_nothing_is_waited_for() {
    let stage = Stage::new();
    for _ in 0..3 {
        stage.play(refused("unclassified", "no idea what this is"));
    }
    let said = stage.run(&["--max-iterations", "2"]);
    assert_eq!((said.code, stage.prompts().len()), (11, 2));
    assert_eq!(said.of("loop.wait").len(), 1, "before the second turn");
}

#[test]
fn what_passes_by_itself_is_made_again_and_uses_up_no_turn() {
    let stage = Stage::new();
    stage.play(refused("overloaded", "529 overloaded_error"));
    stage.play(refused("overloaded", "529 overloaded_error"));
    stage.play(turn("a", vec![]));
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.status(), "max_iterations");
    assert_eq!((stage.prompts().len(), stage.state()["iteration"].as_u64()), (3, Some(1)));
    let waits: Vec<_> =
        said.of("loop.wait").iter().map(|it| it["wait_ms"].as_u64().unwrap()).collect();
    assert_eq!(waits.len(), 2);
    assert!(waits[0] < waits[1], "{waits:?}");
}

#[test]
fn the_server_says_how_long_to_wait() {
    let stage = Stage::new();
    stage.play(refused("rate_limit", "rate_limit_error Retry-After: 77"));
    stage.play(turn("a", vec![]));
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.of("loop.wait")[0]["wait_ms"], 77_000);
}

#[test]
fn credentials_are_not_waited_for() {
    let stage = Stage::new();
    stage.play(refused("authentication_failed", "Invalid API key"));
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str(), stage.prompts().len()), (14, "human_needed", 1));
    // What happened overnight.
    let shown = stage.call(&["log", "--since", "12h", "--notable"]).out;
    assert!(shown.contains("run human_needed") && shown.contains("(1 turn, "), "{shown}");
}

#[test]
fn an_open_breaker_ends_the_run_or_is_waited_for() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    stage.call(&["breaker", "trip", "api/agent", "--reason", "a strike"]);
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!((said.code, said.status().as_str(), stage.prompts().len()), (13, "breaker_open", 0));
    stage.call(&["breaker", "trip", "api/agent", "--for", "5m", "--reason", "a strike"]);
    let said = stage.resume(&[]);
    assert_eq!((said.status().as_str(), stage.prompts().len()), ("max_iterations", 1));
    assert!(!said.of("loop.wait").is_empty());
}

#[test]
fn a_task_that_fails_again_and_again_becomes_a_dead_letter() {
    let stage = Stage::new();
    for number in 0..9 {
        let line = format!("error[E0{number}]: build failed");
        stage.play(vec![changes(format!("{number}")), Play::complains(line), Play::Ends(Some(1))]);
    }
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str(), stage.prompts().len()), (14, "dead_letter", 5));
    let dead = stage.world.get("/work/.policyd/queue/dead-letter.json").unwrap();
    let dead: Value = serde_json::from_slice(&dead).unwrap();
    assert_eq!(dead["tasks"][0]["attempts"].as_array().unwrap().len(), 5);
    assert_eq!(dead["tasks"][0]["task_data"]["title"], "Do the thing");
}

#[test]
fn finished_work_without_a_claim_ends_after_one_quiet_turn() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    stage.play(usage(10, 1, 0.01));
    let said = stage.run(&[]);
    let ended = (said.code, said.status(), stage.prompts().len());
    assert_eq!(ended, (0, "complete_unclaimed".to_owned(), 2), "{said:?}");
    assert!(said.out.contains("the work looks complete, but was never claimed"), "{said:?}");
    assert!(said.of("loop.completion_refused").is_empty());
}

#[test]
fn open_work_without_a_claim_goes_on_until_nothing_changes() {
    let todo =
        json!({"todos": [{"content": "test it", "status": "pending", "activeForm": "testing"}]});
    let stage = Stage::new();
    stage.play(turn("a", vec![tool("t", "TodoWrite", &todo)]));
    stage.play(usage(10, 1, 0.01));
    let said = stage.run(&[]);
    let ended = (said.status(), stage.prompts().len());
    assert_eq!(ended, ("circuit_breaker".to_owned(), 4), "{said:?}");
    assert!(said.of("loop.completion_refused").is_empty(), "nothing was claimed");
}

#[test]
fn a_quiet_turn_is_no_end_where_runs_may_be_idle() {
    let stage = Stage::new().with_pack("run.yaml", "stuckness: {idle: 0, signs: 5}\n");
    stage.play(turn("a", vec![]));
    stage.play(usage(10, 1, 0.01));
    assert_eq!(stage.run(&["--max-iterations", "4"]).status(), "max_iterations");
}

#[test]
fn nothing_changes_three_times_and_it_is_over() {
    let stage = Stage::new();
    stage.play(usage(10, 1, 0.01));
    let said = stage.run(&[]);
    assert_eq!(
        (said.code, said.status().as_str(), stage.prompts().len()),
        (13, "circuit_breaker", 3)
    );
}

#[test]
fn to_and_fro_is_told_to_the_agent_then_restarted() {
    let stage = Stage::new();
    let line = || Play::complains("error: tests failed");
    for content in ["a", "b", "a", "b", "a", "b", "a"] {
        stage.play(vec![changes(content), line(), Play::Ends(Some(1))]);
    }
    stage.play(turn("done", vec![signals("COMPLETION_REQUESTED")]));
    let said = stage.run(&[]);
    let found = &said.of("loop.stuckness_detected")[0];
    assert_eq!(found["reasons"], "same_error, oscillation");
    assert_eq!(found["signals"], 2);
    assert!(stage.prompts().iter().any(|it| it.contains("You seem to be stuck")));
    let restarts = said.of("loop.restart");
    let reasons: Vec<&Value> = restarts.iter().map(|it| &it["reason"]).collect();
    assert_eq!(reasons, ["context_clear", "stuck_restart"], "the same error asks for it first");
}

#[test]
fn the_money_is_never_forgotten_and_its_end_is_the_end() {
    let stage = Stage::new();
    (0..9).for_each(|it| {
        stage.play([changes(format!("{it}"))].into_iter().chain(usage(10, 1, 0.5)));
    });
    let said = stage.run(&["--budget-usd", "2"]);
    assert_eq!((said.code, said.status().as_str(), stage.prompts().len()), (11, "budget", 4));
    assert_eq!(said.of("pipeline.budget_exhausted").len(), 1);
    let again = stage.resume(&[]);
    assert_eq!(
        (again.status().as_str(), stage.prompts().len()),
        ("budget", 4),
        "nothing was reset"
    );
    let more = stage.resume(&["--budget-usd", "3"]);
    assert_eq!((more.status().as_str(), stage.prompts().len()), ("budget", 6));
    assert_eq!(stage.state()["spend"]["cost_usd"], 3.0);
}

#[test]
fn an_absurd_cost_is_short_and_never_infinite() {
    let stage = Stage::new();
    stage.play(usage(10, 1, 1e308));
    let said = stage.call(&words(&["--budget-usd", "5", "--format", "text"]));
    for text in ["11 tokens, 1.00e12 USD", "budget: 1.00e12 of 5.00 USD are spent"] {
        assert!(said.out.contains(text), "{}", said.out);
    }
    assert_eq!(stage.state()["spend"]["cost_usd"], 1e12);
}

#[test]
fn the_money_may_end_in_the_middle_of_a_turn() {
    let stage = Stage::new();
    let mut plays = usage(1_000_000, 100_000, 0.0);
    plays.pop();
    plays.push(Play::Hangs);
    stage.play(plays);
    let said = stage.run(&["--budget-usd", "1"]);
    assert_eq!((said.code, said.status().as_str()), (11, "budget"));
    assert!(stage.world.log().iter().any(|it| it == "killed"));
}

#[test]
fn a_turn_that_hangs_is_ended_at_its_deadline_and_one_that_is_silent_before() {
    for (pack, took) in [
        ("turn: {longest: 10m, silence: 1h}", 600_000),
        ("turn: {longest: 1h, silence: 2m}", 120_000),
    ] {
        let stage = Stage::new().with_pack("run.yaml", pack);
        stage.play(vec![Play::says("hello"), Play::Hangs]);
        let said = stage.run(&["--max-iterations", "1"]);
        let turn = &said.of("loop.iteration_complete")[0];
        assert_eq!((&turn["took_ms"], &turn["failure"]), (&json!(took), &json!("timeout")));
        assert!(stage.world.log().iter().any(|it| it == "killed"));
    }
}

#[test]
fn what_is_said_while_a_turn_is_ended_is_heard() {
    let stage = Stage::new().with_pack("run.yaml", "turn: {longest: 10m, silence: 1h}");
    stage.play([Play::Hangs].into_iter().chain(usage(10, 1, 0.5)));
    let said = stage.run(&["--max-iterations", "1"]);
    let turn = &said.of("loop.iteration_complete")[0];
    assert_eq!((&turn["failure"], &turn["cost_usd"]), (&json!("timeout"), &json!(0.5)));
    assert_eq!(stage.state()["spend"]["cost_usd"], 0.5);
}

#[test]
fn a_turn_that_cannot_be_waited_for_failed_and_cost_what_it_cost() {
    let stage = Stage::new();
    let lost = Play::Lost(WorldError::Io("no child processes".to_owned()));
    stage.play(usage(10, 1, 0.5).into_iter().chain([lost]));
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.status(), "max_iterations", "{said:?}");
    let turn = &said.of("loop.iteration_complete")[0];
    assert_eq!(
        (&turn["error"], &turn["cost_usd"]),
        (&json!("it could not be waited for: no child processes"), &json!(0.5))
    );
}

#[test]
fn an_interrupt_ends_the_agent_and_leaves_a_run_that_goes_on() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    let hangs = usage(10, 1, 4.5).into_iter().chain([Play::Hangs]);
    stage.play(hangs.collect::<Vec<_>>());
    stage.play(turn("b", vec![signals("COMPLETION_REQUESTED")]));
    stage.world.interrupt_at(Timestamp::parse("2026-01-25T12:05:00Z").unwrap());
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str()), (130, "interrupted"));
    assert!(stage.world.log().iter().any(|it| it == "killed"));
    let spent = || stage.state()["spend"]["cost_usd"].as_f64().unwrap();
    assert!(spent() > 4.5, "what the turn that broke off cost: {}", spent());
    stage.world.interrupt_at(Timestamp::from_millis(i64::MAX));
    let said = stage.resume(&[]);
    assert_eq!((said.code, said.status().as_str()), (0, "complete"));
    assert!(spent() > 4.5, "{}", spent());
    assert_eq!(stage.state()["iteration"], 2, "the turn was made again under its number");
}

#[test]
fn a_flood_and_garbage_are_bounded() {
    let stage = Stage::new();
    let flood = vec![b'x'; 1024 * 1024];
    let mut plays: Vec<Play> = (0..40).map(|_| Play::Says(flood.clone())).collect();
    plays.extend([Play::Says(b"\n\xff\xfe{]\x00\n".to_vec()), Play::Says(b"[1,2".to_vec())]);
    stage.play([changes("a")].into_iter().chain(plays).chain(usage(10, 1, 0.5)));
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.status(), "max_iterations");
    assert_eq!(stage.state()["spend"]["cost_usd"], 0.5, "what came after the flood was read");
    assert!(stage.file("iteration-1.log").len() < 17 * 1024 * 1024);
}

#[test]
fn stop_pause_and_input_are_heard_between_two_turns() {
    let stage = Stage::new();
    let input = Play::does(|world| {
        world.put("/work/.policyd/signals/HUMAN_INPUT", "{\"text\": \"use the other parser\"}");
    });
    stage.play(turn("a", vec![input, signals("PAUSE")]));
    stage.play(turn("b", vec![signals("STOP")]));
    let unpause = Timestamp::parse("2026-01-25T12:10:00Z").unwrap();
    // A human takes PAUSE away after a while: here it is void then.
    stage.world.interrupt_at(unpause);
    let said = stage.run(&[]);
    assert_eq!(said.of("loop.paused").len(), 1);
    assert_eq!(said.status(), "interrupted");
    stage.world.interrupt_at(Timestamp::from_millis(i64::MAX));
    policyd::world::World::remove(&stage.world, "/work/.policyd/signals/PAUSE".as_ref()).unwrap();
    let said = stage.resume(&[]);
    assert_eq!((said.code, said.status().as_str()), (130, "stopped"));
    assert!(
        stage.prompts()[1].contains("## Message from a human\nuse the other parser"),
        "{}",
        stage.prompts()[1]
    );
    let left = stage.call(&["signal", "list", "--format", "json"]);
    assert_eq!(left.out, "", "each was consumed");
}

#[test]
fn a_human_who_must_decide_ends_the_run_and_is_named() {
    let stage = Stage::new();
    let asks = Play::does(|world| {
        world.put(
            "/work/.policyd/signals/HUMAN_REVIEW_NEEDED",
            "{\"reason\": \"delete the old data?\"}",
        );
    });
    stage.play(turn("a", vec![asks]));
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str()), (14, "human_needed"));
    let why = said.of("loop.end")[0]["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("delete the old data?"), "{why}");
}

#[test]
fn a_clear_context_is_made_in_the_six_steps_of_the_seed() {
    let stage = Stage::new();
    let own = "/work/.policyd/";
    stage.world.put(format!("{own}memory/handoffs/too-old.md"), "an old handoff");
    stage.world.advance(Duration::from_secs(25 * 3_600));
    stage.world.put(format!("{own}memory/ledgers/LEDGER-1.md"), "an old ledger");
    stage.world.advance(Duration::from_secs(60));
    stage.world.put(format!("{own}memory/ledgers/LEDGER-2.md"), "the new ledger");
    stage.world.put(format!("{own}CONTINUITY.md"), "next: the parser");
    stage.play(turn("a", vec![signals("CONTEXT_CLEAR_REQUESTED")]));
    stage.play(turn("b", vec![]));
    let said = stage.run(&["--max-iterations", "2"]);
    assert_eq!(said.of("loop.restart")[0]["reason"], "context_clear");
    let prompt = &stage.prompts()[1];
    for part in ["Previous Session Context", "the new ledger", "next: the parser"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    for part in ["an old ledger", "an old handoff"] {
        assert!(!prompt.contains(part), "{part}: {prompt}");
    }
    assert_eq!(stage.call(&["signal", "list", "--format", "json"]).out, "", "the signal is gone");
    assert_eq!(
        (stage.state()["session"].as_u64(), stage.state()["restarts"].as_u64()),
        (Some(2), Some(0))
    );
}

#[test]
fn the_archive_holds_what_a_session_left_and_what_is_needed_stays() {
    let stage = Stage::new().with_pack("context.yaml", "meter: cumulative\n");
    stage.play([changes("a")].into_iter().chain(usage(10, 1, 0.1)));
    stage.play(
        [changes("b"), Play::complains("error: it broke")]
            .into_iter()
            .chain(usage(150_000, 1, 0.1))
            .chain([Play::Ends(Some(1))]),
    );
    stage.play([changes("c")].into_iter().chain(usage(10, 1, 0.1)));
    stage.run(&["--max-iterations", "3"]);
    let kept = stage.kept();
    for name in ["iteration-1.log", "iteration-2.log", "context-summary.md", "progress.md"] {
        assert!(kept.contains(&format!("archive/session-1/{name}")), "{name}: {kept:?}");
    }
    for name in ["iteration-3.log", "context-summary.md", "progress.md", "state.json"] {
        assert!(kept.contains(&name.to_owned()), "{name}: {kept:?}");
    }
    assert!(!kept.contains(&"iteration-1.log".to_owned()));
}

#[test]
fn one_run_at_a_time() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    let lock = std::path::Path::new("/work/.policyd/runs/.lock");
    stage.world.put_folder("/work/.policyd/runs");
    let held = policyd::world::World::lock(&stage.world, lock, Duration::ZERO).unwrap();
    let said = stage.run(&[]);
    assert_eq!((said.code, stage.prompts().len()), (3, 0));
    assert!(said.err.contains("another run is active"), "{}", said.err);
    drop(held);
    assert_eq!(stage.run(&["--max-iterations", "1"]).code, 11);
}

#[test]
fn what_is_asked_wrongly_is_a_usage_error_and_runs_nothing() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    for bad in [
        &["--budget-usd", "10.0.0"] as &[&str],
        &["--budget-usd", "0"],
        &["--max-iterations", "-1"],
        &["--max-iterations", "many"],
        &["--claim", "words"],
        &["--turn-deadline", "90"],
    ] {
        let said = stage.run(bad);
        assert_eq!((said.code, stage.prompts().len()), (2, 0), "{bad:?}: {said:?}");
    }
    assert_eq!(stage.call(&["run", "--goal", "x"]).code, 2, "no command");
    assert_eq!(stage.call(&["run", "--", "agent"]).code, 2, "no goal");
    assert_eq!(stage.call(&["run", "--goal", " ", "--", "agent"]).code, 2, "an empty goal");
    assert_eq!(stage.resume(&[]).code, 3, "nothing to go on with");
}

#[test]
fn there_is_no_such_command() {
    let said = Stage::new().run(&[]);
    assert_eq!((said.code, said.status().as_str()), (15, "cannot_run"));
}

#[test]
fn a_goal_may_be_a_file() {
    let stage = Stage::new();
    stage.world.put("/work/GOAL.md", "# Write a parser\n");
    stage.play(turn("a", vec![]));
    stage.call(&["run", "--goal", "/work/GOAL.md", "--max-iterations", "1", "--", "agent"]);
    assert!(stage.prompts()[0].starts_with("# Write a parser\n\n"), "{}", stage.prompts()[0]);
}

#[test]
fn a_file_that_is_not_there_is_no_goal() {
    for goal in ["GAOL.md", "/work/goal", "docs/goal.txt", "./x"] {
        let said = Stage::new().call(&["run", "--goal", goal, "--", "agent"]);
        assert_eq!(said.code, 2, "{goal}: {said:?}");
        assert!(said.err.contains(&format!("could not read goal file `{goal}`")), "{said:?}");
    }
    for goal in ["Refactor", "Fix src/main.rs", "Upgrade to 2.0."] {
        let stage = Stage::new();
        stage.play(turn("a", vec![]));
        stage.call(&["run", "--goal", goal, "--max-iterations", "1", "--", "agent"]);
        assert!(stage.prompts()[0].starts_with(goal), "{goal}");
    }
}

#[test]
fn a_prompt_may_be_an_argument() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    stage.call(&[
        "run",
        "--goal",
        "go",
        "--max-iterations",
        "1",
        "--",
        "agent",
        "--ask={prompt}",
        "x",
    ]);
    let ran = stage.world.ran().into_iter().find(|it| it.argv[0] == "agent").unwrap();
    assert!(ran.argv[1].starts_with("--ask=go\n\n") && ran.argv[2] == "x");
    assert!(ran.stdin.is_empty());
    // The ids of runs that begin in one millisecond in two projects are equal.
    let mark = &ran.env.iter().find(|it| it.0 == "POLICYD_RUN").unwrap().1;
    assert!(mark.contains("/.policyd/runs/") && mark.ends_with("/1"), "{mark}");
}

#[test]
fn wherever_the_process_dies_the_run_goes_on_and_loses_no_turn() {
    let play = |stage: &Stage| {
        for content in ["a", "b", "c", "d"] {
            stage.play(turn(content, vec![]));
        }
    };
    let options = ["--max-iterations", "2"];
    let whole = Stage::new();
    play(&whole);
    whole.run(&options);
    let ops = whole.world.ops();
    assert!(ops > 50);
    for at in (0..ops).step_by(5) {
        let stage = Stage::new();
        play(&stage);
        stage.world.crash_at(at);
        stage.run(&options);
        stage.world.revive();
        let began = stage.kept().iter().any(|it| it == "state.json");
        let said = if began { stage.resume(&[]) } else { stage.run(&options) };
        let state = stage.state();
        assert_eq!(said.code, 11, "{at}: {said:?}");
        assert_eq!(state["iteration"], 2, "{at}");
        assert!(state["spend"]["cost_usd"].as_f64().unwrap() >= 0.25, "{at}");
    }
}

#[test]
fn a_run_that_cannot_be_remembered_goes_on_and_says_so() {
    let stage = Stage::new();
    stage.play(turn("a", vec![]));
    for op in [Op::Write, Op::Append, Op::CreateFolder] {
        stage.world.refuse_always(op, "", WorldError::Io("disk full".to_owned()));
    }
    stage.world.put_folder("/work/.policyd/runs");
    let said = stage.run(&["--max-iterations", "1"]);
    assert_eq!(said.status(), "max_iterations");
    assert!(said.out.contains("could not save the run"), "{}", said.out);
}

#[test]
fn old_runs_are_removed() {
    let stage = Stage::new().with_pack("run.yaml", "keep: 2\n");
    for content in ["a", "b", "c", "d"] {
        stage.play(turn(content, vec![]));
        stage.world.advance(Duration::from_secs(60));
        stage.run(&["--max-iterations", "1"]);
    }
    let files = stage.world.files();
    let states = files.iter().filter(|it| it.starts_with(RUNS) && it.ends_with("state.json"));
    assert_eq!(states.count(), 2);
}

#[test]
fn tests_that_ran_are_known_to_the_run() {
    let stage = Stage::new();
    let ran = |id: &str, output: &str, failed: bool| {
        let call = tool(id, "Bash", &json!({"command": "cargo test"}));
        let result = Play::says(json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed}]}}));
        vec![call, result]
    };
    stage.play(turn("a", ran("t1", "test result: FAILED. 1 passed; 2 failed", true)));
    stage.play(turn("b", ran("t2", "test result: ok. 3 passed; 0 failed", false)));
    stage.play(turn("c", vec![]));
    stage.run(&["--max-iterations", "3"]);
    let trail = stage.state()["trail"].clone();
    let tests: Vec<&Value> = trail.as_array().unwrap().iter().map(|it| &it["tests"]).collect();
    assert_eq!(tests, [false, true, true]);
    assert!(stage.file("progress.md").contains("- Tests: passing"));
}
