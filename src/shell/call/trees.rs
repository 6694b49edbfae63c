//! Directory trees that a call writes: copies, archives, checkouts, mounts and links. Any file below the directory
//! may be written.
//!
//! Contains: the recognition of the directory.
//! Does not contain: writes of files that the call names (`files`).

use super::file_access::TreeWrite;
use super::files::{folder_of, is_remote, path_of_source};
use super::invocation::Invocation;
use super::paths::{CallEnvironment, PathMatchers};
use super::program_database::{FileEffect, OperandSelector};
use super::scanner::Scanner;
use super::shell_state::ShellState;
use super::shell_text::ShellText;
use super::tool_call::Call;
use super::written_files::FetchedTree;
use crate::path::in_folder;
use crate::shell::base_name;
use crate::vocabulary::ValueOptions;
use policyd_yaml::rows::Rows;

/// Options by which the target of a copy is never a directory that receives the source.
const EXACT_TARGET: [&str; 3] = ["-T", "--no-target-directory", "--no-dereference"];
/// Options by which an archive can name absolute paths.
const ANYWHERE: [&str; 2] = ["-P", "--absolute-names"];
/// Ends of a source whose content is copied, without the directory itself.
const CONTENT_ENDS: [&str; 4] = ["/", "/.", "/*", "/.*"];

impl Call {
    /// Returns whether a directory tree that the call writes may contain a file of some globs.
    #[must_use]
    pub fn overwrites(&self, globs: &PathMatchers, around: &CallEnvironment) -> bool {
        let is_written = |it: &&TreeWrite| {
            let path = it.place.absolute.as_deref().unwrap_or_default();
            !it.if_missing || around.missing.contains(path)
        };
        self.trees.iter().filter(is_written).any(|it| globs.may_lie_below(&it.place, around))
    }
}

impl Scanner<'_> {
    /// Adds the directory trees that a program writes by one row of the database.
    pub(super) fn record_trees(&mut self, row: &FileEffect, at: usize, scope: &mut ShellState) {
        let is_none = row.trees == OperandSelector::None && row.tree_options.is_empty();
        if is_none && !row.unpacks && !row.clones {
            return;
        }
        let Some(program) = self.call.programs.get(at).cloned() else { return };
        let values = self.context.lens.value_options();
        let trees = match row.clones {
            true => {
                cloned_directory(row, &program, values).map(|it| (it, false)).into_iter().collect()
            }
            false => trees_of(row, &program, values),
        };
        let here = match program.name.as_str() {
            "git" => folder_of(&program, self.context.around),
            _ => scope.folder.path.clone(),
        };
        let from = self.fetched_by(row, at, &program, scope);
        let trees = trees.into_iter().filter(|it| !row.remote || !is_remote(&it.0));
        for (file, if_missing) in trees {
            let place = self.resolve_from(&file, here.as_deref(), scope);
            if let (Some(path), false) = (&place.absolute, from.is_empty()) {
                let is_missing = self.context.disk.exists(path) != Some(true);
                let (path, from, is_new) = (path.clone(), from.clone(), row.clones || is_missing);
                if is_missing || !if_missing {
                    scope.files.add_fetched(FetchedTree { path, from, is_new });
                }
            }
            let tree = TreeWrite { place, if_missing };
            if !self.call.trees.contains(&tree) {
                self.call.trees.push(tree);
            }
        }
    }

    /// Returns the programs that bring the files of a directory from another machine: the program itself, and those whose
    /// output or file it unpacks. Empty if the files are of this machine.
    fn fetched_by(
        &self,
        row: &FileEffect,
        at: usize,
        program: &Invocation,
        scope: &ShellState,
    ) -> Vec<usize> {
        let values = self.context.lens.value_options();
        let operands = program.operands(values);
        // A clone of a directory of this machine is a copy.
        let is_path = |it: &&ShellText| {
            [".", "/", "~", "file://"].iter().any(|begin| it.text.starts_with(begin))
        };
        let is_local =
            row.clones && clone_operands(row, program, values).first().is_some_and(is_path);
        let is_sent = row.remote && operands.iter().any(|it| is_remote(it));
        if !is_local && (row.fetches || row.clones || is_sent) {
            return vec![at];
        }
        if !row.unpacks {
            return Vec::new();
        }
        // The archive is an operand, or the value of an option such as `-f`.
        let archives = program.args.iter().chain(&program.reads);
        let paths = archives.filter_map(|it| self.resolve_path(it, scope).absolute);
        let written = paths.filter_map(|it| Some(scope.files.content(&it)?.from.clone()));
        let mut from: Vec<usize> = written.flatten().chain(self.call.upstream(at)).collect();
        if !self.call.has_fetcher(&from) {
            return Vec::new();
        }
        from.push(at);
        from
    }

    /// Returns the programs that fetched the project in which a task runner works: `git clone URL && make -C project`.
    pub(super) fn fetched_project(&self, runner: &Invocation, scope: &ShellState) -> Vec<usize> {
        if scope.files.is_empty() || !self.context.lens.is_task_runner(&runner.name) {
            return Vec::new();
        }
        let options = ["-C", "--directory", "--prefix", "--dir", "--cwd", "--manifest-path"];
        let Some(folder) = self.task_folder(runner, &options, scope) else { return Vec::new() };
        let Some(tree) = scope.files.fetched_tree(&folder) else { return Vec::new() };
        let is_own = tree.path == folder || self.context.disk.exists(&folder) == Some(true);
        match is_own && !tree.is_new {
            true => Vec::new(),
            false => tree.from.clone(),
        }
    }
}

/// Returns the address and the directory that a program is given which fills a directory from an address.
fn clone_operands<'p>(
    row: &FileEffect,
    program: &'p Invocation,
    values: &Rows<ValueOptions>,
) -> Vec<&'p ShellText> {
    let pattern = row.programs.iter().find(|it| program.is(it, values));
    let own_words = pattern.map_or(0, |it| it.operands(&program.name, values));
    // What follows `--` is for git, if another program calls it: `gh repo clone a/b -- --depth 1`.
    let end = program.args.iter().position(|it| it.text == "--").filter(|_| program.name != "git");
    let after = end.map_or(0, |at| program.args.len().saturating_sub(at.saturating_add(1)));
    let operands = program.operands(values);
    let count = operands.len().saturating_sub(after);
    operands.into_iter().take(count).skip(own_words).collect()
}

/// Returns the directory that a program fills from an address: the operand behind it, or the last step of the address.
fn cloned_directory(
    row: &FileEffect,
    program: &Invocation,
    values: &Rows<ValueOptions>,
) -> Option<ShellText> {
    let operands = clone_operands(row, program, values);
    let address = match operands.as_slice() {
        [] => return None,
        [address] => *address,
        [_, directory, ..] => return Some((*directory).clone()),
    };
    let name = address.all()?.trim_end_matches('/');
    let name = name.strip_suffix("/.git").or_else(|| name.strip_suffix(".git")).unwrap_or(name);
    let name = name.rsplit(['/', ':']).next().filter(|it| !it.is_empty())?;
    Some(ShellText::known(name))
}

/// Returns the directories by a row, each with whether it must not exist yet.
fn trees_of(
    row: &FileEffect,
    program: &Invocation,
    values: &Rows<ValueOptions>,
) -> Vec<(ShellText, bool)> {
    let options = row.tree_options.iter();
    let given: Vec<ShellText> = options
        .flat_map(|it| program.values(it).chain(program.bundled_values(it, values)))
        .filter_map(host_folder)
        .collect();
    if row.unpacks {
        let here = given.is_empty().then(|| ShellText::known("."));
        // The archive decides where its files are written.
        let is_tar = program.name.ends_with("tar");
        let anywhere = is_tar && ANYWHERE.iter().any(|it| program.has(it, values));
        let root = anywhere.then(|| ShellText::known("/"));
        return given.into_iter().chain(here).chain(root).map(|it| (it, false)).collect();
    }
    // Subcommand words are not directories.
    let pattern = row.programs.iter().find(|it| program.is(it, values));
    let own_words = pattern.map_or(0, |it| it.operands(&program.name, values));
    let operands = program.operands(values).into_iter().skip(own_words);
    let operands: Vec<&ShellText> = operands.filter(|it| !given.contains(it)).collect();
    if row.read == OperandSelector::BeforeLast {
        let (targets, sources) = match (given.is_empty(), operands.split_last()) {
            (true, Some((last, before))) => (vec![(*last).clone()], before),
            (true, None) => (given, operands.as_slice()),
            (false, _) => (given, operands.as_slice()),
        };
        let copies = targets.into_iter().flat_map(|it| copies_into(it, sources, program, values));
        return copies.collect();
    }
    let count = operands.len();
    let chosen = operands.into_iter().enumerate().filter(|it| row.trees.takes(it.0, count));
    let chosen = chosen.map(|it| it.1.clone());
    chosen.chain(given).map(|it| (it, false)).collect()
}

/// Returns the directories that a copy into a target writes.
fn copies_into(
    target: ShellText,
    sources: &[&ShellText],
    program: &Invocation,
    values: &Rows<ValueOptions>,
) -> Vec<(ShellText, bool)> {
    let is_content = |it: &&&ShellText| match it.all() {
        Some(text) => {
            text == "." || text == "*" || CONTENT_ENDS.iter().any(|end| text.ends_with(end))
        }
        None => true,
    };
    let exact = EXACT_TARGET.iter().any(|it| program.has(it, values));
    if exact || sources.iter().any(|it| is_content(&it)) {
        return vec![(target, false)];
    }
    let below = |source: &&ShellText| {
        let name = base_name(path_of_source(source)?.trim_end_matches('/'));
        let path = in_folder(target.all()?, name);
        Some((ShellText { glob: source.glob, ..ShellText::known(path) }, false))
    };
    let named: Vec<(ShellText, bool)> = sources.iter().filter_map(below).collect();
    named.into_iter().chain([(target, true)]).collect()
}

/// Returns the directory of the host in a mount: `/src` in `/src:/dst:rw` and in
/// `type=bind,source=/src,target=/dst`. `None` if nothing can be written there.
fn host_folder(value: ShellText) -> Option<ShellText> {
    let text = value.text.as_str();
    if let Some((_, rest)) = text.split_once("source=").or_else(|| text.split_once("src=")) {
        let start = text.len().saturating_sub(rest.len());
        let end = rest.find(',').unwrap_or(rest.len());
        let is_read_only =
            text.split(',').any(|it| matches!(it, "readonly" | "ro" | "readonly=true"));
        let path = value.tail(start);
        let path = path.text.get(..end).map(ShellText::known)?;
        return (!is_read_only).then_some(path);
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.split([':', ',']).any(|it| it == "ro") => None,
        Some((folder, _)) if value.known_to >= folder.len() => Some(ShellText::known(folder)),
        Some(_) => None,
        None => Some(value),
    }
}
