//! Remote packs: fetched by a command, loaded by hooks from the cache alone.

use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::console::{Said, call};
use crate::support::packs::{archive, list, listed, team};

const URL: &str = "https://packs.example.com/team.tar.zst";
const PACK: &str = "/work/.policyd/policies";

/// A project whose pack extends a remote one, which a server has in version 1.0.0.
fn project() -> Scene {
    let scene = Scene::new();
    scene.world.set_env("HOME", "/home/me");
    scene.world.put(format!("{PACK}/policyd.yaml"), manifest(""));
    scene.world.serve(URL, archive(&listed(&team("1.0.0"))));
    scene
}

fn manifest(more: &str) -> String {
    format!("version: 1\nextends:\n  - builtin\n  - source: {URL}\n{more}")
}

fn pack(scene: &Scene, action: &str) -> Said {
    call(&scene.world, &["pack", action], b"")
}

/// The answer to a call of a command.
fn deploy(scene: &Scene) -> Value {
    let payload = json!({"session_id": "s", "cwd": "/work", "tool_name": "Bash",
        "tool_input": {"command": "make deploy"}});
    scene.run(&["policyd", "eval", "--hook", "pre-tool-use"], payload.to_string().as_bytes()).json()
}

fn decision(answer: &Value) -> &str {
    answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("none")
}

fn requests(scene: &Scene) -> usize {
    scene.world.log().iter().filter(|it| it.starts_with("request ")).count()
}

#[test]
fn a_fetched_pack_blocks_and_hooks_use_no_network() {
    let scene = project();
    let before = deploy(&scene);
    assert_eq!(decision(&before), "none", "{before}");
    let stop = scene.stop().json();
    let notice = stop["systemMessage"].as_str().unwrap();
    assert!(notice.contains("is not fetched yet") && notice.contains(URL), "{notice}");
    assert_eq!(requests(&scene), 0, "a hook never fetches");

    let fetched = pack(&scene, "fetch");
    let hash = list(&team("1.0.0")).hash();
    assert_eq!(fetched.out, format!("fetched  {URL}  team 1.0.0 ({hash})\n"), "{}", fetched.err);
    scene.world.clear_log();
    let answer = deploy(&scene);
    assert_eq!(decision(&answer), "deny", "{answer}");
    assert!(answer.to_string().contains("release team"), "{answer}");
    assert_eq!(pack(&scene, "fetch").out, format!("current  {URL}  team 1.0.0 ({hash})\n"));
    assert_eq!(requests(&scene), 0, "what is in the cache is not fetched");
}

#[test]
fn every_command_knows_the_rules_of_a_remote_pack() {
    let scene = project();
    let lint = call(&scene.world, &["lint", "--format", "compact"], b"");
    assert!(lint.out.contains("PD152") && lint.code == 1, "{}", lint.out);
    assert_eq!(pack(&scene, "fetch").code, 0);
    let lint = call(&scene.world, &["lint", "--format", "compact"], b"");
    assert_eq!((lint.code, lint.out.as_str()), (0, ""), "{}", lint.err);
    let rule = call(&scene.world, &["rules", "no_deploy"], b"").out;
    assert!(rule.contains(&format!("{URL}/guards.yaml:1")), "{rule}");
    let doctor = call(&scene.world, &["doctor"], b"").out;
    assert!(doctor.contains("team 1.0.0"), "{doctor}");
    let replay = call(&scene.world, &["try", "1 == 1", "--format", "compact"], b"").out;
    assert_eq!(replay, "true\n");
}

#[test]
fn a_project_overrides_an_entry_of_a_remote_pack() {
    let scene = project();
    assert_eq!(pack(&scene, "fetch").code, 0);
    let own = "- {id: no_deploy, override: true, mode: warn, reason: We deploy ourselves.}\n";
    scene.world.put(format!("{PACK}/guards.yaml"), own);
    assert_eq!(decision(&deploy(&scene)), "none");
    scene.world.put(format!("{PACK}/guards.yaml"), own.replace("override: true, ", ""));
    let lint = call(&scene.world, &["lint", "--format", "compact"], b"").out;
    assert!(lint.contains("`no_deploy` is defined already"), "{lint}");
}

#[test]
fn trust_shows_what_a_new_version_of_a_remote_pack_weakens() {
    let scene = project();
    assert_eq!(pack(&scene, "fetch").code, 0);
    assert_eq!(call(&scene.world, &["trust"], b"").code, 0);
    let mut files = team("1.1.0");
    for (_, text) in &mut files {
        *text = text.replace("decision: block", "decision: warn");
    }
    scene.world.serve(URL, archive(&listed(&files)));
    assert_eq!(pack(&scene, "update").code, 0);
    let out = call(&scene.world, &["trust"], b"").out;
    assert!(out.contains("weaker   the guard no_deploy: block becomes warn"), "{out}");
    assert!(out.contains("guards.yaml") && !out.contains("masked here"), "{out}");
}

#[test]
fn trust_covers_the_content_of_a_remote_pack() {
    let scene = project();
    scene.world.put("/config/policyd/trust.json", "{\"version\":1,\"packs\":[]}");
    assert_eq!(pack(&scene, "fetch").code, 0);
    assert_eq!(decision(&deploy(&scene)), "none", "the pack is not trusted");
    let trusted = call(&scene.world, &["trust"], b"");
    let hash = list(&team("1.0.0")).hash();
    assert!(trusted.out.contains(&format!("extends  {URL} ({hash})")), "{}", trusted.out);
    assert_eq!(decision(&deploy(&scene)), "deny");

    scene.world.serve(URL, archive(&listed(&team("1.1.0"))));
    let updated = pack(&scene, "update");
    assert!(
        updated.out.contains("updated") && updated.out.contains("team 1.1.0"),
        "{}",
        updated.out
    );
    assert!(updated.err.contains("run `policyd trust`"), "{}", updated.err);
    assert_eq!(decision(&deploy(&scene)), "none", "another content is not trusted");
    assert_eq!(call(&scene.world, &["trust"], b"").code, 0);
    assert_eq!(decision(&deploy(&scene)), "deny");
}
