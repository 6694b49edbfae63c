//! `policyd facts`: the facts of a transcript as rules see them, or the table of all facts.

use std::path::Path;
use std::time::Duration;

use super::{Console, EXIT_BROKEN, EXIT_OK, FactsArguments, pack};
use crate::facts::compiled::CompiledLens;
use crate::script::members;
use crate::script::types::Type;
use crate::store::transcript::{self, Places};
use crate::world::World;

/// Prints facts.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &FactsArguments) -> u8 {
    match &arguments.transcript {
        None => table(console),
        Some(path) => of_transcript(world, console, path, arguments),
    }
}

/// The reference of everything an expression can name.
fn table(console: &mut Console<'_>) -> u8 {
    let mut owner = None;
    for row in members::tables() {
        if owner != Some(row.owner) {
            let title = if row.owner == Type::Global {
                "names an expression starts with".to_owned()
            } else {
                row.owner.to_string()
            };
            console.say(&format!("\n{title}\n"));
            owner = Some(row.owner);
        }
        let name = row.signature();
        console.say(&format!(
            "  {name:28} {:14} {}  e.g. {}\n",
            row.result.to_string(),
            row.doc,
            row.example
        ));
    }
    EXIT_OK
}

fn of_transcript(
    world: &dyn World,
    console: &mut Console<'_>,
    path: &Path,
    arguments: &FactsArguments,
) -> u8 {
    let Some(policy) = pack::sound(world, console, arguments.policies.as_deref()) else {
        return EXIT_BROKEN;
    };
    let lens = CompiledLens::new(policy.lens);
    let places = Places { transcript: path, cursor: None, subagent: arguments.subagent };
    let deadline = world.elapsed().saturating_add(Duration::from_secs(600));
    let read = transcript::read(world, places, &lens, policy.lens_key, deadline);
    match serde_json::to_string_pretty(&read.facts) {
        Ok(text) => console.say(&format!("{text}\n")),
        Err(error) => console.complain(&error.to_string()),
    }
    match read.problem {
        Some(problem) => {
            console.complain(&format!("{}: {problem}", path.display()));
            EXIT_BROKEN
        }
        None => EXIT_OK,
    }
}
