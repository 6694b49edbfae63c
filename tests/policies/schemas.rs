//! The published schemas are those of the tables the loader uses, and the built-in pack fits them.
//! `POLICYD_REGEN=1 cargo test --test policies schemas` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use policyd::cases::{self, names::NameTable};
use policyd::policy::{builtin, load, shapes};
use policyd::report::schemas;
use policyd::report::schemas::of_file;
use policyd::source::{Source, check, yaml};
use serde_json::Value;

use crate::support::human::HumanWorld;

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source { name: "a.yaml".to_owned(), text: text.to_owned() })
}

/// Where a text breaks a schema.
fn broken(schema: &Value, text: &str) -> Vec<String> {
    let value = yaml::parse(&source(text)).0.map(|it| it.json()).unwrap_or_default();
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(&value).map(|it| format!("{}: {it}", it.instance_path())).collect()
}

#[test]
fn committed_schemas_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let regenerate = std::env::var_os("POLICYD_REGEN").is_some();
    let mut expected = vec![];
    for (name, schema) in schemas::all() {
        let text = format!("{schema:#}\n");
        let path = folder.join(format!("{name}.schema.json"));
        if regenerate {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "{} is stale: POLICYD_REGEN=1", path.display());
        expected.push(format!("{name}.schema.json"));
    }
    let mut found: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "every schema belongs to something");
}

#[test]
fn the_built_in_pack_and_its_cases_fit() {
    let schemas = schemas::all();
    let schema = |name: &str| &schemas.iter().find(|it| it.0 == name).unwrap().1;
    let policies = builtin::FILES.iter();
    let policies = policies.map(|it| (of_file(it.name), &it.name, &it.text));
    let cases = builtin::CASES.iter().filter(|it| it.0.ends_with(".yaml"));
    let cases = cases.map(|(file, text)| ("cases", file, text));
    for (name, file, text) in policies.chain(cases) {
        assert_eq!(broken(schema(name), text), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn schema_and_reader_refuse_the_same_cases() {
    let pack = builtin::pack();
    let known = NameTable::of(&load::load(&pack, &pack).policy.unwrap());
    let schema = cases::shape::schema();
    for (text, sound) in [
        ("- {name: x, expect: {decision: none}}", true),
        ("- {name: x, each: [{d: none}], expect: {decision: \"{{d}}\"}}", true),
        ("- {name: x, each: [{d: {decision: none}}], expect: \"{{d}}\"}", true),
        ("- {name: x, expect: {decision: nothing}}", false),
        ("- {name: x, expct: {decision: none}}", false),
        ("- {expect: {decision: none}}", false),
        ("- {name: x, expect: {state: {turns: many}}}", false),
        ("- {name: x, transcript: [{todos: {a: done}}], expect: {decision: none}}", false),
        ("- {name: x, transcript: [{edits: a}], expect: {decision: none}}", false),
        ("- {name: x, given: {now: yesterday}, expect: {decision: none}}", false),
        ("- {name: x, each: x, expect: {decision: none}}", false),
        ("- {name: x, steps: [{after: 5, expect: {decision: none}}]}", false),
        ("- {name: x, steps: [{after: 5m}]}", false),
        ("name: x", false),
    ] {
        let found = broken(&schema, text);
        assert_eq!(found.is_empty(), sound, "{text}: {found:?}");
        let (cases, findings) = cases::read::read(&source(text), &known);
        assert_eq!(findings.is_empty() && !cases.is_empty(), sound, "{text}: {findings:?}");
    }
}

/// Files of `tests/schema/<folder>`: the schema that their name begins with, and their text.
fn examples(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let name = |it: &Path| it.file_stem().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|it| (name(it), fs::read_to_string(it).unwrap())).collect()
}

#[test]
fn loader_and_schema_agree_on_every_example() {
    let schemas = schemas::all();
    for (folder, sound) in [("valid", true), ("invalid", false)] {
        let examples = examples(folder);
        assert!(examples.len() >= 10, "{folder}");
        for (name, text) in examples {
            let (kind, situation) = name.split_once("__").unwrap();
            assert!(!situation.is_empty(), "{name} says what is so");
            let schema = &schemas.iter().find(|it| it.0 == kind).unwrap().1;
            let wrong = broken(schema, &text);
            assert_eq!(wrong.is_empty(), sound, "schema of {folder}/{name}: {wrong:?}");
            let shape = shapes::FILES.iter().find(|it| it.file == format!("{kind}.yaml")).unwrap();
            let (node, mut found) = yaml::parse(&source(&text));
            check::check(&node.unwrap(), &shape.kind, &mut found);
            assert_eq!(found.is_empty(), sound, "loader of {folder}/{name}: {found:?}");
        }
    }
    let kinds = |folder| -> BTreeSet<String> {
        examples(folder)
            .into_iter()
            .map(|(it, _)| it.split_once("__").unwrap().0.to_owned())
            .collect()
    };
    let files: BTreeSet<String> =
        shapes::FILES.iter().map(|it| of_file(it.file).to_owned()).collect();
    assert_eq!((kinds("valid"), kinds("invalid")), (files.clone(), files), "every kind has both");
}

/// A breaker that counts, one that waits, one switched off by hand.
fn breakers(run: &dyn Fn(&[&str]) -> String) {
    run(&["breaker", "record", "api/x", "failure"]);
    run(&["breaker", "record", "api/y", "failure", "--retry-after", "90"]);
    run(&["breaker", "trip", "api/z", "--for", "5m", "--reason", "maintenance"]);
}

/// A dead letter, one given up, one that waits for a human, a gate that asked one.
fn tasks(run: &dyn Fn(&[&str]) -> String) {
    let failing = [
        "dlq",
        "add",
        "t",
        "--title",
        "Rotate passwords",
        "--depends-on",
        "u",
        "--confidence",
        "0.5",
    ];
    for error in ["a", "b", "c", "d", "e"] {
        run(&[failing.as_slice(), &["--error", error, "--approach", "x", "--key", error]].concat());
    }
    run(&["dlq", "add", "t", "--type", "rate_limit", "--error", "429"]);
    run(&["dlq", "add", "u", "--error", "e", "--immediately"]);
    run(&["dlq", "retry", "u", "--scope", "less"]);
    run(&["dlq", "abandon", "u", "--reason", "no"]);
    run(&["escalation", "open", "--gate", "static", "--reason", "it does not pass"]);
    let gate = run(&["escalation", "list"]);
    let gate = gate.lines().find(|it| it.starts_with("handoff-")).unwrap();
    run(&["escalation", "resolve", gate.split_whitespace().next().unwrap(), "--decision", "go on"]);
}

/// One signal that waits, one that is held, one that is over.
fn signals(run: &dyn Fn(&[&str]) -> String) {
    run(&["signal", "emit", "HUMAN_REVIEW_NEEDED", "reason=a look", "blocking=yes"]);
    run(&["signal", "emit", "DOCS_NEEDED", "--from", "eng-1", "--expires", "1h"]);
    run(&["signal", "consume", "DOCS_NEEDED", "--by", "eng-2", "--lease", "5m"]);
    run(&["signal", "emit", "PLAN_REVIEW_NEEDED", "plan=a.md"]);
    let reject = run(&["signal", "list", "--format", "json"]);
    let rejected = serde_json::from_str::<Value>(reject.lines().last().unwrap()).unwrap();
    let id = rejected.get("id").and_then(Value::as_str).unwrap();
    run(&["signal", "reject", id, "--reason", "too long"]);
}

/// Tasks, and a run that used up its turns.
fn tasks_and_runs(run: &dyn Fn(&[&str]) -> String) {
    tasks(run);
    run(&["run", "--goal", "x", "--max-iterations", "1", "--budget-usd", "2", "--", "true"]);
}

/// The state of the only run.
fn state_of_run(runs: &Path) -> String {
    let mut names = fs::read_dir(runs).unwrap().map(|it| it.unwrap().path());
    let run = names.find(|it| it.is_dir()).unwrap();
    fs::read_to_string(run.join("state.json")).unwrap()
}

/// A file without a required key, or with a value of another type, is not valid.
fn rejects_other_types(validator: &jsonschema::Validator, value: &Value, schema: &Value) {
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut other = value.clone();
        other.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&other), "{}: {key} is required", schema["title"]);
    }
    for (key, kind) in schema["properties"].as_object().into_iter().flatten() {
        if ["type", "enum", "anyOf", "oneOf"].iter().any(|it| kind.get(it).is_some()) {
            let mut other = value.clone();
            let unknown = serde_json::json!([[{ "unknown": 1 }]]);
            other.as_object_mut().unwrap().insert(key.clone(), unknown);
            assert!(!validator.is_valid(&other), "{}: {key} is of any type", schema["title"]);
        }
    }
}

/// Every text is as the schema of this name says, and every key of it is described there.
fn fits(name: &str, texts: &[String]) {
    let schemas = schemas::all();
    let schema = &schemas.iter().find(|it| it.0 == name).unwrap().1;
    let validator = jsonschema::validator_for(schema).unwrap();
    assert!(!texts.is_empty(), "{name}");
    for text in texts {
        let value: Value = serde_json::from_str(text).unwrap();
        let wrong: Vec<String> = validator
            .iter_errors(&value)
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}\n{text}");
        assert!(!validator.is_valid(&Value::from("x")), "{name} says something");
        rejects_other_types(&validator, &value, schema);
        // Every key that is written is described.
        if let (Some(object), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
            for key in object.keys() {
                assert!(known.contains_key(key) || name == "diagnostic-log", "{name}: {key}");
            }
        }
    }
}

#[test]
fn what_the_program_writes_fits_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let transcript = [
        r#"{"type":"user","message":{"role":"user","content":"Add a parser"}}"#,
        r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"src/a.rs","content":"fn a() {}"}}]}}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#,
        r#"{"type":"assistant","message":{"id":"n","role":"assistant","content":[{"type":"text","text":"Done."}]}}"#,
    ];
    fs::write(at("t.jsonl"), transcript.join("\n") + "\n").unwrap();
    let payload = serde_json::json!({
        "session_id": "s", "hook_event_name": "Stop", "cwd": folder.path(), "transcript_path": at("t.jsonl"),
    });
    fs::write(at("stop.json"), payload.to_string()).unwrap();
    fs::create_dir(at("pack")).unwrap();
    let rule = "- id: a\n  category: Own\n  question: Is a done?\n  severity: warning\n  satisfied: \"!!todos.seen || files.count >= 0\"\n";
    fs::write(at("pack/considerations.yaml"), rule).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_policyd"))
            .args(arguments)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let world = HumanWorld::new(folder.path(), &[("HOME", folder.path())]);
    let human = |arguments: &[&str]| world.call(arguments).1;
    for _ in 0..2 {
        assert!(run(&["eval", "--hook", "stop", "--input", "stop.json"]).contains("block"));
    }
    human(&["pause", "5m", "--reason", "a look"]);
    run(&["eval", "--hook", "stop", "--input", "stop.json"]);
    run(&["resume"]);
    breakers(&human);
    tasks_and_runs(&human);
    fs::write(at("failure.json"), r#"{"session_id": "s", "error": "overloaded"}"#).unwrap();
    run(&["eval", "--hook", "stop-failure", "--input", "failure.json"]);
    signals(&human);
    let lint = run(&["lint", "pack", "--profile", "strict", "--format", "json"]);
    run(&["lint", "pack", "--write-baseline", "base.json"]);
    let read = |path: &str| fs::read_to_string(at(path)).unwrap();
    let signal = |name: &str| read(&format!(".policyd/signals/{name}"));
    let lines = |path: &str| read(path).lines().map(str::to_owned).collect::<Vec<_>>();
    for (name, texts) in [
        ("state", vec![read(".policyd/sessions/s/state.json")]),
        ("circuit-breakers", vec![read(".policyd/state/circuit-breakers.json")]),
        ("signal", ["HUMAN_REVIEW_NEEDED", "DOCS_NEEDED"].map(signal).to_vec()),
        ("signal-history", lines(".policyd/signals/history.jsonl")),
        ("signal-ledger", vec![read(".policyd/state/signals.json")]),
        ("decision-log", lines(".policyd/logs/decisions.jsonl")),
        ("diagnostic-log", lines(".policyd/sessions/s/diagnostic.jsonl")),
        (
            "tasks",
            ["dead-letter", "abandoned", "pending"]
                .map(|it| read(&format!(".policyd/queue/{it}.json")))
                .to_vec(),
        ),
        ("escalations", vec![read(".policyd/escalations/index.json")]),
        ("task-log", lines(".policyd/logs/dead-letter.jsonl")),
        ("run-state", vec![state_of_run(&at(".policyd/runs"))]),
        ("event-log", lines(".policyd/logs/events.jsonl")),
        ("lint", vec![lint]),
        ("lint-baseline", vec![read("base.json")]),
    ] {
        fits(name, &texts);
    }
}
