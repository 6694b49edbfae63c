//! The files that a call reads by a pattern or through a directory, as the disk has them.

use std::collections::VecDeque;
use std::path::Path;

use policyd_fact_table::call_facts::CallFacts;
use policyd_facts::call::{Access, Call, FileAccess, ResolvedPath};
use policyd_facts::compiled::CompiledMatchers;
use policyd_shell::path::in_folder;
use policyd_world::{FileKind, World};

use super::on_disk::matching_paths;

/// Files that a pattern may fit to be looked at one by one.
const MATCHES_MAX: usize = 64;
/// Directories that are listed for a pattern.
const FOLDERS_MAX: usize = 64;
/// File kind whose values no agent reads without a question.
const SECRETS: &str = "secrets";
/// Directories that are listed to find a file of secrets.
const SEARCHED_MAX: usize = 500;
/// Directories whose files others wrote, or that hold no files of the user.
const SKIPPED: [&str; 6] = [".git", "node_modules", "vendor", ".venv", "venv", "target"];
/// Programs that leave out hidden files, and the options with which they do not.
const LEAVE_OUT_HIDDEN: [&str; 3] = ["rg", "ag", "git"];
const WITH_HIDDEN: [&str; 7] = ["--hidden", "-.", "-u", "-uu", "-uuu", "--no-ignore", "-U"];

/// Adds the files that each pattern of a read fits. `.*` alone says too little to be a file of secrets; on the disk it can be one.
/// A pattern that fits too many files stays as it is.
pub(super) fn expand_patterns(world: &dyn World, call: &mut Call) {
    let is_pattern = |it: &&FileAccess| it.does == Access::Read && it.place.glob && !it.place.open;
    let mut found = Vec::new();
    for access in call.files.iter().filter(is_pattern) {
        let matches = access.place.absolute.as_deref().and_then(|it| matching(world, it));
        found.extend(matches.into_iter().flatten().map(|path| {
            let place = ResolvedPath {
                written: path.clone(),
                absolute: Some(path),
                back: None,
                folded: None,
                glob: false,
                ..access.place.clone()
            };
            FileAccess { place, ..access.clone() }
        }));
    }
    call.files.extend(found);
}

/// Returns the files that a pattern of a shell fits. `None` if they are too many.
fn matching(world: &dyn World, pattern: &str) -> Option<Vec<String>> {
    let mut found = vec![String::new()];
    for step in pattern.split('/').filter(|it| !it.is_empty()) {
        if !step.contains(['*', '?', '[']) {
            found.iter_mut().for_each(|it| *it = format!("{it}/{step}"));
            continue;
        }
        if found.len() > FOLDERS_MAX {
            return None;
        }
        // A path that cannot be listed has no files.
        let below = found.iter().filter_map(|it| matching_paths(world, it, step).ok());
        found = below.flatten().collect();
    }
    (found.len() <= MATCHES_MAX).then_some(found)
}

/// Returns a file of secrets that a call reads through a directory, or why that cannot be known.
pub(super) fn secret_within(
    world: &dyn World,
    facts: &CallFacts,
    lens: &CompiledMatchers,
) -> Option<String> {
    let call = &facts.call;
    let reads = call.files.iter().filter(|it| matches!(it.does, Access::Read | Access::Move));
    reads.into_iter().find_map(|access| {
        let program = access.program.and_then(|it| call.programs.get(it));
        let leaves_out_hidden = program.is_some_and(|it| {
            LEAVE_OUT_HIDDEN.contains(&it.name.as_str())
                && !it.args.iter().any(|it| WITH_HIDDEN.contains(&it.text.as_str()))
        });
        let path = access.place.absolute.as_deref()?;
        let path = path.split_once("/\u{2026}").map_or(path, |it| it.0);
        // The directory that holds everything that a pattern fits.
        let whole = path.split('/').take_while(|it| !it.contains(['*', '?', '[']));
        let folder = whole.collect::<Vec<_>>().join("/");
        search(world, &folder, leaves_out_hidden, lens)
    })
}

/// Searches a directory for a file of secrets.
fn search(
    world: &dyn World,
    root: &str,
    leaves_out_hidden: bool,
    lens: &CompiledMatchers,
) -> Option<String> {
    let is_folder = |it: &str| {
        let path = Path::new(it);
        world.entry(path).is_ok_and(|it| it.link.is_none())
            && world.stat(path).is_ok_and(|it| it.kind == FileKind::Folder)
    };
    if !is_folder(root) {
        return None;
    }
    let mut open = VecDeque::from([root.to_owned()]);
    let mut left = SEARCHED_MAX;
    while let Some(folder) = open.pop_front() {
        if left == 0 {
            return Some(format!("`{root}` has too many directories to look for secrets"));
        }
        left -= 1;
        for name in world.list(Path::new(&folder)).unwrap_or_default() {
            if SKIPPED.contains(&name.as_str()) || (leaves_out_hidden && name.starts_with('.')) {
                continue;
            }
            let path = in_folder(&folder, &name);
            if is_folder(&path) {
                open.push_back(path);
            } else if lens.file_kinds(&path).contains(SECRETS) {
                return Some(format!("it reads `{path}`"));
            }
        }
    }
    None
}
