//! Files of the real machine: opening without following links, reading, and locks.
#![expect(clippy::disallowed_methods, reason = "this is the World that everything else must use")]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::{process, system};
use crate::{FileKind, FileStat, HeldLock, OpenFile, WorldError};
use policyd_yaml::time::Timestamp;

/// Reads a file of at most `bytes_max` bytes.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
    let (file, length) = open_with_length(OpenOptions::new().read(true), path, Links::Follow)?;
    let bound = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if length > bound {
        return Err(WorldError::TooLarge(length));
    }
    let known = usize::try_from(length).unwrap_or(0);
    let bytes = content(file, known, bound).map_err(|error| world_error(&error))?;
    if bytes.len() > bytes_max {
        return Err(WorldError::TooLarge(u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
    }
    Ok(bytes)
}

/// Opens the directories between a root and a path, relative to the root and without following
/// links. Returns the owner of the last one.
pub(super) fn owner_on_way(root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
    let way = path.parent().and_then(|it| it.strip_prefix(root).ok());
    way.map_or(Ok(None), |way| system::owner_on_way(root, way))
}

/// Wait time for a lock after which the wait is announced.
const WAIT_ANNOUNCED_AFTER: Duration = Duration::from_secs(2);

/// Locks a file, and creates it if necessary. Calls `announce` with the holder of the lock if the
/// wait is long.
pub(super) fn lock(
    path: &Path,
    wait_max: Duration,
    announce: impl Fn(&str),
) -> Result<Box<dyn HeldLock>, WorldError> {
    let began = Instant::now();
    loop {
        let options = &mut OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = open_regular(options, path, Links::Refuse)?;
        let file = match file.try_lock() {
            Ok(()) => file,
            Err(TryLockError::WouldBlock) => {
                let left = wait_max.saturating_sub(began.elapsed());
                wait_for_lock(file, path, left, &announce)?
            }
            Err(TryLockError::Error(error)) => return Err(world_error(&error)),
        };
        // Pruning deletes whole session directories. A lock on a deleted file protects nothing.
        if system::is_at(&file, path).map_err(|error| world_error(&error))? {
            return Ok(Box::new(RealLock { _file: file }));
        }
    }
}

/// Waits for a lock that another process holds. The operating system has a fair queue; polling
/// could starve one of many waiting processes.
fn wait_for_lock(
    file: File,
    path: &Path,
    wait_max: Duration,
    announce: &impl Fn(&str),
) -> Result<File, WorldError> {
    let held = || {
        let holder = system::lock_holder(path).unwrap_or_else(|| "another process".to_owned());
        format!("`{}` is locked by {holder}", path.display())
    };
    if wait_max.is_zero() {
        return Err(WorldError::Locked(held()));
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    // Dropping the file releases a lock that no one waits for any more.
    process::alongside(move || drop(sender.send(file.lock().map(|()| file))))?;
    let first = wait_max.min(WAIT_ANNOUNCED_AFTER);
    let answer = receiver.recv_timeout(first).or_else(|_| {
        let rest = wait_max.saturating_sub(first);
        if !rest.is_zero() {
            announce(&held());
        }
        receiver.recv_timeout(rest)
    });
    match answer {
        Ok(answer) => answer.map_err(|error| world_error(&error)),
        Err(_) => Err(WorldError::Locked(held())),
    }
}

/// An open locked file. Closing it releases the lock.
struct RealLock {
    _file: File,
}

impl HeldLock for RealLock {}

pub(super) struct RealFile(pub(super) File);

impl OpenFile for RealFile {
    fn stat(&self) -> Result<FileStat, WorldError> {
        self.0.metadata().map(|meta| file_stat(&meta)).map_err(|error| world_error(&error))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        system::read_at(&self.0, buffer, offset).map_err(|error| world_error(&error))
    }
}

/// Reads the `known` bytes of a file in one call, if possible, without a second call that detects
/// the end. A file without a length, as in `/proc`, is read up to `bound` and one byte more.
fn content(mut file: File, known: usize, bound: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; known];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|it| !it.is_empty()) {
        match file.read(rest) {
            // The file was truncated meanwhile.
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    if known == 0 {
        file.take(bound.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Handling of a symbolic link as the last part of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file, private to the user if it is created. Never blocks on a pipe.
pub(super) fn open_regular(
    options: &mut OpenOptions,
    path: &Path,
    links: Links,
) -> Result<File, WorldError> {
    open_with_length(options, path, links).map(|(file, _)| file)
}

/// Like [`open_regular`]. Also returns the length in bytes.
fn open_with_length(
    options: &mut OpenOptions,
    path: &Path,
    links: Links,
) -> Result<(File, u64), WorldError> {
    let file = system::open(options, path, links)?;
    let meta = file.metadata().map_err(|error| world_error(&error))?;
    if meta.is_file() { Ok((file, meta.len())) } else { Err(WorldError::NotAFile) }
}

pub(super) fn file_stat(meta: &fs::Metadata) -> FileStat {
    let kind = if meta.is_file() {
        FileKind::File
    } else if meta.is_dir() {
        FileKind::Folder
    } else {
        FileKind::Special
    };
    let modified = meta.modified().map(timestamp).unwrap_or_default();
    let created = meta.created().ok().map(timestamp);
    FileStat { kind, length: meta.len(), modified, created, identity: system::identity(meta) }
}

pub(super) fn timestamp(at: SystemTime) -> Timestamp {
    let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => millis(before.duration()).saturating_neg(),
    })
}

/// Converts an error of the operating system.
pub(super) fn world_error(error: &io::Error) -> WorldError {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    if missing.contains(&error.kind()) {
        WorldError::NotFound
    } else if error.kind() == io::ErrorKind::AlreadyExists {
        WorldError::AlreadyExists
    } else {
        WorldError::Io(error.to_string())
    }
}
