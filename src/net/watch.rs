//! Watches directories with the means of the operating system.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use policyd_world::{DirectoryWatch, WorldError};

/// An editor writes a file in several steps. They are over when nothing changes for this duration.
const SETTLE_TIME: Duration = Duration::from_millis(60);
/// Maximum number of events of one change, so that a program that never stops writing delays nothing.
const SETTLE_EVENTS_MAX: usize = 1000;

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchEvent {
    Change,
    /// It was only read.
    Read,
    /// Nothing happened in time.
    Nothing,
}

/// Watches directories until it is dropped.
pub(crate) struct RealWatch {
    changes: Receiver<notify::Result<Event>>,
    /// Ends the watch when it is dropped.
    _watcher: RecommendedWatcher,
}

impl RealWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// A directory does not exist, or the machine's limit for watched directories is reached.
    pub(crate) fn new(folders: &[PathBuf]) -> Result<Self, WorldError> {
        let (sender, changes) = mpsc::channel();
        let failed = |error: notify::Error| WorldError::Io(error.to_string());
        let mut watcher = notify::recommended_watcher(sender).map_err(failed)?;
        for folder in folders {
            let folder: &Path = folder;
            watcher.watch(folder, RecursiveMode::Recursive).map_err(failed)?;
        }
        Ok(Self { changes, _watcher: watcher })
    }

    /// Waits for the next event of the directories.
    fn next(&self, wait_max: Duration) -> WatchEvent {
        match self.changes.recv_timeout(wait_max) {
            Ok(Ok(event)) if matches!(event.kind, EventKind::Access(_)) => WatchEvent::Read,
            // An error of the watch counts as a change: it may have missed one.
            Ok(Ok(_) | Err(_)) => WatchEvent::Change,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => WatchEvent::Nothing,
        }
    }
}

impl DirectoryWatch for RealWatch {
    fn wait(&mut self, wait_max: Duration) -> bool {
        if self.next(wait_max) != WatchEvent::Change {
            return false;
        }
        for _ in 0..SETTLE_EVENTS_MAX {
            if self.next(SETTLE_TIME) == WatchEvent::Nothing {
                break;
            }
        }
        true
    }
}
