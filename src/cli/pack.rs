//! Finds, reads and loads the pack of a project; keeps loaded packs in compiled form.

mod compiled_by;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::project::{OWN_FOLDER, Project, is_on};
use super::{Console, cores};
use crate::cases;
use crate::checksum::{checksum, hex};
use crate::deferred;
use crate::limits;
use crate::policy::load::{self, Loaded, Pack};
use crate::policy::review::{Base, Reviewed};
use crate::policy::{Policy, builtin, shapes};
use crate::script::types::Names;
use crate::source::{Diagnostic, Source};
use crate::store::trust::{Standing, TrustStore};
use crate::world::{FileKind, World, WorldError};
use compiled_by::COMPILED_BY;

/// A pack as found on this machine.
#[derive(Debug)]
pub(super) struct Found {
    /// Its files, read; `None`: the built-in pack.
    folder: Option<Pack>,
    /// What every source byte of it comes to.
    content: [u8; 32],
    /// The same with its name and the built-in pack.
    hash: [u8; 32],
    /// What lay nearer and is not trusted.
    pub(super) passed_over: Vec<PassedOver>,
    /// What could not be read.
    pub(super) unreadable: Vec<String>,
}

impl Found {
    fn new(folder: Option<Pack>, unreadable: Vec<String>) -> Self {
        let content = content(folder.as_ref());
        let hash = hash(folder.as_ref(), &content);
        Self { folder, content, hash, passed_over: Vec::new(), unreadable }
    }

    /// The beginning of `hash`, as it is logged.
    pub(super) fn short_hash(&self) -> &[u8] {
        self.hash.get(..8).unwrap_or_default()
    }

    /// What its files come to, as trust keeps it.
    pub(super) fn content_hash(&self) -> String {
        hex(&self.content)
    }

    /// Its folder as shown to people; none for the built-in pack.
    pub(super) fn folder(&self) -> Option<&str> {
        self.folder.as_ref().map(|it| it.name.as_str())
    }

    /// The pack; the text of the built-in one is copied only when it is asked for.
    pub(super) fn pack(&self) -> Cow<'_, Pack> {
        self.folder.as_ref().map_or_else(|| Cow::Owned(builtin::pack()), Cow::Borrowed)
    }
}

/// The pack in a folder, or the built-in one.
pub(super) fn at(world: &dyn World, folder: Option<&str>) -> Found {
    folder.map_or_else(|| Found::new(None, Vec::new()), |it| read(world, Path::new(it)))
}

/// A pack that lies nearer than the one that is used, and is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PassedOver {
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Whether it was trusted before its files changed.
    pub(super) changed: bool,
}

impl PassedOver {
    /// What the user is told: what is not used, how to look at it, and how to trust it.
    pub(super) fn text(&self) -> String {
        let (folder, why) = (
            self.folder.display(),
            if self.changed {
                "has changed since it was trusted"
            } else {
                "is not trusted: it may run commands and speak to the agent"
            },
        );
        format!(
            "the pack in {folder} {why}, so it is not used. Look at it: policyd lint {folder}; \
             then trust it: policyd trust {folder}"
        )
    }
}

/// Finds the pack: `--policies`, `$POLICYD_POLICIES`, `.policyd/policies/` at or above the project
/// where it is trusted, `$XDG_CONFIG_HOME/policyd/policies/`, the built-in one.
pub(super) fn find(world: &dyn World, project: &Project, named: Option<&Path>) -> Found {
    let named = named.map(Path::to_path_buf);
    let set = || world.env("POLICYD_POLICIES").map(|it| project.root.join(it));
    if let Some(folder) = named.or_else(set) {
        return read(world, &folder);
    }
    let mut passed_over = Vec::new();
    for folder in of_project(project).into_iter().filter(|it| holds_policies(world, it)) {
        let found = read(world, &folder);
        match standing(world, project, &folder, &found) {
            Standing::Trusted => return Found { passed_over, ..found },
            other @ (Standing::Changed | Standing::Unknown) => {
                passed_over.push(PassedOver { folder, changed: other == Standing::Changed });
            }
        }
    }
    let user = user_folder(world, "XDG_CONFIG_HOME", ".config").map(|it| it.join("policies"));
    let found = match user.filter(|it| holds_policies(world, it)) {
        Some(folder) => read(world, &folder),
        None => Found::new(None, Vec::new()),
    };
    Found { passed_over, ..found }
}

/// The folders of packs that belong to a project, the nearest first.
fn of_project(project: &Project) -> Vec<PathBuf> {
    let own = |it: &Path| it.join(OWN_FOLDER).join("policies");
    let mut folders: Vec<PathBuf> = project.root.ancestors().map(own).collect();
    let main = own(&project.main);
    if !folders.contains(&main) {
        folders.push(main);
    }
    folders
}

/// The nearest pack of a project, trusted or not, for looking at it.
pub(super) fn nearest_of(world: &dyn World, project: &Project) -> Option<PathBuf> {
    of_project(project).into_iter().find(|it| holds_policies(world, it))
}

/// How far a pack of a project is trusted; in a worktree also as its main checkout is.
pub(super) fn standing(
    world: &dyn World,
    project: &Project,
    folder: &Path,
    found: &Found,
) -> Standing {
    let Some(store) = trust_store(world) else { return Standing::Unknown };
    let in_main = folder.strip_prefix(&project.root).map(|it| project.main.join(it));
    let folders = [Some(folder), in_main.as_deref().ok()];
    let folders: Vec<&Path> = folders.into_iter().flatten().collect();
    store.standing(&folders, &found.content_hash())
}

/// Where the user's trust is kept; nowhere without a home folder.
pub(super) fn trust_store(world: &dyn World) -> Option<TrustStore<'_>> {
    let folder = user_folder(world, "XDG_CONFIG_HOME", ".config")?;
    Some(TrustStore::new(world, &folder))
}

/// Says which packs were passed over.
pub(super) fn tell_passed_over(console: &mut Console<'_>, found: &Found) {
    found.passed_over.iter().for_each(|it| console.complain(&it.text()));
}

/// Where a pack lies that somebody named.
#[derive(Debug)]
pub(super) enum Place {
    /// In this folder.
    Folder(Folder),
    /// Where every command looks that is given none.
    Usual,
}

impl Place {
    /// Whether case files may lie beside the pack: not where somebody saw that no such folder is there.
    pub(super) fn may_hold_cases(&self) -> bool {
        match self {
            Self::Folder(Folder { names: Some(names), .. }) => {
                // Some file systems know no case.
                names.iter().any(|it| it.eq_ignore_ascii_case(cases::shape::FOLDER))
            }
            Self::Folder(Folder { names: None, .. }) | Self::Usual => true,
        }
    }
}

/// Where the packs lie that paths name. A path names the folder of a pack, a file of one, or a folder with
/// packs somewhere in it; without one, it is the project's.
pub(super) fn places(world: &dyn World, paths: &[PathBuf]) -> Vec<Place> {
    let mut folders: Vec<Folder> = Vec::new();
    for path in paths {
        if world.stat(path).is_ok_and(|it| it.kind == FileKind::File) {
            let parent = path.parent().unwrap_or(path);
            let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            // A case file means the pack it lies beside.
            let pack = folder.parent().filter(|_| folder.ends_with(cases::shape::FOLDER));
            let pack = pack.filter(|it| holds_policies(world, it));
            folders.push(Folder { path: pack.unwrap_or(folder).to_path_buf(), names: None });
        } else {
            let found = packs_below(world, path, FOLDERS_DEEP_MAX, &mut BTreeSet::new());
            // An empty folder is complained of where it is read.
            let empty = || vec![Folder { path: path.clone(), names: None }];
            folders.extend(if found.is_empty() { empty() } else { found });
        }
    }
    let usual = paths.is_empty().then_some(Place::Usual);
    folders.into_iter().map(Place::Folder).chain(usual).collect()
}

/// The pack at a place, with names as they are seen from `here`, and what could not be read.
pub(super) fn read_place(
    world: &dyn World,
    project: &Project,
    here: &Path,
    place: &Place,
) -> (Pack, Vec<String>) {
    match place {
        Place::Folder(folder) => {
            let (pack, unreadable) = read_folder(world, folder);
            (seen_from(here, pack), unreadable)
        }
        Place::Usual => {
            let own = find(world, project, None);
            let pack = seen_from(here, own.pack().into_owned());
            let passed_over = own.passed_over.iter().map(PassedOver::text);
            (pack, own.unreadable.into_iter().chain(passed_over).collect())
        }
    }
}

/// The packs that paths name, each once, and what could not be read.
pub(super) fn find_all(
    world: &dyn World,
    project: &Project,
    paths: &[PathBuf],
) -> (Vec<Pack>, Vec<String>) {
    let (here, places) = (world.working_folder(), places(world, paths));
    let read = |it: &Place| read_place(world, project, &here, it);
    let (packs, unreadable): (Vec<Pack>, Vec<Vec<String>>) =
        cores::on_all(world.cores(), &places, read).into_iter().unzip();
    let mut seen = BTreeSet::new();
    let packs = packs.into_iter().filter(|it| !it.files.is_empty() && seen.insert(it.name.clone()));
    (packs.collect(), unreadable.concat())
}

/// Says so where the built-in pack is among those that are looked at, for want of another one.
pub(super) fn tell_if_built_in<'p>(
    console: &mut Console<'_>,
    mut packs: impl Iterator<Item = &'p str>,
) {
    if packs.any(|it| it == builtin::NAME) {
        console.complain(
            "this project has no pack of its own; this is the built-in one (`policyd init`, or name a folder)",
        );
    }
}

/// The pack with names as they are seen from the working folder, so that a file has one name
/// however its path was given.
fn seen_from(here: &Path, pack: Pack) -> Pack {
    let short = |name: &str| {
        let path: PathBuf = Path::new(name).components().collect();
        let path = path.strip_prefix(here).or_else(|_| path.strip_prefix(".")).unwrap_or(&path);
        // The name of the built-in pack belongs to it alone.
        let taken = path.starts_with(builtin::NAME) || path.as_os_str().is_empty();
        if taken { Path::new(".").join(path) } else { path.to_path_buf() }.display().to_string()
    };
    if pack.name == builtin::NAME {
        return pack;
    }
    let renamed = |source: Arc<Source>| {
        let name = short(&source.name);
        let text = Arc::try_unwrap(source).map_or_else(|it| it.text.clone(), |it| it.text);
        Arc::new(Source { name, text })
    };
    let files = pack.files.into_iter().map(|(file, source)| (file, renamed(source)));
    Pack { name: short(&pack.name), files: files.collect() }
}

/// How far below a named folder packs are looked for.
const FOLDERS_DEEP_MAX: usize = 16;
/// Folders that hold nothing of one's own.
const FOREIGN_FOLDERS: [&str; 4] = [".git", "node_modules", "target", ".venv"];
/// Files by which a pack is recognised where nobody named it.
const SIGNS: [&str; 4] =
    ["policyd.yaml", "considerations.yaml", "checkers.yaml", "session_types.yaml"];

/// A folder of a pack.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// What lies in it, where somebody looked already.
    names: Option<Vec<String>>,
}

/// `seen` holds the folders that were entered: links may lead back.
fn packs_below(
    world: &dyn World,
    folder: &Path,
    deep: usize,
    seen: &mut BTreeSet<u64>,
) -> Vec<Folder> {
    let Ok(stat) = world.stat(folder) else { return Vec::new() };
    let again = stat.identity != 0 && !seen.insert(stat.identity);
    if again || stat.kind != FileKind::Folder {
        return Vec::new();
    }
    let names = world.list(folder).unwrap_or_default();
    // The folder that was named may hold any file of a pack, one that was found must look like one.
    let named = deep == FOLDERS_DEEP_MAX;
    let is_sign = |it: &String| {
        let of_pack = shapes::FILES.iter().any(|file| file.file == it);
        SIGNS.contains(&it.as_str()) || (named && of_pack)
    };
    if names.iter().any(is_sign) {
        return vec![Folder { path: folder.to_path_buf(), names: Some(names) }];
    }
    let Some(deep) = deep.checked_sub(1) else { return Vec::new() };
    let own = names.iter().filter(|it| !FOREIGN_FOLDERS.contains(&it.as_str()));
    own.flat_map(|it| packs_below(world, &folder.join(it), deep, seen)).collect()
}

/// Whether a folder holds a policy file; an empty one is no pack.
pub(super) fn holds_policies(world: &dyn World, folder: &Path) -> bool {
    world.list(folder).is_ok_and(|names| names.iter().any(|it| is_yaml(it)))
}

/// Whether a file is YAML by its name.
pub(super) fn is_yaml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "yaml" || it == "yml")
}

/// Reads the YAML files of a folder; for a file, of the folder it is in.
fn read(world: &dyn World, named: &Path) -> Found {
    let (pack, unreadable) = read_files(world, named);
    Found::new(Some(pack), unreadable)
}

/// The same without what its bytes come to, and what could not be read.
fn read_files(world: &dyn World, named: &Path) -> (Pack, Vec<String>) {
    let is_file = world.stat(named).is_ok_and(|it| it.kind == FileKind::File);
    let folder = named.parent().filter(|_| is_file).unwrap_or(named);
    read_folder(world, &Folder { path: folder.to_path_buf(), names: None })
}

fn read_folder(world: &dyn World, folder: &Folder) -> (Pack, Vec<String>) {
    let Folder { path, names } = folder;
    let folder = if path.starts_with(builtin::NAME) { &Path::new(".").join(path) } else { path };
    let name = folder.display().to_string();
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    let names = match names.clone().map_or_else(|| world.list(folder), Ok) {
        Ok(names) => names,
        Err(error) => {
            unreadable.push(format!("{}: {error}", folder.display()));
            Vec::new()
        }
    };
    for file in names.into_iter().filter(|it| is_yaml(it)).take(limits::POLICY_FILES_MAX) {
        let path = folder.join(&file);
        match world.read(&path, limits::POLICY_FILE_BYTES_MAX).and_then(text) {
            Ok(text) => {
                let source = Source { name: path.display().to_string(), text };
                files.push((file, Arc::new(source)));
            }
            Err(error) => unreadable.push(format!("{}: {error}", path.display())),
        }
    }
    if files.is_empty() && unreadable.is_empty() {
        unreadable.push(format!("{}: holds no policy file", folder.display()));
    }
    (Pack { name, files }, unreadable)
}

/// Bytes as text.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, WorldError> {
    String::from_utf8(bytes).map_err(|_| WorldError::Refused("is not UTF-8 text".to_owned()))
}

/// A pack that is broken.
#[derive(Debug)]
pub(super) struct Broken {
    /// What could not be read.
    pub(super) unreadable: Vec<String>,
    /// What is wrong in what was read.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What the manifest says about errors, where it is sound.
    pub(super) on_error: Option<crate::policy::OnError>,
    /// Whether the manifest switches the pack on, where it is sound.
    pub(super) enabled: Option<bool>,
    /// Built-in sets of guards that the manifest leaves out, where it is sound.
    pub(super) sets_off: Vec<&'static str>,
}

/// The policy of a found pack: from its compiled form where that is current, else loaded.
pub(super) fn policy(world: &dyn World, found: &Found) -> Result<Policy, Broken> {
    if !found.unreadable.is_empty() {
        return loaded(found);
    }
    let key = key(found);
    let path = compiled_path(world, found.folder.as_ref());
    if let Some(policy) = path.as_ref().and_then(|it| read_compiled(world, it, &key)) {
        return Ok(policy);
    }
    let policy = loaded(found)?;
    if let Some(path) = path {
        write_compiled(world, &path, &key, &policy);
    }
    Ok(policy)
}

/// The policy of a found pack, from its files.
fn loaded(found: &Found) -> Result<Policy, Broken> {
    let Loaded { policy, diagnostics, on_error, enabled, sets_off } =
        load::load(&found.pack(), &builtin::pack());
    let policy = policy.filter(|_| found.unreadable.is_empty());
    let unreadable = found.unreadable.clone();
    policy.ok_or(Broken { unreadable, diagnostics, on_error, enabled, sets_off })
}

/// What every source byte of a pack comes to.
fn content(pack: Option<&Pack>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (file, source) in pack.iter().flat_map(|it| &it.files) {
        hash.update(file);
        hash.update([0]);
        hash.update(source.text.len().to_le_bytes());
        hash.update(&source.text);
    }
    hash.finalize().into()
}

/// The same with the name of the pack and the built-in pack.
fn hash(pack: Option<&Pack>, content: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(builtin::FINGERPRINT.to_le_bytes());
    hash.update(pack.map_or(builtin::NAME, |it| it.name.as_str()));
    hash.update(content);
    hash.finalize().into()
}

/// Key of the compiled form: the sources, and what made it.
fn key(found: &Found) -> [u8; 32] {
    Sha256::new().chain_update(COMPILED_BY.to_le_bytes()).chain_update(found.hash).finalize().into()
}

fn compiled_path(world: &dyn World, pack: Option<&Pack>) -> Option<PathBuf> {
    if is_on(world, "POLICYD_NO_CACHE") {
        return None;
    }
    // One for each pack, whatever its content was before; the key stands inside.
    let name = checksum(&[pack.map_or(builtin::NAME, |it| it.name.as_str()).as_bytes()]);
    let name = format!("{}.pack", hex(&name));
    Some(user_folder(world, "XDG_CACHE_HOME", ".cache")?.join(name))
}

/// The user's folder of policyd: where an XDG variable says, else below the home folder.
fn user_folder(world: &dyn World, variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = world.env(variable).map(PathBuf::from);
    let base = named.or_else(|| Some(Path::new(&world.env("HOME")?).join(below_home)))?;
    Some(base.join("policyd"))
}

/// The compiled form: its key, the checksum of the rest, the rest. Anything else is a miss.
fn read_compiled(world: &dyn World, path: &Path, key: &[u8; 32]) -> Option<Policy> {
    let bytes = world.read(path, limits::POLICY_FILE_BYTES_MAX.saturating_mul(8)).ok()?;
    let (own_key, rest) = bytes.split_at_checked(32)?;
    let (proof, body) = rest.split_at_checked(8)?;
    let current = own_key == key && proof == checksum(&[body]);
    let body = bytes.len().saturating_sub(body.len())..bytes.len();
    if current { deferred::decode(&Arc::new(bytes), body) } else { None }
}

/// A cache: when it cannot be written, the next call loads again.
fn write_compiled(world: &dyn World, path: &Path, key: &[u8; 32], policy: &Policy) {
    let Ok(body) = postcard::to_stdvec(policy) else { return };
    let bytes = [key.as_slice(), &checksum(&[&body]), &body].concat();
    let written = path.parent().map_or(Ok(()), |folder| world.create_folder(folder));
    drop(written.and_then(|()| world.write(path, &bytes)));
}

/// What is broken and where, for the user: the first findings on one line each.
pub(super) fn explain(broken: &Broken) -> String {
    const SHOWN: usize = 5;
    let errors = broken.diagnostics.iter().filter(|it| it.level == crate::source::Level::Error);
    let lines: Vec<String> = broken
        .unreadable
        .iter()
        .cloned()
        .chain(errors.map(|it| format!("{}: {}", it.span.place(), it.message)))
        .collect();
    let more = lines.len().saturating_sub(SHOWN);
    let mut text = lines.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    format!("the policy pack is broken: {text}")
}

/// The policy of a found pack with the names that its expressions may use, or a complaint.
pub(super) fn reviewed(
    world: &dyn World,
    console: &mut Console<'_>,
    found: &Found,
) -> Option<(Policy, Arc<Names>)> {
    let policy = policy(world, found).map_err(|broken| complain(console, &broken)).ok()?;
    let names = Reviewed::new(&found.pack(), &Base::new(&builtin::pack())).names;
    Some((policy, names))
}

fn complain(console: &mut Console<'_>, broken: &Broken) {
    console.complain(&explain(broken));
    console.complain("run `policyd lint` for every finding with its place");
}

/// The project's policy, or a complaint; for commands other than `eval`.
pub(super) fn sound(
    world: &dyn World,
    console: &mut Console<'_>,
    named: Option<&Path>,
) -> Option<Policy> {
    let project = super::project::find(world, None);
    let found = find(world, &project, named);
    tell_passed_over(console, &found);
    policy(world, &found).map_err(|broken| complain(console, &broken)).ok()
}

/// The project's policy, or the built-in one where that is broken: what is remembered of calls and
/// tasks must not wait for a typo to be mended. The complaint is made all the same.
pub(super) fn or_builtin(world: &dyn World, console: &mut Console<'_>) -> Option<Policy> {
    sound_of(world, console, &super::project::find(world, None))
}

/// The built-in pack, for events that must not be forgotten because another one is broken.
pub(super) fn builtin_policy(world: &dyn World) -> Option<Policy> {
    policy(world, &Found::new(None, Vec::new())).ok()
}

/// The same of a project that was found already.
pub(super) fn sound_of(
    world: &dyn World,
    console: &mut Console<'_>,
    project: &Project,
) -> Option<Policy> {
    let found = find(world, project, None);
    tell_passed_over(console, &found);
    let broken = match policy(world, &found) {
        Ok(policy) => return Some(policy),
        Err(broken) => broken,
    };
    complain(console, &broken);
    console.complain("the built-in pack is used meanwhile");
    builtin_policy(world)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::fake::FakeWorld;

    #[test]
    fn every_flipped_byte_and_every_cut_of_a_compiled_pack_is_a_miss() {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        let found = Found::new(None, Vec::new());
        let loaded = policy(&world, &found).unwrap();
        let path = compiled_path(&world, None).unwrap();
        let (bytes, key) = (world.get(&path).unwrap(), key(&found));
        assert_eq!(read_compiled(&world, &path, &key).unwrap(), loaded);
        for at in (0..bytes.len()).step_by(997) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            for damaged in [flipped, bytes[..at].to_vec()] {
                world.put(&path, damaged);
                assert!(read_compiled(&world, &path, &key).is_none(), "byte {at}");
            }
        }
        world.put(&path, bytes);
        let mut other = key;
        other[0] ^= 1;
        assert!(read_compiled(&world, &path, &other).is_none(), "another pack's");
    }
}
