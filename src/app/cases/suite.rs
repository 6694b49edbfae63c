//! Finds packs and their case files: `tests/*.yaml` beside the policies, or those of the built-in
//! pack, which are embedded with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::CaseError;
use crate::folders;
use crate::packs::{folder, places};
use crate::workspace::enclosure::Enclosure;
use crate::workspace::project::Project;
use policyd_base::limits;
use policyd_cases::shape::FOLDER;
use policyd_cases::snapshot;
use policyd_policy::builtin;
use policyd_policy::load::Pack;
use policyd_world::{FileKind, World, WorldError};
use policyd_yaml::Source;

/// A pack and its case files.
pub struct Suite {
    /// The pack.
    pub pack: Pack,
    /// Folder of the case files; nothing where they are embedded.
    pub folder: Option<PathBuf>,
    /// The case files, in the order of their names.
    pub files: Vec<Arc<Source>>,
    /// Whether these are all there are.
    pub whole: bool,
}

/// The suites that paths name, those of the project's pack where none is named, and what could not
/// be read. A path names packs as it does for `lint`, the `tests` folder of one, or a case file.
pub fn find(world: &dyn World, project: &Project, paths: &[PathBuf]) -> (Vec<Suite>, Vec<String>) {
    let mut suites: Vec<Suite> = Vec::new();
    let mut unreadable: Vec<String> = Vec::new();
    // A pack that is named twice is read twice; its errors are reported once.
    let mut note = |missing: Vec<String>| {
        for why in missing {
            if !unreadable.contains(&why) {
                unreadable.push(why);
            }
        }
    };
    let mut take = |packs: &[PathBuf], only: Option<&Path>| {
        let (packs, missing) = places::find_all(world, project, packs);
        note(missing);
        for pack in packs {
            let (found, missing) = suite(world, pack, only);
            note(missing);
            match suites.iter_mut().find(|it| it.pack.name == found.pack.name) {
                Some(known) => {
                    known.whole |= found.whole;
                    known.files.extend(found.files);
                    known.files.sort_by(|one, other| one.name.cmp(&other.name));
                    known.files.dedup();
                }
                None => suites.push(found),
            }
        }
    };
    for path in paths {
        match case_files(world, path) {
            Some((pack, only)) => take(&[pack], only),
            None => take(std::slice::from_ref(path), None),
        }
    }
    if paths.is_empty() {
        take(&[], None);
    }
    (suites, unreadable)
}

/// The folder of the pack whose `tests` folder a path names, and the one file in it that is meant, from there.
fn case_files<'p>(world: &dyn World, path: &'p Path) -> Option<(PathBuf, Option<&'p Path>)> {
    let named = |it: &'p Path| Some(it).filter(|it| it.file_name().is_some_and(|it| it == FOLDER));
    let is_file = world.stat(path).is_ok_and(|it| it.kind == FileKind::File);
    let folder = if is_file { path.parent()? } else { path };
    let tests = named(folder).or_else(|| places::folder_of_cases(world, folder))?;
    // Another file, such as a snapshot, and a folder of cases mean all of them.
    let is_case = is_file && path.to_str().is_some_and(folder::is_yaml);
    let file = path.strip_prefix(tests).ok().filter(|_| is_case);
    Some((places::pack_beside(tests).to_path_buf(), file))
}

/// A pack with its case files, or with the one of them that is meant.
fn suite(world: &dyn World, pack: Pack, only: Option<&Path>) -> (Suite, Vec<String>) {
    let folder = (pack.name != builtin::NAME).then(|| Path::new(&pack.name).join(FOLDER));
    let (files, unreadable) = beside(world, &pack, only);
    (Suite { pack, folder, files, whole: only.is_none() }, unreadable)
}

/// The case files beside the policies of a pack, or the one of them that is meant (by its path from their folder),
/// in the order of their names; and what could not be read.
pub fn beside(
    world: &dyn World,
    pack: &Pack,
    only: Option<&Path>,
) -> (Vec<Arc<Source>>, Vec<String>) {
    if pack.name == builtin::NAME {
        let source = |(file, text): &(&str, &str)| Source {
            name: format!("{}/{FOLDER}/{file}", builtin::NAME),
            text: (*text).to_owned(),
        };
        let files = builtin::CASES.iter().filter(|(file, _)| folder::is_yaml(file));
        return (files.map(|it| Arc::new(source(it))).collect(), Vec::new());
    }
    let folder = Path::new(&pack.name).join(FOLDER);
    let names = match only {
        Some(file) => vec![file.to_path_buf()],
        None => all_beside(world, Path::new(&pack.name)),
    };
    let enclosure = Enclosure::around(world, Path::new(&pack.name));
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    for name in names.iter().take(limits::POLICY_FILES_MAX) {
        let path = folder.join(name);
        match read_text(world, &enclosure, &path) {
            Ok(text) => files.push(Arc::new(Source { name: path.display().to_string(), text })),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    (files, unreadable)
}

/// The case files of the pack in a folder, by their paths from its folder of cases. A link back to the pack
/// leads nowhere.
fn all_beside(world: &dyn World, pack: &Path) -> Vec<PathBuf> {
    let (cases, mut found) = (pack.join(FOLDER), Vec::new());
    let enclosure = Enclosure::around(world, pack);
    folders::walk(world, pack, |deep, path, names| {
        if deep == 0 {
            return Vec::from_iter(enclosure.admits(world, &cases).then(|| cases.clone()));
        }
        let (yaml, other): (Vec<_>, Vec<_>) = names.iter().partition(|it| folder::is_yaml(it));
        let yaml = yaml.into_iter().map(|it| path.join(it));
        found.extend(yaml.filter_map(|it| it.strip_prefix(&cases).map(Path::to_path_buf).ok()));
        let other = other.into_iter().filter(|it| *it != snapshot::FOLDER);
        other.map(|it| path.join(it)).filter(|it| enclosure.admits(world, it)).collect()
    });
    found
}

impl Suite {
    /// The snapshots there are, beside the case files.
    pub fn snapshots(&self, world: &dyn World) -> Vec<PathBuf> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let folder = folder.join(snapshot::FOLDER);
        if !Enclosure::around(world, Path::new(&self.pack.name)).contains(world, &folder) {
            return Vec::new();
        }
        let names = world.list(&folder).unwrap_or_default();
        let names = names.into_iter().filter(|it| it.ends_with(".snap"));
        names.map(|it| Path::new(snapshot::FOLDER).join(it)).collect()
    }

    /// Returns the text of a file beside a case file, or below the directory of cases.
    ///
    /// # Errors
    /// [`CaseError::File`] if the file cannot be read.
    pub fn read_beside(
        &self,
        world: &dyn World,
        case_file: &str,
        path: &Path,
    ) -> Result<String, CaseError> {
        let built_in = || Path::new(builtin::NAME).join(FOLDER);
        let root = self.folder.clone().unwrap_or_else(built_in);
        let directory = Path::new(case_file).parent().and_then(|it| it.strip_prefix(root).ok());
        match self.read(world, &directory.unwrap_or(Path::new("")).join(path)) {
            Err(CaseError::File { source: WorldError::NotFound, .. }) => self.read(world, path),
            read => read,
        }
    }

    /// Returns the text of a file below the directory of cases.
    ///
    /// # Errors
    /// [`CaseError::File`] if the file cannot be read.
    pub fn read(&self, world: &dyn World, path: &Path) -> Result<String, CaseError> {
        if let Some(folder) = &self.folder {
            let enclosure = Enclosure::around(world, Path::new(&self.pack.name));
            return read_text(world, &enclosure, &folder.join(path));
        }
        let embedded = builtin::CASES.iter().find(|(file, _)| Path::new(file) == path);
        let missing = || CaseError::File { path: path.to_path_buf(), source: WorldError::NotFound };
        embedded.map(|(_, text)| (*text).to_owned()).ok_or_else(missing)
    }
}

fn read_text(world: &dyn World, enclosure: &Enclosure, path: &Path) -> Result<String, CaseError> {
    if !enclosure.contains(world, path) {
        return Err(CaseError::Outside(path.to_path_buf()));
    }
    let read = world.read(path, limits::CASE_FILE_BYTES_MAX).and_then(folder::text);
    read.map_err(|source| CaseError::File { path: path.to_path_buf(), source })
}
