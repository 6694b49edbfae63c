//! The replaced systems' cases, and the validation criteria of seed 004 that concern the meters.

use policyd::evaluation::context::of_meters;
use policyd::facts::meters::{Meters, Usage};
use policyd::state::context::{Overrides, THRESHOLD, WINDOW, exhausted, number, percent, share};
use serde_json::{Value, json};

use super::meters::rules;
use crate::support::shared::of_kinds;

/// A count of a case: a number, or a text that may be none.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => number(text),
        Value::Number(it) => it.as_u64().or_else(|| it.as_i64().map(|_| 0)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn cumulative(input: &Value) -> Value {
    let counts = [&input["input_tokens"], &input["output_tokens"]].map(count);
    let [Some(read), Some(written)] = counts else {
        return json!({"pct": 0, "exhausted": false});
    };
    let (tokens, window) = (read.saturating_add(written), count(&input["window"]).unwrap_or(0));
    let threshold = input["threshold"].as_f64().unwrap_or(THRESHOLD);
    json!({"pct": percent(tokens, window), "exhausted": exhausted(tokens, window, threshold)})
}

#[test]
fn the_cumulative_percentage_is_the_seeds() {
    for case in of_kinds(&["context_usage"]) {
        assert_eq!(cumulative(&case["input"]), case["expected"], "{}", case["name"]);
    }
}

#[test]
fn the_occupancy_is_the_clients() {
    for case in of_kinds(&["context_usage_real"]) {
        let (input, expected) = (&case["input"], &case["expected"]);
        let totals = &input["one_iteration"];
        let told = if totals.is_object() { totals } else { input };
        let tokens = |key: &str| told[key].as_u64().unwrap_or(0);
        let usage = Usage {
            input: tokens("input_tokens"),
            output: tokens("output_tokens"),
            cache_read: tokens("cache_read_input_tokens"),
            cache_creation: tokens("cache_creation_input_tokens"),
        };
        let mut meters = Meters::default();
        if totals.is_object() {
            meters.spend("", &usage);
            let gauge = of_meters(&rules(), &Overrides::default(), &meters);
            assert!(!gauge.known && gauge.tier.is_empty(), "{}", case["name"]);
            assert!(expected["exhausted"].as_str().unwrap().starts_with("unknown"));
            continue;
        }
        meters.call("", &usage);
        let overrides = Overrides { window: input["window"].as_u64(), ..Overrides::default() };
        let gauge = of_meters(&rules(), &overrides, &meters);
        assert_eq!(json!(gauge.tokens), expected["used_tokens"], "{}", case["name"]);
        assert_eq!(json!(gauge.percent), expected["pct_floor"], "{}", case["name"]);
        let exact = share(gauge.tokens, gauge.window);
        assert!((exact - expected["pct"].as_f64().unwrap()).abs() < 1e-9, "{}", case["name"]);
    }
}

#[test]
fn tokens_cost_what_shipwright_says() {
    for case in of_kinds(&["token_cost"]) {
        let (input, expected) = (&case["input"], &case["expected"]);
        let tokens = |key: &str| input.get(key).and_then(count).unwrap_or(0);
        let usage = Usage {
            input: tokens("input_tokens"),
            output: tokens("output_tokens"),
            cache_read: tokens("cache_read_input_tokens"),
            cache_creation: tokens("cache_creation_input_tokens"),
        };
        let cost = rules().cost(input["model"].as_str().unwrap(), &usage);
        // A thousandth of a cent is ten thousand billionths of a US dollar.
        assert_eq!(json!({"cost_millicents": cost / 10_000}), *expected, "{}", case["name"]);
    }
}

/// Seed 004: `check_context_exhaustion()` with tokens spent, a window and a threshold.
fn check(tokens: u64, window: u64) -> bool {
    exhausted(tokens, window, THRESHOLD)
}

#[test]
fn criterion_exhausted_from_70_percent_of_the_window_on() {
    assert_eq!((WINDOW, THRESHOLD), (200_000, 70.0));
    assert!(check(140_000, WINDOW) && check(140_001, WINDOW) && check(300_000, WINDOW));
}

#[test]
fn criterion_safe_below_70_percent() {
    assert!((0..140_000).step_by(997).all(|tokens| !check(tokens, WINDOW)));
    assert!(!check(139_999, WINDOW));
}

#[test]
fn criterion_safe_without_a_window() {
    assert!(!check(100_000, 0));
    assert_eq!(percent(100_000, 0), 0);
}

#[test]
fn criterion_safe_where_nothing_was_counted() {
    assert!(!check(0, WINDOW));
    assert!(!exhausted(0, WINDOW, 0.0), "not even where the threshold is none");
}

#[test]
fn what_is_no_number_counts_as_none() {
    for (text, expected) in [
        ("140000", Some(140_000)),
        ("08", Some(8)),
        (" 7 ", Some(7)),
        ("", None),
        ("abc", None),
        ("12x", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
    ] {
        assert_eq!(number(text), expected, "{text:?}");
    }
    assert_eq!(percent(u64::MAX, 1), u64::MAX, "nothing wraps around");
    assert_eq!(percent(u64::MAX, u64::MAX), 100);
}
