//! `policyd schema`: the JSON Schema of a file kind, from the table the loader uses.

use super::{Console, EXIT_OK, EXIT_USAGE, SchemaArguments};
use crate::cases;
use crate::policy::shapes;
use crate::source::{schema, suggest};

/// Prints a schema, or the names there are.
pub(super) fn run(console: &mut Console<'_>, arguments: &SchemaArguments) -> u8 {
    let cases = &cases::shape::FILE;
    let mut files = shapes::FILES.iter().chain([cases]);
    let names: Vec<&str> = files.clone().map(|it| it.file.trim_end_matches(".yaml")).collect();
    let Some(wanted) = &arguments.name else {
        console.say(&format!("{}\n", names.join("\n")));
        return EXIT_OK;
    };
    let name = wanted.trim_end_matches(".yaml");
    let Some(shape) = files.find(|it| it.file.trim_end_matches(".yaml") == name) else {
        let help = suggest::did_you_mean(name, &names).unwrap_or_default();
        console.complain(&format!("there is no file kind `{wanted}`; {help}"));
        return EXIT_USAGE;
    };
    let schema = if shape.file == cases.file {
        cases::shape::schema()
    } else {
        schema::json_schema(&shape.kind, name)
    };
    console.say(&format!("{schema:#}\n"));
    EXIT_OK
}
