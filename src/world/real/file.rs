//! Files of the machine: opened without following what was not meant, held, locked, and told apart; and what differs
//! there between systems.
#![expect(clippy::disallowed_methods, reason = "this is the World that everything else must use")]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::process;
use crate::time::Timestamp;
use crate::world::{FileKind, FileStat, HeldLock, OpenFile, WorldError};

/// All of a file of no more than that many bytes.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
    let (file, length) = open_with_length(OpenOptions::new().read(true), path, Links::Follow)?;
    let bound = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if length > bound {
        return Err(WorldError::TooLarge(length));
    }
    let known = usize::try_from(length).unwrap_or(0);
    let bytes = content(file, known, bound).map_err(|error| said(&error))?;
    if bytes.len() > bytes_max {
        return Err(WorldError::TooLarge(u64::try_from(bytes.len()).unwrap_or(u64::MAX)));
    }
    Ok(bytes)
}

/// Locks a file, which is made where it is missing.
pub(super) fn lock(path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
    let began = Instant::now();
    loop {
        let options = &mut OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = open_regular(options, path, Links::Refuse)?;
        let file = match file.try_lock() {
            Ok(()) => file,
            Err(TryLockError::WouldBlock) => {
                wait_for_lock(file, wait_max.saturating_sub(began.elapsed()))?
            }
            Err(TryLockError::Error(error)) => return Err(said(&error)),
        };
        // Pruning deletes whole session folders: a lock on a deleted file protects nothing.
        if is_at(&file, path)? {
            return Ok(Box::new(RealLock { _file: file }));
        }
    }
}

/// Waits for a lock that is held. The machine keeps a queue of who waits; looking again and again
/// would leave to chance who comes next, and among many some would never come.
fn wait_for_lock(file: File, wait_max: Duration) -> Result<File, WorldError> {
    if wait_max.is_zero() {
        return Err(WorldError::TimedOut);
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    // Where nobody waits any more the file is dropped, which frees the lock.
    process::alongside(move || drop(sender.send(file.lock().map(|()| file))))?;
    match receiver.recv_timeout(wait_max) {
        Ok(answer) => answer.map_err(|error| said(&error)),
        Err(_) => Err(WorldError::TimedOut),
    }
}

/// A file held open; closing it releases the lock.
struct RealLock {
    _file: File,
}

impl HeldLock for RealLock {}

pub(super) struct RealFile(pub(super) File);

impl OpenFile for RealFile {
    fn stat(&self) -> Result<FileStat, WorldError> {
        self.0.metadata().map(|meta| file_stat(&meta)).map_err(|error| said(&error))
    }

    #[cfg(unix)]
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        loop {
            match std::os::unix::fs::FileExt::read_at(&self.0, buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                answer => return answer.map_err(|error| said(&error)),
            }
        }
    }

    #[cfg(not(unix))]
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        use std::io::{Seek, SeekFrom};
        self.0.seek(SeekFrom::Start(offset)).map_err(|error| said(&error))?;
        self.0.read(buffer).map_err(|error| said(&error))
    }
}

/// The `known` bytes that a file had when it was opened, in one reading where the machine gives them at once:
/// no second one asks for the end. Of one that tells no length, as those of `/proc`, all up to the `bound` and
/// one more.
fn content(mut file: File, known: usize, bound: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; known];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|it| !it.is_empty()) {
        match file.read(rest) {
            // It was cut meanwhile.
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

/// What to do with a symbolic link as the last part of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file, private to the user where it is created; never waits on a pipe.
pub(super) fn open_regular(
    options: &mut OpenOptions,
    path: &Path,
    links: Links,
) -> Result<File, WorldError> {
    open_with_length(options, path, links).map(|(file, _)| file)
}

/// The same with the number of its bytes.
#[cfg(unix)]
fn open_with_length(
    options: &mut OpenOptions,
    path: &Path,
    links: Links,
) -> Result<(File, u64), WorldError> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let mut flags = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            WorldError::Refused("is a symbolic link".to_owned())
        }
        // What a pipe without a reader and a folder answer to an opening for writing.
        Some(code)
            if code == rustix::io::Errno::NXIO.raw_os_error()
                || code == rustix::io::Errno::ISDIR.raw_os_error() =>
        {
            WorldError::NotAFile
        }
        Some(_) | None => said(&error),
    })?;
    require_regular(file)
}

#[cfg(not(unix))]
fn open_with_length(
    options: &mut OpenOptions,
    path: &Path,
    links: Links,
) -> Result<(File, u64), WorldError> {
    let is_link = || fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    if links == Links::Refuse && is_link() {
        return Err(WorldError::Refused("is a symbolic link".to_owned()));
    }
    require_regular(options.open(path).map_err(|error| said(&error))?)
}

fn require_regular(file: File) -> Result<(File, u64), WorldError> {
    let meta = file.metadata().map_err(|error| said(&error))?;
    if meta.is_file() { Ok((file, meta.len())) } else { Err(WorldError::NotAFile) }
}

/// Whether `path` still names the open `file`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> Result<bool, WorldError> {
    let held = file.metadata().map_err(|error| said(&error))?;
    Ok(fs::symlink_metadata(path).is_ok_and(|named| identity(&named) == identity(&held)))
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> Result<bool, WorldError> {
    Ok(true) // An open file cannot be deleted here.
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn exchange(one: &Path, other: &Path) -> Result<(), WorldError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|error| {
        if [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP].contains(&error) {
            WorldError::Unsupported
        } else {
            said(&io::Error::from(error))
        }
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn exchange(_one: &Path, _other: &Path) -> Result<(), WorldError> {
    Err(WorldError::Unsupported)
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
    FileStat { kind, length: meta.len(), modified, identity: identity(meta) }
}

#[cfg(unix)]
pub(super) fn owner(meta: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(meta))
}

#[cfg(not(unix))]
pub(super) fn owner(_meta: &fs::Metadata) -> Option<u32> {
    None
}

/// Inode and device in one number; 0 is kept for "unknown".
#[cfg(unix)]
pub(super) fn identity(meta: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    (meta.dev().wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ meta.ino()).max(1)
}

#[cfg(not(unix))]
pub(super) fn identity(_meta: &fs::Metadata) -> u64 {
    0
}

pub(super) fn timestamp(at: SystemTime) -> Timestamp {
    let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => millis(before.duration()).saturating_neg(),
    })
}

/// The machine's error in our words.
pub(super) fn said(error: &io::Error) -> WorldError {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    if missing.contains(&error.kind()) {
        WorldError::Missing
    } else if error.kind() == io::ErrorKind::AlreadyExists {
        WorldError::Exists
    } else {
        WorldError::Refused(error.to_string())
    }
}
