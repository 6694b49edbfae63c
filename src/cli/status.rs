//! `policyd status`: one row per project, the projects that need a human first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, ListFormat, StatusArguments};
use policyd_app::overview::{self, ActivitySource, ProjectScope};
use policyd_report::overview::{ProjectRow, Urgency, sort, to_json, to_text};
use policyd_shell::path::normal;
use policyd_store::projects::{KnownProject, ProjectRegistry};
use policyd_world::{FileKind, World};
use policyd_yaml::time::parse_duration;

/// Shows the rows.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &StatusArguments) -> u8 {
    if arguments.watch || arguments.every.is_some() {
        console.eprint(
            "`--watch` was removed: `policyd top` shows the same rows, refreshed\nhelp: run `policyd top`; in a script, \
             repeat `policyd status --all --format json`",
        );
        return EXIT_USAGE;
    }
    if arguments.forget {
        return forget(world, console, arguments);
    }
    let Ok(since) = parse_duration(&arguments.since) else {
        console.eprint(super::log::SINCE_HELP);
        return EXIT_USAGE;
    };
    let scope = match ProjectScope::new(world, arguments.all, &arguments.directories) {
        Ok(scope) => scope,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_USAGE;
        }
    };
    let source = ActivitySource::Logs { since: world.now().minus(since) };
    let mut rows = overview::rows(world, &scope, source);
    sort(&mut rows);
    print(world, console, arguments.format, &rows, since);
    let waits = rows.iter().any(|it| it.urgency() == Urgency::Human);
    match (rows.iter().any(|it| it.is_unread), waits) {
        (true, _) => EXIT_BROKEN,
        (false, true) => EXIT_FOUND,
        (false, false) => EXIT_OK,
    }
}

fn is_directory(world: &dyn World, path: &Path) -> bool {
    let path = world.working_folder().join(path);
    world.stat(&path).is_ok_and(|it| it.kind == FileKind::Folder)
}

fn print(
    world: &dyn World,
    console: &mut Console<'_>,
    format: ListFormat,
    rows: &[ProjectRow],
    since: Duration,
) {
    match format {
        ListFormat::Json => console.print(&format!("{}\n", to_json(rows, world.now(), since))),
        ListFormat::Text | ListFormat::Compact if rows.is_empty() => {
            console.print("no project is known yet; policyd adds a project at its first stop\n");
        }
        ListFormat::Text => {
            let text = to_text(rows, world.now(), since, console.screen());
            console.print(&text);
        }
        ListFormat::Compact => {
            for row in rows.iter().filter(|it| it.urgency() != Urgency::Quiet) {
                let urgency = row.urgency().as_str();
                console.print(&format!("{urgency}\t{}\n", row.directory));
            }
        }
    }
}

/// Removes projects from the registry.
fn forget(world: &dyn World, console: &mut Console<'_>, arguments: &StatusArguments) -> u8 {
    let registry = ProjectRegistry::new(world);
    let here = world.working_folder();
    let is_gone = |it: &KnownProject| !is_directory(world, &it.directory);
    let directories: Vec<PathBuf> = if arguments.all {
        registry.all().into_iter().filter(is_gone).map(|it| it.directory).collect()
    } else {
        arguments.directories.iter().map(|it| normal(&here.join(it))).collect()
    };
    if directories.is_empty() && !arguments.all {
        console.eprint("no project named\nhelp: policyd status --forget DIR, or --forget --all");
        return EXIT_USAGE;
    }
    let mut code = EXIT_OK;
    for directory in &directories {
        let shown = directory.display();
        match registry.forget(directory) {
            Ok(true) => console.print(&format!("{shown} is not listed any more\n")),
            Ok(false) => {
                console.eprint(&format!("{shown} was not listed"));
                code = EXIT_FOUND;
            }
            Err(error) => {
                console.eprint(&format!("could not remove {shown} from the list: {error}"));
                code = EXIT_BROKEN;
            }
        }
    }
    if directories.is_empty() {
        console.print("every listed project exists\n");
    }
    code
}
