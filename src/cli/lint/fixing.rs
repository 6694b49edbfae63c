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

/// Rounds of fixing: a fix may uncover another one, and after one did harm, each fix has its own round.
const ROUNDS_MAX: usize = 40;
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
    let (refused, unwritten) = (BTreeSet::new(), BTreeSet::new());
    let mut plan = FixPlan { wanted: &wanted, refused, unwritten, is_single: false };
    let (mut made, mut current) = (0, None);
    for _ in 0..ROUNDS_MAX {
        let before = current.as_ref().unwrap_or(first);
        let Some(round) = plan.next(before) else { break };
        let FixRound { changes, single } = round;
        let (changes, unwritten): (Vec<Change>, Vec<Change>) =
            changes.into_iter().partition(|it| put(world, console, it, &it.text));
        plan.unwritten.extend(unwritten.into_iter().map(|it| it.source.name.clone()));
        let after = look();
        let worse = made_worse(before, &after);
        if worse.is_empty() {
            made += changes.iter().map(|it| it.fixes).sum::<usize>();
            current = Some(after);
            continue;
        }
        // Never worse than before: what was there comes back. A fix can cause the new error in another file of the pack.
        for change in &changes {
            put(world, console, change, &change.source.text);
        }
        match single {
            None => plan.is_single = true,
            Some(fix) => {
                let files: Vec<&str> = changes.iter().map(|it| it.source.name.as_str()).collect();
                let errors: Vec<&str> = worse.values().flatten().copied().collect();
                console.eprint(&format!(
                    "{}: fix reverted, because it breaks the pack ({})",
                    files.join(", "),
                    errors.join("; ")
                ));
                plan.refused.insert(fix);
            }
        }
        current = Some(look());
    }
    let last = current.unwrap_or_else(look);
    console.eprint(&format!("fixes applied: {made}"));
    if plan.next(&last).is_some() {
        console.eprint("some fixes are left; run the command again to apply them");
    }
    Done::Again(last)
}

/// Which fixes are made next: all of them, or one at a time after some of them did harm.
struct FixPlan<'w> {
    wanted: &'w dyn Fn(&Fix) -> bool,
    /// Fixes that did harm.
    refused: BTreeSet<FixText>,
    /// Files that cannot be written.
    unwritten: BTreeSet<String>,
    is_single: bool,
}

/// A fix by its file and its texts, which a change at another place does not move.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FixText {
    file: String,
    edits: Vec<(String, String)>,
}

impl FixText {
    fn of(fix: &Fix) -> Self {
        let file = fix.edits.first().map(|(span, _)| span.source.name.clone());
        let edits = fix.edits.iter().map(|(span, new)| (span.text().to_owned(), new.clone()));
        Self { file: file.unwrap_or_default(), edits: edits.collect() }
    }
}

/// The changes of one round.
struct FixRound {
    changes: Vec<Change>,
    /// The only fix of the round.
    single: Option<FixText>,
}

impl FixPlan<'_> {
    /// Returns the next changes. `None` if no fix is left.
    fn next(&self, review: &LintReview) -> Option<FixRound> {
        let is_left = |fix: &Fix| {
            let text = FixText::of(fix);
            let is_refused = self.refused.contains(&text) || self.unwritten.contains(&text.file);
            (self.wanted)(fix) && !is_refused
        };
        if !self.is_single {
            let changes = changes(&review.findings, is_left);
            return (!changes.is_empty()).then_some(FixRound { changes, single: None });
        }
        let fixes = review.findings.iter().filter_map(|it| it.fix.as_ref());
        fixes.filter(|it| is_left(it)).find_map(|fix| {
            let own = FixText::of(fix);
            let changes = changes(&review.findings, |it| FixText::of(it) == own);
            (!changes.is_empty()).then_some(FixRound { changes, single: Some(own) })
        })
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use policyd_yaml::{Source, Span};

    /// A finding whose fix removes a word of a file.
    fn finding(source: &Arc<Source>, word: &str) -> Diagnostic {
        let start = source.text.find(word).unwrap();
        let span = Span { source: Arc::clone(source), start, end: start + word.len() };
        let fix = Fix { safe: true, edits: vec![(span.clone(), String::new())] };
        Diagnostic { fix: Some(fix), ..Diagnostic::error("x", span, "x") }
    }

    #[test]
    fn after_harm_each_fix_has_its_own_round_and_only_the_harmful_one_is_refused() {
        let text = "one two\n".to_owned();
        let source = Arc::new(Source { name: "guards.yaml".to_owned(), text });
        let findings = vec![finding(&source, "one"), finding(&source, "two")];
        let review = LintReview { findings, ..LintReview::default() };
        let (refused, unwritten) = (BTreeSet::new(), BTreeSet::new());
        let mut plan = FixPlan { wanted: &|_| true, refused, unwritten, is_single: false };
        let texts = |round: &FixRound| -> Vec<String> {
            round.changes.iter().map(|it| it.text.clone()).collect()
        };
        assert_eq!(texts(&plan.next(&review).unwrap()), [" \n"]);
        plan.is_single = true;
        let first = plan.next(&review).unwrap();
        assert_eq!(texts(&first), [" two\n"]);
        plan.refused.extend(first.single);
        let second = plan.next(&review).unwrap();
        assert_eq!(texts(&second), ["one \n"]);
        plan.refused.extend(second.single);
        assert!(plan.next(&review).is_none());
    }
}
