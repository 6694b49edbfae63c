//! Whether the user lets policyd act on this machine: `observe` or `enforce`, and the rules that are enforced while
//! the rest observes. Kept in the user's configuration.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::document::DocumentError;
use super::user;
use super::user_file::UserFile;
use policyd_policy::{EnforcementMode, Policy};
use policyd_world::World;

/// Below the user's configuration.
const FILE: &str = "enforcement.json";

/// The user's choice for all projects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnforcementChoice {
    /// Mode of everything that is not named in `enforced`.
    pub mode: EnforcementMode,
    /// Ids of checks and guards, and names of guard sets, that are always enforced.
    pub enforced: BTreeSet<String>,
    /// Whether the organization set the mode, so that no manifest changes it.
    #[serde(skip)]
    pub is_pinned: bool,
}

impl EnforcementChoice {
    /// Returns the mode that the organization set.
    #[must_use]
    pub fn pinned(mode: EnforcementMode) -> Self {
        Self { mode, is_pinned: true, ..Self::default() }
    }

    /// Returns the mode of a pack: that of the organization, else of its manifest, else the user's.
    #[must_use]
    pub fn mode_of(&self, manifest: Option<EnforcementMode>) -> EnforcementMode {
        manifest.filter(|_| !self.is_pinned).unwrap_or(self.mode)
    }

    /// Makes the rules of a pack observe that this choice and the manifest do not enforce.
    pub fn apply(&self, policy: &mut Policy) {
        if self.mode_of(policy.settings.mode) == EnforcementMode::Observe {
            policy.observe(|names| !names.iter().any(|it| self.enforced.contains(*it)));
        }
    }

    /// Describes for the user that rules of a pack only observe. `None` if none does.
    #[must_use]
    pub fn summary(&self, manifest: Option<EnforcementMode>) -> Option<String> {
        if self.mode_of(manifest) == EnforcementMode::Enforce {
            return None;
        }
        let names: Vec<&str> = self.enforced.iter().map(String::as_str).collect();
        let except = match names.as_slice() {
            [] => String::new(),
            names => format!(", except {}", names.join(", ")),
        };
        Some(format!("policyd observes and does not block{except}"))
    }

    /// Describes the same, with how to enforce the rules.
    #[must_use]
    pub fn text(&self, manifest: Option<EnforcementMode>) -> Option<String> {
        let summary = self.summary(manifest)?;
        let way = match manifest {
            _ if self.is_pinned => "the organization set `mode: observe`",
            Some(_) => "the manifest contains `mode: observe`",
            None => "`policyd enforce` ends it",
        };
        Some(format!("{summary}; {way}"))
    }
}

/// The file of the user's choice.
pub struct EnforcementStore<'a>(UserFile<'a>);

impl<'a> EnforcementStore<'a> {
    /// The store of the user of this process.
    #[must_use]
    pub fn new(world: &'a dyn World) -> Self {
        let path = user::config_folder(world).map(|it| it.join(FILE));
        Self(UserFile { world, path, state_dir: None })
    }

    /// The file; nothing if neither `XDG_CONFIG_HOME` nor `HOME` is set.
    #[must_use]
    pub fn path(&self) -> Option<std::path::PathBuf> {
        self.0.path.clone()
    }

    /// The choice; without a file everything is enforced.
    ///
    /// # Errors
    /// The file is not used.
    pub fn load(&self) -> Result<EnforcementChoice, DocumentError> {
        self.0.load()
    }

    /// Changes the choice durably, under a lock; returns what `change` returns.
    ///
    /// # Errors
    /// The change was not saved.
    pub fn change<R>(
        &self,
        change: impl FnOnce(&mut EnforcementChoice) -> R,
    ) -> Result<R, DocumentError> {
        self.0.change(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_policy::builtin;

    #[test]
    fn a_manifest_beats_the_mode_of_the_user_and_an_enforced_rule_beats_both() {
        use EnforcementMode::{Enforce, Observe};
        for (user, manifest, enforced, is_observed) in [
            (Enforce, None, "", false),
            (Observe, None, "", true),
            (Observe, Some(Enforce), "", false),
            (Enforce, Some(Observe), "", true),
            (Enforce, Some(Observe), "rm_recursive", false),
            (Observe, None, "destructive-commands", false),
            (Observe, None, "git-discipline", true),
        ] {
            let mut policy =
                policyd_policy::load::load(&builtin::pack(), &builtin::pack()).policy.unwrap();
            policy.settings.mode = manifest;
            let enforced = [enforced.to_owned()].into_iter().filter(|it| !it.is_empty()).collect();
            let choice = EnforcementChoice { mode: user, enforced, is_pinned: false };
            choice.apply(&mut policy);
            let guard = policy.guards.rules.iter().find(|it| it.id == "rm_recursive").unwrap();
            assert_eq!(guard.observed, is_observed, "{user:?} {manifest:?}");
        }
    }
}
