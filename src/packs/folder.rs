//! A folder of policy files, read as a pack.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::remote;
use policyd_base::limits;
use policyd_policy::load::Pack;
use policyd_policy::shapes::{self, CASES_FOLDER};
use policyd_policy::{self as policy, builtin};
use policyd_workspace::enclosure::Enclosure;
use policyd_world::{FileKind, World, WorldError};
use policyd_yaml::Source;

/// The file by which a folder is a pack of its own.
pub const MANIFEST: &str = "policyd.yaml";

/// A folder that holds a pack, or is asked whether it does.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// Names of the files in it, if it was listed.
    pub names: Option<Vec<String>>,
}

impl Folder {
    /// A directory that was not listed yet.
    pub const fn unseen(path: PathBuf) -> Self {
        Self { path, names: None }
    }

    /// The folder of a path: itself, or for a file the one it is in.
    pub fn of(world: &dyn World, path: &Path) -> Self {
        let is_file = world.stat(path).is_ok_and(|it| it.kind == FileKind::File);
        Self::unseen(path.parent().filter(|_| is_file).unwrap_or(path).to_path_buf())
    }

    /// Its YAML files, with the names that `named` gives to paths, and what could not be read.
    pub fn read(&self, world: &dyn World, named: impl Fn(&Path) -> String) -> (Pack, Vec<String>) {
        // The names of the built-in pack and of remote ones belong to them alone.
        let is_taken = self.path.starts_with(builtin::NAME) || has_scheme(&self.path);
        let moved = is_taken.then(|| Path::new(".").join(&self.path));
        let folder = moved.as_deref().unwrap_or(&self.path);
        let (mut files, mut unreadable) = (Vec::new(), Vec::new());
        let listed;
        let names = match &self.names {
            Some(names) => names,
            None => {
                listed = world.list(folder).unwrap_or_else(|error| {
                    unreadable.push(format!("{}: {error}", folder.display()));
                    Vec::new()
                });
                &listed
            }
        };
        for file in names.iter().filter(|it| is_yaml(it)).take(limits::POLICY_FILES_MAX) {
            let path = folder.join(file);
            match world.read(&path, limits::POLICY_FILE_BYTES_MAX).and_then(text) {
                Ok(text) => {
                    let source = Source { name: named(&path), text };
                    files.push((file.clone(), Arc::new(source)));
                }
                Err(error) => unreadable.push(format!("{}: {error}", path.display())),
            }
        }
        if files.is_empty() && unreadable.is_empty() {
            unreadable.push(format!("{}: holds no policy file", folder.display()));
        }
        let remote = remote::resolve(world, folder, &files);
        (Pack { name: named(folder), files, remote }, unreadable)
    }
}

/// Whether a path begins like the source of a remote pack.
fn has_scheme(path: &Path) -> bool {
    path.to_str().is_some_and(policy::remote::has)
}

/// Returns the policy files in subdirectories of a pack, which policyd does not load. The directory of cases is not
/// searched, and neither is a directory with a manifest, which is a separate pack.
pub fn unread(world: &dyn World, folder: &Path, names: &[String]) -> Vec<String> {
    let is_other = |it: &&String| {
        !is_yaml(it) && !it.starts_with('.') && !it.eq_ignore_ascii_case(CASES_FOLDER)
    };
    let mut found = Vec::new();
    let enclosure = Enclosure::around(world, folder);
    let below = names.iter().filter(is_other).map(|it| folder.join(it));
    for below in below.filter(|it| enclosure.admits(world, it)) {
        let inside = world.list(&below).unwrap_or_default();
        if !inside.iter().any(|it| it == MANIFEST) {
            // Other YAML belongs to other programs. Exceptions: the name of a policy file, a list of rules, and cases
            // in `test/` (the correct name is `tests/`).
            let cases = below.file_name().is_some_and(|it| it == "test");
            let named = |it: &String| shapes::FILES.iter().any(|file| file.file == *it);
            let own = |it: &&String| {
                is_yaml(it) && (cases || named(it) || holds_rules(world, &below.join(it)))
            };
            let files = inside.iter().filter(own).map(|it| below.join(it));
            found.extend(files.map(|it| it.display().to_string()));
        }
    }
    found
}

/// Returns whether a file looks like a list of rules: its entries have an id, and a key that only rules have.
fn holds_rules(world: &dyn World, file: &Path) -> bool {
    const OF_RULES: [&str; 4] = ["  decision:", "  satisfied:", "  severity:", "  commands:"];
    let text = world.read(file, limits::POLICY_FILE_BYTES_MAX).and_then(text).unwrap_or_default();
    let begins = |start: &str| text.lines().any(|it| it.starts_with(start));
    begins("- id:") && OF_RULES.iter().any(|it| begins(it))
}

/// Returns whether a directory contains a policy file. An empty directory is not a pack.
pub fn holds_policies(world: &dyn World, folder: &Path) -> bool {
    world.list(folder).is_ok_and(|names| names.iter().any(|it| is_yaml(it)))
}

/// Whether a file is YAML by its name.
pub fn is_yaml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "yaml" || it == "yml")
}

/// Bytes as text.
pub fn text(bytes: Vec<u8>) -> Result<String, WorldError> {
    String::from_utf8(bytes).map_err(|_| WorldError::Io("is not UTF-8 text".to_owned()))
}
