//! `policyd install` and `policyd uninstall`: show or make the changes to the settings files of clients.

mod leftovers;

use std::path::Path;

use similar::TextDiff;

use super::arguments::{self, OnFailure};
use super::human::require_human;
use super::{Console, EXIT_BROKEN, EXIT_OK, InstallArguments, UninstallArguments, error};
use crate::app::error::AppError;
use crate::app::install::places::{Place, Scope};
use crate::app::install::{self, InstallRequest, PLUGIN_CLIENT, Planned};
use crate::app::packs;
use crate::app::workspace::project;
use crate::world::World;

impl From<arguments::Scope> for Scope {
    fn from(scope: arguments::Scope) -> Self {
        match scope {
            arguments::Scope::User => Self::User,
            arguments::Scope::Project => Self::Project,
            arguments::Scope::Local => Self::Local,
        }
    }
}

/// Adds hook lines.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &InstallArguments,
) -> u8 {
    let Some(program) = world.program().map(|it| it.display().to_string()) else {
        console
            .eprint("could not determine the path of the `policyd` executable; no hooks installed");
        return EXIT_BROKEN;
    };
    let request = InstallRequest {
        clients: &arguments.harness,
        scope: arguments.scope.into(),
        events: &arguments.events,
        closed: arguments.on_failure == OnFailure::Closed,
        program: &program,
    };
    let planned = match &arguments.plugin {
        Some(folder) => install::plan_plugin(world, &request, folder),
        None => install::plan_install(world, &request),
    };
    let code = carry_out(world, console, planned, arguments.dry_run);
    if let (Some(folder), EXIT_OK) = (&arguments.plugin, code) {
        report_plugin(console, &request, folder, arguments.dry_run);
    }
    if code == EXIT_OK && !arguments.dry_run {
        packs::compile_ahead(world, &packs::find(world, &project::find(world, None), None));
    }
    code
}

fn report_plugin(
    console: &mut Console<'_>,
    request: &InstallRequest<'_>,
    folder: &Path,
    dry_run: bool,
) {
    if let Some(place) = Place::of(PLUGIN_CLIENT).filter(|_| request.closed) {
        console.print(&format!("           {}\n", place.closed_note()));
    }
    if !dry_run {
        console.print(&format!("try it: claude --plugin-dir {}\n", folder.display()));
    }
}

/// Removes hook lines.
pub(super) fn uninstall(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &UninstallArguments,
) -> u8 {
    let planned = install::plan_uninstall(world, &arguments.harness, arguments.scope.into());
    if let Ok(planned) = &planned
        && !arguments.dry_run
        && (arguments.purge || planned.iter().flatten().any(|it| it.before != it.after))
    {
        let changed = planned.iter().flatten().filter(|it| it.before != it.after);
        let files: Vec<String> = changed.map(|it| it.path.display().to_string()).collect();
        let purge = arguments.purge.then(|| "your own files of policyd".to_owned());
        let hooks = (!files.is_empty()).then(|| format!("its hooks from {}", files.join(", ")));
        let all: Vec<String> = hooks.into_iter().chain(purge).collect();
        let action = format!("remove {}", all.join(", and "));
        if let Err(code) = require_human(world, console, &action) {
            return code;
        }
    }
    let code = carry_out(world, console, planned, arguments.dry_run);
    if code != EXIT_OK {
        return code;
    }
    leftovers::clear(world, console, arguments)
}

/// Shows the changes, or makes them.
fn carry_out(
    world: &dyn World,
    console: &mut Console<'_>,
    planned: Result<Planned, AppError>,
    dry_run: bool,
) -> u8 {
    let changes = match planned {
        Ok(changes) => changes,
        Err(error) => return error::report(console, &error),
    };
    let mut code = EXIT_OK;
    for change in changes {
        let it = match change {
            Ok(change) => change,
            Err(error) => {
                code = code.max(error::report(console, &error));
                continue;
            }
        };
        let path = it.path.display();
        let note = it.closed.then(|| format!("           {}\n", it.place.closed_note()));
        if it.before == it.after {
            console.print(&format!("unchanged  {}: {path}\n", it.place.harness.title));
        } else if dry_run {
            let (before, after) = (it.before.unwrap_or_default(), it.after.unwrap_or_default());
            let diff = TextDiff::from_lines(before.as_str(), after.as_str());
            let name = path.to_string();
            console.print(&diff.unified_diff().context_radius(3).header(&name, &name).to_string());
        } else {
            match install::write(world, &it) {
                Err(error) => {
                    console.eprint(&error.to_string());
                    code = EXIT_BROKEN;
                    continue;
                }
                Ok(unsafe_writes) => unsafe_writes.iter().for_each(|why| {
                    console.eprint(&format!("{path}: a power loss can undo this change: {why}"));
                }),
            }
            let what = if it.after.is_none() { "removed" } else { "wrote" };
            console.print(&format!("{what:9}  {}: {path}\n", it.place.harness.title));
            if it.after.is_some() && !it.then.is_empty() {
                console.print(&format!("           {}\n", it.then));
            }
        }
        note.iter().for_each(|it| console.print(it));
    }
    code
}
