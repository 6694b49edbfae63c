//! The OpenCode plugin as `policyd install` writes it, in node, with simulated clients and the real
//! binary. Skipped with a message where node is not installed.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::machine::{Machine, run};

/// What the plugin did; nothing where node is absent. `mode`: the last word of the client's command line.
fn simulated(mode: &str) -> Option<Value> {
    let version = Command::new("node").arg("--version").stdout(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        eprintln!("skipped: node is not installed");
        return None;
    }
    let machine = Machine::new();
    let installed = machine.run(&["install", "--harness", "opencode"], b"");
    assert_eq!(installed.code, Some(0), "{installed:?}");
    // Without a package file, node reads only `.mjs` as a module.
    let plugin = machine.path("policyd.mjs");
    fs::copy(machine.path("config/opencode/plugins/policyd.js"), &plugin).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/opencode.mjs");
    let (plugin, project) = (plugin.to_str().unwrap(), machine.project.to_str().unwrap());
    let called = run(machine.program("node", &[script, plugin, project, mode]), b"");
    assert_eq!(called.code, Some(0), "{called:?}");
    Some(serde_json::from_str(&called.stdout).unwrap())
}

#[test]
fn a_blocked_stop_prompts_the_session_until_the_block_limit() {
    let Some(seen) = simulated("tui") else { return };
    let first = &seen["first"];
    assert_eq!(first["rounds"], json!([1, 1, 1, 1]), "one block, then its answer: {first}");
    let sent = &first["prompts"][0];
    assert!(sent["parts"][0]["text"].as_str().unwrap().contains("the last test run failed"));
    assert_eq!(sent["parts"][0]["metadata"], json!({"policyd": "stop"}));
    assert_eq!((&sent["agent"], &sent["model"]), (&json!("build"), &json!({"modelID": "m"})));
    assert!(first["denied"]["error"].as_str().unwrap().contains("force"), "{first}");
    assert_eq!(first["kept"], json!({"mode": "600", "lines": 5}));
    let toasts = first["toasts"].as_array().unwrap();
    let (blocks, released) = toasts.split_at(2);
    let overridden = |it: &&Value| it.as_str().is_some_and(|it| it.contains("policyd allow"));
    assert_eq!(
        blocks.iter().filter(overridden).count(),
        2,
        "each block says how to override it: {toasts:?}"
    );
    assert_eq!(released.len(), 2, "a notice when it is released, none at other stops: {toasts:?}");
    assert!(released[0].as_str().unwrap().contains("released the stop"), "{toasts:?}");
    assert_eq!((&first["child"], &first["removed"]), (&json!(0), &json!(true)));
    assert_eq!((&first["status"], &first["aborts"]), (&json!("idle"), &json!(0)));
    assert_eq!(seen["interrupted"], 0, "an interrupted turn is not a stop");
}

#[test]
fn opencode_run_waits_until_the_stop_is_evaluated() {
    let Some(seen) = simulated("run") else { return };
    let first = &seen["first"];
    assert_eq!(first["rounds"], json!([1, 1, 1, 1]), "{first}");
    assert!(first["aborts"].as_u64().unwrap() > 0, "the status `idle` is sent in the end: {first}");
}

#[test]
fn one_file_serves_the_second_interface() {
    let Some(seen) = simulated("tui") else { return };
    assert_eq!(seen["id"], "policyd");
    let second = &seen["second"];
    assert!(second["denied"]["error"].as_str().unwrap().contains("force"), "{second}");
    assert_eq!(second["prompts"], 1, "{second}");
}
