//! `policyd lint --fix` and `--diff`: what is changed in files, and what keeps it from harm.

use std::collections::BTreeSet;
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
    let (mut made, mut current, mut refused) = (0, None, BTreeSet::new());
    for _ in 0..ROUNDS_MAX {
        let mut changes = changes(&current.as_ref().unwrap_or(first).findings, wanted);
        changes.retain(|it| !refused.contains(&it.source.name));
        if changes.is_empty() {
            break;
        }
        for change in changes {
            if !put(world, console, &change, &change.text) {
                refused.insert(change.source.name.clone());
                continue;
            }
            let after = review(&packs(), ask);
            let new = new_errors(current.as_ref().unwrap_or(first), &after);
            if new.is_empty() {
                made += change.fixes;
                current = Some(after);
            } else {
                // Never worse than before: what was there comes back.
                put(world, console, &change, &change.source.text);
                let name = &change.source.name;
                console.complain(&format!(
                    "{name}: the fixes would break it and were taken back ({})",
                    new.join("; ")
                ));
                refused.insert(name.clone());
            }
        }
    }
    console.complain(&format!("{made} fix(es) made"));
    Done::Again(current.unwrap_or_else(|| review(&packs(), ask)))
}

/// Errors that were not there before.
fn new_errors(before: &Review, after: &Review) -> Vec<String> {
    let errors = |review: &Review| -> BTreeSet<(String, String)> {
        let errors = review.findings.iter().filter(|it| it.level == Level::Error);
        errors.map(|it| (it.span.source.name.clone(), it.message.clone())).collect()
    };
    let known = errors(before);
    errors(after).into_iter().filter(|it| !known.contains(it)).map(|(_, message)| message).collect()
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
