//! What the replaced systems decide about runs, decided by the program.

use policyd::report::run::{event, typed};
use policyd::state::run::budget;
use policyd::state::run::health::verdict;
use policyd::state::run::iterations::{Extension, Progress, TurnPermission, allowed};
use policyd::state::run::stuckness::{RunContext, StuckSettings, TurnHistory, TurnRecord};
use policyd::time::Timestamp;
use serde_json::{Value, json};

use super::stage::{Stage, changes, usage};
use crate::support::shared;

fn shared() -> Vec<Value> {
    shared::cases("loki_shipwright_cases.json").unwrap_or_default()
}

fn count(value: &Value) -> u32 {
    value.as_u64().and_then(|it| u32::try_from(it).ok()).unwrap_or(0)
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned)).collect()
}

fn stuck(input: &Value) -> Value {
    let contents = texts(&input["diff_hashes"]);
    let errors = texts(&input["error_hashes"]);
    let codes: Vec<i64> =
        input["exit_codes"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let turns = contents.len().max(errors.len()).max(codes.len()).max(1);
    // The last of several is the last turn.
    let from_end = |list: usize, at: usize| (at + list).checked_sub(turns);
    let mut trail = TurnHistory::default();
    for at in 0..turns {
        let of = |list: &[String]| {
            from_end(list.len(), at).and_then(|it| list.get(it)).cloned().unwrap_or_default()
        };
        let error = of(&errors);
        let last = at + 1 == turns;
        trail.add(TurnRecord {
            content: of(&contents),
            lines: if last {
                input["uncommitted_diff_lines"].as_u64().map(|it| it as u32)
            } else {
                Some(99)
            },
            error: if error == "none" { String::new() } else { error },
            exit_code: from_end(codes.len(), at)
                .and_then(|it| codes.get(it))
                .map_or(0, |it| *it as i32),
            words_percent: if last { count(&input["text_overlap_pct"]) } else { 0 },
            tests: input["tests"].as_bool(),
        });
    }
    let around = RunContext {
        iteration: count(&input["iteration"]),
        iterations_max: input["max"].as_u64().map_or(20, |it| it as u32),
        content: input["audit"] == "pass" || input["gate"] == true,
        circle: &[],
    };
    let settings = StuckSettings::default();
    let signs = trail.signs(settings, around).len();
    json!({"stuck": signs as u64 >= u64::from(settings.signs), "signals": signs})
}

fn limit(input: &Value) -> Value {
    let max = count(&input["max"]);
    let extends = input["auto_extend"] == true;
    let extension = Extension {
        times: if extends { count(&input["max_extensions"]) } else { 0 },
        turns: count(&input["extension_size"]),
    };
    let history = input["velocity_history"].as_str().unwrap_or_default();
    let lines: Vec<u32> = history.split(',').filter_map(|it| it.parse().ok()).collect();
    let sum: u32 = lines.iter().sum();
    let progress = Progress {
        extended: count(&input["extension_count"]),
        tests: input["test_passed"].as_bool(),
        failures: count(&input["consecutive_failures"]),
        claimed: input["loop_complete"] == true,
        velocity: u32::try_from(lines.len()).ok().and_then(|it| sum.checked_div(it)).unwrap_or(0),
    };
    match allowed(count(&input["iteration"]), max, extension, progress) {
        TurnPermission::Yes => json!({"cont": true, "max": max}),
        TurnPermission::Extended(by) => {
            json!({"cont": true, "max": max + by, "extension_count": progress.extended + 1})
        }
        TurnPermission::No => json!({"cont": false, "status": "max_iterations"}),
    }
}

/// A run whose sessions all fill their context.
fn restarts(input: &Value) -> Value {
    let stage = Stage::new().with_pack("context.yaml", "meter: cumulative\n");
    let exhausting = |content: &str, cost: f64| {
        stage.play([changes(content)].into_iter().chain(usage(150_000, 0, cost)));
    };
    let cost = input["cost_per_session"].as_f64().unwrap_or(0.25);
    (0..9).for_each(|it| exhausting(&format!("content {it}"), cost));
    let sessions = count(&input["sessions"]);
    let most = input["max_restarts"].as_u64().map_or(sessions.saturating_sub(1).into(), |it| it);
    let most =
        if input["restart"].is_null() && input["original_goal"].is_null() { most } else { 1 };
    let goal = input["original_goal"].as_str().unwrap_or("Do the thing");
    let words = [
        "run",
        "--goal",
        goal,
        "--format",
        "jsonl",
        "--max-restarts",
        &most.to_string(),
        "--",
        "agent",
    ];
    let said = stage.call(&words);
    assert_eq!(said.code, 12, "{said:?}");
    let state = stage.state();
    let archived: Vec<String> = stage
        .kept()
        .iter()
        .filter_map(|it| Some(it.strip_prefix("archive/session-1/")?.to_owned()))
        .collect();
    let patterns = ["iteration-*.log", "progress.md", "context-summary.md", "error-summary.json"];
    let archived: Vec<&str> = patterns
        .into_iter()
        .filter(|it| {
            let (start, end) = it.split_once('*').unwrap_or((it, ""));
            archived.iter().any(|name| name.starts_with(start) && name.ends_with(end))
        })
        .collect();
    let restarted = &stage.logged("loop.context_exhaustion_restart")[0];
    json!({
        "restarts": state["restarts"], "sessions": state["session"],
        "final_status": said.status(), "cost_usd": state["spend"]["cost_usd"],
        "archived": archived, "iteration": restarted["iteration"],
        "input_tokens": 0, "output_tokens": 0, "test_passed": "",
        "goal_starts": stage.prompts()[1],
    })
}

/// A run in which the agent commits so often, or does nothing while our own logs grow.
fn progress(input: &Value) -> Value {
    let stage = Stage::new();
    let idle = input["harness_log_files_committed"] == true || input["agent_changes"] == 0;
    let commits = count(&input["new_commits"]);
    if idle || commits == 0 {
        stage.play(usage(10, 1, 0.0));
    } else {
        for number in 0..commits {
            stage.play([changes(format!("commit {number}"))].into_iter().chain(usage(10, 1, 0.0)));
        }
    }
    let most = input["iterations"].as_u64().unwrap_or(1).to_string();
    let said = stage.run(&["--max-iterations", &most]);
    let moved = &said.of("loop.iteration_complete")[0]["moved"];
    json!({"progress": moved, "status": said.status()})
}

fn encoded(input: &str, expected: &Value) -> Value {
    let unescaped = input.replace("\\r", "\r").replace("\\n", "\n");
    // A value goes on to the next `key=`.
    let mut fields: Vec<(String, String)> = Vec::new();
    for word in unescaped.split(' ') {
        match word.split_once('=') {
            Some((key, value)) => fields.push((key.to_owned(), value.to_owned())),
            None => fields.last_mut().unwrap().1.push_str(word),
        }
    }
    let fields: Vec<(&str, Value)> =
        fields.iter().map(|(key, it)| (key.as_str(), typed(it))).collect();
    let line = event("loop.context_usage", Timestamp::from_millis(0), &fields).to_string();
    let sound = serde_json::from_str::<Value>(&line).is_ok() && !line.contains(['\r', '\n']);
    if expected.is_object() {
        return json!({"valid_json": sound});
    }
    assert!(sound, "{line}");
    line.replace("\"1970-01-01T00:00:00.000Z\"", "T")
        .replace("\"ts_epoch\":0", "\"ts_epoch\":E")
        .into()
}

fn answer(kind: &str, input: &Value, expected: &Value) -> Option<Value> {
    Some(match kind {
        "stuckness" => stuck(input),
        "iteration_limit" => limit(input),
        "restart" => restarts(input),
        "progress" => progress(input),
        "budget" => {
            let level =
                budget::level(input["spent"].as_f64().unwrap(), input["limit"].as_f64(), 80);
            json!({"exceeded": level == budget::BudgetLevel::Spent, "warn": level == budget::BudgetLevel::Warn})
        }
        "budget_parse" => json!(budget::parse(input.as_str().unwrap())),
        "event_encode" => encoded(input.as_str().unwrap(), expected),
        "health_verdict" => {
            // What is no number counts as 0.
            let previous = input["previous"].as_u64().and_then(|it| u32::try_from(it).ok());
            verdict(count(&input["score"]), previous).as_str().into()
        }
        _ => return None,
    })
}

/// Whether an answer says all that is expected; it may say more.
fn agrees(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            expected.iter().all(|(key, it)| match key.as_str() {
                "goal_starts" => got[key].as_str().unwrap().starts_with(it.as_str().unwrap()),
                "archived" => texts(it).iter().all(|it| texts(&got[key]).contains(it)),
                _ => got.get(key) == Some(it),
            })
        }
        (Value::Number(got), Value::Number(expected)) => got.as_f64() == expected.as_f64(),
        _ => got == expected,
    }
}

#[test]
fn the_cases_of_the_replaced_systems_agree() {
    let (mut agreed, mut wrong) = (0, Vec::new());
    for case in shared() {
        let (kind, expected) = (case["kind"].as_str().unwrap(), &case["expected"]);
        let Some(got) = answer(kind, &case["input"], expected) else { continue };
        if agrees(&got, expected) {
            agreed += 1;
        } else {
            wrong.push(format!("{}: {got}, not {expected}", case["name"]));
        }
    }
    println!("{agreed} cases agree");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
