//! A case that policyd writes says, when it is read, exactly what was meant.

use std::sync::Arc;

use policyd::cases::draft::{self, CaseDraft};
use policyd::source::{Source, yaml};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str) -> Value {
    let source = Arc::new(Source { name: "case.yaml".to_owned(), text: text.to_owned() });
    let (node, found) = yaml::parse(&source);
    assert!(found.is_empty(), "{text}: {found:?}");
    node.unwrap().json()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_written_case_is_read_as_it_was_meant(
        name in "[ -~äß☃]{1,30}",
        command in "[ -~\n\t\u{85}\u{2028}é\u{1b}-]{0,40}|(yes|no|null|~|0x10|1e3|\\.inf|- |#|: |true)[ a-z\n]{0,4}",
        number in any::<i64>(),
    ) {
        let input = json!({"command": command, "lines": [&name, &command], "n": number, "nothing": null,
            "deep": {"empty": {}, "none": [], "yes": true}});
        let draft = CaseDraft {
            comment: "One line.".to_owned(),
            name: name.clone(),
            given: json!({"now": "2026-01-02T03:04:05Z"}).as_object().unwrap().clone(),
            on: draft::event("pre_tool_use", Some("Other"), &input),
            expect: json!({"guards": {"a_guard": "silent"}}).as_object().unwrap().clone(),
            ..CaseDraft::default()
        };
        let text = draft.to_text();
        let expected = json!([{"name": name, "given": draft.given, "on": draft.on, "expect": draft.expect}]);
        prop_assert_eq!(read(&text), expected, "{}", text);
    }
}
