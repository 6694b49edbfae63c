//! The directory of a new pack: whether the pack is active there, and the next commands.

use std::path::{Path, PathBuf};

use crate::{Console, trust};
use policyd_app::packs;
use policyd_app::packs::folder::holds_policies;
use policyd_app::workspace::project::Project;
use policyd_shell::path::normal;
use policyd_world::World;

/// Where a pack is written.
pub(super) struct Target<'a> {
    pub(super) world: &'a dyn World,
    project: &'a Project,
    /// Absolute path.
    pub(super) folder: PathBuf,
    /// Path as shown: from the working directory, if the pack is below it.
    pub(super) shown: String,
    /// Whether policyd uses a trusted pack in this directory.
    is_active: bool,
}

impl<'a> Target<'a> {
    /// The named directory, or that of the project's pack.
    pub(super) fn new(world: &'a dyn World, project: &'a Project, named: Option<&Path>) -> Self {
        let here = world.working_folder();
        let folder = match named {
            Some(named) => normal(&here.join(named)),
            None => packs::own_directory(project),
        };
        let shown = folder.strip_prefix(&here).ok().filter(|it| !it.as_os_str().is_empty());
        let shown = shown.unwrap_or(&folder).display().to_string();
        let is_active = packs::is_active_directory(world, &folder);
        Self { world, project, folder, shown, is_active }
    }

    /// Trusts the pack if its directory is active and it contains only the written files; returns whether it
    /// is trusted.
    pub(super) fn trust_written(
        &self,
        console: &mut Console<'_>,
        written: &[(String, String)],
    ) -> bool {
        self.is_active && trust::trust_written(self.world, console, &self.folder, written)
    }

    /// Prints which commands check and activate the pack.
    pub(super) fn print_next_steps(&self, console: &mut Console<'_>, is_trusted: bool) {
        let shown = &self.shown;
        if !self.is_active {
            let own = packs::own_directory(self.project);
            let activate = if holds_policies(self.world, &own) {
                "Activate it: merge its files into .policyd/policies, then run policyd trust"
            } else {
                &format!(
                    "Activate it:\n  mkdir -p .policyd && mv {shown} .policyd/policies\n  policyd trust"
                )
            };
            console.print(&format!(
                "\n{shown} is not active: a project uses only its directory .policyd/policies. Check it:\n  \
                 policyd lint {shown}\n  policyd test {shown}\n{activate}\n"
            ));
            return;
        }
        if is_trusted || packs::is_trusted(self.world, self.project, &self.folder) {
            console.print(&format!(
                "\n{shown} is trusted and active. After each change:\n  policyd lint\n  policyd test\n  \
                 policyd trust\n"
            ));
            return;
        }
        console.print(&format!(
            "\n{shown} contains files that `policyd init` did not write, so the pack is not trusted and not \
             active. Check it:\n  policyd lint {shown}\nActivate it:\n  policyd trust {shown}\n"
        ));
        trust::show_grants(self.world, console, &self.folder);
    }
}
