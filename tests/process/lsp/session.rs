//! The life of a connection, open files, and findings while a pack is written.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, pack_file, uri};
use crate::machine::{Machine, run};

#[test]
fn findings_follow_the_unsaved_text() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let guards = pack_file(&machine, "guards.yaml");
    client.open(&guards);
    client.replace(&guards, "decision: ask", "decison: ask");
    client.expect_codes(&guards, &["PD003"]);
    let found = client.findings[&guards][0].clone();
    assert_eq!(client.slice(&guards, &found["range"]), "decison");
    assert_eq!((&found["source"], &found["severity"]), (&json!("policyd"), &json!(1)));
    assert!(found["message"].as_str().unwrap().contains("help: did you mean `decision`?"));
    assert_eq!(found["relatedInformation"][0]["message"], "in this rule");
    client.replace(&guards, "decison", "decision");
    client.expect_codes(&guards, &[]);
    // The file on the disk was correct all the time, and still is.
    let linted = machine.run(&["lint"], b"");
    assert_eq!(linted.code, Some(0), "{linted:?}");
    client.stop();
}

#[test]
fn columns_are_utf16_code_units() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let guards = pack_file(&machine, "guards.yaml");
    client.open(&guards);
    client.replace(&guards, "message: Deploy", "message: \"𝄞é\" # 𝄞\n  mesage: 𝄞");
    client.expect_codes(&guards, &["PD003"]);
    client.replace(&guards, "𝄞é\" # 𝄞\n  mesage: 𝄞 ${action.command}?", "𝄞 ${action.comand}\"");
    client.expect_codes(&guards, &["PD202"]);
    let range = client.findings[&guards][0]["range"].clone();
    assert_eq!(client.slice(&guards, &range), "comand");
    client.stop();
}

#[test]
fn a_change_in_one_file_is_found_in_another() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let guards = pack_file(&machine, "guards.yaml");
    let cases = pack_file(&machine, "tests/cases.yaml");
    client.open(&guards);
    client.replace(&guards, "no_deploy", "no_release");
    client.expect_codes(&cases, &["PD700"]);
    client.replace(&guards, "no_release", "no_deploy");
    client.expect_codes(&cases, &[]);
    client.stop();
}

#[test]
fn a_file_outside_of_a_pack_is_ignored() {
    let machine = Machine::new();
    machine.put("values/secrets.yaml", "- id: x\n  nonsense: [\n");
    machine.put("values/tests/cases.yaml", "also: [\n");
    let mut client = Client::in_pack(&machine);
    for file in ["values/secrets.yaml", "values/tests/cases.yaml"] {
        client.open(&machine.file(file));
        let about = client.at(&machine.file(file), "|");
        let range = json!({"start": about["position"], "end": about["position"]});
        let asked = json!({"textDocument": about["textDocument"], "range": range, "context": {"diagnostics": []}});
        assert_eq!(client.request("textDocument/codeAction", asked), Value::Null);
    }
    client.listen(Duration::from_millis(300));
    assert!(client.findings.is_empty(), "{:?}", client.findings);
    // The directory becomes a pack.
    machine.put("values/policyd.yaml", "version: 1\nname: values\n");
    let saved = json!({"changes": [{"uri": uri(&machine.file("values/policyd.yaml")), "type": 1}]});
    client.notify("workspace/didChangeWatchedFiles", saved);
    let secrets = machine.file("values/secrets.yaml");
    client.wait("findings in the new pack", |it| {
        it.findings.get(&secrets).is_some_and(|it| !it.is_empty())
    });
    client.stop();
}

#[test]
fn findings_leave_with_the_last_file_of_the_pack() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let guards = pack_file(&machine, "guards.yaml");
    client.open(&guards);
    client.replace(&guards, "decision: ask", "decision: axe");
    client.expect_codes(&guards, &["PD007"]);
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri(&guards)}}));
    client.expect_codes(&guards, &[]);
    client.stop();
}

#[test]
fn settings_choose_the_profile_and_the_client() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let checks = pack_file(&machine, "considerations.yaml");
    client.open(&checks);
    client.expect_codes(&checks, &[]);
    let settings = json!({"settings": {"policyd": {"profile": "strict"}}});
    client.notify("workspace/didChangeConfiguration", settings);
    client.expect_codes(&checks, &["PD701"]);
    let settings = json!({"settings": {"policyd": {"harness": "unknown"}}});
    client.notify("workspace/didChangeConfiguration", settings);
    let is_told = |it: &(String, Value)| {
        let text = it.1["message"].as_str().unwrap_or_default();
        it.0 == "window/logMessage" && text.contains("policyd.harness")
    };
    client.wait("a message about the setting", |it| it.heard.iter().any(is_told));
    client.stop();
}

#[test]
fn the_order_of_messages_is_checked() {
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    client.listen(Duration::from_millis(50));
    assert!(
        client.heard.iter().any(|it| it.0 == "client/registerCapability"),
        "{:?}",
        client.heard
    );
    assert_eq!(client.capabilities["textDocumentSync"]["change"], 2);
    let unknown = client.try_request("textDocument/unheardOf", json!({})).unwrap_err();
    assert_eq!(unknown["code"], -32601);
    let invalid = client.try_request("textDocument/codeAction", json!({"range": 1})).unwrap_err();
    assert_eq!(invalid["code"], -32602);
    client.send_bytes(b"Content-Length: 3\r\n\r\n{x}");
    client.request("shutdown", Value::Null);
    let late = client.try_request("textDocument/codeAction", json!({})).unwrap_err();
    assert_eq!(late["code"], -32600);
    client.notify("exit", Value::Null);
}

#[test]
fn a_client_that_leaves_ends_the_server() {
    let machine = Machine::new();
    assert_eq!(Client::in_pack(&machine).leave(), Some(1));
    let called = run(machine.command(&["lsp"]), &b"not a message\n".repeat(40));
    assert_eq!(called.code, Some(3), "{called:?}");
    assert!(called.stderr.contains("help: an editor starts `policyd lsp`"), "{called:?}");
    assert_eq!(called.stdout, "");
}
