//! Folders and those below them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use policyd_cores as cores;
use policyd_world::World;

/// How far below the first one folders are looked into.
const DEEP_MAX: usize = 16;

/// Looks into a folder and those below it, one level after the other, the folders of each on all cores, each
/// once, since links may lead back. `look` is given how deep a folder lies, its path and the names in it, and
/// says which of these to go on with.
pub fn walk(
    world: &dyn World,
    first: &Path,
    mut look: impl FnMut(usize, PathBuf, Vec<String>) -> Vec<PathBuf>,
) {
    let (cores, mut entered) = (world.cores(), BTreeSet::new());
    let mut level = vec![first.to_path_buf()];
    for deep in 0..=DEEP_MAX {
        let mut below = Vec::new();
        let listed = cores::on_all(cores, &level, |it| world.look_into(it));
        for (path, listed) in level.into_iter().zip(listed) {
            // A path that is not a readable directory counts as empty.
            let Ok((identity, names)) = listed else { continue };
            if identity == 0 || entered.insert(identity) {
                below.extend(look(deep, path, names));
            }
        }
        level = below;
    }
}
