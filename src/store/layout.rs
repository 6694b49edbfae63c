//! Where the files of a session lie: policyd's own layout, the seed's, or a template of a manifest.
//! May not live here: reading or writing sessions.

use std::path::{Path, PathBuf};

use policyd_base::id::SessionId;
use policyd_world::World;

/// The state file of a session, as amplihack names it.
pub const STATE_FILE: &str = "state.json";
/// The lock file of a session; never deleted while the session lives.
pub const LOCK_FILE: &str = ".state.lock";
/// The diagnostic log of a session, as amplihack names it.
pub const LOG_FILE: &str = "diagnostic.jsonl";

/// `.gitignore` of a state directory: git tracks only the policies.
pub(super) const GITIGNORE: &str = "/*\n!/policies/\n";

/// Excludes everything but the policies of a state directory from git.
pub fn hide(world: &dyn World, root: &Path) {
    let path = root.join(".gitignore");
    if world.stat(&path).is_err() {
        // Without it git shows the files; nothing else depends on it.
        world.write(&path, GITIGNORE.as_bytes()).ok();
    }
}

/// Where sessions live under a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    folder: String,
    owns_root: bool,
}

impl Layout {
    /// `sessions/{session_id}/` under a root that belongs to policyd (`.policyd`), which is made
    /// private and kept out of git.
    #[must_use]
    pub fn policyd() -> Self {
        Self { folder: "sessions/{session_id}".to_owned(), owns_root: true }
    }

    /// amplihack: `.claude/runtime/power-steering/{session_id}/` under the project.
    #[must_use]
    pub fn power_steering() -> Self {
        let folder = ".claude/runtime/power-steering/{session_id}".to_owned();
        Self { folder, owns_root: false }
    }

    /// Whether the root belongs to policyd alone.
    #[must_use]
    pub fn owns_root(&self) -> bool {
        self.owns_root
    }

    /// The files of a session under `root`.
    #[must_use]
    pub fn paths(&self, root: &Path, session: &SessionId) -> SessionPaths {
        let folder = root.join(self.folder.replace("{session_id}", session.as_str()));
        SessionPaths {
            state: folder.join(STATE_FILE),
            log: folder.join(LOG_FILE),
            lock: folder.join(LOCK_FILE),
            folder,
        }
    }

    /// The root's own session folders: `AMPLIHACK_PS_STATE_DIR` names such a directory (amplihack).
    #[must_use]
    pub fn bare() -> Self {
        Self { folder: "{session_id}".to_owned(), owns_root: false }
    }

    /// A folder template of a manifest: relative, without `..`, and `{session_id}` as its last
    /// part and nowhere else. `owns_root`: the root is made private and kept out of git.
    #[must_use]
    pub fn parse(template: &str, owns_root: bool) -> Option<Self> {
        let (last, first) = {
            let mut parts = template.trim_end_matches('/').rsplit('/');
            (parts.next()?, parts)
        };
        let plain = |part: &str| {
            !matches!(part, "" | "." | "..") && !part.contains(['\\', '{', '}', ':', '\0'])
        };
        let fits = last == "{session_id}" && first.into_iter().all(plain);
        fits.then(|| Self { folder: template.trim_end_matches('/').to_owned(), owns_root })
    }
}

/// The files of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPaths {
    /// The folder that holds them.
    pub folder: PathBuf,
    /// The state.
    pub state: PathBuf,
    /// The diagnostic log.
    pub log: PathBuf,
    /// The lock.
    pub lock: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_stay_under_the_root() {
        assert_eq!(Layout::parse("sessions/{session_id}/", true), Some(Layout::policyd()));
        assert!(Layout::parse("{session_id}", true).is_some());
        for bad in [
            "../{session_id}",
            "/x/{session_id}",
            "sessions",
            "{session_id}/x",
            "",
            "a//{session_id}",
        ] {
            assert_eq!(Layout::parse(bad, true), None, "{bad}");
        }
    }
}
