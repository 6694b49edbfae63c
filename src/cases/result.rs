//! What came of cases: each with the expectations that were not met and the values behind them.

use std::path::PathBuf;

use super::coverage::Coverage;
use super::expect::Mismatch;
use crate::source::{Diagnostic, Span};

/// What came of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseResult {
    /// The file it is written in, as shown to people.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Where its name is written.
    pub span: Span,
    /// How it ended.
    pub ending: Ending,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Everything is as it was wanted.
    Passed,
    /// It was not run, for this reason.
    Skipped(String),
    /// Something is not as it was wanted.
    Failed(Vec<Failure>),
}

/// One expectation that was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Number of the step from 1, where the case has several.
    pub step: Option<usize>,
    /// What was wanted and what there was.
    pub mismatch: Mismatch,
    /// What led to it: a heading, and lines below it.
    pub behind: Vec<(String, String)>,
}

/// What came of the cases of one pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Name of the pack.
    pub pack: String,
    /// What is wrong in its case files, or in the pack itself where it is broken.
    pub findings: Vec<Diagnostic>,
    /// Whether the pack could not be loaded, so that no case was run.
    pub broken: bool,
    /// Its cases in the order of the files.
    pub cases: Vec<CaseResult>,
    /// Cases that were left out by their name.
    pub filtered: usize,
    /// What is wanting although no case failed: none was run, or too little is reached.
    pub wanting: Vec<String>,
    /// Snapshots that were written, as shown to people.
    pub written: Vec<String>,
    /// Snapshots that no case compares with, beside the case files; told where every case was run.
    pub orphans: Vec<PathBuf>,
    /// What the cases showed of the pack, where that was asked for.
    pub coverage: Option<Coverage>,
}

impl Summary {
    /// Cases that passed, failed and were skipped.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let (mut passed, mut failed, mut skipped) = (0_usize, 0_usize, 0_usize);
        for case in &self.cases {
            let count = match case.ending {
                Ending::Passed => &mut passed,
                Ending::Failed(_) => &mut failed,
                Ending::Skipped(_) => &mut skipped,
            };
            *count = count.saturating_add(1);
        }
        (passed, failed, skipped)
    }
}
