//! Decision tables: the built-in ones answer as the replaced systems do, and slips are told.

use std::sync::{Arc, LazyLock};

use policyd::evaluation::tables::{TableDecision, decide, given};
use policyd::policy::load::{Pack, load};
use policyd::policy::tables::{Table, find};
use policyd::policy::{Policy, builtin};
use policyd::source::Source;
use policyd::world::fake::FakeWorld;
use serde_json::{Value, json};

use crate::support::console::{self, Terminal};
use crate::support::{self, shared};

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let pack = builtin::pack();
    load(&pack, &pack).policy.unwrap()
});

fn ask(tables: &[Table], table: &str, said: &[String]) -> Result<TableDecision, String> {
    let table = find(tables, table).map_err(|it| it.to_string())?;
    let given = given(table, said).map_err(|it| it.to_string())?;
    decide(table, given, None).map_err(|(place, why)| format!("{place}: {why}"))
}

/// The words that JSON says; what is null is not given.
fn words(input: &Value) -> Vec<String> {
    let entries = input.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    entries.map(|(name, value)| format!("{name}={}", text(value))).collect()
}

#[test]
fn the_tables_of_the_replaced_systems_agree() {
    let Some(cases) = shared::cases("loki_shipwright_cases.json") else { return };
    let mut ran = 0;
    for case in &cases {
        let kind = case.get("kind").and_then(Value::as_str).unwrap();
        if !POLICY.tables.iter().any(|it| it.id == kind) {
            continue;
        }
        let (input, expected) = (case.get("input").unwrap(), case.get("expected").unwrap());
        let answer = ask(&POLICY.tables, kind, &words(input)).unwrap().answer;
        let got = match kind {
            "tier_escalation" => json!({"tier": answer}),
            "context_reminder" => json!({"reminder": answer == "remind"}),
            _ => json!(answer),
        };
        let name = case.get("name").unwrap();
        println!("{name} {}", if got == *expected { "agrees" } else { "WRONG" });
        assert_eq!(got, *expected, "{name}");
        ran += 1;
    }
    assert!(ran > 15, "{ran} cases");
}

#[test]
fn tiers_go_up_and_down_by_one_and_dangers_straight_up() {
    for (said, expected) in [
        ("errors=3", "MEDIUM"),
        ("errors=2", "LOW"),
        ("failing_tests=4", "MEDIUM"),
        ("manifest_touched=yes", "MEDIUM"),
        ("tier=MEDIUM core_touched=yes", "HIGH"),
        ("tier=MEDIUM performance_ratio=2", "MEDIUM"),
        ("tier=MEDIUM performance_ratio=2.1", "HIGH"),
        ("tier=MEDIUM services=4", "HIGH"),
        ("task=authentication", "HIGH"),
        ("task=author", "LOW"),
        ("task=schema-migration", "HIGH"),
        ("tier=HIGH successes=5 files=1", "MEDIUM"),
        ("tier=HIGH successes=5 files=2", "HIGH"),
        ("tier=HIGH successes=5 docs_only=yes task=password", "HIGH"),
        ("tier=MEDIUM successes=5 tests_only=yes", "LOW"),
        ("tier=MEDIUM successes=4 tests_only=yes", "MEDIUM"),
    ] {
        let said: Vec<String> = said.split(' ').map(str::to_owned).collect();
        let answer = ask(&POLICY.tables, "tier_escalation", &said).unwrap().answer;
        assert_eq!(answer, expected, "{said:?}");
    }
}

#[test]
fn slips_are_told_with_their_cure() {
    let said = |text: &str| ask(&POLICY.tables, "tier_escalation", &[text.to_owned()]).unwrap_err();
    let told = [
        ask(&POLICY.tables, "tier_escalate", &[]).unwrap_err(),
        said("eror=3"),
        said("tier=low"),
        said("errors=many"),
        said("errors"),
        said("core_touched=maybe"),
        said("performance_ratio=NaN"),
    ];
    support::snapshot("tables", "slips__with_their_cure", told.join("\n"));
}

fn tables(text: &str) -> Vec<Table> {
    let source = Source { name: "tables.yaml".to_owned(), text: text.to_owned() };
    let files = vec![("tables.yaml".to_owned(), Arc::new(source))];
    let loaded = load(&Pack { name: "own".to_owned(), files, ..Pack::default() }, &builtin::pack());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    loaded.policy.unwrap().tables.to_vec()
}

#[test]
fn a_row_that_has_no_value_is_no_row_that_does_not_hold() {
    let text = "- id: share\n  inputs: {all: {}, done: {}}\n  rows:\n    - {when: given.done * 100 / given.all > 50, answer: most}\n  otherwise: few\n";
    let own = tables(text);
    let ask = |said: &[&str]| {
        ask(&own, "share", &said.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(ask(&["all=10", "done=6"]).unwrap().answer, "most");
    assert_eq!(ask(&["all=10", "done=5"]).unwrap().row, None);
    assert!(
        ask(&["done=5"]).unwrap_err().starts_with("tables.yaml:4:14: "),
        "{:?}",
        ask(&["done=5"])
    );
}

#[test]
fn a_pack_changes_a_table_by_its_id() {
    let text = "- id: context_reminder\n  override: true\n  otherwise: quiet\n  inputs:\n    iteration: {}\n    interval: {default: 10}\n";
    let own = tables(text);
    let said = ["iteration=20".to_owned()];
    assert_eq!(ask(&own, "context_reminder", &said).unwrap().answer, "remind");
    let said = ["iteration=25".to_owned()];
    assert_eq!(ask(&own, "context_reminder", &said).unwrap().answer, "quiet");
}

/// The first diagnostics of a pack with this `tables.yaml`, with their places.
fn refusals(text: &str) -> Vec<String> {
    let source = Source { name: "tables.yaml".to_owned(), text: text.to_owned() };
    let files = vec![("tables.yaml".to_owned(), Arc::new(source))];
    let loaded = load(&Pack { name: "own".to_owned(), files, ..Pack::default() }, &builtin::pack());
    assert!(loaded.policy.is_none(), "the pack must not load");
    let found = loaded.diagnostics.iter();
    found.map(|it| format!("{} {} {}", it.code, it.span.place(), it.message)).collect()
}

fn with_input(input: &str) -> String {
    format!(
        "- id: sized\n  inputs:\n    size: {input}\n  rows:\n    - {{when: given.size > 5, \
         answer: big}}\n  otherwise: small\n"
    )
}

#[test]
fn a_limit_alone_is_enforced() {
    for (input, allowed, refused, error) in [
        ("{min: 0}", "size=0", "size=-1", "`size` is at least 0, not `-1`"),
        ("{min: 0, type: decimal}", "size=1e30", "size=-0.1", "`size` is at least 0, not `-0.1`"),
        ("{max: 9}", "size=-70", "size=10", "`size` is at most 9, not `10`"),
        ("{min: 2, max: 9}", "size=2", "size=1", "`size` is from 2 to 9, not `1`"),
    ] {
        let own = tables(&with_input(input));
        assert!(ask(&own, "sized", &[allowed.to_owned()]).is_ok(), "{input}");
        assert_eq!(ask(&own, "sized", &[refused.to_owned()]).unwrap_err(), error, "{input}");
    }
    // An input without limits takes any number.
    let own = tables(&with_input("{}"));
    for said in ["size=-9223372036854775808", "size=9223372036854775807"] {
        assert!(ask(&own, "sized", &[said.to_owned()]).is_ok(), "{said}");
    }
}

#[test]
fn a_min_greater_than_max_is_refused_at_load() {
    let found = refusals(&with_input("{min: 5, max: 1, default: 7}"));
    assert_eq!(
        found,
        ["out-of-range tables.yaml:3:17 `min` of `size` is 5, greater than `max`, which is 1"]
    );
    assert!(ask(&tables(&with_input("{min: 5, max: 5}")), "sized", &["size=5".to_owned()]).is_ok());
}

#[test]
fn a_value_beyond_the_limits_is_a_usage_error() {
    let world = FakeWorld::new();
    world.set_env("HOME", "/home/me");
    let decide = |said: &str| {
        let words = ["decide", "confidence_route", said];
        let said = console::call_at(&world, Terminal::TYPED, &words, b"");
        (said.code, said.out, said.err)
    };
    let (code, out, err) = decide("confidence=72");
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("`confidence` is from 0 to 1, not `72`"), "{err}");
    assert_eq!(decide("confidence=-0.1").0, 2);
    assert_eq!(decide("confidence=1").0, 0);
}
