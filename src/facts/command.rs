//! Commands: what one call of a shell tool ran, how it ended, and patterns that recognise programs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One call of a shell tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Position of the call.
    pub seq: u64,
    /// Command line, cut at the bound.
    pub text: String,
    /// Programs it runs, in order, wrappers and shells unwrapped.
    pub programs: Vec<Program>,
    /// Whether the whole line was understood as shell.
    pub understood: bool,
    /// Command kinds of the lens that one of its programs matches.
    pub kinds: BTreeSet<String>,
    /// How the call ended.
    pub outcome: Outcome,
    /// Exit code, where the result names one.
    pub exit_code: Option<i32>,
    /// What the programs of its kinds reported.
    pub verdict: Verdict,
    /// The line of output that decided the verdict, or empty.
    pub quote: String,
    /// End of the output, cut at the bound; dropped for older commands.
    pub output: String,
    /// Git branch when it ran, empty when unknown.
    pub branch: String,
    /// Position of its result, 0 while there is none.
    pub result_seq: u64,
}

/// How a call ended, as the client reported it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// No result yet.
    #[default]
    Pending,
    /// Result without error.
    Succeeded,
    /// Result with an error or a non-zero exit.
    Failed,
    /// Not run: refused by a human, a rule or a hook.
    Denied,
    /// Put into the background; its end is not known.
    Background,
}

/// What a command of a known kind (a test run) came to, exit status and output taken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Cannot be told: no result, or its status is hidden behind a pipe and the output is silent.
    #[default]
    Unknown,
    /// It passed.
    Passed,
    /// It failed.
    Failed,
}

/// One program with its arguments as the shell would pass them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Base name of the program: `cargo` for `/usr/bin/cargo`.
    pub name: String,
    /// Arguments after quote removal. What the shell would compute stays as written (`$HOME/x`).
    pub args: Vec<String>,
    /// Files its output is redirected to.
    pub writes: Vec<String>,
    /// Whether success of the whole line implies success of this program: false on the left of a
    /// pipe or `||`, before `;`, in the background, negated, or inside a substitution.
    pub decisive: bool,
}
