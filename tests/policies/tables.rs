//! Decision tables: the built-in ones answer as the replaced systems do, and slips are told.

use std::sync::{Arc, LazyLock};

use policyd::judge::tables::{Decided, decide, given};
use policyd::policy::load::{Pack, load};
use policyd::policy::tables::{Table, find};
use policyd::policy::{Policy, builtin};
use policyd::source::Source;
use serde_json::{Value, json};

use crate::support::{self, shared};

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let pack = builtin::pack();
    load(&pack, &pack).policy.unwrap()
});

fn ask(tables: &[Table], table: &str, said: &[String]) -> Result<Decided, String> {
    let table = find(tables, table)?;
    let given = given(table, said)?;
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
    let loaded = load(&Pack { name: "own".to_owned(), files }, &builtin::pack());
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
