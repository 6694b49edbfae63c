//! What `policyd uninstall` leaves behind, and what `--purge` removes of it.

use crate::{Console, EXIT_BROKEN, EXIT_OK};
use policyd_app::install::leftovers::{self, Leftover};
use policyd_app::programs;
use policyd_world::World;

/// Prints each path that a purge removes, and each pack that it does not.
pub(super) fn announce(console: &mut Console<'_>, all: &[Leftover]) {
    for it in all {
        for path in &it.paths {
            console.print(&format!("to remove  {}: {}\n", it.what, path.display()));
        }
        if let Some(pack) = &it.pack {
            console.print(&format!("stays      pack: {} (`--packs` removes it)\n", pack.display()));
        }
    }
}

/// Removes what was announced.
pub(super) fn purge(world: &dyn World, console: &mut Console<'_>, all: &[Leftover]) -> u8 {
    let mut code = EXIT_OK;
    for (what, path) in all.iter().flat_map(|it| it.paths.iter().map(|path| (it.what, path))) {
        let shown = path.display();
        match leftovers::remove(world, path) {
            Ok(()) => console.print(&format!("removed    {what}: {shown}\n")),
            Err(error) => {
                console.eprint(&format!("{shown}: {error}; the {what} is not removed"));
                code = EXIT_BROKEN;
            }
        }
    }
    code
}

/// Lists what stays without a purge.
pub(super) fn list(console: &mut Console<'_>, all: &[Leftover]) {
    for Leftover { what, folder, .. } in all {
        let path = folder.display();
        console.print(&format!("stays      {what}: {path} (`--purge` removes it)\n"));
    }
}

/// Reports the programs, which no purge removes.
pub(super) fn report_programs(world: &dyn World, console: &mut Console<'_>) {
    for path in programs::installed(world) {
        console.print(&format!("stays      program: {}\n", path.display()));
    }
}
