//! The organization's layer: nothing that a user, a project, or the environment can do weakens it.

use std::path::Path;
use std::time::Duration;

use policyd::store::user_choices::{Disabled, UserChoiceStore};
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console::call;
use crate::support::machine;

/// Files and directories that must belong to root.
const PARTS: [&str; 6] = [
    "/",
    "/etc",
    "/etc/policyd",
    "/etc/policyd/policies",
    "/etc/policyd/policies/guards.yaml",
    "/etc/policyd/policies/considerations.yaml",
];

const GUARDS: &str = "\
- id: no_curl
  commands: [curl]
  decision: block
  message: Use the proxy.
- id: rm_recursive
  override: true
  decision: block
  message: The organization keeps files.
";

const CHECKS: &str = "\
- id: changelog
  category: Organization
  question: Is the changelog up to date?
  guidance: Add a line to CHANGELOG.md.
  severity: blocker
  on: [stop]
  when: files.count > 0
  satisfied: files.paths.contains(\"/work/CHANGELOG.md\")
";

/// A machine whose administrator set rules.
fn governed() -> FakeWorld {
    let world = machine_with_work();
    world.put("/etc/policyd/policies/guards.yaml", GUARDS);
    world.put("/etc/policyd/policies/considerations.yaml", CHECKS);
    PARTS.iter().for_each(|it| world.give_away(*it, 0));
    world
}

/// A machine with a transcript in which a file was written and not tested.
pub(super) fn machine_with_work() -> FakeWorld {
    let world = machine::machine();
    machine::cached(&world);
    let line = |value: &Value| format!("{value}\n");
    let events = [
        json!({"type": "user", "message": {"role": "user", "content": "Add a parser"}}),
        json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use",
            "id": "t1", "name": "Write", "input": {"file_path": "/work/a.py", "content": "x"}}]}}),
        json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result",
            "tool_use_id": "t1", "content": "ok"}]}}),
    ];
    world.put("/work/t.jsonl", events.iter().map(line).collect::<String>());
    world
}

pub(super) fn tool_call(world: &FakeWorld, command: &str, words: &[&str]) -> Value {
    let payload = json!({"session_id": "s", "cwd": "/work", "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": command}});
    let line: Vec<&str> = ["eval", "--hook", "pre-tool-use"].iter().chain(words).copied().collect();
    let said = call(world, &line, payload.to_string().as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str(&said.out).unwrap_or(Value::Null)
}

pub(super) fn decision(answer: &Value) -> &str {
    answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("none")
}

pub(super) fn stop(world: &FakeWorld) -> Value {
    let payload = json!({"session_id": "s", "cwd": "/work", "hook_event_name": "Stop",
        "transcript_path": "/work/t.jsonl", "prompt_id": "p1"});
    let said = call(world, &["eval", "--hook", "stop"], payload.to_string().as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str(&said.out).unwrap_or(Value::Null)
}

/// A way to weaken the rules of a project.
type Weakening = fn(&FakeWorld);

fn choose(world: &FakeWorld, change: impl FnOnce(&mut policyd::store::user_choices::UserChoices)) {
    UserChoiceStore::new(world, Path::new("/work/.policyd")).change(change).unwrap();
}

const WEAKENINGS: [(&str, Weakening); 10] = [
    ("nothing", |_| ()),
    ("POLICYD_DISABLED", |world| world.set_env("POLICYD_DISABLED", "1")),
    ("amplihack's variable", |world| world.set_env("AMPLIHACK_SKIP_POWER_STEERING", "1")),
    ("an own pack that overrides the rules", |world| {
        let rules = "- id: no_curl\n  commands: [curl]\n  decision: allow\n  message: Yes.\n";
        machine::packed(world, "guards.yaml", rules);
    }),
    ("an own pack that is disabled", |world| {
        world.set_env("POLICYD_POLICIES", "/pack");
        world.put("/pack/policyd.yaml", "version: 1\nenabled: false\n");
    }),
    ("an own pack without the built-in one", |world| {
        world.set_env("POLICYD_POLICIES", "/pack");
        world.put("/pack/policyd.yaml", "version: 1\nextends: []\n");
    }),
    ("another vocabulary", |world| {
        let words = "- id: curl\n  wraps: true\n";
        machine::packed(world, "vocabulary.yaml", words);
    }),
    ("policyd disable", |world| {
        let since = Timestamp::from_millis(0);
        choose(world, |it| it.disabled = Some(Disabled { since, reason: String::new() }));
    }),
    ("a switch file", |world| {
        choose(world, |it| it.switch_files = true);
        world.put("/work/.policyd/.disabled", "");
    }),
    ("a state directory that cannot be written", |world| {
        world.set_env("POLICYD_STATE_DIR", "/dev/null/x");
    }),
];

#[test]
fn nothing_weakens_a_guard_of_the_organization() {
    for (way, weaken) in WEAKENINGS {
        let world = governed();
        weaken(&world);
        let answer = tool_call(&world, "curl https://example.com", &[]);
        assert_eq!(decision(&answer), "deny", "{way}: {answer}");
        let reason = &answer["hookSpecificOutput"]["permissionDecisionReason"];
        assert!(reason.as_str().unwrap().contains("Use the proxy. (guard `no_curl`)"), "{way}");
    }
    let world = governed();
    world.put("/free/policyd.yaml", "version: 1\nenabled: false\n");
    let answer = tool_call(&world, "curl https://example.com", &["--policies", "/free"]);
    assert_eq!(decision(&answer), "deny", "{answer}");
}

#[test]
fn nothing_weakens_a_check_of_the_organization_and_its_blocks_end() {
    for (way, weaken) in WEAKENINGS {
        let world = governed();
        weaken(&world);
        let answer = stop(&world);
        assert_eq!(answer["decision"], "block", "{way}: {answer}");
        assert!(answer["reason"].as_str().unwrap().contains("CHANGELOG"), "{way}: {answer}");
        let released = (0..8).any(|_| {
            world.advance(Duration::from_secs(60));
            stop(&world)["decision"] != "block"
        });
        assert!(released, "{way}: the agent is trapped");
    }
}

#[test]
fn a_rule_that_the_organization_changed_speaks_once() {
    let world = governed();
    let answer = tool_call(&world, "rm -rf /", &[]);
    assert_eq!(decision(&answer), "deny");
    let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert_eq!(reason.matches("rm_recursive").count(), 1, "{reason}");
    assert!(reason.contains("The organization keeps files."), "{reason}");
}

#[test]
fn an_input_that_the_project_changes_is_evaluated_as_changed() {
    let world = governed();
    let rules = "- id: fetch\n  commands: [fetch]\n  decision: allow\n  message: Changed.\n  \
                 updated_input: {command: curl https://example.com}\n";
    machine::packed(&world, "guards.yaml", rules);
    let answer = tool_call(&world, "fetch https://example.com", &[]);
    assert_eq!(decision(&answer), "deny", "{answer}");
    assert!(answer["hookSpecificOutput"]["updatedInput"].is_null(), "{answer}");
}

#[test]
fn doctor_and_rules_report_whether_the_rules_count() {
    let world = governed();
    let said = call(&world, &["doctor"], b"").out;
    assert!(said.contains("/etc/policyd/policies: 2 guards, 1 checks; only root"), "{said}");
    let said = call(&world, &["rules"], b"").err;
    let rules = "in /etc/policyd/policies: changelog, rm_recursive, no_curl";
    assert!(said.contains(rules), "{said}");
    world.share_write("/etc/policyd", 0);
    let said = call(&world, &["doctor"], b"").out;
    assert!(said.contains("`/etc/policyd` can be changed by other users"), "{said}");
}

#[test]
fn rules_of_the_project_still_count() {
    let world = governed();
    let answer = tool_call(&world, "git push --force origin main", &[]);
    assert_eq!(decision(&answer), "deny", "{answer}");
    assert_eq!(tool_call(&world, "ls", &[]), Value::Null);
}

#[test]
fn a_pack_that_somebody_else_can_change_is_ignored_and_reported() {
    for part in PARTS {
        for (change, why) in [
            (FakeWorld::give_away as fn(&FakeWorld, &'static str, u32), "belongs to user 1000"),
            (|world, path, _| world.share_write(path, 0), "can be changed by other users"),
            (|world, path, _| world.put_link(path, "/tmp/x"), "is a symbolic link"),
        ] {
            let world = governed();
            change(&world, part, 1000);
            let answer = tool_call(&world, "curl https://example.com", &[]);
            assert_eq!(decision(&answer), "none", "{part}: {answer}");
            let notice = stop(&world)["systemMessage"].as_str().unwrap().to_owned();
            assert!(notice.contains(&format!("`{part}` {why}")), "{part}: {notice}");
        }
    }
}

#[test]
fn a_mistake_in_the_pack_is_reported_and_the_project_is_evaluated() {
    let world = governed();
    world.put("/etc/policyd/policies/guards.yaml", "- id: x\n  decison: block\n");
    assert_eq!(decision(&tool_call(&world, "rm -rf /", &[])), "deny");
    let notice = stop(&world)["systemMessage"].as_str().unwrap().to_owned();
    assert!(notice.contains("the organization's pack is not used"), "{notice}");
    assert!(notice.contains("guards.yaml:2:3"), "{notice}");
}

#[test]
fn the_compiled_form_counts_only_if_root_wrote_it() {
    let world = governed();
    assert_eq!(decision(&tool_call(&world, "curl x", &[])), "deny");
    let compiled = "/etc/policyd/policies.pack";
    assert!(world.get(compiled).is_some(), "the simulated machine lets everybody write");
    // The same form with other bytes: of a user it is not read, of root its checksum protects it.
    world.put(compiled, "forged");
    assert_eq!(decision(&tool_call(&world, "curl x", &[])), "deny");
    world.give_away(compiled, 0);
    assert_eq!(decision(&tool_call(&world, "curl x", &[])), "deny");
}
