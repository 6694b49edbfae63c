//! Operations that the server applied in the last hour. If the server lost changes, they are sent again: the server applies
//! each id once.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::outbox::QueuedOperation;
use policyd_base::limits::{SENT_BYTES_MAX, SENT_KEPT};
use policyd_world::World;
use policyd_yaml::time::Timestamp;

/// The log of sent operations of one store: a file for each hour.
pub(super) struct SentLog<'a> {
    pub(super) world: &'a dyn World,
    pub(super) folder: PathBuf,
    /// Which server and group the operations are for.
    pub(super) store: String,
}

/// How far the log was sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResendPosition {
    /// Number of the hour.
    pub(super) hour: i64,
    /// Lines of its file.
    pub(super) lines: usize,
}

impl ResendPosition {
    /// Returns the beginning of what is kept.
    pub(super) fn oldest(now: Timestamp) -> Self {
        Self { hour: hour_of(now).saturating_sub(1), lines: 0 }
    }
}

/// Number of the hour of a time.
fn hour_of(at: Timestamp) -> i64 {
    let length = i64::try_from(SENT_KEPT.as_millis()).unwrap_or(i64::MAX);
    at.millis().checked_div(length).unwrap_or_default()
}

impl SentLog<'_> {
    /// Appends an operation that the server applied. Without it, the operation is only not sent again.
    pub(super) fn add(&self, operation: &QueuedOperation, now: Timestamp) {
        let path = self.path(hour_of(now));
        let is_full = |size: u64| usize::try_from(size).is_ok_and(|it| it > SENT_BYTES_MAX);
        if self.world.stat(&path).is_ok_and(|it| is_full(it.length)) {
            return;
        }
        if let Ok(text) = serde_json::to_string(operation) {
            drop(self.world.create_folder(&self.folder));
            drop(self.world.append(&path, format!("{text}\n").as_bytes()));
        }
    }

    /// Returns the operations of an hour from a line on.
    pub(super) fn read(&self, from: ResendPosition) -> Vec<Option<QueuedOperation>> {
        let bytes = self.world.read(&self.path(from.hour), SENT_BYTES_MAX.saturating_mul(2));
        let bytes = bytes.unwrap_or_default();
        let lines = bytes.split_inclusive(|it| *it == b'\n').skip(from.lines);
        // A torn line is not an operation.
        lines.map(|it| serde_json::from_slice(it).ok()).collect()
    }

    /// Returns the position of the next hour; `None` if it has not begun.
    pub(super) fn next(from: ResendPosition, now: Timestamp) -> Option<ResendPosition> {
        let hour = from.hour.saturating_add(1);
        (hour <= hour_of(now)).then_some(ResendPosition { hour, lines: 0 })
    }

    /// Removes the files of earlier hours.
    pub(super) fn prune(&self, now: Timestamp) {
        let oldest = ResendPosition::oldest(now).hour;
        for name in self.world.list(&self.folder).unwrap_or_default() {
            let hour = name.split(['-', '.']).next().and_then(|it| it.parse::<i64>().ok());
            if hour.is_some_and(|it| it < oldest) {
                drop(self.world.remove(&self.folder.join(name)));
            }
        }
    }

    fn path(&self, hour: i64) -> PathBuf {
        self.folder.join(format!("{hour}-{}.jsonl", self.store))
    }
}
