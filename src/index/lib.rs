//! The index of decision logs: an SQLite file in the user's state directory, from which lists and counts over many
//! projects are read. The logs stay the source of truth. The index can be removed at any time and is then built again.
//! Hooks never use it.
//!
//! `ingest` adds new lines, and `query` reads. SQLite opens its file itself, so this is the only store that a
//! simulated World does not contain.
//!
//! ```
//! use std::path::Path;
//!
//! use policyd_index::DecisionIndex;
//! use policyd_world::real::RealWorld;
//!
//! let directory = tempfile::tempdir().unwrap();
//! let index = DecisionIndex::open(&RealWorld::new(), &directory.path().join("index.sqlite"));
//! assert!(index.is_ok());
//! ```

mod ingest;
mod query;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use policyd_base::limits::INDEX_LOCK_WAIT;
use policyd_record::indexed_decision::DecisionOutcome;
use policyd_record::rule_result::RuleResult;
use policyd_store::log_files::LogStamp;
use policyd_store::user::UserDirectory;
use policyd_world::{World, WorldError};
use policyd_yaml::time::Timestamp;

pub use ingest::{IndexedLog, IngestResult};
pub use query::{
    DecisionFilter, DecisionRow, LineLocation, OutcomeCounts, ProjectActivity, RuleCounts, TimeSlot,
};

/// Name of the file below the user's state directory.
const FILE: &str = "decisions.sqlite";
/// Version of the tables. An index of another version is built again.
const SCHEMA_VERSION: i64 = 4;
const SCHEMA: &str = include_str!("schema.sql");

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("neither XDG_STATE_HOME nor HOME is set, so the index cannot be saved")]
    NoDirectory,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// A log or the directory of the index cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: WorldError },
}

impl IndexError {
    /// Whether the file is damaged, so that it must be built again.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ),
            Self::NoDirectory | Self::Io { .. } => false,
        }
    }
}

/// The index.
pub struct DecisionIndex {
    connection: Connection,
    /// Ids of interned texts.
    names: BTreeMap<String, i64>,
    /// The logs as they were when they were read.
    seen: BTreeMap<PathBuf, LogStamp>,
}

impl DecisionIndex {
    /// Returns the path of the index of the user of this process.
    ///
    /// # Errors
    /// [`IndexError::NoDirectory`].
    pub fn path(world: &dyn World) -> Result<PathBuf, IndexError> {
        let folder = UserDirectory::State.path(world).ok_or(IndexError::NoDirectory)?;
        Ok(folder.join(FILE))
    }

    /// Opens the index, or creates it, private to the user. A damaged file and one of another version are removed and
    /// created again, without rows.
    ///
    /// # Errors
    /// The file or its directory cannot be written, or another process locks it for too long.
    pub fn open(world: &dyn World, path: &Path) -> Result<Self, IndexError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source: WorldError| IndexError::Io { path, source }
        };
        let folder = path.parent().unwrap_or(path);
        world.create_folder(folder).map_err(at(folder))?;
        world.append(path, b"").map_err(at(path))?;
        match Self::opened(path) {
            Ok(Some(index)) => Ok(index),
            Ok(None) => Self::created(world, path),
            Err(error) if error.is_damage() => Self::created(world, path),
            Err(error) => Err(error),
        }
    }

    /// Opens an index that exists, only to read it. Another process can write it meanwhile.
    ///
    /// # Errors
    /// The file does not exist, is damaged, or is one of another version.
    pub fn open_to_read(path: &Path) -> Result<Self, IndexError> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(INDEX_LOCK_WAIT)?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |it| it.get(0))?;
        if version != SCHEMA_VERSION {
            let source = WorldError::Io("another version of policyd wrote it".to_owned());
            return Err(IndexError::Io { path: path.to_owned(), source });
        }
        Ok(Self { connection, names: BTreeMap::new(), seen: BTreeMap::new() })
    }

    /// Returns the index of a file; `None` if another version wrote it.
    fn opened(path: &Path) -> Result<Option<Self>, IndexError> {
        let connection = Connection::open(path)?;
        Self::prepared(connection)
    }

    fn created(world: &dyn World, path: &Path) -> Result<Self, IndexError> {
        remove(world, path)?;
        let source = WorldError::Io("a new index has another version".to_owned());
        Self::opened(path)?.ok_or_else(|| IndexError::Io { path: path.to_owned(), source })
    }

    /// Returns an index in memory, for tests and measurements.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn in_memory() -> Result<Self, IndexError> {
        let source = WorldError::Unsupported;
        let index = Self::prepared(Connection::open_in_memory()?)?;
        index.ok_or_else(|| IndexError::Io { path: PathBuf::new(), source })
    }

    fn prepared(mut connection: Connection) -> Result<Option<Self>, IndexError> {
        connection.busy_timeout(INDEX_LOCK_WAIT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // After a loss of power the last lines are read again.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "cache_size", -65_536)?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 = change.pragma_query_value(None, "user_version", |it| it.get(0))?;
        let tables: i64 =
            change.query_row("SELECT count(*) FROM sqlite_schema", [], |it| it.get(0))?;
        match (version, tables) {
            (SCHEMA_VERSION, _) => {}
            (0, 0) => {
                change.execute_batch(SCHEMA)?;
                change.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            _ => return Ok(None),
        }
        change.commit()?;
        Ok(Some(Self { connection, names: BTreeMap::new(), seen: BTreeMap::new() }))
    }
}

/// Removes the index, so that the next reader builds it again.
///
/// # Errors
/// A file cannot be removed.
pub fn remove(world: &dyn World, path: &Path) -> Result<(), IndexError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let path = PathBuf::from(name);
        match world.remove(&path) {
            Ok(()) | Err(WorldError::NotFound) => {}
            Err(source) => return Err(IndexError::Io { path, source }),
        }
    }
    Ok(())
}

/// A number as SQLite stores it.
fn integer(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Outcome of a decision and whether a rule would have stopped it, as one number, so that one column of the index
/// answers counts of both.
fn mark(outcome: DecisionOutcome, would_stop: bool) -> i64 {
    integer(position(&DecisionOutcome::ALL, outcome))
        .saturating_mul(2)
        .saturating_add(i64::from(would_stop))
}

/// The reverse of [`mark`].
fn outcome_of(mark: i64) -> (DecisionOutcome, bool) {
    let at = usize::try_from(mark / 2).unwrap_or(usize::MAX);
    let outcome = DecisionOutcome::ALL.get(at).copied().unwrap_or(DecisionOutcome::Noted);
    (outcome, mark % 2 == 1)
}

fn result_number(result: RuleResult) -> i64 {
    integer(position(&RuleResult::ALL, result))
}

fn result_of(number: i64) -> RuleResult {
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    RuleResult::ALL.get(at).copied().unwrap_or(RuleResult::Other)
}

fn position<T: PartialEq + Copy>(all: &[T], wanted: T) -> usize {
    all.iter().position(|it| *it == wanted).unwrap_or(usize::MAX)
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[cfg(test)]
mod tests;
