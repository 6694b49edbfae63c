//! The organization's layer: nothing that a user, a project, or the environment can do weakens it.

use std::path::Path;
use std::time::Duration;

use policyd::policy::EnforcementMode;
use policyd::state::breaker::{BreakerEvent, BreakerSettings};
use policyd::store::allowance::{Allowance, AllowanceTarget};
use policyd::store::breakers::BreakerStore;
use policyd::store::enforcement::EnforcementStore;
use policyd::store::file::Durability;
use policyd::store::pause::Pause;
use policyd::store::user_choices::{DisabledProject, UserChoiceStore};
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use policyd::world::{CommandOutput, Confirmation, World};
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
  applicable_session_types: [DEVELOPMENT]
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

const WEAKENINGS: [(&str, Weakening); 19] = [
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
        choose(world, |it| it.disabled = Some(DisabledProject { since, reason: String::new() }));
    }),
    ("a switch file", |world| {
        choose(world, |it| it.switch_files = true);
        world.put("/work/.policyd/.disabled", "");
    }),
    ("policyd pause", |world| {
        let since = world.now();
        let until = since.plus(Duration::from_secs(600));
        let pause = Pause { session: None, since, until, reason: String::new() };
        choose(world, |it| it.add_pause(pause, since));
    }),
    ("policyd allow", |world| {
        let since = world.now();
        for rule in ["no_curl", "rm_recursive", "changelog"] {
            let target = AllowanceTarget::Rule(rule.to_owned());
            let until = since.plus(Duration::from_secs(600));
            let (once, by) = (false, "ada".to_owned());
            let allowance = Allowance { target, session: None, since, until, once, by };
            choose(world, |it| it.add_allowance(allowance, since));
        }
    }),
    ("policyd enforce --observe", |world| {
        EnforcementStore::new(world).change(|it| it.mode = EnforcementMode::Observe).unwrap();
    }),
    ("a manifest with mode: observe", |world| {
        machine::packed(world, "policyd.yaml", "version: 1\nmode: observe\n");
    }),
    ("a manifest without a set of guards", |world| {
        let text = "version: 1\nguard_sets:\n  destructive-commands: false\n";
        machine::packed(world, "policyd.yaml", text);
    }),
    ("an own pack that disables the rules", |world| {
        let rules = "- id: rm_recursive\n  override: true\n  enabled: false\n";
        machine::packed(world, "guards.yaml", rules);
    }),
    ("a trusted pack of the project", |world| {
        machine::trusting(world);
        let rules = "- id: rm_recursive\n  override: true\n  mode: shadow\n";
        world.put("/work/.policyd/policies/guards.yaml", rules);
    }),
    ("amplihack's configuration", |world| {
        choose(world, |it| it.switch_files = true);
        let path = "/work/.claude/tools/amplihack/.power_steering_config";
        world.put(path, r#"{"enabled": false, "changelog": false}"#);
    }),
    ("another session type", |world| world.set_env("POLICYD_SESSION_TYPE", "INFORMATIONAL")),
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
        let answer = tool_call(&world, "rm -rf /srv/data", &[]);
        assert_eq!(decision(&answer), "deny", "{way}: {answer}");
        assert!(answer.to_string().contains("The organization keeps files."), "{way}: {answer}");
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
fn doctor_reports_whether_the_rules_count() {
    let world = governed();
    let said = call(&world, &["doctor"], b"").out;
    assert!(said.contains("/etc/policyd/policies: 2 guards, 1 checks; only root"), "{said}");
    assert!(said.contains("ok    locked layer  holds although policyd is disabled"), "{said}");
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

/// A guard without a decision.
const BROKEN: &str = "- id: x\n  commands: [curl]\n  decison: block\n";

/// Lets the organization block tool calls while its pack cannot be used.
fn fail_closed(world: &FakeWorld) {
    world.put("/etc/policyd/config.yaml", "on_error: block\n");
    world.give_away("/etc/policyd/config.yaml", 0);
}

#[test]
fn a_pack_that_cannot_be_used_is_reported_at_each_call_until_it_is_repaired() {
    let world = governed();
    world.put("/etc/policyd/policies/guards.yaml", BROKEN);
    for command in ["ls", "curl https://example.com", "ls -l"] {
        let answer = tool_call(&world, command, &[]);
        assert_eq!(decision(&answer), "none", "{command}: {answer}");
        let notice = answer["systemMessage"].as_str().unwrap();
        assert!(notice.contains("the organization's pack is not used"), "{notice}");
    }
    world.put("/etc/policyd/policies/guards.yaml", GUARDS);
    assert_eq!(tool_call(&world, "ls", &[]), Value::Null);
}

#[test]
fn the_organization_can_fail_closed() {
    let breaks: [Weakening; 3] = [
        |it| it.put("/etc/policyd/policies/guards.yaml", BROKEN),
        |it| it.give_away("/etc/policyd/policies", 1000),
        |it| it.put_link("/etc/policyd/policies/guards.yaml", "/tmp/x"),
    ];
    for (at, break_it) in breaks.into_iter().enumerate() {
        let world = governed();
        fail_closed(&world);
        assert_eq!(tool_call(&world, "ls", &[]), Value::Null, "{at}: the pack is sound");
        break_it(&world);
        let answer = tool_call(&world, "ls", &[]);
        assert_eq!(decision(&answer), "deny", "{at}: {answer}");
        let text = answer.to_string();
        assert!(text.contains("administrator"), "{at}: {text}");
        let log = world.get("/work/.policyd/logs/decisions.jsonl").unwrap();
        assert!(String::from_utf8_lossy(&log).contains("organization's pack"), "{at}");
        // The stop is that of the project: an agent is never trapped.
        assert_eq!(stop(&world)["decision"], "block", "{at}");
    }
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

#[test]
fn explain_names_the_layer_and_evaluates_the_rules_of_the_organization_again() {
    let world = governed();
    tool_call(&world, "curl https://example.com", &[]);
    let said = call(&world, &["explain", "--last"], b"");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("pack /etc/policyd/policies (layer: organization)"), "{}", said.out);
    assert!(said.out.contains("evaluated again: same result"), "{}", said.out);
    tool_call(&world, "git push --force origin main", &[]);
    let said = call(&world, &["explain", "--last"], b"").out;
    assert!(said.contains("pack builtin\n"), "{said}");
    // One stop has an entry of the project and one of the organization, each with its own id.
    stop(&world);
    let said = call(&world, &["log", "--format", "json"], b"").out;
    let entries: Vec<Value> = said.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let stops: Vec<&Value> = entries.iter().filter(|it| it["event"] == "stop").collect();
    assert_eq!(stops.len(), 2, "{said}");
    for (stop, layer) in stops.iter().zip(["built-in", "organization"]) {
        let id = stop["id"].as_str().unwrap();
        let said = call(&world, &["explain", id, "--format", "json"], b"");
        let explained: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(explained["layer"], layer, "{said:?}");
        assert_eq!(explained["same"], true, "{layer}: {}", explained["differences"]);
    }
    // Without the rules, nothing is guessed.
    world.share_write("/etc/policyd", 0);
    let said = call(&world, &["explain", "--last"], b"").out;
    assert!(said.contains("the organization's pack is ignored"), "{said}");
}

#[test]
fn no_user_can_let_a_rule_of_the_organization_pass() {
    let world = governed();
    let reason = tool_call(&world, "curl https://example.com", &[]);
    assert_eq!(decision(&reason), "deny");
    let log = call(&world, &["log", "--format", "json"], b"").out;
    let entry: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let code = policyd::evaluation::call_code::code(entry["call_digest"].as_str().unwrap());
    world.set_confirmation(Confirmation::Yes);
    for words in [
        &["allow", "no_curl", "--once"][..],
        &["allow", "rm_recursive", "--for", "10m"],
        &["allow", "changelog", "--once"],
        &["allow", "--call", &code],
    ] {
        let before = world.files();
        let said = call(&world, words, b"");
        assert_eq!(said.code, 1, "{words:?}: {said:?}");
        assert!(said.err.contains("so no user can let it pass"), "{words:?}: {}", said.err);
        assert_eq!(world.files(), before, "{words:?}");
    }
    assert_eq!(call(&world, &["allow", "git_push_force", "--once"], b"").code, 0);
}

#[test]
fn rules_list_the_organization_first_and_its_pages_name_it() {
    let world = governed();
    let said = call(&world, &["rules"], b"").out;
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    assert!(at("pack of the organization /etc/policyd/policies") < at("no_curl"));
    assert!(at("no_curl") < at("pack builtin"));
    assert_eq!(said.matches("\n  rm_recursive ").count(), 1, "{said}");
    let page = call(&world, &["rules", "no_curl"], b"").out;
    for text in ["layer", "organization", "Only the administrator"] {
        assert!(page.contains(text), "{page}");
    }
    assert!(!page.contains("policyd allow"), "{page}");
    let page = call(&world, &["rules", "git_push_force", "--format", "json"], b"").out;
    assert!(page.contains("\"layer\": \"built-in\""), "{page}");
    let list: Value =
        serde_json::from_str(&call(&world, &["rules", "--format", "json"], b"").out).unwrap();
    let guards = list["guards"].as_array().unwrap();
    assert_eq!(guards[0]["layer"], "organization", "{}", guards[0]);
}

#[test]
fn only_the_manifest_of_the_organization_lets_its_rules_observe() {
    let world = governed();
    world.put("/etc/policyd/policies/policyd.yaml", "version: 1\nmode: observe\n");
    world.give_away("/etc/policyd/policies/policyd.yaml", 0);
    assert_eq!(decision(&tool_call(&world, "curl https://example.com", &[])), "none");
    let said = call(&world, &["log", "--would-block"], b"").out;
    assert!(said.contains("no_curl"), "{said}");
}

#[test]
fn a_breaker_that_the_user_forces_open_does_not_keep_a_probe_of_the_organization_from_running() {
    let world = governed();
    let probes = "- id: audit\n  command: [audit]\n  parse: json\n";
    let checks = "- id: audited\n  category: Organization\n  question: Is the work audited?\n  \
                  guidance: Run the audit.\n  severity: blocker\n  on: [stop]\n  \
                  satisfied: probes.audit.text(\"state\") != \"open\"\n";
    world.put("/etc/policyd/policies/probes.yaml", probes);
    world.put("/etc/policyd/policies/considerations.yaml", checks);
    world.give_away("/etc/policyd/policies/probes.yaml", 0);
    let answer = CommandOutput {
        code: Some(0),
        stdout: br#"{"state": "open"}"#.to_vec(),
        ..CommandOutput::default()
    };
    world.script(&["audit"], Ok(answer), Duration::ZERO);
    let store = BreakerStore::new(&world, "/work/.policyd".as_ref(), Durability::default());
    let trip = BreakerEvent::Trip { length: None, reason: "mine" };
    store.record("probe/audit", trip, &BreakerSettings::default(), world.now()).unwrap();
    let answer = stop(&world);
    assert!(answer["reason"].as_str().unwrap().contains("Run the audit."), "{answer}");
}
