//! What the analysis of a call asks the disk: whether `cd` succeeds, and what the files contain that the call runs.

use std::fmt::Debug;

/// Answers the questions of the analysis.
pub trait CallDisk: Debug {
    /// Returns whether a path is a directory. `None` if it cannot be known.
    fn is_directory(&self, path: &str) -> Option<bool>;

    /// Returns whether something has this path. `None` if it cannot be known.
    fn exists(&self, path: &str) -> Option<bool>;

    /// Returns the text of a file that the call runs.
    fn script(&self, path: &str) -> ScriptFile;

    /// Returns the files that fit a glob in the last part of a path, sorted. `None` if they cannot be known.
    fn matches(&self, pattern: &str) -> Option<Vec<String>>;
}

/// A file that a call runs, as it is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptFile {
    /// The file is missing, or it belongs to the system.
    Absent,
    /// The text of the file.
    Text(String),
    /// The file is a compiled program: the kernel starts it, and no interpreter reads it.
    Program,
    /// The file was not read, for this reason.
    Unread(&'static str),
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

    fn script(&self, _path: &str) -> ScriptFile {
        ScriptFile::Absent
    }

    fn matches(&self, _pattern: &str) -> Option<Vec<String>> {
        Some(Vec::new())
    }
}
