//! Finding the state of a session: from its file, else from the file's sibling and the diagnostic
//! log. Reads only; `session` puts the result in place. May not live here: writes.

use serde_json::{Map, Value};

use super::file::{self, LoadedDocument};
use super::layout::SessionPaths;
use super::session_file::{self, StateFile};
use super::validate::Corruption;
use super::{diagnostic, log, log_files};
use policyd_base::id::SessionId;
use policyd_base::limits::STATE_FILE_BYTES_MAX;
use policyd_state::SessionState;
use policyd_world::{World, WorldError};

/// Bytes of the log's end that are searched for a counter.
const SEARCHED_BYTES: u64 = 256 * 1024;

/// Where a state comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateOrigin {
    /// The file does not exist: no stop was evaluated, or the user deleted the file.
    Fresh,
    /// The file.
    File,
    /// A file of a newer format: it is read, and a commit answers `NotSaved`.
    Newer {
        /// Version of the file's format.
        version: u64,
    },
    /// The file was corrupt.
    Recovered {
        /// Problem of the damaged file.
        reason: Corruption,
        /// Source of the recovered state.
        from: RecoverySource,
    },
}

/// Source of a recovered state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoverySource {
    /// The file's sibling, which holds the value before or after.
    Backup,
    /// The counters in the diagnostic log.
    Log,
    /// Neither was there: the counters begin at 0, as in the seed.
    Nothing,
}

impl RecoverySource {
    /// As the log carries it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Log => "log",
            Self::Nothing => "nothing",
        }
    }
}

/// A state and everything known of its file.
#[derive(Debug, Clone)]
pub(super) struct RecoveredState {
    pub(super) state: SessionState,
    pub(super) origin: StateOrigin,
    pub(super) raw: Map<String, Value>,
    pub(super) foreign_id: Option<String>,
    pub(super) damage: Option<Damage>,
}

/// A corrupt file.
#[derive(Debug, Clone)]
pub(super) struct Damage {
    /// Its content, where it could be read.
    pub(super) bytes: Option<Vec<u8>>,
    /// Its content as the log shows it.
    pub(super) quote: Value,
    /// Whether the sibling is the only whole value, which no save may write over.
    pub(super) backed_up: bool,
}

/// Finds the state of a session.
pub(super) fn find(world: &dyn World, paths: &SessionPaths, session: &SessionId) -> RecoveredState {
    let (bytes, backup, reason, quote) = match file::load(world, &paths.state, STATE_FILE_BYTES_MAX)
    {
        LoadedDocument::Missing => return fresh(session),
        LoadedDocument::Whole(bytes) => match session_file::read(&bytes, session) {
            Ok(file) => return found(file),
            Err((reason, quote)) => {
                let sibling = file::sibling(&paths.state);
                let backup = world.read(&sibling, STATE_FILE_BYTES_MAX).ok();
                (Some(bytes), backup, reason, quote)
            }
        },
        LoadedDocument::Torn { bytes, backup } => {
            let error = session_file::read(&bytes, session).err();
            let (reason, quote) = error.unwrap_or((Corruption::InvalidJson, Value::Null));
            (Some(bytes), backup, reason, quote)
        }
        LoadedDocument::Unreadable { error, backup } => {
            (None, backup, unreadable(&error), Value::String(error.to_string()))
        }
    };
    let backup = backup.and_then(|bytes| session_file::read(&bytes, session).ok());
    let backup = backup.filter(|it| it.newer.is_none());
    let mut remembered = SessionState::new(session.clone());
    let in_log = remember(world, paths, &mut remembered);
    let damage = Damage { bytes, quote, backed_up: backup.is_some() };
    match backup {
        Some(StateFile { mut state, raw, .. }) => {
            let behind = in_log && remembered.revision >= state.revision;
            let before = state.clone();
            if behind {
                catch_up(&mut state, &remembered);
            }
            let from = if state == before { RecoverySource::Backup } else { RecoverySource::Log };
            let origin = StateOrigin::Recovered { reason, from };
            RecoveredState { state, origin, raw, foreign_id: None, damage: Some(damage) }
        }
        None => {
            let from = if in_log { RecoverySource::Log } else { RecoverySource::Nothing };
            let origin = StateOrigin::Recovered { reason, from };
            let (raw, damage) = (Map::new(), Some(damage));
            RecoveredState { state: remembered, origin, raw, foreign_id: None, damage }
        }
    }
}

fn fresh(session: &SessionId) -> RecoveredState {
    RecoveredState {
        state: SessionState::new(session.clone()),
        origin: StateOrigin::Fresh,
        raw: Map::new(),
        foreign_id: None,
        damage: None,
    }
}

fn found(file: StateFile) -> RecoveredState {
    let origin = file.newer.map_or(StateOrigin::File, |version| StateOrigin::Newer { version });
    let StateFile { state, raw, foreign_id, newer: _ } = file;
    RecoveredState { state, origin, raw, foreign_id, damage: None }
}

fn unreadable(error: &WorldError) -> Corruption {
    match error {
        WorldError::TooLarge(_) => Corruption::TooLarge,
        WorldError::NotAFile => Corruption::NotAFile,
        WorldError::NotFound
        | WorldError::AlreadyExists
        | WorldError::Io(_)
        | WorldError::Unsupported
        | WorldError::TimedOut
        | WorldError::Locked(_)
        | WorldError::PowerLoss => Corruption::Unreadable,
    }
}

/// Takes what the log remembers, from the current file, else from the one rotated last.
fn remember(world: &dyn World, paths: &SessionPaths, state: &mut SessionState) -> bool {
    [paths.log.clone(), log_files::rotated(&paths.log, 1)]
        .iter()
        .any(|path| diagnostic::remembered(&log::read_end(world, path, SEARCHED_BYTES), state))
}

/// Brings an older state to the counters of the log. What only ever grows stays the larger one.
fn catch_up(state: &mut SessionState, remembered: &SessionState) {
    state.revision = state.revision.max(remembered.revision);
    state.turn_count = state.turn_count.max(remembered.turn_count);
    state.main.consecutive_blocks = remembered.main.consecutive_blocks;
    state.main.total_blocks = state.main.total_blocks.max(remembered.main.total_blocks);
    if !remembered.main.episode.is_empty() {
        state.main.episode.clone_from(&remembered.main.episode);
    }
    for (id, theirs) in &remembered.agents {
        let ours = state.agents.entry(id.clone()).or_default();
        ours.consecutive_blocks = theirs.consecutive_blocks;
        ours.total_blocks = ours.total_blocks.max(theirs.total_blocks);
        if !theirs.episode.is_empty() {
            ours.episode.clone_from(&theirs.episode);
        }
    }
}
