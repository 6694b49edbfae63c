//! What the user chose for a project on this machine: policyd disabled or paused, switch files
//! honored, runs started, breakers forced open, requests approved. One file per state directory, in
//! the user's configuration, because whatever lies in a project can come with the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::allowance::Allowance;
use super::document::DocumentError;
use super::pause::Pause;
use super::user;
use super::user_file::{self, UserFile};
use policyd_base::id::SessionId;
use policyd_base::limits::USER_CHOICES_KEPT;
use policyd_state::stored::{elements, or_default};
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// Below the user's configuration.
const FOLDER: &str = "projects";

/// policyd disabled in a project until the user enables it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledProject {
    /// When the user disabled policyd.
    pub since: Timestamp,
    /// Reason of the user; may be empty.
    #[serde(default, deserialize_with = "or_default")]
    pub reason: String,
}

/// The choices of the user for one state directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserChoices {
    /// Whether policyd is disabled in the project.
    pub disabled: Option<DisabledProject>,
    /// Whether switch files in the project disable policyd or single checks.
    #[serde(deserialize_with = "or_default")]
    pub switch_files: bool,
    /// Pauses, of which some might have ended.
    #[serde(deserialize_with = "elements")]
    pub pauses: Vec<Pause>,
    /// Runs that the user started: the id of each with the digest of what it runs.
    #[serde(deserialize_with = "elements")]
    pub runs: BTreeMap<String, String>,
    /// Breakers that the user forced open.
    #[serde(deserialize_with = "elements")]
    pub forced_breakers: BTreeSet<String>,
    /// Rules and calls that the user lets pass, oldest first.
    #[serde(deserialize_with = "elements")]
    pub allowances: Vec<Allowance>,
    /// Ids of approvals that the user gave, oldest first.
    #[serde(deserialize_with = "elements")]
    pub approvals: Vec<String>,
}

impl UserChoices {
    /// The pause that applies to a session: its own, else that of the project.
    #[must_use]
    pub fn pause_of(&self, session: &SessionId, now: Timestamp) -> Option<&Pause> {
        let mut own = self.pauses.iter().filter(|it| it.holds(now));
        let project = own.clone().find(|it| it.session.is_none());
        own.find(|it| it.session.as_ref() == Some(session)).or(project)
    }

    /// Adds a pause; one of the same session, or of the project, is replaced. Pauses that ended go.
    pub fn add_pause(&mut self, pause: Pause, now: Timestamp) {
        self.pauses.retain(|it| it.holds(now) && it.session != pause.session);
        self.pauses.push(pause);
    }

    /// Ends the pauses of a session, or every pause; returns those that applied.
    pub fn end_pauses(&mut self, session: Option<&SessionId>, now: Timestamp) -> Vec<Pause> {
        let ends = |it: &Pause| session.is_none() || it.session.as_ref() == session;
        let all = std::mem::take(&mut self.pauses).into_iter().filter(|it| it.holds(now));
        let (ended, left): (Vec<Pause>, Vec<Pause>) = all.partition(ends);
        self.pauses = left;
        ended
    }

    /// Records a run that the user started; the oldest are dropped.
    pub fn add_run(&mut self, id: &str, digest: &str) {
        self.runs.insert(id.to_owned(), digest.to_owned());
        while self.runs.len() > USER_CHOICES_KEPT {
            self.runs.pop_first();
        }
    }

    /// Records an approval that the user gave; the oldest are dropped.
    pub fn add_approval(&mut self, id: &str) {
        self.approvals.push(id.to_owned());
        let surplus = self.approvals.len().saturating_sub(USER_CHOICES_KEPT);
        self.approvals.drain(..surplus);
    }
}

/// The file of the user's choices for one state directory.
#[derive(Clone)]
pub struct UserChoiceStore<'a> {
    world: &'a dyn World,
    root: PathBuf,
}

impl<'a> UserChoiceStore<'a> {
    /// The choices for the project whose state is in `root`.
    #[must_use]
    pub fn new(world: &'a dyn World, root: &Path) -> Self {
        Self { world, root: root.to_owned() }
    }

    /// The file; nothing if neither `XDG_CONFIG_HOME` nor `HOME` is set.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        let folder = user::config_folder(self.world)?.join(FOLDER);
        Some(folder.join(format!("{}.json", user::key(self.world, &self.root))))
    }

    /// The choices; without a file, the user chose nothing.
    ///
    /// # Errors
    /// The file is not used.
    pub fn load(&self) -> Result<UserChoices, DocumentError> {
        self.file().load()
    }

    /// Changes the choices durably, under a lock; returns what `change` returns. Nothing is written
    /// if nothing changed.
    ///
    /// # Errors
    /// The change was not saved.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut UserChoices) -> T,
    ) -> Result<T, DocumentError> {
        self.file().change(change)
    }

    fn file(&self) -> UserFile<'_> {
        UserFile { world: self.world, path: self.path(), state_dir: Some(&self.root) }
    }
}

/// The state directories of projects for which the user chose something.
#[must_use]
pub fn known_state_dirs(world: &dyn World) -> Vec<PathBuf> {
    let Some(folder) = user::config_folder(world).map(|it| it.join(FOLDER)) else {
        return Vec::new();
    };
    let state_dir = |name: String| {
        let document = user_file::document(world, &folder.join(name));
        let value: serde_json::Value = document.load().ok()??;
        Some(PathBuf::from(value.get("state_dir")?.as_str()?))
    };
    let names = world.list(&folder).unwrap_or_default();
    names.into_iter().filter(|it| it.ends_with(".json")).filter_map(state_dir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserDirectory;
    use policyd_world::fake::FakeWorld;

    fn machine() -> FakeWorld {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world
    }

    #[test]
    fn choices_are_kept_per_state_directory_and_outside_of_it() {
        let world = machine();
        let store = |root: &str| UserChoiceStore::new(&world, Path::new(root));
        let chosen = UserChoices {
            disabled: Some(DisabledProject {
                since: Timestamp::from_millis(0),
                reason: "demo".to_owned(),
            }),
            switch_files: true,
            runs: [("r".to_owned(), "ab".to_owned())].into(),
            forced_breakers: ["probe/ci".to_owned()].into(),
            approvals: vec!["0123456789ab".to_owned()],
            ..UserChoices::default()
        };
        store("/work/.policyd").change(|it| it.clone_from(&chosen)).unwrap();
        assert_eq!(store("/work/.policyd").load(), Ok(chosen));
        assert_eq!(store("/work/sub/.policyd").load(), Ok(UserChoices::default()));
        let path = store("/work/.policyd").path().unwrap();
        assert!(path.starts_with("/home/me/.config/policyd/projects"), "{}", path.display());
    }

    #[test]
    fn without_a_home_nothing_is_chosen_and_nothing_can_be() {
        let world = FakeWorld::new();
        let store = UserChoiceStore::new(&world, Path::new("/work/.policyd"));
        assert_eq!(store.load(), Ok(UserChoices::default()));
        let refused = store.change(|it| it.switch_files = true);
        assert_eq!(refused, Err(DocumentError::NoDirectory(UserDirectory::Configuration)));
    }

    #[test]
    fn old_runs_and_approvals_go() {
        let mut choices = UserChoices::default();
        for number in 0..USER_CHOICES_KEPT + 2 {
            choices.add_run(&format!("{number:04}"), "d");
            choices.add_approval(&format!("{number:04}"));
        }
        assert_eq!(choices.runs.len(), USER_CHOICES_KEPT);
        assert!(!choices.runs.contains_key("0001") && choices.runs.contains_key("0002"));
        assert_eq!(choices.approvals.first().map(String::as_str), Some("0002"));
    }
}
