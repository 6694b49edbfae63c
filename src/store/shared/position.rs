//! What one state directory knows of the server: the last version, when it was read, and when to try again.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::sent::ResendPosition;
use crate::document::{DamageAction, DocumentError, StoredDocument, with_version};
use crate::file::Durability;
use policyd_base::limits::{SENT_KEPT, SHARED_FILE_BYTES_MAX, SHARED_RETRY_MAX, SHARED_RETRY_MIN};
use policyd_base::text::cut;
use policyd_world::server::ServerState;
use policyd_world::{World, WorldError};
use policyd_yaml::checksum::hex;
use policyd_yaml::time::Timestamp;

const FILE: &str = "sync.json";
const CLIENT_FILE: &str = "client";
/// Texts that wait to be reported, and bytes of each.
const UNREPORTED_MAX: usize = 50;
const UNREPORTED_BYTES_MAX: usize = 400;
/// The kernel of Linux returns a new random id at each read.
const RANDOM_ID: &str = "/proc/sys/kernel/random/uuid";

/// Directory of the operations that wait.
pub(super) const OUTBOX: &str = "outbox";
/// Directories above the outbox whose entries policyd may have created: `shared`, that of the project, `policyd`,
/// `state`, and `.local` in the home directory.
const FOLDERS_ABOVE: usize = 6;

/// What is known of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncPosition {
    /// Which server and group it is about.
    pub(super) store: String,
    /// Version up to which the local files contain the changes of others. `version` is that of the format.
    #[serde(rename = "copied_version")]
    pub version: i64,
    /// Mark of the change that made this version. `None`: unknown.
    pub(super) mark: Option<String>,
    /// History of the server that the version belongs to. Empty: unknown.
    pub(super) epoch: String,
    /// Kinds of documents that the local files contain up to the version.
    pub(super) kinds: BTreeSet<String>,
    /// From where sent operations are sent again. `None`: the server has them.
    pub(super) resend: Option<ResendPosition>,
    /// Whether the server lost changes, and not everything was read from it since.
    pub(super) is_restored: bool,
    /// When that was noticed.
    pub(super) restored_at: Option<Timestamp>,
    /// What was rejected while a question was asked, until it is reported.
    pub(super) unreported: Vec<String>,
    /// When the server was asked last.
    pub at: Option<Timestamp>,
    /// Time of the server minus the time of this host, in milliseconds.
    pub ahead_ms: i64,
    /// Attempts that failed since the last success.
    pub failures: u32,
    /// No attempt is made before this time.
    pub retry_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub problem: Option<String>,
    /// Whether the user was notified of it.
    pub notified: bool,
}

impl SyncPosition {
    /// Loads what is known of a store. A damaged document is as good as none: everything is read again.
    ///
    /// # Errors
    /// A newer version of policyd wrote the document, or it cannot be read.
    pub(super) fn load(
        world: &dyn World,
        folder: &Path,
        store: &str,
    ) -> Result<Self, DocumentError> {
        let known: Option<Self> = match document(world, folder, FILE).load() {
            Err(DocumentError::Damaged { .. }) => None,
            loaded => loaded?,
        };
        let known = known.filter(|it| it.store == store);
        Ok(known.unwrap_or_else(|| Self { store: store.to_owned(), ..Self::default() }))
    }

    /// Saves it. A power loss can lose it, and then everything is read again.
    ///
    /// # Errors
    /// A newer version of policyd wrote the document, or it cannot be written.
    pub(super) fn save(&self, world: &dyn World, folder: &Path) -> Result<(), DocumentError> {
        save(&document(world, folder, FILE), self)
    }

    /// Compares what is known with the server, which is asked before anything is sent. Everything is read again if the
    /// server has another history, and if further kinds are shared; what was sent lately is sent again if it has another
    /// history.
    pub(super) fn meet(&mut self, state: &ServerState, kinds: BTreeSet<String>, now: Timestamp) {
        let is_other = !self.is_history_of(state);
        if is_other {
            self.resend = Some(ResendPosition::oldest(now));
            self.is_restored = true;
            self.restored_at = Some(now);
        }
        if is_other || !kinds.is_subset(&self.kinds) {
            self.forget();
        }
        self.epoch.clone_from(&state.epoch);
        self.kinds = kinds;
    }

    /// Returns whether the server has the changes that the local files contain.
    fn is_history_of(&self, state: &ServerState) -> bool {
        let is_epoch = self.epoch.is_empty() || self.epoch == state.epoch;
        let is_mark = self.mark.is_none() || self.mark == state.mark;
        is_epoch && is_mark && state.version >= self.version
    }

    /// Records the difference of the clocks: how far a time of the server is outside the time in which it was asked. So a
    /// slow answer is not a difference.
    pub(super) fn notice_time(
        &mut self,
        of_server: Timestamp,
        asked: Timestamp,
        answered: Timestamp,
    ) {
        let nearest = of_server.clamp(asked, answered.max(asked));
        self.ahead_ms = of_server.millis().saturating_sub(nearest.millis());
    }

    /// Takes what a user should know of earlier synchronizations.
    pub(super) fn take_unreported(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unreported)
    }

    /// Keeps what a user should know until it is reported. The file that contains it has a limit, so the rest is only mentioned.
    pub(super) fn report_later(&mut self, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            match self.unreported.len().cmp(&UNREPORTED_MAX) {
                Ordering::Less => self.unreported.push(cut(&text, UNREPORTED_BYTES_MAX).to_owned()),
                Ordering::Equal => self.unreported.push("further changes were rejected".to_owned()),
                Ordering::Greater => return,
            }
        }
    }

    /// Returns whether the server can lack changes that it had: other hosts still send theirs again.
    pub(super) fn may_lack_changes(&self, now: Timestamp) -> bool {
        let is_recent = |at: Timestamp| now.since(at) < SENT_KEPT.saturating_mul(2);
        self.is_restored || self.restored_at.is_some_and(is_recent)
    }

    /// Forgets the version, so that every document is read again.
    pub(super) fn forget(&mut self) {
        (self.version, self.mark, self.at) = (0, None, None);
    }

    /// Returns whether an attempt makes sense now. A clock that went back does not delay it for long.
    pub(super) fn may_try(&self, now: Timestamp) -> bool {
        self.retry_at.is_none_or(|at| at <= now || at.since(now) > SHARED_RETRY_MAX)
    }

    /// Returns whether the local files are younger than a maximum age.
    pub(super) fn is_fresh(&self, now: Timestamp, age_max: Duration) -> bool {
        self.failures == 0 && self.at.is_some_and(|at| at <= now && now.since(at) < age_max)
    }

    /// Records a failed attempt.
    pub(super) fn fail(&mut self, why: String, now: Timestamp) {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let delay = SHARED_RETRY_MIN.saturating_mul(factor).min(SHARED_RETRY_MAX);
        self.failures = self.failures.saturating_add(1).min(16);
        self.retry_at = Some(now.plus(delay));
        self.problem = Some(why);
    }

    /// Records a successful attempt.
    pub(super) fn succeed(&mut self, now: Timestamp) {
        (self.failures, self.retry_at, self.problem) = (0, None, None);
        (self.at, self.notified) = (Some(now), false);
    }
}

/// Returns a document about the server. What it contains can be read from the server again.
pub(super) fn document<'a>(world: &'a dyn World, folder: &Path, name: &str) -> StoredDocument<'a> {
    let (path, if_damaged) = (folder.join(name), DamageAction::Quarantine);
    let durability = Durability { fsync: false, ..Durability::default() };
    StoredDocument::new(world, path, SHARED_FILE_BYTES_MAX, if_damaged).saved_as(&durability)
}

/// Replaces the value of a document about the server.
pub(super) fn save<T: Serialize + DeserializeOwned>(
    document: &StoredDocument<'_>,
    value: &T,
) -> Result<(), DocumentError> {
    document.create_folder()?;
    document.open::<T>()?.save(&format!("{}\n", with_version(value))).map(drop)
}

/// Returns the id of this state directory among all hosts, and creates it at the first call.
pub(super) fn client(world: &dyn World, folder: &Path) -> Result<String, WorldError> {
    let path = folder.join(CLIENT_FILE);
    if let Ok(bytes) = world.read(&path, SHARED_FILE_BYTES_MAX)
        && let Some(known) = std::str::from_utf8(&bytes).ok().map(str::trim)
        && !known.is_empty()
    {
        return Ok(known.to_owned());
    }
    // The directories survive a power loss before the first operation is saved.
    let outbox = folder.join(OUTBOX);
    world.create_folder(&outbox)?;
    for above in outbox.ancestors().skip(1).take(FOLDERS_ABOVE) {
        // A directory of another user was there before.
        drop(world.sync_folder(above));
    }
    let random = world.read(Path::new(RANDOM_ID), SHARED_FILE_BYTES_MAX).unwrap_or_default();
    let host = world.env("HOSTNAME").unwrap_or_default();
    let moment = format!("{}-{}-{host}", world.now().millis(), world.process_id());
    let mut hash = Sha256::new();
    hash.update(random);
    hash.update(moment.as_bytes());
    hash.update(folder.as_os_str().as_encoded_bytes());
    let mut id = hex(&hash.finalize());
    id.truncate(16);
    // Two processes can create it at once. Both ids are unique, so either is right.
    world.write(&path, id.as_bytes())?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    fn kinds(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&it| it.to_owned()).collect()
    }

    fn known() -> SyncPosition {
        let (mark, epoch) = (Some("m".to_owned()), "e".to_owned());
        SyncPosition { version: 7, mark, epoch, kinds: kinds(&["task"]), ..SyncPosition::default() }
    }

    fn state(version: i64, epoch: &str, mark: Option<&str>) -> ServerState {
        let (epoch, mark) = (epoch.to_owned(), mark.map(str::to_owned));
        ServerState { version, epoch, mark, ..ServerState::default() }
    }

    #[test]
    fn a_slow_answer_is_no_difference_of_the_clocks() {
        let at = |seconds: i64| Timestamp::from_millis(1_767_225_600_000 + seconds * 1_000);
        let mut position = SyncPosition::default();
        for (server, asked, answered, ahead_ms) in [
            (2, 0, 5, 0),
            (7, 0, 5, 2_000),
            (-3, 0, 5, -3_000),
            (7_200, 0, 0, 7_200_000),
            (3, 4, 1, -1_000),
        ] {
            position.notice_time(at(server), at(asked), at(answered));
            assert_eq!(position.ahead_ms, ahead_ms, "{server} between {asked} and {answered}");
        }
    }

    #[test]
    fn another_history_is_read_and_sent_again() {
        for (found, is_other) in [
            (state(7, "e", Some("m")), false),
            (state(9, "e", Some("m")), false),
            // The server went back, made the version in another way, or is another one.
            (state(6, "e", None), true),
            (state(9, "e", Some("x")), true),
            (state(9, "e", None), true),
            (state(7, "f", Some("m")), true),
        ] {
            let mut position = known();
            position.meet(&found, kinds(&["task"]), NOW);
            let version = if is_other { 0 } else { 7 };
            assert_eq!(
                (position.version, position.resend.is_some()),
                (version, is_other),
                "{found:?}"
            );
            assert_eq!(position.epoch, found.epoch);
        }
        // A position of an earlier version knows only the version.
        let mut position = SyncPosition { epoch: String::new(), mark: None, ..known() };
        position.meet(&state(8, "e", None), kinds(&["task"]), NOW);
        assert_eq!((position.version, position.resend), (7, None));
    }

    #[test]
    fn what_waits_to_be_reported_fits_its_file() {
        let mut position = known();
        position.report_later((0..5_000).map(|it| format!("{it} {}", "é".repeat(5_000))));
        assert!(serde_json::to_string(&position).unwrap().len() < SHARED_FILE_BYTES_MAX / 2);
        let said = position.take_unreported();
        assert_eq!(said.len(), UNREPORTED_MAX + 1);
        assert_eq!(said.last().unwrap(), "further changes were rejected");
        assert_eq!(position, known(), "it is reported once");
    }

    #[test]
    fn a_kind_that_is_shared_later_is_read_from_the_beginning() {
        let mut position = known();
        position.meet(&state(9, "e", Some("m")), kinds(&["run", "task"]), NOW);
        assert_eq!((position.version, position.resend), (0, None));
        position.version = 9;
        position.meet(&state(9, "e", None), kinds(&["task"]), NOW);
        assert_eq!(position.version, 9, "less is shared");
        position.meet(&state(9, "e", None), kinds(&["run", "task"]), NOW);
        assert_eq!(position.version, 0, "what was not shared in between was not read");
    }
}
