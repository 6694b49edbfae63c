//! Rules that look at circuit breakers, and what they cost where no rule does.

use serde_json::json;

use super::forge::verdict;
use super::scene::{Scene, TRANSCRIPT};

const RULE: &str = r#"
- id: api_is_up
  category: Own
  question: Is the model reachable?
  severity: warning
  satisfied: '!breakers["api/claude"].open'
  details: '${breakers["api/claude"].last_error}: again in ${breakers["api/claude"].retry_after} s, load ${breakers.load_level}'
"#;

fn edited() -> Scene {
    let mut scene = Scene::new();
    scene.events(&[
        json!({"user": "Add a parser"}),
        json!({"tool": "Write", "input": {"file_path": "/work/a.py", "content": "x = 1\n"}}),
        json!({"claude_user_tool_result": "ok"}),
    ]);
    scene
}

fn looked_at_breakers(scene: &Scene) -> bool {
    scene.world.log().iter().any(|it| it.contains("circuit-breakers.json"))
}

#[test]
fn a_rule_sees_where_a_breaker_stands_and_an_explanation_sees_the_same() {
    let scene = edited();
    scene.world.put("/work/.policyd/policies/considerations.yaml", RULE);
    let state = |report: &serde_json::Value| verdict(report, "api_is_up")["status"].clone();
    assert_eq!(state(&scene.report()), "satisfied");
    for _ in 0..3 {
        let failed = ["policyd", "breaker", "record", "api/claude", "failure", "--error", "529"];
        assert_eq!(scene.run(&failed, b"").code, 0);
    }
    let report = scene.report();
    let verdict = verdict(&report, "api_is_up");
    assert_eq!(verdict["status"], "unsatisfied");
    assert_eq!(verdict["details"], "529: again in 300 s, load reduced");
    assert_eq!(scene.run(&["policyd", "breaker", "reset", "api/claude"], b"").code, 0);
    let explained = scene.run(&["policyd", "explain", "--format", "json"], b"").json();
    assert_eq!(explained["same"], true, "{explained:#}");
    let tried = scene.run(&["policyd", "try", "breakers.load_level"], b"").stdout;
    assert!(tried.contains("normal"), "{tried}");
}

#[test]
fn nobody_looks_at_breakers_for_a_pack_that_does_not_ask() {
    let scene = edited();
    let off = "- {id: api_works, override: true, enabled: false}\n";
    scene.world.put("/work/.policyd/policies/policyd.yaml", "version: 1\n");
    scene.world.put("/work/.policyd/policies/reactions.yaml", off);
    scene.stop();
    assert!(!looked_at_breakers(&scene));
    scene.world.put("/work/.policyd/policies/considerations.yaml", RULE);
    scene.stop();
    assert!(looked_at_breakers(&scene));
}

/// Breakers of two models that failed, and whose next call is let through to see whether they work again.
const HALF_OPEN: &str = r#"{
  "api/claude/opus": {"state": "HALF_OPEN", "failure_count": 3, "last_failure_time": "2026-01-01T00:00:00Z"},
  "api/claude/haiku": {"state": "HALF_OPEN", "failure_count": 3, "last_failure_time": "2026-01-01T00:00:00Z"}
}"#;

#[test]
fn a_stop_tells_the_breaker_of_the_model_that_was_called_last() {
    let call = |id: &str, model: &str, usage: u32, side: bool| {
        json!({"type": "assistant", "isSidechain": side, "message": {"id": id, "role": "assistant",
            "model": model, "content": [{"type": "text", "text": "It is done."}],
            "usage": {"input_tokens": usage, "output_tokens": usage}}})
    };
    let told = |calls: &[serde_json::Value]| {
        let mut scene = edited();
        calls.iter().for_each(|it| {
            scene.raw(it);
        });
        scene.world.put("/work/.policyd/state/circuit-breakers.json", HALF_OPEN);
        for _ in 0..3 {
            scene.stop();
        }
        let kept = scene.world.get("/work/.policyd/state/circuit-breakers.json").unwrap();
        let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap();
        let closed = |it: &&str| kept[format!("api/claude/{it}")]["state"] == "CLOSED";
        ["opus", "haiku"].into_iter().filter(closed).collect::<Vec<_>>()
    };
    let opus = call("a", "claude-opus-4", 5, false);
    assert_eq!(told(std::slice::from_ref(&opus)), ["opus"]);
    // A client that counts no tokens names its model all the same; a subagent's is its own.
    assert_eq!(told(&[opus.clone(), call("b", "claude-haiku-4", 0, false)]), ["haiku"]);
    assert_eq!(told(&[opus, call("b", "claude-haiku-4", 5, true)]), ["opus"]);
}

#[test]
fn a_failed_stop_tells_the_breaker_of_the_same_model() {
    let call = |model: &str, side: bool| {
        json!({"type": "assistant", "isSidechain": side, "message": {"role": "assistant",
            "model": model, "content": [{"type": "text", "text": "It is done."}],
            "usage": {"input_tokens": 0, "output_tokens": 0}}})
    };
    let long = json!({"type": "user", "message": {"role": "user", "content": "x".repeat(300_000)}});
    let cut = json!({"type": "assistant", "message": {"model": "claude-haiku-4", "role": "assistant",
        "content": [{"type": "text", "text": "CUT"}], "usage": {"input_tokens": 1}}});
    let cut = cut.to_string().replace("CUT", "\\ud83d");
    let told = |lines: &[String]| {
        let scene = edited();
        let text = lines.iter().map(|it| format!("{it}\n")).collect::<String>();
        scene.world.put(TRANSCRIPT, text);
        let failure = json!({"hook_event_name": "StopFailure", "error": "overloaded"}).to_string();
        let payload = scene.payload(&serde_json::from_str(&failure).unwrap());
        scene.run(&["policyd", "eval", "--hook", "stop-failure"], payload.to_string().as_bytes());
        let kept = scene.world.get("/work/.policyd/state/circuit-breakers.json").unwrap();
        let kept: serde_json::Value = serde_json::from_slice(&kept).unwrap();
        let failed = |it: &&str| kept.get(format!("api/claude/{it}")).is_some();
        ["opus", "haiku"].into_iter().filter(failed).collect::<Vec<_>>()
    };
    let opus = call("claude-opus-4", false).to_string();
    let side = call("claude-haiku-4", true).to_string();
    assert_eq!(told(std::slice::from_ref(&opus)), ["opus"]);
    assert_eq!(told(&[opus.clone(), side]), ["opus"]);
    assert_eq!(told(&[opus.clone(), long.to_string()]), ["opus"], "far from the end");
    assert_eq!(told(&[opus.clone(), cut]), ["haiku"], "cut within a character");
    assert_eq!(told(&[opus, format!("\0\0{}", call("claude-haiku-4", false))]), ["haiku"]);
}
