//! What git says of a folder, for a summary. No answer is an answer: git may be missing, the folder
//! no repository, the branch unborn.

use std::path::Path;
use std::time::Duration;

use super::checkout;
use policyd_probe::git::{self, NO_SUBMODULE_TREES};
use policyd_record::summary::known::GitState;
use policyd_world::World;

/// Time that one question may take.
const DEADLINE: Duration = Duration::from_secs(2);
/// Bytes of one answer; a summary needs its beginning only.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Asks git about a folder. `since`: a commit from which on changes count, where one is known.
pub fn ask(world: &dyn World, folder: &Path, since: Option<&str>) -> GitState {
    let checkout = checkout::around(world, folder);
    let project = checkout.as_deref().unwrap_or(folder);
    let git = git::Git::new(world, folder, project, DEADLINE, ANSWER_BYTES_MAX);
    let run = |arguments: &[&str]| {
        Some(String::from_utf8_lossy(&git.ask(arguments)?.stdout).into_owned())
    };
    let changed = |since| {
        let options = [
            "--name-only",
            "-z",
            "--no-ext-diff",
            "--no-textconv",
            NO_SUBMODULE_TREES,
            since,
            "--",
        ];
        run(&[&["diff"], &options[..]].concat())
    };
    GitState {
        status: run(&["status", "--porcelain=v1", "-z", "--branch", NO_SUBMODULE_TREES]),
        log: run(&["log", "--oneline", "--no-decorate", "-8"]),
        changed: since.and_then(changed),
    }
}
