//! `policyd schema`: the JSON Schema of a file kind, from the tables that reading and writing follow.

use super::{Console, EXIT_OK, EXIT_USAGE, SchemaArguments};
use policyd_report::schemas;
use policyd_yaml::suggest;

/// Prints a schema, or the names there are.
pub(super) fn run(console: &mut Console<'_>, arguments: &SchemaArguments) -> u8 {
    let all = schemas::all();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let Some(wanted) = &arguments.name else {
        console.print(&format!("{}\n", names.join("\n")));
        return EXIT_OK;
    };
    let name = wanted.trim_end_matches(".yaml");
    let Some((_, schema)) = all.iter().find(|(it, _)| *it == name) else {
        let help = suggest::did_you_mean(name, &names).unwrap_or_default();
        console.eprint(&format!("unknown file type `{wanted}`\nhelp: {help}"));
        return EXIT_USAGE;
    };
    console.print(&format!("{schema:#}\n"));
    EXIT_OK
}
