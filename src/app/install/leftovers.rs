//! What policyd leaves behind once its hooks are removed: the user's directories, and the state of projects.

use std::path::{Path, PathBuf};

use crate::workspace::project::{self, STATE_DIR_NAME};
use policyd_store::projects::ProjectRegistry;
use policyd_store::user::UserDirectory;
use policyd_store::user_choices::known_state_dirs;
use policyd_world::{FileKind, World, WorldError};

/// Directory of a pack, in the configuration of the user and in the state directory of a project.
const PACK_FOLDER: &str = "policies";
/// What policyd writes to a state directory that the user named, which can contain other files.
const OWN_NAMES: [&str; 9] = [
    ".gitignore",
    "escalations",
    "logs",
    "memory",
    "queue",
    "runs",
    "sessions",
    "signals",
    "state",
];

/// A directory that stays after `policyd uninstall`.
pub struct Leftover {
    /// What the directory contains.
    pub what: &'static str,
    /// The directory.
    pub folder: PathBuf,
    /// What a purge removes of it: the directory itself, or entries of it.
    pub paths: Vec<PathBuf>,
    /// A pack in it, which the user wrote.
    pub pack: Option<PathBuf>,
}

/// Finds what stays. With `packs`, packs of the user are removed, too.
pub fn find(world: &dyn World, packs: bool) -> Vec<Leftover> {
    let users = UserDirectory::ALL
        .into_iter()
        .filter_map(|it| leftover(world, it.name(), it.path(world)?, packs));
    let mut states = vec![project::find(world, None).state];
    states.extend(known_state_dirs(world));
    // A project in which the user chose nothing is only in the registry.
    states.extend(ProjectRegistry::new(world).all().into_iter().map(|it| it.state_dir));
    states.sort();
    states.dedup();
    // Those below the state directory of the user are removed with it.
    let own = UserDirectory::State.path(world);
    states.retain(|it| own.as_ref().is_none_or(|own| !it.starts_with(own)));
    let states = states.into_iter().filter_map(|it| leftover(world, "project state", it, packs));
    users.chain(states).collect()
}

/// What stays in a directory. A link is not followed: it can lead to another user's files.
fn leftover(
    world: &dyn World,
    what: &'static str,
    folder: PathBuf,
    packs: bool,
) -> Option<Leftover> {
    let is_real = world.entry(&folder).is_ok_and(|it| it.link.is_none());
    if !folder.is_absolute() || !is_real || world.stat(&folder).ok()?.kind != FileKind::Folder {
        return None;
    }
    let names = world.list(&folder).ok()?;
    let pack = Some(folder.join(PACK_FOLDER)).filter(|it| world.entry(it).is_ok());
    let is_named = what == "project state" && !folder.ends_with(STATE_DIR_NAME);
    let paths: Vec<PathBuf> = if is_named {
        let own = names.iter().filter(|it| OWN_NAMES.contains(&it.as_str()));
        own.map(|it| folder.join(it)).collect()
    } else if pack.is_some() && !packs {
        names.iter().filter(|it| *it != PACK_FOLDER).map(|it| folder.join(it)).collect()
    } else {
        vec![folder.clone()]
    };
    let pack = pack.filter(|_| is_named || !packs);
    (!paths.is_empty()).then_some(Leftover { what, folder, paths, pack })
}

/// Removes a file or a directory with its content. Links are removed, not followed.
///
/// # Errors
/// The operating system refused.
pub fn remove(world: &dyn World, path: &Path) -> Result<(), WorldError> {
    let is_link = world.entry(path)?.link.is_some();
    if !is_link && world.stat(path)?.kind == FileKind::Folder {
        world.remove_folder(path)
    } else {
        world.remove(path)
    }
}
