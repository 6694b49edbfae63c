//! The machine: the one place that names files, clocks, processes and the environment.
//! May not live here: any decision.
#![expect(clippy::disallowed_methods, reason = "this is the World that everything else must use")]

mod process;
mod program;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use super::{
    Command, CommandOutput, Entry, FileKind, FileStat, HeldLock, OpenFile, RunningProgram, World,
    WorldError,
};
use crate::time::Timestamp;

/// The machine this process runs on.
#[derive(Debug)]
pub struct RealWorld {
    started: Instant,
    interrupted: Arc<AtomicBool>,
}

impl RealWorld {
    /// The machine; `elapsed` starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now(), interrupted: Arc::default() }
    }
}

impl Default for RealWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        timestamp(SystemTime::now())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn variables(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    fn program(&self) -> Option<PathBuf> {
        std::env::current_exe().ok()
    }

    fn working_folder(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    #[cfg(unix)]
    fn user(&self) -> Option<u32> {
        Some(rustix::process::geteuid().as_raw())
    }

    #[cfg(not(unix))]
    fn user(&self) -> Option<u32> {
        None
    }

    fn cores(&self) -> usize {
        // Telling it takes several files; it is asked for before each piece of work.
        static CORES: LazyLock<usize> = LazyLock::new(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        *CORES
    }

    fn stat(&self, path: &Path) -> Result<FileStat, WorldError> {
        fs::metadata(path).map(|meta| file_stat(&meta)).map_err(|error| said(&error))
    }

    fn entry(&self, path: &Path) -> Result<Entry, WorldError> {
        let meta = fs::symlink_metadata(path).map_err(|error| said(&error))?;
        let link = match meta.is_symlink() {
            true => Some(fs::read_link(path).map_err(|error| said(&error))?),
            false => None,
        };
        Ok(Entry { link, owner: owner(&meta) })
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, WorldError> {
        fs::canonicalize(path).map_err(|error| said(&error))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn OpenFile>, WorldError> {
        Ok(Box::new(RealFile(open_regular(OpenOptions::new().read(true), path, Links::Follow)?)))
    }

    fn read(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, WorldError> {
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

    fn list(&self, folder: &Path) -> Result<Vec<String>, WorldError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| said(&error))? {
            let name = entry.map_err(|error| said(&error))?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// The folder is opened once, where asking for it by its path and listing it would find it twice.
    #[cfg(unix)]
    fn look_into(&self, path: &Path) -> Result<(u64, Vec<String>), WorldError> {
        use rustix::fs::{Dir, Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let folder = File::from(opened.map_err(|error| said(&error.into()))?);
        let identity = identity(&folder.metadata().map_err(|error| said(&error))?);
        let mut names = Vec::new();
        for entry in Dir::new(folder).map_err(|error| said(&error.into()))? {
            let entry = entry.map_err(|error| said(&error.into()))?;
            let name = entry.file_name().to_string_lossy();
            if name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        names.sort();
        Ok((identity, names))
    }

    fn create_folder(&self, path: &Path) -> Result<(), WorldError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(|error| said(&error))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        let mut file =
            open_regular(OpenOptions::new().write(true).create(true), path, Links::Refuse)?;
        // Emptied first, so that a write cut by a power loss leaves a beginning of the new content
        // and never a mixture with the old one, which could pass for a value.
        file.set_len(0).and_then(|()| file.write_all(bytes)).map_err(|error| said(&error))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
        let mut file =
            open_regular(OpenOptions::new().append(true).create(true), path, Links::Refuse)?;
        file.write_all(bytes).map_err(|error| said(&error))
    }

    fn sync_file(&self, path: &Path) -> Result<(), WorldError> {
        let file = open_regular(OpenOptions::new().write(true), path, Links::Refuse)?;
        file.sync_all().map_err(|error| said(&error))
    }

    fn sync_folder(&self, path: &Path) -> Result<(), WorldError> {
        if cfg!(not(unix)) {
            return Ok(()); // Folders cannot be opened; renaming is all that can be done.
        }
        let synced = File::open(path).and_then(|folder| folder.sync_all());
        synced.map_err(|error| match error.kind() == io::ErrorKind::InvalidInput {
            true => WorldError::Unsupported,
            false => said(&error),
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), WorldError> {
        fs::rename(from, to).map_err(|error| said(&error))
    }

    fn exchange(&self, one: &Path, other: &Path) -> Result<(), WorldError> {
        exchange(one, other)
    }

    fn remove(&self, path: &Path) -> Result<(), WorldError> {
        fs::remove_file(path).map_err(|error| said(&error))
    }

    fn remove_folder(&self, path: &Path) -> Result<(), WorldError> {
        fs::remove_dir_all(path).map_err(|error| said(&error))
    }

    fn lock(&self, path: &Path, wait_max: Duration) -> Result<Box<dyn HeldLock>, WorldError> {
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

    fn run(&self, command: &Command) -> Result<CommandOutput, WorldError> {
        process::run(command)
    }

    fn start(&self, command: &Command) -> Result<Box<dyn RunningProgram>, WorldError> {
        Ok(Box::new(program::Program::start(command)?))
    }

    fn note_interrupts(&self) {
        program::note_interrupts(&self.interrupted);
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn kill_marked(&self, variable: &str, value: &str) -> Result<usize, WorldError> {
        program::kill_marked(&format!("{variable}={value}"))
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

struct RealFile(File);

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
enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file, private to the user where it is created; never waits on a pipe.
fn open_regular(options: &mut OpenOptions, path: &Path, links: Links) -> Result<File, WorldError> {
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
fn exchange(one: &Path, other: &Path) -> Result<(), WorldError> {
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
fn exchange(_one: &Path, _other: &Path) -> Result<(), WorldError> {
    Err(WorldError::Unsupported)
}

fn file_stat(meta: &fs::Metadata) -> FileStat {
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
fn owner(meta: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(meta))
}

#[cfg(not(unix))]
fn owner(_meta: &fs::Metadata) -> Option<u32> {
    None
}

/// Inode and device in one number; 0 is kept for "unknown".
#[cfg(unix)]
fn identity(meta: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    (meta.dev().wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ meta.ino()).max(1)
}

#[cfg(not(unix))]
fn identity(_meta: &fs::Metadata) -> u64 {
    0
}

fn timestamp(at: SystemTime) -> Timestamp {
    let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => millis(before.duration()).saturating_neg(),
    })
}

/// The machine's error in our words.
fn said(error: &io::Error) -> WorldError {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    if missing.contains(&error.kind()) {
        WorldError::Missing
    } else if error.kind() == io::ErrorKind::AlreadyExists {
        WorldError::Exists
    } else {
        WorldError::Refused(error.to_string())
    }
}
