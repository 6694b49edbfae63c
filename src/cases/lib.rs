//! Test cases of a pack: parsed case files, short transcripts, expectations, results and coverage.
//!
//! Contains: the shape of `tests/*.yaml`, its reader, and the comparison of an answer with what a case expects.
//! Does not contain: the simulated machine on which `policyd test` plays a case (`policyd-app`).
//!
//! ```
//! use policyd_cases::shape;
//!
//! assert_eq!(shape::FOLDER, "tests"); // the directory of case files in a pack
//! assert!(shape::schema().is_object()); // what editors complete
//! ```

pub mod coverage;
pub mod draft;
pub mod example_text;
pub mod expect;
mod given;
pub mod happens;
mod kinds;
pub mod names;
pub mod placeholders;
pub mod read;
pub mod result;
pub mod shape;
pub mod snapshot;
pub mod transcript;

pub use given::{Given, PackChanges, ProbeStub, StateBefore};

use std::path::PathBuf;
use std::time::Duration;

use expect::Expectation;
use happens::StepAction;
use policyd_yaml::Span;
use policyd_yaml::node::Node;

/// One case, with its placeholders filled.
#[derive(Debug)]
pub struct Case {
    /// Name, unique in its file.
    pub name: String,
    /// Location of the name.
    pub span: Span,
    /// Reason why the case is skipped.
    pub skip: Option<String>,
    /// Steps in order.
    pub steps: Vec<CaseStep>,
}

/// One step of a case.
#[derive(Debug)]
pub struct CaseStep {
    /// Location of its beginning.
    pub span: Span,
    /// Changes of the machine before the action.
    pub given: Given,
    /// Time that passes before the action.
    pub after: Duration,
    /// Additions to the transcript before the action.
    pub transcript: TranscriptAddition,
    /// Action of the step.
    pub on: StepAction,
    /// Expected result.
    pub expect: Expect,
}

impl CaseStep {
    /// Whether the step expects something of a key.
    #[must_use]
    pub fn expects(&self, key: &str) -> bool {
        let Expect::Wanted(wanted) = &self.expect else { return false };
        wanted.iter().any(|it| it.path.first().is_some_and(|first| first == key))
    }
}

/// Additions to a transcript.
#[derive(Debug, Default)]
pub enum TranscriptAddition {
    /// None.
    #[default]
    Nothing,
    /// Happenings in order; each is a map with a valid shape of [`shape`].
    List(Vec<Node>),
    /// Lines of this file beside the case file.
    File(Span, PathBuf),
}

/// Expected result of a step.
#[derive(Debug)]
pub enum Expect {
    /// Expectations.
    Wanted(Vec<Expectation>),
    /// A snapshot of the report.
    Snapshot(Span, SnapshotFormat),
}

/// Format of the report in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotFormat {
    /// The text report.
    Text,
    /// The JSON report.
    Json,
}
