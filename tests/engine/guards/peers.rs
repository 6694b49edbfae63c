//! What peers decide about tool calls, prompts and stops, decided by the built-in pack: caught and false
//! alarms counted apart. A case that presumes a rule is run with that rule written out.

use std::collections::BTreeMap;

use serde_json::Value;

use super::machine::{Machine, decision};
use crate::support::shared;

/// The shared cases, where they are there.
fn shared() -> Vec<Value> {
    shared::cases("peer_cases.json").unwrap_or_default()
}

/// Texts of a list.
fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", items.join(", "))
}

fn rule(id: &str, on: &str, when: &str) -> String {
    format!("- id: {id}\n  on: [{on}]\n  when: >-\n    {when}\n  decision: deny\n  message: No.\n")
}

/// The rule that a case presumes, as its user would write it.
fn presumed(needs: &Value) -> String {
    let regex =
        |it: &Value| it.as_str().unwrap_or_default().replace('\\', "\\\\").replace('"', "\\\"");
    let tool = |when: String| rule("theirs", "pre_tool_use", &when);
    let prompt = |when: String| rule("theirs", "user_prompt_submit", &when);
    if needs["protected_paths"].is_array() {
        return tool(format!("action.changes({})", list(&texts(&needs["protected_paths"]))));
    }
    if needs["protected_dirs_no_access"].is_array() {
        let folders = texts(&needs["protected_dirs_no_access"]);
        let globs = folders.iter().map(|it| it.trim_end_matches('/'));
        let globs: Vec<String> = globs.flat_map(|it| [it.to_owned(), format!("{it}/**")]).collect();
        return tool(format!("action.touches({})", list(&globs)));
    }
    if needs["uneditable_globs"].is_array() {
        return tool(format!("action.changes({})", list(&texts(&needs["uneditable_globs"]))));
    }
    if needs["prevent_root_additions"] == true {
        let root = needs["project_root"].as_str().unwrap();
        return tool(format!("action.changes([\"{root}/*\"])"));
    }
    if needs["protect_tests"] == true {
        return tool(
            "action.deletes([\"test_*.py\", \"*_test.*\", \"*.test.*\", \"*Test.java\", \"**/tests/**\"]) \
             || action.written.matches(\"@Disabled|@Ignore|\\\\.skip\\\\(|@pytest\\\\.mark\\\\.skip|#\\\\[ignore\")"
                .to_owned(),
        );
    }
    if needs["protected_branches"].is_array() {
        let branches = list(&texts(&needs["protected_branches"]));
        return format!(
            "- id: theirs\n  commands: [git push]\n  when: >-\n    program.names({branches})\n  \
             decision: deny\n  message: No.\n"
        );
    }
    if needs["rule"]["pattern"].is_string() {
        return tool(format!("action.command.matches(\"{}\")", regex(&needs["rule"]["pattern"])));
    }
    if needs["block_command_regex"].is_string() {
        return tool(format!(
            "action.command.matches(\"{}\")",
            regex(&needs["block_command_regex"])
        ));
    }
    if needs["prompt_match"].is_array() {
        let words: Vec<String> = texts(&needs["prompt_match"])
            .iter()
            .map(|it| {
                format!(
                    "event.prompt.matches(\"\\\\b{}\\\\b\")",
                    it.trim_start_matches("contains_word:")
                )
            })
            .collect();
        return prompt(words.join(" || "));
    }
    if needs["prompt_match"]["patterns"].is_array() {
        let at_start = needs["prompt_match"]["anchor"] == "start";
        let both = needs["prompt_match"]["mode"] == "all";
        let words: Vec<String> = texts(&needs["prompt_match"]["patterns"])
            .iter()
            .map(|it| match at_start {
                true => format!("event.prompt.lower().starts_with(\"{it}\")"),
                false => format!("event.prompt.matches(\"{it}\")"),
            })
            .collect();
        return prompt(words.join(if both { " && " } else { " || " }));
    }
    // Stops are judged by the checks that are built in, excuses among them.
    if needs["prior_stop_attempts"].is_u64() || needs["dismissive_language"].is_boolean() {
        return String::new();
    }
    if needs["allow"].is_string() {
        return String::new(); // What is not guarded is let through.
    }
    panic!("the case presumes {needs}, and nobody wrote that rule");
}

/// What a case came to: whether it was stopped, and the answer. A machine keeps its compiled pack.
fn run(case: &Value, machines: &mut BTreeMap<[String; 2], Machine>) -> (bool, String) {
    let folder = case["input"]["cwd"].as_str().unwrap().to_owned();
    let rules = if case["needs"].is_object() { presumed(&case["needs"]) } else { String::new() };
    // A session of one case is none of another.
    if case["event"] == "Stop" {
        machines.clear();
    }
    let machine = machines.entry([folder.clone(), rules.clone()]).or_insert_with(|| {
        let machine = Machine::new(&folder);
        if !rules.is_empty() {
            machine.guards(&rules);
        }
        machine
    });
    if let Some(lines) = case["transcript"].as_array() {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let path = case["input"]["transcript_path"].as_str().unwrap();
        machine.world.put(path, lines.join("\n"));
    }
    for _ in 0..case["needs"]["prior_stop_attempts"].as_u64().unwrap_or_default() {
        machine.answer(&case["input"]);
    }
    let answer = machine.answer(&case["input"]);
    assert!(!answer["systemMessage"].to_string().contains("broken"), "{answer}");
    let (said, reason) = decision(&answer);
    (matches!(said.as_str(), "deny" | "ask" | "block"), format!("{said} {reason}"))
}

#[test]
fn peer_cases_are_stopped_and_let_through() {
    let cases = shared();
    if cases.is_empty() {
        return;
    }
    // Caught, all to be stopped; false alarms, all to be let through.
    let mut families: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    let mut total = [0; 4];
    let mut wrong = Vec::new();
    let mut contested = Vec::new();
    let mut machines = BTreeMap::new();
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let wanted = case["expected"] != "allow";
        let (stopped, answer) = run(case, &mut machines);
        if case["contested"].is_string() {
            contested.push(format!(
                "{id}: {} here {}",
                case["expected"],
                if stopped { "stopped" } else { "let through" }
            ));
            continue;
        }
        let family = case["family"].as_str().unwrap().to_owned();
        let row = families.entry(family).or_default();
        let at = if wanted { 0 } else { 2 };
        for counts in [row, &mut total] {
            counts[at] += usize::from(stopped);
            counts[at + 1] += 1;
        }
        if stopped != wanted {
            wrong.push(format!("{id} {}: {answer} <- {}", case["family"], case["input"]));
        }
    }
    let line = |name: &str, it: &[usize; 4]| {
        format!(
            "{name:<18} caught {:>3} of {:>3}, false alarms {:>2} of {:>3}",
            it[0], it[1], it[2], it[3]
        )
    };
    let mut report: Vec<String> = families.iter().map(|(name, it)| line(name, it)).collect();
    report.push(line("all", &total));
    report.push(String::from("contested:"));
    report.extend(contested);
    println!("{}\n{}", report.join("\n"), wrong.join("\n"));
    assert!(total[0] * 100 >= total[1] * 90, "{}", wrong.join("\n"));
    assert!(total[2] * 100 <= total[3] * 2, "{}", wrong.join("\n"));
    let data = families.get("data-not-code").copied().unwrap_or_default();
    assert_eq!(data[2], 0, "data is no command: {}", wrong.join("\n"));
}
