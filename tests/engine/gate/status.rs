//! `policyd status`: rows of projects, and the registry that lists them.

use serde_json::{Value, json};

use super::scene::{Called, Scene, TRANSCRIPT};

fn called(scene: &Scene, line: &str) -> Called {
    let words: Vec<&str> = ["policyd"].into_iter().chain(line.split_whitespace()).collect();
    scene.run(&words, b"")
}

fn rows(scene: &Scene, line: &str) -> Vec<Value> {
    let called = called(scene, line);
    assert!(called.code < 2, "{}", called.stderr);
    called.json()["projects"].as_array().unwrap().clone()
}

/// A session whose stop and whose command were blocked.
fn blocked() -> Scene {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    let payload = scene.payload(&json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "t9", "tool_input": {"command": "rm -rf /"}}));
    assert!(scene.call("pre-tool-use", &payload.to_string(), &[]).stdout.contains("deny"));
    assert_eq!(scene.stop().decision(), "block");
    scene
}

#[test]
fn a_row_shows_blocks_and_the_last_stop() {
    let scene = blocked();
    let [row] = rows(&scene, "status --format json").try_into().unwrap();
    assert_eq!(row["directory"], "/work");
    assert_eq!((&row["blocked_stops"], &row["blocked_calls"]), (&json!(1), &json!(1)));
    assert_eq!(row["last_stop"]["outcome"], "blocked");
    assert!(row["last_stop"]["reason"].as_str().unwrap().contains("local_testing"), "{row}");
    assert_eq!(row["urgency"], "quiet", "the agent continues");
    let text = called(&scene, "status").stdout;
    assert!(text.contains("last stop blocked: local_testing"), "{text}");
    scene.world.advance(std::time::Duration::from_secs(2 * 60 * 60));
    let [row] = rows(&scene, "status --since 1h --format json").try_into().unwrap();
    assert_eq!(row["blocked_stops"], 0);
    assert_eq!(row["last_stop"]["outcome"], "blocked", "the last stop is shown at any age");
}

#[test]
fn a_project_is_listed_from_its_first_stop_until_it_is_forgotten() {
    let scene = Scene::new();
    scene.world.set_env("XDG_STATE_HOME", "/state");
    assert!(called(&scene, "status --all").stdout.contains("no project is known yet"));
    scene.world.put("/other/.git/HEAD", "ref: refs/heads/main\n");
    let start = |folder: &str| {
        let changes =
            json!({"hook_event_name": "SessionStart", "source": "startup", "cwd": folder});
        scene.call("session-start", &scene.payload(&changes).to_string(), &[]);
    };
    start("/work");
    start("/other");
    start("/other");
    let listed = |line: &str| -> Vec<String> {
        let named = |it: &Value| it["directory"].as_str().unwrap().to_owned();
        rows(&scene, line).iter().map(named).collect()
    };
    assert_eq!(listed("status --all --format json"), ["/other", "/work"]);
    assert_eq!(listed("status /other --format json"), ["/other"]);
    assert_eq!(called(&scene, "status --forget /other").code, 0);
    assert_eq!(called(&scene, "status --forget /other").code, 1);
    assert_eq!(listed("status --all --format json"), ["/work"]);
    assert_eq!(called(&scene, "status /missing").code, 2);
}

#[test]
fn what_waits_for_a_human_comes_first_and_sets_the_exit_code() {
    let mut scene = blocked();
    scene.world.set_env("XDG_STATE_HOME", "/state");
    scene.world.put("/other/.git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(scene.work().stop().decision(), "block");
    let changes = json!({"hook_event_name": "SessionStart", "source": "startup", "cwd": "/other"});
    scene.call("session-start", &scene.payload(&changes).to_string(), &[]);
    assert_eq!(called(&scene, "status --all").code, 0);
    let opened = called(&scene, "escalation open --gate deploy --reason production");
    assert_eq!(opened.code, 0, "{}", opened.stderr);
    let all = called(&scene, "status --all");
    assert_eq!(all.code, 1);
    assert!(all.stdout.contains("question: deploy: production"), "{}", all.stdout);
    let [first, second] = rows(&scene, "status --all --format json").try_into().unwrap();
    assert_eq!((&first["directory"], &first["urgency"]), (&json!("/work"), &json!("human")));
    assert_eq!(second["directory"], "/other");
}

#[test]
fn an_invalid_pack_does_not_hide_a_project() {
    let scene = blocked();
    scene.world.set_env("POLICYD_POLICIES", "/pack");
    scene.world.put("/pack/policyd.yaml", "version: 1\nmode: nonsense\n");
    let [row] = rows(&scene, "status --format json").try_into().unwrap();
    assert!(row["problems"][0].as_str().unwrap().contains("policyd lint"), "{row}");
    assert_eq!(row["blocked_stops"], 1);
}

#[test]
fn metrics_read_a_transcript_only_if_something_changed() {
    let mut scene = blocked();
    scene.world.set_env("XDG_STATE_HOME", "/state");
    // The start of a session registers the project.
    let begins = json!({"hook_event_name": "SessionStart", "source": "startup"});
    scene.call("session-start", &scene.payload(&begins).to_string(), &[]);
    let answer = |tokens: u64| {
        json!({"type": "assistant", "message": {"role": "assistant", "model": "claude-opus-4-5",
            "usage": {"input_tokens": tokens, "output_tokens": 10},
            "content": [{"type": "text", "text": "Done."}]}})
    };
    scene.raw(&answer(50_000));
    let measured = |scene: &Scene| {
        scene.world.clear_log();
        let text = called(scene, "metrics").stdout;
        let name = "policyd_context_used_ratio{project=\"/work\"} ";
        let ratio = text.lines().find_map(|it| it.strip_prefix(name)).unwrap().to_owned();
        let read = |it: &String| it.starts_with("read") && it.contains(TRANSCRIPT);
        (ratio, scene.world.log().iter().filter(|it| read(it)).count(), text)
    };
    let (ratio, reads, first) = measured(&scene);
    assert_eq!((ratio.as_str(), reads), ("0.25", 1));
    assert_eq!(measured(&scene), (ratio.clone(), 0, first));
    scene.raw(&answer(100_000));
    assert_eq!(measured(&scene).0, "0.5", "the transcript changed");
    scene.world.set_env("CONTEXT_WINDOW_TOKENS", "400000");
    assert_eq!(measured(&scene).0, "0.25", "a setting changed");
    assert_eq!(measured(&scene).1, 0);
    scene.world.put("/work/.policyd/policies/policyd.yaml", "version: 1\nextends: []\n");
    assert_eq!(measured(&scene).1, 1, "the pack changed");
    assert_eq!(scene.work().stop().code, 0);
    assert!(measured(&scene).1 > 0, "the session has another state");
    assert_eq!(measured(&scene).1, 0);
}

#[test]
fn metrics_count_each_decision_once() {
    let mut scene = blocked();
    scene.world.set_env("XDG_STATE_HOME", "/state");
    assert_eq!(scene.work().stop().decision(), "block");
    let expected = [
        "policyd_decisions_total{event=\"stop\",decision=\"block\"} 2",
        "policyd_rule_results_total{rule=\"local_testing\",result=\"blocked\"} 2",
        "policyd_rule_results_total{rule=\"rm_recursive\",result=\"blocked\"} 1",
        "policyd_stops_total{project=\"/work\",outcome=\"blocked\"} 2",
        "policyd_tool_calls_total{project=\"/work\",outcome=\"blocked\"} 1",
        "policyd_dead_letters{project=\"/work\"} 0",
    ];
    let first = called(&scene, "metrics");
    assert_eq!(first.code, 0, "{}", first.stderr);
    for line in expected {
        assert!(first.stdout.lines().any(|it| it == line), "{line}\n{}", first.stdout);
    }
    assert_eq!(called(&scene, "metrics").stdout, first.stdout);
    scene.world.put_folder("/metrics");
    assert_eq!(called(&scene, "metrics --textfile /metrics/policyd.prom").code, 0);
    let written = scene.world.get("/metrics/policyd.prom").unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), first.stdout);
    assert_eq!(called(&scene, "metrics --textfile /missing/policyd.prom").code, 3);
    scene.world.put("/state/policyd/metrics.json", "{ damaged");
    let damaged = called(&scene, "metrics");
    assert_eq!(damaged.code, 3);
    assert!(damaged.stderr.contains("remove it to begin again"), "{}", damaged.stderr);
}
