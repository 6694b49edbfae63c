//! Where a reader of a log is, and what was appended to the log since, also if it was rotated meanwhile.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::log_files::{FILE_BYTES_MAX, LogFile, open_files};
use policyd_world::{World, WorldError};

/// A position in a log: a file, which a rotation renames, and a byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogPosition {
    /// Checksum of the first line. Empty before the first file.
    pub file: String,
    /// Length of the lines before the position, in bytes.
    pub offset: u64,
}

/// Lines of a file of a log.
pub struct LogChunk {
    /// Complete lines. A line that is longer than a chunk is not an entry and is given in parts.
    pub bytes: Vec<u8>,
    /// Position behind the lines.
    pub end: LogPosition,
    /// Whether the file had no further complete line.
    pub is_last: bool,
}

impl LogFile {
    /// Returns the beginning of the file.
    #[must_use]
    pub fn start(&self) -> LogPosition {
        LogPosition { file: self.first_line.clone(), offset: 0 }
    }

    /// Returns the complete lines from a position in this file on, at most `bytes_max` bytes of them.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn chunk(&mut self, start: &LogPosition, bytes_max: usize) -> Result<LogChunk, WorldError> {
        let wanted = self.length.saturating_sub(start.offset);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(bytes_max);
        let mut bytes = self.read(start.offset, wanted)?;
        let is_last = bytes.len() < bytes_max;
        match memchr::memrchr(b'\n', &bytes) {
            Some(end) => bytes.truncate(end.saturating_add(1)),
            None if is_last => bytes.clear(),
            None => {}
        }
        let mut end = start.clone();
        end.add(bytes.len());
        Ok(LogChunk { bytes, end, is_last })
    }
}

impl LogPosition {
    /// Moves the position behind a number of bytes.
    pub fn add(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// Opens the files with lines behind the position, oldest first, each with the position in it. If the file of the
    /// position does not exist any more, all lines are new.
    ///
    /// # Errors
    /// A file cannot be read now.
    pub fn open_new(
        &self,
        world: &dyn World,
        log: &Path,
    ) -> Result<Vec<(LogFile, Self)>, WorldError> {
        let known = Some(&self.file).filter(|it| !it.is_empty());
        let files = open_files(world, log, known)?.into_iter().rev();
        let new = files.map(|file| {
            let is_known = file.first_line == self.file;
            let start = if is_known { self.clone() } else { file.start() };
            (file, start)
        });
        Ok(new.collect())
    }
}

/// Calls `each` for every complete line behind a position, oldest first, and returns the new position.
///
/// # Errors
/// A file cannot be read now. Lines may have been passed to `each` before.
pub fn read_new(
    world: &dyn World,
    log: &Path,
    position: &LogPosition,
    mut each: impl FnMut(&[u8]),
) -> Result<LogPosition, WorldError> {
    let mut reached = position.clone();
    for (mut file, start) in position.open_new(world, log)? {
        let chunk = file.chunk(&start, FILE_BYTES_MAX)?;
        chunk.bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty()).for_each(&mut each);
        reached = chunk.end;
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_files::rotated;
    use policyd_base::limits::LOG_FILES_MAX;
    use policyd_world::fake::FakeWorld;

    const LOG: &str = "/work/logs/decisions.jsonl";

    fn new_lines(world: &FakeWorld, position: &mut LogPosition) -> Vec<String> {
        let mut lines = Vec::new();
        let each = |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        *position = read_new(world, Path::new(LOG), position, each).unwrap();
        lines
    }

    #[test]
    fn each_line_is_read_once() {
        let (world, mut position) = (FakeWorld::new(), LogPosition::default());
        assert_eq!(new_lines(&world, &mut position), [""; 0]);
        world.put(LOG, "a\nb\nincompl");
        assert_eq!(new_lines(&world, &mut position), ["a", "b"]);
        assert_eq!(new_lines(&world, &mut position), [""; 0]);
        world.put(LOG, "a\nb\nincomplete\nc\n");
        assert_eq!(new_lines(&world, &mut position), ["incomplete", "c"]);
    }

    #[test]
    fn rotated_files_are_read_to_their_end() {
        let (world, mut position) = (FakeWorld::new(), LogPosition::default());
        world.put(LOG, "a\n");
        assert_eq!(new_lines(&world, &mut position), ["a"]);
        world.put(rotated(Path::new(LOG), 2), "a\nb\n");
        world.put(rotated(Path::new(LOG), 1), "c\n");
        world.put(LOG, "d\n");
        assert_eq!(new_lines(&world, &mut position), ["b", "c", "d"]);
        for number in 1..=LOG_FILES_MAX {
            world.put(rotated(Path::new(LOG), number), format!("old {number}\n"));
        }
        world.put(LOG, "e\n");
        assert_eq!(new_lines(&world, &mut position), ["old 3", "old 2", "old 1", "e"]);
    }
}
