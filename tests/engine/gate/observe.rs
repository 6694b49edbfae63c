//! `policyd enforce` and observing: every rule is evaluated and logged, and none has an effect.

use serde_json::{Value, json};

use super::scene::{Called, Scene};

fn called(scene: &Scene, line: &str) -> Called {
    let words: Vec<&str> = ["policyd"].into_iter().chain(line.split_whitespace()).collect();
    scene.run(&words, b"")
}

/// The answer to a command of the agent.
fn command(scene: &Scene, line: &str) -> String {
    let payload = scene.payload(&json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "t9", "tool_input": {"command": line}}));
    scene.call("pre-tool-use", &payload.to_string(), &[]).stdout
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

fn log(scene: &Scene) -> Vec<Value> {
    let text = scene.world.get("/work/.policyd/logs/decisions.jsonl").unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn an_observing_user_is_not_blocked_and_reads_what_would_have_been() {
    let scene = untested();
    let none = called(&scene, "log --would-block");
    assert!(none.stderr.contains("no decision of this project is logged yet"), "{}", none.stderr);
    let observing = called(&scene, "enforce --observe");
    assert_eq!(
        observing.stdout,
        "policyd observes and does not block; `policyd enforce` ends it\n"
    );
    assert_eq!(command(&scene, "rm -rf /"), "");
    assert_eq!(command(&scene, "npm install left-pad -g"), "");
    assert_eq!(scene.stop().decision(), "approve");

    let entries = log(&scene);
    let call = entries.iter().find(|it| it["tool"] == "Bash").unwrap();
    assert_eq!((&call["decision"], &call["observed"]), (&json!("none"), &json!(true)));
    let guard = call["guards"].as_array().unwrap().iter().find(|it| it["id"] == "rm_recursive");
    assert_eq!(guard.unwrap()["would"], "block");
    let stop = entries.iter().find(|it| it["event"] == "stop").unwrap();
    let check = stop["verdicts"].as_array().unwrap().iter().find(|it| it["id"] == "local_testing");
    assert_eq!(check.unwrap()["would_block"], true);
    assert_eq!((&stop["decision"], &stop["observed"]), (&json!("none"), &json!(true)));

    let listed = called(&scene, "log --would-block").stdout;
    assert!(listed.contains("would block: rm_recursive"), "{listed}");
    assert!(listed.contains("would block: local_testing"), "{listed}");
    let explained = called(&scene, "explain");
    assert_eq!(explained.code, 0, "judged again, it is the same: {}", explained.stdout);
    assert!(explained.stdout.contains("policyd observed"), "{}", explained.stdout);
    assert!(called(&scene, "rules").stderr.contains("observes and does not block"));
    assert!(called(&scene, "doctor").stdout.contains("observes and does not block"));
    let status = called(&scene, "status").stdout;
    assert!(
        status.ends_with("\npolicyd observes and does not block; `policyd enforce` ends it\n"),
        "{status}"
    );

    assert_eq!(called(&scene, "enforce").stdout, "policyd enforces every rule\n");
    assert_eq!(scene.stop().decision(), "block");
    assert!(command(&scene, "rm -rf /").contains("deny"));
}

#[test]
fn a_session_start_reports_it_once() {
    let scene = Scene::new();
    let start = |source: &str| {
        let payload = scene.payload(&json!({"hook_event_name": "SessionStart", "source": source}));
        scene.call("session-start", &payload.to_string(), &[]).stdout
    };
    assert!(!start("startup").contains("observes"));
    called(&scene, "enforce --observe");
    assert!(start("startup").contains("policyd observes and does not block; `policyd log --would"));
    assert!(!start("compact").contains("observes"));
    called(&scene, "escalation open --gate deploy --reason production");
    let said = start("startup");
    assert!(said.contains("policyd observes"), "{said}");
    assert!(said.contains("open escalations: 1"), "{said}");
}

#[test]
fn single_rules_are_enforced_while_the_rest_observes() {
    let scene = untested();
    called(&scene, "enforce --observe");
    let wrong = called(&scene, "enforce rm_recursiv");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `rm_recursive`?"), "{}", wrong.stderr);
    let named = called(&scene, "enforce rm_recursive git-discipline");
    assert_eq!(
        named.stdout,
        "policyd observes and does not block, except git-discipline, rm_recursive; `policyd \
         enforce` ends it\n"
    );
    assert!(command(&scene, "rm -rf /").contains("rm_recursive"));
    assert!(command(&scene, "git commit --no-verify -m x").contains("deny"));
    assert_eq!(command(&scene, "dd if=/dev/zero of=/dev/sda"), "");
    assert_eq!(scene.stop().decision(), "approve");
    called(&scene, "enforce --observe rm_recursive");
    assert_eq!(command(&scene, "rm -rf /"), "");
}

#[test]
fn the_manifest_is_a_ceiling_that_only_a_named_rule_passes() {
    let scene = untested();
    scene.world.set_env("POLICYD_POLICIES", "/pack");
    scene.world.put("/pack/policyd.yaml", "version: 1\nmode: observe\n");
    assert_eq!(command(&scene, "rm -rf /"), "");
    assert_eq!(scene.stop().decision(), "approve");
    called(&scene, "enforce rm_recursive");
    assert!(command(&scene, "rm -rf /").contains("deny"));
    assert_eq!(command(&scene, "dd if=/dev/zero of=/dev/sda"), "");
    scene.world.put("/pack/policyd.yaml", "version: 1\nmode: enforce\n");
    called(&scene, "enforce --observe");
    assert_eq!(scene.stop().decision(), "block");
    // An invalid pack that blocks while it is fixed blocks nothing while it observes.
    scene.world.put("/pack/policyd.yaml", "version: 1\nmode: observe\non_error: block\nnmae: x\n");
    assert_eq!(command(&scene, "ls"), "");
}

#[test]
fn a_damaged_choice_enforces_and_is_reported() {
    let scene = untested();
    called(&scene, "enforce --observe");
    let config = scene.world.files().into_iter().find(|it| it.ends_with("enforcement.json"));
    scene.world.put(config.unwrap(), "{");
    let stop = scene.stop();
    assert_eq!(stop.decision(), "block");
    assert!(stop.stdout.contains("enforcement.json` is not used"), "{}", stop.stdout);
}
