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
mod directory;
pub mod folder;
mod found;
pub mod grants;
mod invalid_pack;
mod layers;
pub mod organization;
pub mod remote;
pub mod shared_ids;
pub mod trust_record;
mod untrusted;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compiled::{CompiledPack, built_in};
use directory::of_project;
pub use directory::{is_active_directory, nearest_of, own_directory};
use folder::holds_policies;
pub use found::FoundPack;
use found::read;
pub use invalid_pack::{InvalidPack, LoadError, explain};
pub use layers::loaded;
use policyd_fact_table::types::Names;
use policyd_policy::review::{Base, ReviewedPolicy};
use policyd_policy::{Policy, builtin};
use policyd_store::configuration::{Configuration, ConfigurationOwner, Pins};
use policyd_store::trust::{TrustStatus, TrustStore};
use policyd_store::user;
use policyd_workspace::project::Project;
use policyd_world::World;
use policyd_yaml::deferred::{self, EncodedBytes};
pub use untrusted::{UntrustedPack, UntrustedReason};

/// The pack in a folder, or the built-in one.
pub fn at(world: &dyn World, folder: Option<&str>) -> FoundPack {
    folder.map_or_else(|| FoundPack::new(None, Vec::new()), |it| read(world, Path::new(it)))
}

/// Finds the pack: `--policies`, `$POLICYD_POLICIES`, `.policyd/policies/` at or above the project
/// where it is trusted, `$XDG_CONFIG_HOME/policyd/policies/`, the built-in one.
pub fn find(world: &dyn World, project: &Project, named: Option<&Path>) -> FoundPack {
    let pins = Configuration::load(world, ConfigurationOwner::Organization).pins;
    find_allowed(world, project, named, &pins)
}

/// Does the same as [`find`], by decisions of the organization that were read already.
pub fn find_allowed(
    world: &dyn World,
    project: &Project,
    named: Option<&Path>,
    pins: &Pins,
) -> FoundPack {
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
                return FoundPack { untrusted, ..found }.over(beneath);
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
            FoundPack::new(None, Vec::new())
        }
        None => FoundPack::new(None, Vec::new()),
    };
    FoundPack { untrusted, ..found }
}

/// Reads the pack of the user, unless the used directory is that pack.
fn users_pack(
    world: &dyn World,
    pins: &Pins,
    used: &Path,
) -> Option<Result<FoundPack, UntrustedPack>> {
    let folder = user::config_folder(world).map(|it| it.join("policies"))?;
    let is_other = folder != used && holds_policies(world, &folder);
    is_other.then(|| read_allowed(world, pins, folder))
}

/// Reads a pack that the organization allows.
fn read_allowed(
    world: &dyn World,
    pins: &Pins,
    folder: PathBuf,
) -> Result<FoundPack, UntrustedPack> {
    let found = read(world, &folder);
    let hash = found.content_hash();
    if pins.allows_pack(&hash) {
        return Ok(found);
    }
    Err(UntrustedPack { folder, reason: UntrustedReason::NotAllowed(hash) })
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

/// How far a pack of a project is trusted; in a worktree also as its main checkout is.
pub fn standing(
    world: &dyn World,
    project: &Project,
    folder: &Path,
    found: &FoundPack,
) -> TrustStatus {
    let Some(store) = trust_store(world) else { return TrustStatus::Unknown };
    let in_main = folder.strip_prefix(&project.root).map(|it| project.main.join(it));
    store.standing(folder, in_main.as_deref().ok(), &found.content_hash())
}

/// Where the user's trust is kept; nowhere without a home folder.
pub fn trust_store(world: &dyn World) -> Option<TrustStore<'_>> {
    let folder = user::config_folder(world)?;
    Some(TrustStore::new(world, &folder))
}

/// Returns the policy of a found pack.
pub type LoadPack = fn(&dyn World, &FoundPack) -> Result<Policy, LoadError>;

/// Returns the policy of a found pack: from its compiled form if that is current, else compiled here.
///
/// # Errors
/// [`InvalidPack`] if the pack is broken.
pub fn policy(world: &dyn World, found: &FoundPack) -> Result<Policy, InvalidPack> {
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
pub fn load(world: &dyn World, found: &FoundPack) -> Result<Policy, LoadError> {
    policy(world, found).map_err(LoadError::Invalid)
}

/// Returns the policy of a found pack: from its compiled form if that is current, else as `compile` compiles it. It
/// receives the input of [`compiler::run`], and returns the output.
///
/// # Errors
/// [`LoadError::Invalid`] if the pack is broken, [`LoadError::NotCompiled`] if `compile` failed.
pub fn load_by(
    world: &dyn World,
    found: &FoundPack,
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
fn compiled(world: &dyn World, found: &FoundPack) -> Option<Policy> {
    if found.folder.is_none() {
        return built_in();
    }
    let is_whole = found.unreadable.is_empty() && found.remote().iter().all(|it| it.files.is_ok());
    if is_whole { CompiledPack::of(world, found)?.read(world) } else { None }
}

/// Saves the compiled form of a pack, so that the first hook need not load its files. A hook reports what is wrong
/// with the pack.
pub fn compile_ahead(world: &dyn World, found: &FoundPack) {
    drop(policy(world, found));
}

/// The names that the expressions of a found pack may use.
pub fn names(found: &FoundPack) -> Arc<Names> {
    ReviewedPolicy::new(&found.pack(), &Base::new(&builtin::pack())).names
}

/// The built-in pack, for events that must not be forgotten because another one is broken.
pub fn builtin_policy() -> Option<Policy> {
    built_in()
}
