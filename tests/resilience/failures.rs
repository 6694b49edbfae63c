//! What a failure is, how long to wait, and what to do: the cases of the replaced systems by kind, and
//! lines that look like something else.

use std::collections::BTreeMap;
use std::time::Duration;

use policyd::expr::pattern::compile_regex;
use policyd::policy::failures::{ClassificationBasis, FailureClassification, FailureClassifier};
use policyd::policy::{Policy, builtin, load};
use policyd::state::failure::{ERROR_NAMES, FailureEffect, Failures};
use policyd::state::recovery::{
    EscalationThresholds, FailureContext, RecoveryLimits, recover, repeats,
};
use policyd::state::retry::{HeartbeatPolicy, Retry};
use policyd::state::uncertainty::{self, UncertaintyTracker};
use policyd::time::Timestamp;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::{console, shared, snapshot};

fn policy() -> Policy {
    let pack = builtin::pack();
    load::load(&pack, &pack).policy.unwrap()
}

fn count(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap_or_default()).unwrap()
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().unwrap_or_default())
}

/// A text by the vocabulary of a profile.
fn by(failures: &Failures, profile: &str, text: &str) -> FailureClassification {
    failures.classify(failures.profile(profile).unwrap(), "", text)
}

/// The waits before some attempts. shipwright's `cap` and the queue count attempts from 1, the `retry`
/// of loki-mode's loop counts those made before.
fn backoff(input: &Value) -> Value {
    let first = [&input["initial"], &input["base"]].into_iter().find(|it| it.is_u64()).unwrap();
    let cap = [&input["cap"], &input["max"]].into_iter().find(|it| it.is_u64());
    let retry = Retry {
        initial: seconds(first),
        multiplier: input["multiplier"].as_f64().unwrap_or(2.0),
        cap: cap.map_or(Duration::MAX, seconds),
        ..Retry::default()
    };
    let made_before = u32::from(input["max"].is_u64() && input["retry"].is_u64());
    let wait = |it: &Value| json!(retry.wait(count(it) + made_before, 0.0).as_secs());
    match [&input["attempts"], &input["retries"]].into_iter().find_map(Value::as_array) {
        Some(numbers) => numbers.iter().map(wait).collect(),
        None => wait(&input["retry"]),
    }
}

fn recovery(failures: &Failures, input: &Value) -> Value {
    let history = input["history"].as_array().cloned().unwrap_or_default();
    let history: Vec<String> = history.iter().map(|it| it.as_str().unwrap().to_owned()).collect();
    if let Some(signature) = input["signature"].as_str() {
        return json!({"repeated": repeats(&history, signature, count(&input["threshold"]))});
    }
    let output = input["output"].as_str().unwrap_or_default();
    let (class, kept) = (by(failures, "loki", output), by(failures, "loki_history", output));
    let exit_code = input["buildExitCode"].as_i64();
    let failed = kept.by == ClassificationBasis::Nothing && exit_code.is_some_and(|it| it != 0);
    let situation = FailureContext {
        class: &class.label,
        permanent: class.is_permanent(),
        signature: if failed { "build_failed" } else { &kept.label },
        history: &history,
        attempts: count(&input["attempts"]),
        elapsed: seconds(&input["elapsedSeconds"]),
        cost: input["costSpent"].as_f64().unwrap_or_default(),
        tree_corrupt: input["treeCorrupt"] == true,
        provider_down: input["providerUnavailable"] == true,
        exit_code,
    };
    let cost = [&input["maxCost"], &input["costCap"], &input["cap_cost"]];
    let limits = RecoveryLimits {
        cost: cost.into_iter().find_map(Value::as_f64),
        ..failures.recovery.clone()
    };
    let (action, reason) = recover(&situation, &limits);
    json!({"action": action.as_str(), "reason": reason, "requestTier": limits.tier})
}

fn uncertain(failures: &Failures, input: &Value) -> Value {
    let settings = uncertainty::UncertaintySettings {
        rounds: count(&input["rounds_needed"]),
        ..failures.uncertainty
    };
    let mut watch = UncertaintyTracker::default();
    let rounds = input["rounds"].as_array().unwrap().iter().enumerate();
    let told = rounds.map(|(at, it)| {
        let round = it["iteration"].as_u64().unwrap_or(at as u64);
        let signs = ["p1", "p2", "p3"].map(|sign| count(&it[sign]));
        let (after, told) = uncertainty::step(&watch, round, signs.iter().sum(), settings);
        watch = after;
        u32::from(told)
    });
    json!({"escalate": told.collect::<Vec<_>>()})
}

fn swings(input: &Value) -> Value {
    let ring = input["ring"].as_array().unwrap().iter();
    let ring: Vec<String> = ring.map(|it| it.as_str().unwrap().to_owned()).collect();
    uncertainty::oscillates(&ring, input["current"].as_str().unwrap()).into()
}

/// Whoever was silent for so long: the age is under the key that ends in `_age_s`.
fn claim(input: &Value, expected: &Value) -> Value {
    let fields = input.as_object().unwrap();
    let (_, age) = fields.iter().find(|(key, _)| key.ends_with("_age_s")).unwrap();
    let claims = HeartbeatPolicy { silence: seconds(&input["timeout_s"]) };
    let told = |key: &String| (key.clone(), Value::from(claims.is_dead(seconds(age))));
    expected.as_object().unwrap().keys().map(told).collect::<serde_json::Map<_, _>>().into()
}

/// What is answered to a case; nothing where its kind belongs elsewhere.
fn answer(failures: &Failures, kind: &str, input: &Value, expected: &Value) -> Option<Value> {
    let text = input.as_str().or_else(|| input["text"].as_str()).unwrap_or_default();
    let now = input["now"].as_str().unwrap_or("00:00:00");
    let now =
        Timestamp::parse(now).or_else(|| Timestamp::parse(&format!("1970-01-01T{now}Z"))).unwrap();
    let waited = |wait: Option<Duration>| json!(wait.unwrap_or_default().as_secs());
    Some(match kind {
        "failure_class" => {
            let found = by(failures, "loki", text);
            let klass = if found.is_permanent() { "non_retryable" } else { "transient" };
            json!({"klass": klass, "reason": found.label})
        }
        "failure_class_sw" => match by(failures, "shipwright", text) {
            found if found.class.id == "no_output" => "unknown".into(),
            found => found.label.into(),
        },
        "rate_limit" => (by(failures, "rate_limit", text).label == "limited").into(),
        "retry_policy" => {
            let profile = failures.profile("shipwright").unwrap().iter();
            let label = profile.clone().find(|it| it.name == text);
            label
                .and_then(|it| it.retry)
                .map_or(failures.class("unknown").unwrap().retry.max, |it| it.max)
                .into()
        }
        "retry_backoff" => backoff(input),
        "retry_after" => waited(failures.waits.retry_after(text, now)),
        "reset_time" => {
            let of_day = Duration::from_millis(now.millis().rem_euclid(86_400_000).unsigned_abs());
            waited(failures.waits.reset_time(text, &|wait| {
                let shown = (of_day + wait).as_millis() % 86_400_000;
                Duration::from_millis(u64::try_from(shown).unwrap())
            }))
        }
        "rpm_backoff" => failures.waits.by_requests_per_minute(count(input)).as_secs().into(),
        "auto_pause" => {
            let pause = failures.pause.after(count(&input["consecutive_same_class"]));
            json!({"pause_minutes": pause.as_secs() / 60})
        }
        "recovery_decision" => recovery(failures, input),
        "fatal_error" => {
            let (log, code) = (input["log"].as_str().unwrap(), input["exit_code"].as_i64());
            let profile = failures.profile("fatal").unwrap();
            let fatal = failures.is_fatal(profile, log, code.unwrap_or(0), &failures.recovery);
            json!({"fatal": fatal})
        }
        "claim_timeout" => claim(input, expected),
        "gate_ladder" => {
            let limits = &input["limits"];
            let ladder =
                EscalationThresholds { escalate: count(&limits[0]), pause: count(&limits[2]) };
            ladder.at(count(&input["consecutive_failures"])).as_str().into()
        }
        "uncertainty" => uncertain(failures, input),
        "oscillation" => swings(input),
        _ => return None,
    })
}

/// Whether an answer says all that is expected; it may say more.
fn agrees(got: &Value, expected: &Value) -> bool {
    match expected.as_object() {
        Some(fields) => fields.iter().all(|(key, value)| got[key] == *value),
        None => got == expected,
    }
}

#[test]
fn the_cases_of_the_replaced_systems_agree() {
    let Some(cases) = shared::cases("loki_shipwright_cases.json") else { return };
    let policy = policy();
    let (mut ran, mut wrong) = (BTreeMap::<String, u32>::new(), Vec::new());
    for case in cases {
        let (kind, expected) = (case["kind"].as_str().unwrap(), &case["expected"]);
        let Some(got) = answer(&policy.failures, kind, &case["input"], expected) else { continue };
        *ran.entry(kind.to_owned()).or_default() += 1;
        println!("{} {got}", case["name"]);
        if !agrees(&got, expected) {
            wrong.push(format!("{}: {got}, and not {expected}", case["name"]));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(ran.len(), 15, "every kind ran: {ran:?}");
}

#[test]
fn lines_are_of_the_class_they_seem_to_be() {
    let policy = policy();
    for (line, class) in [
        ("HTTP/1.1 429 Too Many Requests", "rate_limit"),
        ("API Error: 429 Too Many Requests\nretry-after: 60", "rate_limit"),
        ("rate_limit_error: please try again later", "rate_limit"),
        ("Error: 429 rate limited", "rate_limit"),
        ("HTTP 429 Too Many Requests, Retry-After: 60", "rate_limit"),
        ("Claude usage limit reached, resets 3pm", "rate_limit"),
        ("You've hit your limit · resets 3:30pm (Europe/Berlin)", "rate_limit"),
        ("Retry-After: 60", "unknown"),
        ("listening on port 14290", "unknown"),
        ("I implemented rate limiting", "unknown"),
        ("Added a 429 handler and retry-after parsing.\nTests pass.", "unknown"),
        ("def handle_rate_limit():\n    # retry-after backoff for 429\n    return 1", "unknown"),
        ("API Error: Overloaded", "overloaded"),
        ("overloaded_error: server is overloaded", "overloaded"),
        ("The function is overloaded for strings", "unknown"),
        ("503 service unavailable", "server_error"),
        ("API Error: 500 Internal server error", "server_error"),
        ("took 503 ms", "unknown"),
        ("ECONNRESET while reading", "network"),
        ("Error: socket hang up", "network"),
        ("request timed out", "timeout"),
        ("the default timeout is 30 s", "unknown"),
        ("Invalid API key · Please run /login", "authentication"),
        ("authentication_error: authentication failed", "authentication"),
        ("OAuth token has expired", "authentication"),
        ("res.status(401).json({ error: 'Unauthorized' })", "unknown"),
        ("took 401 ms", "unknown"),
        ("insufficient_quota: please add funds", "billing"),
        ("Implemented the payment required upsell banner.", "unknown"),
        ("model: claude-9 does not exist", "model_not_found"),
        ("malformed_request", "bad_request"),
        ("prompt is too long: 214331 tokens > 200000 maximum", "context_exhaustion"),
        ("GraphQL: could not resolve to an Issue", "task_not_found"),
        ("test result: FAILED. 3 passed; 2 failed", "test_failure"),
        ("test result: ok. 5 passed; 0 failed", "unknown"),
        ("error[E0308]: mismatched types", "build_failure"),
        ("error TS2345: not assignable", "build_failure"),
        ("build finished with 0 errors", "unknown"),
        ("Segmentation fault (core dumped)", "unknown"),
        (" \n\t \n", "no_output"),
    ] {
        assert_eq!(policy.classify("", line).class.id, class, "{line}");
    }
}

#[test]
fn what_an_agent_builds_is_no_permanent_failure() {
    let policy = policy();
    for text in [
        "Running tests...\n  auth.test.ts: expect(res.status).toBe(401)\n  FAIL 1 test\nexit 1",
        "I added a permission denied path to the API. Build failed: tsc error TS2345.",
        "GET /admin -> 403 (expected)\nBuild error: cannot find module 'foo'",
        "Implemented the payment required upsell banner. Compile failed.",
        "return 400 invalid payload\nesbuild: build failed with 1 error",
        "I implemented the invalid api key message",
    ] {
        let found = by(&policy.failures, "loki", text);
        assert_eq!((found.label.as_str(), found.is_permanent()), ("unrecognized", false), "{text}");
    }
}

#[test]
fn a_name_beats_words_and_an_unknown_name_does_not() {
    let policy = policy();
    let class = |error: &str, text: &str| policy.classify(error, text).class.id;
    assert_eq!(class("billing_error", "429 rate limit exceeded"), "billing");
    assert_eq!(class("unknown", "429 rate limit exceeded"), "rate_limit");
    assert_eq!(class("no_such_name", "nothing"), "unknown");
    for error in ERROR_NAMES {
        let by = policy.classify(error, "").by;
        let named = by == ClassificationBasis::Name(error.to_owned());
        assert_eq!(named, error != "unknown", "{error}: {by:?}");
    }
    for (error, effect, attempt, human) in [
        ("rate_limit", FailureEffect::Trip, false, false),
        ("overloaded", FailureEffect::Trip, false, false),
        ("server_error", FailureEffect::Trip, false, false),
        ("authentication_failed", FailureEffect::Permanent, true, true),
        ("oauth_org_not_allowed", FailureEffect::Permanent, true, true),
        ("billing_error", FailureEffect::Permanent, true, true),
        ("model_not_found", FailureEffect::Permanent, true, true),
        ("test_failure", FailureEffect::Ignore, true, false),
    ] {
        let it = policy.classify(error, "").class;
        assert_eq!((it.effect, it.attempt, it.human), (effect, attempt, human), "{error}");
    }
}

#[test]
fn only_the_end_of_a_text_is_looked_at() {
    let policy = policy();
    let filler = "building\n".repeat(policy.failures.lines);
    let early = format!("Error: rate limit exceeded\n{filler}");
    assert_eq!(policy.classify("", &early).class.id, "unknown");
    let late = format!("{filler}Error: rate limit exceeded\n\n");
    assert_eq!(policy.classify("", &late).class.id, "rate_limit");
}

#[test]
fn the_regexes_of_the_built_in_classes_compile() {
    for class in &policy().failures.classes {
        for regex in class.regexes.iter().chain(&class.unless) {
            assert_eq!(compile_regex(regex).err(), None, "{regex}");
        }
    }
}

#[test]
fn a_class_of_ones_own_is_tried_first_and_an_override_changes_key_by_key() {
    let own = "classes:\n  - {id: quota, regexes: ['rate limit exceeded for team'], effect: permanent}\n  - {id: network, override: true, human: true}\nladder: {pause: 7}\n";
    let source = policyd::source::Source { name: "failures.yaml".to_owned(), text: own.to_owned() };
    let files = vec![("failures.yaml".to_owned(), source.into())];
    let pack = load::Pack { name: "mine".to_owned(), files, ..load::Pack::default() };
    let loaded = load::load(&pack, &builtin::pack());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let policy = loaded.policy.unwrap();
    assert_eq!(policy.classify("", "Error: rate limit exceeded for team 7").class.id, "quota");
    let network = policy.classify("", "ECONNRESET").class;
    assert_eq!((network.id.as_str(), network.human, network.attempt), ("network", true, false));
    assert_eq!((policy.failures.ladder.escalate, policy.failures.ladder.pause), (3, 7));
}

#[test]
fn a_pack_that_says_nothing_of_failures_tries_again() {
    let none = Failures::default().classify(&[], "rate_limit", "429 rate limit exceeded");
    assert_eq!((none.class.id.as_str(), none.class.effect), ("unknown", FailureEffect::Trip));
}

/// Runs `policyd failure …` at a fixed time.
fn said(arguments: &[&str], stdin: &str) -> String {
    let words = [&["failure"], arguments].concat();
    let said = console::call(&FakeWorld::new(), &words, stdin.as_bytes());
    let line = format!("$ policyd failure {}", arguments.join(" "));
    format!("{line}\n{}{}exit {}\n\n", said.out, said.err, said.code)
}

#[test]
fn the_command_says_what_a_failure_is_and_why() {
    let told = [
        said(&["classify", "-"], "building\nError: rate limit exceeded\n"),
        said(&["classify"], "Error: invalid x-api-key"),
        said(&["classify", "--error", "billing_error"], ""),
        said(&["classify", "--profile", "shipwright", "ETIMEDOUT"], ""),
        said(&["classify", "--format", "json", "Segmentation fault"], ""),
        said(&["classify", "--format", "compact", ""], ""),
        said(&["classify", "--profile", "lokii", "x"], ""),
    ];
    snapshot("resilience", "failure__classified", told.concat());
}

#[test]
fn the_command_says_how_long_to_wait_and_why() {
    let told = [
        said(&["wait", "HTTP 429 Too Many Requests, Retry-After: 60"], ""),
        said(&["wait", "usage limit reached, resets 3:30pm", "--local-time", "14:00"], ""),
        said(&["wait", "--error", "rate_limit", "--rpm", "50"], ""),
        said(&["wait", "--error", "test_failure", "--attempt", "2"], ""),
        said(&["wait", "--error", "test_failure", "--attempt", "3"], ""),
        said(&["wait", "--error", "billing_error"], ""),
        said(&["wait", "--error", "billing_error", "--format", "compact"], ""),
        said(&["wait", "--error", "timeout", "--format", "json"], ""),
        said(&["wait", "x", "--local-time", "noon"], ""),
    ];
    snapshot("resilience", "failure__waited", told.concat());
}

#[test]
fn the_command_says_what_to_do_after_a_failure() {
    let told = [
        said(&["recover", "ETIMEDOUT"], ""),
        said(&["recover", "invalid_api_key", "--attempts", "9"], ""),
        said(&["recover", "no idea", "--history", "unknown,unknown,unknown"], ""),
        said(&["recover", "no idea", "--history", "unknown,unknown,unknown,network"], ""),
        said(&["recover", "no idea", "--attempts", "3"], ""),
        said(&["recover", "no idea", "--elapsed", "30m"], ""),
        said(&["recover", "no idea", "--tree-corrupt", "--provider-down"], ""),
        said(&["recover", "no idea", "--provider-down", "--format", "json"], ""),
        said(&["recover", "error: compilation failed", "--format", "compact"], ""),
        said(&["recover", "ok", "--exit-code", "1"], ""),
        said(&["recover", "no idea", "--elapsed", "30"], ""),
    ];
    snapshot("resilience", "failure__recovered", told.concat());
}
