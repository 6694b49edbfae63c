//! Results of cases as text, JSON, and JUnit XML.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};
use similar::TextDiff;

use super::diagnostics::{Style, render_json, render_text};
use policyd_base::text::counted;
use policyd_cases::coverage::{Coverage, RuleCoverage};
use policyd_cases::result::{CaseOutcome, CaseResult, CaseSummary, UnmetExpectation};
use policyd_fact_table::watch::Ways;
use policyd_yaml::Diagnostic;

/// Version of the JSON form.
pub const RESULTS_VERSION: u32 = 1;

/// Longest text within a sentence, in characters.
const SHORT_CHARS_MAX: usize = 100;

/// What failed and why, coverage where it was measured, and the counts.
#[must_use]
pub fn to_text(summaries: &[CaseSummary], color: bool) -> String {
    let mut text = String::new();
    for summary in summaries {
        if !summary.findings.is_empty() {
            text.push_str(&render_text(&summary.findings, Style { color }));
            text.push('\n');
        }
        for case in &summary.cases {
            if let CaseOutcome::Failed(failures) = &case.ending {
                text.push_str(&failed(case, failures, color));
            }
        }
        for path in &summary.written {
            text.push_str(&format!("written: {path}\n"));
        }
        for path in &summary.orphans {
            let path = path.display();
            text.push_str(&format!("no case compares with tests/{path}; remove it\n"));
        }
        if let Some(coverage) = &summary.coverage {
            text.push_str(&coverage_text(coverage));
        }
        let (passed, failed, skipped) = summary.counts();
        let mut line = format!("{}: {passed} passed, {failed} failed", summary.pack);
        let (filtered, mistakes) = (summary.filtered, summary.findings.len());
        for (count, part) in [
            (skipped, format!("{skipped} skipped")),
            (filtered, format!("{filtered} left out")),
            (mistakes, format!("{} in case files", counted(mistakes, "mistake"))),
        ] {
            if count > 0 && !summary.broken {
                line.push_str(&format!(", {part}"));
            }
        }
        if summary.broken {
            line = format!("{}: the pack is broken, so no case was run", summary.pack);
        }
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn failed(case: &CaseResult, failures: &[UnmetExpectation], color: bool) -> String {
    let mut text = format!("FAILED {}: {}\n", case.span.place(), case.name);
    for (at, failure) in failures.iter().enumerate() {
        let found = render_text(&[diagnostic(failure)], Style { color });
        text.push_str(&found);
        text.push_str(&detail(failure));
        // The cause of several failures follows the last of them.
        let next = failures.get(at.saturating_add(1));
        if next.is_none_or(|it| (it.step, &it.behind) != (failure.step, &failure.behind)) {
            for (heading, lines) in &failure.behind {
                push_block(&mut text, heading, lines);
            }
        }
        text.push('\n');
    }
    text
}

/// The failure as a finding at the expectation.
fn diagnostic(failure: &UnmetExpectation) -> Diagnostic {
    let mismatch = &failure.mismatch;
    let step = failure.step.map_or_else(String::new, |it| format!("step {it}: "));
    let (what, wanted, got) = (&mismatch.what, &mismatch.wanted, &mismatch.got);
    let message = if is_short(wanted) && is_short(got) && mismatch.whole.is_none() {
        format!("{step}{what}: wanted {wanted}, got {got}")
    } else if is_short(wanted) && mismatch.whole.is_none() {
        format!("{step}{what}: wanted {wanted}")
    } else {
        format!("{step}{what}: not as wanted")
    };
    Diagnostic::error("case-failed", mismatch.span.clone(), message)
}

fn is_short(text: &str) -> bool {
    !text.contains('\n') && text.chars().count() <= SHORT_CHARS_MAX
}

/// What is too long for a sentence.
fn detail(failure: &UnmetExpectation) -> String {
    let mismatch = &failure.mismatch;
    let mut text = String::new();
    if let Some(whole) = &mismatch.whole {
        push_block(&mut text, "what differs (- wanted, + got)", &difference(whole, &mismatch.got));
    } else {
        if !is_short(&mismatch.wanted) {
            push_block(&mut text, "wanted", &mismatch.wanted);
        }
        if !(is_short(&mismatch.wanted) && is_short(&mismatch.got)) {
            push_block(&mut text, "got", &mismatch.got);
        }
    }
    text
}

fn push_block(text: &mut String, heading: &str, lines: &str) {
    text.push_str(&format!("  {heading}\n"));
    for line in lines.lines() {
        text.push_str(format!("    {line}").trim_end());
        text.push('\n');
    }
}

/// The lines in which two texts differ, with their surroundings.
fn difference(wanted: &str, got: &str) -> String {
    let (wanted, got) = (format!("{}\n", wanted.trim_end()), format!("{}\n", got.trim_end()));
    TextDiff::from_lines(&wanted, &got).unified_diff().context_radius(2).to_string()
}

fn coverage_text(coverage: &Coverage) -> String {
    let mut text = String::new();
    for rule in &coverage.rules {
        let gaps = gaps(rule);
        let lacks = lacks(rule);
        if gaps.is_empty() && lacks.is_empty() {
            continue;
        }
        let place = rule.place.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        text.push_str(&format!("{} {}{place}\n", rule.kind.as_str(), rule.id));
        for what in &lacks {
            text.push_str(&format!("  no {what} case\n"));
        }
        for (place, key, operand, never) in gaps {
            let operand = operand.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!("  {place} {key}: never {never}: {operand}\n"));
        }
    }
    let (seen, all) = coverage.branches();
    let (unfired, unsilent) = coverage.lacking();
    let rules = coverage.rules.len();
    let both = coverage.rules.iter().filter(|it| it.firing && it.silent).count();
    text.push_str(&format!(
        "coverage: {both} of {rules} rules have a firing and a passing case \
         ({} without a firing, {} without a passing one)\n\
         coverage: {seen} of {all} branches ({}%)\n",
        unfired.len(),
        unsilent.len(),
        coverage.percent(),
    ));
    text
}

fn lacks(rule: &RuleCoverage) -> Vec<&'static str> {
    let sides = [(rule.firing, "firing"), (rule.silent, "passing")];
    sides.into_iter().filter(|(has, _)| !has).map(|(_, what)| what).collect()
}

/// Operands that were not seen both ways: where, under which key, which, and what they never were.
fn gaps(rule: &RuleCoverage) -> Vec<(String, &str, &str, &'static str)> {
    let mut gaps = Vec::new();
    for condition in &rule.conditions {
        for (operand, ways) in condition.gaps() {
            let never = match ways {
                Ways { held: false, failed: false } => "reached",
                Ways { held: false, failed: true } => "true",
                Ways { held: true, .. } => "false",
            };
            gaps.push((condition.place.to_string(), condition.key.as_str(), operand, never));
        }
    }
    gaps
}

/// Everything as JSON.
#[must_use]
pub fn to_json(summaries: &[CaseSummary]) -> Value {
    let pack = |summary: &CaseSummary| {
        let (passed, failed, skipped) = summary.counts();
        json!({
            "pack": summary.pack,
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
            "left_out": summary.filtered,
            "broken": summary.broken,
            "wanting": summary.wanting,
            "findings": render_json(&summary.findings),
            "cases": summary.cases.iter().map(case_json).collect::<Vec<_>>(),
            "written": summary.written,
            "orphans": summary.orphans,
            "coverage": summary.coverage.as_ref().map(coverage_json),
        })
    };
    json!({
        "version": RESULTS_VERSION,
        "packs": summaries.iter().map(pack).collect::<Vec<_>>(),
    })
}

fn case_json(case: &CaseResult) -> Value {
    let (line, column) = case.span.line_column();
    let (ending, reason, failures) = match &case.ending {
        CaseOutcome::Passed => ("passed", None, [].as_slice()),
        CaseOutcome::Skipped(why) => ("skipped", Some(why), [].as_slice()),
        CaseOutcome::Failed(failures) => ("failed", None, failures.as_slice()),
    };
    json!({
        "file": case.file,
        "line": line,
        "column": column,
        "name": case.name,
        "result": ending,
        "reason": reason,
        "failures": failures.iter().map(failure_json).collect::<Vec<_>>(),
    })
}

fn failure_json(failure: &UnmetExpectation) -> Value {
    let mismatch = &failure.mismatch;
    let (line, column) = mismatch.span.line_column();
    let behind = failure.behind.iter();
    let behind = behind.map(|(what, lines)| json!({"what": what, "lines": lines}));
    json!({
        "step": failure.step,
        "what": mismatch.what,
        "line": line,
        "column": column,
        "wanted": mismatch.whole.as_ref().unwrap_or(&mismatch.wanted),
        "got": mismatch.got,
        "behind": behind.collect::<Vec<_>>(),
    })
}

fn coverage_json(coverage: &Coverage) -> Value {
    let (seen, all) = coverage.branches();
    let rule = |it: &RuleCoverage| {
        let gap = |(place, key, operand, never): (String, &str, &str, &str)| json!({"place": place, "key": key, "operand": operand, "never": never});
        json!({
            "kind": it.kind.as_str(),
            "id": it.id,
            "place": it.place.as_ref().map(ToString::to_string),
            "firing": it.firing,
            "silent": it.silent,
            "gaps": gaps(it).into_iter().map(gap).collect::<Vec<_>>(),
        })
    };
    json!({
        "branches_reached": seen,
        "branches": all,
        "percent": coverage.percent(),
        "rules": coverage.rules.iter().map(rule).collect::<Vec<_>>(),
    })
}

/// Everything as JUnit XML: one suite for each case file.
///
/// # Errors
/// [`SerializeError`] for a text that XML cannot represent.
pub fn to_junit(summaries: &[CaseSummary]) -> Result<String, SerializeError> {
    let mut report = Report::new("policyd test");
    for summary in summaries {
        let mut mistakes = TestSuite::new(summary.pack.as_str());
        for finding in &summary.findings {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(finding.message.as_str());
            status.set_description(render_text(
                std::slice::from_ref(finding),
                Style { color: false },
            ));
            mistakes.add_test_case(TestCase::new(finding.span.place(), status));
        }
        for why in &summary.wanting {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(why.as_str());
            mistakes.add_test_case(TestCase::new("the cases as a whole", status));
        }
        if !summary.findings.is_empty() || !summary.wanting.is_empty() {
            report.add_test_suite(mistakes);
        }
        let mut files: Vec<&str> = summary.cases.iter().map(|it| it.file.as_str()).collect();
        files.dedup();
        for file in files {
            let mut suite = TestSuite::new(file);
            let cases = summary.cases.iter().filter(|it| it.file == file);
            suite.add_test_cases(cases.map(junit_case));
            report.add_test_suite(suite);
        }
    }
    report.to_string()
}

fn junit_case(case: &CaseResult) -> TestCase {
    let status = match &case.ending {
        CaseOutcome::Passed => TestCaseStatus::success(),
        CaseOutcome::Skipped(why) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(why.as_str());
            status
        }
        CaseOutcome::Failed(failures) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let messages: Vec<String> = failures.iter().map(|it| diagnostic(it).message).collect();
            status.set_message(messages.join("; "));
            status.set_description(failed(case, failures, false));
            status
        }
    };
    let mut it = TestCase::new(case.name.as_str(), status);
    it.set_classname(case.file.as_str());
    let (line, _) = case.span.line_column();
    it.extra.insert("file".into(), case.file.as_str().into());
    it.extra.insert("line".into(), line.to_string().into());
    it
}
