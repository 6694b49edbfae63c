//! Fixes, fix-all, and suppression comments as an editor applies them.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, pack_file};
use crate::machine::Machine;

/// The actions at a place of a file.
fn actions(client: &mut Client, path: &Path, place: &str, only: Option<&str>) -> Vec<Value> {
    let at = client.at(path, place);
    let range = json!({"start": at["position"], "end": at["position"]});
    let mut context = json!({"diagnostics": []});
    if let Some(only) = only {
        context["only"] = json!([only]);
    }
    let params = json!({"textDocument": at["textDocument"], "range": range, "context": context});
    let answer = client.request("textDocument/codeAction", params);
    answer.as_array().unwrap().clone()
}

fn titles(actions: &[Value]) -> Vec<&str> {
    actions.iter().map(|it| it["title"].as_str().unwrap()).collect()
}

#[test]
fn a_fix_is_applied_to_the_version_that_the_client_has() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let guards = pack_file(&machine, "guards.yaml");
    client.open(&guards);
    client.replace(&guards, "decision: ask", "decison: ask");
    let found = actions(&mut client, &guards, "deci|son", None);
    assert_eq!(titles(&found), ["Replace `decison` with `decision` (changes decisions)"]);
    assert_eq!(found[0]["kind"], "quickfix");
    assert_eq!(found[0]["diagnostics"][0]["code"], "PD003");
    assert_eq!(found[0]["edit"]["documentChanges"][0]["textDocument"]["version"], 2);
    client.apply(&found[0]["edit"]);
    client.expect_codes(&guards, &[]);
    client.stop();
}

#[test]
fn a_finding_is_suppressed_by_a_comment() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let checks = pack_file(&machine, "considerations.yaml");
    client.open(&checks);
    client.replace(&checks, "when: files.kind(\"code\").count > 0", "when: true");
    client.expect_codes(&checks, &["PD601"]);
    let found = actions(&mut client, &checks, "when: |true", None);
    let suppress = found.iter().find(|it| it["title"].as_str().unwrap().starts_with("Suppress"));
    client.apply(&suppress.unwrap()["edit"]);
    assert!(
        client.text(&checks).contains("  # policyd: ignore[PD601] reason=\"\"\n  when: true\n")
    );
    client.replace(&checks, "reason=\"\"", "reason=\"the check is always needed\"");
    client.expect_codes(&checks, &[]);
    client.stop();
}

#[test]
fn all_safe_fixes_of_a_file_are_one_action() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let checks = pack_file(&machine, "considerations.yaml");
    client.open(&checks);
    client.replace(&checks, "severity: warning", "severity: warning\n  timeout: 15");
    client.replace(&checks, "count > 0", "count > 0 && files.count > 1 || todos.open > 0");
    let found = actions(&mut client, &checks, "todos|.open", Some("source.fixAll"));
    assert_eq!(titles(&found), ["Apply all safe fixes (1)"], "{found:?}");
    client.apply(&found[0]["edit"]);
    let fixed = "when: (files.kind(\"code\").count > 0 && files.count > 1) || todos.open > 0\n";
    assert!(client.text(&checks).contains(fixed), "{}", client.text(&checks));
    assert!(client.text(&checks).contains("timeout: 15"), "an unknown key needs a decision");
    let none = actions(&mut client, &checks, "todos|.open", Some("source.fixAll"));
    assert_eq!(titles(&none), [] as [&str; 0]);
    client.stop();
}
