//! The files of a log: the current one and those that were rotated. A file is recognized by its first line, which no other
//! file has: entries contain their time and id.

use std::path::{Path, PathBuf};

use policyd_base::limits::{LOG_BYTES_MAX, LOG_FILES_MAX};
use policyd_world::{OpenFile, World, WorldError};
use policyd_yaml::checksum::{checksum, hex};

/// Bytes that are read first to find the end of the first line.
const FIRST_READ: usize = 4 * 1024;
/// Bytes of one file that are read: a file is rotated when it is full, and only the last append exceeds the limit.
#[expect(clippy::cast_possible_truncation, reason = "the limit is far below 4 GB")]
pub const FILE_BYTES_MAX: usize = LOG_BYTES_MAX as usize * 2;

/// Returns the path of a rotated file; 1 is the newest.
#[must_use]
pub fn rotated(log: &Path, number: usize) -> PathBuf {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    log.with_file_name(format!("{name}.{number}"))
}

/// Returns the paths of all files of a log, newest first. Not every file exists.
pub fn paths(log: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    [log.to_owned()].into_iter().chain((1..=LOG_FILES_MAX).map(|it| rotated(log, it)))
}

/// Whether a log changed since it was read: identity and length of its current file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStamp {
    identity: u64,
    length: u64,
}

impl LogStamp {
    /// Returns the stamp of a log.
    ///
    /// # Errors
    /// The error of the operating system; [`WorldError::NotFound`] if the log does not exist.
    pub fn of(world: &dyn World, log: &Path) -> Result<Self, WorldError> {
        let stat = world.stat(log)?;
        Ok(Self { identity: stat.identity, length: stat.length })
    }
}

/// An open file of a log. It stays the same if the log is rotated meanwhile.
pub struct LogFile {
    file: Box<dyn OpenFile>,
    /// Checksum of the first line.
    pub first_line: String,
    /// Length at the opening.
    pub length: u64,
}

impl LogFile {
    /// Opens a file. `None` if it does not exist or has no complete line.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn open(world: &dyn World, path: &Path) -> Result<Option<Self>, WorldError> {
        let mut file = match world.open(path) {
            Ok(file) => file,
            Err(WorldError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.stat()?.length;
        let first_line = first_line(file.as_mut())?;
        Ok(first_line.map(|first_line| Self { file, first_line, length }))
    }

    /// Returns at most `wanted` bytes from `start` on.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn read(&mut self, start: u64, wanted: usize) -> Result<Vec<u8>, WorldError> {
        read(self.file.as_mut(), start, wanted)
    }
}

/// Opens the files of a log, newest first and each once; `last` is the first line of the oldest one that is wanted. A
/// rotation in between moves a file to a name that is opened later.
///
/// # Errors
/// A file cannot be read now.
pub fn open_files(
    world: &dyn World,
    log: &Path,
    last: Option<&String>,
) -> Result<Vec<LogFile>, WorldError> {
    let mut files: Vec<LogFile> = Vec::new();
    for path in paths(log) {
        let Some(file) = LogFile::open(world, &path)? else { continue };
        if files.iter().any(|it| it.first_line == file.first_line) {
            continue;
        }
        let is_last = last == Some(&file.first_line);
        files.push(file);
        if is_last {
            break;
        }
    }
    Ok(files)
}

/// Returns at most `wanted` bytes of an open file from `start` on.
///
/// # Errors
/// The error of the operating system.
pub fn read(file: &mut dyn OpenFile, start: u64, wanted: usize) -> Result<Vec<u8>, WorldError> {
    let (mut bytes, mut filled) = (vec![0; wanted], 0_usize);
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let offset = start.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        match file.read_at(offset, rest)? {
            0 => break,
            count => filled = filled.saturating_add(count),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Returns the checksum of the first line. `None` if it is not complete.
fn first_line(file: &mut dyn OpenFile) -> Result<Option<String>, WorldError> {
    let mut wanted = FIRST_READ;
    loop {
        let bytes = read(file, 0, wanted)?;
        let line = memchr::memchr(b'\n', &bytes).and_then(|end| bytes.get(..end));
        if let Some(line) = line {
            return Ok(Some(hex(&checksum(&[line]))));
        }
        if bytes.len() < wanted || wanted >= FILE_BYTES_MAX {
            return Ok(None);
        }
        wanted = wanted.saturating_mul(8).min(FILE_BYTES_MAX);
    }
}
