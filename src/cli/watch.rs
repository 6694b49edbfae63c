//! Runs a command again at each change of a pack, until the user interrupts it.

use std::path::PathBuf;
use std::time::Duration;

use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE};
use policyd_app::packs::{self, places};
use policyd_app::workspace::project::{self, Project};
use policyd_shell::path::normal;
use policyd_world::{FileKind, World};

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
    world.note_interrupts();
    loop {
        // A watch that starts before its round misses no change. Each round has a new one, because a directory that was
        // removed and created again is another one.
        let mut watch = match world.watch(&directories) {
            Ok(watch) => watch,
            Err(error) => {
                console.eprint(&format!("could not watch {}: {error}", listed(&directories)));
                return EXIT_BROKEN;
            }
        };
        console.clear_screen();
        let _findings = round(console);
        console.eprint(&format!("watching {}; Ctrl-C ends", listed(&directories)));
        while !watch.wait(WAIT_MAX) {
            if world.interrupted() {
                return EXIT_OK;
            }
        }
        if !wait_until_all_exist(world, console, &directories) {
            return EXIT_OK;
        }
    }
}

/// Waits until all directories exist. `false` if the user interrupts.
fn wait_until_all_exist(
    world: &dyn World,
    console: &mut Console<'_>,
    directories: &[PathBuf],
) -> bool {
    let is_absent =
        |it: &&PathBuf| !world.stat(it).is_ok_and(|found| found.kind == FileKind::Folder);
    let mut is_told = false;
    while let Some(absent) = directories.iter().find(is_absent) {
        if !std::mem::replace(&mut is_told, true) {
            console.eprint(&format!("{} was removed; waiting for it", absent.display()));
        }
        world.sleep(WAIT_MAX);
        if world.interrupted() {
            return false;
        }
    }
    true
}

/// Returns the directories of the packs that a command reads: those of `paths`, or that of the pack
/// that `lint` and `test` use without a path.
pub(super) fn directories(world: &dyn World, project: &Project, paths: &[PathBuf]) -> Vec<PathBuf> {
    if !paths.is_empty() {
        let packs = paths.iter().flat_map(|it| places::pack_directories(world, it));
        return packs.map(|it| normal(&world.working_folder().join(it))).collect();
    }
    let named = world.env("POLICYD_POLICIES").map(|it| project.root.join(it));
    let usual = named.or_else(|| places::pack_here(world));
    usual.or_else(|| packs::nearest_of(world, project)).into_iter().collect()
}

fn listed(directories: &[PathBuf]) -> String {
    let shown: Vec<String> = directories.iter().map(|it| it.display().to_string()).collect();
    shown.join(", ")
}
