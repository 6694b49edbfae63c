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
pub mod expect;
mod given;
pub mod happens;
pub mod names;
pub mod placeholders;
pub mod read;
pub mod result;
pub mod shape;
pub mod snapshot;
pub mod transcript;

use std::path::PathBuf;
use std::time::Duration;

use expect::Expectation;
use happens::StepAction;
use policyd_yaml::Span;
use policyd_yaml::node::Node;
use policyd_yaml::time::Timestamp;

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

/// Changes of the machine before a step.
#[derive(Debug, Default)]
pub struct Given {
    /// Files by path, relative to the project.
    pub files: Vec<(String, String)>,
    /// Paths of files that are removed.
    pub removed: Vec<String>,
    /// Wall-clock time.
    pub now: Option<Timestamp>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// The git branch.
    pub branch: Option<String>,
    /// URL of the git remote.
    pub remote: Option<String>,
    /// Whether the git work tree is clean.
    pub tree_clean: Option<bool>,
    /// Paths that git tracks.
    pub tracked: Vec<String>,
    /// Paths with changes that are not committed.
    pub uncommitted: Vec<String>,
    /// Which permission prompts policyd answers: a level of `approvals`.
    pub approvals: Option<String>,
    /// Whether a user is present.
    pub interactive: Option<bool>,
    /// Probe results, by id.
    pub probes: Vec<(String, Vec<ProbeStub>)>,
    /// Saved state of the session.
    pub state: Option<StateBefore>,
    /// Names of open circuit breakers.
    pub breakers: Vec<String>,
    /// Whether writes fail.
    pub disk_full: Option<bool>,
    /// Changes of the pack.
    pub pack: PackChanges,
}

/// Saved state of a session before a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct StateBefore {
    /// Blocks of the session.
    pub total_blocks: u64,
    /// Blocks since the last prompt of the user.
    pub consecutive_blocks: u32,
    /// Stops that changed the state.
    pub turns: u64,
}

/// One stubbed result of a probe.
#[derive(Debug, Clone)]
pub struct ProbeStub {
    /// Outcome of the program.
    pub outcome: ProbeStubOutcome,
    /// Duration of the program.
    pub takes: Duration,
}

/// Outcome of a stubbed program.
#[derive(Debug, Clone)]
pub enum ProbeStubOutcome {
    /// The program ends.
    Ends {
        /// Standard output.
        prints: String,
        /// Standard error.
        stderr: String,
        /// Exit code.
        code: i32,
    },
    /// The program is not installed.
    Missing,
    /// The program exceeds its time limit.
    TimesOut,
}

/// Changes of the pack in a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackChanges {
    /// Checks and probes to enable.
    pub enable: Vec<String>,
    /// Checks and probes to disable.
    pub disable: Vec<String>,
    /// Voice of the messages.
    pub voice: Option<String>,
    /// Fixed values of preferences.
    pub preferences: Vec<(String, bool)>,
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
