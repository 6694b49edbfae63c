//! Locations of the packs that `policyd lint` and `policyd test` read: the named paths, or the pack of the project.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::{self, Folder, MANIFEST};
use super::{UntrustedPack, UntrustedReason, find};
use crate::cases::suite::beside;
use crate::folders;
use crate::workspace::enclosure::{Enclosure, outside};
use crate::workspace::project::Project;
use policyd_cases as cases;
use policyd_cores as cores;
use policyd_policy::load::Pack;
use policyd_policy::{builtin, shapes};
use policyd_world::{FileKind, World};
use policyd_yaml::Source;

/// Levels below the project on which an unused pack is looked for.
const UNUSED_DEPTH_MAX: usize = 2;
/// Folders that hold nothing of one's own.
const FOREIGN_FOLDERS: [&str; 4] = [".git", "node_modules", "target", ".venv"];
/// Files that mark a directory as a pack if no path was given.
const SIGNS: [&str; 4] =
    ["policyd.yaml", "considerations.yaml", "checkers.yaml", "session_types.yaml"];

/// Where a pack lies.
#[derive(Debug)]
pub enum PackPlace {
    /// In this folder.
    Folder(Folder),
    /// Where every command looks that is given none.
    Usual,
}

impl PackPlace {
    /// Whether the pack may have case files. `false` if its directory was listed and has no such subdirectory.
    pub fn may_hold_cases(&self) -> bool {
        match self {
            Self::Folder(Folder { names: Some(names), .. }) => {
                // Some file systems know no case.
                names.iter().any(|it| it.eq_ignore_ascii_case(cases::shape::FOLDER))
            }
            Self::Folder(Folder { names: None, .. }) | Self::Usual => true,
        }
    }

    /// Policy files in subdirectories of the pack, which policyd does not load. `name`: the pack's name.
    pub fn unread(&self, world: &dyn World, name: &str) -> Vec<String> {
        match self {
            Self::Folder(Folder { names: Some(names), .. }) => {
                folder::unread(world, Path::new(name), names)
            }
            Self::Folder(Folder { names: None, .. }) | Self::Usual => {
                let names = world.list(Path::new(name)).unwrap_or_default();
                folder::unread(world, Path::new(name), &names)
            }
        }
    }

    /// The pack that lies here, with names as they are seen from `here`, and what could not be read.
    pub fn read(&self, world: &dyn World, project: &Project, here: &Path) -> (Pack, Vec<String>) {
        let (pack, mut unreadable) = self.read_all(world, project, here);
        if pack.name == builtin::NAME {
            return (pack, unreadable);
        }
        // The files of another author can be links to files of this user. What they contain is not printed.
        let enclosure = Enclosure::around(world, Path::new(&pack.name));
        let (files, left_out): (Vec<_>, Vec<_>) =
            pack.files.into_iter().partition(|(_, source)| {
                let path = Path::new(&source.name);
                is_remote(path) || enclosure.contains(world, path)
            });
        unreadable.extend(left_out.iter().map(|(_, it)| outside(Path::new(&it.name))));
        (Pack { files, ..pack }, unreadable)
    }

    fn read_all(&self, world: &dyn World, project: &Project, here: &Path) -> (Pack, Vec<String>) {
        match self {
            Self::Folder(folder) => folder.read(world, |it| shown(here, it)),
            Self::Usual => {
                let found = find(world, project, None);
                // One that was trusted may be tried while it is changed, before it is trusted again: what
                // it says is evaluated on simulated machines alone.
                if let Some(own) =
                    found.untrusted.first().filter(|it| it.reason == UntrustedReason::Changed)
                {
                    return Folder::of(world, &own.folder).read(world, |it| shown(here, it));
                }
                let untrusted = found.untrusted.iter().map(UntrustedPack::text);
                let untold = found.unreadable.iter().cloned().chain(untrusted).collect();
                // The user asks for the untrusted pack. The pack that replaces it must not be checked instead.
                let pack = match found.untrusted.is_empty() {
                    true => seen_from(here, found.pack().into_owned()),
                    false => Pack { name: builtin::NAME.to_owned(), ..Pack::default() },
                };
                (pack, untold)
            }
        }
    }
}

/// Whether a file belongs to a remote pack: its name begins with the source.
fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(policyd_policy::remote::has)
}

/// Where the packs lie that paths name, each once. A path names the folder of a pack, a file of one, or a
/// folder with packs somewhere in it; without one, it is the project's.
pub fn places(world: &dyn World, paths: &[PathBuf]) -> Vec<PackPlace> {
    if paths.is_empty() {
        return vec![PackPlace::Usual];
    }
    let here = world.working_folder();
    let mut seen = BTreeSet::new();
    let mut found: Vec<Folder> = paths.iter().flat_map(|it| folders_of(world, it)).collect();
    found.retain(|it| seen.insert(shown(&here, &it.path)));
    found.into_iter().map(PackPlace::Folder).collect()
}

/// Whether the user names the packs of a command: by paths, or in `POLICYD_POLICIES`.
pub fn are_named(world: &dyn World, paths: &[PathBuf]) -> bool {
    !paths.is_empty() || world.env("POLICYD_POLICIES").is_some()
}

/// The working directory, if it is the directory of a pack: a command without paths uses that pack.
pub fn pack_here(world: &dyn World) -> Option<PathBuf> {
    let here = world.working_folder();
    world.stat(&here.join(MANIFEST)).is_ok_and(|it| it.kind == FileKind::File).then_some(here)
}

/// The only directory with a manifest in a project that uses no pack of its own. `None` if there are several.
pub fn unused_pack(world: &dyn World, project: &Project) -> Option<UnusedPack> {
    if world.env("POLICYD_POLICIES").is_some() || super::nearest_of(world, project).is_some() {
        return None;
    }
    let mut found = Vec::new();
    folders::walk(world, &project.root, |depth, path, names| {
        if names.iter().any(|it| it == MANIFEST) {
            found.push(path);
            return Vec::new();
        }
        let is_searched =
            |it: &&String| !it.starts_with('.') && !FOREIGN_FOLDERS.contains(&it.as_str());
        let names = names.iter().filter(is_searched).filter(|_| depth < UNUSED_DEPTH_MAX);
        names.map(|it| path.join(it)).collect()
    });
    let [folder] = found.as_slice() else { return None };
    let shown = folder.strip_prefix(&project.root).unwrap_or(folder).display().to_string();
    Some(UnusedPack { shown: if shown.is_empty() { ".".to_owned() } else { shown } })
}

/// A pack in a project that policyd does not use because of its directory.
pub struct UnusedPack {
    /// Its directory as seen from the root of the project.
    shown: String,
}

impl UnusedPack {
    /// States that the pack is not active.
    pub fn text(&self) -> String {
        let shown = &self.shown;
        format!(
            "the pack in `{shown}` is not active: a project uses only its directory `.policyd/policies`"
        )
    }

    /// States how to check and to activate the pack.
    pub fn help(&self) -> String {
        let shown = &self.shown;
        format!(
            "help: check it with `policyd lint {shown}`; to activate it, move it to `.policyd/policies`, then run \
             `policyd trust`"
        )
    }
}

/// Returns the directory of the pack to which a file belongs, as a policy file or as a case file. `None` if the
/// directory does not look like a pack: a file of another program may have the name of a policy file.
pub fn pack_of(world: &dyn World, file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    file.to_str().filter(|it| folder::is_yaml(it))?;
    let cases = folder.ancestors().filter(|it| it.ends_with(cases::shape::FOLDER));
    let mut packs = cases.map(pack_beside).chain([folder]);
    packs.find(|it| is_pack(world, it)).map(Path::to_path_buf)
}

/// Whether a directory is a pack by its files, or by its place in a project.
pub fn is_pack(world: &dyn World, folder: &Path) -> bool {
    let is_active = super::is_active_directory(world, folder);
    let is_sign = |it: &String| SIGNS.contains(&it.as_str()) || (is_active && folder::is_yaml(it));
    world.list(folder).is_ok_and(|names| names.iter().any(is_sign))
}

/// The files of a pack.
pub struct PackSources {
    /// The pack; its files have their paths as names.
    pub pack: Pack,
    /// Its case files.
    pub cases: Vec<Arc<Source>>,
    /// Paths of policy files that policyd does not load.
    pub unread: Vec<String>,
    /// What could not be read, one sentence each.
    pub unreadable: Vec<String>,
}

/// Reads the pack in a directory with its case files.
pub fn read_files(world: &dyn World, folder: &Path) -> PackSources {
    let names = world.list(folder).ok();
    let found = Folder { path: folder.to_path_buf(), names };
    let (pack, mut unreadable) = found.read(world, |it| it.display().to_string());
    let place = PackPlace::Folder(found);
    let (cases, missing) = match place.may_hold_cases() {
        true => beside(world, &pack, None),
        false => (Vec::new(), Vec::new()),
    };
    unreadable.extend(missing);
    let unread = place.unread(world, &pack.name);
    PackSources { pack, cases, unread, unreadable }
}

/// The folders of packs that one path names.
fn folders_of(world: &dyn World, path: &Path) -> Vec<Folder> {
    if world.stat(path).is_ok_and(|it| it.kind == FileKind::File) {
        let parent = path.parent().unwrap_or(path);
        let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        // A case file means the pack it lies beside.
        let pack = folder_of_cases(world, folder).map(pack_beside);
        return vec![Folder::unseen(pack.unwrap_or(folder).to_path_buf())];
    }
    let found = packs_below(world, path);
    // An empty folder is complained of where it is read.
    if found.is_empty() { vec![Folder::unseen(path.to_path_buf())] } else { found }
}

/// Returns the directories of the packs that a path names: a pack, one of its files, its cases, or a directory with packs.
pub fn pack_directories(world: &dyn World, path: &Path) -> Vec<PathBuf> {
    match folder_of_cases(world, path) {
        Some(cases) => vec![pack_beside(cases).to_path_buf()],
        None => folders_of(world, path).into_iter().map(|it| it.path).collect(),
    }
}

/// The folder of cases beside a pack that a folder is, or lies in.
pub fn folder_of_cases<'p>(world: &dyn World, folder: &'p Path) -> Option<&'p Path> {
    let is_pack = |folder: &Path| {
        let names = world.list(folder).unwrap_or_default();
        names.iter().any(|it| shapes::FILES.iter().any(|file| file.file == it))
    };
    let mut named = folder.ancestors().filter(|it| it.ends_with(cases::shape::FOLDER));
    named.find(|it| is_pack(pack_beside(it)))
}

/// The folder of the pack beside a folder of cases.
pub fn pack_beside(cases: &Path) -> &Path {
    let pack = cases.parent().filter(|it| !it.as_os_str().is_empty());
    pack.unwrap_or(Path::new("."))
}

/// The packs in a folder and below it, in the order of their paths.
fn packs_below(world: &dyn World, folder: &Path) -> Vec<Folder> {
    let mut found = Vec::new();
    let enclosure = Enclosure::around(world, folder);
    folders::walk(world, folder, |deep, path, names| {
        // The folder that was named may hold any file of a pack, one that was found must look like one.
        let may_be = |it: &String| shapes::FILES.iter().any(|file| file.file == it);
        let is_sign = |it: &String| SIGNS.contains(&it.as_str()) || (deep == 0 && may_be(it));
        if names.iter().any(is_sign) {
            found.push(Folder { path, names: Some(names) });
            return Vec::new();
        }
        let own = names.iter().filter(|it| !FOREIGN_FOLDERS.contains(&it.as_str()));
        own.map(|it| path.join(it)).filter(|it| enclosure.admits(world, it)).collect()
    });
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// The packs that paths name, and what could not be read.
pub fn find_all(
    world: &dyn World,
    project: &Project,
    paths: &[PathBuf],
) -> (Vec<Pack>, Vec<String>) {
    let (here, places) = (world.working_folder(), places(world, paths));
    let read = |it: &PackPlace| it.read(world, project, &here);
    let (packs, unreadable): (Vec<Pack>, Vec<Vec<String>>) =
        cores::on_all(world.cores(), &places, read).into_iter().unzip();
    let packs = packs.into_iter().filter(|it| !it.files.is_empty());
    (packs.collect(), unreadable.concat())
}

/// A pack with names as they are seen from the working folder.
fn seen_from(here: &Path, pack: Pack) -> Pack {
    if pack.name == builtin::NAME {
        return pack;
    }
    let files = pack.files.into_iter().map(|(file, source)| {
        let name = shown(here, Path::new(&source.name));
        (file, Arc::new(Source { name, text: source.text.clone() }))
    });
    Pack { name: shown(here, Path::new(&pack.name)), files: files.collect(), remote: pack.remote }
}

/// A path as it is seen from the working folder, so that a file has one name however its path was given.
fn shown(here: &Path, path: &Path) -> String {
    // Most are written as they are read.
    let is_plain = |it: &str| {
        !["//", "/./", "/../"].iter().any(|odd| it.contains(odd)) && !it.ends_with(['/', '.'])
    };
    let path: Cow<'_, Path> = match path.to_str() {
        Some(text) if is_plain(text) => path.into(),
        _ => path.components().collect::<PathBuf>().into(),
    };
    let path = path.strip_prefix(here).or_else(|_| path.strip_prefix(".")).unwrap_or(&path);
    // The name of the built-in pack belongs to it alone.
    let taken = path.starts_with(builtin::NAME) || path.as_os_str().is_empty();
    if taken { Path::new(".").join(path) } else { path.to_path_buf() }.display().to_string()
}
