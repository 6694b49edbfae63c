//! A program that a command line runs.

use serde::{Deserialize, Serialize};

/// A program with its arguments, as the shell would pass them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Base name of the program: `cargo` for `/usr/bin/cargo`.
    pub name: String,
    /// Directory by which the line calls a file, such as `bin` of `bin/check` or `.` of `./test`.
    /// Empty for a program that the shell searches for, or of a directory of the system.
    pub folder: String,
    /// Arguments after quote removal. Unexpanded parts stay as written (`$HOME/x`).
    pub args: Vec<String>,
    /// Files that its output is redirected to.
    pub writes: Vec<String>,
    /// Whether success of the whole line implies success of this program. False to the left of a
    /// pipe or `||`, before `;`, in the background, negated, or inside a substitution.
    pub decisive: bool,
}
