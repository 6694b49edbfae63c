//! Reads what was appended to a log since the last reading, also if the log was rotated meanwhile.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::log::rotated;
use crate::checksum::{checksum, hex};
use crate::limits::{LOG_BYTES_MAX, LOG_FILES_MAX};
use crate::world::{OpenFile, World, WorldError};

/// Bytes that are read at once of the first line.
const CHUNK_BYTES: usize = 16 * 1024;
/// Bytes of one file that are read: a file is rotated when it is full, and only the last append exceeds the limit.
#[expect(clippy::cast_possible_truncation, reason = "the limit is far below 4 GB")]
const FILE_BYTES_MAX: usize = LOG_BYTES_MAX as usize * 2;

/// Where the reading of a log ended. A file is recognized by its first line, which no other file has: entries contain
/// their time and id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCursor {
    /// Checksum of the first line.
    file: String,
    /// Length of the lines that were read, in bytes.
    offset: usize,
}

/// Calls `each` for every complete line behind the cursor, oldest first, and returns the new cursor. Without a cursor, or
/// if the file of the cursor does not exist any more, all lines are read.
///
/// # Errors
/// A file cannot be read now. Lines may have been passed to `each` before.
pub fn read_new(
    world: &dyn World,
    log: &Path,
    cursor: &LogCursor,
    mut each: impl FnMut(&[u8]),
) -> Result<LogCursor, WorldError> {
    // Files that are open stay the same if the log is rotated meanwhile.
    let mut files: Vec<(Box<dyn OpenFile>, LogCursor)> = Vec::new();
    let newest = [log.to_owned()].into_iter().chain((1..=LOG_FILES_MAX).map(|it| rotated(log, it)));
    for path in newest {
        let mut opened = match world.open(&path) {
            Ok(opened) => opened,
            Err(WorldError::NotFound) => continue,
            Err(error) => return Err(error),
        };
        let Some(file) = first_line(&mut *opened)? else { continue };
        if files.iter().any(|(_, it)| it.file == file) {
            continue; // It was renamed after it was opened.
        }
        let is_known = !cursor.file.is_empty() && file == cursor.file;
        let offset = if is_known { cursor.offset } else { 0 };
        files.push((opened, LogCursor { file, offset }));
        if is_known {
            break;
        }
    }
    let mut reached = cursor.clone();
    for (mut opened, LogCursor { file, offset }) in files.into_iter().rev() {
        let rest = rest(&mut *opened, offset)?;
        let complete = memchr::memrchr(b'\n', &rest).map_or(0, |it| it.saturating_add(1));
        let lines = rest.get(..complete).unwrap_or_default();
        lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()).for_each(&mut each);
        reached = LogCursor { file, offset: offset.saturating_add(complete) };
    }
    Ok(reached)
}

/// Returns the checksum of the first line. `None` if it is not complete.
fn first_line(file: &mut dyn OpenFile) -> Result<Option<String>, WorldError> {
    let mut line = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    while line.len() < FILE_BYTES_MAX {
        let read = file.read_at(u64::try_from(line.len()).unwrap_or(u64::MAX), &mut chunk)?;
        let bytes = chunk.get(..read).unwrap_or_default();
        match memchr::memchr(b'\n', bytes) {
            Some(end) => {
                line.extend_from_slice(bytes.get(..end).unwrap_or_default());
                return Ok(Some(hex(&checksum(&[&line]))));
            }
            None if read == 0 => break,
            None => line.extend_from_slice(bytes),
        }
    }
    Ok(None)
}

/// Returns what a file contains behind an offset.
fn rest(file: &mut dyn OpenFile, offset: usize) -> Result<Vec<u8>, WorldError> {
    let length = usize::try_from(file.stat()?.length).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(FILE_BYTES_MAX).saturating_sub(offset)];
    let mut filled = 0_usize;
    while let Some(rest) = bytes.get_mut(filled..).filter(|it| !it.is_empty()) {
        let at = u64::try_from(offset.saturating_add(filled)).unwrap_or(u64::MAX);
        match file.read_at(at, rest)? {
            0 => break,
            read => filled = filled.saturating_add(read),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::log;
    use crate::world::fake::FakeWorld;

    const LOG: &str = "/work/logs/decisions.jsonl";

    fn new_lines(world: &FakeWorld, cursor: &mut LogCursor) -> Vec<String> {
        let mut lines = Vec::new();
        let each = |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        *cursor = read_new(world, Path::new(LOG), cursor, each).unwrap();
        lines
    }

    #[test]
    fn each_line_is_read_once() {
        let (world, mut cursor) = (FakeWorld::new(), LogCursor::default());
        assert_eq!(new_lines(&world, &mut cursor), [""; 0]);
        world.put(LOG, "a\nb\nincompl");
        assert_eq!(new_lines(&world, &mut cursor), ["a", "b"]);
        assert_eq!(new_lines(&world, &mut cursor), [""; 0]);
        world.put(LOG, "a\nb\nincomplete\nc\n");
        assert_eq!(new_lines(&world, &mut cursor), ["incomplete", "c"]);
    }

    #[test]
    fn rotated_files_are_read_to_their_end() {
        let (world, mut cursor) = (FakeWorld::new(), LogCursor::default());
        world.put(LOG, "a\n");
        assert_eq!(new_lines(&world, &mut cursor), ["a"]);
        world.put(log::rotated(Path::new(LOG), 2), "a\nb\n");
        world.put(log::rotated(Path::new(LOG), 1), "c\n");
        world.put(LOG, "d\n");
        assert_eq!(new_lines(&world, &mut cursor), ["b", "c", "d"]);
        for number in 1..=LOG_FILES_MAX {
            world.put(log::rotated(Path::new(LOG), number), format!("old {number}\n"));
        }
        world.put(LOG, "e\n");
        assert_eq!(new_lines(&world, &mut cursor), ["old 3", "old 2", "old 1", "e"]);
    }
}
