//! The directories in which packs of projects are.

use std::path::{Path, PathBuf};

use super::folder::holds_policies;
use policyd_store::user;
use policyd_workspace::project::{Project, STATE_DIR_NAME};
use policyd_world::World;

/// The directory of a project's pack.
pub fn own_directory(project: &Project) -> PathBuf {
    pack_directory(&project.root)
}

fn pack_directory(root: &Path) -> PathBuf {
    root.join(STATE_DIR_NAME).join("policies")
}

/// Whether policyd uses a trusted pack in this directory: it belongs to a project or to the user, or
/// `POLICYD_POLICIES` names it.
pub fn is_active_directory(world: &dyn World, folder: &Path) -> bool {
    let of_user = user::config_folder(world).map(|it| it.join("policies"));
    let named = world.env("POLICYD_POLICIES").map(|it| world.working_folder().join(it));
    folder.ends_with(pack_directory(Path::new("")))
        || [of_user, named].iter().flatten().any(|it| it == folder)
}

/// The folders of packs that belong to a project, the nearest first.
pub(super) fn of_project(project: &Project) -> Vec<PathBuf> {
    let own = pack_directory;
    let mut folders: Vec<PathBuf> = project.root.ancestors().map(own).collect();
    let main = own(&project.main);
    if !folders.contains(&main) {
        folders.push(main);
    }
    folders
}

/// The nearest pack of a project, trusted or not, for looking at it.
pub fn nearest_of(world: &dyn World, project: &Project) -> Option<PathBuf> {
    of_project(project).into_iter().find(|it| holds_policies(world, it))
}
