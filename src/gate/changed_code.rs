//! The code that a runner of tests or builds loads by itself: the files of code in the project that are not committed. At a
//! permission prompt, they are judged like files that the call runs.
//!
//! Does not contain: files in directories that git ignores, such as packages and outputs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use policyd_facts::call::{AnalysisContext, Call, is_code_path};
use policyd_probe::git::{Git, GitError, NO_SUBMODULE_TREES};
use policyd_workspace::checkout;
use policyd_world::{FileKind, World, WorldError};

/// Time for the list of changed files.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes of that list.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Files of code that are read.
const FILES_MAX: usize = 64;
/// Directory entries that are looked at if git does not list the changes.
const ENTRIES_MAX: usize = 4_000;
/// Directories of packages and outputs, which git usually ignores.
const SKIPPED: [&str; 8] =
    [".git", "node_modules", "target", "venv", ".venv", "vendor", "dist", "build"];

/// Adds the files of code that the user did not commit to the files that a call runs.
pub(super) fn add(world: &dyn World, call: &mut Call, context: AnalysisContext<'_>) {
    let root = Path::new(&context.around.project);
    let files = match listed(world, root) {
        Ok(files) => Some(files),
        // Without git, each file counts as changed.
        Err(GitError::Failed) => found(world, root),
        Err(GitError::NoAnswer) => None,
    };
    let Some(files) = files else {
        return call.add_unread(&context.around.project, "which of its files changed is unknown");
    };
    if files.len() > FILES_MAX {
        let why = "too many files of code changed";
        return call.add_unread(&context.around.project, why);
    }
    let paths: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
    call.load_files(paths.iter().map(String::as_str), context);
}

/// Returns the files of code that git lists as changed, untracked, or ignored by their own name, those in untracked
/// repositories among them.
fn listed(world: &dyn World, root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let top = checkout::around(world, root).ok_or(GitError::Failed)?;
    let git = Git::new(world, root, root, TIME_MAX, ANSWER_BYTES_MAX);
    let words = [
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=all",
        "--ignored=matching",
        "--no-renames",
        NO_SUBMODULE_TREES,
        "--",
        ".",
    ];
    let answer = git.answer(&words)?;
    if answer.truncated {
        return Err(GitError::NoAnswer);
    }
    let text = String::from_utf8_lossy(&answer.stdout);
    let mut files = Vec::new();
    for (state, name) in text.split('\0').filter_map(|it| Some((it.get(..2)?, it.get(3..)?))) {
        let path = top.join(name);
        let is_link = || world.entry(&path).is_ok_and(|it| it.link.is_some());
        match state {
            // git does not look into a repository in this one.
            "??" if name.ends_with('/') => {
                files.extend(found(world, &path).ok_or(GitError::NoAnswer)?);
            }
            // What is behind a link to a directory is not listed.
            _ if is_link() && world.stat(&path).is_ok_and(|it| it.kind == FileKind::Folder) => {
                return Err(GitError::NoAnswer);
            }
            state if is_code_path(name) && !state.contains('D') => files.push(path),
            _ => {}
        }
    }
    Ok(files)
}

/// Returns the files of code of a project. `None` if it has too many files.
fn found(world: &dyn World, root: &Path) -> Option<Vec<PathBuf>> {
    let (mut files, mut open, mut entries) = (Vec::new(), vec![root.to_owned()], 0);
    while let Some(folder) = open.pop() {
        let names = match world.list(&folder) {
            Ok(names) => names,
            Err(WorldError::NotFound) => continue,
            Err(_) => return None,
        };
        entries += names.len();
        if entries > ENTRIES_MAX {
            return None;
        }
        for name in names.into_iter().filter(|it| !SKIPPED.contains(&it.as_str())) {
            let path = folder.join(&name);
            // A link to a directory can lead to itself.
            let is_link = world.entry(&path).is_ok_and(|it| it.link.is_some());
            match world.stat(&path) {
                Ok(it) if it.kind == FileKind::Folder && !is_link => open.push(path),
                Ok(it) if it.kind == FileKind::File && is_code_path(&name) => files.push(path),
                Ok(_) | Err(_) => {}
            }
        }
    }
    Some(files)
}
