//! Results of cases, with the expectations that were not met and the values behind them.

use std::path::PathBuf;

use super::coverage::Coverage;
use super::expect::Mismatch;
use policyd_yaml::{Diagnostic, Span};

/// Result of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseResult {
    /// Displayed path of its file.
    pub file: String,
    pub name: String,
    /// Location of its name.
    pub span: Span,
    pub ending: CaseOutcome,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseOutcome {
    /// All expectations were met.
    Passed,
    /// The case was skipped, for this reason.
    Skipped(String),
    /// Some expectations were not met.
    Failed(Vec<UnmetExpectation>),
}

/// One expectation that was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetExpectation {
    /// Number of the step from 1, if the case has several.
    pub step: Option<usize>,
    /// Expected and actual value.
    pub mismatch: Mismatch,
    /// Explanation: headings with lines below each.
    pub behind: Vec<(String, String)>,
}

/// Results of the cases of one pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseSummary {
    /// Name of the pack.
    pub pack: String,
    /// Findings in its case files, or in the pack if it is invalid.
    pub findings: Vec<Diagnostic>,
    /// Whether the pack could not be loaded, so that no case ran.
    pub broken: bool,
    /// Cases in the order of the files.
    pub cases: Vec<CaseResult>,
    /// Number of cases that the name filter excluded.
    pub filtered: usize,
    /// Problems although no case failed: no case ran, or the coverage is too low.
    pub wanting: Vec<String>,
    /// Displayed paths of snapshots that were written.
    pub written: Vec<String>,
    /// Snapshot files that no case uses. Known only if all cases ran.
    pub orphans: Vec<PathBuf>,
    /// Coverage of the pack, if requested.
    pub coverage: Option<Coverage>,
}

impl CaseSummary {
    /// Returns the numbers of passed, failed and skipped cases.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let (mut passed, mut failed, mut skipped) = (0_usize, 0_usize, 0_usize);
        for case in &self.cases {
            let count = match case.ending {
                CaseOutcome::Passed => &mut passed,
                CaseOutcome::Failed(_) => &mut failed,
                CaseOutcome::Skipped(_) => &mut skipped,
            };
            *count = count.saturating_add(1);
        }
        (passed, failed, skipped)
    }
}
