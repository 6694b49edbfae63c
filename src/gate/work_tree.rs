//! Whether git reports changes in the work trees that programs of a call would change. Git is asked only if a
//! guard that recognizes such a program reads the answer. The time for all questions is bounded.

use std::path::Path;
use std::time::Duration;

use policyd_facts::call::{Call, CallEnvironment};
use policyd_probe::git::{Git, NO_SUBMODULE_TREES};
use policyd_world::World;

/// Time for all questions of one call.
const TIME_MAX: Duration = Duration::from_millis(300);
/// One changed file is enough.
const ANSWER_BYTES_MAX: usize = 4096;

/// The question about a work tree. Files that git does not track do not count: commands that discard changes keep them.
const QUESTION: [&str; 4] = ["status", "--porcelain", "--untracked-files=no", NO_SUBMODULE_TREES];

/// The question for the branch. The answer is empty if none is checked out.
const BRANCH: [&str; 2] = ["branch", "--show-current"];

/// Asks git about the work trees of a project.
pub(super) struct CleanTrees<'a> {
    pub(super) world: &'a dyn World,
    pub(super) project: &'a Path,
}

impl CleanTrees<'_> {
    /// Adds to the environment of a call which branch is checked out in the project.
    pub(super) fn ask_branch(&self, environment: &mut CallEnvironment) {
        let git = Git::new(self.world, self.project, self.project, TIME_MAX, ANSWER_BYTES_MAX);
        environment.branch =
            git.ask(&BRANCH).map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
    }

    /// Adds to the environment of a call which work trees are clean; `programs` are the positions of the
    /// programs in the call.
    pub(super) fn ask(
        &self,
        call: &Call,
        environment: &mut CallEnvironment,
        programs: impl Iterator<Item = usize>,
    ) {
        let end = self.world.elapsed().saturating_add(TIME_MAX);
        for program in programs {
            let Some(folder) = call.tree_folder(program, environment) else { continue };
            if environment.clean_trees.contains_key(&folder) {
                continue;
            }
            let folder_path = Path::new(&folder);
            let git = Git::new(self.world, folder_path, self.project, TIME_MAX, ANSWER_BYTES_MAX);
            if let Some(answer) = git.until(end).ask(&QUESTION) {
                environment.clean_trees.insert(folder, answer.stdout.is_empty());
            }
        }
    }
}
