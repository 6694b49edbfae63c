//! `policyd lint --fix` and `--diff`: what is changed in files, and what keeps it from harm.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use similar::TextDiff;

use super::{LintRun, exit_code, lint_paths};
use crate::arguments::FixLevel;
use crate::{Console, EXIT_FOUND, LintArguments};
use policyd_app::packs::places;
use policyd_lint::fix::{Change, changes};
use policyd_record::mask::mask;
use policyd_report::lint::LintReview;
use policyd_world::World;
use policyd_yaml::{Diagnostic, Fix, Level};

/// Rounds of fixing: a fix may uncover another one.
const ROUNDS_MAX: usize = 8;
/// Lines around a change in a diff.
const CONTEXT_LINES: usize = 3;

/// What came of it.
pub(super) enum Done {
    /// Differences were shown; the exit code.
    Shown(u8),
    /// Files were changed; this is how it stands now.
    Again(LintReview),
}

/// Makes the fixes, or shows them.
pub(super) fn run(
    console: &mut Console<'_>,
    arguments: &LintArguments,
    first: &LintReview,
    ask: &LintRun<'_>,
) -> Done {
    let world = ask.world;
    let all = arguments.fix == Some(FixLevel::All);
    let wanted = |fix: &Fix| all || fix.safe;
    if arguments.diff {
        let changes = changes(&first.findings, wanted);
        if changes.is_empty() {
            console.eprint(&nothing_to_show(first, all));
            return Done::Shown(exit_code(first, arguments.fail_level));
        }
        // As with findings, what is shown may be kept in the log of a CI.
        console.print(&mask(&changes.iter().map(diff).collect::<String>()).0);
        return Done::Shown(EXIT_FOUND);
    }
    let look = || {
        let places = places::places(world, &lint_paths(world, ask.project, arguments));
        ask.review(&places).1
    };
    let (mut made, mut current, mut refused) = (0, None, BTreeSet::new());
    for _ in 0..ROUNDS_MAX {
        let before = current.as_ref().unwrap_or(first);
        let mut changes = changes(&before.findings, wanted);
        changes.retain(|it| !refused.contains(&it.source.name));
        if changes.is_empty() {
            break;
        }
        let (written, unwritten): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|it| put(world, console, it, &it.text));
        refused.extend(unwritten.into_iter().map(|it| it.source.name.clone()));
        let mut after = look();
        let worse = made_worse(before, &after);
        // A fix can cause the new error in its own file, or in another file of the pack.
        let broken = |it: &Change| worse.contains_key(it.source.name.as_str());
        let nowhere = !worse.is_empty() && !written.iter().any(broken);
        let (bad, good): (Vec<Change>, Vec<Change>) =
            written.into_iter().partition(|it| nowhere || broken(it));
        for change in &bad {
            // Never worse than before: what was there comes back.
            put(world, console, change, &change.source.text);
            let name = &change.source.name;
            console.eprint(&format!(
                "{name}: fixes reverted, because they break the file ({})",
                worse.values().flatten().copied().collect::<Vec<_>>().join("; ")
            ));
            refused.insert(name.clone());
        }
        if !bad.is_empty() {
            after = look();
        }
        made += good.iter().map(|it| it.fixes).sum::<usize>();
        current = Some(after);
    }
    console.eprint(&format!("fixes applied: {made}"));
    Done::Again(current.unwrap_or_else(look))
}

/// Explains why `--diff` prints nothing.
fn nothing_to_show(review: &LintReview, all: bool) -> String {
    let fixes = review.findings.iter().filter(|it| it.fix.is_some()).count();
    match (review.findings.len(), fixes) {
        (0, _) => "no findings".to_owned(),
        (found, more @ 1..) if !all => {
            format!("findings: {found}, none with a safe fix; `--fix=all` shows {more} more")
        }
        (found, _) => format!("findings: {found}, none with a fix"),
    }
}

/// Returns the files with more errors than before, and their new errors. A fixed error can reveal another one, so only
/// the number of errors counts. An error of syntax hides any number of others: without it, a file is better.
fn made_worse<'r>(
    before: &'r LintReview,
    after: &'r LintReview,
) -> BTreeMap<&'r str, Vec<&'r str>> {
    let errors = |review: &'r LintReview| {
        review.findings.iter().filter(|it| it.level == Level::Error).collect::<Vec<_>>()
    };
    let (old, new) = (errors(before), errors(after));
    let rank = |all: &[&Diagnostic], file: &str| {
        let own: Vec<_> = all.iter().filter(|it| it.span.source.name == file).collect();
        let of_rule = |name: &str| own.iter().filter(|it| it.code == name).count();
        (of_rule("yaml-syntax"), of_rule("expression-syntax"), own.len())
    };
    let mut worse: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for finding in &new {
        let (file, message) = (finding.span.source.name.as_str(), finding.message.as_str());
        let is_same = |it: &&Diagnostic| it.span.source.name == file && it.message == message;
        if !old.iter().any(is_same) && rank(&new, file) > rank(&old, file) {
            worse.entry(file).or_default().push(message);
        }
    }
    worse
}

fn put(world: &dyn World, console: &mut Console<'_>, change: &Change, text: &str) -> bool {
    let path = Path::new(&change.source.name);
    let written = world.write(path, text.as_bytes());
    if let Err(error) = &written {
        console.eprint(&format!("{}: {error}", change.source.name));
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
