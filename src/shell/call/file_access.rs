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
    /// The file gets another path.
    Move,
}

impl Access {
    /// Returns whether the path is free afterwards.
    #[must_use]
    pub const fn removes(self) -> bool {
        matches!(self, Self::Delete | Self::Move)
    }
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
    /// Whether a directory is deleted or moved with everything below it.
    pub tree: bool,
}

impl FileAccess {
    /// Returns an access that changes the content of the file, and only that.
    #[must_use]
    pub const fn new(does: Access, place: ResolvedPath, program: Option<usize>) -> Self {
        Self { does, place, program, keeps: false, tree: false }
    }

    /// Returns an access of the tool itself, which leaves a part of the content.
    #[must_use]
    pub const fn by_tool(does: Access, place: ResolvedPath) -> Self {
        Self { does, place, program: None, keeps: true, tree: false }
    }
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
