//! `policyd install` and `policyd uninstall`: show or make the changes to the settings files of clients.

mod leftovers;

use std::path::Path;

use similar::TextDiff;

use super::arguments::{self, OnFailure};
use super::human::require_human;
use super::pause::log;
use super::{Console, EXIT_BROKEN, EXIT_OK, InstallArguments, UninstallArguments, enforce, error};
use policyd_app::approvals;
use policyd_app::error::AppError;
use policyd_app::install::leftovers::Leftover;
use policyd_app::install::places::{PLACES, SettingsPlace, SettingsScope};
use policyd_app::install::{self, InstallRequest, PLUGIN_CLIENT, SettingsPlan};
use policyd_app::packs::{self, organization};
use policyd_app::workspace::project;
use policyd_policy::EnforcementMode;
use policyd_policy::approval::ApprovalLevel;
use policyd_record::notice::SwitchKind;
use policyd_world::World;

impl From<arguments::Scope> for SettingsScope {
    fn from(scope: arguments::Scope) -> Self {
        match scope {
            arguments::Scope::User => Self::User,
            arguments::Scope::Project => Self::Project,
            arguments::Scope::Local => Self::Local,
            arguments::Scope::System => Self::System,
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
    if arguments.observe && !arguments.dry_run && planned.is_ok() {
        let code = enforce::set_mode(world, console, EnforcementMode::Observe);
        if code != EXIT_OK {
            return code;
        }
    }
    if let Some(level) = arguments.approve.filter(|_| !arguments.dry_run && planned.is_ok()) {
        let code = approve(world, console, level.into());
        if code != EXIT_OK {
            return code;
        }
    }
    let code = carry_out(world, console, planned, arguments.dry_run);
    if let (Some(folder), EXIT_OK) = (&arguments.plugin, code) {
        report_plugin(console, &request, folder, arguments.dry_run);
    }
    if request.scope == SettingsScope::System {
        report_rest(console);
    }
    if code == EXIT_OK && !arguments.dry_run {
        if let Ok(Some(found)) = organization::find(world) {
            packs::compile_ahead(world, &found);
        }
        packs::compile_ahead(world, &packs::find(world, &project::find(world, None), None));
    }
    code
}

/// Sets which permission prompts policyd answers. Only a human can choose that.
fn approve(world: &dyn World, console: &mut Console<'_>, level: ApprovalLevel) -> u8 {
    let action = match level {
        ApprovalLevel::None => "answer no permission prompt, in every project",
        ApprovalLevel::Read => "approve calls that only read, in every project",
        ApprovalLevel::Work => "approve the usual work of agents, in every project",
    };
    let actor = match require_human(world, console, action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    match approvals::set(world, level) {
        Ok(path) => {
            console.print(&format!("approvals: {} in {}\n", level.as_str(), path.display()));
            let text = format!("approvals: {}", level.as_str());
            log(world, &project::find(world, None), SwitchKind::Approvals, None, text, &actor);
            EXIT_OK
        }
        Err(error) => {
            console.eprint(&format!("{error}\nhelp: no hook was installed"));
            EXIT_BROKEN
        }
    }
}

/// Names the clients that have no settings of the machine for hooks.
fn report_rest(console: &mut Console<'_>) {
    let rest = PLACES.iter().filter(|it| it.system_file().is_none()).map(|it| it.harness.title);
    let rest: Vec<&str> = rest.collect();
    if !rest.is_empty() {
        console.print(&format!(
            "not written: {} ({} no settings of the machine that contain hooks)\n",
            rest.join(", "),
            if rest.len() == 1 { "documents" } else { "document" }
        ));
    }
}

fn report_plugin(
    console: &mut Console<'_>,
    request: &InstallRequest<'_>,
    folder: &Path,
    dry_run: bool,
) {
    if let Some(place) = SettingsPlace::of(PLUGIN_CLIENT).filter(|_| request.closed) {
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
    let UninstallArguments { purge, packs, dry_run, .. } = *arguments;
    let planned = install::plan_uninstall(world, &arguments.harness, arguments.scope.into());
    let left = install::leftovers::find(world, packs);
    if purge && planned.is_ok() {
        leftovers::announce(console, &left);
    }
    let action = planned.as_ref().ok().and_then(|planned| removal(planned, &left, purge));
    if let Some(action) = action.filter(|_| !dry_run)
        && let Err(code) = require_human(world, console, &action)
    {
        return code;
    }
    let code = carry_out(world, console, planned, dry_run);
    if code != EXIT_OK {
        return code;
    }
    let code = match (purge, dry_run) {
        (true, true) => EXIT_OK,
        (true, false) => leftovers::purge(world, console, &left),
        (false, _) => {
            leftovers::list(console, &left);
            EXIT_OK
        }
    };
    leftovers::report_programs(world, console);
    code
}

/// Describes what an uninstallation removes; nothing if it removes nothing.
fn removal(planned: &SettingsPlan, left: &[Leftover], purge: bool) -> Option<String> {
    let changed = planned.iter().flatten().filter(|it| it.before != it.after);
    let files: Vec<String> = changed.map(|it| it.path.display().to_string()).collect();
    let hooks = (!files.is_empty()).then(|| format!("its hooks from {}", files.join(", ")));
    let purge = purge.then(|| match left.iter().map(|it| it.paths.len()).sum::<usize>() {
        1 => "the path above".to_owned(),
        count => format!("the {count} paths above"),
    });
    let all: Vec<String> = hooks.into_iter().chain(purge).collect();
    (!all.is_empty()).then(|| format!("remove {}", all.join(", and ")))
}

/// Shows the changes, or makes them.
fn carry_out(
    world: &dyn World,
    console: &mut Console<'_>,
    planned: Result<SettingsPlan, AppError>,
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
