//! `policyd debug decide`: asks a decision table of the pack, for scripts and people.

use serde_json::{Value, json};

use super::{Console, DecideArguments, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, ListFormat, pack};
use policyd_evaluation::tables;
use policyd_policy::tables::{Table, find};
use policyd_world::World;

/// Asks a table, or lists them.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &DecideArguments) -> u8 {
    let Some(policy) = pack::require_valid(world, console, arguments.policies.as_deref()) else {
        return EXIT_BROKEN;
    };
    let Some(id) = &arguments.table else {
        policy.tables.iter().for_each(|it| show(console, it, arguments.format));
        return EXIT_OK;
    };
    let asked = find(&policy.tables, id);
    let asked = asked.and_then(|table| Ok((table, tables::given(table, &arguments.given)?)));
    let (table, given) = match asked {
        Ok(asked) => asked,
        Err(error) => {
            console.eprint(&error.to_string());
            return EXIT_USAGE;
        }
    };
    for name in tables::missing(table, &arguments.given) {
        console.eprint(&format!("input `{name}` not given; the table uses empty, 0 or false"));
    }
    let decided = match tables::decide(table, given, None) {
        Ok(decided) => decided,
        Err((place, why)) => {
            console.eprint(&format!("{place}: could not evaluate `{id}`: {why}"));
            return EXIT_BROKEN;
        }
    };
    console.print(&match arguments.format {
        ListFormat::Json => {
            let shown = json!({"table": id, "answer": decided.answer, "row": decided.row,
                "reason": decided.reason});
            format!("{shown}\n")
        }
        ListFormat::Compact => format!("{}\n", decided.answer),
        ListFormat::Text if decided.reason.is_empty() => format!("{}\n", decided.answer),
        ListFormat::Text => format!("{}: {}\n", decided.answer, decided.reason),
    });
    EXIT_OK
}

/// A table with its inputs.
fn show(console: &mut Console<'_>, table: &Table, format: ListFormat) {
    if format == ListFormat::Json {
        let inputs = table.inputs.fields.iter().map(|it| {
            json!({"name": it.name, "type": it.result.to_string(), "values": it.values,
                "description": it.doc})
        });
        let shown = json!({"table": table.id, "description": table.description,
            "inputs": inputs.collect::<Vec<Value>>(), "defaults": table.defaults});
        return console.print(&format!("{shown}\n"));
    }
    console.print(&format!("{}: {}\n", table.id, table.description));
    if format == ListFormat::Text {
        for it in &table.inputs.fields {
            console.print(&format!("    {} ({}): {}\n", it.name, it.result, it.doc));
        }
    }
}
