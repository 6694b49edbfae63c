//! Copies of the block limiter's state in the user's own state directory, one small file for each agent of a
//! session. A project can be cleaned, stashed, or restored between two stops; its copy stays. The lock of the
//! session protects the file.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{DamageAction, DocumentError, FORMAT_VERSION, StoredDocument};
use super::file::{self, Durability};
use super::user::UserDirectory;
use policyd_base::id::SessionId;
use policyd_base::limits::{BLOCK_COPIES_MAX, BLOCK_COPY_AGE_MAX, STATE_FILE_BYTES_MAX};
use policyd_facts::event::Event;
use policyd_state::BlockLimiterState;
use policyd_world::World;
use policyd_yaml::checksum::{checksum, hex};
use policyd_yaml::time::Timestamp;

/// Directory below the user's state directory.
const FOLDER: &str = "blocks";

/// `blocks/KEY.json` in the user's state directory.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["version", "consecutive_blocks"]))]
pub(super) struct BlockCopyFile {
    /// Version of the format.
    #[serde(default)]
    version: u32,
    /// State of the block limiter, without the history of blocks.
    #[serde(flatten)]
    limiter: BlockLimiterState,
}

/// The copy of one agent's block limiter.
pub struct BlockCopy<'a> {
    world: &'a dyn World,
    /// `None` if neither `XDG_STATE_HOME` nor `HOME` is set.
    path: Option<PathBuf>,
}

impl<'a> BlockCopy<'a> {
    /// Returns the copy for the agent of an event. The transcript is part of its name, because not every
    /// client has ids that no other session uses.
    #[must_use]
    pub fn of(world: &'a dyn World, event: &Event) -> Self {
        let agent = event.agent_id.as_deref().unwrap_or_default();
        let transcript = event.transcript.as_deref().unwrap_or(Path::new(""));
        let own = checksum(&[agent.as_bytes(), transcript.as_os_str().as_encoded_bytes()]);
        let name = format!("{}{}.json", prefix(&event.session_id), hex(&own));
        Self { world, path: folder(world).map(|it| it.join(name)) }
    }

    /// Loads the state. `None` without a file, or if it is damaged: the next save quarantines it.
    ///
    /// # Errors
    /// A newer version of policyd wrote the file, or it cannot be read.
    pub fn load(&self) -> Result<Option<BlockLimiterState>, DocumentError> {
        let Some(document) = self.document() else { return Ok(None) };
        match document.load::<BlockCopyFile>() {
            Err(DocumentError::Damaged { .. }) => Ok(None),
            loaded => Ok(loaded?.map(|it| it.limiter)),
        }
    }

    /// Saves a state without its history, and returns whether it is in place. The copy does not survive a power
    /// loss, which the state of the session does.
    pub fn save(&self, limiter: &BlockLimiterState) -> bool {
        let Some(document) = self.document() else { return false };
        if self.world.stat(document.path()).is_err() {
            if document.create_folder().is_err() {
                return false;
            }
            self.prune(document.path().parent().unwrap_or(document.path()));
        }
        let limiter = BlockLimiterState { history: Vec::new(), ..limiter.clone() };
        let file = BlockCopyFile { version: FORMAT_VERSION, limiter };
        let Ok(text) = serde_json::to_string(&file) else { return false };
        let opened = document.open::<BlockCopyFile>();
        opened.and_then(|it| it.save(&text)).is_ok()
    }

    fn document(&self) -> Option<StoredDocument<'a>> {
        let (path, if_damaged) = (self.path.clone()?, DamageAction::Quarantine);
        let once = Durability { fsync: false, attempts: 1, ..Durability::default() };
        let document = StoredDocument::new(self.world, path, STATE_FILE_BYTES_MAX, if_damaged);
        Some(document.saved_as(&once))
    }

    /// Removes the file.
    pub fn remove(&self) {
        self.path.iter().for_each(|it| remove(self.world, it));
    }

    /// Removes old copies, so that there is room for one more.
    fn prune(&self, folder: &Path) {
        let now = self.world.now();
        let mut copies: Vec<(Timestamp, PathBuf)> = self
            .names(folder)
            .map(|name| folder.join(name))
            .filter_map(|path| Some((self.world.stat(&path).ok()?.modified, path)))
            .collect();
        copies.sort();
        let surplus = copies.len().saturating_add(1).saturating_sub(BLOCK_COPIES_MAX);
        let is_old = |at: Timestamp| now.since(at) > BLOCK_COPY_AGE_MAX;
        let old =
            copies.iter().enumerate().filter(|(rank, (at, _))| *rank < surplus || is_old(*at));
        old.for_each(|(_, (_, path))| remove(self.world, path));
    }

    fn names(&self, folder: &Path) -> impl Iterator<Item = String> + use<> {
        let names = self.world.list(folder).unwrap_or_default().into_iter();
        names.filter(|it| is_copy(it))
    }
}

/// Removes the copies of a session, whose counters a human resets.
pub fn forget(world: &dyn World, session: &SessionId) {
    let Some(folder) = folder(world) else { return };
    let names = world.list(&folder).unwrap_or_default();
    let own = names.iter().filter(|it| it.starts_with(&prefix(session)) && is_copy(it));
    own.for_each(|name| remove(world, &folder.join(name)));
}

/// Whether a file is a copy, or a quarantined one.
fn is_copy(name: &str) -> bool {
    !name.starts_with('.') && name.contains(".json")
}

fn folder(world: &dyn World) -> Option<PathBuf> {
    Some(UserDirectory::State.path(world)?.join(FOLDER))
}

fn prefix(session: &SessionId) -> String {
    format!("{}-", hex(&checksum(&[session.as_str().as_bytes()])))
}

/// Removes a file and the previous version of it. A file that stays makes the limiter release earlier.
fn remove(world: &dyn World, path: &Path) {
    for path in [path, &file::sibling(path)] {
        world.remove(path).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use policyd_facts::event::EventKind;
    use policyd_world::fake::FakeWorld;

    fn event(session: &str) -> Event {
        let transcript = Some(PathBuf::from("/t/a.jsonl"));
        Event { transcript, ..Event::of(EventKind::Stop, SessionId::sanitize(session)) }
    }

    fn blocked(total_blocks: u64) -> BlockLimiterState {
        BlockLimiterState { total_blocks, consecutive_blocks: 1, ..BlockLimiterState::default() }
    }

    fn machine() -> FakeWorld {
        let world = FakeWorld::new();
        world.set_env("HOME", "/home/me");
        world
    }

    #[test]
    fn a_copy_belongs_to_one_agent_of_one_session() {
        let world = machine();
        assert!(BlockCopy::of(&world, &event("s")).save(&blocked(3)));
        let load = |event: &Event| BlockCopy::of(&world, event).load().unwrap();
        assert_eq!(load(&event("s")), Some(blocked(3)));
        assert_eq!(load(&event("t")), None);
        assert_eq!(load(&Event { agent_id: Some("a".to_owned()), ..event("s") }), None);
        assert_eq!(load(&Event { transcript: Some("/t/b.jsonl".into()), ..event("s") }), None);
        assert!(BlockCopy::of(&world, &event("s-t")).save(&blocked(4)));
        forget(&world, &SessionId::sanitize("s"));
        assert_eq!((load(&event("s")), load(&event("s-t"))), (None, Some(blocked(4))));
        BlockCopy::of(&world, &event("s-t")).remove();
        assert_eq!(load(&event("s-t")), None);
    }

    #[test]
    fn without_a_home_there_is_no_copy() {
        let world = FakeWorld::new();
        assert!(!BlockCopy::of(&world, &event("s")).save(&blocked(3)));
        assert_eq!(BlockCopy::of(&world, &event("s")).load(), Ok(None));
    }

    #[test]
    fn old_copies_and_more_than_the_limit_go() {
        let world = machine();
        let save = |session: String| BlockCopy::of(&world, &event(&session)).save(&blocked(1));
        let kept = |session: String| BlockCopy::of(&world, &event(&session)).load() != Ok(None);
        let count = BLOCK_COPIES_MAX + 3;
        for number in 0..count {
            save(format!("s{number}"));
            world.advance(Duration::from_secs(1));
        }
        assert!(!kept("s2".to_owned()) && kept("s3".to_owned()) && kept(format!("s{}", count - 1)));
        world.advance(BLOCK_COPY_AGE_MAX);
        save("new".to_owned());
        assert!(!kept(format!("s{}", count - 2)) && kept("new".to_owned()));
    }
}
