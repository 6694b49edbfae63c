//! What is particular to macOS. It was compiled and never run: keep it small.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::super::process;
use super::process_list::{chain, with_variable};
use super::unix::walk;
use crate::{Ancestry, ExternalCommand, WorldError};

pub(in super::super) use super::unix::exchange;

/// Columns of `ps`, which `process_list` reads.
const COLUMNS: &str = "pid=,ppid=,command=";

/// Opens the directories between a root and a path. Returns the owner of the last one.
pub(in super::super) fn owner_on_way(root: &Path, way: &Path) -> Result<Option<u32>, WorldError> {
    walk(root, way)
}

/// Returns the process that holds the lock on a file. This system does not list locks.
pub(in super::super) fn lock_holder(_path: &Path) -> Option<String> {
    None
}

/// Lists every process with `ps`, without and with its environment.
pub(in super::super) fn ancestry() -> Ancestry {
    chain(std::process::id(), &listing(&["-A"]), &listing(&["-A", "-E"]))
}

/// Maximum number of searches for marked processes.
const KILL_ROUNDS_MAX: usize = 32;

/// Kills the processes whose environment contains this entry. They can start others meanwhile, so the search repeats. The system
/// hides the environment of its own programs.
pub(in super::super) fn kill_marked(entry: &str) -> Result<usize, WorldError> {
    let own = std::process::id();
    let mut killed = BTreeSet::new();
    for _ in 0..KILL_ROUNDS_MAX {
        let (plain, full) = (listing(&["-A"]), listing(&["-A", "-E"]));
        if full.is_empty() {
            return Err(WorldError::Unsupported);
        }
        let found = with_variable(&plain, &full, entry).into_iter();
        let new: Vec<u32> = found.filter(|it| *it != own && !killed.contains(it)).collect();
        let pids = new.iter().filter_map(|it| Pid::from_raw(i32::try_from(*it).ok()?));
        let hit = pids.filter(|it| kill_process(*it, Signal::KILL).is_ok()).count();
        killed.extend(new);
        if hit == 0 {
            break;
        }
    }
    Ok(killed.len())
}

fn listing(options: &[&str]) -> String {
    let words = ["/bin/ps", "-ww", "-o", COLUMNS].into_iter().chain(options.iter().copied());
    let command = ExternalCommand {
        argv: words.map(str::to_owned).collect(),
        folder: "/".into(),
        deadline: std::time::Duration::from_secs(5),
        output_max: 16 * 1024 * 1024,
        ..ExternalCommand::default()
    };
    let output = process::run(&command).map(|it| it.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).into_owned()
}
