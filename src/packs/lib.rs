//! Finds the pack of a project, and what it means.
//!
//! Contains: the search for trusted packs, their compiled form, and the pack of the organization.
//! Does not contain: what only authors of packs need, such as downloads and trials (`policyd-app`).
//!
//! ```
//! use policyd_packs::{at, policy};
//! use policyd_world::fake::FakeWorld;
//!
//! let world = FakeWorld::new();
//! let built_in = policy(&world, &at(&world, None)).unwrap();
//! assert!(!built_in.guards.rules.is_empty());
//! ```

mod compiled;
pub mod compiler;
pub mod folder;
pub mod grants;
mod layers;
pub mod organization;
pub mod remote;

use std::borrow::Cow;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use compiled::{CompiledPack, built_in};
use folder::{Folder, holds_policies};
use policyd_fact_table::types::Names;
use policyd_policy::load::{self, Loaded, Pack};
use policyd_policy::remote::RemotePack;
use policyd_policy::review::{Base, ReviewedPolicy};
use policyd_policy::{Policy, builtin};
use policyd_record::pack_layer::{PackLayer, PackLayers};
use policyd_store::configuration::{Configuration, ConfigurationOwner, Pins};
use policyd_store::trust::{TrustStatus, TrustStore};
use policyd_store::user;
use policyd_workspace::project::{Project, STATE_DIR_NAME};
use policyd_world::World;
use policyd_yaml::Diagnostic;
use policyd_yaml::checksum::hex;
use policyd_yaml::deferred::{self, EncodedBytes};

/// Who decides about a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Layer {
    /// The user, or the project with the user's trust.
    Project,
    /// The administrator of the machine: only its own rules count, and nothing below changes them.
    Organization,
}

/// A pack as found on this machine.
#[derive(Debug)]
pub struct Found {
    /// Who decides about it.
    layer: Layer,
    /// Its files, read; `None`: the built-in pack.
    folder: Option<Pack>,
    /// The pack of the user beneath the pack of a project.
    beneath: Option<Pack>,
    /// SHA-256 over the names and contents of all source files.
    content: [u8; 32],
    /// The same with its name and the built-in pack.
    hash: [u8; 32],
    /// What lay nearer and is not trusted.
    pub untrusted: Vec<UntrustedPack>,
    /// What could not be read.
    pub unreadable: Vec<String>,
}

impl Found {
    fn new(folder: Option<Pack>, unreadable: Vec<String>) -> Self {
        let content = content(folder.as_ref());
        let hash = hash(folder.as_ref(), &content);
        let (layer, untrusted, beneath) = (Layer::Project, Vec::new(), None);
        Self { layer, folder, beneath, content, hash, untrusted, unreadable }
    }

    /// The same pack over the pack of the user. The user trusts only the pack itself, so its content stays.
    fn over(self, beneath: Option<Pack>) -> Self {
        let Some(pack) = beneath else { return self };
        let hash = Sha256::new().chain_update(self.hash).chain_update(content(Some(&pack)));
        Self { hash: hash.finalize().into(), beneath: Some(pack), ..self }
    }

    /// The same place with other files.
    #[must_use]
    pub fn with_pack(&self, pack: Pack) -> Self {
        Self { layer: self.layer, ..Self::new(Some(pack), Vec::new()) }
    }

    /// Its files; `None` for the built-in pack.
    pub fn own_files(&self) -> Option<&Pack> {
        self.folder.as_ref()
    }

    /// The beginning of `hash`, as it is logged.
    pub fn short_hash(&self) -> &[u8] {
        self.hash.get(..8).unwrap_or_default()
    }

    /// Hash of its files, as trust keeps it.
    pub fn content_hash(&self) -> String {
        hex(&self.content)
    }

    /// Its folder as shown to people; none for the built-in pack.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_ref().map(|it| it.name.as_str())
    }

    /// The remote packs that it names.
    pub fn remote(&self) -> &[RemotePack] {
        self.folder.as_ref().map(|it| it.remote.as_slice()).unwrap_or_default()
    }

    /// The directory of the user's pack beneath it.
    pub fn beneath(&self) -> Option<&str> {
        self.beneath.as_ref().map(|it| it.name.as_str())
    }

    /// Whose packs its rules come from.
    pub fn layers(&self, world: &dyn World, project: &Project) -> PackLayers {
        let user = self.beneath().map(str::to_owned);
        PackLayers { own: self.owner(world, project), user }
    }

    /// Its name: the directory, or the name of the built-in pack.
    fn name(&self) -> &str {
        self.folder().unwrap_or(builtin::NAME)
    }

    /// Whose pack it is.
    pub fn owner(&self, world: &dyn World, project: &Project) -> PackLayer {
        let Some(folder) = self.folder().map(Path::new) else { return PackLayer::BuiltIn };
        let of_user = user::config_folder(world).map(|it| it.join("policies"));
        if self.layer == Layer::Organization {
            PackLayer::Organization
        } else if of_project(project).iter().any(|it| it == folder) {
            PackLayer::Project
        } else if of_user.is_some_and(|it| it == folder) {
            PackLayer::User
        } else {
            PackLayer::Named
        }
    }

    /// The pack; the text of the built-in one is copied only when it is asked for.
    pub fn pack(&self) -> Cow<'_, Pack> {
        self.folder.as_ref().map_or_else(|| Cow::Owned(builtin::pack()), Cow::Borrowed)
    }
}

/// The pack in a folder, or the built-in one.
pub fn at(world: &dyn World, folder: Option<&str>) -> Found {
    folder.map_or_else(|| Found::new(None, Vec::new()), |it| read(world, Path::new(it)))
}

/// A pack that lies nearer than the one that is used, and is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedPack {
    /// Directory of the pack.
    pub folder: PathBuf,
    pub reason: UntrustedReason,
}

/// Why a pack is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UntrustedReason {
    /// The user did not trust it.
    Unknown,
    /// Its files changed since the user trusted it.
    Changed,
    /// The organization allows only other packs. Contains its content hash.
    NotAllowed(String),
}

impl UntrustedPack {
    /// Tells the user that the pack is not used, how to inspect it, and how to trust it.
    pub fn text(&self) -> String {
        let folder = self.folder.display();
        let why = match &self.reason {
            UntrustedReason::Changed => "has changed since it was trusted",
            UntrustedReason::Unknown => {
                "is not trusted: it may run commands and speak to the agent"
            }
            UntrustedReason::NotAllowed(hash) => {
                return format!(
                    "the pack in {folder} is not used, because the organization allows only certain packs. Ask the \
                     administrator to allow this content: {hash}"
                );
            }
        };
        format!(
            "the pack in {folder} {why}, so it is not used. Look at it: policyd lint {folder}; \
             then trust it: policyd trust {folder}"
        )
    }
}

/// Finds the pack: `--policies`, `$POLICYD_POLICIES`, `.policyd/policies/` at or above the project
/// where it is trusted, `$XDG_CONFIG_HOME/policyd/policies/`, the built-in one.
pub fn find(world: &dyn World, project: &Project, named: Option<&Path>) -> Found {
    let pins = Configuration::load(world, ConfigurationOwner::Organization).pins;
    find_allowed(world, project, named, &pins)
}

/// Does the same as [`find`], by decisions of the organization that were read already.
pub fn find_allowed(
    world: &dyn World,
    project: &Project,
    named: Option<&Path>,
    pins: &Pins,
) -> Found {
    let mut untrusted = Vec::new();
    let named = named.map(Path::to_path_buf);
    let set = || world.env("POLICYD_POLICIES").map(|it| project.root.join(it));
    if let Some(folder) = named.or_else(set) {
        match read_allowed(world, pins, folder) {
            Ok(found) => return found,
            Err(pack) => untrusted.push(pack),
        }
    }
    for folder in of_project(project).into_iter().filter(|it| holds_policies(world, it)) {
        let found = match read_allowed(world, pins, folder.clone()) {
            Ok(found) => found,
            Err(pack) => {
                untrusted.push(pack);
                continue;
            }
        };
        let reason = match standing(world, project, &folder, &found) {
            TrustStatus::Trusted => {
                let beneath = match users_pack(world, pins, &folder) {
                    Some(Err(pack)) => {
                        untrusted.push(pack);
                        None
                    }
                    Some(Ok(user)) => user.folder,
                    None => None,
                };
                return Found { untrusted, ..found }.over(beneath);
            }
            TrustStatus::Changed => UntrustedReason::Changed,
            TrustStatus::Unknown => UntrustedReason::Unknown,
        };
        untrusted.push(UntrustedPack { folder, reason });
    }
    let found = match users_pack(world, pins, Path::new("")) {
        Some(Ok(found)) => found,
        Some(Err(pack)) => {
            untrusted.push(pack);
            Found::new(None, Vec::new())
        }
        None => Found::new(None, Vec::new()),
    };
    Found { untrusted, ..found }
}

/// Reads the pack of the user, unless the used directory is that pack.
fn users_pack(world: &dyn World, pins: &Pins, used: &Path) -> Option<Result<Found, UntrustedPack>> {
    let folder = user::config_folder(world).map(|it| it.join("policies"))?;
    let is_other = folder != used && holds_policies(world, &folder);
    is_other.then(|| read_allowed(world, pins, folder))
}

/// Reads a pack that the organization allows.
fn read_allowed(world: &dyn World, pins: &Pins, folder: PathBuf) -> Result<Found, UntrustedPack> {
    let found = read(world, &folder);
    let hash = found.content_hash();
    if pins.allows_pack(&hash) {
        return Ok(found);
    }
    Err(UntrustedPack { folder, reason: UntrustedReason::NotAllowed(hash) })
}

/// The directory of a project's pack.
pub fn own_directory(project: &Project) -> PathBuf {
    pack_directory(&project.root)
}

fn pack_directory(root: &Path) -> PathBuf {
    root.join(STATE_DIR_NAME).join("policies")
}

/// Whether policyd uses a trusted pack in this directory: it belongs to a project or to the user, or
/// `POLICYD_POLICIES` names it.
pub fn is_active_directory(world: &dyn World, folder: &Path) -> bool {
    let of_user = user::config_folder(world).map(|it| it.join("policies"));
    let named = world.env("POLICYD_POLICIES").map(|it| world.working_folder().join(it));
    folder.ends_with(pack_directory(Path::new("")))
        || [of_user, named].iter().flatten().any(|it| it == folder)
}

/// Whether the user trusts the present content of the pack in a directory.
pub fn is_trusted(world: &dyn World, project: &Project, folder: &Path) -> bool {
    standing(world, project, folder, &read(world, folder)) == TrustStatus::Trusted
}

/// Whether the user trusts the pack in a directory, or trusted it before its files changed, or owns the directory: what
/// is being changed by its user is evaluated before it is trusted again.
pub fn was_trusted(world: &dyn World, project: &Project, folder: &Path) -> bool {
    let of_user = user::config_folder(world).map(|it| it.join("policies"));
    let found = read(world, folder);
    of_user.is_some_and(|it| it == folder)
        || standing(world, project, folder, &found) != TrustStatus::Unknown
}

/// The folders of packs that belong to a project, the nearest first.
fn of_project(project: &Project) -> Vec<PathBuf> {
    let own = pack_directory;
    let mut folders: Vec<PathBuf> = project.root.ancestors().map(own).collect();
    let main = own(&project.main);
    if !folders.contains(&main) {
        folders.push(main);
    }
    folders
}

/// The nearest pack of a project, trusted or not, for looking at it.
pub fn nearest_of(world: &dyn World, project: &Project) -> Option<PathBuf> {
    of_project(project).into_iter().find(|it| holds_policies(world, it))
}

/// How far a pack of a project is trusted; in a worktree also as its main checkout is.
pub fn standing(world: &dyn World, project: &Project, folder: &Path, found: &Found) -> TrustStatus {
    let Some(store) = trust_store(world) else { return TrustStatus::Unknown };
    let in_main = folder.strip_prefix(&project.root).map(|it| project.main.join(it));
    store.standing(folder, in_main.as_deref().ok(), &found.content_hash())
}

/// Where the user's trust is kept; nowhere without a home folder.
pub fn trust_store(world: &dyn World) -> Option<TrustStore<'_>> {
    let folder = user::config_folder(world)?;
    Some(TrustStore::new(world, &folder))
}

/// Reads the YAML files of a folder; for a file, of the folder it is in.
fn read(world: &dyn World, named: &Path) -> Found {
    let (pack, unreadable) = Folder::of(world, named).read(world, |it| it.display().to_string());
    Found::new(Some(pack), unreadable)
}

/// A pack that is broken.
#[derive(Debug, Default)]
pub struct InvalidPack {
    /// What could not be read.
    pub unreadable: Vec<String>,
    /// What is wrong in what was read.
    pub diagnostics: Vec<Diagnostic>,
    /// What the manifest says about errors, where it is sound.
    pub on_error: Option<policyd_policy::OnError>,
    /// Whether the manifest lets rules act, where it is sound.
    pub mode: Option<policyd_policy::EnforcementMode>,
    /// Whether the manifest switches the pack on, where it is sound.
    pub enabled: Option<bool>,
    /// Built-in sets of guards that the manifest leaves out, where it is sound.
    pub sets_off: Vec<String>,
}

/// Why a pack has no policy.
#[derive(Debug)]
pub enum LoadError {
    /// The pack is broken.
    Invalid(InvalidPack),
    /// Another program had to compile the pack, and did not.
    NotCompiled(Box<dyn Error>),
}

/// Returns the policy of a found pack.
pub type LoadPack = fn(&dyn World, &Found) -> Result<Policy, LoadError>;

/// Returns the policy of a found pack: from its compiled form if that is current, else compiled here.
///
/// # Errors
/// [`InvalidPack`] if the pack is broken.
pub fn policy(world: &dyn World, found: &Found) -> Result<Policy, InvalidPack> {
    if let Some(policy) = compiled(world, found) {
        return Ok(policy);
    }
    let policy = loaded(found)?;
    if let Some(kept) = CompiledPack::of(world, found)
        && let Ok(body) = postcard::to_stdvec(&policy)
    {
        kept.write(world, &body);
    }
    Ok(policy)
}

/// The same as a [`LoadPack`].
///
/// # Errors
/// [`LoadError::Invalid`] if the pack is broken.
pub fn load(world: &dyn World, found: &Found) -> Result<Policy, LoadError> {
    policy(world, found).map_err(LoadError::Invalid)
}

/// Returns the policy of a found pack: from its compiled form if that is current, else as `compile` compiles it. It
/// receives the input of [`compiler::run`], and returns the output.
///
/// # Errors
/// [`LoadError::Invalid`] if the pack is broken, [`LoadError::NotCompiled`] if `compile` failed.
pub fn load_by(
    world: &dyn World,
    found: &Found,
    compile: impl FnOnce(&[u8]) -> Result<Vec<u8>, Box<dyn Error>>,
) -> Result<Policy, LoadError> {
    if let Some(policy) = compiled(world, found) {
        return Ok(policy);
    }
    let output = compile(&compiler::input(found)).map_err(LoadError::NotCompiled)?;
    let body = compiler::read(&output)?;
    if let Some(kept) = CompiledPack::of(world, found) {
        kept.write(world, &body);
    }
    let body = EncodedBytes::Read(Arc::new(body));
    let damaged = || LoadError::NotCompiled("the compiled pack is damaged".into());
    deferred::decode(&body, 0..body.len()).ok_or_else(damaged)
}

/// Returns the current compiled form of a pack. A pack that could not be read as a whole has none.
fn compiled(world: &dyn World, found: &Found) -> Option<Policy> {
    if found.folder.is_none() {
        return built_in();
    }
    let is_whole = found.unreadable.is_empty() && found.remote().iter().all(|it| it.files.is_ok());
    if is_whole { CompiledPack::of(world, found)?.read(world) } else { None }
}

/// Saves the compiled form of a pack, so that the first hook need not load its files. A hook reports what is wrong
/// with the pack.
pub fn compile_ahead(world: &dyn World, found: &Found) {
    drop(policy(world, found));
}

/// The policy of a found pack, from its files. If the pack of the user cannot be a layer of it, it counts alone.
pub fn loaded(found: &Found) -> Result<Policy, InvalidPack> {
    match found.beneath.as_ref() {
        Some(beneath) => layers::loaded(found, beneath),
        None => loaded_alone(found),
    }
}

fn loaded_alone(found: &Found) -> Result<Policy, InvalidPack> {
    let Loaded { policy, diagnostics, on_error, mode, enabled, sets_off } =
        load::load(&found.pack(), &builtin::pack());
    let policy = policy.filter(|_| found.unreadable.is_empty());
    let policy = policy.map(|policy| match found.layer {
        Layer::Project => policy,
        Layer::Organization => organization::own_rules(policy),
    });
    let unreadable = found.unreadable.clone();
    let sets_off = sets_off.into_iter().map(str::to_owned).collect();
    policy.ok_or(InvalidPack { unreadable, diagnostics, on_error, mode, enabled, sets_off })
}

/// Returns the SHA-256 over the names and contents of a pack's source files, and the hashes of its remote packs.
fn content(pack: Option<&Pack>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (file, source) in pack.iter().flat_map(|it| &it.files) {
        hash.update(file);
        hash.update([0]);
        hash.update(source.text.len().to_le_bytes());
        hash.update(&source.text);
    }
    for remote in pack.iter().flat_map(|it| &it.remote) {
        hash.update(&remote.source);
        hash.update([0]);
        hash.update(remote.sha256.as_deref().unwrap_or_default());
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

/// What is broken and where, for the user: the first findings on one line each.
pub fn explain(broken: &InvalidPack) -> String {
    format!("the policy pack is broken: {}", list(broken))
}

/// The first findings of a broken pack in one line.
fn list(broken: &InvalidPack) -> String {
    const SHOWN: usize = 5;
    let lines = problems(broken);
    let more = lines.len().saturating_sub(SHOWN);
    let mut text = lines.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

/// What is broken and where, one line each.
fn problems(broken: &InvalidPack) -> Vec<String> {
    let errors = broken.diagnostics.iter().filter(|it| it.level == policyd_yaml::Level::Error);
    let errors = errors.map(|it| format!("{}: {}", it.span.place(), it.message));
    let mut lines: Vec<String> = broken.unreadable.iter().cloned().chain(errors).collect();
    // Several readers of a file can find the same error.
    lines.dedup();
    lines
}

/// The names that the expressions of a found pack may use.
pub fn names(found: &Found) -> Arc<Names> {
    ReviewedPolicy::new(&found.pack(), &Base::new(&builtin::pack())).names
}

/// The built-in pack, for events that must not be forgotten because another one is broken.
pub fn builtin_policy() -> Option<Policy> {
    built_in()
}
