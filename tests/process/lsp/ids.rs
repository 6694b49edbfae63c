//! Definitions, references, and renames of ids across the files of a pack; outline, folds, and colors.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, pack_file, put_pack, uri};
use crate::machine::Machine;

/// A pack in which a probe, a checker, and a guard are named in several files.
const FILES: [(&str, &str); 5] = [
    ("policyd.yaml", "version: 1\nname: team\nextends: [builtin]\n"),
    (
        "probes.yaml",
        "# What the tracker says.\n# It is asked once.\n- id: ticket\n  command: [tracker, show]\n  timeout: 5s\n  parse: json\n  cache: 1m\n",
    ),
    (
        "checkers.yaml",
        "has_ticket:\n  satisfied: probes.ticket.ok\n  details: \"the ticket is ${probes.ticket.error}\"\n",
    ),
    (
        "considerations.yaml",
        "- id: ticket_known\n  category: Work\n  question: Is the ticket known?\n  severity: warning\n  \
         applicable_session_types: [DEVELOPMENT]\n  checker: \"has_ticket\"\n  guidance: Create a ticket.\n",
    ),
    (
        "tests/cases.yaml",
        "- name: a ticket is needed\n  given: {probes: {ticket: {missing: true}}}\n  transcript:\n    - user: x\n  expect:\n    \
         considerations: {ticket_known: skipped}\n    effects: {probes: []}\n",
    ),
];

fn opened(machine: &Machine) -> Client {
    put_pack(machine, &FILES);
    Client::start(machine, &Value::Null)
}

/// Files and lines of locations.
fn shown(answer: &Value) -> Vec<String> {
    let one = |it: &Value| {
        let file = it["uri"].as_str().unwrap().rsplit("policies/").next().unwrap().to_owned();
        format!("{file}:{}", it["range"]["start"]["line"])
    };
    answer.as_array().unwrap().iter().map(one).collect()
}

fn definition(client: &mut Client, path: &Path, place: &str) -> Vec<String> {
    let at = client.at(path, place);
    shown(&client.request("textDocument/definition", at))
}

#[test]
fn ids_lead_to_their_definitions_and_uses() {
    let machine = Machine::new();
    let mut client = opened(&machine);
    let (checks, checkers) =
        (pack_file(&machine, "considerations.yaml"), pack_file(&machine, "checkers.yaml"));
    [&checks, &checkers].into_iter().for_each(|it| client.open(it));
    assert_eq!(definition(&mut client, &checks, "has_|ticket"), ["checkers.yaml:0"]);
    assert_eq!(definition(&mut client, &checkers, "probes.tick|et.ok"), ["probes.yaml:2"]);
    assert_eq!(definition(&mut client, &checks, "DEVEL|OPMENT"), [] as [&str; 0]);
    let mut at = client.at(&checkers, "probes.tick|et.ok");
    at["context"] = json!({"includeDeclaration": true});
    let mut all = shown(&client.request("textDocument/references", at.clone()));
    all.sort();
    let uses = ["checkers.yaml:1", "checkers.yaml:2", "probes.yaml:2", "tests/cases.yaml:1"];
    assert_eq!(all, uses);
    at["context"] = json!({"includeDeclaration": false});
    assert_eq!(shown(&client.request("textDocument/references", at)).len(), 3);
    client.stop();
}

#[test]
fn a_client_that_can_show_the_built_in_pack_gets_definitions_in_it() {
    let machine = Machine::new();
    drop(opened(&machine));
    let mut client = Client::start(&machine, &json!({"virtualFiles": true}));
    let checks = pack_file(&machine, "considerations.yaml");
    client.open(&checks);
    let at = client.at(&checks, "DEVEL|OPMENT");
    let found = client.request("textDocument/definition", at);
    let address = found[0]["uri"].as_str().unwrap();
    assert_eq!(address, "policyd:/builtin/session_types.yaml");
    let content = client.request("workspace/textDocumentContent", json!({"uri": address}));
    let line = found[0]["range"]["start"]["line"].as_u64().unwrap();
    let line =
        content["text"].as_str().unwrap().lines().nth(usize::try_from(line).unwrap()).unwrap();
    assert_eq!(line, "- id: DEVELOPMENT");
    client.stop();
}

#[test]
fn other_clients_get_definitions_in_the_copy_of_the_built_in_pack() {
    let machine = Machine::new();
    let mut client = opened(&machine);
    let checks = pack_file(&machine, "considerations.yaml");
    client.open(&checks);
    let place = |client: &mut Client| {
        let at = client.at(&checks, "DEVEL|OPMENT");
        client.request("textDocument/definition", at)
    };
    assert_eq!(place(&mut client), json!([]), "there is no copy");
    let text = include_str!("../../../policies/session_types.yaml");
    let copy = ".policyd/policies/builtin/session_types.yaml";
    machine.put(copy, text);
    let found = place(&mut client);
    assert!(found[0]["uri"].as_str().unwrap().ends_with(copy), "{found}");
    machine.put(copy, &format!("# of another version\n{text}"));
    assert_eq!(place(&mut client), json!([]), "a copy of another version has other lines");
    client.stop();
}

#[test]
fn a_rename_changes_every_use_in_open_and_closed_files() {
    let machine = Machine::new();
    let mut client = opened(&machine);
    let probes = pack_file(&machine, "probes.yaml");
    client.open(&probes);
    // The positions are those of the unsaved text.
    client.replace(&probes, "# It is asked once.\n", "");
    let at = client.at(&probes, "id: tick|et");
    let prepared = client.request("textDocument/prepareRename", at.clone());
    assert_eq!(prepared["placeholder"], "ticket");
    assert_eq!(client.slice(&probes, &prepared["range"]), "ticket");
    let mut rename = at;
    rename["newName"] = "issue".into();
    let edit = client.request("textDocument/rename", rename);
    let mut changed = client.apply(&edit);
    changed.sort();
    assert_eq!(
        changed,
        [
            pack_file(&machine, "checkers.yaml"),
            probes.clone(),
            pack_file(&machine, "tests/cases.yaml")
        ]
    );
    assert!(client.text(&probes).contains("- id: issue\n"));
    let checkers = client.text(&changed[0]).to_owned();
    assert!(checkers.contains("probes.issue.ok") && checkers.contains("${probes.issue.error}"));
    assert!(client.text(&changed[2]).contains("given: {probes: {issue: {missing: true}}}"));
    changed.iter().for_each(|it| client.expect_codes(it, &[]));
    client.stop();
}

#[test]
fn what_cannot_be_renamed_is_refused_with_the_reason() {
    let machine = Machine::new();
    let mut client = opened(&machine);
    let checks = pack_file(&machine, "considerations.yaml");
    let probes = pack_file(&machine, "probes.yaml");
    [&checks, &probes].into_iter().for_each(|it| client.open(it));
    let mut refused = |path: &Path, place: &str, new: &str| {
        let mut at = client.at(path, place);
        at["newName"] = new.into();
        let error = client.try_request("textDocument/rename", at).unwrap_err();
        assert_eq!(error["code"], -32803);
        error["message"].as_str().unwrap().to_owned()
    };
    assert!(refused(&checks, "DEVEL|OPMENT", "X").contains("not defined in this pack"));
    assert!(refused(&checks, "quest|ion: Is", "X").contains("nothing at this place"));
    assert!(refused(&checks, "id: tick|et_known", "a b").contains("cannot be an id"));
    assert!(refused(&checks, "id: tick|et_known", "local_testing").contains("another check"));
    assert!(refused(&probes, "id: tick|et", "Is-Sue").contains("name of a member"));
    for new in ["null", "true", "123", "1e3", "0x10"] {
        let reason = refused(&checks, "id: tick|et_known", new);
        assert!(reason.contains("cannot be an id"), "{new}: {reason}");
    }
    machine.put(".policyd/policies/guards.yaml", "- id: [\n");
    client.notify(
        "workspace/didChangeWatchedFiles",
        json!({"changes": [
        {"uri": uri(&pack_file(&machine, "guards.yaml")), "type": 1}]}),
    );
    let mut at = client.at(&checks, "id: tick|et_known");
    at["newName"] = "known".into();
    let error = client.try_request("textDocument/rename", at).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("guards.yaml is not valid"), "{error}");
    client.stop();
}

#[test]
fn the_outline_has_entries_with_their_questions() {
    let machine = Machine::new();
    let mut client = opened(&machine);
    let checks = pack_file(&machine, "considerations.yaml");
    client.open(&checks);
    let about = json!({"textDocument": {"uri": uri(&checks)}});
    let symbols = client.request("textDocument/documentSymbol", about.clone());
    assert_eq!(symbols[0]["name"], "ticket_known");
    assert_eq!(symbols[0]["detail"], "Is the ticket known?");
    assert_eq!(client.slice(&checks, &symbols[0]["selectionRange"]), "ticket_known");
    let folds = client.request("textDocument/foldingRange", about.clone());
    assert_eq!((&folds[0]["startLine"], &folds[0]["endLine"]), (&json!(0), &json!(6)));
    let found = client.request("workspace/symbol", json!({"query": "TICKET"}));
    let names: Vec<_> = found.as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["has_ticket", "ticket_known", "ticket"]);
    client.stop();
}

#[test]
fn expressions_are_formatted_and_everything_else_stays() {
    let machine = Machine::new();
    let mut client = opened(&machine);
    let guards = pack_file(&machine, "guards.yaml");
    let text = |[plain, quoted, first, second]: [&str; 4]| {
        format!(
            "- {{id: a, on: pre_tool_use, when: {plain}, message:  m}}  # why\n\
             - id: b\n  on: pre_tool_use\n  when: {quoted}\n  message: |\n    ${{{first}}}  m\n\
             - id: c\n  on: pre_tool_use\n  when: >-\n    {first}\n    {second}\n  message: m\n"
        )
    };
    let loose = [
        "files.count>1",
        r#""event.tool==\"Bash\"&&true""#,
        r#"commands.ran( "git" )  ||  ! true"#,
        r#"&&  event.tool  ==  "x  y""#,
    ];
    client.open_with(&guards, &text(loose));
    let params = json!({"textDocument": {"uri": uri(&guards)}, "options": {"tabSize": 2}});
    let edits = client.request("textDocument/formatting", params.clone());
    let document = json!({"uri": uri(&guards), "version": null});
    client.apply(&json!({"documentChanges": [{"textDocument": document, "edits": edits}]}));
    let regular = [
        "files.count > 1",
        r#""event.tool == \"Bash\" && true""#,
        r#"commands.ran("git") || !true"#,
        r#"&& event.tool == "x  y""#,
    ];
    assert_eq!(client.text(&guards), text(regular));
    assert_eq!(client.request("textDocument/formatting", params), json!([]));
    client.stop();
}

#[test]
fn words_of_expressions_have_colors() {
    let machine = Machine::new();
    let mut client = opened(&machine);
    let checkers = pack_file(&machine, "checkers.yaml");
    client.open(&checkers);
    let about = json!({"textDocument": {"uri": uri(&checkers)}});
    let answer = client.request("textDocument/semanticTokens/full", about);
    let legend = &client.capabilities["semanticTokensProvider"]["legend"]["tokenTypes"];
    let data: Vec<u64> =
        answer["data"].as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect();
    let (mut line, mut column, mut words) = (0, 0, vec![]);
    for it in data.chunks(5) {
        column = if it[0] == 0 { column + it[1] } else { it[1] };
        line += it[0];
        let at = |column: u64| json!({"line": line, "character": column});
        let word =
            client.slice(&checkers, &json!({"start": at(column), "end": at(column + it[2])}));
        words.push(format!("{word} {}", legend[usize::try_from(it[3]).unwrap()].as_str().unwrap()));
    }
    let one = ["probes variable", "ticket enumMember"];
    assert_eq!(words, [&one[..], &["ok property"], &one, &["error property"]].concat());
    client.stop();
}
