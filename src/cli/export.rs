//! `policyd export`: sends what all projects logged to a collector or a SIEM.

use std::path::PathBuf;

use super::{
    Console, EXIT_BROKEN, EXIT_FOUND, EXIT_OK, ExportAction, ExportArguments, ExportFormat,
    ExportTo,
};
use policyd_app::export::{self, ExportError, ExportResult};
use policyd_world::{World, WorldError};

/// Exports new entries, once or again and again.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &ExportArguments) -> u8 {
    match (&arguments.action, arguments.format) {
        (Some(ExportAction::Otlp(to)), _) => otlp(world, console, to),
        // The command line requires a format without an action.
        (None, Some(ExportFormat::Ocsf) | None) => ocsf(world, console, arguments.output.as_ref()),
    }
}

fn otlp(world: &dyn World, console: &mut Console<'_>, to: &ExportTo) -> u8 {
    loop {
        let code = report(console, export::otlp(world, &to.endpoint), "exported");
        if !to.watch {
            return code;
        }
        world.sleep(to.every);
        if world.interrupted() {
            return EXIT_OK;
        }
    }
}

fn ocsf(world: &dyn World, console: &mut Console<'_>, output: Option<&PathBuf>) -> u8 {
    let Some(output) = output else {
        let result = export::ocsf(world, "-", |text| match console.try_print(text) {
            true => Ok(()),
            false => Err(WorldError::Io("standard output is closed or full".to_owned())),
        });
        return match result {
            Ok(exported) => problems(console, &exported),
            Err(error) => failed(console, &error),
        };
    };
    let path = world.working_folder().join(output);
    let target = path.display().to_string();
    let result = export::ocsf(world, &target, |text| world.append(&path, text.as_bytes()));
    report(console, result, "appended")
}

fn report(console: &mut Console<'_>, result: Result<ExportResult, ExportError>, done: &str) -> u8 {
    match result {
        Ok(exported) => {
            if exported.entries > 0 {
                let spans = match exported.spans {
                    0 => String::new(),
                    spans => format!(" and {spans} spans of runs"),
                };
                console.print(&format!("{done} {} entries{spans}\n", exported.entries));
            }
            problems(console, &exported)
        }
        Err(error) => failed(console, &error),
    }
}

fn problems(console: &mut Console<'_>, exported: &ExportResult) -> u8 {
    exported.problems.iter().for_each(|it| console.eprint(it));
    if exported.problems.is_empty() { EXIT_OK } else { EXIT_FOUND }
}

fn failed(console: &mut Console<'_>, error: &ExportError) -> u8 {
    console.eprint(&error.to_string());
    EXIT_BROKEN
}
