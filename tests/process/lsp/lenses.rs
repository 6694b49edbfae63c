//! Lenses above rules, values of facts in a session, and the commands behind them.

use std::path::{Path, PathBuf};

use policyd::world::World;
use policyd::world::real::RealWorld;
use serde_json::{Value, json};

use super::client::{Client, PACK, pack_file, put_pack, uri};
use crate::machine::{Machine, asked, edited, ran};

/// The pack with a session in which code was edited, a deployment ran, and no changelog was touched.
fn opened(machine: &Machine, options: &Value) -> (Client, PathBuf, PathBuf) {
    put_pack(machine, &PACK);
    machine.record(&[asked("p1", "Add a parser")]).record(&edited("a.py"));
    machine.record(&ran("deploy now", "deployed")).record(&ran("ls", "a.py"));
    machine.record(&[json!({"type": "assistant", "message": {"id": "m", "role": "assistant",
        "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}})]);
    let file = |it: &str| pack_file(machine, it);
    let mut client = Client::start(machine, options);
    let (checks, guards) = (file("considerations.yaml"), file("guards.yaml"));
    [&checks, &guards].into_iter().for_each(|it| client.open(it));
    (client, checks, guards)
}

fn lenses(client: &mut Client, path: &Path) -> Vec<Value> {
    let about = json!({"textDocument": {"uri": uri(path)}});
    client.request("textDocument/codeLens", about).as_array().unwrap().clone()
}

fn titles(client: &mut Client, path: &Path) -> Vec<String> {
    let found = lenses(client, path);
    found.iter().map(|it| it["command"]["title"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the lenses of a file are these.
fn expect_titles(client: &mut Client, path: &Path, wanted: &[&str]) {
    for _ in 0..300 {
        if titles(client, path) == wanted {
            return;
        }
        client.listen(std::time::Duration::from_millis(100));
    }
    assert_eq!(titles(client, path), wanted);
}

#[test]
fn lenses_tell_how_cases_end_and_how_often_a_rule_would_have_fired() {
    let machine = Machine::new();
    let (mut client, checks, guards) =
        opened(&machine, &json!({"recordings": [machine.transcript()]}));
    assert_eq!(titles(&mut client, &guards), ["1 case | run"], "before the first evaluation");
    expect_titles(
        &mut client,
        &guards,
        &["1 case: 1 passed | run", "would fire on 1 of 3 recorded tool calls | show"],
    );
    let all = ["no cases | run", "would fire on 1 of 1 recorded stops | show"];
    expect_titles(&mut client, &checks, &all);
    assert!(client.heard.iter().any(|it| it.0 == "workspace/codeLens/refresh"));
    let ended = |it: &(String, Value)| it.0 == "$/progress" && it.1["value"]["kind"] == "end";
    client.wait("the end of the progress", |it| it.heard.iter().any(ended));

    let show = lenses(&mut client, &guards)[1]["command"].clone();
    let params = json!({"command": show["command"], "arguments": show["arguments"]});
    let shown = client.request("workspace/executeCommand", params);
    assert_eq!(shown[0]["subject"], "deploy now");
    let place = shown[0]["place"].as_str().unwrap();
    assert!(place.ends_with("transcript.jsonl:4"), "{place}");
    // A stop has no subject.
    let show = lenses(&mut client, &checks)[1]["command"].clone();
    let params = json!({"command": show["command"], "arguments": show["arguments"]});
    let shown = client.request("workspace/executeCommand", params);
    assert_eq!(shown[0]["subject"], "");
    let message = client.heard.iter().rfind(|it| it.0 == "window/showMessage").unwrap();
    let message = message.1["message"].as_str().unwrap();
    assert!(message.contains("transcript.jsonl:") && !message.contains("  "), "{message}");

    // The unsaved text counts.
    client.replace(&guards, "[deploy]", "[release]");
    expect_titles(
        &mut client,
        &guards,
        &["1 case: 0 passed, 1 failed | run", "would fire on 0 of 3 recorded tool calls | show"],
    );
    client.stop();
}

#[test]
fn lenses_tell_how_often_a_rule_fired_in_the_project() {
    let machine = Machine::new();
    let log = |guard: &str| {
        let entry = json!({"version": 1, "id": guard, "timestamp": RealWorld::new().now().to_string(),
            "event": "pre_tool_use", "decision": "block", "guards": [{"id": guard}]});
        machine.put(".policyd/logs/decisions.jsonl", &format!("{entry}\n"));
    };
    log("other");
    let (mut client, _, guards) = opened(&machine, &json!({"replay": false}));
    let cases = "1 case: 1 passed | run";
    expect_titles(&mut client, &guards, &[cases, "never fired in 30 days"]);
    log("no_deploy");
    let run = json!({"command": "policyd.runCases", "arguments": [uri(&guards), "no_deploy"]});
    client.request("workspace/executeCommand", run);
    expect_titles(&mut client, &guards, &[cases, "fired once in 30 days"]);
    client.stop();
}

#[test]
fn a_pack_that_is_not_trusted_is_not_evaluated() {
    let machine = Machine::new();
    let (client, ..) = opened(&machine, &Value::Null);
    drop(client);
    for (file, text) in PACK {
        machine.put(&format!("other/{file}"), text);
    }
    let guards = machine.file("other/guards.yaml");
    let mut client = Client::start(&machine, &json!({"session": machine.transcript()}));
    client.open(&guards);
    client.expect_codes(&guards, &[]);
    client.listen(std::time::Duration::from_millis(1_500));
    assert_eq!(titles(&mut client, &guards), ["1 case | run"]);
    let run = json!({"command": "policyd.runCases", "arguments": [uri(&guards), "no_deploy"]});
    let error = client.try_request("workspace/executeCommand", run).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("not trusted"), "{error}");
    assert_eq!(hints(&mut client, &guards), [] as [String; 0]);
    let is_told = |it: &(String, Value)| {
        it.0 == "window/logMessage" && it.1["message"].as_str().unwrap().contains("not trusted")
    };
    client.wait("the reason", |it| it.heard.iter().any(is_told));
    client.stop();
}

#[test]
fn changed_settings_of_recordings_count_without_a_change_of_a_text() {
    let machine = Machine::new();
    let (mut client, _, guards) = opened(&machine, &json!({"replay": false}));
    let cases = "1 case: 1 passed | run";
    expect_titles(&mut client, &guards, &[cases]);
    let mut set = |replay: bool| {
        let settings = json!({"replay": replay, "recordings": [machine.transcript()]});
        client.notify("workspace/didChangeConfiguration", json!({"settings": settings}));
        let counts = "would fire on 1 of 3 recorded tool calls | show";
        let wanted = if replay { vec![cases, counts] } else { vec![cases] };
        expect_titles(&mut client, &guards, &wanted);
    };
    [true, false].into_iter().for_each(&mut set);
    client.stop();
}

fn hints(client: &mut Client, path: &Path) -> Vec<String> {
    let lines = client.text(path).lines().count();
    let range =
        json!({"start": {"line": 0, "character": 0}, "end": {"line": lines, "character": 0}});
    let params = json!({"textDocument": {"uri": uri(path)}, "range": range});
    let answer = client.request("textDocument/inlayHint", params);
    let line = |it: &Value| {
        let at = &it["position"];
        let start = json!({"line": at["line"], "character": 0});
        let before = client.slice(path, &json!({"start": start, "end": at}));
        format!("{} {}", before.trim_start(), it["label"].as_str().unwrap())
    };
    answer.as_array().map(|it| it.iter().map(line).collect()).unwrap_or_default()
}

#[test]
fn values_of_the_chosen_session_stand_behind_the_facts() {
    let machine = Machine::new();
    let (mut client, checks, _) = opened(&machine, &json!({"replay": false}));
    assert_eq!(hints(&mut client, &checks), [] as [String; 0], "no session is chosen");
    let settings =
        json!({"settings": {"policyd": {"session": machine.transcript(), "replay": false}}});
    client.notify("workspace/didChangeConfiguration", settings);
    let found = hints(&mut client, &checks);
    assert!(client.heard.iter().any(|it| it.0 == "workspace/inlayHint/refresh"));
    assert_eq!(
        found,
        [
            "when: files.kind(\"code\").count = 1",
            "when: files.kind(\"code\").count > 0 = true",
            "satisfied: files.matching(\"**/CHANGELOG.md\").count = 0",
            "satisfied: files.matching(\"**/CHANGELOG.md\").count > 0 = false",
        ]
    );
    let explained = |client: &mut Client| {
        let at = client.at(&checks, "CHANGELOG.md\").cou|nt");
        let found = client.request("textDocument/hover", at);
        found["contents"]["value"].as_str().unwrap().to_owned()
    };
    let text = explained(&mut client);
    assert!(text.contains("Value in session ") && text.ends_with(": `0`"), "{text}");
    let at = client.at(&checks, "count >| 0");
    let params = json!({"command": "policyd.evaluate", "arguments": [at]});
    let value = client.request("workspace/executeCommand", params);
    assert_eq!(value["value"], "true");
    assert!(value["text"].as_str().unwrap().contains("|"), "{value}");
    // The session goes on.
    machine.record(&edited("CHANGELOG.md"));
    let at = client.at(&checks, "CHANGELOG.md\").cou|nt");
    let params = json!({"command": "policyd.evaluate", "arguments": [at]});
    assert_eq!(client.request("workspace/executeCommand", params)["value"], "true");
    let at = client.at(&checks, "severity: warn|ing");
    let params = json!({"command": "policyd.evaluate", "arguments": [at]});
    let error = client.try_request("workspace/executeCommand", params).unwrap_err();
    assert_eq!(error["message"], "no expression here");
    client.stop();
}
