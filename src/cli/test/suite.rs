//! Finds packs and their case files: `tests/*.yaml` beside the policies, or those of the built-in
//! pack, which are embedded with it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cases::shape::FOLDER;
use crate::cli::{pack, project};
use crate::limits;
use crate::policy::builtin;
use crate::policy::load::Pack;
use crate::source::Source;
use crate::world::{FileKind, World, WorldError};

/// A pack and its case files.
pub(super) struct Suite {
    /// The pack.
    pub(super) pack: Pack,
    /// Folder of the case files; nothing where they are embedded.
    pub(super) folder: Option<PathBuf>,
    /// The case files, by name.
    pub(super) files: Vec<Arc<Source>>,
    /// What could not be read.
    pub(super) unreadable: Vec<String>,
}

/// The suites that paths name; those of the project's pack where none is named.
pub(super) fn find(world: &dyn World, paths: &[PathBuf]) -> Vec<Suite> {
    let mut suites: Vec<Suite> = Vec::new();
    for path in paths {
        let found = named(world, path);
        match suites.iter_mut().find(|it| it.pack.name == found.pack.name) {
            Some(known) => {
                let fresh = found.files.into_iter().filter(|it| !known.files.contains(it));
                known.files.extend(fresh.collect::<Vec<_>>());
                known.unreadable.extend(found.unreadable);
            }
            None => suites.push(found),
        }
    }
    if paths.is_empty() {
        let project = project::find(world, None);
        suites.push(suite(world, pack::find(world, &project, None), None));
    }
    suites
}

/// The suite of a pack's folder, of its `tests` folder, or of one case file.
fn named(world: &dyn World, path: &Path) -> Suite {
    let project = project::find(world, None);
    let is_tests = |it: &Path| it.file_name().is_some_and(|name| name == FOLDER);
    let is_file = world.stat(path).is_ok_and(|it| it.kind == FileKind::File);
    let tests = if is_file { path.parent().unwrap_or(path) } else { path };
    let above = tests.parent().filter(|_| is_tests(tests)).map(|it| match it.as_os_str() {
        it if it.is_empty() => Path::new("."),
        _ => it,
    });
    let found = pack::find(world, &project, Some(above.unwrap_or(path)));
    let only = Some(path).filter(|_| is_file && above.is_some());
    suite(world, found, only)
}

fn suite(world: &dyn World, found: pack::Found, only: Option<&Path>) -> Suite {
    let mut unreadable = found.unreadable.clone();
    let pack = match found.pack() {
        Cow::Owned(builtin) => {
            let source = |(file, text): &(&str, &str)| Source {
                name: format!("{}/{FOLDER}/{file}", builtin::NAME),
                text: (*text).to_owned(),
            };
            let files = builtin::CASES.iter().filter(|(file, _)| pack::is_yaml(file));
            let files = files.map(|it| Arc::new(source(it))).collect();
            return Suite { pack: builtin, folder: None, files, unreadable };
        }
        Cow::Borrowed(pack) => pack.clone(),
    };
    let folder = Path::new(&pack.name).join(FOLDER);
    let names = match only.and_then(Path::file_name) {
        Some(name) => vec![name.to_string_lossy().into_owned()],
        None => world.list(&folder).unwrap_or_default(),
    };
    let mut files = Vec::new();
    for name in names.iter().filter(|it| pack::is_yaml(it)).take(limits::POLICY_FILES_MAX) {
        let path = folder.join(name);
        match read_text(world, &path) {
            Ok(text) => files.push(Arc::new(Source { name: path.display().to_string(), text })),
            Err(why) => unreadable.push(why),
        }
    }
    Suite { pack, folder: Some(folder), files, unreadable }
}

impl Suite {
    /// The text of a file beside the case files.
    ///
    /// # Errors
    /// Why it cannot be read, with its name.
    pub(super) fn read(&self, world: &dyn World, path: &Path) -> Result<String, String> {
        if let Some(folder) = &self.folder {
            return read_text(world, &folder.join(path));
        }
        let embedded = builtin::CASES.iter().find(|(file, _)| Path::new(file) == path);
        let missing = || format!("{}: {}", path.display(), WorldError::Missing);
        embedded.map(|(_, text)| (*text).to_owned()).ok_or_else(missing)
    }
}

fn read_text(world: &dyn World, path: &Path) -> Result<String, String> {
    let read = world.read(path, limits::CASE_FILE_BYTES_MAX).and_then(pack::text);
    read.map_err(|error| format!("{}: {error}", path.display()))
}
