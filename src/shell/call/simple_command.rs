//! A simple command after the expansion of its words, and its redirections.

use super::invocation::StandardInput;
use super::shell_text::ShellText;

/// A simple command after the expansion of its words.
#[derive(Debug, Default)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<ShellText>,
    /// Variables that are set for the command, or by the command if it has no words.
    pub(super) variables: Vec<(String, Vec<ShellText>)>,
    pub(super) redirects: Redirects,
    pub(super) wrappers: Vec<String>,
}

impl SimpleCommand {
    /// Returns a command that sets no variables.
    pub(super) const fn new(
        words: Vec<ShellText>,
        redirects: Redirects,
        wrappers: Vec<String>,
    ) -> Self {
        Self { words, variables: Vec::new(), redirects, wrappers }
    }
}

/// The redirections of a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Redirects {
    pub(super) writes: Vec<ShellText>,
    /// Those of `writes` whose content stays: `>>`.
    pub(super) appended: Vec<ShellText>,
    pub(super) reads: Vec<ShellText>,
    pub(super) input: Option<StandardInput>,
    /// Descriptors that write to a program, each with the programs: `3> >(sh)`.
    pub(super) opened: Vec<(String, Vec<usize>)>,
    /// Whether the standard output is redirected.
    pub(super) away: bool,
    /// Arguments of the command that the grammar parses as part of a redirection: `rm > log -rf
    /// build`.
    pub(super) words: Vec<ShellText>,
}

impl Redirects {
    /// Adds the redirections behind these.
    pub(super) fn extend(&mut self, later: Self) {
        self.writes.extend(later.writes);
        self.appended.extend(later.appended);
        self.opened.extend(later.opened);
        self.reads.extend(later.reads);
        self.away |= later.away;
        self.input = later.input.or(self.input.take());
        self.words.extend(later.words);
    }
}
