//! The running program as a protected place, wherever it is installed.

use super::CallEnvironment;

/// The glob of the running program, and of the one beside it.
pub(super) const OWN_PROGRAM: &str = "<policyd>";

/// How many directories above the program are protected with it. Other rules protect those above them.
const LEVELS_MAX: usize = 2;

impl CallEnvironment {
    /// Returns whether a path is that of the running program, or of the one beside it.
    pub(super) fn is_program(&self, path: &str) -> bool {
        let (name, suffix) = match self.program.strip_suffix(".exe") {
            Some(name) => (name, ".exe"),
            None => (self.program.as_str(), ""),
        };
        let rest = path.strip_prefix(name).filter(|_| !name.is_empty());
        rest.and_then(|it| it.strip_suffix(suffix)).is_some_and(|it| matches!(it, "" | "-tools"))
    }

    /// Returns whether the running program lies below a directory.
    pub(super) fn holds_program(&self, folder: &str) -> bool {
        let rest = self.program.strip_prefix(folder.trim_end_matches('/'));
        rest.is_some_and(|it| it.starts_with('/') && it.matches('/').count() <= LEVELS_MAX)
    }
}
