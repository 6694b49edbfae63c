//! What the analysis of a call asks the disk: whether `cd` succeeds, and what the files contain that the call runs.

use std::fmt::Debug;

/// Answers the questions of the analysis.
pub trait CallDisk: Debug {
    /// Returns whether a path is a directory. `None` if it cannot be known.
    fn is_directory(&self, path: &str) -> Option<bool>;

    /// Returns whether something has this path. `None` if it cannot be known.
    fn exists(&self, path: &str) -> Option<bool>;

    /// Returns the text of a file that the call runs. `None` if the file is missing, does not contain text, is longer than
    /// [`SHELL_TEXT_MAX`](crate::limits::SHELL_TEXT_MAX), or belongs to the system.
    fn script(&self, path: &str) -> Option<String>;
}

/// No disk: each `cd` is taken to succeed, and no file is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDisk;

impl CallDisk for NoDisk {
    fn is_directory(&self, _path: &str) -> Option<bool> {
        None
    }

    fn exists(&self, _path: &str) -> Option<bool> {
        None
    }

    fn script(&self, _path: &str) -> Option<String> {
        None
    }
}
