//! Runs a command again at each change of a pack, until the user interrupts it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE};
use crate::app::packs::{self, places};
use crate::app::workspace::project::{self, Project};
use crate::world::{FileKind, World};

/// Longest time until an interrupt ends the command.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// Runs `round` now and after each change below the directories of the packs that `paths` name, or of the project's.
pub(super) fn run_at_changes(
    world: &dyn World,
    console: &mut Console<'_>,
    paths: &[PathBuf],
    mut round: impl FnMut(&mut Console<'_>) -> u8,
) -> u8 {
    let directories = directories(world, &project::find(world, None), paths);
    if directories.is_empty() {
        console
            .eprint("no pack to watch\nhelp: run `policyd init`, or pass the directory of a pack");
        return EXIT_USAGE;
    }
    // The watch starts before the first round, so that a change during the round is not missed.
    let mut watch = match world.watch(&directories) {
        Ok(watch) => watch,
        Err(error) => {
            console.eprint(&format!("could not watch {}: {error}", listed(&directories)));
            return EXIT_BROKEN;
        }
    };
    world.note_interrupts();
    loop {
        console.clear_screen();
        let _findings = round(console);
        console.eprint(&format!("watching {}; Ctrl-C ends", listed(&directories)));
        while !watch.wait(WAIT_MAX) {
            if world.interrupted() {
                return EXIT_OK;
            }
        }
    }
}

/// Returns the directories of the packs that a command reads: those of `paths`, or that of the pack
/// that `lint` and `test` use without a path.
pub(super) fn directories(world: &dyn World, project: &Project, paths: &[PathBuf]) -> Vec<PathBuf> {
    if !paths.is_empty() {
        return paths.iter().map(|it| directory_of(world, it)).collect();
    }
    let named = world.env("POLICYD_POLICIES").map(|it| project.root.join(it));
    let usual = named.or_else(|| places::pack_here(world));
    usual.or_else(|| packs::nearest_of(world, project)).into_iter().collect()
}

/// Returns a directory itself, and the directory of a file. Editors replace files, so a file cannot be watched.
fn directory_of(world: &dyn World, path: &Path) -> PathBuf {
    let is_file = world.stat(path).is_ok_and(|it| it.kind == FileKind::File);
    let folder = if is_file { path.parent().unwrap_or(path) } else { path };
    world.working_folder().join(folder)
}

fn listed(directories: &[PathBuf]) -> String {
    let shown: Vec<String> = directories.iter().map(|it| it.display().to_string()).collect();
    shown.join(", ")
}
