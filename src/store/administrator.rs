//! The directory of the machine's administrator. What it contains counts only if root alone can change it: the
//! directory, its parents, and each file belong to root, and neither the group nor others can write to them.

use std::path::{Path, PathBuf};

use policyd_world::{World, WorldError};

#[cfg(not(target_os = "macos"))]
const DIRECTORY: &str = "/etc/policyd";
#[cfg(target_os = "macos")]
const DIRECTORY: &str = "/Library/Application Support/policyd";

/// The user whose files count.
const ROOT: u32 = 0;

/// Returns the directory of the administrator.
#[must_use]
pub fn directory() -> &'static Path {
    Path::new(DIRECTORY)
}

/// Returns the directory of the organization's policies.
#[must_use]
pub fn policies() -> PathBuf {
    directory().join("policies")
}

/// Returns whether a directory is that of the organization's policies.
#[must_use]
pub fn is_policies(folder: &Path) -> bool {
    folder == policies()
}

/// A file or directory that a user other than root could change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` {kind}", path.display())]
pub struct Weakness {
    path: PathBuf,
    kind: WeaknessKind,
}

/// How a user other than root could change a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum WeaknessKind {
    #[error("is a symbolic link; replace it by the file")]
    Link,
    #[error("belongs to user {0}; run `chown root` on it")]
    Owner(u32),
    #[error("can be changed by other users; run `chmod go-w` on it")]
    SharedWrite,
    #[error("has no owner on this platform")]
    NoOwners,
    #[error("cannot be read: {0}")]
    Unreadable(WorldError),
}

/// Returns how a user other than root could change a file or directory. `None` if only root can.
#[must_use]
pub fn weakness(world: &dyn World, path: &Path) -> Option<Weakness> {
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

/// Returns the first weakness of a file or directory and its parents.
#[must_use]
pub fn weakness_on_way(world: &dyn World, path: &Path) -> Option<Weakness> {
    path.ancestors().find_map(|it| weakness(world, it))
}
