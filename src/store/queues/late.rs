//! Failures that could not be recorded when they happened, because another process held the lock for too long.
//! Each is a file in `queue/late/`, which needs no lock. The next process that changes the queues records it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::QueueStore;
use crate::document::DocumentError;
use crate::task_record::{record_of, task_of};
use policyd_state::dead_letter::{Task, TaskQueue};
use policyd_world::WorldError;
use policyd_yaml::time::Timestamp;

const FOLDER: &str = "queue/late";
/// Maximum number that is recorded at once.
const AT_ONCE_MAX: usize = 200;

impl QueueStore<'_> {
    /// Saves a failure for the next change of the queues: the reported task with its one attempt.
    ///
    /// # Errors
    /// It was not saved.
    pub fn put_off(&self, task: &Task, now: Timestamp) -> Result<(), WorldError> {
        /// One process may have to put off several within the same thousandth of a second.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let world = self.documents.world;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        world.create_folder(&self.documents.path(FOLDER))?;
        let name = format!("{:015}-{}-{number}.json", now.millis(), world.process_id());
        let text = format!("{:#}\n", record_of(task, None));
        self.documents.save(&format!("{FOLDER}/{name}"), &text)
    }

    /// Returns the saved failures by their file names, oldest first. Other files are quarantined.
    #[must_use]
    pub fn late(&self) -> Vec<(String, Task)> {
        let world = self.documents.world;
        let mut names = world.list(&self.documents.path(FOLDER)).unwrap_or_default();
        names.retain(|it| it.ends_with(".json") && !it.starts_with('.'));
        names.sort();
        let mut found = Vec::new();
        for name in names.into_iter().take(AT_ONCE_MAX) {
            let path = format!("{FOLDER}/{name}");
            let document = self.documents.document(&path);
            let task = match document.load::<Value>() {
                Ok(value) => value.and_then(|it| task_of(&it, TaskQueue::Pending)),
                Err(DocumentError::Damaged { .. }) => None,
                // It may be readable the next time, or by a newer version.
                Err(_) => continue,
            };
            match task.filter(|it| !it.attempts.is_empty()) {
                Some(task) => found.push((name, task)),
                // One that cannot be moved is met again, and does no harm.
                None => drop(document.put_aside()),
            }
        }
        found
    }

    /// Removes a recorded failure. If it cannot be removed, its key prevents that it is recorded twice.
    pub fn taken_in(&self, name: &str) {
        let path = self.documents.path(&format!("{FOLDER}/{name}"));
        drop(self.documents.world.remove(&path));
    }
}
