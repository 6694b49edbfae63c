//! Lint: a table of rules, and the review of a pack. The rows are in `src/lint/catalogue.rs`, the checks in `checks`.
//! A rule is a row, its checks, and a page; rules of findings of the loader have no checks.
//!
//! Contains: rules over the files and the tree of a pack. Does not contain: the search for packs, and the output
//! (`policyd-report`).
//!
//! ```
//! let rule = policyd_lint::find("unknown-key").unwrap();
//! assert_eq!(policyd_lint::code_of(rule.name), rule.code);
//! ```

pub mod baseline;
mod catalogue;
mod checks;
mod findings;
pub mod fix;
mod ignore;
mod limit;
mod logic;
mod pairs;
mod profile;
mod rule;
mod site;
mod subject;

use std::collections::BTreeMap;

use policyd_cores as cores;
use policyd_yaml::Diagnostic;

pub use catalogue::{code_of, find};
pub use findings::Findings;
pub use ignore::{SuppressedFinding, SuppressionReview, code_at};
pub use profile::Profile;
pub use rule::{Rule, RuleFn};
pub use site::Site;
pub use subject::Subject;

/// All rules, in the order of their codes.
#[must_use]
pub const fn rules() -> &'static [Rule] {
    catalogue::ROWS
}

/// Reviews a pack: returns the findings of the loader, and those of the rules of a profile.
#[must_use]
pub fn review(subject: &Subject<'_>, profile: Profile, ignores: bool) -> SuppressionReview {
    let mut findings = subject.reviewed.diagnostics.clone();
    for finding in &mut findings {
        finding.code = find(finding.code).map_or(finding.code, |rule| rule.name);
    }
    findings.retain(|it| find(it.code).is_none_or(|rule| rule.profile <= profile));
    let rules: Vec<&Rule> = catalogue::ROWS.iter().filter(|it| it.profile <= profile).collect();
    let found = cores::on_all(subject.cores, &rules, |rule| {
        let mut out = rule.findings(profile);
        rule.checks.iter().for_each(|check| check(subject, &mut out));
        out.found
    });
    findings.extend(found.into_iter().flatten());
    let mut reviewed = ignore::apply(subject, findings, profile, ignores);
    reviewed.findings = shown(subject, reviewed.findings);
    reviewed
}

/// Maximum number of findings of one rule in one pack; of others, only the number is reported.
const SHOWN_MAX: usize = 100;

/// Returns the findings with the rules that contain them, each once, and at most `SHOWN_MAX` of one rule.
fn shown(subject: &Subject<'_>, findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut told: BTreeMap<&str, Vec<Diagnostic>> = BTreeMap::new();
    let mut left: BTreeMap<&str, (usize, Diagnostic)> = BTreeMap::new();
    for mut finding in findings {
        let same_rule = told.entry(finding.code).or_default();
        if same_rule.len() < SHOWN_MAX {
            subject.name_the_rule(&mut finding);
            // Two ways may lead to one finding.
            if !same_rule.contains(&finding) {
                same_rule.push(finding);
            }
        } else {
            left.entry(finding.code).or_insert((0, finding)).0 += 1;
        }
    }
    let more = left.into_values().map(|(number, first)| {
        let message = format!("{number} more findings of this rule are not shown");
        Diagnostic { message, related: vec![], help: None, note: None, fix: None, ..first }
    });
    told.into_values().flatten().chain(more).collect()
}
