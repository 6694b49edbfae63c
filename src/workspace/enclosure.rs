//! What belongs to a directory that another author can have filled: its files, and links that stay within the checkout. Contains:
//! the check of links. Does not contain: who reads the files.

use std::path::{Path, PathBuf};

use super::checkout;
use policyd_shell::path::normal;
use policyd_store::user::config_folder;
use policyd_world::World;

/// The checkout around a directory, or the directory itself. A link in it cannot lead out.
#[derive(Debug)]
pub struct Enclosure {
    /// Without links. `None` if everything is admitted: the user's own configuration can consist of links.
    root: Option<PathBuf>,
    here: PathBuf,
}

impl Enclosure {
    /// Returns the enclosure of a directory.
    pub fn around(world: &dyn World, folder: &Path) -> Self {
        let here = world.working_folder();
        let folder = normal(&here.join(folder));
        let is_own = config_folder(world).is_some_and(|it| folder.starts_with(it));
        let root = checkout::around(world, &folder).unwrap_or(folder);
        let root = (!is_own).then(|| world.real_path(&root).unwrap_or(root));
        Self { root, here }
    }

    /// Returns whether a path leads to something within the enclosure. What does not exist cannot be read.
    pub fn contains(&self, world: &dyn World, path: &Path) -> bool {
        let Some(root) = &self.root else { return true };
        world.real_path(&self.here.join(path)).map_or(true, |it| it.starts_with(root))
    }

    /// Returns whether a path is not a link that leads out. Cheaper than [`Enclosure::contains`] for a path whose directory is
    /// known to be within the enclosure.
    pub fn admits(&self, world: &dyn World, path: &Path) -> bool {
        let is_link = world.entry(&self.here.join(path)).is_ok_and(|it| it.link.is_some());
        !is_link || self.contains(world, path)
    }
}

/// States that a link was not followed.
pub fn outside(path: &Path) -> String {
    format!("{}: leads to a file outside of the repository, so it was not read", path.display())
}
