//! Cases: what a pack should answer in a situation, as written and as meant.
//! Lives here: reading case files, short transcripts, expectations, results, coverage. Pure: a case
//! is run on a simulated machine by `cli/test`.

pub mod coverage;
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

use crate::source::Span;
use crate::source::node::Node;
use crate::time::Timestamp;
use expect::Wanted;
use happens::Happens;

/// One case, its placeholders filled.
#[derive(Debug)]
pub struct Case {
    /// Its name, which is its own in its file.
    pub name: String,
    /// Where the name is written.
    pub span: Span,
    /// Why it is not run.
    pub skip: Option<String>,
    /// Its events in order.
    pub steps: Vec<Step>,
}

/// One event of a case.
#[derive(Debug)]
pub struct Step {
    /// Where it begins.
    pub span: Span,
    /// What is changed on the machine before it.
    pub given: Given,
    /// Time that passes before it.
    pub after: Duration,
    /// What happens in the session before it.
    pub transcript: Transcript,
    /// What happens.
    pub on: Happens,
    /// What must come of it.
    pub expect: Expect,
}

/// What happens in a session.
#[derive(Debug, Default)]
pub enum Transcript {
    /// Nothing more.
    #[default]
    Nothing,
    /// This, in order; each is a map that fits [`shape`].
    List(Vec<Node>),
    /// What this file beside the case holds.
    File(Span, PathBuf),
}

/// What a step changes on the machine.
#[derive(Debug, Default)]
pub struct Given {
    /// Files by path, relative to the project.
    pub files: Vec<(String, String)>,
    /// The wall clock.
    pub now: Option<Timestamp>,
    /// Variables of the environment.
    pub env: Vec<(String, String)>,
    /// The git branch.
    pub branch: Option<String>,
    /// Address of the git remote.
    pub remote: Option<String>,
    /// Whether the git work tree has no changes.
    pub tree_clean: Option<bool>,
    /// Whether a human watches.
    pub interactive: Option<bool>,
    /// What probes answer, by id.
    pub probes: Vec<(String, Vec<Answer>)>,
    /// What the session remembers.
    pub state: Option<Memory>,
    /// Circuit breakers that tripped.
    pub breakers: Vec<String>,
    /// Whether nothing can be written any more.
    pub disk_full: Option<bool>,
    /// What is set otherwise than in the pack.
    pub pack: PackChanges,
}

/// What a session remembers before a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    /// Blocks of the session.
    pub total_blocks: u64,
    /// Blocks since the human last said something.
    pub consecutive_blocks: u32,
    /// Stops that moved the state.
    pub turns: u64,
}

/// What a probe answers once.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What comes of the program.
    pub outcome: AnswerOutcome,
    /// Time it takes.
    pub takes: Duration,
}

/// What comes of a program.
#[derive(Debug, Clone)]
pub enum AnswerOutcome {
    /// It ends.
    Ends {
        /// Its standard output.
        prints: String,
        /// Its standard error.
        stderr: String,
        /// Its exit code.
        code: i32,
    },
    /// It is not installed.
    Missing,
    /// It does not answer in time.
    TimesOut,
}

/// What a case sets otherwise than its pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackChanges {
    /// Considerations and probes that are switched on.
    pub enable: Vec<String>,
    /// Considerations and probes that are switched off.
    pub disable: Vec<String>,
    /// Voice of the messages.
    pub voice: Option<String>,
    /// Fixed answers of preferences.
    pub preferences: Vec<(String, bool)>,
}

/// What must come of a step.
#[derive(Debug)]
pub enum Expect {
    /// These things.
    Wanted(Vec<Wanted>),
    /// The report that is kept in a snapshot.
    Snapshot(Span, Form),
}

/// Form of the report in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// What people read.
    Text,
    /// What programs read.
    Json,
}
