//! `policyd metrics`: metrics of all projects for Prometheus.

use std::path::Path;

use super::{Console, EXIT_BROKEN, EXIT_OK, MetricsArguments, error};
use crate::app::metrics;
use crate::store::file::{self, Durability, Saved};
use crate::world::World;

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

fn write(world: &dyn World, console: &mut Console<'_>, path: &Path, text: &str) -> u8 {
    let quick = Durability { fsync: false, ..Durability::default() };
    match file::save(world, path, text.as_bytes(), &quick) {
        Saved::Durable { .. } | Saved::Degraded { .. } => EXIT_OK,
        Saved::NotSaved { why, .. } => {
            console.eprint(&format!("could not write {}: {why}", path.display()));
            EXIT_BROKEN
        }
    }
}
