//! Files of the real machine: opening without following links, locks and file identity, on each
//! operating system.
#![expect(clippy::disallowed_methods, reason = "this is the World that everything else must use")]

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::process;
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

/// Lets every user read a file or enter a directory, and only its owner write.
#[cfg(unix)]
pub(super) fn publish(path: &Path) -> Result<(), WorldError> {
    use std::os::unix::fs::PermissionsExt;
    let is_directory = fs::metadata(path).map_err(|error| world_error(&error))?.is_dir();
    let mode = if is_directory { 0o755 } else { 0o644 };
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, permissions).map_err(|error| world_error(&error))
}

#[cfg(not(unix))]
pub(super) fn publish(_: &Path) -> Result<(), WorldError> {
    Ok(())
}

/// Copies the permissions and the owner of one file to another.
#[cfg(unix)]
pub(super) fn copy_rights(from: &Path, to: &Path) -> Result<(), WorldError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let open = |path| open_regular(OpenOptions::new().read(true), path, Links::Refuse);
    let meta = |file: &File| file.metadata().map_err(|error| world_error(&error));
    let (from, to) = (meta(&open(from)?)?, open(to)?);
    let own = meta(&to)?;
    if (from.uid(), from.gid()) != (own.uid(), own.gid()) {
        let changed = std::os::unix::fs::fchown(&to, Some(from.uid()), Some(from.gid()));
        changed.map_err(|error| world_error(&error))?;
    }
    // After the owner, because a change of the owner clears special bits.
    let permissions = fs::Permissions::from_mode(from.mode() & 0o7777);
    to.set_permissions(permissions).map_err(|error| world_error(&error))
}

#[cfg(not(unix))]
pub(super) fn copy_rights(from: &Path, to: &Path) -> Result<(), WorldError> {
    let permissions = fs::metadata(from).map_err(|error| world_error(&error))?.permissions();
    fs::set_permissions(to, permissions).map_err(|error| world_error(&error))
}

/// Opens the directories between a root and a path, relative to the root and without following
/// links. Returns the owner of the last one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn owner_on_way(root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, open, openat2};
    use rustix::io::Errno;
    let Some(way) = way(root, path) else { return Ok(None) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root_folder) = open(root, flags, Mode::empty()) else { return Ok(None) };
    if way.as_os_str().is_empty() {
        return Ok(fstat(&root_folder).ok().map(|it| it.st_uid));
    }
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(&root_folder, way, flags, Mode::empty(), resolve) {
        Ok(folder) => Ok(fstat(&folder).ok().map(|it| it.st_uid)),
        Err(Errno::LOOP | Errno::XDEV) => Err(WorldError::Io("is a symbolic link".to_owned())),
        // A kernel before 5.6, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => walk(root, way),
        // A missing directory is not a link. The change itself reports any other error.
        Err(_) => Ok(None),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn owner_on_way(root: &Path, path: &Path) -> Result<Option<u32>, WorldError> {
    way(root, path).map_or(Ok(None), |way| walk(root, way))
}

/// Returns the directories between a root and a path.
fn way<'p>(root: &Path, path: &'p Path) -> Option<&'p Path> {
    path.parent()?.strip_prefix(root).ok()
}

/// Opens directory after directory, if the system cannot do it in one call.
#[cfg(unix)]
fn walk(root: &Path, way: &Path) -> Result<Option<u32>, WorldError> {
    use rustix::fs::{Mode, OFlags, fstat, open, openat};
    use rustix::io::Errno;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(mut folder) = open(root, flags, Mode::empty()) else { return Ok(None) };
    for part in way.components() {
        match openat(&folder, part.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => folder = next,
            // A link to a directory that is opened as a directory fails with one of these.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                return Err(WorldError::Io("is a symbolic link".to_owned()));
            }
            Err(_) => return Ok(None),
        }
    }
    Ok(fstat(&folder).ok().map(|it| it.st_uid))
}

#[cfg(not(unix))]
fn walk(root: &Path, way: &Path) -> Result<Option<u32>, WorldError> {
    let mut folder = root.to_owned();
    for part in way.components() {
        folder.push(part);
        if fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_symlink()) {
            return Err(WorldError::Io("is a symbolic link".to_owned()));
        }
    }
    Ok(None)
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
        if is_at(&file, path)? {
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
    let held = || format!("`{}` is locked by {}", path.display(), holder(path));
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

/// Returns the process that holds the lock on a file, if the system lists locks.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn holder(path: &Path) -> String {
    let unknown = || "another process".to_owned();
    let Ok(meta) = fs::metadata(path) else { return unknown() };
    let inode = std::os::unix::fs::MetadataExt::ino(&meta).to_string();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    // `1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF`; a waiting process has `->` behind its number.
    let process = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, file, ..] = words.as_slice() else { return None };
        (file.rsplit(':').next() == Some(inode.as_str())).then(|| (*process).to_owned())
    });
    let Some(process) = process.filter(|it| it != "0") else { return unknown() };
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("process {process} ({})", name.trim().escape_debug())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn holder(_path: &Path) -> String {
    "another process".to_owned()
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

    #[cfg(unix)]
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        loop {
            match std::os::unix::fs::FileExt::read_at(&self.0, buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                answer => return answer.map_err(|error| world_error(&error)),
            }
        }
    }

    #[cfg(not(unix))]
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, WorldError> {
        use std::io::{Seek, SeekFrom};
        self.0.seek(SeekFrom::Start(offset)).map_err(|error| world_error(&error))?;
        self.0.read(buffer).map_err(|error| world_error(&error))
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
            WorldError::Io("is a symbolic link".to_owned())
        }
        // Errors of opening a directory, or a pipe without a reader, for writing.
        Some(code)
            if code == rustix::io::Errno::NXIO.raw_os_error()
                || code == rustix::io::Errno::ISDIR.raw_os_error() =>
        {
            WorldError::NotAFile
        }
        Some(_) | None => world_error(&error),
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
        return Err(WorldError::Io("is a symbolic link".to_owned()));
    }
    require_regular(options.open(path).map_err(|error| world_error(&error))?)
}

fn require_regular(file: File) -> Result<(File, u64), WorldError> {
    let meta = file.metadata().map_err(|error| world_error(&error))?;
    if meta.is_file() { Ok((file, meta.len())) } else { Err(WorldError::NotAFile) }
}

/// Returns whether `path` still names the open `file`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> Result<bool, WorldError> {
    let held = file.metadata().map_err(|error| world_error(&error))?;
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
            world_error(&io::Error::from(error))
        }
    })
}

/// Whether an error of the operating system says that a file system does not support a call.
#[cfg(unix)]
pub(super) fn is_unsupported(code: i32) -> bool {
    use rustix::io::Errno;
    let code = Errno::from_raw_os_error(code);
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&code)
}

#[cfg(not(unix))]
pub(super) fn is_unsupported(_code: i32) -> bool {
    false
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
    let created = meta.created().ok().map(timestamp);
    FileStat { kind, length: meta.len(), modified, created, identity: identity(meta) }
}

#[cfg(unix)]
pub(super) fn owner(meta: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(meta))
}

#[cfg(not(unix))]
pub(super) fn owner(_meta: &fs::Metadata) -> Option<u32> {
    None
}

/// Whether the group or all users may write to a file.
#[cfg(unix)]
pub(super) fn shared_write(meta: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(meta) & 0o022 != 0
}

#[cfg(not(unix))]
pub(super) fn shared_write(_meta: &fs::Metadata) -> bool {
    false
}

/// Returns inode and device as one number; 0 means "unknown".
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
