//! `policyd metrics`: metrics of all projects for Prometheus.

use std::path::{Path, PathBuf};

use super::{Console, EXIT_BROKEN, EXIT_OK, MetricsArguments, error};
use policyd_app::metrics;
use policyd_world::World;

/// Prints the metrics, or writes them to a file that a reader never sees half written.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &MetricsArguments,
) -> u8 {
    let text = match metrics::collect(world) {
        Ok(text) => text,
        Err(error) => return error::report(console, &error),
    };
    let Some(path) = &arguments.textfile else {
        console.print(&text);
        return EXIT_OK;
    };
    let path = world.working_folder().join(path);
    if let Some(folder) = path.parent().filter(|it| world.stat(it).is_err()) {
        console.eprint(&format!("the directory {} does not exist", folder.display()));
        return EXIT_BROKEN;
    }
    write(world, console, &path, &text)
}

/// Writes a file that every user can read, such as that of node_exporter.
fn write(world: &dyn World, console: &mut Console<'_>, path: &Path, text: &str) -> u8 {
    let new = PathBuf::from(format!("{}.{}.tmp", path.display(), world.process_id()));
    let written = world
        .write(&new, text.as_bytes())
        .and_then(|()| world.publish(&new))
        .and_then(|()| world.rename(&new, path));
    match written {
        Ok(()) => EXIT_OK,
        Err(error) => {
            drop(world.remove(&new));
            console.eprint(&format!("could not write {}: {error}", path.display()));
            EXIT_BROKEN
        }
    }
}
