//! What the replaced systems decide about tasks that fail, decided by the program.

use std::collections::BTreeSet;
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

/// Test files, and the kinds of the shared cases that they run. Each file fails if a case of its kinds does.
const KINDS: [(&str, &[&str]); 9] = [
    (
        "resilience/failures.rs",
        &[
            "auto_pause",
            "claim_timeout",
            "failure_class",
            "failure_class_sw",
            "fatal_error",
            "gate_ladder",
            "oscillation",
            "rate_limit",
            "recovery_decision",
            "reset_time",
            "retry_after",
            "retry_backoff",
            "retry_policy",
            "rpm_backoff",
            "uncertainty",
        ],
    ),
    (
        "resilience/breakers/cases.rs",
        &["breaker_consecutive", "breaker_counts", "breaker_sequence", "breaker_state_file"],
    ),
    ("resilience/cases.rs", &["dlq_decision", "escalation_file"]),
    ("resilience/signals.rs", &["drift_action", "signal_file", "signal_timeout", "signal_trigger"]),
    (
        "process/run/cases.rs",
        &[
            "budget",
            "budget_parse",
            "event_encode",
            "health_verdict",
            "iteration_limit",
            "progress",
            "restart",
            "stuckness",
        ],
    ),
    ("policies/tables.rs", &["confidence_route", "context_reminder", "tier_escalation"]),
    ("policies/rationalizations.rs", &["red_flag"]),
    ("engine/context/seed.rs", &["context_usage", "context_usage_real", "token_cost"]),
    ("engine/context/summary.rs", &["summary"]),
];

#[test]
fn every_kind_of_case_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (file, kinds) in KINDS {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        // The table of this file does not run its kinds.
        let text = text.split("const KINDS").next().unwrap();
        for kind in kinds {
            assert!(text.contains(&format!("\"{kind}\"")), "{file} does not run {kind}");
        }
    }
    let known: BTreeSet<&str> = KINDS.iter().flat_map(|(_, kinds)| kinds.iter().copied()).collect();
    let Some(cases) = shared::cases("loki_shipwright_cases.json") else { return };
    let found: BTreeSet<&str> = cases.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(found, known, "a test file runs each kind, and each kind has cases");
}
