//! The organization's pack: rules of the machine's administrator, which no user, project, or agent can weaken.
//!
//! It counts only if root alone can change it: the directory, its parents, and every file belong to root, and
//! neither the group nor others can write to them. Otherwise the pack is ignored, and the user is notified.

use std::path::{Path, PathBuf};

use super::folder::is_yaml;
use super::found::{FoundPack, Layer, read};
use policyd_policy::guards::Guard;
use policyd_policy::{Policy, builtin};
use policyd_store::administrator::{self, Weakness, policies, weakness, weakness_on_way};
use policyd_store::pack_lock::PackLock;
use policyd_world::{World, WorldError};

/// Why the organization's pack is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredPack {
    #[error("the organization's pack is ignored: {0}")]
    Weak(Weakness),
    #[error("the organization's pack in `{}` cannot be read: {error}", folder.display())]
    Unreadable { folder: PathBuf, error: WorldError },
}

/// The compiled form of the pack. Only root can write it, so it appears when root runs policyd.
pub(super) fn compiled_file() -> PathBuf {
    administrator::directory().join("policies.pack")
}

/// Finds the organization's pack. `None` if it does not exist.
///
/// # Errors
/// The pack exists and is ignored: a user other than root could change it, or it cannot be read.
pub fn find(world: &dyn World) -> Result<Option<FoundPack>, IgnoredPack> {
    let folder = policies();
    let names = match world.list(&folder) {
        Ok(names) => names,
        Err(WorldError::NotFound) => return Ok(None),
        Err(error) => return Err(IgnoredPack::Unreadable { folder, error }),
    };
    let files: Vec<PathBuf> =
        names.iter().filter(|it| is_yaml(it)).map(|it| folder.join(it)).collect();
    if files.is_empty() {
        return Ok(None);
    }
    let lock = Some(PackLock::path(&folder)).filter(|it| world.stat(it).is_ok());
    let of_files = || files.iter().chain(&lock).find_map(|it| weakness(world, it));
    if let Some(weakness) = weakness_on_way(world, &folder).or_else(of_files) {
        return Err(IgnoredPack::Weak(weakness));
    }
    Ok(Some(FoundPack { layer: Layer::Organization, ..read(world, &folder) }))
}

/// Gives a file the rights of the directory's policies, so that every user can read it.
pub(super) fn publish(world: &dyn World, path: &Path) -> Result<(), WorldError> {
    let names = world.list(&policies())?;
    let model = names.iter().find(|it| is_yaml(it)).ok_or(WorldError::NotFound)?;
    world.copy_rights(&policies().join(model), path)
}

/// Keeps the rules that the organization wrote or changed. Rules that it only inherits from the built-in pack
/// are those of the project, which may change them. Reactions are those of the project.
pub(super) fn own_rules(mut policy: Policy) -> Policy {
    let is_own = |it: &Guard| !builtin::has(&it.body.place.file);
    policy.guards.change(|all| all.rules.change(|rules| rules.retain(is_own)));
    let Policy { guards, guarded, .. } = &mut policy;
    guarded.retain(|kind| guards.at(*kind).next().is_some());
    policy.change_checks(|all| all.retain(|it| !builtin::has(&it.place.file)));
    policy.reacts_to.clear();
    policy
}

/// Leaves out rules of the built-in pack that the organization changed: the organization's version counts. A
/// rule that the project changed stays, because it may be stricter.
pub fn leave_out_changed(policy: &mut Policy, organization: &Policy) {
    let is_changed =
        |id: &str, file: &str| organization.rule_id(id).is_some() && builtin::has(file);
    let is_kept = |it: &Guard| !is_changed(&it.id, &it.body.place.file);
    policy.guards.change(|all| all.rules.change(|rules| rules.retain(is_kept)));
    policy.change_checks(|all| all.retain(|it| !is_changed(&it.id, &it.place.file)));
}
