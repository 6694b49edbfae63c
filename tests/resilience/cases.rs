//! What the replaced systems decide about tasks that fail, decided by the program.

use std::path::Path;

use policyd::evaluation::dead_letter::review_due;
use policyd::store::escalations::{EscalationSubject, document_id};
use policyd::time::Timestamp;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::desk::Desk;
use crate::support::shared::{self, of_kinds};

/// What the case knows beside the task, as the program is told it: hints of the task, its confidence,
/// and other tasks that failed alike.
fn told(context: &Map<String, Value>, task: &mut Value) -> Vec<Value> {
    let (mut hints, mut marks, mut others) = (json!({}), Vec::new(), Vec::new());
    for (key, value) in context {
        let has = |part: &str| key.contains(part);
        let holds = value.as_bool().unwrap_or(true);
        let mark = match key.as_str() {
            "new_approach" | "simpler_scope" | "fix_commit" => {
                hints[key] = value.clone();
                continue;
            }
            "confidence" => {
                task["confidence"] = value.clone();
                continue;
            }
            _ if has("root_cause") || has("same_cause") => {
                for number in 1..value.as_u64().unwrap_or(3) {
                    let mut other = task.clone();
                    other["task_id"] = format!("other-{number}").into();
                    others.push(other);
                }
                continue;
            }
            _ if has("dependency") && (has("never") || has("impossible")) => "dependency_never",
            _ if has("dependency") && has("unavailable") => "dependency_never",
            _ if has("dependency") => "dependency_available",
            _ if has("abandon") => "human_abandoned",
            _ if has("approved") => "human_approved",
            _ if has("scope") || has("relevant") || has("obsolete") => {
                if (has("relevant") && !has("irrelevant")) == holds {
                    continue;
                }
                marks.push("scope_obsolete");
                continue;
            }
            _ if has("security") => "security",
            _ if has("data_loss") || has("rollback") => "data_loss",
            _ if has("irreversible") => "irreversible",
            _ if has("ambig") => "ambiguous",
            _ if has("external") || has("credential") || has("third") || has("api_key") => {
                "external"
            }
            _ if has("permanent") => "permanent",
            _ => panic!("the case knows `{key}`, and nothing tells it to the program"),
        };
        if holds {
            marks.push(mark);
        }
    }
    hints["marks"] = json!(marks);
    task["hints"] = hints;
    others
}

fn review(input: &Value) -> Value {
    let desk = Desk::new();
    let mut task = input["task"].clone();
    let context = input["context"].as_object().cloned().unwrap_or_default();
    let others = told(&context, &mut task);
    let tasks: Vec<Value> = [task.clone()].into_iter().chain(others).collect();
    desk.put(
        "queue/dead-letter.json",
        &json!({"tasks": tasks, "metadata": {"last_reviewed": null,
        "total_abandoned": 0, "total_recovered": 0}}),
    );
    let id = task["task_id"].as_str().unwrap();
    let said = desk.words(&["dlq", "review", id, "--format", "json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let row = said.lines().remove(0);
    let on = |place: &str| {
        let list = desk.file(&format!("queue/{place}.json"));
        let tasks = list["tasks"].as_array().cloned().unwrap_or_default();
        tasks.into_iter().find(|it| it["task_id"] == id)
    };
    let (pending, abandoned) = (on("pending"), on("abandoned"));
    let to = match (&pending, &abandoned, on("dead-letter")) {
        (Some(_), None, None) => "pending",
        (None, Some(_), None) => "abandoned.json",
        (None, None, Some(_)) => "dead-letter.json",
        other => panic!("the task is on one list: {other:?}"),
    };
    let after = pending.or(abandoned).or_else(|| on("dead-letter")).unwrap();
    let attempts = after["attempts"].as_array().unwrap();
    let metadata = &desk.file("queue/dead-letter.json")["metadata"];
    let part = desk.file("queue/pending.json")["tasks"].as_array().cloned().unwrap_or_default();
    let part = part.iter().find(|it| it["parent"] == id).cloned().unwrap_or_default();
    let documents = desk.names("escalations");
    let index = &desk.file("escalations/index.json")["escalations"][0];
    json!({
        "action": row["action"],
        "to": to,
        "recovery_strategy": after["recovery_strategy"],
        "reason": row["reason"],
        "failure_count": after["failure_count"],
        "attempts_len": attempts.len(),
        "last_approach": attempts.last().map(|it| it["approach"].clone()),
        "fix_commit": after["fix_commit"],
        "new_task": {"parent": part["parent"], "scope": part["scope"]},
        "total_recovered_delta": metadata["total_recovered"],
        "total_abandoned_delta": metadata["total_abandoned"],
        "trigger": index["trigger"],
        "escalation_file": documents.iter().any(|it| it.ends_with(".md")),
        "escalation": documents.iter().any(|it| it.ends_with(".md")),
    })
}

fn failed(input: &Value) -> Value {
    let given = |key: &str| input[key].as_u64();
    let (count, desk) = match (given("failure_count"), given("retries"), given("maxRetries")) {
        (Some(count), _, _) => (count, Desk::new()),
        // The other numbers of the same project are a line of YAML.
        (None, Some(count), Some(max)) => {
            let rules = format!(
                "enter:\n  - {{id: too_many_attempts, override: true, enabled: false, when: task.attempts > 0}}\n  - {{id: Max retries exceeded, when: task.failures >= {max}}}\n"
            );
            (count, Desk::new().with_pack("dead_letter.yaml", &rules))
        }
        _ => panic!("{input}"),
    };
    let mut rule = Value::Null;
    let mut dead = false;
    for number in 1..=count {
        let error = format!("error {number}");
        let words = ["dlq", "add", "t", "--error", &error, "--format", "json"];
        let said = desk.words(&words).json();
        dead = said["dead_letter"].as_bool().unwrap();
        if said["rule"] != "" {
            rule = said["rule"].clone();
        }
    }
    json!({"dead_letter": dead, "lastError": rule})
}

fn due(input: &Value) -> Value {
    let time = |key: &str| input[key].as_str().and_then(Timestamp::parse);
    let every = std::time::Duration::from_secs(24 * 3600);
    json!({"due": review_due(time("last_reviewed"), every, time("now").unwrap())})
}

/// Whether everything expected is there.
pub(crate) fn agrees(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().all(|(key, value)| got.get(key).is_some_and(|got| agrees(value, got)))
        }
        _ => expected == got,
    }
}

#[test]
fn dead_letters_of_the_replaced_system_are_decided_alike() {
    let cases = of_kinds(&["dlq_decision"]);
    for case in &cases {
        let input = &case["input"];
        let got = match input["op"].as_str().unwrap_or("on_failure") {
            "review" => review(input),
            "review_due" => due(input),
            "on_failure" => failed(input),
            other => panic!("{other}"),
        };
        println!(
            "{} {}",
            case["name"],
            if agrees(&case["expected"], &got) { "agrees" } else { "WRONG" }
        );
        assert!(
            agrees(&case["expected"], &got),
            "{}: {} and not {got}",
            case["name"],
            case["expected"]
        );
    }
    assert!(cases.is_empty() || cases.len() > 10, "{}", cases.len());
}

#[test]
fn documents_are_named_as_the_gates_of_the_replaced_system_name_theirs() {
    for case in of_kinds(&["escalation_file"]) {
        let now = Timestamp::parse(case["input"]["now"].as_str().unwrap()).unwrap();
        let gate = EscalationSubject::Gate(case["input"]["gate"].as_str().unwrap());
        let name = format!("{}.md", document_id(gate, now, 4711, 1));
        let regex = Regex::new(case["expected"]["regex"].as_str().unwrap()).unwrap();
        assert!(regex.is_match(&name), "{name}");
    }
}

/// Kinds of the shared cases and the test file that runs them; those without one, with the reason.
const KINDS: [(&str, Result<&str, &str>); 41] = [
    ("auto_pause", Ok("failures")),
    ("breaker_consecutive", Ok("breakers")),
    ("breaker_counts", Ok("breakers")),
    ("breaker_sequence", Ok("breakers")),
    ("breaker_state_file", Ok("breakers")),
    ("budget", Err(LOOP)),
    ("budget_parse", Err(LOOP)),
    ("claim_timeout", Ok("failures")),
    ("confidence_route", Ok("tables")),
    ("context_reminder", Ok("tables")),
    ("context_usage", Ok("context")),
    ("context_usage_real", Ok("context")),
    ("dlq_decision", Ok("cases")),
    ("drift_action", Ok("signals")),
    ("escalation_file", Ok("cases")),
    ("event_encode", Err(LOOP)),
    ("failure_class", Ok("failures")),
    ("failure_class_sw", Ok("failures")),
    ("fatal_error", Ok("failures")),
    ("gate_ladder", Ok("failures")),
    ("health_verdict", Ok("tables")),
    ("iteration_limit", Err(LOOP)),
    ("oscillation", Ok("failures")),
    ("progress", Err(LOOP)),
    ("rate_limit", Ok("failures")),
    ("recovery_decision", Ok("failures")),
    ("red_flag", Ok("rationalizations")),
    ("reset_time", Ok("failures")),
    ("restart", Err(LOOP)),
    ("retry_after", Ok("failures")),
    ("retry_backoff", Ok("failures")),
    ("retry_policy", Ok("failures")),
    ("rpm_backoff", Ok("failures")),
    ("signal_file", Ok("signals")),
    ("signal_timeout", Ok("signals")),
    ("signal_trigger", Ok("signals")),
    ("stuckness", Err(LOOP)),
    ("summary", Ok("context")),
    ("tier_escalation", Ok("tables")),
    ("token_cost", Ok("context")),
    ("uncertainty", Ok("failures")),
];

const LOOP: &str = "the supervised loop is not built yet";

#[test]
fn every_kind_of_case_is_run_or_left_out_for_a_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(cases) = shared::cases("loki_shipwright_cases.json") else { return };
    for case in cases {
        let kind = case["kind"].as_str().unwrap();
        let known = KINDS.iter().find(|(name, _)| *name == kind);
        match known.map(|(_, run)| run) {
            Some(Ok(test)) => {
                let exists = |binary: &str| {
                    let folder = path.join("tests").join(binary).join(test);
                    folder.exists() || folder.with_extension("rs").exists()
                };
                let binaries = ["policies", "engine", "resilience", "process"];
                assert!(binaries.into_iter().any(exists), "{kind}: {test}");
            }
            Some(Err(why)) => println!("{} is not run: {why}", case["name"]),
            None => panic!("nobody runs {kind}: {}", case["name"]),
        }
    }
}
