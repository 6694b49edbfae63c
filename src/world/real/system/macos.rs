//! What is particular to macOS. It was compiled and never run: keep it small.

use std::path::Path;

use super::super::process;
use super::process_list::{chain, with_variable};
use super::unix::kill_found;
use crate::{Ancestry, ExternalCommand, WorldError};

pub(in super::super) use super::unix::walk as owner_on_way;

/// Columns of `ps`, which `process_list` reads.
const COLUMNS: &str = "pid=,ppid=,command=";

/// Returns the process that holds the lock on a file. This system does not list locks.
pub(in super::super) fn lock_holder(_path: &Path) -> Option<String> {
    None
}

/// Lists every process with `ps`, without and with its environment.
pub(in super::super) fn ancestry() -> Ancestry {
    chain(std::process::id(), &listing(&["-A"]), &listing(&["-A", "-E"]))
}

/// This system does not let a process adopt orphans.
pub(in super::super) fn adopt_orphans(_adopts: bool) {}

/// This process has no orphans.
pub(in super::super) fn reap_orphans(_known: &[u32]) {}

/// Kills the processes whose environment contains this entry. `ps` does not list the environment of programs that belong to macOS.
pub(in super::super) fn kill_marked(entry: &str) -> Result<usize, WorldError> {
    kill_found(|| {
        let (plain, full) = (listing(&["-A"]), listing(&["-A", "-E"]));
        if full.is_empty() {
            return Err(WorldError::Unsupported);
        }
        let found = with_variable(&plain, &full, entry).into_iter();
        let others = found.filter(|it| *it != std::process::id());
        Ok(others.filter_map(|it| i32::try_from(it).ok()).collect::<Vec<i32>>())
    })
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
