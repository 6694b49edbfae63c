//! Random edits of a file while requests are made: the server holds the same text as the client, and every position
//! that it returns is inside of the file.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, offset, pack_file, position, uri};
use crate::machine::Machine;
use crate::support::random::Random;

/// Pieces of text: of YAML, of expressions, and of what both have trouble with.
const PIECES: [&str; 30] = [
    "\n",
    "\n  ",
    "- id: x\n",
    "when: ",
    "satisfied: |-\n    ",
    "files.",
    "commands.kind(\"",
    "\")",
    "\"",
    "'",
    "${",
    "}",
    "# policyd: ignore[",
    "]",
    "[",
    "{",
    ": ",
    "é",
    "𝄞",
    "\r\n",
    "\t",
    "&& ",
    "!",
    ">\n",
    "override: true\n",
    "probes.",
    "task.",
    "0x",
    "e\u{301}",
    "",
];

/// All positions in a value.
fn positions<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("line") && fields.contains_key("character") {
                found.push(value);
            }
            fields.values().for_each(|it| positions(it, found));
        }
        Value::Array(items) => items.iter().for_each(|it| positions(it, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_positions(text: &str, value: &Value) {
    let mut found = vec![];
    positions(value, &mut found);
    for it in found {
        offset(text, it); // Panics outside of the text.
    }
}

/// The next offset at the beginning of a character, but not within the end of a line, where no position is.
fn place(text: &str, near: usize) -> usize {
    let is_place = |at: &usize| {
        text.is_char_boundary(*at)
            && !(text[..*at].ends_with('\r') && text[*at..].starts_with('\n'))
    };
    (near..=text.len()).find(is_place).unwrap()
}

#[test]
fn random_edits_keep_text_and_positions_in_step() {
    let rounds = std::env::var("POLICYD_EDITS").ok().and_then(|it| it.parse().ok()).unwrap_or(150);
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let files = ["considerations.yaml", "guards.yaml", "tests/cases.yaml"]
        .map(|it| pack_file(&machine, it));
    files.iter().for_each(|it| client.open(it));
    for round in 0..rounds {
        let file = &files[random.below(files.len())];
        let text = client.text(file).to_owned();
        let [one, other] = [(); 2].map(|()| place(&text, random.below(text.len() + 1)));
        // Mostly insertions and short deletions; sometimes much of the file is gone.
        let short = place(&text, text.len().min(one + random.below(6)));
        let end = match random.below(20) {
            0 => other.max(one),
            1..=9 => short,
            _ => one,
        };
        client.replace_bytes(file, one, end, PIECES[random.below(PIECES.len())]);
        if client.text(file).len() < 40 {
            let original = std::fs::read_to_string(file).unwrap();
            client.replace_bytes(file, 0, 0, &original);
        }
        let text = client.text(file).to_owned();
        let at = position(&text, place(&text, random.below(text.len() + 1)));
        for (method, more) in REQUESTS {
            let mut params = json!({"textDocument": {"uri": uri(file)}, "position": at,
                "range": {"start": {"line": 0, "character": 0}, "end": at}});
            for (key, value) in more(&at).as_object().unwrap() {
                params[key] = value.clone();
            }
            let answer = match client.try_request(method, params) {
                Ok(answer) => answer,
                // A request about nothing may fail, but not because of the server.
                Err(error) => {
                    assert_eq!(error["code"], -32803, "{method}: {error}");
                    continue;
                }
            };
            if *method == "policyd/text" {
                assert_eq!(answer.as_str(), Some(text.as_str()), "after round {round}");
            } else if !ELSEWHERE.contains(method) {
                check_positions(&text, &answer);
            }
        }
        if round % 10 == 0 {
            // The client compares the positions of findings with the text that it has.
            client.listen(Duration::from_millis(80));
        }
    }
    client.stop();
}

/// Parameters of a request besides the file, a position, and a range.
type MoreParams = fn(&Value) -> Value;

const REQUESTS: &[(&str, MoreParams)] = &[
    ("policyd/text", |_| json!({})),
    ("textDocument/codeAction", |_| json!({"context": {"diagnostics": []}})),
    ("textDocument/completion", |_| json!({})),
    ("textDocument/hover", |_| json!({})),
    ("textDocument/signatureHelp", |_| json!({})),
    ("textDocument/definition", |_| json!({})),
    ("textDocument/references", |_| json!({"context": {"includeDeclaration": true}})),
    ("textDocument/prepareRename", |_| json!({})),
    ("textDocument/rename", |_| json!({"newName": "renamed"})),
    ("textDocument/documentSymbol", |_| json!({})),
    ("textDocument/foldingRange", |_| json!({})),
    ("textDocument/semanticTokens/full", |_| json!({})),
    ("textDocument/codeLens", |_| json!({})),
    ("textDocument/inlayHint", |_| json!({})),
];

/// Requests with positions in other files, too.
const ELSEWHERE: &[&str] =
    &["textDocument/definition", "textDocument/references", "textDocument/rename"];
