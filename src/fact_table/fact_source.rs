//! Where the values of facts come from, and which facts are known when an expression is evaluated.

use serde::{Deserialize, Serialize};

/// Where the value of a fact comes from: what must be read before it is known. Each global name has one; a member can have
/// another one than its global name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactSource {
    /// The event, the clock, and the branch that is checked out.
    Event,
    /// The remote of the project, in its git directory.
    Remote,
    /// The transcript.
    Transcript,
    /// The meters of the context window, which read the transcript.
    Context,
    /// Stored states of breakers.
    Breakers,
    /// Stored tasks and escalations.
    Queues,
    /// Stored signals.
    Signals,
    /// What the sessions of the user spent today.
    Costs,
    /// What the rules of the pack remembered.
    PackMemory,
    /// The files of the project.
    Project,
    /// The condition of each session type.
    SessionType,
    /// Files with preferences.
    Preferences,
    /// Programs that are run.
    Probes,
    /// The stored state of the session.
    Memory,
    /// The check that is evaluated.
    Rule,
    /// The last text of the agent, compared with known excuses.
    Excuses,
    /// The decision.
    Outcome,
    /// The tool call.
    Call,
    /// The paths of the tool call, with links followed.
    CallPaths,
    /// The program that a guard recognized.
    Program,
    /// The paths of this program, with links followed.
    ProgramPaths,
    /// The work tree of this program, as git reports it.
    WorkTree,
    /// The branch that is checked out, as git reports it.
    Branch,
    /// The texts of the files that the tool call changes.
    ChangedTexts,
    /// Which paths exist.
    PathStates,
    /// Which paths git tracks, by its index.
    TrackedPaths,
    /// Which paths have changes that are not committed, as git reports them.
    UncommittedPaths,
    /// Files of the project that an expression names.
    ProjectFiles,
    /// The file with the owners of the project's files.
    CodeOwners,
}

/// What kind of expression is evaluated. Each kind knows other facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluationPhase {
    /// The condition of a session type.
    Classification,
    /// The condition of a preference or a probe.
    Gathering,
    /// The condition of a check.
    Check,
    /// The condition of a rationalization.
    Excuse,
    /// A message or an exemption, after the checks.
    Message,
    /// A guard with `commands`.
    ProgramGuard,
    /// Another guard.
    Guard,
}

impl EvaluationPhase {
    /// Returns whether facts of a source are known.
    #[must_use]
    pub const fn knows(self, source: FactSource) -> bool {
        let is_guard = matches!(self, Self::Guard | Self::ProgramGuard);
        match source {
            FactSource::Event
            | FactSource::Remote
            | FactSource::Transcript
            | FactSource::Context
            | FactSource::Signals
            | FactSource::Project => true,
            FactSource::Breakers
            | FactSource::Queues
            | FactSource::Costs
            | FactSource::PackMemory => !matches!(self, Self::Excuse),
            FactSource::SessionType => !matches!(self, Self::Classification),
            FactSource::Preferences | FactSource::Probes => is_guard || matches!(self, Self::Check),
            FactSource::Rule => matches!(self, Self::Check),
            FactSource::Memory => matches!(self, Self::Check | Self::Excuse | Self::Message),
            FactSource::Excuses => matches!(self, Self::Check | Self::Message),
            FactSource::Outcome => matches!(self, Self::Message),
            FactSource::Call
            | FactSource::CallPaths
            | FactSource::ChangedTexts
            | FactSource::PathStates
            | FactSource::TrackedPaths
            | FactSource::UncommittedPaths => is_guard,
            FactSource::ProjectFiles | FactSource::CodeOwners => {
                is_guard || matches!(self, Self::Check | Self::Message)
            }
            FactSource::Program
            | FactSource::ProgramPaths
            | FactSource::WorkTree
            | FactSource::Branch => matches!(self, Self::ProgramGuard),
        }
    }
}

impl FactSource {
    /// Returns whether a value can change between the plan of a stop and the evaluation of its checks.
    #[must_use]
    pub const fn changes_after_planning(self) -> bool {
        match self {
            Self::Preferences | Self::Memory | Self::Rule | Self::Excuses | Self::Context => true,
            Self::Event
            | Self::Remote
            | Self::Transcript
            | Self::Breakers
            | Self::Queues
            | Self::Signals
            | Self::Costs
            | Self::PackMemory
            | Self::Project
            | Self::SessionType
            | Self::Probes
            | Self::Outcome
            | Self::Call
            | Self::CallPaths
            | Self::Program
            | Self::ProgramPaths
            | Self::WorkTree
            | Self::Branch
            | Self::ChangedTexts
            | Self::PathStates
            | Self::TrackedPaths
            | Self::UncommittedPaths
            | Self::ProjectFiles
            | Self::CodeOwners => false,
        }
    }
}

/// A set of sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactSources(u32);

impl FactSources {
    /// Sources that read the transcript.
    pub const TRANSCRIPT: Self = Self::of(&[FactSource::Transcript, FactSource::Context]);
    /// Sources that are read with the session: its transcript, its type, whose conditions read it, its costs, the packages
    /// of the project, and its remote.
    pub const SESSION: Self = Self::TRANSCRIPT
        .with(FactSource::Remote)
        .with(FactSource::SessionType)
        .with(FactSource::Costs)
        .with(FactSource::Project);
    /// Sources that read what the user and external commands say.
    pub const READINGS: Self = Self::of(&[FactSource::Preferences, FactSource::Probes]);
    /// Sources that read the stores of the project.
    pub const STORES: Self = Self::of(&[
        FactSource::Breakers,
        FactSource::Queues,
        FactSource::Signals,
        FactSource::Costs,
        FactSource::PackMemory,
    ]);
    /// Sources for which links are followed.
    pub const PATHS: Self = Self::of(&[FactSource::CallPaths, FactSource::ProgramPaths]);

    /// Sources that ask what a path is.
    pub const PATH_STATES: Self =
        Self::of(&[FactSource::PathStates, FactSource::TrackedPaths, FactSource::UncommittedPaths]);
    /// Sources that read files of the project by their names.
    pub const PROJECT_FILES: Self = Self::of(&[FactSource::ProjectFiles, FactSource::CodeOwners]);
    /// Sources that read files for a guard. A record of the call does not have what they contained.
    pub const FILES: Self =
        Self::of(&[FactSource::ChangedTexts]).union(Self::PATH_STATES).union(Self::PROJECT_FILES);

    /// The set of these sources.
    #[must_use]
    pub const fn of(mut sources: &[FactSource]) -> Self {
        let mut bits = 0;
        while let [first, others @ ..] = sources {
            bits |= 1 << *first as u32;
            sources = others;
        }
        Self(bits)
    }

    /// The set with another source.
    #[must_use]
    pub const fn with(self, source: FactSource) -> Self {
        Self(self.0 | 1 << source as u32)
    }

    /// The sources of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether a source is in the set.
    #[must_use]
    pub const fn contains(self, source: FactSource) -> bool {
        self.has_some(Self::of(&[source]))
    }

    /// Returns whether a source is in both sets.
    #[must_use]
    pub const fn has_some(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
