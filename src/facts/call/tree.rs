//! The git work tree that a program of a call would change.

use super::{Call, Invocation, Surroundings};

/// Programs that change no file that git tracks, before another program of the same line.
const HARMLESS: [&str; 7] = ["cd", "echo", "git", "ls", "pwd", "test", "true"];

/// Options of git with a value of their own, before its subcommand.
const WITH_VALUE: [&str; 2] = ["-c", "--namespace"];

/// Variables that give git another tree.
const VARIABLES: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"];

impl Call {
    /// The folder whose work tree this program would change; nothing where that is unknown, or where an
    /// earlier program of the line may change the tree before it.
    #[must_use]
    pub fn tree_folder(&self, at: usize, around: &Surroundings) -> Option<String> {
        let program = self.programs.get(at).filter(|it| it.name == "git")?;
        let other_tree = VARIABLES.iter().any(|it| self.variables.contains_key(*it));
        let mut before = self.programs.iter().take(at);
        let touched = before.any(changes_tree);
        let redirected = self.programs.iter().take(at).any(|it| !it.writes.is_empty());
        if other_tree || touched || redirected || !program.wrappers.is_empty() {
            return None;
        }
        folder_of(program, around)
    }
}

/// Whether a program may change files that git tracks, other than to what git has.
fn changes_tree(program: &Invocation) -> bool {
    let stash = program.name == "git" && program.args.iter().any(|it| it.text == "stash");
    stash || !HARMLESS.contains(&program.name.as_str())
}

/// The folder that git is called in, its `-C` options applied.
fn folder_of(git: &Invocation, around: &Surroundings) -> Option<String> {
    let mut folder = git.folder.clone()?;
    let mut args = git.args.iter();
    while let Some(arg) = args.next().filter(|it| it.text.starts_with('-')) {
        let text = arg.text.as_str();
        if text == "-C" {
            let place = around.place(args.next()?, Some(&folder));
            folder = place.absolute.filter(|_| !place.open && !place.glob)?;
        } else if WITH_VALUE.contains(&text) {
            args.next()?;
        } else if ["--git-dir", "--work-tree"].iter().any(|it| text.starts_with(it)) {
            return None;
        }
    }
    Some(folder)
}
