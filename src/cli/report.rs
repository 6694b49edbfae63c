//! `policyd report`: what happened in a time, as text, Markdown, or one HTML file.

use std::path::{Path, PathBuf};

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, MorningFormatName, ReportArguments,
};
use policyd_app::alerts;
use policyd_app::morning::{self, ReportScope};
use policyd_app::workspace::project::{self, Project};
use policyd_shell::path::normal;
use policyd_store::alert_settings::MorningFormat;
use policyd_store::file::{self, Durability, Saved};
use policyd_world::{FileKind, World};
use policyd_yaml::time::parse_duration;

/// Prints the report, writes it to a file, or makes the scheduled ones.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &ReportArguments) -> u8 {
    if arguments.due {
        return make_due(world, console);
    }
    let Ok(since) = parse_duration(&arguments.since) else {
        console.eprint(super::log::SINCE_HELP);
        return EXIT_USAGE;
    };
    let here = world.working_folder();
    let is_missing =
        |it: &&PathBuf| !world.stat(&here.join(it)).is_ok_and(|it| it.kind == FileKind::Folder);
    if let Some(directory) = arguments.directories.iter().find(is_missing) {
        console.eprint(&format!("{} is not a directory", directory.display()));
        return EXIT_USAGE;
    }
    let named = arguments.directories.iter();
    let mut projects: Vec<Project> =
        named.map(|it| project::at(world, &normal(&here.join(it)))).collect();
    if projects.is_empty() {
        projects.push(project::find(world, None));
    }
    let scope = if arguments.all { ReportScope::All } else { ReportScope::Some(&projects) };
    let (report, problems) = morning::collect(world, &scope, since);
    for (path, error) in problems {
        console.eprint(&format!("could not read {}: {error}", path.display()));
    }
    let format = match arguments.format {
        MorningFormatName::Text => MorningFormat::Text,
        MorningFormatName::Md => MorningFormat::Markdown,
        MorningFormatName::Html => MorningFormat::Html,
    };
    let text = report.format(format, console.screen());
    match &arguments.output {
        Some(path) => write(world, console, &here.join(path), &text),
        None => {
            console.print(&text);
            EXIT_OK
        }
    }
}

fn write(world: &dyn World, console: &mut Console<'_>, path: &Path, text: &str) -> u8 {
    match file::save(world, path, text.as_bytes(), &Durability::default()) {
        Saved::Durable { .. } | Saved::Degraded { .. } => EXIT_OK,
        Saved::NotSaved { why, .. } => {
            console.eprint(&format!("could not write {}: {why}", path.display()));
            EXIT_BROKEN
        }
    }
}

/// Makes the scheduled reports that are due.
fn make_due(world: &dyn World, console: &mut Console<'_>) -> u8 {
    let (settings, ignored) = alerts::settings(world);
    ignored.iter().for_each(|it| console.eprint(&it.to_string()));
    match morning::make_due(world, &settings) {
        Ok((made, problems)) => {
            made.iter().for_each(|it| console.print(&format!("made the report {it}\n")));
            problems.iter().for_each(|it| console.eprint(&it.to_string()));
            let is_good = problems.is_empty() && ignored.is_empty();
            if is_good { EXIT_OK } else { EXIT_FOUND }
        }
        Err(error) => {
            console.eprint(&error.to_string());
            EXIT_BROKEN
        }
    }
}
