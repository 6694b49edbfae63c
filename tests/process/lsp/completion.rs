//! Completion, explanations, and the signature of calls, at places of the unsaved text.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::client::{Client, pack_file};
use crate::machine::Machine;

fn opened(machine: &Machine, file: &str) -> (Client, PathBuf) {
    let mut client = Client::in_pack(machine);
    let path = pack_file(machine, file);
    client.open(&path);
    (client, path)
}

/// Candidates at a place, in the order in which a client shows them.
fn labels(client: &mut Client, path: &Path, place: &str) -> Vec<String> {
    let at = client.at(path, place);
    labels_at(client, at)
}

fn labels_at(client: &mut Client, at: Value) -> Vec<String> {
    let answer = client.request("textDocument/completion", at);
    let mut items = answer["items"].as_array().unwrap().clone();
    items.sort_by_key(|it| it["sortText"].as_str().unwrap().to_owned());
    items.iter().map(|it| it["label"].as_str().unwrap().to_owned()).collect()
}

/// Writes a line into a new guard, and returns the candidates at `|`.
fn in_guard(client: &mut Client, path: &Path, line: &str) -> Vec<String> {
    in_guard_at(client, path, &line.replace('|', "¬"))
}

#[test]
fn expressions_are_completed_in_every_style_of_a_scalar() {
    let machine = Machine::new();
    let (mut client, guards) = opened(&machine, "guards.yaml");
    for line in [
        "when: action.pro|",
        "when: \"action.pro|\"",
        "when: \"action.pro|",
        "when: 'action.pro|'",
        "when: ¦-\n    true &&\n    action.pro|",
        "when: >-\n    action.pro|\n    && true",
        "when: !action.pro|",
        "message: Run ${action.pro|} now?",
        "message: Run ${action.pro|",
        "updated_input: {command: \"${action.pro|}\"}",
    ] {
        // The mark of the place must not be confused with the header of a literal scalar.
        let line = line.replace('|', "¬").replace('¦', "|");
        let found = in_guard_at(&mut client, &guards, &line);
        assert!(found.iter().any(|it| it == "programs"), "{line}: {found:?}");
        assert!(!found.iter().any(|it| it == "files"), "{line}: {found:?}");
    }
    client.stop();
}

/// The same with `¬` as the place, in a line with a literal scalar.
fn in_guard_at(client: &mut Client, path: &Path, line: &str) -> Vec<String> {
    let before = client.text(path).to_owned();
    let (head, tail) = line.split_once('¬').unwrap();
    client.replace_bytes(path, before.len(), before.len(), &format!("- id: new\n  {head}{tail}\n"));
    let at = before.len() + "- id: new\n  ".len() + head.len();
    let at = client.at_byte(path, at);
    let found = labels_at(client, at);
    let end = client.text(path).len();
    client.replace_bytes(path, before.len(), end, "");
    found
}

#[test]
fn keys_words_and_ids_are_completed() {
    let machine = Machine::new();
    let (mut client, guards) = opened(&machine, "guards.yaml");
    let keys = in_guard(&mut client, &guards, "dec|");
    assert!(
        keys.contains(&"decision".to_owned()) && keys.contains(&"unless".to_owned()),
        "{keys:?}"
    );
    assert!(!keys.contains(&"id".to_owned()), "the entry has an id: {keys:?}");
    let decisions = in_guard(&mut client, &guards, "decision: |");
    assert!(decisions.contains(&"ask".to_owned()), "{decisions:?}");
    let events = in_guard(&mut client, &guards, "on: [post_|]");
    assert!(events.contains(&"post_tool_use".to_owned()), "{events:?}");
    let kinds = in_guard(&mut client, &guards, "when: commands.kind(\"te|\").count > 0");
    assert!(kinds.contains(&"test".to_owned()), "{kinds:?}");
    let types = in_guard(&mut client, &guards, "when: session.type == \"|\"");
    assert!(types.contains(&"DEVELOPMENT".to_owned()), "{types:?}");
    let signals = in_guard(&mut client, &guards, "when: signals.pending.contains(\"|\")");
    assert!(signals.contains(&"COMPLETION_REQUESTED".to_owned()), "{signals:?}");
    for place in ["commands: [gi|]", "when: commands.ran(\"|\")", "when: program.name == \"|\""] {
        let programs = in_guard(&mut client, &guards, place);
        assert!(programs.contains(&"git".to_owned()), "{place}: {programs:?}");
    }
    for place in ["when: event.tool == \"|\"", "when: tools.count(\"|\") > 1"] {
        let tools = in_guard(&mut client, &guards, place);
        assert!(tools.contains(&"Bash".to_owned()), "{place}: {tools:?}");
    }
    let codes = in_guard(&mut client, &guards, "# policyd: ignore[PD6|]");
    assert!(codes.contains(&"PD601".to_owned()), "{codes:?}");
    client.stop();
}

#[test]
fn cases_are_completed_with_the_ids_of_the_pack() {
    let machine = Machine::new();
    let (mut client, cases) = opened(&machine, "tests/cases.yaml");
    let found = labels(&mut client, &cases, "guards: {no_|deploy");
    assert!(found.contains(&"no_deploy".to_owned()), "{found:?}");
    let found = labels(&mut client, &cases, "event: pre_|tool_use");
    assert!(found.contains(&"pre_tool_use".to_owned()), "{found:?}");
    let found = labels(&mut client, &cases, "no_deploy: |fired");
    assert!(found.contains(&"silent".to_owned()), "{found:?}");
    client.stop();
}

#[test]
fn a_candidate_replaces_the_word_at_the_place() {
    let machine = Machine::new();
    let (mut client, checks) = opened(&machine, "considerations.yaml");
    let answer = client.request("textDocument/completion", client.at(&checks, "files.ki|nd("));
    let items = answer["items"].as_array().unwrap();
    let kind = items.iter().find(|it| it["label"] == "kind(text)").unwrap();
    assert_eq!(client.slice(&checks, &kind["textEdit"]["range"]), "kind");
    assert_eq!(kind["textEdit"]["newText"], "kind(\"$0\")");
    assert_eq!((&kind["insertTextFormat"], &kind["detail"]), (&2.into(), &"files".into()));
    let text = kind["documentation"]["value"].as_str().unwrap();
    assert!(text.contains("Example: `files.kind("), "{text}");
    client.stop();
}

fn hover(client: &mut Client, path: &Path, place: &str) -> (String, String) {
    let answer = client.request("textDocument/hover", client.at(path, place));
    let word = client.slice(path, &answer["range"]);
    (word, answer["contents"]["value"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn words_are_explained() {
    let machine = Machine::new();
    let (mut client, checks) = opened(&machine, "considerations.yaml");
    for (place, word, text) in [
        ("files.matc|hing", "matching", "files.matching(text): files"),
        ("kind(\"co|de\")", "code", "In the built-in pack, `vocabulary.yaml:"),
        ("sev|erity", "severity", "`severity` (required): How much it matters."),
        ("DEVEL|OPMENT", "DEVELOPMENT", "session type `DEVELOPMENT`"),
        ("id: chang|elog", "changelog", "check `changelog`"),
    ] {
        let (found, explained) = hover(&mut client, &checks, place);
        assert_eq!(found, word);
        assert!(explained.contains(text), "{place}: {explained}");
    }
    client.replace(&checks, "when: files", "# policyd: ignore[PD601] reason=\"x\"\n  when: files");
    assert!(hover(&mut client, &checks, "PD|601").1.starts_with("# "), "the page of the rule");
    let nothing = client.request("textDocument/hover", client.at(&checks, "count >| 0"));
    assert_eq!(nothing, Value::Null);
    client.stop();
}

#[test]
fn the_arguments_of_a_call_are_shown() {
    let machine = Machine::new();
    let (mut client, checks) = opened(&machine, "considerations.yaml");
    let answer =
        client.request("textDocument/signatureHelp", client.at(&checks, "files.kind(\"|code"));
    assert_eq!(answer["signatures"][0]["label"], "kind(text): files");
    assert_eq!(answer["signatures"][0]["parameters"][0]["label"], serde_json::json!([5, 9]));
    assert_eq!(answer["activeParameter"], 0);
    let none =
        client.request("textDocument/signatureHelp", client.at(&checks, "severity: warn|ing"));
    assert_eq!(none, Value::Null);
    client.stop();
}
