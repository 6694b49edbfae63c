//! The two programs of policyd: `policyd`, which clients and users start, and `policyd-tools` beside it.

use std::path::{Path, PathBuf};

use policyd_base::programs::{TOOLS, beside};
use policyd_world::World;

/// Returns the path of the program that clients start, and of `policyd-tools` if it exists.
#[must_use]
pub fn installed(world: &dyn World) -> Vec<PathBuf> {
    let Some(own) = world.program() else { return Vec::new() };
    let tools = beside(&own, TOOLS);
    let other = (tools != own && world.stat(&tools).is_ok()).then_some(tools);
    std::iter::once(own).chain(other).collect()
}

/// Returns whether a path is that of `policyd-tools`. As the own program, this means that `policyd` is missing.
#[must_use]
pub fn is_tools(path: &Path) -> bool {
    path.file_stem().is_some_and(|it| it == TOOLS)
}
