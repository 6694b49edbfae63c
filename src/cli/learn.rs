//! `policyd learn`: a human teaches policyd what a command is.

use super::{Console, EXIT_BROKEN, EXIT_OK, EXIT_USAGE, LearnArguments, pause};
use crate::human::{require_human, require_unpinned};
use policyd_app::packs::learned::{self, LearnError, LearnPlan};
use policyd_app::workspace::project;
use policyd_record::notice::SwitchKind;
use policyd_store::configuration::Pins;
use policyd_world::World;

/// Adds a command to a class of the pack in use.
pub(super) fn run(world: &dyn World, console: &mut Console<'_>, arguments: &LearnArguments) -> u8 {
    let LearnArguments { kind, command } = arguments;
    let project = project::find(world, None);
    let lesson = match learned::plan(world, &project, kind, command) {
        Ok(LearnPlan::Change(lesson)) => lesson,
        Ok(LearnPlan::Known) => {
            console.print(&format!("`{command}` is a {kind} command already\n"));
            return EXIT_OK;
        }
        Err(error) => return report(console, &error),
    };
    // The content of the pack changes, and only certain contents are allowed.
    let is_pinned = |pins: &Pins| pins.allowed_packs.is_some().then_some("trust.allowed_packs");
    if let Err(code) = require_unpinned(world, console, is_pinned) {
        return code;
    }
    let folder = lesson.change.folder.display();
    let action = format!("count `{command}` as a {kind} command in {folder}");
    let actor = match require_human(world, console, &action) {
        Ok(actor) => actor,
        Err(code) => return code,
    };
    if let Err(error) = lesson.change.write(world) {
        return report(console, &error.into());
    }
    let text = format!("`{}` is a {kind} command in {folder}", lesson.pattern);
    pause::log(world, &project, SwitchKind::Trust, None, text, &actor);
    console.print(&format!("`{command}` is a {kind} command from now on\n"));
    for (path, _) in &lesson.change.files {
        console.print(&format!("wrote {}\n", path.display()));
    }
    EXIT_OK
}

fn report(console: &mut Console<'_>, error: &LearnError) -> u8 {
    console.eprint(&error.to_string());
    match error {
        LearnError::UnknownKind { .. }
        | LearnError::NotOneProgram { .. }
        | LearnError::NotPlain(_) => EXIT_USAGE,
        LearnError::Untrusted(_)
        | LearnError::Invalid(_)
        | LearnError::NoDirectory
        | LearnError::NotExtended { .. }
        | LearnError::Change(_) => EXIT_BROKEN,
    }
}
