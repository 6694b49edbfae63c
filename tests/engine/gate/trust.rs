//! Packs found in repositories: used only where their user trusts them, as they are now.

use serde_json::Value;

use super::scene::{Called, Scene};

const FOLDER: &str = "/work/.policyd/policies";
const RULE: &str = "- {id: mine, category: C, question: Q, severity: blocker, \
    applicable_session_types: ['*'], satisfied: 'probes.who.text(\"\") == \"me\"', details: 'mine says no'}\n";
const PROBE: &str = "- {id: who, command: [who-am-i], timeout: 1s, parse: text}\n";

/// A machine whose user trusts nothing, with a pack in the project that asks a probe.
fn stranger() -> Scene {
    let mut scene = Scene::new();
    scene.world.put("/config/policyd/trust.json", "{\"version\":1,\"packs\":[]}");
    scene.world.put(format!("{FOLDER}/considerations.yaml"), RULE);
    scene.world.put(format!("{FOLDER}/probes.yaml"), PROBE);
    scene.world.set_env("POLICYD_SESSION_TYPE", "DEVELOPMENT");
    scene.events(&[serde_json::json!({"user": "hello"}), serde_json::json!({"assistant": "Hi."})]);
    scene
}

fn told(called: &Called) -> String {
    called.json()["systemMessage"].as_str().unwrap_or_default().to_owned()
}

fn policyd(scene: &Scene, words: &[&str]) -> Called {
    let words: Vec<&str> = std::iter::once("policyd").chain(words.iter().copied()).collect();
    scene.run(&words, b"")
}

#[test]
fn a_pack_that_nobody_trusts_runs_nothing_and_its_user_is_told() {
    let scene = stranger();
    let called = scene.stop();
    assert_ne!(called.decision(), "block");
    let notice = told(&called);
    for part in [FOLDER, "not trusted", "policyd lint", "policyd trust"] {
        assert!(notice.contains(part), "{notice}");
    }
    let ran = scene.world.ran();
    assert!(ran.iter().all(|it| it.argv != ["who-am-i"]), "no probe of it runs");
    // At other events nothing is said, so that nobody is told at every call.
    let payload = r#"{"session_id":"s","cwd":"/work","tool_name":"Bash","tool_input":{}}"#;
    let call = scene.run(&["policyd", "eval", "--hook", "pre-tool-use"], payload.as_bytes());
    assert_eq!((call.code, call.stdout.as_str()), (0, ""));
}

#[test]
fn trust_holds_until_a_byte_changes_and_can_be_revoked() {
    let scene = stranger();
    let trusted = policyd(&scene, &["trust"]);
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    assert!(trusted.stdout.contains("may run  probe who: who-am-i"), "{}", trusted.stdout);
    let judged = scene.stop();
    assert!(!told(&judged).contains("not trusted"), "{}", judged.stdout);
    assert!(scene.world.ran().iter().any(|it| it.argv == ["who-am-i"]));
    let listed = policyd(&scene, &["trust", "--list"]).stdout;
    assert!(listed.contains(FOLDER) && listed.ends_with("trusted\n"), "{listed}");

    scene.world.put(format!("{FOLDER}/probes.yaml"), PROBE.replace("who-am-i", "evil"));
    let called = scene.stop();
    assert!(told(&called).contains("has changed since it was trusted"), "{}", called.stdout);
    assert!(scene.world.ran().iter().all(|it| it.argv != ["evil"]));
    assert!(policyd(&scene, &["trust", "--list"]).stdout.contains("changed since, not used"));

    assert_eq!(policyd(&scene, &["trust", FOLDER]).code, 0);
    assert!(!told(&scene.stop()).contains("changed"));
    assert_eq!(policyd(&scene, &["trust", "--revoke", "/work"]).code, 0);
    assert!(told(&scene.stop()).contains("is not trusted"));
    assert_eq!(policyd(&scene, &["trust", "--revoke"]).code, 1, "it was not trusted");
}

#[test]
fn what_its_user_named_or_wrote_is_trusted() {
    let scene = stranger();
    scene.world.set_env("POLICYD_POLICIES", FOLDER);
    assert!(!told(&scene.stop()).contains("not trusted"));

    let mut scene = Scene::new();
    scene.world.put("/config/policyd/trust.json", "{\"version\":1,\"packs\":[]}");
    scene.events(&[serde_json::json!({"user": "hello"}), serde_json::json!({"assistant": "Hi."})]);
    assert_eq!(policyd(&scene, &["init"]).code, 0);
    assert!(!told(&scene.stop()).contains("not trusted"), "init trusts what it wrote");

    let scene = stranger();
    scene.world.put("/config/policyd/policies/considerations.yaml", RULE.replace("mine", "yours"));
    scene.world.put("/config/policyd/policies/probes.yaml", PROBE);
    let called = scene.stop();
    assert!(told(&called).contains("not trusted"), "the search goes on: {}", called.stdout);
    assert!(scene.world.ran().iter().any(|it| it.argv == ["who-am-i"]), "the user's own pack");
}

#[test]
fn commands_look_at_a_stranger_but_evaluate_nothing_of_it() {
    let scene = stranger();
    let linted = policyd(&scene, &["lint", "--format", "json"]);
    let report: Value = serde_json::from_str(&linted.stdout).unwrap();
    assert!(report.to_string().contains("considerations.yaml"), "{report}");
    let tested = policyd(&scene, &["test"]);
    assert!(tested.stderr.contains("not trusted"), "{}", tested.stderr);
    assert!(!tested.stderr.contains("no pack of its own"), "{}", tested.stderr);
    assert_eq!((tested.code, tested.stdout.as_str()), (3, ""), "another pack says nothing of it");
    let rules = policyd(&scene, &["rules"]);
    assert!(rules.stderr.contains("not trusted") && !rules.stdout.contains("mine"), "{rules:?}");
}

#[test]
fn an_agent_does_not_trust() {
    let scene = stranger();
    scene.world.set_env("CLAUDECODE", "1");
    let called = policyd(&scene, &["trust"]);
    assert_eq!(called.code, 1, "{called:?}");
    assert!(called.stderr.contains("human"));
}

#[test]
fn a_worktree_is_trusted_as_its_main_checkout_is() {
    let scene = stranger();
    assert_eq!(policyd(&scene, &["trust"]).code, 0);
    let worktree = "/elsewhere/wt";
    scene.world.put(format!("{worktree}/.git"), "gitdir: /work/.git/worktrees/wt\n");
    scene.world.put("/work/.git/worktrees/wt/HEAD", "ref: refs/heads/wt\n");
    scene.world.put("/work/.git/worktrees/wt/commondir", "../..\n");
    scene.world.put("/work/.git/worktrees/wt/gitdir", format!("{worktree}/.git\n"));
    for file in ["considerations.yaml", "probes.yaml"] {
        let text = scene.world.get(format!("{FOLDER}/{file}")).unwrap();
        scene.world.put(format!("{worktree}/.policyd/policies/{file}"), text);
    }
    scene.world.set_env("CLAUDE_PROJECT_DIR", worktree);
    assert!(!told(&scene.stop()).contains("not trusted"));
    let path = format!("{worktree}/.policyd/policies/probes.yaml");
    scene.world.put(path, PROBE.replace("who-am-i", "evil"));
    assert!(told(&scene.stop()).contains("has changed"), "another content is another pack");
}

#[test]
fn commands_that_set_up_a_pack_compile_it_before_the_first_hook() {
    let compiled = |scene: &Scene| {
        let files = scene.world.files().into_iter();
        files.filter(|it| it.starts_with("/fresh")).collect::<Vec<_>>()
    };
    let [trusted, linted, installed] = [stranger(), stranger(), stranger()];
    for it in [&linted, &installed] {
        crate::support::machine::trusting(&it.world);
    }
    for (scene, command) in
        [(&trusted, "trust"), (&linted, "lint"), (&Scene::new(), "init"), (&installed, "install")]
    {
        scene.world.set_env("XDG_CACHE_HOME", "/fresh");
        scene.world.set_env("HOME", "/home/me");
        scene.world.put_folder("/home/me/.claude");
        let called = policyd(scene, &[command]);
        assert!(called.code <= 1, "{command}: {called:?}");
        let before = compiled(scene);
        assert!(!before.is_empty(), "{command} compiled nothing: {called:?}");
        scene.stop();
        assert_eq!(compiled(scene), before, "{command}: the hook compiled a pack");
    }
}
