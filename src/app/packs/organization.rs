//! The organization's pack: rules of the machine's administrator, which no user, project, or agent can weaken.
//!
//! It counts only if root alone can change it: the directory, its parents, and every file belong to root, and
//! neither the group nor others can write to them. Otherwise the pack is ignored, and the user is notified.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use super::folder::is_yaml;
use super::{Found, Layer, read};
use crate::policy::{Policy, builtin};
use crate::world::{World, WorldError};

/// The administrator's directory.
#[cfg(not(target_os = "macos"))]
const DIRECTORY: &str = "/etc/policyd";
#[cfg(target_os = "macos")]
const DIRECTORY: &str = "/Library/Application Support/policyd";

/// The user whose files count.
const ROOT: u32 = 0;

/// Why the organization's pack is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Weakness {
    path: PathBuf,
    kind: WeaknessKind,
}

/// How a user other than root could change a file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WeaknessKind {
    Link,
    Owner(u32),
    SharedWrite,
    NoOwners,
    Unreadable(WorldError),
}

impl Display for Weakness {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "the organization's pack is ignored: `{}` ", self.path.display())?;
        match &self.kind {
            WeaknessKind::Link => f.write_str("is a symbolic link; replace it by the file"),
            WeaknessKind::Owner(user) => {
                write!(f, "belongs to user {user}; run `chown root` on it")
            }
            WeaknessKind::SharedWrite => {
                f.write_str("can be changed by other users; run `chmod go-w` on it")
            }
            WeaknessKind::NoOwners => f.write_str("has no owner on this platform"),
            WeaknessKind::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

/// The directory of the organization's policies.
pub(crate) fn policies() -> PathBuf {
    Path::new(DIRECTORY).join("policies")
}

/// The compiled form of the pack. Only root can write it, so it appears when root runs policyd.
pub(super) fn compiled_file() -> PathBuf {
    Path::new(DIRECTORY).join("policies.pack")
}

/// Finds the organization's pack; `None` if there is none.
///
/// # Errors
/// The pack exists and is ignored, because a user other than root could change it.
pub(crate) fn find(world: &dyn World) -> Result<Option<Found>, Weakness> {
    let folder = policies();
    let names = world.list(&folder).unwrap_or_default();
    let files: Vec<PathBuf> =
        names.iter().filter(|it| is_yaml(it)).map(|it| folder.join(it)).collect();
    if files.is_empty() {
        return Ok(None);
    }
    let parents = folder.ancestors().map(Path::to_path_buf);
    if let Some(weakness) = parents.chain(files).find_map(|it| weakness(world, &it)) {
        return Err(weakness);
    }
    Ok(Some(Found { layer: Layer::Organization, ..read(world, &folder) }))
}

/// How a user other than root could change a file or directory; `None` if only root can.
pub(super) fn weakness(world: &dyn World, path: &Path) -> Option<Weakness> {
    let kind = match world.entry(path) {
        Err(error) => WeaknessKind::Unreadable(error),
        Ok(entry) if entry.link.is_some() => WeaknessKind::Link,
        Ok(entry) if entry.shared_write => WeaknessKind::SharedWrite,
        Ok(entry) => match entry.owner {
            Some(ROOT) => return None,
            Some(other) => WeaknessKind::Owner(other),
            None => WeaknessKind::NoOwners,
        },
    };
    Some(Weakness { path: path.to_path_buf(), kind })
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
    let mut guards = (*policy.guards).clone();
    guards.rules.retain(|it| !builtin::has(&it.body.place.file));
    let mut checks = (*policy.considerations).clone();
    checks.retain(|it| !builtin::has(&it.place.file));
    policy.guarded.retain(|kind| guards.rules.iter().any(|it| it.on.contains(kind)));
    policy.judged_at.retain(|kind| checks.iter().any(|it| it.on.contains(kind)));
    policy.reacts_to.clear();
    (policy.guards, policy.considerations) = (guards.into(), checks.into());
    policy
}

/// Leaves out rules of the built-in pack that the organization changed: the organization's version counts. A
/// rule that the project changed stays, because it may be stricter.
pub(crate) fn leave_out_changed(policy: &mut Policy, organization: &Policy) {
    let guards = organization.guards.rules.iter().map(|it| &it.id);
    let changed: Vec<&String> =
        organization.considerations.iter().map(|it| &it.id).chain(guards).collect();
    let is_changed = |id: &String, file: &str| changed.contains(&id) && builtin::has(file);
    let mut guards = (*policy.guards).clone();
    guards.rules.retain(|it| !is_changed(&it.id, &it.body.place.file));
    let mut checks = (*policy.considerations).clone();
    checks.retain(|it| !is_changed(&it.id, &it.place.file));
    (policy.guards, policy.considerations) = (guards.into(), checks.into());
}
