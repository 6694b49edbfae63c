//! A tool call before it runs: its programs, its files, and the scripts that it runs.

use std::collections::{BTreeMap, BTreeSet};

use super::effect_set::CallEffects;
use super::file_access::{FileAccess, PatchFile, TreeWrite};
use super::invocation::Invocation;
use super::paths::ResolvedPath;
use super::shell_text::ShellText;

/// A tool call before it runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// Name of the tool.
    pub tool: String,
    /// Command line. Empty if the tool runs none.
    pub command: String,
    /// Programs that the call starts, in order, without wrappers and shells.
    pub programs: Vec<Invocation>,
    /// Wrappers of the programs, by name. A wrapper is plain if it changes neither what a program does nor its rights.
    pub wrappers: BTreeMap<String, bool>,
    /// Variables that the call sets for its programs, by name.
    pub variables: BTreeMap<String, ShellText>,
    /// Names of all variables that the call assigns, also those of the shell alone.
    pub assigned: BTreeSet<String>,
    /// Files that the call accesses.
    pub files: Vec<FileAccess>,
    /// Directory trees that the call writes. Which files they contain is not part of the call.
    pub trees: Vec<TreeWrite>,
    /// Files and directories of this machine that the containers of the call see.
    pub mounts: Vec<ResolvedPath>,
    /// Patch files that a program applies. Their content is not part of the call.
    pub patches: Vec<PatchFile>,
    /// Files that the call runs. What they do is not part of the other fields.
    pub scripts: Vec<Script>,
    /// Text that the call writes into files, one entry for each text.
    pub written: Vec<String>,
    /// Texts in the input of a tool that the vocabulary does not list and that does not only read.
    pub strings: Vec<String>,
    /// What a tool that the vocabulary does not list does to something that is not a local file: `deletes`.
    pub tool_effects: Vec<String>,
    /// URL that the tool fetches. Can be empty.
    pub address: String,
    /// Prompt of the user. Empty for other events.
    pub prompt: String,
    /// Whether a function calls itself endlessly, or a loop starts jobs endlessly.
    pub endless: bool,
    /// Reasons why parts of the command line were not understood, each once.
    pub unread: Vec<String>,
    /// What programs do whose names are in a line that was not understood.
    pub suspected: CallEffects,
    /// Whether a part was not analyzed because it exceeds a limit: too long, too deep, or too many
    /// programs.
    pub beyond: bool,
}

impl Call {
    /// Returns whether the whole command line was understood.
    #[must_use]
    pub const fn is_understood(&self) -> bool {
        self.unread.is_empty()
    }

    /// Records a reason why a part was not understood.
    pub(super) fn mark_not_understood(&mut self, why: &str) {
        if !self.unread.iter().any(|it| it == why) {
            self.unread.push(why.to_owned());
        }
    }

    /// Records that a part was not analyzed because it exceeds a limit.
    pub fn over(&mut self, why: &str) {
        self.beyond = true;
        self.mark_not_understood(why);
    }

    /// Returns the indexes of all programs whose output reaches a program, directly or through
    /// other programs. Sorted.
    #[must_use]
    pub fn upstream(&self, program: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut open = vec![program];
        while let Some(next) = open.pop() {
            let fed = self.programs.get(next).map(|it| it.fed_by.as_slice()).unwrap_or_default();
            for from in fed {
                if !found.contains(from) && *from != program {
                    found.push(*from);
                    open.push(*from);
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// Returns whether one of some programs writes what another machine sends, or receives it from other programs.
    #[must_use]
    pub fn has_fetcher(&self, programs: &[usize]) -> bool {
        let fetches = |at: usize| self.programs.get(at).is_some_and(|it| it.fetches);
        programs.iter().any(|it| fetches(*it) || self.upstream(*it).into_iter().any(fetches))
    }
}

/// A file that a call runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    /// Absolute path.
    pub path: String,
    /// Text of the file.
    pub text: String,
    /// What it does. Variables and arguments are those of the call, as far as they are known.
    pub call: Call,
    /// The line of each program of `call`, counted from 1.
    pub lines: Vec<usize>,
}
