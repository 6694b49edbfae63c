//! Permission prompts that policyd answers: who chooses the level, who objects, and what is recorded.

use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console::call;
use crate::support::machine::machine;

const USER: &str = "/home/me/.config/policyd/config.yaml";
const ORGANIZATION: &str = "/etc/policyd/config.yaml";

/// Answer of policyd at the permission prompt of a command: `allow`, `deny`, or nothing.
fn answer(world: &FakeWorld, command: &str) -> String {
    let payload = json!({"session_id": "s", "cwd": "/work", "hook_event_name": "PermissionRequest",
        "tool_name": "Bash", "tool_input": {"command": command}});
    let said =
        call(world, &["eval", "--hook", "permission-request"], payload.to_string().as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    let answer: Value = serde_json::from_str(&said.out).unwrap_or(Value::Null);
    answer["hookSpecificOutput"]["decision"]["behavior"].as_str().unwrap_or_default().to_owned()
}

fn chosen(level: &str) -> FakeWorld {
    let world = machine();
    world.put(USER, format!("approvals: {level}\n"));
    world
}

/// Puts a file of the administrator.
fn govern(world: &FakeWorld, path: &str, text: &str) {
    world.put(path, text);
    let parts = ["/", "/etc", "/etc/policyd", "/etc/policyd/policies", path];
    parts.iter().for_each(|it| world.give_away(*it, 0));
}

#[test]
fn only_the_user_and_the_organization_choose_a_level() {
    let world = machine();
    assert_eq!(answer(&world, "ls"), "");
    // A repository cannot choose it.
    world.put("/work/.policyd/config.yaml", "approvals: work\n");
    world.put("/work/.policyd/policies/config.yaml", "approvals: work\n");
    assert_eq!(answer(&world, "ls"), "");
    world.put(USER, "approvals: read\n");
    assert_eq!([answer(&world, "ls"), answer(&world, "cargo test")], ["allow", ""]);
    world.put(USER, "approvals: work\n");
    assert_eq!(answer(&world, "cargo test"), "allow");
    govern(&world, ORGANIZATION, "approvals: read\n");
    assert_eq!([answer(&world, "ls"), answer(&world, "cargo test")], ["allow", ""]);
    govern(&world, ORGANIZATION, "approvals: none\n");
    assert_eq!(answer(&world, "ls"), "");
}

#[test]
fn changed_code_that_a_guard_would_stop_is_not_approved() {
    let world = chosen("work");
    world.put("/work/build.rs", "fn main() { fs::remove_dir_all(\"/home/me/x\").unwrap(); }");
    assert_eq!([answer(&world, "cargo test"), answer(&world, "git status")], ["", "allow"]);
    world.put("/work/build.rs", "fn main() { println!(\"cargo::rerun-if-changed=build.rs\"); }");
    assert_eq!(answer(&world, "cargo test"), "allow");
    // What is not read is not approved.
    world.put("/work/src/a.rs", "x".repeat(300_000));
    assert_eq!(answer(&world, "cargo test"), "");
    let world = chosen("work");
    (0..65).for_each(|it| world.put(format!("/work/src/a{it}.rs"), ""));
    assert_eq!(answer(&world, "cargo test"), "");
}

#[test]
fn settings_that_a_repository_or_nobody_can_read_approve_nothing() {
    // A repository can set variables of a session.
    let world = machine();
    world.put("/work/.config/policyd/config.yaml", "approvals: work\n");
    world.set_env("XDG_CONFIG_HOME", "/work/.config");
    assert_eq!(answer(&world, "ls"), "");
    let world = chosen("read");
    let rules = r#"{"permissions": {"allow": ["Bash"]}}"#;
    world.put("/work/.own/settings.json", rules);
    for folder in ["/work/.own", ".own"] {
        world.set_env("CLAUDE_CONFIG_DIR", folder);
        assert_eq!(answer(&world, "ls && ./deploy"), "", "{folder}");
    }
    world.set_env("CLAUDE_CONFIG_DIR", "/home/me/.own");
    world.put("/home/me/.own/settings.json", rules.replace("Bash", "Bash(deploy)"));
    assert_eq!(answer(&world, "ls && deploy"), "allow");
    // What the organization decided is unknown.
    let world = chosen("work");
    for text in ["approvals: [", "approvals: much\n"] {
        govern(&world, ORGANIZATION, text);
        assert_eq!(answer(&world, "ls"), "", "{text}");
    }
    govern(&world, ORGANIZATION, "mode: enforce\n");
    assert_eq!(answer(&world, "ls"), "allow");
}

#[test]
fn a_rule_of_the_client_is_found_from_the_folder_of_the_session() {
    let world = chosen("read");
    let rules = r#"{"permissions": {"ask": ["Bash(git log:*)"]}}"#;
    assert_eq!(answer(&world, "git log -3"), "allow");
    for file in ["/work/.claude/settings.json", "/etc/claude-code/managed-settings.json"] {
        world.put(file, rules);
        assert_eq!(
            [answer(&world, "git log -3"), answer(&world, "git status")],
            ["", "allow"],
            "{file}"
        );
        world.put(file, "{}");
    }
}

#[test]
fn a_guard_of_the_organization_objects() {
    let world = chosen("work");
    assert_eq!(answer(&world, "cargo test"), "allow");
    let guard =
        "- id: no_cargo\n  commands: [cargo]\n  decision: ask\n  message: Check the budget.\n";
    govern(&world, "/etc/policyd/policies/guards.yaml", guard);
    assert_eq!([answer(&world, "cargo test"), answer(&world, "ls")], ["", "allow"]);
    let log = world.get("/work/.policyd/logs/decisions.jsonl").unwrap_or_default();
    let log = String::from_utf8(log).unwrap();
    let allowed = log.lines().filter(|it| it.contains(r#""decision": "allow""#)).count();
    assert_eq!(allowed, 2, "the call that was not approved is not logged as approved: {log}");
}

#[test]
fn a_pack_that_observes_approves_nothing() {
    let world = chosen("work");
    assert_eq!(call(&world, &["enforce", "--observe"], b"").code, 0);
    assert_eq!(answer(&world, "ls"), "");
}

#[test]
fn a_human_chooses_a_level_and_sees_what_was_approved() {
    let world = machine();
    world.put(USER, "# mine\n");
    let said = call(&world, &["install", "--harness", "claude-code", "--approve", "read"], b"");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.starts_with(&format!("approvals: read in {USER}\n")), "{}", said.out);
    let text = String::from_utf8(world.get(USER).unwrap()).unwrap();
    assert_eq!(text, "# mine\napprovals: read\n");
    assert!(call(&world, &["log", "--approved"], b"").out.is_empty());
    assert_eq!(answer(&world, "git status"), "allow");
    let log = call(&world, &["log", "--approved"], b"").out;
    assert!(log.contains("allow") && log.contains("read_repository"), "{log}");
    assert_eq!(log.lines().filter(|it| it.contains("allow Bash")).count(), 1, "{log}");
    let why = call(&world, &["explain", "--last"], b"").out;
    assert!(why.contains("`git status` only asks git."), "{why}");
    assert!(call(&world, &["doctor"], b"").out.contains("up to the level `read`"));
}
