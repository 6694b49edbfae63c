//! The effects of a call: as a list that users read, and as a set of kinds.

use std::collections::BTreeSet;
use std::fmt;

use super::effect_set::CallEffects;
use super::file_access::Access;
use super::files::is_nowhere;
use super::invocation::Invocation;
use super::paths::{CallEnvironment, ResolvedPath};
use super::program_database::{FileEffect, OperandSelector, ProgramDatabase};
use super::tool_call::Call;
use crate::pattern::CommandPattern;

/// What an effect does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// A file is deleted.
    Deletes,
    /// A file gets another path.
    Moves,
    /// A file is changed or created.
    Changes,
    /// The files of a directory tree are changed or created.
    ChangesTree,
    /// A file is read.
    Reads,
    /// A file is run.
    Runs,
    /// A program runs code that cannot be known.
    RunsUnknownCode,
    /// A program is unknown, because its name is.
    StartsUnknownProgram,
    /// A variable of a program is set.
    Sets,
    /// A part of the call was not analyzed.
    NotAnalyzed,
}

impl EffectKind {
    /// Returns the words before the target.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Deletes => "deletes",
            Self::Moves => "moves away",
            Self::Changes => "changes",
            Self::ChangesTree => "can change files below",
            Self::Reads => "reads",
            Self::Runs => "runs the file",
            Self::RunsUnknownCode => "runs code that cannot be known:",
            Self::StartsUnknownProgram => "starts a program that cannot be known:",
            Self::Sets => "sets",
            Self::NotAnalyzed => "does what was not analyzed:",
        }
    }
}

/// Where the target of an effect lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectPlace {
    /// The path is not known.
    Unknown,
    /// Neither in the project, nor in the home directory, nor among temporary files.
    Elsewhere,
    /// In the home directory of the user, outside of the project.
    Home,
    /// Among temporary files.
    Temporary,
    /// In the project.
    Project,
}

impl EffectPlace {
    /// Returns the name of the place.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown place",
            Self::Elsewhere => "elsewhere",
            Self::Home => "home",
            Self::Temporary => "temporary",
            Self::Project => "project",
        }
    }

    fn of(place: &ResolvedPath, around: &CallEnvironment) -> Self {
        match place.real(around) {
            None => Self::Unknown,
            Some(it) if around.in_project(it) => Self::Project,
            Some(it) if around.is_temporary(it) => Self::Temporary,
            Some(it) if around.is_home(it) => Self::Home,
            Some(_) => Self::Elsewhere,
        }
    }
}

/// One effect of a call, as far as it is known before the call runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallEffect {
    pub kind: EffectKind,
    /// File, program, or variable.
    pub target: String,
    /// `None` for a program or a variable.
    pub place: Option<EffectPlace>,
}

impl fmt::Display for CallEffect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind.text(), self.target)?;
        self.place.map_or(Ok(()), |it| write!(out, " ({})", it.as_str()))
    }
}

impl ProgramDatabase {
    /// Returns the effects of the programs that a text names: what a line might do that was not understood.
    pub(super) fn named_effects(&self, text: &str) -> CallEffects {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let words: BTreeSet<&str> = text.split(|c: char| !is_part(c)).collect();
        let has = |word: &str| word.starts_with('-') || words.contains(word);
        let is_named = |it: &CommandPattern| it.as_str().split_whitespace().all(has);
        let rows = words.iter().flat_map(|word| {
            let rows = self.effects.named(word);
            rows.filter(|row| row.programs.iter().any(is_named))
        });
        rows.map(FileEffect::program_effects).fold(CallEffects::default(), CallEffects::union)
    }
}

impl FileEffect {
    /// Returns those of the effects by which guards name programs.
    fn program_effects(&self) -> CallEffects {
        let kinds = [
            (CallEffects::DELETE, self.delete),
            (CallEffects::MOVE, self.moves),
            (CallEffects::WRITE, self.write),
        ];
        let kinds = kinds.into_iter().filter(|it| it.1 != OperandSelector::None);
        kinds.map(|it| it.0).fold(CallEffects::default(), CallEffects::union)
    }
}

impl Call {
    /// Returns the effects that the call may have: all kinds, if a part of it was not understood, or if it applies a patch,
    /// whose files are known when it is read.
    #[must_use]
    pub fn effects(&self) -> CallEffects {
        if !self.is_understood() || self.beyond || !self.patches.is_empty() {
            return CallEffects::ALL;
        }
        let does = |is_such: fn(Access) -> bool| self.files.iter().any(|it| is_such(it.does));
        let kinds = [
            (CallEffects::READ, does(|it| it == Access::Read)),
            (CallEffects::CHANGE, does(|it| it != Access::Read)),
            (CallEffects::TREE, !self.trees.is_empty() || !self.mounts.is_empty()),
            (CallEffects::VARIABLE, !self.variables.is_empty()),
            (CallEffects::ENDLESS, self.endless),
        ];
        let kinds = kinds.into_iter().filter_map(|(kind, has)| has.then_some(kind));
        let of_programs = self.programs.iter().map(|it| it.effects);
        kinds.chain(of_programs).fold(CallEffects::default(), CallEffects::union)
    }

    /// Returns the effects of the call, each once, the gravest kind first. Programs whose effects are not described have none
    /// beside their redirections and the paths among their arguments.
    #[must_use]
    pub fn effect_list(&self, around: &CallEnvironment) -> Vec<CallEffect> {
        let of_path = |kind, place: &ResolvedPath| {
            let target = place.absolute.as_ref().filter(|_| !place.open).unwrap_or(&place.written);
            let target = target.clone();
            CallEffect { kind, target, place: Some(EffectPlace::of(place, around)) }
        };
        let files = self.files.iter().filter(|it| !it.place.real(around).is_some_and(is_nowhere));
        let files = files.filter(|it| !self.is_in_target(&it.place, Some(it.program)));
        let files = files.map(|it| {
            let kind = match it.does {
                Access::Read => EffectKind::Reads,
                Access::Write => EffectKind::Changes,
                Access::Delete => EffectKind::Deletes,
                Access::Move => EffectKind::Moves,
            };
            of_path(kind, &it.place)
        });
        let trees = self.trees.iter().filter(|it| !self.is_in_target(&it.place, None));
        let trees = trees.map(|it| of_path(EffectKind::ChangesTree, &it.place));
        let scripts = self.all_scripts();
        let runs = scripts.iter().map(|it| {
            let place = around.known_place(&it.path, None);
            of_path(EffectKind::Runs, &place)
        });
        let other =
            |kind, target: &str| CallEffect { kind, target: target.to_owned(), place: None };
        let unknown = self.programs.iter().filter_map(|it: &Invocation| {
            let kind = match (it.name.is_empty(), it.runs_unknown) {
                (true, _) => EffectKind::StartsUnknownProgram,
                (false, true) => EffectKind::RunsUnknownCode,
                (false, false) => return None,
            };
            Some(other(kind, &it.called.text))
        });
        let sets = self.variables.keys().map(|it| other(EffectKind::Sets, it));
        let unread = self.unread.iter().map(|it| other(EffectKind::NotAnalyzed, it));
        let all = files.chain(trees).chain(runs).chain(unknown).chain(sets).chain(unread);
        let mut all: Vec<CallEffect> = all.collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns whether a path is only there if the target of a copy is a directory that receives the source: the target is
    /// listed already. For a file, the target is one of the same program; for a directory tree, one of any program.
    fn is_in_target(&self, place: &ResolvedPath, of_file: Option<Option<usize>>) -> bool {
        let Some(path) = place.absolute.as_deref() else { return false };
        let mut copied = self.files.iter().filter(|it| it.does == Access::Write && !it.keeps);
        copied.any(|it| {
            let target = it.place.absolute.as_deref().filter(|target| !target.is_empty());
            let Some(rest) = target.and_then(|target| path.strip_prefix(target)) else {
                return false;
            };
            match of_file {
                Some(program) => {
                    it.program == program
                        && rest.strip_prefix('/').is_some_and(|it| !it.contains('/'))
                }
                None => rest.is_empty() || rest.starts_with('/'),
            }
        })
    }
}
