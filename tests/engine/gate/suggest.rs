//! `policyd suggest`: which rules it suggests from recorded permission prompts, and what accepting one changes.

use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console::{Said, call};
use crate::support::machine::machine;

const USER: &str = "/home/me/.config/policyd/policies";
const TRANSCRIPT: &str = "/home/me/.claude/projects/-work/s.jsonl";
const DENIED: &str = "The user doesn't want to proceed with this tool use.";

fn machine_with(level: &str) -> FakeWorld {
    let world = machine();
    world.put("/home/me/.config/policyd/config.yaml", format!("approvals: {level}\n"));
    world
}

/// Makes a permission prompt and returns policyd's answer to it.
fn prompt(world: &FakeWorld, tool: &str, input: &Value) -> String {
    let payload = json!({"session_id": "s", "cwd": "/work", "hook_event_name": "PermissionRequest",
        "tool_name": tool, "tool_input": input, "transcript_path": TRANSCRIPT});
    let said =
        call(world, &["eval", "--hook", "permission-request"], payload.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&said.out).unwrap_or(Value::Null);
    answer["hookSpecificOutput"]["decision"]["behavior"].as_str().unwrap_or_default().to_owned()
}

/// Makes prompts that the user answers: each call, and whether the user approved it.
fn answered(world: &FakeWorld, calls: &[(&str, Value, bool)]) {
    let before = world.get(TRANSCRIPT).unwrap_or_default();
    let mut lines = String::from_utf8(before).unwrap();
    for (number, (tool, input, is_approved)) in calls.iter().enumerate() {
        assert_eq!(prompt(world, tool, input), "", "{input}");
        let id = format!("t{}-{number}", lines.len());
        let block = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        let message = json!({"id": id, "role": "assistant", "content": [block]});
        let call = json!({"type": "assistant", "uuid": id, "sessionId": "s", "message": message});
        let text = if *is_approved { "ok" } else { DENIED };
        let block = json!({"type": "tool_result", "tool_use_id": id, "is_error": !is_approved,
            "content": text});
        let message = json!({"role": "user", "content": [block]});
        let result =
            json!({"type": "user", "uuid": format!("{id}r"), "sessionId": "s", "message": message});
        lines.push_str(&format!("{call}\n{result}\n"));
    }
    world.put(TRANSCRIPT, lines);
}

fn bash(command: &str, is_approved: bool) -> (&'static str, Value, bool) {
    ("Bash", json!({"command": command}), is_approved)
}

fn suggest(world: &FakeWorld, words: &[&str]) -> Said {
    let said = call(world, &[&["suggest"], words].concat(), b"");
    assert_eq!(said.err, "");
    said
}

/// The ids of the suggested rules, with the numbers of approved prompts.
fn rules(world: &FakeWorld) -> Vec<(String, u64)> {
    let said = suggest(world, &["--format", "json"]);
    let review: Value = serde_json::from_str(&said.out).unwrap();
    let rules = review["rules"].as_array().unwrap().iter();
    rules
        .map(|it| (it["id"].as_str().unwrap().to_owned(), it["approved"].as_u64().unwrap()))
        .collect()
}

#[test]
fn what_was_always_approved_becomes_a_rule_that_a_human_accepts() {
    let world = machine_with("read");
    answered(
        &world,
        &[
            bash("acme db seed --small", true),
            bash("acme db seed --large", true),
            bash("cd src && acme db seed", true),
            bash("acme deploy staging", true),
            bash("acme deploy staging", true),
            bash("acme deploy production", false),
            bash("acme once", true),
        ],
    );
    insta::assert_snapshot!(suggest(&world, &[]).out, @r#"
    7 permission prompts of the last 30d: you approved 6 and denied 1.
    1 new rule would answer 3 of them:

    approve_acme_db_seed
      You approved all 3 prompts, such as
        acme db seed --large
        acme db seed --small
        cd src && acme db seed
      The rule answers no other recorded prompt.
      | - id: approve_acme_db_seed
      |   description: "The user approved all 3 prompts about `acme db seed` until 2026-01-25."
      |   level: read
      |   on: [permission_request]
      |   commands: [acme db seed]
      |   when: program.stays_inside && !program.changed.existing
      |   decision: allow
      |   on_error: allow
      |   message: "The user always approved `${program.line}`."

    Accept a rule: policyd suggest accept approve_acme_db_seed
    "#);
    assert_eq!(rules(&world), [("approve_acme_db_seed".to_owned(), 3)]);
    let said = call(&world, &["suggest", "accept", "approve_acme_db_sed"], b"");
    assert_eq!((said.code, said.err.contains("did you mean `approve_acme_db_seed`?")), (2, true));
    let said = suggest(&world, &["accept", "approve_acme_db_seed"]);
    assert_eq!(said.code, 0, "{}", said.out);
    for words in [["lint"], ["test"]] {
        let said = call(&world, &words, b"");
        assert_eq!(said.code, 0, "{words:?}: {}{}", said.out, said.err);
    }
    assert!(world.get(format!("{USER}/tests/suggested.yaml")).is_some());
    let bash = |command: &str| prompt(&world, "Bash", &json!({"command": command}));
    assert_eq!(bash("acme db seed --other && ls"), "allow");
    for other in ["acme db drop", "acme db seed ~/x", "cd / && acme db seed", "acme down"] {
        assert_eq!(bash(other), "", "{other}");
    }
    assert_eq!(rules(&world), []);
}

#[test]
fn a_rule_is_as_narrow_as_what_was_approved() {
    let world = machine_with("work");
    let search = |text: &str| ("mcp__tracker__search", json!({"query": text}), true);
    answered(
        &world,
        &[
            // Options and paths are no subcommands: only the same line again is approved.
            bash("python3 -c 'print(1)'", true),
            bash("python3 -c 'print(1)'", true),
            bash("python3 -c 'print(1)'", true),
            bash("speak --say 'a b ${c}'", true),
            bash("speak --say 'a b ${c}'", true),
            bash("speak --say 'a b ${c}'", true),
            bash("frob --all a.txt", true),
            bash("frob --all b.txt", true),
            bash("frob --all c.txt", true),
            // Nothing in common, outside of the project, or by a wrapper.
            bash("frob2 a", true),
            bash("frob2 b", true),
            bash("frob2 c", true),
            bash("acme sync /srv/data", true),
            bash("acme sync /srv/data", true),
            bash("acme sync /srv/data", true),
            bash("sudo acme up", true),
            bash("sudo acme up", true),
            bash("sudo acme up", true),
            search("open"),
            search("closed"),
            search("all"),
        ],
    );
    let found = rules(&world);
    let found: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(
        found,
        ["approve_mcp_tracker_search", "approve_python3_c_print_1", "approve_speak_say_a_b_c"]
    );
    let said = suggest(&world, &[&["accept"], found.as_slice()].concat());
    assert_eq!(said.code, 0, "{}", said.out);
    for words in [["lint"], ["test"]] {
        let said = call(&world, &words, b"");
        assert_eq!(said.code, 0, "{words:?}: {}{}", said.out, said.err);
    }
    assert_eq!(prompt(&world, "Bash", &json!({"command": "python3 -c 'print(1)'"})), "allow");
    assert_eq!(prompt(&world, "Bash", &json!({"command": "python3 -c 'print(2)'"})), "");
    // The same words, but not the same arguments.
    let said = |line: &str| prompt(&world, "Bash", &json!({"command": line}));
    assert_eq!(
        ["speak --say 'a b ${c}'", "speak --say a 'b ${c}'", "speak '--say a' 'b ${c}'"].map(said),
        ["allow", "", ""]
    );
    assert_eq!(prompt(&world, "mcp__tracker__search", &json!({"query": "x"})), "allow");
}

#[test]
fn prompts_without_a_recorded_answer_approve_nothing() {
    let world = machine_with("read");
    for _ in 0..5 {
        prompt(&world, "Bash", &json!({"command": "acme db seed"}));
    }
    let said = suggest(&world, &[]);
    insta::assert_snapshot!(said.out, @r#"
    5 permission prompts of the last 30d: you approved 0 and denied 0.
    The answers to 5 of them are not recorded.
    You approved no command often enough, and without a denial, for a rule.
    "#);
    assert_eq!(rules(&world), []);
    let none = machine();
    insta::assert_snapshot!(suggest(&none, &[]).out, @r#"
    No permission prompt of the last 30d was left to you.
    policyd records permission prompts if a level of approvals is chosen: policyd install --approve read
    "#);
}

#[test]
fn prompts_are_in_the_log_and_counted() {
    let world = machine_with("read");
    answered(&world, &[bash("acme db seed", true)]);
    assert_eq!(prompt(&world, "Bash", &json!({"command": "ls"})), "allow");
    let said = call(&world, &["log"], b"");
    assert!(said.out.contains("prompt Bash"), "{}", said.out);
    assert!(said.out.contains("acme db seed"), "{}", said.out);
    let said = call(&world, &["log", "--approved"], b"");
    assert!(!said.out.contains("acme db seed"), "{}", said.out);
    let stop = json!({"session_id": "s", "cwd": "/work", "hook_event_name": "Stop",
        "transcript_path": TRANSCRIPT});
    assert_eq!(call(&world, &["eval", "--hook", "stop"], stop.to_string().as_bytes()).code, 0);
    let said = call(&world, &["status", "--all"], b"");
    assert!(said.out.contains("Permission prompts: 1 of 2 answered by policyd."), "{}", said.out);
    let said = call(&world, &["metrics"], b"");
    for decision in ["allow", "none"] {
        let line = format!(
            "policyd_decisions_total{{event=\"permission_request\",decision=\"{decision}\"}} 1"
        );
        assert!(said.out.contains(&line), "{}", said.out);
    }
}
