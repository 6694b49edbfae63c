//! Random edits of files while requests are made: the server holds the same text as the client, and it answers as a
//! server does that reads the edited files for the first time. `POLICYD_EDITS` is the number of edits; 300000 take about an hour.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::client::{Client, offset_inside, pack_file, position, uri};
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

fn check_positions(method: &str, text: &str, answer: &Value) {
    let mut found = vec![];
    positions(answer, &mut found);
    for it in found {
        assert!(offset_inside(text, it).is_some(), "{method}: {it} is outside: {answer} {text:?}");
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

/// Edits after which a new server reads the files.
const FRESH_EVERY: usize = 25;

#[test]
fn random_edits_keep_text_and_positions_in_step() {
    let rounds = std::env::var("POLICYD_EDITS").ok().and_then(|it| it.parse().ok()).unwrap_or(150);
    let machine = Machine::new();
    let mut client = Client::in_pack(&machine);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let files = ["considerations.yaml", "guards.yaml", "tests/cases.yaml"]
        .map(|it| pack_file(&machine, it));
    files.iter().for_each(|it| client.open(it));
    for round in 1..=rounds {
        let file = &files[random.below(files.len())];
        edit(&mut client, file, &mut random);
        let text = client.text(file).to_owned();
        let at = position(&text, place(&text, random.below(text.len() + 1)));
        let answers = answers(&mut client, file, &at);
        for (method, answer) in &answers {
            match answer {
                Ok(answer) if *method == "policyd/text" => {
                    assert_eq!(answer.as_str(), Some(text.as_str()), "after edit {round}");
                }
                Ok(answer) if !ELSEWHERE.contains(method) => check_positions(method, &text, answer),
                Ok(_) => {}
                // A request about nothing may fail, but not because of the server.
                Err(error) => assert_eq!(error["code"], -32803, "{method}: {error}"),
            }
        }
        if round % FRESH_EVERY == 0 {
            check_against_a_new_server(&machine, &client, &files, file, &at, &answers);
        }
    }
    client.stop();
}

/// Changes a file at a random place: mostly insertions and short deletions; sometimes much of the file is gone.
fn edit(client: &mut Client, file: &Path, random: &mut Random) {
    let text = client.text(file).to_owned();
    let [one, other] = [(); 2].map(|()| place(&text, random.below(text.len() + 1)));
    let short = place(&text, text.len().min(one + random.below(6)));
    let end = match random.below(20) {
        0 => other.max(one),
        1..=9 => short,
        _ => one,
    };
    client.replace_bytes(file, one, end, PIECES[random.below(PIECES.len())]);
    // The files stay useful: edits begin again with the original one.
    if client.text(file).len() < 40 || random.below(60) == 0 {
        let (end, original) = (client.text(file).len(), std::fs::read_to_string(file).unwrap());
        client.replace_bytes(file, 0, end, &original);
    }
}

/// The answer to a request, or its error.
type Answer = (&'static str, Result<Value, Value>);

/// The answers to all requests at a position. Findings are published before `textDocument/codeAction` is answered.
fn answers(client: &mut Client, file: &Path, at: &Value) -> Vec<Answer> {
    let mut answers = vec![];
    for (method, more) in REQUESTS {
        let mut params = json!({"textDocument": {"uri": uri(file)}, "position": at,
            "range": {"start": {"line": 0, "character": 0}, "end": at}});
        for (key, value) in more(at).as_object().unwrap() {
            params[key] = value.clone();
        }
        answers.push((*method, client.try_request(method, params)));
    }
    answers
}

/// Compares answers and findings with those of a server that has only read the present texts.
fn check_against_a_new_server(
    machine: &Machine,
    client: &Client,
    files: &[PathBuf],
    file: &Path,
    at: &Value,
    expected: &[Answer],
) {
    let mut fresh = Client::start(machine, &Value::Null);
    files.iter().for_each(|it| fresh.open_with(it, client.text(it)));
    let texts: Vec<&str> = files.iter().map(|it| client.text(it)).collect();
    for ((method, answer), (_, expected)) in
        answers(&mut fresh, file, at).into_iter().zip(expected.iter().cloned())
    {
        let [answer, expected] = [answer, expected].map(|it| it.map(without_versions));
        assert_eq!(answer, expected, "{method} at {at} of {}: {texts:?}", file.display());
    }
    for it in files {
        assert_eq!(fresh.findings.get(it), client.findings.get(it), "{}: {texts:?}", it.display());
    }
    fresh.stop();
}

/// A value without the versions of files, which count edits.
fn without_versions(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(key, _)| key != "version");
            Value::Object(fields.map(|(key, it)| (key, without_versions(it))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_versions).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
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
    ("textDocument/formatting", |_| json!({})),
    ("textDocument/codeLens", |_| json!({})),
    ("textDocument/inlayHint", |_| json!({})),
];

/// Requests with positions in other files, too.
const ELSEWHERE: &[&str] =
    &["textDocument/definition", "textDocument/references", "textDocument/rename"];
