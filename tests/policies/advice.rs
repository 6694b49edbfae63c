//! Each text that advises has cases that follow it literally, in `policies/tests/advice.yaml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use policyd::source::Source;
use policyd::source::yaml;
use policyd::world::Confirmation;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::{console, machine};

/// The end of a text that sends the agent to the user. The cases `Ask the user` follow it.
const TO_THE_USER: &[&str] = &["Ask the user ", "Describe the "];
/// The beginning of a text for the user, who decides in the client's own dialog.
const FOR_THE_USER: &[&str] = &["Approve only if ", "Check "];
/// Advice that is followed by doing nothing, or outside of what policyd sees.
const NOTHING_TO_DO: &[&str] = &[
    "Leave the file unchanged.",
    "Commits that only the old position reaches can be lost.",
    "Replace the secret wherever it is valid.",
    "policyd records the match in memory/episodic/.",
];
/// Files with guards.
const GUARD_FILES: &[&str] = &[
    "destructive-commands.yaml",
    "git-discipline.yaml",
    "network-exfiltration.yaml",
    "protected-paths.yaml",
    "secrets.yaml",
];
/// Words between two pieces of advice.
const BETWEEN: &[&str] = &["and", "or"];

fn read(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let source = Arc::new(Source { name: path.display().to_string(), text });
    let (node, findings) = yaml::parse(&source);
    assert!(findings.is_empty(), "{}: {findings:?}", path.display());
    let Value::Array(entries) = node.unwrap().json() else { panic!("{file} is a list") };
    entries
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap_or_default()
}

/// The advice that cases follow, by the id of its rule.
fn followed() -> BTreeMap<String, Vec<String>> {
    let mut followed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in read("tests/advice.yaml") {
        for each in case
            .get("each")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|it| it["of"].is_string())
        {
            let advice = followed.entry(text(each, "of").to_owned()).or_default();
            advice.push(text(each, "advice").to_owned());
        }
    }
    // A long text first: a short one can be a part of it.
    followed.values_mut().for_each(|it| it.sort_by_key(|it| std::cmp::Reverse(it.len())));
    followed
}

/// What is left of a text without the advice that cases follow.
fn rest(advice: &str, followed: &[String]) -> String {
    let rest = followed.iter().fold(advice.to_owned(), |rest, it| rest.replace(it.as_str(), " "));
    let rest = NOTHING_TO_DO.iter().fold(rest, |rest, it| rest.replace(it, " "));
    let words = rest.split(|it: char| !it.is_alphanumeric());
    let left: Vec<_> = words.filter(|it| !it.is_empty() && !BETWEEN.contains(it)).collect();
    left.join(" ")
}

/// The texts of the message of a rule.
fn messages(rule: &Value) -> Vec<&str> {
    match rule["message"].as_array() {
        Some(texts) => texts.iter().map(|it| text(it, "text")).collect(),
        None => vec![text(rule, "message")],
    }
}

/// The sentences of a guard's message after the one that says what happens.
fn advice_of(message: &str) -> &str {
    message.split_once(". ").map_or("", |(_, advice)| advice)
}

#[test]
fn every_advice_of_a_check_is_followed_by_a_case() {
    let followed = followed();
    let none = Vec::new();
    let left: Vec<_> = read("considerations.yaml")
        .iter()
        .map(|it| (text(it, "id").to_owned(), it))
        .map(|(id, it)| (rest(text(it, "guidance"), followed.get(&id).unwrap_or(&none)), id))
        .filter(|(rest, _)| !rest.is_empty())
        .collect();
    assert_eq!(left, Vec::new(), "advice that no case in policies/tests/advice.yaml follows");
}

#[test]
fn every_advice_of_a_guard_is_followed_by_a_case() {
    let followed = followed();
    let none = Vec::new();
    let mut left = Vec::new();
    for file in GUARD_FILES {
        for guard in read(file) {
            let id = text(&guard, "id");
            for advice in messages(&guard).into_iter().map(advice_of) {
                let is_for = |starts: &[&str]| starts.iter().any(|it| advice.starts_with(it));
                let rest = rest(advice, followed.get(id).unwrap_or(&none));
                if !rest.is_empty() && !is_for(TO_THE_USER) && !is_for(FOR_THE_USER) {
                    left.push((id.to_owned(), rest));
                }
            }
        }
    }
    assert_eq!(left, Vec::new(), "advice that no case in policies/tests/advice.yaml follows");
}

#[test]
fn no_case_follows_advice_that_no_rule_gives() {
    let mut texts = BTreeMap::new();
    for file in GUARD_FILES.iter().chain(&["considerations.yaml"]) {
        for rule in read(file) {
            let said = format!("{}\n{}", text(&rule, "guidance"), messages(&rule).join("\n"));
            texts.insert(text(&rule, "id").to_owned(), said);
        }
    }
    for (rule, advice) in followed() {
        let said = texts.get(&rule).unwrap_or_else(|| panic!("no rule `{rule}`"));
        for it in advice {
            assert!(said.contains(&it), "{rule} does not say: {it}");
        }
    }
}

/// A call that a guard denies: the case of the pack in which it fires.
struct Denied {
    guard: String,
    command: String,
}

/// The first command of the pack's cases for each guard that denies.
fn denied_commands() -> Vec<Denied> {
    let denies: Vec<String> = GUARD_FILES
        .iter()
        .flat_map(|file| read(file))
        .filter(|it| text(it, "decision") == "deny")
        .map(|it| text(&it, "id").to_owned())
        .collect();
    let cases = ["tests/guards.yaml", "tests/guards_kinds.yaml", "tests/guards_gate.yaml"];
    let mut found: Vec<Denied> = Vec::new();
    for case in cases.iter().flat_map(|file| read(file)) {
        let named = text(&case, "name").split(' ').next().unwrap_or_default().to_owned();
        for each in case.get("each").and_then(Value::as_array).into_iter().flatten() {
            let guard = each["guard"].as_str().unwrap_or(&named).to_owned();
            let is_new = !found.iter().any(|it| it.guard == guard);
            if text(each, "is") == "fired" && is_new && denies.contains(&guard) {
                let command = text(each, "line").to_owned();
                found.extend((!command.is_empty()).then_some(Denied { guard, command }));
            }
        }
    }
    found
}

/// The answer of the hook for a command.
fn before(world: &FakeWorld, command: &str) -> Value {
    let payload = json!({"session_id": "s", "cwd": "/work", "tool_name": "Bash",
        "tool_input": {"command": command}, "tool_use_id": "t"});
    let words = ["eval", "--hook", "pre-tool-use", "--harness", "claude-code"];
    let said = console::call(world, &words, payload.to_string().as_bytes());
    assert_eq!(said.code, 0, "{command}: {}", said.err);
    serde_json::from_str(said.out.trim()).unwrap_or_default()
}

/// The commands that a notice offers to a user who disagrees: `Wrong? Run: A, or: B`.
fn offered(notice: &str) -> Vec<Vec<String>> {
    let (_, commands) = notice.split_once("Wrong? Run: ").unwrap_or_else(|| panic!("{notice}"));
    let words = |it: &str| it.split(' ').skip(1).map(str::to_owned).collect();
    commands.split(", or: ").map(words).collect()
}

/// A user runs exactly what the notice of a blocked call says, and the call passes once.
#[test]
fn a_call_passes_after_each_command_that_its_notice_offers() {
    let denied = denied_commands();
    let mut followed = 0;
    for Denied { guard, command } in denied {
        for offer in 0.. {
            let world = machine::machine();
            world.set_confirmation(Confirmation::Yes);
            let answer = before(&world, &command);
            let is_denied = |it: &Value| it["hookSpecificOutput"]["permissionDecision"] == "deny";
            if !is_denied(&answer) {
                break; // It fires in a situation that only its case gives.
            }
            let offers = offered(text(&answer, "systemMessage"));
            assert!((1..=2).contains(&offers.len()), "{guard}: {answer}");
            let Some(words) = offers.get(offer) else { break };
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = console::call(&world, &words, b"");
            assert_eq!(said.code, 0, "{guard}: {words:?}: {}{}", said.out, said.err);
            assert!(!is_denied(&before(&world, &command)), "{guard}: {words:?}: {command}");
            assert!(is_denied(&before(&world, &command)), "{guard}: once: {words:?}: {command}");
            followed += 1;
        }
    }
    assert!(followed >= 60, "{followed} commands");
}
