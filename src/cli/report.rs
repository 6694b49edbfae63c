//! `policyd report`: what happened in a time, as text, Markdown, or one HTML file.

use std::path::Path;

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, EXIT_USAGE, MorningFormatName, ReportArguments,
};
use policyd_app::alerts;
use policyd_app::morning;
use policyd_app::overview::ProjectScope;
use policyd_store::alert_settings::MorningFormat;
use policyd_store::file::{self, Durability, SaveOutcome};
use policyd_world::World;
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
    let scope = match ProjectScope::new(world, arguments.all, &arguments.directories) {
        Ok(scope) => scope,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_USAGE;
        }
    };
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
        Some(path) => write(world, console, &world.working_folder().join(path), &text),
        None => {
            console.print(&text);
            EXIT_OK
        }
    }
}

fn write(world: &dyn World, console: &mut Console<'_>, path: &Path, text: &str) -> u8 {
    match file::save(world, path, text.as_bytes(), &Durability::default()) {
        SaveOutcome::Durable { .. } | SaveOutcome::Degraded { .. } => EXIT_OK,
        SaveOutcome::NotSaved { why, .. } => {
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
