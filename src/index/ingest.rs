//! Adds new lines of logs to the index. Rows and the position up to which they were read are saved in one
//! transaction, so each line is one row after a crash at any point, and if two processes read the same log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{DecisionIndex, IndexError, integer, mark, result_number};
use policyd_base::limits::{INDEX_BATCH_BYTES, INDEX_CHUNK_BYTES_MAX};
use policyd_record::activity::Activity;
use policyd_record::indexed_decision::IndexedDecision;
use policyd_store::log_files::{LogFile, LogStamp, open_files};
use policyd_store::log_position::LogPosition;
use policyd_world::{World, WorldError};
use policyd_yaml::checksum::{checksum, hex};

/// Bytes before the position whose checksum shows that the file was not rewritten: a line with its time and id.
const TAIL_BYTES: u64 = 4 * 1024;

/// A log of a project.
#[derive(Debug, Clone, Copy)]
pub struct IndexedLog<'a> {
    /// Main checkout of the project.
    pub project: &'a str,
    /// Path of the log; its rotated files are found by their names.
    pub path: &'a Path,
}

/// A file of a log as far as its lines are rows.
struct IndexedFile {
    id: i64,
    /// End of those lines.
    position: LogPosition,
    /// Checksum of the last bytes before the end.
    tail: String,
    activity: Activity,
}

/// What was added.
#[derive(Debug, Default)]
pub struct IngestResult {
    /// Number of new rows.
    pub added: u64,
    /// Logs that cannot be read now. Their lines before the error are rows.
    pub problems: Vec<(PathBuf, WorldError)>,
}

impl DecisionIndex {
    /// Adds the new lines of a log, as [`DecisionIndex::ingest_all`] does. Returns the number of new rows.
    ///
    /// # Errors
    /// A file of the log cannot be read, or the index cannot be written. Lines before the error are rows.
    pub fn ingest(&mut self, world: &dyn World, log: IndexedLog<'_>) -> Result<u64, IndexError> {
        let result = self.ingest_all(world, &[log], &mut |_| true)?;
        match result.problems.into_iter().next() {
            Some((path, source)) => Err(IndexError::Io { path, source }),
            None => Ok(result.added),
        }
    }

    /// Adds the new lines of logs, and drops the rows of files that do not exist any more. A log that did not change
    /// since the last call costs one look at its length. `go_on` receives the number of new rows after each log, and
    /// returns false to stop.
    ///
    /// Many logs are one transaction: the logs are parallel in time, so each one changes most pages of the indexes over
    /// time.
    ///
    /// # Errors
    /// The index cannot be written. What was committed before are rows.
    pub fn ingest_all(
        &mut self,
        world: &dyn World,
        logs: &[IndexedLog<'_>],
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<IngestResult, IndexError> {
        let Self { connection, names, seen } = self;
        let (mut result, mut taken) = (IngestResult::default(), Vec::new());
        let stamped = logs.iter().map(|log| (log, LogStamp::of(world, log.path).ok()));
        let is_new = |(log, now): &(&IndexedLog<'_>, Option<LogStamp>)| {
            now.is_none() || seen.get(log.path) != now.as_ref()
        };
        let changed: Vec<(&IndexedLog<'_>, Option<LogStamp>)> = stamped.filter(is_new).collect();
        if changed.is_empty() {
            return Ok(result);
        }
        let mut batch = Batch::begin(connection, names)?;
        for (log, now) in changed {
            let mut read = || -> Result<(), ChunkError> {
                let mut files = open_files(world, log.path, None)?;
                let id = batch.log_id(*log)?;
                batch.drop_missing(id, &files)?;
                for file in files.iter_mut().rev() {
                    while !batch.add_chunk(id, file)? {
                        if batch.bytes >= INDEX_BATCH_BYTES {
                            result.added = result.added.saturating_add(batch.renew()?);
                        }
                    }
                }
                Ok(())
            };
            match read() {
                Ok(()) => taken.extend(now.map(|now| (log.path.to_owned(), now))),
                Err(ChunkError::Read(source)) => {
                    result.problems.push((log.path.to_owned(), source))
                }
                Err(ChunkError::Index(error)) => return Err(error),
            }
            if batch.bytes >= INDEX_BATCH_BYTES {
                result.added = result.added.saturating_add(batch.renew()?);
            }
            if !go_on(result.added.saturating_add(batch.count)) {
                break;
            }
        }
        result.added = result.added.saturating_add(batch.commit()?);
        seen.extend(taken);
        Ok(result)
    }

    /// Drops the rows of logs for whose project and path `keep` returns false.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn retain_logs(&mut self, keep: impl Fn(&str, &Path) -> bool) -> Result<(), IndexError> {
        let logs: Vec<(i64, String, String)> = {
            let mut statement =
                self.connection.prepare_cached("SELECT id, project, path FROM log")?;
            let logs = statement.query_map([], |it| Ok((it.get(0)?, it.get(1)?, it.get(2)?)))?;
            logs.collect::<Result<_, _>>()?
        };
        let dropped = logs.into_iter().filter(|it| !keep(&it.1, Path::new(&it.2)));
        let dropped: Vec<(i64, String, String)> = dropped.collect();
        if dropped.is_empty() {
            return Ok(());
        }
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (log, _, path) in dropped {
            for file in file_ids(&change, log)? {
                drop_file(&change, file)?;
            }
            change.execute("DELETE FROM log WHERE id = ?1", [log])?;
            self.seen.remove(Path::new(&path));
        }
        change.commit()?;
        Ok(())
    }
}

/// The rows of one transaction.
struct Batch<'c> {
    change: Transaction<'c>,
    names: &'c mut BTreeMap<String, i64>,
    /// Names that exist only if the transaction does not fail.
    new_names: BTreeMap<String, i64>,
    /// Bytes of lines.
    bytes: usize,
    /// New rows.
    count: u64,
}

impl<'c> Batch<'c> {
    fn begin(
        connection: &'c Connection,
        names: &'c mut BTreeMap<String, i64>,
    ) -> Result<Self, rusqlite::Error> {
        let change = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        Ok(Self { change, names, new_names: BTreeMap::new(), bytes: 0, count: 0 })
    }

    /// Commits, and begins the next transaction. Returns the number of rows.
    fn renew(&mut self) -> Result<u64, rusqlite::Error> {
        self.change.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
        self.names.append(&mut self.new_names);
        self.bytes = 0;
        Ok(std::mem::take(&mut self.count))
    }

    fn commit(mut self) -> Result<u64, rusqlite::Error> {
        self.change.commit()?;
        self.names.append(&mut self.new_names);
        Ok(self.count)
    }

    fn log_id(&mut self, log: IndexedLog<'_>) -> Result<i64, rusqlite::Error> {
        let path = log.path.to_string_lossy();
        let save = "INSERT INTO log (path, project) VALUES (?1, ?2) \
             ON CONFLICT (path) DO UPDATE SET project = excluded.project RETURNING id";
        let known: Option<(i64, String)> = self
            .change
            .prepare_cached("SELECT id, project FROM log WHERE path = ?1")?
            .query_row([&path], |it| Ok((it.get(0)?, it.get(1)?)))
            .optional()?;
        match known {
            Some((id, project)) if project == log.project => Ok(id),
            Some(_) | None => {
                self.change.query_row(save, params![path, log.project], |it| it.get(0))
            }
        }
    }

    /// Drops the rows of files that were rotated away or replaced.
    fn drop_missing(&mut self, log: i64, files: &[LogFile]) -> Result<(), rusqlite::Error> {
        let mut known =
            self.change.prepare_cached("SELECT id, first_line FROM file WHERE log = ?1")?;
        let known = known.query_map([log], |it| Ok((it.get(0)?, it.get(1)?)))?;
        let known: Vec<(i64, String)> = known.collect::<Result<_, _>>()?;
        for (id, first_line) in known {
            if !files.iter().any(|it| it.first_line == first_line) {
                drop_file(&self.change, id)?;
            }
        }
        Ok(())
    }

    /// Adds one chunk of a file. Returns whether nothing is left. Everything is read before something is added.
    fn add_chunk(&mut self, log: i64, file: &mut LogFile) -> Result<bool, ChunkError> {
        let mut known = indexed(&self.change, log, file)?;
        let mut start = known.position.offset;
        let chunk = file.chunk(&known.position, INDEX_CHUNK_BYTES_MAX)?;
        if chunk.bytes.is_empty() {
            return Ok(true);
        }
        known.position = chunk.end;
        known.tail = tail(file, &known.position)?;
        for line in chunk.bytes.split_inclusive(|it| *it == b'\n') {
            self.add_line(known.id, line, start, &mut known.activity)?;
            start = start.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        }
        save(&self.change, &known)?;
        self.bytes = self.bytes.saturating_add(chunk.bytes.len());
        Ok(chunk.is_last)
    }

    /// Adds a line, if it is an entry.
    fn add_line(
        &mut self,
        file: i64,
        line: &[u8],
        start: u64,
        activity: &mut Activity,
    ) -> Result<(), rusqlite::Error> {
        let Some(entry) = IndexedDecision::parse(line.trim_ascii_end(), activity) else {
            return Ok(());
        };
        let (start, at) = (integer(start), entry.at.millis());
        let [session, event, tool] =
            [&entry.session, &entry.event, &entry.tool].map(|it| self.name(it));
        self.change
            .prepare_cached(
                "INSERT INTO decision (file, start, length, at, mark, entry, session, event, tool, detail) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                file,
                start,
                integer(line.len()),
                at,
                mark(entry.outcome, entry.would_stop),
                entry.id,
                session?,
                event?,
                tool?,
                entry.detail
            ])?;
        for (rule, result) in &entry.rules {
            let rule = self.name(rule)?;
            self.change
                .prepare_cached(
                    "INSERT INTO firing (file, start, rule, result, at) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![file, start, rule, result_number(*result), at])?;
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Returns the id of a text.
    fn name(&mut self, text: &str) -> Result<i64, rusqlite::Error> {
        if let Some(id) = self.names.get(text).or_else(|| self.new_names.get(text)) {
            return Ok(*id);
        }
        self.change
            .prepare_cached("INSERT INTO name (text) VALUES (?1) ON CONFLICT (text) DO NOTHING")?
            .execute([text])?;
        let id = self
            .change
            .prepare_cached("SELECT id FROM name WHERE text = ?1")?
            .query_row([text], |it| it.get(0))?;
        self.new_names.insert(text.to_owned(), id);
        Ok(id)
    }
}

/// Why a chunk was not added.
enum ChunkError {
    Index(IndexError),
    Read(WorldError),
}

impl From<rusqlite::Error> for ChunkError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error.into())
    }
}

impl From<WorldError> for ChunkError {
    fn from(error: WorldError) -> Self {
        Self::Read(error)
    }
}

/// Returns the checksum of the last bytes before a position.
fn tail(file: &mut LogFile, end: &LogPosition) -> Result<String, WorldError> {
    let length = end.offset.min(TAIL_BYTES);
    let bytes =
        file.read(end.offset.saturating_sub(length), usize::try_from(length).unwrap_or(0))?;
    Ok(hex(&checksum(&[&bytes])))
}

/// Returns how far the lines of a file are rows. A rewritten file begins at 0, without its old rows.
fn indexed(
    change: &Transaction<'_>,
    log: i64,
    file: &mut LogFile,
) -> Result<IndexedFile, ChunkError> {
    let known = change
        .prepare_cached(
            "SELECT id, taken, tail, activity FROM file WHERE log = ?1 AND first_line = ?2",
        )?
        .query_row(params![log, file.first_line], |it| {
            let offset = u64::try_from(it.get::<_, i64>(1)?).unwrap_or(0);
            let position = LogPosition { offset, ..file.start() };
            let activity = serde_json::from_str(&it.get::<_, String>(3)?).unwrap_or_default();
            Ok(IndexedFile { id: it.get(0)?, position, tail: it.get(2)?, activity })
        })
        .optional()?;
    if let Some(known) = known {
        if known.position.offset <= file.length && tail(file, &known.position)? == known.tail {
            return Ok(known);
        }
        drop_file(change, known.id)?;
    }
    let save = "INSERT INTO file (log, first_line, taken, tail, activity) VALUES (?1, ?2, 0, '', '') \
         RETURNING id";
    let id = change.query_row(save, params![log, file.first_line], |it| it.get(0))?;
    let (position, tail) = (file.start(), String::new());
    Ok(IndexedFile { id, position, tail, activity: Activity::default() })
}

fn save(change: &Transaction<'_>, file: &IndexedFile) -> Result<(), rusqlite::Error> {
    let activity = serde_json::to_string(&file.activity).unwrap_or_default();
    change
        .prepare_cached("UPDATE file SET taken = ?2, tail = ?3, activity = ?4 WHERE id = ?1")?
        .execute(params![file.id, integer(file.position.offset), file.tail, activity])?;
    Ok(())
}

fn file_ids(change: &Transaction<'_>, log: i64) -> Result<Vec<i64>, rusqlite::Error> {
    let mut statement = change.prepare_cached("SELECT id FROM file WHERE log = ?1")?;
    statement.query_map([log], |it| it.get(0))?.collect()
}

/// Drops a file with its rows.
fn drop_file(change: &Transaction<'_>, file: i64) -> Result<(), rusqlite::Error> {
    for table in ["firing", "decision"] {
        change.execute(&format!("DELETE FROM {table} WHERE file = ?1"), [file])?;
    }
    change.execute("DELETE FROM file WHERE id = ?1", [file])?;
    Ok(())
}
