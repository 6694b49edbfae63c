//! The files and directory trees that a call accesses.

use super::paths::ResolvedPath;

/// Kind of access to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The content is read.
    Read,
    /// The file is changed or created.
    Write,
    /// The file is deleted.
    Delete,
}

/// An access to a file by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAccess {
    /// Kind of access.
    pub does: Access,
    /// Path of the file.
    pub place: ResolvedPath,
    /// Index of the program. `None` if the tool itself accesses the file.
    pub program: Option<usize>,
    /// Whether a written file keeps its content: text is appended, or only its attributes change.
    pub keeps: bool,
}

/// A patch file that a program applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchFile {
    /// Absolute path of the patch file.
    pub path: String,
    /// Directory to which the paths in the patch are relative, as written. `None` for the working
    /// directory of the program.
    pub folder: Option<String>,
    /// Index of the program.
    pub program: usize,
}

/// A directory that is written with everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeWrite {
    /// The directory.
    pub place: ResolvedPath,
    /// Whether this is true only if the directory does not exist yet. An existing one receives a
    /// directory with the name of the source instead.
    pub if_missing: bool,
}
