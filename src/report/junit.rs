//! A review as JUnit XML: a suite for each file, a failed case for each finding.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::diagnostics::{in_order, level_name};
use super::lint::LintReview;
use policyd_lint::code_of;
use policyd_yaml::Diagnostic;

/// The report; notes and warnings are failures of their own type.
#[must_use]
pub fn junit(review: &LintReview) -> String {
    let mut report = Report::new("policyd lint");
    let mut by_file: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for file in &review.files {
        by_file.entry(file).or_default();
    }
    for finding in in_order(&review.findings) {
        by_file.entry(finding.span.source.name.as_str()).or_default().push(finding);
    }
    for (file, findings) in by_file {
        let mut suite = TestSuite::new(file);
        if findings.is_empty() {
            suite.add_test_case(TestCase::new("lint", TestCaseStatus::success()));
        }
        suite.add_test_cases(findings.into_iter().map(case));
        report.add_test_suite(suite);
    }
    let mut unreadable = TestSuite::new("unreadable");
    for problem in &review.unreadable {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(problem.as_str());
        unreadable.add_test_case(TestCase::new("read", status));
    }
    if !review.unreadable.is_empty() {
        report.add_test_suite(unreadable);
    }
    report.to_string().unwrap_or_default()
}

fn case(finding: &Diagnostic) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let help = finding.help.as_ref().map_or_else(String::new, |it| format!("\nhelp: {it}"));
    status.set_message(finding.message.as_str());
    status.set_type(level_name(finding.level));
    status.set_description(format!("{}: {}{help}", finding.span.place(), finding.message));
    let (line, column) = finding.span.line_column();
    TestCase::new(format!("{} at {line}:{column}", code_of(finding.code)), status)
}
