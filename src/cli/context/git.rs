//! What git says of a folder, for a summary. No answer is an answer: git may be missing, the folder
//! no repository, the branch unborn.

use std::path::Path;
use std::time::Duration;

use crate::report::summary::known::Git;
use crate::world::{Command, World};

/// Time that one question may take.
const DEADLINE: Duration = Duration::from_secs(2);
/// Bytes of one answer; a summary needs its beginning only.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Asks git. `since`: a commit from which on changes count, where one is known.
pub(in crate::cli) fn ask(world: &dyn World, folder: &Path, since: Option<&str>) -> Git {
    let run = |arguments: &[&str]| {
        let options = ["git", "-c", "core.quotePath=false", "--no-optional-locks"];
        let argv = options.iter().chain(arguments).map(|it| (*it).to_owned()).collect();
        let command = Command {
            argv,
            folder: folder.to_owned(),
            stdin: Vec::new(),
            env: Vec::new(),
            env_removed: Vec::new(),
            deadline: DEADLINE,
            output_max: ANSWER_BYTES_MAX,
        };
        let output = world.run(&command).ok().filter(|it| it.code == Some(0))?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    Git {
        status: run(&["status", "--porcelain=v1", "-z", "--branch"]),
        log: run(&["log", "--oneline", "--no-decorate", "-8"]),
        changed: since.and_then(|it| run(&["diff", "--name-only", "-z", it, "--"])),
    }
}
