//! What only the disk knows of a tool call: where the symbolic links in its paths lead, and which files the patches
//! change that it would apply. Read only if a guard reads paths. Every read is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::read_files;
use policyd_base::limits::{CALL_PATCH_BYTES_MAX, CALL_PATCHES_MAX, CALL_PATHS_MAX};
use policyd_facts::call::{
    Access, Call, CallDisk, CallEnvironment, FileAccess, LinkTarget, ResolvedPath, ScriptFile,
    normal,
};
use policyd_facts::glob::word_matches;
use policyd_shell::limits::SCRIPT_TEXT_MAX;
use policyd_shell::path::{in_folder, in_shell};
use policyd_world::{FileKind, World, WorldError};

/// Most directories above a path that are resolved if the path itself does not exist.
const STEPS_MAX: usize = 8;

/// Adds to a call what the disk knows of it.
pub(super) fn inspect_paths(world: &dyn World, call: &mut Call, environment: &mut CallEnvironment) {
    read_files::expand_patterns(world, call);
    if environment.program.is_empty() {
        let program = world.program().and_then(|it| world.real_path(&it).ok());
        let program = program.map(|it| it.display().to_string()).unwrap_or_default();
        environment.program = in_shell(&program).into_owned();
    }
    let patches = call.patches.clone();
    for patch in patches.iter().take(CALL_PATCHES_MAX) {
        match world.read(Path::new(&patch.path), CALL_PATCH_BYTES_MAX) {
            Ok(bytes) => call.apply(patch, &String::from_utf8_lossy(&bytes), environment),
            Err(WorldError::TooLarge(_)) => call.over("a patch is too long"),
            Err(_) => {}
        }
    }
    let mut rest = patches.iter().skip(CALL_PATCHES_MAX);
    if rest.any(|it| world.stat(Path::new(&it.path)).is_ok()) {
        call.over("it applies too many patches");
    }
    environment.folds_case =
        [&environment.project, &environment.home].iter().any(|it| folds_case(world, it));
    if environment.folds_case {
        for file in &mut call.files {
            file.place.folded = file.place.absolute.as_deref().map(|it| environment.folded(it));
        }
    }
    let CallEnvironment { project, folder, home, transcript, .. } = &*environment;
    let places = [project, folder, home, transcript].into_iter().chain(&environment.temporary);
    let mut paths: Vec<String> = places.filter(|it| !it.is_empty()).cloned().collect();
    let bound = paths.len() + CALL_PATHS_MAX;
    let mut unresolved: BTreeMap<String, String> = BTreeMap::new();
    // Behind a link, `..` leads to another directory, so the disk resolves the path with its `..`.
    let mut absolute = |path: ResolvedPath| {
        unresolved.extend(path.absolute.clone().zip(path.back));
        path.absolute
    };
    paths.extend(call.files.iter().filter_map(|it| absolute(it.place.clone())));
    for program in &call.programs {
        let folder = program.folder.as_deref();
        let operands = program.args.iter().filter(|it| !it.text.starts_with('-'));
        paths.extend(operands.filter_map(|it| absolute(environment.place(it, folder))));
    }
    paths.extend(call.trees.iter().filter_map(|it| absolute(it.place.clone())));
    let created = call.trees.iter().filter(|it| it.if_missing);
    let created = created.filter_map(|it| it.place.absolute.as_deref()).take(CALL_PATHS_MAX);
    let is_missing = |it: &&str| matches!(world.stat(Path::new(it)), Err(WorldError::NotFound));
    environment.missing = created.filter(is_missing).map(str::to_owned).collect();
    environment.replaced = replaced_files(world, call);
    environment.linked = linked_globs(world, call, environment);
    let in_windows = environment.has_backslashes;
    let mut queried = QueriedPaths { world, in_windows, known: BTreeMap::new() };
    let mut real = BTreeMap::new();
    for path in paths {
        if real.contains_key(&path) {
            continue;
        }
        if real.len() >= bound {
            call.over("it names too many files");
            break;
        }
        let leads = queried.leads(unresolved.get(&path).unwrap_or(&path), STEPS_MAX);
        let lies = match path.rsplit_once('/') {
            Some((folder, name)) if !folder.is_empty() => {
                in_folder(&queried.leads(folder, STEPS_MAX), name)
            }
            _ => path.clone(),
        };
        real.insert(path, LinkTarget { lies, leads });
    }
    real.retain(|path, it| *path != it.lies || *path != it.leads);
    environment.real = real;
}

/// Names of a directory that are looked at for a glob.
const GLOB_NAMES_MAX: usize = 1000;
/// Globs of a call that are looked at.
const GLOBS_MAX: usize = 16;

/// Returns the globs in the project or among temporary files that can fit a link to a place outside, or whose files are not
/// known. A glob elsewhere is outside without a link.
fn linked_globs(world: &dyn World, call: &Call, environment: &CallEnvironment) -> BTreeSet<String> {
    let operands = call.programs.iter().flat_map(|program| {
        let folder = program.folder.as_deref();
        program.args.iter().filter(|it| it.glob).map(move |it| environment.place(it, folder))
    });
    let places = call.files.iter().map(|it| it.place.clone()).chain(operands);
    let globs: BTreeSet<String> =
        places.filter(|it| it.glob).filter_map(|it| it.absolute).collect();
    let is_linked = |(at, glob): &(usize, String)| {
        let Some((folder, pattern)) = glob.rsplit_once('/') else { return true };
        if environment.is_outside(folder) {
            return false;
        }
        if *at >= GLOBS_MAX || folder.contains(['*', '?', '[']) {
            return true;
        }
        let names = match world.list(Path::new(folder)) {
            Ok(names) => names,
            Err(WorldError::NotFound) => return false,
            Err(_) => return true,
        };
        let is_hidden = |it: &str| it.starts_with('.') && !pattern.starts_with('.');
        // Only `*` is read here, so that any name can fit another pattern.
        let fits = |it: &str| pattern.contains(['?', '[', '{']) || word_matches(pattern, it);
        let names: Vec<String> =
            names.into_iter().filter(|it| !is_hidden(it) && fits(it)).collect();
        let leads_out = |name: &String| {
            let path = Path::new(folder).join(name);
            let is_link = world.entry(&path).is_ok_and(|it| it.link.is_some());
            is_link
                && world
                    .real_path(&path)
                    .is_ok_and(|it| environment.is_outside(&it.to_string_lossy()))
        };
        names.len() > GLOB_NAMES_MAX || names.iter().any(leads_out)
    };
    globs.into_iter().enumerate().filter(is_linked).map(|(_, glob)| glob).collect()
}

/// Returns the existing files whose content a call replaces. What a glob of the line matches exists; the names of copies in
/// another directory can be new.
fn replaced_files(world: &dyn World, call: &Call) -> BTreeSet<String> {
    let written = call.files.iter().filter(|it| it.does == Access::Write && !it.keeps);
    let paths = written.filter_map(|it| Some((it, it.place.absolute.as_ref()?)));
    let exists = |(it, path): &(&FileAccess, &String)| {
        let program = it.program.and_then(|it| call.programs.get(it));
        let mut words = program.into_iter().flat_map(|it| it.args.iter().chain(&it.writes));
        (path.contains('*') && words.any(|word| word.text == it.place.written))
            || world.stat(Path::new(path)).is_ok_and(|it| it.kind == FileKind::File)
    };
    paths.take(CALL_PATHS_MAX).filter(exists).map(|it| it.1.clone()).collect()
}

/// The disk for the analysis of a call.
#[derive(Clone, Copy)]
pub(super) struct GateDisk<'a> {
    pub(super) world: &'a dyn World,
    /// The directories in which the call happens.
    pub(super) environment: &'a CallEnvironment,
}

impl std::fmt::Debug for GateDisk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GateDisk")
    }
}

impl CallDisk for GateDisk<'_> {
    fn is_directory(&self, path: &str) -> Option<bool> {
        match self.world.stat(Path::new(path)) {
            Ok(found) => Some(found.kind == FileKind::Folder),
            Err(WorldError::NotFound) => Some(false),
            Err(_) => None,
        }
    }

    fn exists(&self, path: &str) -> Option<bool> {
        match self.world.entry(Path::new(path)) {
            Ok(_) => Some(true),
            Err(WorldError::NotFound) => Some(false),
            Err(_) => None,
        }
    }

    fn script(&self, path: &str) -> ScriptFile {
        if !self.has_script(path) {
            return ScriptFile::Absent;
        }
        let file = read_script(self.world, Path::new(path));
        // A link can lead to a program of the system.
        let real = || self.world.real_path(Path::new(path));
        let is_foreign = |it: &Path| !self.has_script(&it.to_string_lossy());
        match file {
            ScriptFile::Unread(_) if real().is_ok_and(|it| is_foreign(&it)) => ScriptFile::Absent,
            file @ (ScriptFile::Absent
            | ScriptFile::Text(_)
            | ScriptFile::Program
            | ScriptFile::Unread(_)) => file,
        }
    }

    fn matches(&self, pattern: &str) -> Option<Vec<String>> {
        let (folder, pattern) = pattern.rsplit_once('/')?;
        if folder.contains(['*', '?', '[']) {
            return None;
        }
        match matching_paths(self.world, folder, pattern) {
            Ok(found) => (found.len() <= GLOB_SCRIPTS_MAX).then_some(found),
            Err(WorldError::NotFound) => Some(Vec::new()),
            Err(_) => None,
        }
    }
}

impl GateDisk<'_> {
    /// Returns whether a path is one of a script of the project or of the user. Other files belong to the system.
    fn has_script(&self, path: &str) -> bool {
        let CallEnvironment { project, folder, home, temporary, .. } = self.environment;
        let mut places = [project, folder, home].into_iter().chain(temporary);
        places.any(|it| !it.is_empty() && Path::new(path).starts_with(it))
    }
}

/// Returns the paths in a directory whose names fit a pattern of a shell.
pub(super) fn matching_paths(
    world: &dyn World,
    folder: &str,
    pattern: &str,
) -> Result<Vec<String>, WorldError> {
    let pattern = without_sets(pattern);
    let is_shown = |it: &String| !it.starts_with('.') || pattern.starts_with('.');
    let names = world.list(Path::new(folder))?.into_iter();
    let names = names.filter(|it| is_shown(it) && word_matches(&pattern, it));
    Ok(names.map(|it| in_folder(folder, &it)).collect())
}

/// Files that a glob may fit if the call runs them.
const GLOB_SCRIPTS_MAX: usize = 64;
/// Bytes of a file in which the header of a program lies.
const HEADER_BYTES: usize = 4096;

/// Reads a file that a call runs. Bytes that are not UTF-8 are replaced.
fn read_script(world: &dyn World, path: &Path) -> ScriptFile {
    match world.read(path, SCRIPT_TEXT_MAX) {
        Ok(bytes) if is_program(&bytes) => ScriptFile::Program,
        Ok(bytes) if bytes.contains(&0) => ScriptFile::Unread("it contains a NUL byte"),
        Ok(bytes) => ScriptFile::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Err(WorldError::NotFound) => ScriptFile::Absent,
        Err(WorldError::TooLarge(_)) => {
            let mut header = vec![0; HEADER_BYTES];
            let read = world.open(path).and_then(|mut it| it.read_at(0, &mut header));
            header.truncate(read.unwrap_or_default());
            match is_program(&header) {
                true => ScriptFile::Program,
                false => ScriptFile::Unread("it is longer than 256 KB"),
            }
        }
        Err(_) => ScriptFile::Unread("it cannot be read"),
    }
}

/// Returns whether a file begins with the header of a compiled program: ELF, Mach-O, or PE. A shell refuses such a file only if a
/// NUL byte is in its first line.
fn is_program(bytes: &[u8]) -> bool {
    let line = bytes.split(|it| *it == b'\n').next().unwrap_or_default();
    let is_binary = line.iter().take(80).any(|it| *it == 0);
    let is_elf = matches!(bytes, [0x7f, b'E', b'L', b'F', 1 | 2, 1 | 2, 1, ..]);
    let is_mach = matches!(
        bytes,
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..]
            | [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..]
            | [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 1..=8, ..]
    );
    let offset = bytes.get(0x3c..0x40).and_then(|it| <[u8; 4]>::try_from(it).ok());
    let offset = offset.and_then(|it| usize::try_from(u32::from_le_bytes(it)).ok());
    let pe = offset.and_then(|it| bytes.get(it..)?.get(..4));
    let is_pe = bytes.starts_with(b"MZ") && pe == Some(b"PE\0\0");
    is_binary && (is_elf || is_mach || is_pe)
}

/// Returns a glob in which each `[…]` is a `?`, which fits the same names and more.
fn without_sets(glob: &str) -> String {
    let mut out = String::new();
    let mut rest = glob;
    while let Some((before, behind)) = rest.split_once('[') {
        let Some((_, after)) = behind.split_once(']') else { break };
        out.push_str(before);
        out.push('?');
        rest = after;
    }
    out + rest
}

/// Returns whether a directory is also found by the other case of its letters. Where the system tells no identity, two
/// directories that differ only by case count as one.
fn folds_case(world: &dyn World, folder: &str) -> bool {
    let identity = |path: &str| world.stat(Path::new(path)).map(|it| it.identity).ok();
    let other = case_swapped(folder).and_then(|it| identity(&it));
    other.is_some() && other == identity(folder)
}

/// Returns a path with the other case of the letters in its last component that has letters.
fn case_swapped(path: &str) -> Option<String> {
    let end = path.rfind(|c: char| c.is_ascii_alphabetic())?;
    let start = path.get(..end)?.rfind('/').map_or(0, |it| it + 1);
    let swapped = path.get(start..)?.chars().map(|c| match c.is_ascii_lowercase() {
        true => c.to_ascii_uppercase(),
        false => c.to_ascii_lowercase(),
    });
    Some(path.get(..start)?.chars().chain(swapped).collect())
}

/// Resolves paths. Each is resolved once.
struct QueriedPaths<'a> {
    world: &'a dyn World,
    /// Whether the machine's paths are those of Windows.
    in_windows: bool,
    known: BTreeMap<String, String>,
}

impl QueriedPaths<'_> {
    /// Returns a path of the disk as shells write it.
    fn written(&self, path: &Path) -> String {
        let path = path.display().to_string();
        if self.in_windows { in_shell(&path).into_owned() } else { path }
    }

    /// Returns the target of a link, as it is written in the link.
    fn link(&self, path: &str) -> Option<String> {
        let entry = self.world.entry(Path::new(path)).ok()?;
        entry.link.map(|it| self.written(&it))
    }

    /// Returns where a path leads. If it does not exist, the directory above it is resolved.
    fn leads(&mut self, path: &str, steps: usize) -> String {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let found = match (self.world.real_path(Path::new(path)), path.rsplit_once('/')) {
            (Ok(real), _) => self.written(&real),
            (Err(_), Some((folder, name))) if steps > 0 => match self.link(path) {
                // A link that leads to nothing yet: what is written to it is made there.
                Some(target) if target.starts_with('/') => self.leads(&target, steps - 1),
                Some(target) => self.leads(&format!("{folder}/{target}"), steps - 1),
                None if folder.is_empty() => path.to_owned(),
                None => in_folder(&self.leads(folder, steps - 1), name),
            },
            (Err(_), _) => path.to_owned(),
        };
        // Behind a folder that does not exist, `..` can be resolved by the text alone.
        let found = if found.contains("/..") { normal(&found) } else { found };
        self.known.insert(path.to_owned(), found.clone());
        found
    }
}
