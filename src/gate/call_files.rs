//! What the disk and git know of the files of a tool call: their texts before and after the call, whether they exist,
//! and whether git has them. Read only if a guard names such a fact; every read is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::context::GateContext;
use super::file_text::read_text;
use super::project_files;
use policyd_base::limits::{CALL_PATHS_MAX, CHANGED_TEXTS_MAX};
use policyd_fact_table::FactError;
use policyd_fact_table::call_facts::CallFacts;
use policyd_fact_table::source::{FactSource, FactSources};
use policyd_fact_table::text_facts::{ChangedText, DiskFacts, KnownText, PathState, ReadText};
use policyd_facts::call::text_changes::{ChangedLines, ContentChange, plain};
use policyd_facts::call::{Access, FileAccess};
use policyd_policy::guards::Guard;
use policyd_probe::git::{Git, NO_SUBMODULE_TREES};
use policyd_shell::vocabulary::ShellVocabulary;
use policyd_workspace::checkout;
use policyd_world::WorldError;

/// Time for all questions to git about one call.
const TIME_MAX: Duration = Duration::from_millis(300);
/// Bytes of git's answer. What follows is unknown.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Checkouts that git is asked about.
const CHECKOUTS_MAX: usize = 4;

/// Reads what guards ask about files.
pub(super) struct DiskReader<'a> {
    pub(super) context: &'a GateContext<'a>,
    pub(super) call_facts: &'a CallFacts,
}

impl DiskReader<'_> {
    /// Reads what these guards ask about the files of the call and of the project.
    pub(super) fn read(&self, guards: &[&Guard]) -> DiskFacts {
        let sources = guards.iter().map(|it| it.sources);
        let sources = sources.fold(FactSources::default(), FactSources::union);
        let mut facts = DiskFacts::default();
        if sources.contains(FactSource::ChangedTexts) {
            facts.texts = self.changed_texts();
        }
        if sources.has_some(FactSources::PATH_STATES) {
            facts.states = self.states(sources);
        }
        if sources.has_some(FactSources::PROJECT_FILES) {
            let (world, root) = (self.context.world, &self.context.project.root);
            project_files::read_for_guards(world, root, sources, guards, &mut facts);
        }
        facts
    }

    /// Returns how the call changes the texts of files.
    fn changed_texts(&self) -> BTreeMap<String, ChangedText> {
        let (event, call) = (&self.context.request.event, &self.call_facts.call);
        let tool = event.tool_name.as_deref().unwrap_or_default();
        let is_listed = self.context.words.lens.is_edit_tool(tool);
        let changes = call.text_changes(&event.tool_input, is_listed);
        let by_path = |path: &str| -> Option<String> {
            let environment = &self.call_facts.around;
            environment.known_place(path, Some(&environment.folder)).absolute
        };
        let mut texts = BTreeMap::new();
        for file in call.files.iter().filter(|it| it.does != Access::Read) {
            let place = &file.place;
            let Some(path) = place.absolute.as_ref().filter(|_| !place.open && !place.glob) else {
                continue;
            };
            if texts.contains_key(path) {
                continue;
            }
            if texts.len() >= CHANGED_TEXTS_MAX {
                break;
            }
            let text = match event.kind.is_before_call() {
                true => {
                    let change = changes.get(&place.written).unwrap_or(&ContentChange::Unknown);
                    let patch = if let ContentChange::Patch(it) = change { Some(it) } else { None };
                    let from = patch.and_then(|it| it.from.as_deref()).and_then(by_path);
                    self.changed_text(path, from.as_deref(), file, change)
                }
                false => all_unknown("the call changed it already"),
            };
            texts.insert(path.clone(), text);
        }
        texts
    }

    /// Returns the text of a file before and after the call. A patch that moves a file changes the text of `from`.
    fn changed_text(
        &self,
        path: &str,
        from: Option<&str>,
        file: &FileAccess,
        change: &ContentChange,
    ) -> ChangedText {
        let before = read_text(self.context.world, Path::new(path));
        let is_of_file = |it: &&FileAccess| it.place.absolute.as_deref() == Some(path);
        let mut accesses = self.call_facts.call.files.iter().filter(is_of_file);
        let is_deleted = match file.program {
            Some(_) => accesses.all(|it| it.does.removes()),
            None => *change == ContentChange::Gone,
        };
        if file.program.is_some() {
            let unknown = all_unknown("what a command line writes into a file is not known");
            let after = unknown.after.filter(|_| !is_deleted);
            return ChangedText { before, after, ..unknown };
        }
        let source = from.map(|it| read_text(self.context.world, Path::new(it)));
        let source = source.as_ref().unwrap_or(&before);
        let (after, lines) = texts_behind(change, source, &file.place.written);
        let (added, removed) = match lines {
            Ok(lines) => (Ok(lines.added), Ok(lines.removed)),
            Err(why) => (Err(why.clone()), Err(why)),
        };
        ChangedText { before, after: Some(after).filter(|_| !is_deleted), added, removed }
    }

    /// Returns what the disk and git know of the paths that the call names.
    fn states(&self, sources: FactSources) -> BTreeMap<String, PathState> {
        let (call, environment) = (&self.call_facts.call, &self.call_facts.around);
        let mut paths: BTreeSet<String> = BTreeSet::new();
        paths.extend(call.files.iter().filter_map(|it| it.place.absolute.clone()));
        for program in &call.programs {
            let operands = program.args.iter().filter(|it| !it.text.starts_with('-'));
            let places = operands.map(|it| program.place(it, false, environment));
            paths.extend(places.filter_map(|it| it.absolute));
        }
        let paths: Vec<String> = paths.into_iter().take(CALL_PATHS_MAX).collect();
        let mut states: BTreeMap<String, PathState> = BTreeMap::new();
        for path in &paths {
            let exists = match self.context.world.entry(Path::new(path)) {
                Ok(_) => Some(true),
                Err(WorldError::NotFound) => Some(false),
                Err(_) => None,
            };
            states.insert(path.clone(), PathState { exists, ..PathState::default() });
        }
        if sources.contains(FactSource::TrackedPaths)
            || sources.contains(FactSource::UncommittedPaths)
        {
            self.ask_git(sources, &paths, &mut states);
        }
        states
    }

    /// Adds what git knows of paths.
    fn ask_git(
        &self,
        sources: FactSources,
        paths: &[String],
        states: &mut BTreeMap<String, PathState>,
    ) {
        let world = self.context.world;
        let mut tops: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
        // Paths of each checkout, as git names them.
        let mut checkouts: BTreeMap<PathBuf, Vec<(&String, String)>> = BTreeMap::new();
        for path in paths {
            let location = self.call_facts.around.real.get(path).map_or(path, |it| &it.lies);
            let folder = Path::new(location).parent().unwrap_or(Path::new("/")).to_path_buf();
            let top = tops.entry(folder).or_insert_with_key(|it| checkout::around(world, it));
            let below =
                top.as_ref().and_then(|it| Path::new(location).strip_prefix(it).ok()?.to_str());
            if let (Some(top), Some(below)) = (top.as_ref(), below) {
                checkouts.entry(top.clone()).or_default().push((path, below.to_owned()));
            } else if let Some(state) = states.get_mut(path) {
                // git has nothing outside of a checkout.
                state.tracked = Some(false);
                (state.uncommitted, state.modified) = (Some(false), Some(false));
            }
        }
        let end = world.elapsed().saturating_add(TIME_MAX);
        for (top, paths) in checkouts.iter().take(CHECKOUTS_MAX) {
            let names: Vec<&str> = paths.iter().map(|it| it.1.as_str()).collect();
            let tracked = sources
                .contains(FactSource::TrackedPaths)
                .then(|| checkout::tracked(world, top, &names));
            let uncommitted = sources
                .contains(FactSource::UncommittedPaths)
                .then(|| self.uncommitted(top, &names, end));
            for (at, (path, _)) in paths.iter().enumerate() {
                let Some(state) = states.get_mut(*path) else { continue };
                state.tracked = tracked.as_ref().and_then(|it| it.as_ref()?.get(at).copied());
                let change = uncommitted.as_ref().and_then(|it| it.as_ref()?.get(at).copied());
                let change = change.unwrap_or_default();
                (state.uncommitted, state.modified) = (change.uncommitted, change.modified);
            }
        }
    }

    /// Returns the changes of paths of a checkout. `None` if git does not answer.
    fn uncommitted(&self, top: &Path, paths: &[&str], end: Duration) -> Option<Vec<GitChanges>> {
        let (world, root) = (self.context.world, &self.context.project.root);
        let git = Git::new(world, top, root, TIME_MAX, ANSWER_BYTES_MAX).until(end);
        let literal: Vec<String> = paths.iter().map(|it| format!(":(top,literal){it}")).collect();
        let words =
            ["status", "--porcelain", "-z", "--untracked-files=all", NO_SUBMODULE_TREES, "--"];
        let words: Vec<&str> =
            words.into_iter().chain(literal.iter().map(String::as_str)).collect();
        let answer = git.ask(&words)?;
        let listed = changed_paths(&answer.stdout);
        let is_at = |listed: &str, path: &str| {
            listed == path || listed.strip_prefix(path).is_some_and(|it| it.starts_with('/'))
        };
        let known = |found: bool| (found || !answer.truncated).then_some(found);
        let change = |path: &&str| GitChanges {
            uncommitted: known(listed.iter().any(|it| is_at(&it.path, path))),
            modified: known(listed.iter().any(|it| !it.is_new && is_at(&it.path, path))),
        };
        Some(paths.iter().map(change).collect())
    }
}

/// What git knows of the changes of a path. `None` is unknown.
#[derive(Clone, Copy, Default)]
struct GitChanges {
    uncommitted: Option<bool>,
    modified: Option<bool>,
}

/// A path with changes that are not committed.
struct ListedPath {
    path: String,
    /// Whether git does not track it.
    is_new: bool,
}

/// Returns the paths in the output of `git status --porcelain -z`. Of a renamed file, both names are listed.
fn changed_paths(output: &[u8]) -> Vec<ListedPath> {
    let text = String::from_utf8_lossy(output);
    let mut parts = text.split('\0').filter(|it| !it.is_empty());
    let mut paths = Vec::new();
    while let Some(part) = parts.next() {
        let Some((state, path)) = part.split_at_checked(3) else { continue };
        let is_new = state.starts_with("??");
        paths.push(ListedPath { path: path.to_owned(), is_new });
        if state.contains(['R', 'C']) {
            paths.extend(parts.next().map(|it| ListedPath { path: it.to_owned(), is_new }));
        }
    }
    paths
}

/// A text of which nothing is known.
fn all_unknown(why: &str) -> ChangedText {
    let unknown = || Err(why.into());
    let lines = || Err(why.into());
    ChangedText { before: unknown(), after: Some(unknown()), added: lines(), removed: lines() }
}

/// Returns the text of a file behind a change, and the lines that differ. `shown` is its path in messages.
fn texts_behind(
    change: &ContentChange,
    source: &ReadText,
    shown: &str,
) -> (ReadText, Result<ChangedLines, FactError>) {
    // The new text does not depend on the old one, which need not be known.
    let written = if let ContentChange::Whole(text) = change {
        Some(Ok(KnownText::whole(&plain(text))))
    } else {
        None
    };
    let source = match source {
        Ok(source) if source.is_whole => source,
        Ok(_) => {
            let why = FactError::from(format!("`{shown}` is too long to be read to its end"));
            return (written.unwrap_or_else(|| Err(why.clone())), Err(why));
        }
        Err(why) => return (written.unwrap_or_else(|| Err(why.clone())), Err(why.clone())),
    };
    let after = change.apply(&source.text).map(|it| KnownText::whole(&it));
    let after =
        after.ok_or_else(|| format!("how the call changes `{shown}` cannot be known").into());
    let lines = change.lines(&source.text);
    let why =
        || FactError::from(format!("which lines of `{shown}` the call changes cannot be known"));
    (after, lines.ok_or_else(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_lists_changed_paths_between_null_bytes() {
        let output = b" M a b.rs\0R  new\0old\0?? c/d\0";
        let listed = changed_paths(output);
        let listed: Vec<(&str, bool)> =
            listed.iter().map(|it| (it.path.as_str(), it.is_new)).collect();
        assert_eq!(listed, [("a b.rs", false), ("new", false), ("old", false), ("c/d", true)]);
        assert!(changed_paths(b"").is_empty());
    }
}
