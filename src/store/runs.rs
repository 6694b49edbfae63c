//! Supervised runs: each has a directory in `runs/`, with its state, its logs, and the files of its sessions. One
//! run at a time is active in a project.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::document::{DamageAction, DocumentError, Documents, StoredDocument};
use super::file::Durability;
use policyd_base::limits::{RUN_FILE_BYTES_MAX, RUNS_LOCK_WAIT};
use policyd_state::run::{Run, RunStatus};
use policyd_world::{HeldLock, World, WorldError};
use policyd_yaml::time::Timestamp;

/// Paths below the state directory.
pub const RUNS: &str = "runs";
const LOCK: &str = "runs/.lock";
const STATE: &str = "state.json";
/// File extension of the output of a turn.
const LOG: &str = "log";

/// The runs under one root.
pub struct RunStore<'a> {
    documents: Documents<'a>,
}

/// Why a run cannot be resumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The project has no such run.
    #[error("no unfinished run to resume\nhelp: start one with `--goal`")]
    None,
    /// Its state cannot be used.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl<'a> RunStore<'a> {
    /// Returns the store of a state directory.
    #[must_use]
    pub fn new(world: &'a dyn World, root: &Path, durability: Durability) -> Self {
        let wait = RUNS_LOCK_WAIT;
        Self { documents: Documents::new(world, root, durability, wait, RUN_FILE_BYTES_MAX) }
    }

    /// Keeps other runs of the project away while it is held.
    ///
    /// # Errors
    /// `Locked` if another run is active, or the error of the operating system.
    pub fn lock(&self) -> Result<Box<dyn HeldLock>, WorldError> {
        self.documents.lock(LOCK, &[RUNS])
    }

    /// Returns whether a process continues a run now. It holds the lock for a moment to find out.
    #[must_use]
    pub fn is_active(&self) -> bool {
        let lock = self.documents.world.lock(&self.documents.path(LOCK), Duration::ZERO);
        matches!(lock, Err(WorldError::Locked(_)))
    }

    /// The folder of a run.
    #[must_use]
    pub fn folder(&self, id: &str) -> PathBuf {
        self.documents.path(RUNS).join(id)
    }

    /// Ids of the runs, oldest first.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let names = self.documents.world.list(&self.documents.path(RUNS)).unwrap_or_default();
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
    /// Why the run cannot be resumed.
    pub fn load(&self, id: &str) -> Result<Run, Unusable> {
        let Documents { world, bytes_max, .. } = &self.documents;
        let path = self.documents.path(&name(id));
        let document = StoredDocument::new(*world, path, *bytes_max, DamageAction::Refuse);
        document.load()?.ok_or(Unusable::None)
    }

    /// Returns the last run if it is not complete.
    ///
    /// # Errors
    /// Why no run can be resumed.
    pub fn last_open(&self) -> Result<Run, Unusable> {
        let last = self.ids().pop().ok_or(Unusable::None)?;
        let run = self.load(&last)?;
        if run.status() == Some(RunStatus::Complete) { Err(Unusable::None) } else { Ok(run) }
    }

    /// Saves a run durably.
    ///
    /// # Errors
    /// The error of the operating system; the saved state is unchanged.
    pub fn save(&self, run: &Run) -> Result<(), WorldError> {
        let name = name(&run.id);
        let text =
            serde_json::to_string_pretty(run).map_err(|error| WorldError::Io(error.to_string()))?;
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

    /// Removes the oldest runs, so that `keep` are left, and the logs of the oldest of these, so that the files of all runs
    /// have at most that many bytes. The states stay.
    pub fn prune(&self, keep: usize, bytes_max: u64) {
        let (world, ids) = (self.documents.world, self.ids());
        let (oldest, kept) = ids.split_at(ids.len().saturating_sub(keep));
        for id in oldest {
            // The next run tries again to remove the rest.
            world.remove_folder(&self.folder(id)).ok();
        }
        let bytes = |path: &Path| world.stat(path).map_or(0, |it| it.length);
        let (mut logs, mut left) = (Vec::new(), bytes_max);
        for id in kept.iter().rev() {
            let folder = self.folder(id);
            let names = world.list(&folder).unwrap_or_default();
            let paths = names.iter().map(|it| folder.join(it));
            let (mut of_run, others): (Vec<PathBuf>, Vec<PathBuf>) =
                paths.partition(|it| it.extension().is_some_and(|it| it == LOG));
            others.iter().for_each(|it| left = left.saturating_sub(bytes(it)));
            // The numbers of turns have no leading zeros.
            of_run.sort_by_key(|it| std::cmp::Reverse((it.as_os_str().len(), it.clone())));
            logs.extend(of_run);
        }
        for log in logs {
            match left.checked_sub(bytes(&log)) {
                Some(less) => left = less,
                None => {
                    left = 0;
                    world.remove(&log).ok();
                }
            }
        }
    }
}

fn name(id: &str) -> String {
    format!("{RUNS}/{id}/{STATE}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use policyd_world::fake::FakeWorld;

    #[test]
    fn logs_of_old_runs_are_removed_and_their_states_stay() {
        let world = FakeWorld::new();
        let store = RunStore::new(&world, Path::new("/w/.policyd"), Durability::default());
        for id in ["20260101-000001", "20260101-000002", "20260101-000003"] {
            store.save(&Run { id: id.to_owned(), ..Run::default() }).unwrap();
            for turn in [1, 2, 10] {
                let name = format!("iteration-{turn}.log");
                world.put(store.folder(id).join(name), "x".repeat(100_000));
            }
        }
        let logs = |store: &RunStore<'_>| {
            let count = |id: &String| world.list(&store.folder(id)).unwrap().len() - 1;
            store.ids().iter().map(count).collect::<Vec<_>>()
        };
        store.prune(3, 2_000_000);
        assert_eq!(logs(&store), [3, 3, 3]);
        store.prune(3, 450_000);
        assert_eq!(logs(&store), [0, 1, 3]);
        store.prune(3, 250_000);
        assert_eq!(logs(&store), [0, 0, 2]);
        assert!(world.stat(&store.folder("20260101-000003").join("iteration-1.log")).is_err());
        store.prune(2, 150_000);
        assert_eq!(store.ids(), ["20260101-000002", "20260101-000003"]);
    }
}
