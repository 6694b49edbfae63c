//! Supervised runs: each has a folder of its own under `runs/`, with its state, its logs and what its
//! sessions left. One run at a time is at work in a project.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::document::{Documents, Held};
use super::file::Durability;
use crate::limits::RUN_FILE_BYTES_MAX;
use crate::state::run::{Run, Status, VERSION};
use crate::time::Timestamp;
use crate::world::{HeldLock, World, WorldError};

/// Under the root of our own.
const FOLDER: &str = "runs";
const LOCK: &str = "runs/.lock";
const STATE: &str = "state.json";

/// The runs under one root.
pub struct RunStore<'a> {
    documents: Documents<'a>,
}

/// Why a run cannot be gone on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// There is none.
    None,
    /// Its state is damaged.
    Damaged(String),
    /// A newer program wrote it.
    Newer(String),
    /// It could not be read now.
    Refused(WorldError),
}

impl<'a> RunStore<'a> {
    /// Those under a root of our own.
    #[must_use]
    pub fn new(world: &'a dyn World, root: &Path, durability: Durability) -> Self {
        let how = (durability, Duration::ZERO);
        Self { documents: Documents::new(world, root, how, RUN_FILE_BYTES_MAX) }
    }

    /// Keeps other runs of the project away while it is held.
    ///
    /// # Errors
    /// `Locked` where one is at work, or what the machine said.
    pub fn lock(&self) -> Result<Box<dyn HeldLock>, WorldError> {
        self.documents.lock(LOCK, &[FOLDER])
    }

    /// The folder of a run.
    #[must_use]
    pub fn folder(&self, id: &str) -> PathBuf {
        self.documents.path(FOLDER).join(id)
    }

    /// Ids of the runs, oldest first.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let names = self.documents.world.list(&self.documents.path(FOLDER)).unwrap_or_default();
        let is_run = |it: &String| {
            !it.starts_with('.') && self.documents.world.stat(&self.folder(it).join(STATE)).is_ok()
        };
        names.into_iter().filter(is_run).collect()
    }

    /// An id that no run has: the time, so that they sort by it.
    #[must_use]
    pub fn new_id(&self, now: Timestamp) -> String {
        let text: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
        let is_free = |id: &String| self.documents.world.stat(&self.folder(id)).is_err();
        let numbered = (2_u32..).map(|it| format!("{text}-{it}"));
        std::iter::once(text.clone()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// A run as it was last saved.
    ///
    /// # Errors
    /// Why it cannot be gone on with.
    pub fn load(&self, id: &str) -> Result<Run, Unusable> {
        let value = match self.documents.read(&name(id)).map_err(Unusable::Refused)? {
            Held::Nothing => return Err(Unusable::None),
            Held::Damaged => return Err(Unusable::Damaged(id.to_owned())),
            Held::Value(value) => value,
        };
        let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if version > u64::from(VERSION) {
            return Err(Unusable::Newer(id.to_owned()));
        }
        serde_json::from_value(value).map_err(|_| Unusable::Damaged(id.to_owned()))
    }

    /// The last run that can be gone on with: one that is not complete.
    ///
    /// # Errors
    /// Why there is none.
    pub fn last_open(&self) -> Result<Run, Unusable> {
        let last = self.ids().pop().ok_or(Unusable::None)?;
        let run = self.load(&last)?;
        if run.status() == Some(Status::Complete) { Err(Unusable::None) } else { Ok(run) }
    }

    /// Remembers a run durably.
    ///
    /// # Errors
    /// What the machine said; what was remembered before stands.
    pub fn save(&self, run: &Run) -> Result<(), WorldError> {
        let name = name(&run.id);
        let text = serde_json::to_string_pretty(run)
            .map_err(|error| WorldError::Refused(error.to_string()))?;
        let folder = self.folder(&run.id);
        if self.documents.world.stat(&folder).is_err() {
            self.documents.world.create_folder(&folder)?;
        }
        self.documents.save(&name, &format!("{text}\n"))
    }

    /// Why what was saved may not survive a loss of power; told once.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        self.documents.degraded()
    }

    /// Removes the oldest runs, so that `keep` are left.
    pub fn prune(&self, keep: usize) {
        let ids = self.ids();
        for id in ids.iter().take(ids.len().saturating_sub(keep)) {
            // What cannot be removed is tried again by the next run.
            self.documents.world.remove_folder(&self.folder(id)).ok();
        }
    }
}

fn name(id: &str) -> String {
    format!("{FOLDER}/{id}/{STATE}")
}
