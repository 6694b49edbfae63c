//! Commands of shell tools: the programs that a call ran, and how the call ended.

use std::collections::BTreeSet;

use policyd_shell::pattern::CommandPattern;
use policyd_shell::program::Program;
use policyd_shell::vocabulary::ValueOptions;
use policyd_yaml::rows::Rows;
use serde::{Deserialize, Serialize};

/// One call of a shell tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShellCommand {
    pub seq: u64,
    /// Command line, cut at `COMMAND_TEXT_MAX`.
    pub text: String,
    /// Programs in order, with wrappers and shells removed.
    pub programs: Vec<Program>,
    /// Whether the shell parser understood the whole line.
    pub understood: bool,
    /// Command classes that one of the programs matches.
    pub kinds: BTreeSet<String>,
    /// Whether its output can be evidence: a program is not in a class without evidence.
    pub evidential: bool,
    /// Whether a program is in no class, so that its purpose is unknown.
    pub unrecognized: bool,
    pub outcome: CommandOutcome,
    /// Exit code, if the result contains one.
    pub exit_code: Option<i32>,
    /// Verdict of the command's classes.
    pub verdict: CommandVerdict,
    /// Line of output that decided the verdict; can be empty.
    pub quote: String,
    /// End of the output. Empty for older commands.
    pub output: String,
    /// Git branch when the command ran. Empty if unknown.
    pub branch: String,
    /// Position of the result; 0 before the result.
    pub result_seq: u64,
}

/// How a call ended, as the client reported it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandOutcome {
    /// No result yet.
    #[default]
    Pending,
    /// Result without an error.
    Succeeded,
    /// Result with an error or a non-zero exit code.
    Failed,
    /// Not run, because a user, a rule or a hook denied it.
    Denied,
    /// Still running in the background; its end is unknown.
    Background,
}

/// Result of a command of a known class, such as a test run. Exit status and output together decide
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandVerdict {
    /// Unknown: the result is missing, or a pipe hides the exit status and the output does not show
    /// the result.
    #[default]
    Unknown,
    /// It ran, but did nothing: no test was found.
    Empty,
    /// It could not run: the program or a module is missing, or it cannot be executed.
    Unable,
    Passed,
    Failed,
}

impl ShellCommand {
    /// Returns whether one of the programs of this command matches.
    #[must_use]
    pub fn ran(&self, pattern: &CommandPattern, value_options: &Rows<ValueOptions>) -> bool {
        self.programs.iter().any(|program| pattern.matches(program, value_options))
    }
}
