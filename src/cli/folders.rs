//! Folders and those below them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::cores;
use crate::world::{FileKind, World};

/// How far below the first one folders are looked into.
const DEEP_MAX: usize = 16;

/// Looks into a folder and those below it, one level after the other, the folders of each on all cores, each
/// once, since links may lead back. `look` is given how deep a folder lies, its path and the names in it, and
/// says which of these to go on with.
pub(super) fn walk(
    world: &dyn World,
    first: &Path,
    mut look: impl FnMut(usize, PathBuf, Vec<String>) -> Vec<PathBuf>,
) {
    let (cores, mut entered) = (world.cores(), BTreeSet::new());
    let mut level = vec![first.to_path_buf()];
    for deep in 0..=DEEP_MAX {
        let mut below = Vec::new();
        for listed in cores::on_all(cores, &level, |it| list(world, it)) {
            let Some((identity, path, names)) = listed else { continue };
            if identity == 0 || entered.insert(identity) {
                below.extend(look(deep, path, names));
            }
        }
        level = below;
    }
}

/// Which folder a path leads to, and what lies in it; nothing where it leads to none.
fn list(world: &dyn World, path: &Path) -> Option<(u64, PathBuf, Vec<String>)> {
    let stat = world.stat(path).ok().filter(|it| it.kind == FileKind::Folder)?;
    Some((stat.identity, path.to_path_buf(), world.list(path).unwrap_or_default()))
}
