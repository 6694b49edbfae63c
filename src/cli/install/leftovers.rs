//! What `policyd uninstall` leaves behind, and how `--purge` removes the part that is the user's own.

use std::path::PathBuf;

use crate::app::workspace::project;
use crate::cli::{Console, EXIT_BROKEN, EXIT_OK, UninstallArguments};
use crate::store::user;
use crate::world::World;

/// The user's own folders: what each holds, its variable, and where it is without that.
const FOLDERS: [(&str, &str, &str); 3] = [
    ("configuration", "XDG_CONFIG_HOME", ".config"),
    ("cache", "XDG_CACHE_HOME", ".cache"),
    ("state", "XDG_STATE_HOME", ".local/state"),
];

/// Lists what stays; with `purge`, removes the user's own folders first.
pub(super) fn clear(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &UninstallArguments,
) -> u8 {
    let UninstallArguments { purge, dry_run, .. } = *arguments;
    let mut code = EXIT_OK;
    for (what, variable, fallback) in FOLDERS {
        let folder = user::folder(world, variable, fallback).filter(|it| it.is_absolute());
        let Some(folder) = folder.filter(|it| world.entry(it).is_ok()) else { continue };
        let path = folder.display();
        match purge {
            true if dry_run => console.print(&format!("to remove  {what}: {path}\n")),
            true => match world.remove_folder(&folder) {
                Ok(()) => console.print(&format!("removed    {what}: {path}\n")),
                Err(error) => {
                    console.eprint(&format!("{path}: {error}; the {what} is not removed"));
                    code = EXIT_BROKEN;
                }
            },
            false => console.print(&format!("stays      {what}: {path} (`--purge` removes it)\n")),
        }
    }
    let own = project::find(world, None).state;
    let own: Option<PathBuf> = Some(own).filter(|it| world.entry(it).is_ok());
    for (what, path) in [("project", own), ("program", world.program())] {
        if let Some(path) = path {
            console.print(&format!("stays      {what}: {}\n", path.display()));
        }
    }
    code
}
