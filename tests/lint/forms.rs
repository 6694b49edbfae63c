//! The forms of a review: text, JSON, SARIF, annotations, JUnit.

use std::path::Path;

use policyd::lint::baseline::{Baseline, BaselineLocation, fingerprints};
use policyd::lint::{Profile, SuppressionReview};
use policyd::report::diagnostics::{Style, render_text};
use policyd::report::lint::{LintReview, github, json, summary};
use policyd::report::{junit, sarif};
use policyd::source::Diagnostic;
use serde_json::Value;

use crate::subjects::look;
use crate::support::snapshot;

const RULES: &str = r#"# policyd: ignore-file[PD214] reason="a small pack"
- id: tests_ran
  category: Own
  question: Were the tests run, 100 %?
  severity: blocker
  satisfied: >-
    tools.last_name == "bash" || files.count == 0
    && commands.kind("test").passed
  guidance: Run the tests.
- id: tests_ran_too
  category: Own
  question: Were they run?
  severity: warning
  # policyd: ignore[PD601] reason="kept until the tracker is moved"
  satisfied: files.count >= 0
- id: never
  category: Own
  question: Is it ever?
  severity: warning
  satisfied: files.count < 0
"#;

/// A review with something of everything.
fn review() -> LintReview {
    let SuppressionReview { findings, ignored } =
        look(&[("considerations.yaml", RULES)], Profile::Strict);
    let (known, findings) = findings.into_iter().partition(|it| it.code == "constant-condition");
    let files = vec!["policies/considerations.yaml".to_owned()];
    let unreadable = vec!["policies/probes.yaml: is not UTF-8 text".to_owned()];
    LintReview { files, findings, ignored, known, unreadable }
}

/// Versions change with releases; what is said does not.
fn steady(text: &str) -> String {
    text.replace(&format!("\"{}\"", env!("CARGO_PKG_VERSION")), "\"VERSION\"")
}

#[test]
fn each_form_says_the_same() {
    let review = review();
    assert!(!review.findings.is_empty() && !review.ignored.is_empty() && !review.known.is_empty());
    let text = render_text(&review.findings, Style { color: false });
    snapshot("lint", "forms__text", format!("{text}\n{}", summary(&review)));
    snapshot("lint", "forms__json", steady(&format!("{:#}", json(&review))));
    snapshot("lint", "forms__github", github(&review));
    snapshot("lint", "forms__junit", junit::junit(&review));
    let log = sarif::sarif(&review);
    snapshot("lint", "forms__sarif_results", format!("{:#}", log["runs"][0]["results"]));
}

#[test]
fn sarif_is_as_its_official_schema_says() {
    let mut schema: Value = serde_json::from_str(include_str!("sarif-schema-2.1.0.json")).unwrap();
    // The official schema has a pattern with a bracket too many; nothing here names a language.
    for owner in ["run", "toolComponent"] {
        let place = format!("/definitions/{owner}/properties/language");
        let language = schema.pointer_mut(&place).unwrap();
        language.as_object_mut().unwrap().remove("pattern").unwrap();
    }
    let validator = jsonschema::validator_for(&schema).unwrap();
    for review in [review(), LintReview::default()] {
        let log = sarif::sarif(&review);
        let wrong: Vec<String> = validator.iter_errors(&log).map(|it| it.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    let mut broken = sarif::sarif(&review());
    broken["runs"][0]["results"][0]["level"] = Value::from("fatal");
    assert!(!validator.is_valid(&broken), "the schema judges");
}

#[test]
fn a_fingerprint_stays_when_lines_move_and_goes_when_they_change() {
    let prints = |text: &str| {
        let found = look(&[("considerations.yaml", text)], Profile::Default).findings;
        let found: Vec<&Diagnostic> = found.iter().collect();
        fingerprints(&found)
    };
    let before = prints(RULES);
    assert_eq!(before, prints(&format!("\n\n# moved\n{RULES}")));
    let changed =
        prints(&RULES.replace("satisfied: files.count < 0", "satisfied: files.count < -1"));
    assert_eq!(before.len(), changed.len());
    assert_eq!(before.iter().filter(|it| !changed.contains(it)).count(), 1);
    // Two findings that are alike in everything are told apart.
    let unique: std::collections::BTreeSet<&String> = before.iter().collect();
    assert_eq!(unique.len(), before.len());
}

#[test]
fn a_baseline_knows_what_was_there_and_nothing_that_keeps_a_pack_from_loading() {
    let broken =
        RULES.replace("guidance: Run the tests.", "guidance: Run the tests.\n  guidanc: x");
    let found = look(&[("considerations.yaml", &broken)], Profile::Default).findings;
    let found: Vec<&Diagnostic> = found.iter().collect();
    let seat = BaselineLocation { here: Path::new("/w"), file: Path::new("lint.json") };
    let baseline = Baseline::of(&found, seat);
    let text = serde_json::to_string(&baseline).unwrap();
    assert_eq!(Baseline::parse(&text).unwrap(), baseline);
    let knows = Baseline::parse(&text).unwrap().knows(&found, seat);
    let new: Vec<&str> =
        found.iter().zip(&knows).filter(|(_, known)| !**known).map(|(it, _)| it.code).collect();
    assert_eq!(new, ["unknown-key"]);
    assert!(
        Baseline::parse("{\"version\":2,\"findings\":[]}")
            .unwrap_err()
            .to_string()
            .contains("version 2")
    );
    assert!(
        Baseline::parse("{\"version\":1,\"finding\":[]}")
            .unwrap_err()
            .to_string()
            .contains("finding")
    );
}

#[test]
fn of_very_many_alike_the_number_is_told() {
    let hidden = format!("# {}\n{RULES}", "a\u{200b}".repeat(5_000));
    let found = look(&[("considerations.yaml", &hidden)], Profile::Default).findings;
    let alike: Vec<&Diagnostic> =
        found.iter().filter(|it| it.code == "deceptive-character").collect();
    assert_eq!(alike.len(), 101);
    assert_eq!(alike.last().unwrap().message, "4900 more findings of this rule are not shown");
    // Whatever stands elsewhere is told all the same.
    assert!(found.iter().any(|it| it.code == "undefined-name"));
}
