//! What the files contain that a command line wrote before.

use std::collections::BTreeMap;

use super::invocation::StandardInput;
use crate::path::in_folder;

/// Content that a line wrote into files, and directories that it filled from another machine.
#[derive(Debug, Clone, Default)]
pub(super) struct LineFiles {
    /// Content by absolute path.
    contents: BTreeMap<String, StandardInput>,
    fetched: Vec<FetchedTree>,
}

/// A directory that a line filled with files of another machine. Their names and contents are unknown.
#[derive(Debug, Clone)]
pub(super) struct FetchedTree {
    /// Absolute path.
    pub(super) path: String,
    /// Indexes of the programs that filled it.
    pub(super) from: Vec<usize>,
    /// Whether the line made the directory, so that everything in it is fetched.
    pub(super) is_new: bool,
}

impl LineFiles {
    /// Returns whether the line wrote nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty() && self.fetched.is_empty()
    }

    /// Returns what the line wrote into the file at an absolute path.
    pub(super) fn content(&self, path: &str) -> Option<&StandardInput> {
        self.contents.get(path)
    }

    /// Returns the directory with which the line may have fetched what has a path.
    pub(super) fn fetched_tree(&self, path: &str) -> Option<&FetchedTree> {
        self.fetched.iter().rev().find(|it| it.path == path || it.contains(path))
    }

    pub(super) fn insert(&mut self, path: String, content: StandardInput) {
        self.contents.insert(path, content);
    }

    pub(super) fn add_fetched(&mut self, tree: FetchedTree) {
        self.fetched.push(tree);
    }
}

impl FetchedTree {
    /// Returns the unknown content of a file in the directory.
    pub(super) fn content(&self) -> StandardInput {
        let from = self.from.clone();
        StandardInput { piped: true, is_file: true, from, ..StandardInput::default() }
    }

    /// Returns whether a path lies below the directory.
    fn contains(&self, path: &str) -> bool {
        path.starts_with(&in_folder(&self.path, ""))
    }
}
