//! Reads what was appended to a log since the last reading, also if the log was rotated meanwhile.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::log_files::{FILE_BYTES_MAX, open_files};
use policyd_world::{World, WorldError};

/// Where the reading of a log ended.
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
    let known = Some(cursor.file.as_str()).filter(|it| !it.is_empty());
    let mut reached = cursor.clone();
    for mut file in open_files(world, log, known)?.into_iter().rev() {
        let offset = if known == Some(&file.first_line) { cursor.offset } else { 0 };
        let start = u64::try_from(offset).unwrap_or(u64::MAX);
        let left = usize::try_from(file.length.saturating_sub(start)).unwrap_or(usize::MAX);
        let rest = file.read(start, left.min(FILE_BYTES_MAX))?;
        let complete = memchr::memrchr(b'\n', &rest).map_or(0, |it| it.saturating_add(1));
        let lines = rest.get(..complete).unwrap_or_default();
        lines.split(|it| *it == b'\n').filter(|it| !it.is_empty()).for_each(&mut each);
        reached = LogCursor { file: file.first_line, offset: offset.saturating_add(complete) };
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
        world.put(rotated(Path::new(LOG), 2), "a\nb\n");
        world.put(rotated(Path::new(LOG), 1), "c\n");
        world.put(LOG, "d\n");
        assert_eq!(new_lines(&world, &mut cursor), ["b", "c", "d"]);
        for number in 1..=LOG_FILES_MAX {
            world.put(rotated(Path::new(LOG), number), format!("old {number}\n"));
        }
        world.put(LOG, "e\n");
        assert_eq!(new_lines(&world, &mut cursor), ["old 3", "old 2", "old 1", "e"]);
    }
}
