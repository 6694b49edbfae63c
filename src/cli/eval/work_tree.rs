//! Whether git reports changes in the work trees that programs of a call would change. Asked only where a
//! guard that recognises such a program looks at it; bounded.

use std::path::Path;
use std::time::Duration;

use crate::facts::call::{Call, Surroundings};
use crate::world::{Command, World};

/// Time for all questions of one call.
const TIME_MAX: Duration = Duration::from_millis(300);
/// One changed file is enough.
const ANSWER_BYTES_MAX: usize = 4096;

/// The question. Files that git does not track do not count: what discards changes leaves them.
pub(in crate::cli) const QUESTION: [&str; 7] = [
    "git",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "status",
    "--porcelain",
    "--untracked-files=no",
];

/// Adds to the surroundings which of these work trees are clean; programs by their positions.
pub(super) fn look(
    world: &dyn World,
    call: &Call,
    around: &mut Surroundings,
    programs: impl Iterator<Item = usize>,
) {
    let end = world.elapsed().saturating_add(TIME_MAX);
    for program in programs {
        let Some(folder) = call.tree_folder(program, around) else { continue };
        let left = end.saturating_sub(world.elapsed());
        if left.is_zero() || around.clean_trees.contains_key(&folder) {
            continue;
        }
        if let Some(clean) = is_clean(world, &folder, left) {
            around.clean_trees.insert(folder, clean);
        }
    }
}

/// Whether the work tree of a folder has no change; nothing where git does not answer in time.
fn is_clean(world: &dyn World, folder: &str, deadline: Duration) -> Option<bool> {
    let command = Command {
        argv: QUESTION.map(str::to_owned).to_vec(),
        folder: Path::new(folder).to_owned(),
        deadline,
        output_max: ANSWER_BYTES_MAX,
        ..Command::default()
    };
    let output = world.run(&command).ok().filter(|it| it.code == Some(0))?;
    Some(output.stdout.is_empty())
}
