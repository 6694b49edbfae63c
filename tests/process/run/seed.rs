//! The validation criteria of seed 004 about restarts, each as a test of that name. Tokens are counted
//! as the seed does it (`meter: cumulative`, 70 % of 200,000) unless said otherwise.

use policyd::world::fake::Play;
use serde_json::json;

use super::stage::{Stage, changes, looks, signals, usage};

const CUMULATIVE: &str = "meter: cumulative\n";

fn stage() -> Stage {
    Stage::new().with_pack("context.yaml", CUMULATIVE)
}

/// A turn that uses so many tokens and changes something.
fn working(stage: &Stage, tokens: u64, content: &str) {
    stage.play([changes(content)].into_iter().chain(usage(tokens, 0, 0.5)));
}

#[test]
fn loop_breaks_with_status_context_exhaustion_when_the_threshold_is_crossed_mid_loop() {
    let stage = stage();
    working(&stage, 80_000, "a");
    working(&stage, 60_000, "b");
    let said = stage.run(&["--max-restarts", "0", "--max-iterations", "9"]);
    assert_eq!((said.code, said.status().as_str()), (12, "context_exhaustion"));
    assert_eq!(stage.prompts().len(), 2);
    assert_eq!(stage.state()["phase"]["status"], "context_exhaustion");
}

#[test]
fn below_the_threshold_the_loop_goes_on() {
    let stage = stage();
    for content in ["a", "b", "c"] {
        working(&stage, 46_000, content);
    }
    let said = stage.run(&["--max-restarts", "0", "--max-iterations", "3"]);
    assert_eq!((said.code, said.status().as_str()), (11, "max_iterations"));
}

#[test]
fn context_exhaustion_is_restartable() {
    let stage = stage();
    for content in ["a", "b", "c", "d"] {
        working(&stage, 140_000, content);
    }
    let said = stage.run(&["--max-restarts", "2", "--max-iterations", "50"]);
    assert_eq!((said.code, said.status().as_str()), (12, "context_exhaustion"));
    let state = stage.state();
    assert_eq!((state["restarts"].as_u64(), state["session"].as_u64()), (Some(2), Some(3)));
}

#[test]
fn summary_is_injected_into_the_goal_on_restart_so_the_fresh_session_has_context() {
    let stage = stage();
    for content in ["a", "b", "c"] {
        working(&stage, 140_000, content);
    }
    stage.run(&["--max-restarts", "2", "--max-iterations", "3"]);
    let prompts = stage.prompts();
    assert!(!prompts[0].contains("Previous Session Context"));
    for later in &prompts[1..] {
        assert!(
            later.starts_with("Do the thing\n\n## Previous Session Context (Summarized)\n"),
            "{later}"
        );
        assert_eq!(later.matches("Previous Session Context").count(), 1, "it is never nested");
    }
}

#[test]
fn context_exhaustion_warning_event_is_emitted_when_the_threshold_is_crossed() {
    let stage = stage();
    working(&stage, 10_000, "a");
    working(&stage, 130_000, "b");
    stage.run(&["--max-restarts", "0"]);
    let warned = stage.logged("loop.context_exhaustion_warning");
    assert_eq!(warned.len(), 1);
    for (field, value) in [
        ("iteration", 2),
        ("usage_pct", 70),
        ("threshold", 70),
        ("input_tokens", 140_000),
        ("output_tokens", 0),
        ("window", 200_000),
    ] {
        assert_eq!(warned[0][field], value, "{field}");
    }
}

#[test]
fn context_exhaustion_restart_event_is_emitted_on_restart() {
    let stage = stage();
    working(&stage, 140_000, "a");
    working(&stage, 1, "b");
    stage.run(&["--max-iterations", "2"]);
    let restarted = stage.logged("loop.context_exhaustion_restart");
    assert_eq!(restarted.len(), 1);
    for (field, value) in [("restart", 1), ("prev_iteration", 1), ("iteration", 0)] {
        assert_eq!(restarted[0][field], value, "{field}");
    }
}

#[test]
fn context_usage_event_is_emitted_per_iteration_with_usage_pct() {
    let stage = stage();
    for content in ["a", "b", "c"] {
        working(&stage, 40_000, content);
    }
    stage.run(&["--max-iterations", "3"]);
    let used: Vec<_> =
        stage.logged("loop.context_usage").iter().map(|it| it["usage_pct"].as_u64()).collect();
    assert_eq!(used, [Some(20), Some(40), Some(60)]);
}

#[test]
fn what_stands_before_the_model_counts_where_the_pack_says_nothing() {
    let stage = Stage::new();
    working(&stage, 90_000, "a");
    working(&stage, 90_000, "b");
    working(&stage, 140_000, "c");
    stage.run(&["--max-restarts", "0", "--max-iterations", "9"]);
    let warned = stage.logged("loop.context_exhaustion_warning");
    assert_eq!(warned.len(), 1, "180,000 tokens of two conversations fill none");
    assert_eq!(warned[0]["iteration"], 3);
}

#[test]
fn finished_work_is_never_thrown_away() {
    let stage = stage();
    stage.play(
        [changes("a"), looks(), signals("COMPLETION_REQUESTED")]
            .into_iter()
            .chain(usage(190_000, 0, 0.5)),
    );
    let said = stage.run(&[]);
    assert_eq!((said.code, said.status().as_str()), (0, "complete"));
    assert!(stage.logged("loop.context_exhaustion_restart").is_empty());
}

#[test]
fn the_summary_says_goal_iteration_files_errors_and_tests_in_at_most_2000_characters() {
    let stage = stage();
    let edits: Vec<Play> = (0..90)
        .map(|it| {
            let input =
                json!({"file_path": format!("/work/src/a_long_name_{it}.rs"), "content": "x"});
            Play::says(json!({"type": "assistant", "message": {"id": format!("w{it}"), "content": [
                {"type": "tool_use", "id": format!("w{it}"), "name": "Write", "input": input}]}}))
        })
        .collect();
    stage.play([changes("a")].into_iter().chain(edits).chain(usage(150_000, 0, 0.5)));
    working(&stage, 1, "b");
    stage.run(&["--max-iterations", "2"]);
    let summary = stage.file("context-summary.md");
    assert!(summary.trim_end().chars().count() <= 2_000, "{}", summary.chars().count());
    for part in [
        "## Goal\nDo the thing",
        "turn 1 of 2",
        "a_long_name_",
        "## Recent Errors",
        "## Test Status",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    assert!(stage.prompts()[1].contains(summary.trim()));
}
