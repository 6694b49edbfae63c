//! `policyd lint --fix` and `--diff`: what is changed in files, and what keeps it from harm.

use std::path::Path;

use similar::TextDiff;

use super::{Ask, review, with_cases};
use crate::cli::arguments::FixLevel;
use crate::cli::{Console, EXIT_FOUND, EXIT_OK, LintArguments, pack, project};
use crate::lint::fix::{Change, changes};
use crate::report::lint::Review;
use crate::source::{Fix, Level};
use crate::world::World;

/// Rounds of fixing: a fix may uncover another one.
const ROUNDS_MAX: usize = 8;
/// Lines around a change in a diff.
const CONTEXT_LINES: usize = 3;

/// What came of it.
pub(super) enum Done {
    /// Differences were shown; the exit code.
    Shown(u8),
    /// Files were changed; this is how it stands now.
    Again(Review),
}

/// Makes the fixes, or shows them.
pub(super) fn run(
    world: &dyn World,
    console: &mut Console<'_>,
    arguments: &LintArguments,
    first: &Review,
    ask: &Ask,
) -> Done {
    let all = arguments.fix == Some(FixLevel::All);
    let wanted = |fix: &Fix| all || fix.safe;
    if arguments.diff {
        let changes = changes(&first.findings, wanted);
        console.say(&changes.iter().map(diff).collect::<String>());
        return Done::Shown(if changes.is_empty() { EXIT_OK } else { EXIT_FOUND });
    }
    let project = project::find(world, None);
    let packs = || {
        let (packs, mut unreadable) = pack::find_all(world, &project, &arguments.paths);
        with_cases(world, packs, &mut unreadable)
    };
    let (mut made, mut current) = (0, None);
    for _ in 0..ROUNDS_MAX {
        let before = current.as_ref().unwrap_or(first);
        let wrong = before.count(Level::Error);
        let changes = changes(&before.findings, wanted);
        if changes.is_empty() || !changes.iter().all(|it| write(world, console, it)) {
            break;
        }
        let after = review(&packs(), ask);
        if after.count(Level::Error) > wrong {
            // Never worse than before: what was there comes back.
            for change in &changes {
                put(world, console, change, &change.source.text);
            }
            console.complain("the fixes would break the pack, and were taken back");
            break;
        }
        made += changes.iter().map(|it| it.fixes).sum::<usize>();
        current = Some(after);
    }
    console.complain(&format!("{made} fix(es) made"));
    Done::Again(current.unwrap_or_else(|| review(&packs(), ask)))
}

fn write(world: &dyn World, console: &mut Console<'_>, change: &Change) -> bool {
    put(world, console, change, &change.text)
}

fn put(world: &dyn World, console: &mut Console<'_>, change: &Change, text: &str) -> bool {
    let path = Path::new(&change.source.name);
    let written = world.write(path, text.as_bytes());
    if let Err(error) = &written {
        console.complain(&format!("{}: {error}", change.source.name));
    }
    written.is_ok()
}

/// A change as a unified diff.
fn diff(change: &Change) -> String {
    let name = &change.source.name;
    let diff = TextDiff::from_lines(change.source.text.as_str(), change.text.as_str());
    let mut unified = diff.unified_diff();
    unified.context_radius(CONTEXT_LINES).header(name, name).to_string()
}
